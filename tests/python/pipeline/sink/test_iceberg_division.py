"""Iceberg tables partitioned by values in the files: each row is in the partition PyIceberg computes."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from estates import Estate

import coldframe as cf
from coldframe.errors import ColdframeError
from coldframe.pipeline import audit
from coldframe.pipeline.records import (
    Committed,
    Outcome,
    Part,
    StagedFile,
    dumps,
    loads,
    restored_value,
    stored_value,
)
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.sink.iceberg_layout import iceberg_layout
from coldframe.pipeline.work.dividing import Division

pytest.importorskip("pyiceberg")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us")),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
    ]
)
ALL = ["days(at)", "bucket(3, id)", "truncate(1, name)", "region"]


def rows(first: int, count: int) -> pa.Table:
    """Three days; each seventh value is null."""
    numbers = range(first, first + count)

    def some(make: Any, step: int) -> list[Any]:
        return [None if number % 7 == step else make(number) for number in numbers]

    begin = dt.datetime(1969, 12, 31, 22)
    return pa.table(
        {
            "id": some(lambda number: number, 0),
            "at": some(lambda number: begin + dt.timedelta(hours=number % 30), 1),
            "name": some(lambda number: "\u00e4bc"[number % 3 :], 2),
            "price": some(lambda number: decimal.Decimal(number % 2) / 4, 3),
            "raw": some(lambda number: bytes([number % 2, 255]), 4),
            "flag": some(lambda number: number % 2 == 0, 5),
        },
        schema=SCHEMA,
    )


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    for region, first in (("eu", 0), ("us", 1000)):
        made.orc(f"t/region={region}/0", rows(first, 500))
        made.orc(f"t/region={region}/1", rows(first + 500, 40))
    return made


def migrate_by(estate: Estate, partition_by: list[str] | None, **options: Any) -> Report:
    entry = "[tables.t]\n" if partition_by is None else f"[tables.t.iceberg]\npartition_by = {partition_by}\n"
    (estate.source / "tables.toml").write_text(entry, encoding="utf-8")
    report = estate.migrate(**{"to": "iceberg", **options})
    assert report.exit_code == 0, summary(report)
    assert report.verified
    return report


def iceberg(estate: Estate) -> Any:
    from coldframe.pipeline.sink.iceberg import open_catalog

    return open_catalog(str(estate.target)).load_table(("migrated", "t"))


def plain(table: pa.Table) -> list[str]:
    return sorted(str(row) for row in table.to_pylist())


def expected(estate: Estate) -> list[str]:
    table = cf.scan(estate.source / "t", timestamp_unit="us").to_table()
    return plain(table.select([*SCHEMA.names, "region"]))


def check_partitions(table: Any) -> int:
    """Checks with PyIceberg that all rows of a file are of its partition; returns the number of files."""
    count = 0
    schema, spec = table.schema(), table.spec()
    for task in table.scan().plan_files():
        count += 1
        path = task.file.file_path.removeprefix("file://")
        rows = cf.open(path).read() if path.endswith(".orc") else pq.read_table(path)
        for number, part in enumerate(spec.fields):
            kind = schema.find_type(part.source_id)
            column = rows[schema.find_column_name(part.source_id)]
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us")).cast(pa.int64())
            make = part.transform.transform(kind)
            assert {make(value) for value in column.to_pylist()} == {task.file.partition[number]}, part
    return count


@pytest.mark.parametrize("files", ["parquet", "orc"])
def test_rows_are_in_the_partitions_that_pyiceberg_computes(estate: Estate, files: str) -> None:
    migrate_by(estate, ALL, files=files)
    table = iceberg(estate)
    if files == "parquet":
        assert plain(table.scan().to_arrow().select([*SCHEMA.names, "region"])) == expected(estate)
        selected = table.scan("at >= '1970-01-02T00:00:00' and id = 26 and name = 'c'")
        assert len(list(selected.plan_files())) == 1
    assert check_partitions(table) > 40
    assert audit(estate.target, deep=True).exit_code == 0
    before = table.metadata
    migrate_by(estate, ALL, files=files)
    assert iceberg(estate).metadata == before


@pytest.mark.parametrize(
    "term", ["price", "raw", "flag", "at", "truncate(10, price)", "truncate(1, raw)", "id"]
)
def test_the_journal_keeps_partition_values_of_each_type(estate: Estate, term: str) -> None:
    migrate_by(estate, [term])
    assert check_partitions(iceberg(estate)) >= 4
    assert plain(iceberg(estate).scan().to_arrow().select([*SCHEMA.names, "region"])) == expected(estate)


def test_another_layout_writes_other_files(estate: Estate) -> None:
    migrate_by(estate, None)
    assert len(list(iceberg(estate).scan().plan_files())) == 2
    first = iceberg(estate).current_snapshot().snapshot_id
    report = migrate_by(estate, ["flag"])
    assert report.rows == 1080
    table = iceberg(estate)
    assert check_partitions(table) == 12
    assert plain(table.scan(snapshot_id=first).to_arrow()) == plain(table.scan().to_arrow())
    # An equal layout changes nothing; without a layout, the keys of the directories count.
    migrate_by(estate, ["FLAG"])
    assert iceberg(estate).metadata == table.metadata
    migrate_by(estate, None)
    assert [part.name for part in iceberg(estate).spec().fields] == ["region"]
    assert plain(iceberg(estate).scan().to_arrow()) == plain(table.scan().to_arrow())


def test_changed_and_vanished_sources_replace_and_remove_their_files(estate: Estate) -> None:
    migrate_by(estate, ["hours(at)", "region"])
    estate.orc("t/region=eu/0", rows(7, 90))
    (estate.source / "t/region=us/1").unlink()
    migrate_by(estate, ["hours(at)", "region"], on_vanished="remove")
    assert check_partitions(iceberg(estate)) > 30
    assert plain(iceberg(estate).scan().to_arrow().select([*SCHEMA.names, "region"])) == expected(estate)


def test_a_source_of_several_splits_is_partitioned(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    (estate.source / "t").mkdir()
    cf.write(rows(0, 30_000), estate.source / "t/0", format="orc", stripe_rows=5000)
    migrate_by(estate, ["days(at)"], split_bytes=1 << 12, target_file_bytes=1 << 20)
    assert check_partitions(iceberg(estate)) == 12  # files of three splits
    table = iceberg(estate).scan().to_arrow()
    assert plain(table) == plain(rows(0, 30_000))


def test_partitions_come_back_from_executors_and_the_journal() -> None:
    values = {
        "a": stored_value(decimal.Decimal("1.20")),
        "b": stored_value(b"\xff"),
        "days(c)": -1,
        "d": None,
    }
    assert [restored_value(value) for value in values.values()] == [
        decimal.Decimal("1.20"),
        b"\xff",
        -1,
        None,
    ]
    outcome = Outcome("key", 0, (StagedFile("x", 1, 2, None, partition=values),))
    assert loads(dumps(outcome)) == outcome
    part = Part("x", "t/x", 1, 2, partition=values)
    entry = Committed("key", "x", "t", (part, Part("y", "t/y", 1, 2)))
    stored = json.loads(json.dumps(entry.to_json()))
    assert Committed.from_json(stored).parts == entry.parts
    assert "partition" not in stored["parts"][1]


def test_a_float_column_is_refused_as_partition_key(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/0", {"x": [1.0]})
    (estate.source / "tables.toml").write_text('[tables.t.iceberg]\npartition_by = ["x"]\n')
    report = estate.migrate(to="iceberg")
    assert report.exit_code == 1
    (file,) = report.tables[0].files.problems
    assert "partition x: rows are not divided by floats" in str(file.error)


def test_a_file_with_rows_of_another_partition_is_not_verified() -> None:
    terms = iceberg_layout({"partition_by": ["flag", "bucket(2, id)"]}).partition_by or ()
    division = Division(terms, SCHEMA)
    table = rows(0, 100).to_batches()[0]
    numbers = division(table.select(["flag", "id"])).to_pylist()
    by_row = list(zip(table["flag"].to_pylist(), numbers, strict=True))
    assert len(set(by_row)) == len(set(numbers)) == 8
    for (value, number), (next_value, another) in itertools.combinations(by_row, 2):
        assert value == next_value or number != another
    division.check(table.filter(pc.equal(pa.array(numbers), 3)), 3)
    with pytest.raises(ColdframeError, match=r"rows of the partitions \[0, 1"):
        division.check(table, 0)
    assert division.values(numbers[1]) == {"flag": False, "bucket(2, id)": 0}
