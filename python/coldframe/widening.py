"""Unifies the columns of many files into the columns of one table, by the rules of `coldframe::types` in
Rust.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coldframe import _coldframe


def unified(schemas: Iterable[tuple[str, Any]], *, table: str | None = None) -> Any:
    """Unifies the schemas of several files, which are given with their paths, into one pyarrow.Schema.

    If a column has incompatible types, raises a SchemaError that names both files and the `table`.
    """
    named = [(_text(path), schema) for path, schema in schemas]
    return _coldframe.unified(named, None if table is None else _text(table))


def _text(name: str) -> str:
    """A path as text for messages: names of files need not be UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def shape_of(kind: Any) -> str:
    """A type as text, the same for structs that differ only in the order of fields: readers match names."""
    return _coldframe.type_shape(kind)
