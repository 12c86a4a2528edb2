"""The columns of many files as those of one table: see `coldframe::types` in Rust, which has the rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from coldframe import _coldframe

__all__ = ["MAX_PRECISION", "shape_of", "unified"]

MAX_PRECISION = 38
"""Digits that a decimal holds in Hive, in Spark and in the lakehouse formats."""


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
    t = pa.types
    if t.is_struct(kind):
        fields = sorted(f"{field.name}: {shape_of(field.type)}" for field in kind.fields)
        return f"struct<{', '.join(fields)}>"
    if t.is_list(kind):
        return f"list<{shape_of(kind.value_type)}>"
    if t.is_map(kind):
        return f"map<{shape_of(kind.key_type)}, {shape_of(kind.item_type)}>"
    return str(kind)
