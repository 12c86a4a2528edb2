"""The names of column types in a table's definition, for Hive and for Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa

from coldframe._coldframe import SchemaError

_PLAIN = {
    "int8": ("tinyint", "byte"),
    "int16": ("smallint", "short"),
    "int32": ("int", "integer"),
    "int64": ("bigint", "long"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    "bool": ("boolean", "boolean"),
    "string": ("string", "string"),
    "large_string": ("string", "string"),
    "binary": ("binary", "binary"),
    "large_binary": ("binary", "binary"),
    "date32[day]": ("date", "date"),
    # Hive has one type for timestamps with and without a zone; Spark has two.
    "timestamp[us]": ("timestamp", "timestamp_ntz"),
}
_PIECE = 4000
"""The length of a property's value that every metastore can store."""


def hive_type(kind: pa.DataType) -> str:
    """A type in Hive's language."""
    if pa.types.is_struct(kind):
        fields = (kind.field(number) for number in range(kind.num_fields))
        return f"struct<{','.join(f'{field.name}:{hive_type(field.type)}' for field in fields)}>"
    if pa.types.is_map(kind):
        return f"map<{hive_type(kind.key_type)},{hive_type(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{hive_type(kind.value_type)}>"
    return _plain(kind)[0]


def spark_schema(columns: Iterable[pa.Field]) -> dict[str, str]:
    """The properties in which Spark keeps a table's columns, with their case and Spark's own types."""
    text = json.dumps(_spark_fields(columns), separators=(",", ":"))
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    parts = {f"spark.sql.sources.schema.part.{number}": piece for number, piece in enumerate(pieces)}
    return {"spark.sql.sources.schema.numParts": str(len(pieces)), **parts}


def _spark_fields(fields: Iterable[pa.Field]) -> dict[str, object]:
    described = [
        {"name": field.name, "type": _spark_type(field.type), "nullable": True, "metadata": {}}
        for field in fields
    ]
    return {"type": "struct", "fields": described}


def _spark_type(kind: pa.DataType) -> object:
    if pa.types.is_struct(kind):
        return _spark_fields(kind.field(number) for number in range(kind.num_fields))
    if pa.types.is_map(kind):
        types = {"keyType": _spark_type(kind.key_type), "valueType": _spark_type(kind.item_type)}
        return {"type": "map", **types, "valueContainsNull": True}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "elementType": _spark_type(kind.value_type), "containsNull": True}
    return _plain(kind)[1]


def _plain(kind: pa.DataType) -> tuple[str, str]:
    if pa.types.is_decimal(kind):
        text = f"decimal({kind.precision},{kind.scale})"
        return text, text
    if pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None:
        return "timestamp", "timestamp"
    names = _PLAIN.get(str(kind))
    if names is None:
        raise SchemaError(f"Hive and Spark have no type for columns of {kind}")
    return names
