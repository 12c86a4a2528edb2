"""Converts the Arrow data of files to the Arrow types that Spark requires.

Spark compares the schema of a Python source's batches with its own, field by field: `large_string`,
dictionaries, unsigned integers, nanoseconds and a wrong nullable flag are errors. `plain_type` returns the
Arrow type for a type in Spark (and in the lakehouse formats that Spark reads); `conform_batch` in Rust
converts batches to these types, and loses only digits below a microsecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe import _coldframe
from coldframe._coldframe import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def plain_type(data_type: pa.DataType, *, timestamp_unit: str = "us") -> pa.DataType:
    """The Arrow type of the Spark type that `data_type` becomes."""
    return _coldframe.plain_type(data_type, timestamp_unit)


def plain_field(field: pa.Field, *, timestamp_unit: str = "us") -> pa.Field:
    """The field in its plain type, nullable: damaged and foreign files may be wrong about nulls."""
    return pa.field(field.name, plain_type(field.type, timestamp_unit=timestamp_unit), nullable=True)


def plain_schema(schema: pa.Schema, *, timestamp_unit: str = "us") -> pa.Schema:
    """Every field of `schema` in its plain type; metadata is dropped."""
    return _coldframe.plain_schema(schema, timestamp_unit)


def to_spark_type(data_type: pa.DataType) -> DataType:
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
    known = exact.get(data_type)
    if known is not None:
        return known
    nested: Any = data_type
    if t.is_decimal(data_type):
        return s.DecimalType(nested.precision, nested.scale)
    if t.is_time(data_type):
        if not hasattr(s, "TimeType"):
            raise UnsupportedError("a time of day needs Spark 4.1 or later")
        return s.TimeType()
    if t.is_map(data_type):
        return s.MapType(to_spark_type(nested.key_type), to_spark_type(nested.item_type))
    if t.is_list(data_type):
        return s.ArrayType(to_spark_type(nested.value_type))
    if t.is_struct(data_type):
        return s.StructType([s.StructField(f.name, to_spark_type(f.type)) for f in nested.fields])
    raise UnsupportedError(f"Spark has no type for Arrow's {data_type}")


def to_spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of a file's schema."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, to_spark_type(field.type)) for field in plain_schema(schema)])


def arrow_schema_for(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark compares batches with."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
