"""Hive's transactional tables in partition folders: each partition gives its live rows."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate

import coldframe as cf
from coldframe.cli import main

DATA = Path(__file__).parents[1] / "data" / "hive" / "files"
ENTRIES = json.loads((DATA / "MANIFEST.json").read_text())
PARTITIONS = {"dt=2020-01-01": "changes", "dt=2020-01-02": "major", "dt=2020-01-03": "minor"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three table directories that Hive wrote, as partitions of one table."""
    folder = tmp_path_factory.mktemp("warehouse") / "sales"
    for partition, name in PARTITIONS.items():
        shutil.copytree(DATA / name, folder / partition)
    return folder


def expected(table: Path) -> list[tuple[object, ...]]:
    """The rows of each directory, read alone, with their partition."""
    rows: list[tuple[object, ...]] = []
    for partition in PARTITIONS:
        alone = cf.open(table / partition).read(["id"])
        rows += [(value, partition.partition("=")[2]) for value in alone["id"].to_pylist()]
    return sorted(rows, key=repr)


def sorted_rows(rows: pa.Table) -> list[tuple[object, ...]]:
    """Sorted rows, with the partition as text."""
    pairs = zip(rows["id"].to_pylist(), map(str, rows["dt"].to_pylist()), strict=True)
    return sorted(pairs, key=repr)


def test_scan_reads_live_rows_of_all_partitions(table: Path) -> None:
    dataset = cf.scan(table)
    assert dataset.files == [str(table / partition) for partition in PARTITIONS]
    assert dataset.partition_columns == ["dt"]
    assert dataset.schema.names[-1] == "dt"
    assert "operation" not in dataset.schema.names
    rows = dataset.to_table()
    assert sorted_rows(rows) == expected(table)
    assert dataset.count() == rows.num_rows
    split_rows = pa.concat_tables(s.to_batches().read_all() for s in dataset.splits(1000))
    assert sorted_rows(split_rows) == expected(table)
    some = cf.scan(str(table / "dt=2020-01-0[12]"))
    assert sorted_rows(some.to_table()) == [row for row in expected(table) if row[1] != "2020-01-03"]
    day = dataset.to_table(filter="dt = date '2020-01-02'")
    assert sorted_rows(day) == [row for row in expected(table) if row[1] == "2020-01-02"]


@pytest.mark.parametrize(
    "entry", json.loads((DATA / "MANIFEST.json").read_text()), ids=lambda entry: entry["truth"]
)
def test_each_partition_matches_hive(entry: dict[str, Any], tmp_path: Path) -> None:
    for partition in ("p=1/q=a", "p=2/q=b%20c"):
        shutil.copytree(DATA / entry["file"], tmp_path / partition)
    truth = pq.read_table(DATA / entry["truth"])
    dataset = cf.scan(tmp_path, **entry["open"])
    assert dataset.schema.names == [*truth.schema.names, "p", "q"]
    for p, q in ((1, "a"), (2, "b c")):
        live = dataset.to_table(truth.schema.names, filter=[("p", "=", p), ("q", "=", q)])
        order = [(name, "ascending") for name in truth.schema.names]
        assert live.sort_by(order).to_pylist() == truth.cast(live.schema).sort_by(order).to_pylist()


def test_every_command_reads_partitions_of_transactional_tables(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = len(expected(table))
    assert main(["count", str(table)]) == 0
    assert capsys.readouterr().out == f"{number}\n"
    for command in (
        "head",
        "cat",
        "schema",
        "meta",
        "stats",
        "sizes",
        "inspect",
        "index",
        "verify",
        "splits",
    ):
        assert main([command, str(table)]) == 0, command
        assert capsys.readouterr().out
    assert main(["verify", str(table), "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)) == [str(table / partition) for partition in PARTITIONS]
    assert (
        main(["sql", f"select count(*) as n, count(distinct dt) as p from '{table}'", "--format", "json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out) == [{"n": number, "p": 3}]
    assert main(["convert", str(table), str(table.parent / "all.parquet")]) == 0
    assert sorted_rows(pq.read_table(table.parent / "all.parquet")) == expected(table)


def test_tables_lists_one_table(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [listed] = cf.tables(table.parent)
    assert (listed.name, listed.format, listed.files, listed.problem) == ("sales", "orc", 3, None)
    opened = listed.open()
    assert isinstance(opened, cf.Dataset)
    assert sorted_rows(opened.to_table()) == expected(table)
    assert '[tables."sales"]\npath = "sales"' in listed.to_toml()


def test_a_table_of_one_partition_keeps_its_column(tmp_path: Path) -> None:
    shutil.copytree(DATA / "changes", tmp_path / "sales" / "dt=2020-01-01")
    [listed] = cf.tables(tmp_path)
    opened = listed.open()
    assert isinstance(opened, cf.Dataset)
    assert opened.partition_columns == ["dt"]


def test_migration_treats_partition_folders_as_one_table(table: Path, tmp_path: Path) -> None:
    from coldframe.pipeline import InProcess, migrate

    report = migrate(InProcess(), table.parent, tmp_path / "lake", to="parquet")
    assert report.exit_code == 0
    [migrated] = report.tables
    assert (migrated.name, migrated.path) == ("sales", "sales")
    rows = pa.concat_tables(
        cf_rows.append_column("dt", pa.array([path.parent.name.partition("=")[2]] * cf_rows.num_rows))
        for path in sorted((tmp_path / "lake").rglob("*.parquet"))
        for cf_rows in [pq.ParquetFile(path).read(["id"])]
    )
    assert sorted_rows(rows) == expected(table)
    safe = (tmp_path / "lake" / "_coldframe" / "safe-to-delete.txt").read_text()
    assert all(str(table / partition) in safe for partition in PARTITIONS)


def warned(place: Path, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cf.open(place, **options).read()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["truth"])
def test_tables_that_hive_wrote_lack_nothing(entry: dict[str, Any]) -> None:
    assert warned(DATA / entry["file"], **entry["open"]) == []
    truth = pq.read_table(DATA / entry["truth"])
    file = cf.open(DATA / entry["file"], complete=True, **entry["open"])
    assert file.read().num_rows == truth.num_rows
    assert file.damage == []


def test_deleted_rows_that_no_directory_has_are_reported(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    sales = estate.source / "sales"
    shutil.copytree(DATA / "changes", sales)
    whole = cf.open(sales).read().num_rows
    shutil.rmtree(sales / "delta_0000001_0000001_0000")
    [text] = warned(sales)
    assert "no file has the rows of write 1" in text
    assert warned(sales, complete=False) == []
    with pytest.raises(cf.CorruptFileError, match="write 1, bucket"):
        cf.open(sales, complete=True).read()
    file = cf.open(sales, complete=True)
    # Writes after it replaced all rows of the write that is gone.
    assert file.read(on_error="skip").num_rows == whole
    assert any("write 1, bucket" in str(lost) for lost in file.damage)
    report = estate.migrate()
    assert (report.exit_code, estate.safe()) == (1, [])
    assert "no file has the rows of write 1" in str(report.tables[0].partial)
