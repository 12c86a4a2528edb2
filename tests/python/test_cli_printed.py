"""What the command line prints without pyarrow: the same as pyarrow prints."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli.output import cell_text
from coldframe.cli.printed import printed_columns, printed_rows
from coldframe.cli.reading import rows_of

UTC = dt.timezone.utc
MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 58, 900_000),
    dt.datetime(2015, 1, 1),
    dt.datetime(1905, 2, 28, 1, 2, 3, 4),
]
DECIMALS = ["0", "-0.0000000001", "0.0000123", "1234567890.0000000001", "-99.5"]


def _array(values: list[Any], type: pa.DataType) -> pa.Array:
    """The values, over and over to ten rows, with a null at the end."""
    return pa.array([*(values * 10)[:9], None], type)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    inner = pa.struct([pa.field("when", pa.timestamp("ns")), pa.field("n", pa.decimal128(5, 2))])
    columns = {
        "flag": _array([True, False], pa.bool_()),
        "tiny": _array([-128, 127], pa.int8()),
        "short": _array([-(2**15), 2**15 - 1], pa.int16()),
        "int": _array([-(2**31), 2**31 - 1], pa.int32()),
        "long": _array([-(2**63), 2**63 - 1], pa.int64()),
        "float": _array([0.1, -0.0, 3.4e38, float("nan")], pa.float32()),
        "double": _array([0.1, 1e300, float("-inf"), 1e-7, 12345678.9], pa.float64()),
        "text": _array(["", "a\tb\nc", "\x1b[31m", "é" * 3], pa.string()),
        "bytes": _array([b"", b"\x00\\\xff a"], pa.binary()),
        "day": _array([dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)], pa.date32()),
        "at": _array(MOMENTS, pa.timestamp("ns")),
        "instant": _array([moment.replace(tzinfo=UTC) for moment in MOMENTS], pa.timestamp("ns", "UTC")),
        "amount": _array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(10, 2)),
        "wide": _array([Decimal(text) for text in DECIMALS], pa.decimal128(38, 10)),
        "whole": _array([Decimal(-7)], pa.decimal128(20, 0)),
        "items": _array([[1, None], []], pa.list_(pa.int64())),
        "pairs": _array([[("a", 1.5), ("b", None)], []], pa.map_(pa.string(), pa.float64())),
        "nested": _array([{"when": MOMENTS[0], "n": Decimal("1.00")}, {"when": None, "n": None}], inner),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def orc(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("printed") / "all.orc"
    cf.write(table, path)
    return path


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_columns_and_rows_are_those_that_pyarrow_prints(orc: Path, unit: Any) -> None:
    file = cf.open(orc, timestamp_unit=unit)
    assert file._raw.printed_columns() == [(f.name, str(f.type), f.nullable) for f in file.schema]
    read = list(rows_of(file.read()))
    printed = printed_rows(file, None, 100)
    assert printed is not None
    assert [[cell_text(v) for v in row] for row in printed] == [[cell_text(v) for v in row] for row in read]
    assert [[v is None for v in row] for row in printed] == [[v is None for v in row] for row in read]
    assert printed_rows(file, ["whole", "day"], 2) == [
        (cell_text(row[14]), cell_text(row[9])) for row in read[:2]
    ]


def test_pyarrow_prints_what_is_not_known_here(tmp_path: Path) -> None:
    cf.write(pa.table({"a": ["x", "y"]}), tmp_path / "views.orc")
    views = cf.open(tmp_path / "views.orc", strings="view")
    assert views._raw.printed_columns() is None
    assert printed_columns(views) == [("a", str(views.schema.field("a").type), True)]
    file = cf.open(tmp_path / "views.orc")
    assert printed_rows(file, [], 5) is None
    assert printed_rows(file, None, 0) is None
    assert printed_rows(file, None, 1) == [("x",)]


def test_days_that_python_has_not_are_left_to_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "far.orc"
    cf.write(pa.table({"day": pa.array([4_000_000], pa.int32()).cast(pa.date32())}), path)
    assert printed_rows(cf.open(path), None, 5) is None
