"""Converts Iceberg's columns to Arrow, with their ids (see `columns`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from coldframe.arrow import pa
from coldframe.errors import unsupported
from coldframe.iceberg.columns import marked

_PLAIN: dict[type, pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", "UTC"),
    StringType: pa.string(),
    BinaryType: pa.binary(),
    UUIDType: pa.binary(16),
}
_LATER = {
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "unknown": pa.null(),
}
"""Types that only newer versions of Iceberg have, by name."""


class Names:
    """The names of fields in files without ids, by id."""

    def __init__(self, mapping: Any) -> None:
        """`mapping`: the table's name mapping, or None."""
        self._known: dict[int, list[str]] | None = None if mapping is None else dict(_mapped(mapping.root))

    def of(self, field: NestedField) -> list[str]:
        """The names that a field may have in such a file."""
        return [field.name] if self._known is None else self._known.get(field.field_id, [])


def _mapped(fields: Iterable[Any]) -> Iterable[tuple[int, list[str]]]:
    for field in fields:
        if field.field_id is not None:
            yield field.field_id, list(field.names)
        yield from _mapped(field.fields)


def has_nanoseconds(schema: Schema) -> bool:
    """Whether a column, or a field within one, has timestamps in nanoseconds."""
    kinds = (str(field.field_type) for field in index_by_id(schema).values())
    return any(kind in ("timestamp_ns", "timestamptz_ns") for kind in kinds)


def columns_of(fields: Iterable[NestedField], names: Names) -> pa.Schema:
    """The Arrow columns for Iceberg's columns."""
    return pa.schema([field_of(field, names) for field in fields])


def field_of(field: NestedField, names: Names, called: str | None = None) -> pa.Field:
    """The Arrow field for a field of Iceberg; `called`: another name for it."""
    metadata = marked(field.field_id, names.of(field))
    return pa.field(called or field.name, _type(field.field_type, names, field.name), metadata=metadata)


def _type(kind: Any, names: Names, column: str) -> pa.DataType:
    if isinstance(kind, StructType):
        return pa.struct([field_of(field, names) for field in kind.fields])
    if isinstance(kind, ListType):
        return pa.list_(field_of(kind.element_field, names, "item"))
    if isinstance(kind, MapType):
        key = field_of(kind.key_field, names, "key").with_nullable(False)
        return pa.map_(key, field_of(kind.value_field, names, "value"))
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, FixedType):
        return pa.binary(len(kind))
    plain = _PLAIN.get(type(kind), _LATER.get(str(kind)))
    if plain is None:
        raise unsupported(f"column {column} of Iceberg's type {kind}")
    return plain
