"""Arrow types as Hive DDL, as `--schema` takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coldframe.errors import unsupported

__all__ = ["hive_columns", "hive_type"]

_PRIMITIVES = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_uint16, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_uint32, "bigint"),
    (pa.types.is_float16, "float"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date, "date"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
]


def hive_columns(fields: Sequence[Any]) -> str:
    """A column list: `` `id` bigint, `tags` array<string> ``."""
    return ", ".join(f"{_quoted(field.name)} {hive_type(field.type)}" for field in fields)


def hive_type(type: Any) -> str:
    """The Hive type that holds every value of an Arrow type."""
    for matches, name in _PRIMITIVES:
        if matches(type):
            return name
    if pa.types.is_uint64(type):
        return "decimal(20,0)"
    if pa.types.is_dictionary(type):
        return hive_type(type.value_type)
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if pa.types.is_timestamp(type):
        return "timestamp" if type.tz is None else "timestamp with local time zone"
    if pa.types.is_map(type):
        return f"map<{hive_type(type.key_type)},{hive_type(type.item_type)}>"
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return f"array<{hive_type(type.value_type)}>"
    if pa.types.is_struct(type):
        return "struct<" + ",".join(f"{_quoted(f.name)}:{hive_type(f.type)}" for f in type) + ">"
    if pa.types.is_union(type):
        return "uniontype<" + ",".join(hive_type(type.field(i).type) for i in range(type.num_fields)) + ">"
    raise unsupported(f"Hive has no type for Arrow's {type}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
