"""Migrations of sources that change, widen, have similar names, or are wrong: in process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate, changed, scanning

import coldframe as cf
from coldframe._coldframe import with_fields
from coldframe.errors import SchemaError
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess
from coldframe.pipeline.sink.sinks import ParquetSink
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source.inventory import take_inventory
from coldframe.pipeline.source.tables import find_tables, load_tables
from coldframe.pipeline.work import convert
from coldframe.widening import unified


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


# Types.


def wider(left: pa.DataType, right: pa.DataType) -> Any:
    return unified([(str(kind), pa.schema([("v", kind)])) for kind in (left, right)]).field("v").type


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.int16(), pa.float32(), pa.float32()),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
        (pa.decimal128(10, 2), pa.decimal128(10, 4), pa.decimal128(12, 4)),
        (pa.int32(), pa.decimal128(8, 2), pa.decimal128(12, 2)),
        (pa.null(), pa.date32(), pa.date32()),
        (pa.string(), pa.binary(), pa.binary()),
        (
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            pa.struct([("b", pa.string()), ("A", pa.int64()), ("c", pa.date32())]),
            pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32())]),
        ),
        (pa.list_(pa.int8()), pa.list_(pa.int16()), pa.list_(pa.field("element", pa.int16()))),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int64())),
    ],
)
def test_compatible_types_have_a_wider_type(left: pa.DataType, right: pa.DataType, both: pa.DataType) -> None:
    assert wider(left, right).equals(both)
    if not pa.types.is_struct(left):
        assert wider(right, left).equals(both)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.string(), pa.int32()),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
        (pa.date32(), pa.timestamp("us")),
        (pa.decimal128(38, 0), pa.decimal128(38, 10)),
        (pa.bool_(), pa.int8()),
        (pa.list_(pa.int8()), pa.int8()),
    ],
)
def test_incompatible_types_have_no_wider_type(left: pa.DataType, right: pa.DataType) -> None:
    for pair in ((left, right), (right, left)):
        with pytest.raises(SchemaError):
            wider(*pair)


def test_a_conflict_names_both_files_and_columns_match_by_name() -> None:
    first, second = pa.schema([("a", pa.int8()), ("b", pa.int8())]), pa.schema([("B", pa.int64())])
    schema = unified([("x", first), ("y", second)], table="t")
    assert schema.equals(pa.schema([("a", pa.int8()), ("b", pa.int64())]))
    third = pa.schema([("b", pa.string())])
    with pytest.raises(SchemaError, match=r"table t: column b is int64 in y and string in z"):
        unified([("x", first), ("y", second), ("z", third)], table="t")


def test_fields_that_a_file_lacks_are_nulls_at_every_depth() -> None:
    kind = pa.struct([("a", pa.int32()), ("n", pa.list_(pa.struct([("x", pa.int8())])))])
    rows = [{"a": 1, "n": [{"x": 1}, None]}, None, {"a": None, "n": None}, {"a": 4, "n": []}]
    wide = pa.struct(
        [
            ("n", pa.list_(pa.struct([("y", pa.string()), ("x", pa.int8())]))),
            ("b", pa.date32()),
            ("a", pa.int32()),
        ]
    )
    wider_array = with_fields(pa.array(rows, kind), wide)
    assert wider_array.to_pylist() == [
        {"n": [{"y": None, "x": 1}, None], "b": None, "a": 1},
        None,
        {"n": None, "b": None, "a": None},
        {"n": [], "b": None, "a": 4},
    ]
    assert with_fields(pa.array(rows, kind)[1:3], wide).to_pylist() == wider_array.to_pylist()[1:3]
    maps = pa.array([[("k", {"x": 1})], None, []], pa.map_(pa.string(), pa.struct([("x", pa.int8())])))
    more = pa.map_(pa.string(), pa.struct([("x", pa.int8()), ("y", pa.int8())]))
    assert with_fields(maps, more).to_pylist() == [[("k", {"x": 1, "y": None})], None, []]


def test_old_files_get_the_type_that_newer_files_need(estate: Estate) -> None:
    """Spark takes a table's types from one file: with smallint there, it reads 4464 for 70000."""
    estate.orc("t/1", {"a": pa.array([1, 2], pa.int16())})
    estate.migrate()
    estate.orc("t/2", {"a": pa.array([70000], pa.int64()), "b": ["x"]})
    report = estate.migrate()
    assert (report.exit_code, report.rows, report.verified) == (0, 3, True)
    for path in estate.files("t"):
        assert pq.read_schema(path).equals(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    assert sorted(estate.read("t")["a"].to_pylist()) == [1, 2, 70000]
    # A third run changes nothing, whichever file comes first in the folder.
    estate.orc("t/0", {"b": ["y"], "a": pa.array([3], pa.int8())})
    again = estate.migrate()
    assert [file.earlier for file in again.tables[0].files] == [False, True, True]  # by their names
    assert estate.migrate().rows == 4


WIDER: dict[str, tuple[pa.Array, pa.Array, pa.DataType, list[Any]]] = {
    "int and double": (
        pa.array([1, None, -7], pa.int32()),
        pa.array([0.5]),
        pa.float64(),
        [1.0, None, -7.0, 0.5],
    ),
    "int and decimal": (
        pa.array([12], pa.int32()),
        pa.array([Decimal("0.25")], pa.decimal128(8, 2)),
        pa.decimal128(12, 2),
        [Decimal("12.00"), Decimal("0.25")],
    ),
    "decimals": (
        pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)),
        pa.array([Decimal("12345.678")], pa.decimal128(20, 3)),
        pa.decimal128(20, 3),
        [Decimal("1.500"), None, Decimal("12345.678")],
    ),
    "struct fields": (
        pa.array([{"x": 1, "y": "a"}, None]),
        pa.array([{"y": "b", "z": [1.5], "x": 2}]),
        pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.list_(pa.float64()))]),
        [{"x": 1, "y": "a", "z": None}, None, {"x": 2, "y": "b", "z": [1.5]}],
    ),
    "lists": (
        pa.array([[1, None], None, []], pa.list_(pa.int16())),
        pa.array([[0.5]]),
        pa.list_(pa.float64()),
        [[1.0, None], None, [], [0.5]],
    ),
}


