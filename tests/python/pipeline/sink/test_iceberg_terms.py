"""Iceberg's transforms over arrays agree with PyIceberg's, which take a single value."""

from __future__ import annotations

import decimal
import random
from typing import Any

import pyarrow as pa
import pytest

from coldframe.errors import SchemaError
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout, SortTerm, Term, iceberg_layout

pytest.importorskip("pyiceberg")

from coldframe.pipeline.sink.iceberg_terms import iceberg_type, transform_of, transformed

CHANCE = random.Random(24)
INTS = [0, 1, -1, 2**31 - 1, -(2**31) + 10, *(CHANCE.randint(-99, 99) for _ in range(99)), None]
LONGS = [*INTS, 2**63 - 1, -(2**63) + 10, *(CHANCE.randint(-(2**60), 2**60) for _ in range(99))]
DAYS = [0, -1, 1, -719162, 2932896, *(CHANCE.randint(-719162, 2932896) for _ in range(200)), None]
TIMES = [0, -1, 1, -62135596800000000, 253402300799999999, None]
TIMES += [CHANCE.randint(-62135596800000000, 253402300799999999) for _ in range(200)]
LETTERS = ["a", "ä", "€", "\U0001f600"]
TEXTS = ["", None, *("".join(CHANCE.choices(LETTERS, k=CHANCE.randint(0, 9))) for _ in range(50))]
PRICES = [decimal.Decimal("14.20"), decimal.Decimal("-14.21"), decimal.Decimal(0), None]
COLUMNS = {
    "int": (pa.array(INTS, pa.int32()), ["bucket[16]", "truncate[10]", "identity"]),
    "small": (pa.array([1, -3, None], pa.int8()), ["bucket[16]", "truncate[10]", "identity"]),
    "long": (pa.array(LONGS, pa.int64()), ["bucket[16]", "bucket[2147483647]", "truncate[10]"]),
    "date": (
        pa.array(DAYS, pa.int32()).cast(pa.date32()),
        ["year", "month", "day", "bucket[5]", "identity"],
    ),
    "time": (
        pa.array(TIMES, pa.int64()).cast(pa.timestamp("us")),
        ["year", "month", "day", "hour", "bucket[5]", "identity"],
    ),
    "instant": (
        pa.array(TIMES, pa.int64()).cast(pa.timestamp("us", "UTC")),
        ["year", "month", "day", "hour", "bucket[5]", "identity"],
    ),
    "text": (pa.array(TEXTS), ["bucket[16]", "truncate[3]", "identity"]),
    "bytes": (
        pa.array([None if text is None else text.encode() for text in TEXTS]),
        ["bucket[16]", "truncate[3]", "identity"],
    ),
    "decimal": (pa.array(PRICES, pa.decimal128(9, 2)), ["bucket[16]", "truncate[50]", "identity"]),
    "flag": (pa.array([True, False, None]), ["identity"]),
}


def numbers(column: pa.Array) -> list[Any]:
    """Values as manifests store them."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return (column.cast(pa.int32()) if pa.types.is_date(column.type) else column).to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_each_transformed_value_equals_pyicebergs(name: str) -> None:
    column, transforms = COLUMNS[name]
    for transform in transforms:
        term = Term("x", transform)
        transform_value = transform_of(term).transform(iceberg_type(column.type))
        assert transformed(term, column).to_pylist() == [
            transform_value(value) for value in numbers(column)
        ], transform


def test_truncating_below_the_smallest_number_is_an_error() -> None:
    for kind, lowest in ((pa.int32(), -(2**31)), (pa.int64(), -(2**63))):
        with pytest.raises(pa.ArrowInvalid, match="overflow"):
            transformed(Term("x", "truncate[10]"), pa.array([lowest], kind))


def test_terms_are_written_as_in_sql() -> None:
    layout = iceberg_layout(
        {
            "partition_by": ["days(ts)", "bucket( 16 , id )", "Truncate(4,name)", "`a (b)`", "hour(at)", "r"],
            "sort_by": ["r", "days(ts) desc", "id ASC NULLS LAST", "name desc nulls first"],
            "target_file_size": "5m",
            "format_version": 2,
        }
    )
    assert layout == IcebergLayout(
        (
            Term("ts", "day"),
            Term("id", "bucket[16]"),
            Term("name", "truncate[4]"),
            Term("a (b)"),
            Term("at", "hour"),
            Term("r"),
        ),
        (
            SortTerm(Term("r"), is_descending=False, nulls_first=True),
            SortTerm(Term("ts", "day"), is_descending=True, nulls_first=False),
            SortTerm(Term("id"), is_descending=False, nulls_first=False),
            SortTerm(Term("name"), is_descending=True, nulls_first=True),
        ),
        5 << 20,
        2,
    )
    assert [str(term) for term in layout.partition_by or ()] == [
        "days(ts)",
        "bucket(16, id)",
        "truncate(4, name)",
        "a (b)",
        "hours(at)",
        "r",
    ]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([], "expected a table of options"),
        (
            {"partitions": []},
            "expected partition_by, sort_by, target_file_size, format_version, found partitions",
        ),
        ({"partition_by": "days(ts)"}, "partition_by: expected a list of texts"),
        ({"partition_by": ["weeks(ts)"]}, r"found 'weeks\(ts\)'"),
        ({"partition_by": ["bucket(id)"]}, r"found 'bucket\(id\)'"),
        ({"partition_by": ["bucket(0, id)"]}, r"found 'bucket\(0, id\)'"),
        ({"partition_by": ["days(4, ts)"]}, r"found 'days\(4, ts\)'"),
        ({"partition_by": ["void(ts)"]}, "void is only for dropped partition fields"),
        ({"sort_by": [""]}, "expected a column or transform"),
        ({"target_file_size": "big"}, "target_file_size: expected a positive size such as 1000 or 64m"),
        ({"format_version": 1}, "format_version: expected 2 or 3, found 1"),
        ({"format_version": True}, "format_version: expected 2 or 3, found True"),
    ],
)
def test_an_invalid_layout_has_a_message(entry: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        iceberg_layout(entry)
