"""What readers of the tables meet: partition values, ids of columns, and the read by another library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.pipeline.sink import second_reading, sinks
from coldframe.pipeline.sink.delta_protocol import partition_texts


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.decimal128(10, 2), "1.5", "1.50"),
        (pa.decimal128(38, 0), "1" * 38, "1" * 38),
        (pa.bool_(), "1", "true"),
        (pa.timestamp("us"), "2014-01-01", "2014-01-01 00:00:00"),
        (pa.timestamp("us"), "2014-01-01 01%3A02%3A03.5", "2014-01-01 01:02:03.500000"),
        (pa.float64(), "nan", "NaN"),
        (pa.float64(), "-inf", "-Infinity"),
        (pa.float32(), "1.1", "1.1"),
        (pa.date32(), "2014-01-01", "2014-01-01"),
        (pa.int32(), "007", "7"),
        (pa.string(), "a%09b", "a\tb"),
        (pa.string(), "__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_partition_values_are_serialised_as_the_protocol_says(
    kind: pa.DataType, text: str, expected: str | None
) -> None:
    assert partition_texts(f"t/k={text}/f.parquet", [pa.field("k", kind)]) == {"k": expected}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("decimal(10,2)", ["1.5", "1", "1.50"]),
        ("boolean", ["1", "true", "false"]),
        ("timestamp", ["2014-01-01", "2014-01-01 01%3A02%3A03.5"]),
        ("double", ["1", "NaN", "2.25", "-inf"]),
        ("string", ["a%09b", "ä", "a b", "100%25", "q=1", "x%2Fy"]),
    ],
)
@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_tables_with_typed_partitions_are_readable(
    estate: Estate, to: str, kind: str, values: list[str]
) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    (estate.source / "tables.toml").write_text(f'[tables.t]\npartitions = "k {kind}"\n')
    for number, value in enumerate(values):
        estate.orc(f"t/k={value}/f", {"a": [number]})
        report = estate.migrate(to=to)
        assert (report.exit_code, report.verified) == (0, True), report.tables[0].error
    by = {"delta": "deltalake", "iceberg": "PyIceberg"}[to]
    assert report.tables[0].metadata[f"read by {by}"] == "1 new files, 1 rows"
    assert report.safe_to_delete == len(values)


def table_of(estate: Estate) -> Any:
    from coldframe.pipeline.sink.iceberg import open_catalog

    return open_catalog(str(estate.target)).load_table("migrated.t")


NESTED = pa.table(
    {
        "s": pa.array(
            [{"x": 1, "y": [{"z": "a"}]}],
            pa.struct({"x": pa.int8(), "y": pa.list_(pa.struct({"z": pa.string()}))}),
        ),
        "m": pa.array([[("k", {"v": 1.5})]], pa.map_(pa.string(), pa.struct({"v": pa.float32()}))),
        "at": pa.array([0], pa.timestamp("us")),
        "b": pa.array([b"\xff"]),
    }
)


def test_files_of_iceberg_tables_have_the_ids_of_their_columns(estate: Estate) -> None:
    pytest.importorskip("pyiceberg")
    from pyiceberg.types import StringType

    estate.orc("t/p=1/1", NESTED)
    report = estate.migrate(to="iceberg")
    assert (report.exit_code, report.verified) == (0, True)
    # A later run adds a column, also to nested columns.
    estate.orc("t/p=2/2", NESTED.append_column("new", pa.array([{"n": 1}])))
    assert estate.migrate(to="iceberg").exit_code == 0
    with table_of(estate).update_schema(allow_incompatible_changes=True) as update:
        update.rename_column("b", "c").rename_column("at", "b")
    with table_of(estate).update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("m")
    with table_of(estate).update_schema() as update:
        update.add_column("m", StringType())
    rows = table_of(estate).scan().to_arrow().to_pylist()
    assert [(row["c"], row["m"], row["s"]["y"]) for row in rows] == [(b"\xff", None, [{"z": "a"}])] * 2
    assert sorted(str(row["new"]) for row in rows) == ["None", "{'n': 1}"]


def test_rows_that_the_library_reads_differently_fail_the_table(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deltalake")
    from coldframe.pipeline.sink import delta

    read = delta._read

    def other(*given: Any) -> Any:
        for batch in read(*given):
            yield batch.set_column(0, "a", pa.array([7] * batch.num_rows, batch.column(0).type))

    monkeypatch.setattr(delta, "_read", other)
    estate.orc("t/1", {"a": [1, 2]})
    report = estate.migrate(to="delta")
    assert "deltalake reads other values than were verified" in str(report.tables[0].error)
    assert (report.exit_code, report.safe_to_delete) == (1, 0)


def test_more_than_the_driver_reads_is_reported(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deltalake")
    monkeypatch.setattr(second_reading, "MAX_BYTES", 0)
    for number in range(3):
        estate.orc(f"t/{number}", {"a": [number]})
    report = estate.migrate(to="delta", target_file_bytes=0)
    assert (report.exit_code, report.verified) == (0, True)
    assert "2 of 3 new files" in json.dumps(report.to_json())
    assert "not read in full" in str([note.text for note in report.verdict.notes])


def test_orc_is_read_back_by_pyarrow(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.orc

    estate.orc("t/1", NESTED.drop_columns(["at"]))
    estate.orc("u/1", NESTED)
    read = []
    real = pyarrow.orc.ORCFile.read_stripe

    def counted(self: Any, number: int, **given: Any) -> Any:
        read.append(number)
        return real(self, number, **given)

    monkeypatch.setattr(pyarrow.orc.ORCFile, "read_stripe", counted)
    assert estate.migrate(to="orc").verified
    assert len(read) == 2
    # Without pyarrow's reader, coldframe reads its own files back.
    monkeypatch.setattr(sinks, "_has", lambda _: False)
    assert estate.migrate(to="orc", fresh=True).verified
    assert len(read) == 2
