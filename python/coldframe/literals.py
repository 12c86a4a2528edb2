"""Comparing a column with a Python value, exactly, whatever the two types.

A literal often has no equal in the column's type: `id > 5.5` on integers, a timestamp with nanoseconds on a
column of milliseconds, 2**40 on an int32. Casting it would change which rows match. Types whose values can be
counted (integers, decimals, dates, timestamps) are therefore compared in *ticks*: the literal as an exact
fraction of the column's unit, then rounded down, with the operator adjusted so that the same rows match.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from coldframe.errors import SchemaError

__all__ = ["Comparison", "compare"]

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY = 86_400 * NANOSECONDS["s"]
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Comparison:
    """`column op value` with a value of the column's own type, or of a wider one where `exact` is False."""

    op: str
    value: Any  # pa.Scalar
    same_type: bool = True


def compare(op: str, value: object, type: Any, column: str) -> Comparison:
    """The comparison of a column of `type` that matches exactly the rows that `column op value` does."""
    if pa.types.is_dictionary(type):
        return compare(op, value, type.value_type, column)
    if isinstance(value, pa.Scalar):
        value = _python_value(value)
    elif hasattr(value, "item") and callable(value.item) and not isinstance(value, str):
        # numpy's scalars; a datetime64[ns] becomes an int, so that one goes by way of Arrow
        value = (
            _python_value(pa.scalar(value))
            if type_name(value) in ("datetime64", "timedelta64")
            else value.item()
        )
    if value is None:
        return Comparison(op, pa.scalar(None, type=type))
    if pa.types.is_boolean(type):
        if isinstance(value, bool):
            return Comparison(op, pa.scalar(value, type=type))
    elif pa.types.is_integer(type) or pa.types.is_decimal(type) or _is_instant(type):
        return _compare_ticks(op, value, type, column)
    elif pa.types.is_floating(type):
        if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
            return _compare_float(op, float(value), type)
    elif _is_text(type):
        if isinstance(value, str):
            return Comparison(op, pa.scalar(value, type=type))
    elif _is_bytes(type):
        raw = value.encode() if isinstance(value, str) else value
        if isinstance(raw, (bytes, bytearray, memoryview)):
            raw = bytes(raw)
            if pa.types.is_fixed_size_binary(type) and len(raw) != type.byte_width:
                return Comparison(op, pa.scalar(raw, type=pa.binary()), same_type=False)
            return Comparison(op, pa.scalar(raw, type=type))
    elif pa.types.is_time(type) or pa.types.is_duration(type):
        try:
            return Comparison(op, pa.scalar(value).cast(type))
        except (pa.ArrowException, TypeError) as reason:
            raise _mismatch(value, type, column) from reason
    raise _mismatch(value, type, column)


def type_name(value: object) -> str:
    """The bare name of a value's class."""
    return value.__class__.__name__


def _mismatch(value: object, type: Any, column: str) -> SchemaError:
    return SchemaError(f"cannot compare column {column!r} of type {type} with {type_name(value)} {value!r}")


def _is_text(type: Any) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _is_bytes(type: Any) -> bool:
    return bool(
        pa.types.is_binary(type)
        or pa.types.is_large_binary(type)
        or pa.types.is_binary_view(type)
        or pa.types.is_fixed_size_binary(type)
    )


def _is_instant(type: Any) -> bool:
    return bool(pa.types.is_timestamp(type) or pa.types.is_date(type))


def _python_value(value: Any) -> object:
    """The Python value of an Arrow scalar; a timestamp as its exact `_Nanoseconds`."""
    if value.is_valid and pa.types.is_timestamp(value.type):
        return _Nanoseconds(value.value * NANOSECONDS[value.type.unit])
    return value.as_py()


class _Nanoseconds(int):
    """Nanoseconds since 1970: Python's own datetime holds microseconds only."""


def _compare_float(op: str, value: float, type: Any) -> Comparison:
    narrowed = pa.scalar(value, type=pa.float64())
    if pa.types.is_float64(type):
        return Comparison(op, narrowed)
    try:
        cast = pa.scalar(value, type=type)
    except (pa.ArrowException, OverflowError, ValueError):
        return Comparison(op, narrowed, same_type=False)
    if cast.as_py() == value or math.isnan(value):
        return Comparison(op, cast)
    return Comparison(op, narrowed, same_type=False)  # 0.1 is no float32: compare as doubles do


