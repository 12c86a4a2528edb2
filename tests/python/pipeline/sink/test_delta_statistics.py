"""Statistics in a Delta log: bounds enclose the values, and readers use them to skip files."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from estates import Estate

from coldframe.pipeline.records import Committed, Part
from coldframe.pipeline.sink.committed import CommittedTable, DataFile, Ends
from coldframe.pipeline.sink.delta_statistics import indexed_columns, statistics

NAN = float("nan")
UNCHECKED: dict[str, Ends] = {}


def statistics_of(
    folder: Path, table: pa.Table, floats: dict[str, Ends] = UNCHECKED, **properties: str
) -> Any:
    """The statistics of a file with these rows, in row groups of two."""
    path = folder / "x.parquet"
    pq.write_table(table, path, row_group_size=2)
    file = DataFile("x.parquet", table.num_rows, path.stat().st_size, {}, floats)
    indexed = indexed_columns(table.schema, properties)
    return json.loads(statistics(pq.read_metadata(path), file, indexed), parse_float=decimal.Decimal)


def times(*values: int, zone: str | None = None) -> pa.Array:
    """Timestamps of microseconds since 1970."""
    return pa.array(values, pa.timestamp("us", zone))


def decimals(precision: int, scale: int, *values: str) -> pa.Array:
    return pa.array(map(decimal.Decimal, values), pa.decimal128(precision, scale))


BOUNDS: dict[str, tuple[pa.Array, Any, Any]] = {
    "integers": (pa.array([2, None, -1, 2**63 - 1]), -1, 2**63 - 1),
    "bytes": (pa.array([-128, 127], pa.int8()), -128, 127),
    "booleans": (pa.array([None, True, True, False]), False, True),
    "dates": (pa.array([0, -719162], pa.date32()), "0001-01-01", "1970-01-01"),
    "decimals": (decimals(9, 2, "-3", "1.25"), decimal.Decimal("-3.00"), decimal.Decimal("1.25")),
    "long decimals": (
        decimals(38, 3, "12345678901234567890123456789012345.678", "0.001"),
        decimal.Decimal("0.001"),
        decimal.Decimal("12345678901234567890123456789012345.678"),
    ),
    "wall clocks": (times(1, 1_001), "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.002"),
    "instants": (times(-1, 2_000, zone="UTC"), "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.002Z"),
    "texts": (pa.array(["b", "", None, "ä"]), "", "ä"),
    "long texts": (pa.array(["b" * 32, "b" * 33]), "b" * 32, "b" * 32 + "\U0010ffff"),
}
UNKNOWN = {
    "dates beyond": pa.array([0, 2932897], pa.date32()),
    "the last instant": times(0, 253402300799999999),
    "times beyond": times(-72135596800000000, 293402300799999999),
    "the highest text": pa.array(["b" * 32 + "\U0010ffff"]),
    "floats that nobody checked": pa.array([1.0, 2.0]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_exact_or_wider(tmp_path: Path, name: str) -> None:
    values, low, high = BOUNDS[name]
    stats = statistics_of(tmp_path, pa.table({"x": values}))
    assert stats == {
        "numRecords": len(values),
        "minValues": {"x": low},
        "maxValues": {"x": high},
        "nullCount": {"x": values.null_count},
    }


@pytest.mark.parametrize("name", UNKNOWN)
def test_one_column_without_bounds_removes_all_bounds_of_the_file(tmp_path: Path, name: str) -> None:
    """The pyarrow dataset of deltalake reads a missing bound as `x <= null`, which matches no row."""
    values = UNKNOWN[name]
    stats = statistics_of(tmp_path, pa.table({"x": values, "y": [1] * len(values)}))
    assert stats == {"numRecords": len(values), "nullCount": {"x": 0, "y": 0}}


def test_types_without_bounds_do_not_remove_the_bounds_of_other_columns(tmp_path: Path) -> None:
    rows = {
        "y": pa.array([1, 2]),
        "nulls": pa.array([None, None], pa.string()),
        "binary": pa.array([b"x", None]),
        "list": pa.array([[1], [2]]),
        "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
    stats = statistics_of(tmp_path, pa.table(rows))
    assert (stats["minValues"], stats["maxValues"]) == ({"y": 1}, {"y": 2})
    assert stats["nullCount"] == {"y": 0, "nulls": 2, "binary": 1}


@pytest.mark.parametrize("ends", [(-2.25, 1.5), (-0.1, 1e300), None])
def test_floats_have_the_bounds_that_were_verified(tmp_path: Path, ends: Ends) -> None:
    """Only verified bounds: pyarrow hides the bounds of a footer, and engines differ on the order of NaN."""
    stats = statistics_of(tmp_path, pa.table({"x": [1.0, None]}), {"x": ends})
    bounds = [stats[key].get("x") for key in ("minValues", "maxValues")]
    assert bounds == ([None, None] if ends is None else [decimal.Decimal(repr(end)) for end in ends])
    infinite = statistics_of(tmp_path, pa.table({"x": [1.0, None]}), {"x": (1.0, float("inf"))})
    assert infinite == {"numRecords": 2, "nullCount": {"x": 1}}


def test_a_file_of_several_sources_has_the_bounds_of_all_of_them(tmp_path: Path) -> None:
    def part(low: object, high: object, nans: int | None = 0) -> Part:
        check = {"nulls": 0, "min": low, "max": high, **({} if nans is None else {"nans": nans})}
        checks: Any = {"columns": {"x": check}}
        return Part("", "t/a", 1, 1, checks, True, of=3)

    def floats(*parts: Part) -> dict[str, Ends]:
        entries = [Committed(str(number), str(number), "t", (part,)) for number, part in enumerate(parts)]
        (file,) = CommittedTable("t", "t", pa.schema([("x", pa.float64())]), (), entries).files
        return file.floats

    assert floats(part(1.0, 2.0), part(None, None), part(-1.5, "inf")) == {"x": (-1.5, float("inf"))}
    assert floats(part(None, None)) == {"x": None}
    for unknown in (part(1.0, 2.0, nans=1), part(1.0, 2.0, nans=None)):
        assert floats(part(1.0, 2.0), unknown) == floats(unknown, part(1.0, 2.0)) == {}


def test_bounds_of_struct_fields_are_nested(tmp_path: Path) -> None:
    inner = pa.struct([("a.b", pa.int64()), ("l", pa.list_(pa.int64())), ("f", pa.float64())])
    schema = pa.schema([("s", pa.struct([("t", inner)])), ("z", pa.int64())])
    rows = [{"s": {"t": {"a.b": 1, "l": [7, 8], "f": 1.0}}, "z": 5}, {"s": None, "z": None}]
    stats = statistics_of(tmp_path, pa.Table.from_pylist(rows, schema))
    # Floats in structs are not checked for NaN: they have no bounds; the other fields have bounds.
    assert stats["minValues"] == stats["maxValues"] == {"z": 5, "s": {"t": {"a.b": 1}}}
    assert stats["nullCount"] == {"z": 1, "s": {"t": {"a.b": 1, "f": 1}}}


@pytest.mark.parametrize(("most", "count"), [(None, 32), ("2", 2), ("-1", 40), ("?", 32)])
def test_the_number_of_first_columns_with_statistics_is_a_property(
    tmp_path: Path, most: str | None, count: int
) -> None:
    table = pa.table({f"c{number}": [number] for number in range(40)})
    stats = statistics_of(
        tmp_path, table, **({} if most is None else {"delta.dataSkippingNumIndexedCols": most})
    )
    assert list(stats["minValues"]) == list(stats["nullCount"]) == [f"c{number}" for number in range(count)]


def test_a_file_without_rows_and_a_file_without_a_column_have_statistics(tmp_path: Path) -> None:
    stats = statistics_of(tmp_path, pa.table({"x": pa.array([], pa.int64())}))
    assert stats == {"numRecords": 0, "minValues": {}, "maxValues": {}, "nullCount": {"x": 0}}
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "y.parquet")
    footer = pq.read_metadata(tmp_path / "y.parquet")
    table = pa.schema([("x", pa.int64()), ("later", pa.string())])
    stats = json.loads(statistics(footer, DataFile("y", 2, 1, {}), indexed_columns(table, {})))
    assert stats["nullCount"] == {"x": 0, "later": 2}


LONG = "x" * 40
FILES: list[dict[str, list[Any]]] = [
    {
        "i": [-5, 7],
        "f": [-1.5, 2.5],
        "b": [True, True],
        "d": [decimal.Decimal("0.01"), decimal.Decimal("99999999999999999999999999999999.999999")],
        "t": [datetime.datetime(1969, 12, 31, 23, 59, 58, 999999), datetime.datetime(2014, 1, 1, 0, 0, 0, 1)],
        "day": [datetime.date(1, 1, 1), datetime.date(2014, 1, 1)],
        "s": ["", LONG + "a"],
    },
    {
        "i": [8, None],
        "f": [3.0, 4.0],
        "b": [False, None],
        "d": [decimal.Decimal("-1.000001"), None],
        "t": [datetime.datetime(2014, 1, 1, 0, 0, 0, 2), None],
        "day": [datetime.date(2014, 1, 2), datetime.date(9999, 12, 31)],
        "s": [LONG + "b", "ÿ"],
    },
    {"i": [0, 8], "f": [NAN, float("inf")], "b": [True, False], "s": ["m", None]},
]
KINDS = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(38, 6)),
        ("t", pa.timestamp("us")),
        ("day", pa.date32()),
        ("s", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated table of three files; the last has no bounds, since one of its columns has a NaN."""
    pytest.importorskip("deltalake")
    estate = Estate(tmp_path_factory.mktemp("lake"))
    for number, rows in enumerate(FILES):
        columns = {name: pa.array(values, KINDS.field(name).type) for name, values in rows.items()}
        estate.orc(f"t/{number}", columns)
    report = estate.migrate(to="delta", target_file_bytes=0)
    assert (report.exit_code, report.verified) == (0, True)
    log = (estate.target / "t/_delta_log/00000000000000000000.json").read_text()
    added = [json.loads(line)["add"] for line in log.splitlines() if '"add"' in line]
    assert sorted("minValues" in action["stats"] for action in added) == [False, True, True]
    return estate.target / "t"


