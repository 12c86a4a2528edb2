"""Arrow as the files give it, made into exactly the Arrow that Spark demands.

Spark compares the schema of a Python source's batches with its own, field by field: `large_string`,
dictionaries, unsigned integers, nanoseconds, a nullable flag too many are each an error. Two functions hold
the whole rule:

- `plain_type` says which Arrow type stands for a type in Spark (and in the lakehouse formats that Spark
reads);
- `conform` turns an array into that type, losing nothing but digits below a microsecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import SchemaError, UnsupportedError
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


def conform_batch(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """`batch` with exactly the schema `target`; its columns are taken by position, their names must agree."""
    if batch.schema.equals(target, check_metadata=True):
        return batch
    if batch.schema.names != target.names:
        raise SchemaError(f"expected columns {target.names}, found {batch.schema.names}")
    columns = [
        conform(column, field, field.name) for column, field in zip(batch.columns, target, strict=True)
    ]
    return _batch_of(columns, target, batch.num_rows)


def _batch_of(columns: list[pa.Array], target: pa.Schema, rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=target)
    # No column at all (count()): the number of rows has to survive.
    rows_only = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(rows_only)


def conform(array: pa.Array, field: pa.Field, where: str) -> pa.Array:
    """`array` as the type of `field`; `where` names the column in errors."""
    if not field.nullable and array.null_count:
        raise SchemaError(f"column {where} is declared NOT NULL, found {array.null_count} nulls")
    return _conform(array, field.type, where)


def _conform(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    found = array.type
    # A list's child may be called item or element: equals() does not look at that, Spark neither.
    if found.equals(target) and not pa.types.is_nested(found):
        return array
    t = pa.types
    if isinstance(array, pa.ExtensionArray):
        return _conform(array.storage, target, where)
    if t.is_dictionary(found):
        return _conform(array.dictionary_decode(), target, where)
    if t.is_run_end_encoded(found):
        return _conform(pc.run_end_decode(array), target, where)
    if t.is_null(found):
        return pa.nulls(len(array), target)
    if t.is_struct(target):
        if t.is_union(found):
            return _conform_union(array, target, where)
        if t.is_struct(found):
            return _conform_struct(array, target, where)
    elif t.is_map(target) and t.is_map(found):
        return _conform_map(array, target, where)
    elif t.is_list(target) and _is_list(found):
        return _conform_list(array, target, where)
    elif t.is_timestamp(target) and t.is_timestamp(found):
        return _conform_timestamp(array, target, where)
    return _cast(array, target, where)


def _cast(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    if not _castable(array.type, target):
        raise SchemaError(f"column {where}: expected {target}, found {array.type}")
    try:
        return pc.cast(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        raise SchemaError(f"column {where}: expected {target}, found {array.type} ({reason})") from reason


def _castable(found: pa.DataType, target: pa.DataType) -> bool:
    """Conversions that keep the meaning. Whether each value fits is checked by the (safe) cast itself."""
    t = pa.types
    texts = (t.is_string, t.is_large_string, t.is_string_view)
    blobs = (t.is_binary, t.is_large_binary, t.is_binary_view, t.is_fixed_size_binary)
    numbers = (t.is_integer, t.is_floating, t.is_decimal)
    families = ((*texts, *blobs), numbers, (t.is_date,), (t.is_time,), (t.is_duration,), (t.is_boolean,))
    return any(
        any(is_(found) for is_ in family) and any(is_(target) for is_ in family) for family in families
    )


def _conform_timestamp(array: pa.Array, target: Any, where: str) -> pa.Array:
    found: Any = array.type
    if (found.tz is None) != (target.tz is None):
        raise SchemaError(
            f"column {where}: expected {target}, found {found} "
            "(an instant is not a wall clock time, which is timestamp_ntz)"
        )
    # Labels of zones do not change the instants, so all work is on the bare numbers.
    bare = array.view(pa.timestamp(found.unit))
    if found.unit == "ns" and target.unit != "ns":
        # Down, not towards zero: as Spark and Hive round times before 1970.
        bare = pc.floor_temporal(bare, unit="microsecond")
    try:
        bare = bare.cast(pa.timestamp(target.unit))
    except pa.ArrowInvalid as reason:
        raise SchemaError(f"column {where}: {found} does not fit {target} ({reason})") from reason
    return bare.view(target)


def _validity(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None


def _conform_struct(array: pa.Array, target: Any, where: str) -> pa.Array:
    names = [field.name for field in array.type]
    wanted = [field.name for field in target]
    if len(set(names)) == len(names):
        missing = [name for name in wanted if name not in names]
        if missing:
            raise SchemaError(f"column {where}: fields {missing} are missing, found {names}")
        places = [names.index(name) for name in wanted]
    elif names == wanted:
        places = list(range(len(names)))
    else:
        raise SchemaError(f"column {where}: expected fields {wanted}, found {names}")
    fields = list(target)
    # field() applies the slice but not the parent's nulls, which is what from_arrays wants.
    children = [
        _conform(array.field(place), field.type, f"{where}.{field.name}")
        for place, field in zip(places, fields, strict=True)
    ]
    if not children:
        return pa.array([None if null else {} for null in pc.is_null(array).to_pylist()], type=target)
    return pa.StructArray.from_arrays(children, fields=fields, mask=_validity(array))


def _conform_union(array: pa.Array, target: Any, where: str) -> pa.Array:
    fields = list(target)
    found: Any = array.type
    if len(fields) != found.num_fields + 1:
        raise SchemaError(f"column {where}: expected {target}, found {found}")
    codes = union_codes(array)
    columns = [_tag_of(codes, found)]
    for i, field in enumerate(fields[1:]):
        chosen = pc.equal(codes, pa.scalar(found.type_codes[i], pa.int8()))
        if found.mode == "sparse":
            branch = array.field(i)
        else:
            places = pc.if_else(chosen, union_offsets(array), pa.scalar(None, pa.int32()))
            branch = array.field(i).take(places)
        plain = _conform(branch, field.type, f"{where}.{field.name}")
        columns.append(_null_unless(plain, chosen))
    return pa.StructArray.from_arrays(columns, fields=fields)


def union_codes(array: pa.UnionArray) -> pa.Array:
    """The type codes of a union. pyarrow's own property does not see that an array is sliced."""
    return pa.Array.from_buffers(pa.int8(), len(array), [None, array.buffers()[1]], 0, array.offset)


