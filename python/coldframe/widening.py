"""The columns of many files as those of one table: see `coldframe::types` in Rust, which has the rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coldframe import _coldframe

__all__ = ["shape_of", "unified"]


def unified(schemas: Iterable[tuple[str, Any]], *, table: str | None = None) -> Any:
    """One pyarrow.Schema for those of several files, given with their paths.

    A SchemaError names both files where a column has types that do not go together, and the `table`.
    """
    named = [(_text(path), schema) for path, schema in schemas]
    return _coldframe.unified(named, None if table is None else _text(table))


def _text(name: str) -> str:
    """A path as a message can have it: names of files need not be UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def shape_of(kind: Any) -> str:
    """A type as text, the same for structs whose fields differ in their order alone: readers go by names."""
    return _coldframe.type_shape(kind)
