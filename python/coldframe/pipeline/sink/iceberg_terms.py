"""The transforms of an Iceberg table, applied to whole columns.

    years, months, days, hours    since 1970, rounded down
    truncate[W]                   the first W characters or bytes; numbers: down to a multiple of W
    bucket[N]                     Murmur3 (32 bits) of the value, without its sign bit, modulo N
    identity                      the value

Results have the form of manifests: dates and times are numbers since 1970.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe.pipeline.sink.iceberg_layout import Term

_HOUR = 3_600_000_000


def iceberg_type(kind: pa.DataType) -> Any:
    """Iceberg's type for a column of the target."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids

    return _pyarrow_to_schema_without_ids(pa.schema([pa.field("x", kind)])).fields[0].field_type


def transform_of(term: Term) -> Any:
    """PyIceberg's transform."""
    from pyiceberg.transforms import parse_transform

    return parse_transform(term.transform)


def transformed(term: Term, column: pa.Array) -> pa.Array:
    """The values of a term for its column; nulls stay nulls."""
    name, _, number = term.transform.rstrip("]").partition("[")
    if name == "identity":
        return _internal(column)
    if name == "bucket" and _is_hashed_as_long(column.type):
        return _buckets(_internal(column), int(number))
    if name == "truncate" and pa.types.is_integer(column.type):
        return _rounded_down(_as_int(column), int(number))
    if name == "truncate" and pa.types.is_string(column.type):
        return pc.utf8_slice_codeunits(column, 0, int(number))
    if name == "truncate" and pa.types.is_binary(column.type):
        return pc.binary_slice(column, 0, int(number))
    if name in ("bucket", "truncate"):
        return _by_pyiceberg(term, column)
    return _since_1970(name, column)


def _since_1970(unit: str, column: pa.Array) -> pa.Array:
    """Whole years, months, days or hours."""
    if unit == "hour":
        return _divided_down(_internal(column), _HOUR).cast(pa.int32())
    if unit == "day":
        days = column if pa.types.is_date(column.type) else _divided_down(_internal(column), 24 * _HOUR)
        return days.cast(pa.int32())
    if not pa.types.is_date(column.type):
        # An instant has the year and month of its day in UTC.
        column = _divided_down(_internal(column), 24 * _HOUR).cast(pa.int32()).cast(pa.date32())
    years = pc.subtract(pc.year(column), 1970)
    if unit == "year":
        return years.cast(pa.int32())
    return pc.add(pc.multiply(years, 12), pc.subtract(pc.month(column), 1)).cast(pa.int32())


def _internal(column: pa.Array) -> pa.Array:
    """Dates and times as numbers, small integers as 32 bits."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else _as_int(column)


def _as_int(column: pa.Array) -> pa.Array:
    is_small = pa.types.is_int8(column.type) or pa.types.is_int16(column.type)
    return column.cast(pa.int32()) if is_small else column


def _divided_down(values: pa.Array, by: int) -> pa.Array:
    """The quotient, rounded down; Arrow rounds towards zero."""
    divisor = pa.scalar(by, values.type)
    quotient = pc.divide(values, divisor)
    is_below = pc.and_(pc.less(values, 0), pc.not_equal(pc.multiply(quotient, divisor), values))
    return pc.if_else(is_below, pc.subtract(quotient, pa.scalar(1, values.type)), quotient)


def _rounded_down(values: pa.Array, width: int) -> pa.Array:
    # Raises for the lowest numbers, whose multiple below would overflow.
    return pc.multiply_checked(_divided_down(values, width), pa.scalar(width, values.type))


def _is_hashed_as_long(kind: pa.DataType) -> bool:
    return any(matches(kind) for matches in (pa.types.is_integer, pa.types.is_date, pa.types.is_timestamp))


def _buckets(values: pa.Array, count: int) -> pa.Array:
    """Murmur3 of 8 bytes, the lower 4 first. Arrow's arithmetic on uint32 is modulo 2**32."""
    bits = values.cast(pa.int64()).view(pa.uint64())
    low = pc.bit_wise_and(bits, pa.scalar(0xFFFFFFFF, pa.uint64())).cast(pa.uint32())
    high = pc.shift_right(bits, pa.scalar(32, pa.uint64())).cast(pa.uint32())
    hashed: Any = pa.scalar(0, pa.uint32())
    for word in (low, high):
        mixed = _times(_rotated(_times(word, 0xCC9E2D51), 15), 0x1B873593)
        hashed = pc.add(_times(_rotated(pc.bit_wise_xor(mixed, hashed), 13), 5), _u32(0xE6546B64))
    hashed = pc.bit_wise_xor(hashed, _u32(8))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = _times(pc.bit_wise_xor(hashed, pc.shift_right(hashed, _u32(shift))), factor)
    hashed = pc.bit_wise_xor(hashed, pc.shift_right(hashed, _u32(16)))
    positive = pc.bit_wise_and(hashed, _u32(0x7FFFFFFF)).cast(pa.int32())
    divisor = pa.scalar(count, pa.int32())
    return pc.subtract(positive, pc.multiply(pc.divide(positive, divisor), divisor))


def _u32(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint32())


def _times(values: pa.Array, factor: int) -> pa.Array:
    return pc.multiply(values, _u32(factor))


def _rotated(values: pa.Array, by: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(values, _u32(by)), pc.shift_right(values, _u32(32 - by)))


def _by_pyiceberg(term: Term, column: pa.Array) -> pa.Array:
    """Applies PyIceberg's transform to each distinct value."""
    encoded = column.dictionary_encode()
    kind = iceberg_type(column.type)
    transform = transform_of(term)
    make = transform.transform(kind)
    values = [make(value) for value in encoded.dictionary.to_pylist()]
    result = pa.int32() if term.transform.startswith("bucket") else column.type
    return pa.array(values, result).take(encoded.indices)