@pytest.mark.parametrize("case", WIDER)
def test_columns_that_widen_are_converted_and_verified(estate: Estate, case: str) -> None:
    first, second, kind, values = WIDER[case]
    estate.orc("t/1", {"a": first})
    estate.orc("t/2", {"a": second})
    report = estate.migrate()
    assert [file.error for file in report.tables[0].files] == [None, None]
    assert (report.exit_code, report.verified) == (0, True)
    tables = [pq.read_table(path, partitioning=None) for path in estate.files("t")]
    assert [value for table in tables for value in table["a"].to_pylist()] == values
    for table in tables:
        assert table.schema.field("a").type.equals(kind)


def test_a_number_that_the_wider_type_cannot_hold_fails_its_file(estate: Estate) -> None:
    estate.orc("t/1", {"a": [2**53 + 1]})
    estate.orc("t/2", {"a": [0.5]})
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/1"]
    assert "column a" in str(report.failures[0].error)
    assert estate.values() == [0.5]


def test_incompatible_types_are_an_error_of_the_table(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.orc("t/2", {"a": ["x"]})
    estate.orc("u/1", {"a": [1]})
    report = estate.migrate()
    assert report.exit_code == 1
    assert {file.source for file in report.failures} == {"t/1", "t/2"}
    assert "int64 in t/1 and string in t/2" in str(report.failures[0].error)
    assert estate.read("u").num_rows == 1


def test_a_corrected_schema_is_not_mixed_with_the_old_schema(estate: Estate) -> None:
    estate.rc("t/1", {"a": [1, 2], "b": ["x", "y"]})
    toml = estate.source / "tables.toml"
    toml.write_text('[tables.t]\nschema = "a bigint, wrong binary"\nserde = "binary"\n')
    assert estate.migrate().exit_code == 0
    toml.write_text('[tables.t]\nschema = "a bigint, right string"\nserde = "binary"\n')
    assert estate.migrate().exit_code == 0
    table = estate.read("t")
    assert table.schema.names == ["a", "right"]
    assert table["right"].to_pylist() == ["x", "y"]


def test_codec_is_an_option_of_migrate(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    assert estate.migrate(codec="gzip").exit_code == 0
    codecs = {pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in estate.files("t")}
    assert codecs == {"GZIP"}


def test_orc_keeps_nanoseconds(estate: Estate) -> None:
    estate.orc("t/1", {"at": pa.array([1, 1_700_000_000_123_456_789, None], pa.timestamp("ns"))})
    report = estate.migrate(to="orc", timestamp_unit="ns")
    assert (report.exit_code, report.verified) == (0, True)
    (path,) = (estate.target / "t").iterdir()
    instants = cf.read_table(path)["at"].cast(pa.int64()).to_pylist()
    assert instants == [1, 1_700_000_000_123_456_789, None]


# Names.


def test_tables_with_similar_names_stay_separate(estate: Estate) -> None:
    for place, value in (("a/b", 1), ("a.b", 2), ("=5", 3), ("c/=5", 4), ("t_5", 5)):
        estate.orc(f"{place}/1", {"x": [value]})
    report = estate.migrate()
    assert report.exit_code == 0
    assert len({table.name for table in report.tables}) == 5
    values = {table.path: estate.read(table.path)["x"].to_pylist() for table in report.tables}
    assert values.pop("a/b") == [1]
    assert values.pop("a.b") == [2]
    assert values.pop("t_5") == [5]
    assert sorted(values.values()) == [[3], [4]]
    assert not any("=" in path for path in values)
    # The next run has the same tables.
    assert [table.path for table in estate.migrate().tables] == [table.path for table in report.tables]


def test_formats_that_share_a_directory_are_separate_tables(estate: Estate) -> None:
    estate.orc("x/1", {"a": [1]})
    estate.rc("x/2", {"a": [2]})
    toml = estate.source / "tables.toml"
    entry = 'format = "rcfile"\nschema = "a bigint"\nserde = "binary"\n'
    toml.write_text(f'[tables.old]\npath = "x"\n{entry}[tables.new]\npath = "x"\nformat = "orc"\n')
    report = estate.migrate()
    assert report.exit_code == 0
    values = {table.name: estate.values(table.path) for table in report.tables}
    assert values == {"new": [1], "old": [2]}


def test_partition_columns_may_be_decimals(estate: Estate) -> None:
    estate.orc("t/p=1.50/1", {"a": [1]})
    estate.orc("t/p=12/1", {"a": [2]})
    (estate.source / "tables.toml").write_text('[tables.t]\npartitions = "p decimal(5,2)"\n')
    assert estate.migrate().exit_code == 0
    specs = load_tables(str(estate.source / "tables.toml"))
    (table,) = find_tables(take_inventory(str(estate.source)), specs)
    assert [field.type for field in table.partition_fields] == [pa.decimal128(5, 2)]
    pytest.importorskip("pyiceberg")
    from coldframe.pipeline.sink.iceberg import open_catalog

    lake = estate.target.with_name("lake")
    migrate(InProcess(), estate.source, lake, to="iceberg")
    rows = open_catalog(str(lake)).load_table("migrated.t").scan().to_arrow()
    assert sorted(rows["p"].to_pylist()) == [Decimal("1.50"), Decimal("12.00")]


# Sources that change while they are read, and readers that lose rows.


class Meddling(ParquetSink):
    """Calls a function in the middle of a file."""

    def __init__(self, what: Callable[[], None]) -> None:
        super().__init__()
        object.__setattr__(self, "what", what)

    def convert(self, rows: Any, *given: Any, **named: Any) -> dict[str, Any]:
        def meddled(batches: Any) -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(batches):
                if number == 0:
                    self.what()  # type: ignore[attr-defined]
                yield batch

        return super().convert(changed(rows, meddled), *given, **named)


@pytest.mark.parametrize("how", ["edited", "replaced", "time set back", "gone"])
def test_a_source_that_changes_is_left_for_a_later_run(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = estate.orc("t/1", {"a": range(1000)})
    estate.orc("t/2", {"a": [7]})
    before = path.stat()

    def change() -> None:
        if how == "gone":
            path.unlink(missing_ok=True)
        elif how == "replaced":
            estate.orc("t/new", {"a": range(5000, 6000)}).replace(path)
        else:
            with path.open("r+b") as file:
                file.write(b"O")  # the same byte as before
            if how == "time set back":
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with monkeypatch.context() as patch:
        target = Target("parquet", Meddling(change))
        patch.setattr("coldframe.pipeline.find_target", lambda *_, **__: target)
        report = estate.migrate(target_file_bytes=0)
    assert report.exit_code == 1
    states = {file.source: file.status for file in report.tables[0].files}
    assert states == {"t/1": "changed", "t/2": "converted"}
    assert estate.read("t")["a"].to_pylist() == [7]
    if how != "gone":
        assert estate.migrate().exit_code == 0
        assert sorted(estate.read("t")["a"].to_pylist()) == sorted([7, *cf.read_table(path)["a"].to_pylist()])


def test_a_reader_that_loses_a_batch_fails_the_file(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.orc("t/1", {"a": range(200_000)})
    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", scanning(lambda _, batches: list(batches)[1:]))
        report = estate.migrate()
    assert report.exit_code == 1
    assert "declares 200000 rows" in str(report.failures[0].error)
    assert estate.files("t") == []
    assert estate.migrate().rows == 200_000


def test_losing_all_rows_of_a_file_is_a_failure(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.orc("t/1", {"a": range(1000)})
    lost = {"offset": 3, "length": 90, "rows_lost": 1000, "structure": "stripe 0", "reason": "torn"}
    monkeypatch.setattr(convert, "raw_scan", scanning(lambda *_: [], damage=[lost]))
    report = estate.migrate(on_error="skip")
    assert (report.exit_code, report.verified) == (1, False)
    assert "none of its rows could be saved; stripe 0: torn" in str(report.failures[0].error)


def test_only_files_that_were_read_back_are_verified(estate: Estate) -> None:
    estate.orc("t/1", {"a": pa.array([], pa.int64())})
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (0, False)
    estate.orc("t/2", {"a": [1]})
    assert estate.migrate(verify=False).verified is False