def _compare_ticks(op: str, value: object, type: Any, column: str) -> Comparison:
    low, high = _range(type)
    ticks = _ticks(value, type, column)
    if ticks is None:  # NaN: unequal to everything
        return _never(op == "!=", low, type)
    floor = math.floor(ticks) if isinstance(ticks, Fraction) else (high + 1 if ticks > 0 else low - 1)
    if floor > high or floor < low:
        above = floor > high
        return _never(op == "!=" or op in (("<", "<=") if above else (">", ">=")), low, type)
    if floor == ticks:
        return Comparison(op, _from_ticks(floor, type))
    if op in ("=", "!="):
        return _never(op == "!=", low, type)
    return Comparison(">" if op in (">", ">=") else "<=", _from_ticks(floor, type))


def _never(all_rows: bool, low: int, type: Any) -> Comparison:
    """No value of the column, or every one; null stays null, as in a comparison that could match."""
    return Comparison(">=" if all_rows else "<", _from_ticks(low, type))


def _range(type: Any) -> tuple[int, int]:
    if pa.types.is_decimal(type):
        return 1 - 10**type.precision, 10**type.precision - 1
    if pa.types.is_date32(type):
        return -(1 << 31), (1 << 31) - 1
    if pa.types.is_integer(type):
        bits = type.bit_width
        return (
            (0, (1 << bits) - 1)
            if pa.types.is_unsigned_integer(type)
            else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        )
    return -(1 << 63), (1 << 63) - 1


def _ticks(value: object, type: Any, column: str) -> Fraction | float | None:
    """The value in units of the type; an infinity as such; None for NaN."""
    if pa.types.is_timestamp(type):
        return Fraction(_nanoseconds(value, type, column), NANOSECONDS[type.unit])
    if pa.types.is_date(type):
        days = Fraction(_nanoseconds(value, pa.timestamp("ns"), column), _DAY)
        # a date64 counts milliseconds, in whole days
        return days * 86_400_000 if pa.types.is_date64(type) else days
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, decimal.Decimal))
        or isinstance(value, _Nanoseconds)
    ):
        raise _mismatch(value, type, column)
    if isinstance(value, (float, decimal.Decimal)):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return float(value)
    if pa.types.is_decimal(type):
        # a float is meant as the decimal it prints as
        exact = Fraction(decimal.Decimal(repr(value)) if isinstance(value, float) else value)
        return exact * Fraction(10) ** int(type.scale)
    return Fraction(value)


def _nanoseconds(value: object, type: Any, column: str) -> int:
    if isinstance(value, _Nanoseconds):
        return int(value)
    if isinstance(value, str):
        return _parse_instant(value, type, column)
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            if type.tz is None:
                raise SchemaError(
                    f"cannot compare column {column!r} without a time zone with {value!r}, which has one"
                )
            value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        extra = int(getattr(value, "nanosecond", 0))  # pandas' Timestamp
        return (value - _EPOCH) // dt.timedelta(microseconds=1) * 1000 + extra
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * _DAY
    raise _mismatch(value, type, column)


def _parse_instant(text: str, type: Any, column: str) -> int:
    text = text.strip()
    for unit in ("ns", "us"):  # nanoseconds end in 2262
        try:
            parsed = pa.scalar(text).cast(pa.timestamp(unit, "UTC" if type.tz and _has_zone(text) else None))
        except pa.ArrowException:
            continue
        return int(parsed.value) * NANOSECONDS[unit]
    raise SchemaError(
        f"cannot compare column {column!r} of type {type} with {text!r}: not a date or timestamp"
    )


def _has_zone(text: str) -> bool:
    clock = text[10:]
    return clock.endswith("Z") or "+" in clock or "-" in clock


def _from_ticks(ticks: int, type: Any) -> Any:
    if pa.types.is_decimal(type):
        context = decimal.Context(prec=100)
        return pa.scalar(decimal.Decimal(ticks).scaleb(-type.scale, context), type=type)
    if pa.types.is_date32(type):
        return pa.scalar(ticks, type=pa.int32()).cast(type)
    if pa.types.is_date64(type):
        return pa.scalar(ticks - ticks % 86_400_000, type=pa.int64()).cast(type)
    if pa.types.is_timestamp(type):
        return pa.scalar(ticks, type=pa.int64()).cast(type)
    return pa.scalar(ticks, type=type)