def union_offsets(array: pa.UnionArray) -> pa.Array:
    """Where the values of a dense union stand in its branches; right for slices too."""
    return pa.Array.from_buffers(pa.int32(), len(array), [None, array.buffers()[2]], 0, array.offset)


def plain_list(array: pa.Array) -> pa.Array:
    """Lists of any kind as one with offsets. (A cast from a list view gives one offset too few.)"""
    found: Any = array.type
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return array
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    ends = pc.cumulative_sum(pc.cast(lengths, pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    mask = pc.is_null(array) if array.null_count else None
    return pa.LargeListArray.from_arrays(offsets, array.flatten(), mask=mask)


def _tag_of(codes: pa.Array, found: Any) -> pa.Array:
    if found.type_codes == list(range(found.num_fields)):
        return pc.cast(codes, pa.int32())
    return pc.cast(pc.index_in(codes, pa.array(found.type_codes, pa.int8())), pa.int32())


def _null_unless(array: pa.Array, chosen: pa.Array) -> pa.Array:
    if pa.types.is_null(array.type):
        return array
    # take() with null places works for every type, if_else does not for the nested ones.
    places = pa.array(range(len(array)), pa.int64())
    return array.take(pc.if_else(chosen, places, pa.scalar(None, pa.int64())))


def _offsets(array: Any) -> tuple[pa.Array, int, int]:
    """Offsets of a possibly sliced list that begin at 0, and where its values begin and end."""
    offsets = array.offsets
    start, stop = offsets[0].as_py(), offsets[-1].as_py()
    if start or array.offset:
        offsets = pc.subtract(offsets, pa.scalar(start, offsets.type))
    return pc.cast(offsets, pa.int32()), start, stop


def _conform_list(array: Any, target: Any, where: str) -> pa.Array:
    array = plain_list(array)
    if len(array) == 0:
        return pa.array([], type=target)
    offsets, start, stop = _offsets(array)
    values = array.values.slice(start, stop - start)
    values = conform(values, target.value_field, f"{where}.element")
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=_validity(array))


def _conform_map(array: Any, target: Any, where: str) -> pa.Array:
    if len(array) == 0:
        return pa.array([], type=target)
    offsets, start, stop = _offsets(array)
    keys = array.keys.slice(start, stop - start)
    items = array.items.slice(start, stop - start)
    keys = conform(keys, target.key_field, f"{where}.key")
    items = conform(items, target.item_field, f"{where}.value")
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_validity(array))


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
