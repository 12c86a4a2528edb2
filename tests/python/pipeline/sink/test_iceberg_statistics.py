"""Statistics in Iceberg manifests: PyIceberg uses them to skip files, but never one with a match."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate

from coldframe.pipeline.records import Committed, Part
from coldframe.pipeline.sink.committed import CommittedTable
from coldframe.pipeline.sink.destination import Destination

pytest.importorskip("pyiceberg")

NAN = float("nan")


def times(*values: int | None, zone: str | None = None) -> pa.Array:
    return pa.array(values, pa.timestamp("us", zone))


def decimals(*values: str) -> pa.Array:
    return pa.array(map(decimal.Decimal, values), pa.decimal128(38, 3))


COLUMNS: dict[str, tuple[pa.Array, pa.Array, str, str]] = {
    "whole": (pa.array([1, None], pa.int32()), pa.array([5, 9], pa.int32()), "x = 1", "x = 9"),
    "long": (pa.array([-(2**63)]), pa.array([2**63 - 1]), f"x < {-(2**62)}", f"x > {2**62}"),
    "float": (pa.array([1.5, None], pa.float32()), pa.array([float("inf")], pa.float32()), "x < 2", "x > 9"),
    "double": (pa.array([-0.0]), pa.array([1e300]), "x = 0.0", "x > 1"),
    "flag": (pa.array([False]), pa.array([True, None]), "x = false", "x = true"),
    "price": (
        decimals("0.001"),
        decimals("12345678901234567890123456789012345.678"),
        "x < 1",
        "x > 1",
    ),
    "day": (
        pa.array([-719162, 0], pa.date32()),
        pa.array([20000], pa.date32()),
        "x = '1970-01-01'",
        "x > '2000-01-01'",
    ),
    "time": (
        times(-2_000_000),
        times(253402300799999999),
        "x < '1970-01-01T00:00:00'",
        "x > '2000-01-01T00:00:00'",
    ),
    "instant": (
        times(-2_000_000, zone="UTC"),
        times(1, zone="UTC"),
        "x < '1970-01-01T00:00:00+00:00'",
        "x > '1970-01-01T00:00:00+00:00'",
    ),
    "text": (
        pa.array(["a" * 40, ""]),
        pa.array(["b" * 40, "\U0001f600" * 20]),
        "x = '" + "a" * 40 + "'",
        "x = '" + "b" * 40 + "'",
    ),
    "field": (pa.array([{"y": 1}, None]), pa.array([{"y": 7}]), "x.y = 1", "x.y = 7"),
}


class Lake:
    """A table of Parquet files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "_coldframe").mkdir(parents=True)
        (root / "t").mkdir()
        self.entries: list[Committed] = []

    def file(self, table: pa.Table, **checks: Any) -> None:
        """`checks`: the verified bounds of columns."""
        name = f"t/{len(self.entries)}.parquet"
        pq.write_table(table, self.root / name, row_group_size=1)
        size = (self.root / name).stat().st_size
        part = Part("", name, table.num_rows, size, {"columns": checks}, True)
        self.entries.append(Committed(name, name, "t", (part,)))

    def register(self, schema: pa.Schema) -> Any:
        from coldframe.pipeline.sink.iceberg import open_catalog, register

        register(Destination(str(self.root)), CommittedTable("t", "t", schema, (), self.entries, "run", 1))
        return open_catalog(str(self.root)).load_table(("migrated", "t"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def planned_files(table: Any, filter: str) -> list[str]:
    return sorted(task.file.file_path[-9:] for task in table.scan(filter).plan_files())


def entries(table: Any) -> list[Any]:
    files = [task.file for task in table.scan().plan_files()]
    return sorted(files, key=lambda file: str(file.file_path))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_file_without_a_matching_row_is_skipped(tmp_path: Path, name: str) -> None:
    """From a source to a query plan, for each type."""
    first, second, of_first, of_second = COLUMNS[name]
    estate = Estate(tmp_path)
    estate.orc("t/a", {"x": first})
    estate.orc("t/b", {"x": second})
    assert estate.migrate(to="iceberg", target_file_bytes=0).verified
    from coldframe.pipeline.sink.iceberg import open_catalog

    table = open_catalog(str(estate.target)).load_table(("migrated", "t"))
    for filter, source in ((of_first, "a"), (of_second, "b")):
        files = [task.file.file_path.rpartition("/")[2] for task in table.scan(filter).plan_files()]
        assert [file[0] for file in files] == [source]
        # PyIceberg cannot filter the rows of a file by a field of a struct.
        assert name == "field" or table.scan(filter).to_arrow().num_rows > 0
    nulls = {int(first.null_count), int(second.null_count)}
    if name != "field":
        assert {next(iter(file.null_value_counts.values())) for file in entries(table)} == nulls


def test_counts_are_exact_and_bounds_of_texts_are_cut(lake: Lake) -> None:
    columns = {
        "text": ["a" * 15 + "\U0010ffff" * 2, "z" * 16 + "a"],
        "high": ["\U0010ffff" * 17, "x"],
        "below surrogates": ["\ud7ff" * 17, "x"],
        "raw": pa.array([b"\xff" * 17, b"a"]),
        "cut": pa.array([b"a" * 15 + b"\xff\x00", b"b"]),
        "list": [[1, None], []],
        "nothing": pa.array([None, None], pa.string()),
    }
    lake.file(pa.table(columns))
    table = lake.register(pa.table(columns).schema)
    (file,) = entries(table)
    ids = {field.name: field.field_id for field in table.schema().fields}
    low = {name: file.lower_bounds.get(number) for name, number in ids.items()}
    high = {name: file.upper_bounds.get(number) for name, number in ids.items()}
    assert low["text"] == ("a" * 15 + "\U0010ffff").encode()
    assert high["text"] == ("z" * 15 + "{").encode()
    assert (low["high"], high["high"]) == (b"x", None)
    assert (low["below surrogates"], high["below surrogates"]) == (b"x", None)
    assert (low["raw"], high["raw"]) == (b"a", None)
    assert (low["cut"], high["cut"]) == (b"a" * 15 + b"\xff", b"b")
    assert (low["list"], high["list"], low["nothing"], high["nothing"]) == (None, None, None, None)
    assert (file.value_counts[ids["nothing"]], file.null_value_counts[ids["nothing"]]) == (2, 2)
    assert planned_files(table, "nothing is not null") == []
    assert len(file.split_offsets) == 2


def test_floats_have_bounds_only_where_there_is_no_nan(lake: Lake) -> None:
    schema = pa.schema([("x", pa.float64())])
    lake.file(pa.table({"x": [1.0, NAN]}, schema), x={"nulls": 0, "nans": 1, "min": 1.0, "max": 1.0})
    lake.file(pa.table({"x": [0.0, 2.0]}, schema), x={"nulls": 0, "nans": 0, "min": 0.0, "max": 2.0})
    lake.file(pa.table({"x": [3.0]}, schema))  # not checked for NaN
    table = lake.register(schema)
    number = table.schema().fields[0].field_id
    assert [file.nan_value_counts.get(number) for file in entries(table)] == [1, 0, None]
    assert [number in file.lower_bounds for file in entries(table)] == [False, True, False]
    assert entries(table)[1].lower_bounds[number] == b"\0" * 7 + b"\x80"  # readers sort -0.0 below 0.0
    assert planned_files(table, "x > 5") == ["0.parquet", "2.parquet"]
    assert planned_files(table, "x is nan") == ["0.parquet", "2.parquet"]


def test_values_beyond_pythons_calendar_have_bounds(lake: Lake) -> None:
    columns = {
        "day": pa.array([2932897, -719163], pa.date32()),
        "time": times(293402300799999999, -72135596800000000),
    }
    lake.file(pa.table(columns))
    table = lake.register(pa.table(columns).schema)
    (file,) = entries(table)
    assert [int.from_bytes(bound, "little", signed=True) for bound in file.lower_bounds.values()] == [
        -719163,
        -72135596800000000,
    ]
    assert [int.from_bytes(bound, "little", signed=True) for bound in file.upper_bounds.values()] == [
        2932897,
        293402300799999999,
    ]


def test_table_properties_choose_the_measured_columns() -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    from coldframe.pipeline.sink.iceberg_statistics import measured_columns

    schema = Schema(
        NestedField(1, "a", StringType()),
        *(NestedField(number, f"c{number}", LongType()) for number in range(2, 130)),
    )
    assert len(measured_columns(schema, {})) == 100
    assert len(measured_columns(schema, {"write.metadata.metrics.max-inferred-column-defaults": "7"})) == 7
    measured = measured_columns(
        schema,
        {
            "write.metadata.metrics.default": "truncate(4)",
            "write.metadata.metrics.column.c2": "counts",
            "write.metadata.metrics.column.c3": "none",
            "write.metadata.metrics.column.c4": "full",
        },
    )
    assert len(measured) == 128
    assert [measured[name,].width for name in ("a", "c4")] == [4, None]
    assert [measured[name,].has_bounds for name in ("a", "c2", "c4")] == [True, False, True]
