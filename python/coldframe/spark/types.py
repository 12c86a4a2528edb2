"""Arrow as the files give it, made into exactly the Arrow that Spark demands.

Spark compares the schema of a Python source's batches with its own, field by field: `large_string`,
dictionaries, unsigned integers, nanoseconds, a nullable flag too many are each an error. `plain_type` says
which Arrow type stands for a type in Spark (and in the lakehouse formats that Spark reads); the compiled
`conform_batch` turns batches into these, losing nothing but digits below a microsecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe._coldframe import UnsupportedError
from coldframe.widening import MAX_PRECISION

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def plain_type(found: pa.DataType, *, timestamp_unit: str = "us") -> pa.DataType:
    """The Arrow type that Spark has for `found`."""
    t = pa.types
    if isinstance(found, pa.BaseExtensionType):
        return plain_type(found.storage_type, timestamp_unit=timestamp_unit)
    if t.is_dictionary(found) or t.is_run_end_encoded(found):
        return plain_type(found.value_type, timestamp_unit=timestamp_unit)
    if t.is_null(found) or t.is_boolean(found) or t.is_signed_integer(found):
        return found
    if t.is_uint8(found):
        return pa.int16()
    if t.is_uint16(found):
        return pa.int32()
    if t.is_uint32(found):
        return pa.int64()
    if t.is_uint64(found):
        return pa.decimal128(20, 0)
    if t.is_float16(found):
        return pa.float32()
    if t.is_floating(found):
        return found
    if t.is_decimal(found):
        return _plain_decimal(found)
    if t.is_string(found) or t.is_large_string(found) or t.is_string_view(found):
        return pa.string()
    if (
        t.is_binary(found)
        or t.is_large_binary(found)
        or t.is_binary_view(found)
        or t.is_fixed_size_binary(found)
    ):
        return pa.binary()
    if t.is_date(found):
        return pa.date32()
    if t.is_timestamp(found):
        unit = "ns" if timestamp_unit == "ns" else "us"
        return pa.timestamp(unit, tz=None if found.tz is None else "UTC")
    if t.is_time(found):
        return pa.time64("ns")
    if t.is_duration(found):
        return pa.duration("us")
    if t.is_map(found):
        key = plain_type(found.key_type, timestamp_unit=timestamp_unit)
        item = plain_type(found.item_type, timestamp_unit=timestamp_unit)
        return pa.map_(pa.field("key", key, nullable=False), pa.field("value", item))
    if _is_list(found):
        return pa.list_(pa.field("element", plain_type(found.value_type, timestamp_unit=timestamp_unit)))
    if t.is_struct(found):
        return pa.struct([plain_field(field, timestamp_unit=timestamp_unit) for field in found.fields])
    if t.is_union(found):
        branches = [
            pa.field(f"f{i}", plain_type(found.field(i).type, timestamp_unit=timestamp_unit))
            for i in range(found.num_fields)
        ]
        return pa.struct([pa.field("tag", pa.int32()), *branches])
    raise UnsupportedError(f"Spark has no type for Arrow's {found}")


def plain_field(field: pa.Field, *, timestamp_unit: str = "us") -> pa.Field:
    """The field in its plain type, and nullable: what a damaged or a foreign file claims of nulls is no
    promise.
    """
    return pa.field(field.name, plain_type(field.type, timestamp_unit=timestamp_unit), nullable=True)


def plain_schema(schema: pa.Schema, *, timestamp_unit: str = "us") -> pa.Schema:
    """Every field of `schema` in its plain type; metadata is dropped."""
    return pa.schema([plain_field(field, timestamp_unit=timestamp_unit) for field in schema])


def _is_list(found: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_list(found)
        or t.is_large_list(found)
        or t.is_fixed_size_list(found)
        or t.is_list_view(found)
        or t.is_large_list_view(found)
    )


def _plain_decimal(found: Any) -> pa.DataType:
    precision, scale = found.precision, found.scale
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > MAX_PRECISION:
        raise UnsupportedError(
            f"Spark has no type for Arrow's {found}: its decimals have {MAX_PRECISION} digits"
        )
    return pa.decimal128(precision, scale)


def to_spark_type(found: pa.DataType) -> DataType:
    """Spark's type for a plain Arrow type."""
    from pyspark.sql import types as s

    t = pa.types
    exact: dict[pa.DataType, DataType] = {
        pa.null(): s.NullType(),
        pa.bool_(): s.BooleanType(),
        pa.int8(): s.ByteType(),
        pa.int16(): s.ShortType(),
        pa.int32(): s.IntegerType(),
        pa.int64(): s.LongType(),
        pa.float32(): s.FloatType(),
        pa.float64(): s.DoubleType(),
        pa.string(): s.StringType(),
        pa.binary(): s.BinaryType(),
        pa.date32(): s.DateType(),
        pa.timestamp("us"): s.TimestampNTZType(),
        pa.timestamp("us", tz="UTC"): s.TimestampType(),
        pa.duration("us"): s.DayTimeIntervalType(),
    }
    known = exact.get(found)
    if known is not None:
        return known
    anything: Any = found
    if t.is_decimal(found):
        return s.DecimalType(anything.precision, anything.scale)
    if t.is_time(found):
        if not hasattr(s, "TimeType"):
            raise UnsupportedError("a time of day needs Spark 4.1 or later")
        return s.TimeType()
    if t.is_map(found):
        return s.MapType(to_spark_type(anything.key_type), to_spark_type(anything.item_type))
    if t.is_list(found):
        return s.ArrayType(to_spark_type(anything.value_type))
    if t.is_struct(found):
        return s.StructType([s.StructField(f.name, to_spark_type(f.type)) for f in anything.fields])
    raise UnsupportedError(f"Spark has no type for Arrow's {found}")


def to_spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of a file's schema."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, to_spark_type(field.type)) for field in plain_schema(schema)])


def arrow_schema_for(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark will compare our batches with."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
