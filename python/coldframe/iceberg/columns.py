"""A table's columns as Arrow's, with what the readers need of them. None of this needs PyIceberg.

A field has its id in its metadata as an ORC file has it (`iceberg.id`). For files that have no ids (migrated
from Hive) it also has the names by which such a file may call it: those of the table's name mapping, or where
the table has none its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

__all__ = [
    "FILE",
    "ID",
    "NUMBERS",
    "POSITION",
    "hidden",
    "marked",
    "number_of",
    "public",
    "with_metadata",
    "with_other",
    "within",
]

ID = "iceberg.id"
"""The key of a field's id, as ORC's columns have it among their attributes."""
_NAMES = "coldframe.names"
"""The key of the names that a field has in files without ids, as Rust takes them."""

_IN_FILES = "coldframe.in_files"
"""The key of the name that a field has in all files, as Rust takes it: readers make that column."""

NUMBERS = "\1row"
"""The name of the column of row numbers that readers make; no file has one of that name."""
POSITION = pa.field("_pos", pa.int64(), metadata={ID: "2147483645", _IN_FILES: NUMBERS})
"""A row's number in its file."""
FILE = pa.field("_file", pa.string(), metadata={ID: "2147483646"})
"""The location of a row's file, as the metadata has it."""

Metadata: TypeAlias = Mapping[bytes, bytes]


def with_metadata(columns: pa.Schema) -> pa.Schema:
    """A table's columns, and Iceberg's metadata columns, unless the table has one of that name itself."""
    return pa.schema([*columns, *(one for one in (FILE, POSITION) if one.name not in columns.names)])


def marked(number: int, names: Iterable[str]) -> dict[str, str]:
    """The metadata of a field: its id, and its names in files without ids."""
    return {ID: str(number), _NAMES: "\0".join(names)}


def number_of(field: pa.Field) -> int:
    """The id of a field."""
    return int(field.metadata[ID.encode()])


def hidden(number: int) -> str:
    """The name of a column that only the deletes need: one that no table has."""
    return f"\1{number}"


def within(number: int) -> str:
    """The name of the default value of a field within a column, as Rust takes it."""
    return f"\2{number}"


def public(schema: pa.Schema) -> pa.Schema:
    """A schema without what only the readers need."""
    ours = (_NAMES.encode(), _IN_FILES.encode())

    def kept(metadata: Metadata) -> Metadata:
        return {name: text for name, text in metadata.items() if name not in ours}

    return pa.schema([with_other(field, kept) for field in schema])


def with_other(field: pa.Field, metadata: Callable[[Metadata], Metadata]) -> pa.Field:
    """A field, and all fields within it, with what a function makes of their metadata."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([with_other(inner, metadata) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(with_other(kind.key_field, metadata), with_other(kind.item_field, metadata))
    elif pa.types.is_list(kind):
        kind = pa.list_(with_other(kind.value_field, metadata))
    return pa.field(field.name, kind, field.nullable, metadata=metadata(field.metadata or {}) or None)