def compared(column: Any, sign: str, value: Any) -> Any:
    """A comparison, of pyarrow or of polars."""
    tests: dict[str, Callable[[Any, Any], Any]] = {"==": operator.eq, ">=": operator.ge, "<=": operator.le}
    return tests[sign](column, value)


@pytest.mark.parametrize("name", KINDS.names)
def test_readers_find_each_boundary_value(lake: Path, name: str) -> None:
    """The same rows as in the files: pyarrow through deltalake, deltalake's engine, polars, DuckDB."""
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    from deltalake import DeltaTable

    kind = KINDS.field(name).type
    dataset = DeltaTable(lake).to_pyarrow_dataset()
    whole = pa.concat_tables(pq.read_table(path) for path in lake.glob("*.parquet"))
    frame, scan = pl.DataFrame(whole), pl.scan_delta(str(lake))
    values = {str(value): value for value in whole[name].to_pylist() if value is not None}
    for (text, value), sign in itertools.product(values.items(), ("==", ">=", "<=")):
        literal = pl.lit(value, frame.schema[name])
        expected = frame.filter(compared(pl.col(name), sign, literal)).height
        assert scan.filter(compared(pl.col(name), sign, literal)).collect().height == expected, (sign, text)
        if value != value:
            # Where a file has bounds, pyarrow's dataset treats NaN as a number above them.
            continue
        condition = compared(ds.field(name), sign, pa.scalar(value, kind))
        expected = whole.filter(condition).num_rows
        assert dataset.to_table(filter=condition).num_rows == expected, (sign, text)
    for condition in ("is null", "is not null"):
        query = f"select count(*) from dataset where {name} {condition}"
        expected = duckdb.sql(query.replace("dataset", "whole")).fetchall()
        assert duckdb.sql(query).fetchall() == expected, condition


def test_readers_skip_files(lake: Path) -> None:
    from deltalake import DeltaTable

    dataset = DeltaTable(lake).to_pyarrow_dataset()

    def files(condition: Any) -> int:
        return sum(1 for _ in dataset.get_fragments(filter=condition)) - 1

    # One file has no bounds.
    assert files(ds.field("i") > -10) == 2
    assert files(ds.field("i") > 7) == files(ds.field("i") < 8) == 1
    assert files(ds.field("i") > 8) == files(ds.field("s") > "z" * 40) - 1 == 0
    assert files(ds.field("b") == pa.scalar(True)) == 1
