"""A table's columns in Arrow, with metadata for the readers. This module does not need PyIceberg.

The metadata of a field has its id under the key of ORC files (`iceberg.id`). For files without ids (migrated
from Hive) the metadata also has the names that the field may have there: the names in the table's name
mapping, or else the field's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from coldframe.arrow import pa

ID = "iceberg.id"
"""The key of a field's id, also among the attributes of ORC columns."""
NAMES = "coldframe.names"
"""The key of the names of a field in files without ids; Rust reads it."""

_IN_FILES = "coldframe.in_files"
"""The key of the name under which readers generate a column that no file stores; Rust reads it."""

NUMBERS = "\1row"
"""The name of the column of row numbers that readers generate; no file has this name."""
POSITION = pa.field("_pos", pa.int64(), metadata={ID: "2147483645", _IN_FILES: NUMBERS})
"""A row's number in its file."""
FILE = pa.field("_file", pa.string(), metadata={ID: "2147483646"})
"""The location of a row's file, as in the table's metadata."""

Metadata: TypeAlias = Mapping[bytes, bytes]


def with_metadata(columns: pa.Schema) -> pa.Schema:
    """A table's columns, and Iceberg's metadata columns except names that the table itself uses."""
    return pa.schema([*columns, *(field for field in (FILE, POSITION) if field.name not in columns.names)])


def marked(number: int, names: Iterable[str]) -> dict[str, str]:
    """The metadata of a field: its id, and its names in files without ids."""
    return {ID: str(number), NAMES: "\0".join(names)}


def number_of(field: pa.Field) -> int:
    """The id of a field."""
    return int(field.metadata[ID.encode()])


def hidden(number: int) -> str:
    """A name that no table uses, for a column that only the deletes need."""
    return f"\1{number}"


def within(number: int) -> str:
    """The name of the default value of a nested field; Rust reads it."""
    return f"\2{number}"


def public(schema: pa.Schema) -> pa.Schema:
    """A schema without the metadata for the readers."""
    ours = (NAMES.encode(), _IN_FILES.encode())

    def kept(metadata: Metadata) -> Metadata:
        return {name: text for name, text in metadata.items() if name not in ours}

    return pa.schema([with_other(field, kept) for field in schema])


def with_other(field: pa.Field, metadata: Callable[[Metadata], Metadata]) -> pa.Field:
    """Applies a function to the metadata of a field and of all fields within it."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([with_other(inner, metadata) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(with_other(kind.key_field, metadata), with_other(kind.item_field, metadata))
    elif pa.types.is_list(kind):
        kind = pa.list_(with_other(kind.value_field, metadata))
    return pa.field(field.name, kind, field.nullable, metadata=metadata(field.metadata or {}) or None)
