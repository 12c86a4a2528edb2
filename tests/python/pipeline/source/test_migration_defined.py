"""Migrations of tables that a Hive metastore defines, without a tables.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hive_estate import ACCURATE, ORC, RC_BINARY, RC_TEXT, TEXT, HiveEstate
from servers import HiveMetastore

from coldframe.cli import main
from coldframe.errors import SchemaError, UnsupportedError
from coldframe.pipeline import dry_run, migrate
from coldframe.pipeline.options import Options
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.scheduling import InProcess

PIPES = {"field.delim": "|"}


def orders(estate: HiveEstate) -> None:
    """RCFile text with a delimiter of its own; the first partition is older than a column."""
    now = [("id", "int"), ("what", "string")]
    estate.table("orders", estate.storage(now, RC_TEXT, "orders", **PIPES), [("dt", "date"), ("r", "string")])
    for day, rows in ((1, {"id": [1, 2]}), (2, {"id": [3], "what": ["x"]})):
        place = f"orders/dt=2014-01-0{day}/r=a%2Fb"
        types = pa.schema([("id", pa.int32()), ("what", pa.string())][: len(rows)])
        estate.file(f"{place}/000000_0", rows, types, format="rcfile", serde="text", serde_properties=PIPES)
        storage = estate.storage(now[: len(rows)], RC_TEXT, place, **PIPES)
        estate.partition("orders", [f"2014-01-0{day}", "a/b"], storage, numRows=str(len(rows["id"])))


def plain(estate: HiveEstate) -> None:
    estate.file("plain/000000_0", {"a": [1, 2, 3]}, format="orc")
    estate.table("plain", estate.storage([("a", "bigint")], ORC, "plain"), numRows="3", **ACCURATE)


def run(server: HiveMetastore, target: Path, what: str = "/cold", **options: Any) -> Report:
    return migrate(InProcess(2), f"{server.url}{what}", target, **options)


def read(target: Path, table: str) -> list[dict[str, Any]]:
    return pads.dataset(target / "cold" / table, format="parquet", partitioning="hive").to_table().to_pylist()


def findings(report: Any) -> list[str]:
    assert report.metastore is not None
    return sorted(str(finding) for finding in report.metastore.findings)


def test_tables_are_migrated_by_their_definitions_alone(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    orders(hive_estate)
    plain(hive_estate)
    hive_estate.file("nobody/000000_0", {"a": [9]}, format="orc")
    target = tmp_path / "dst"
    for _ in range(2):
        report = run(hive_server, target)
        assert report.exit_code == 0, summary(report)
        assert report.verified
        assert report.metastore is not None
        assert (report.metastore.compared, report.metastore.agreed) == (3, 3)
        assert [table.name for table in report.tables] == ["cold.orders", "cold.plain"]
    in_target = sorted((row["id"], row["what"], str(row["dt"]), row["r"]) for row in read(target, "orders"))
    assert in_target == [
        (1, None, "2014-01-01", "a/b"),
        (2, None, "2014-01-01", "a/b"),
        (3, "x", "2014-01-02", "a/b"),
    ]
    assert len(read(target, "plain")) == 3
    listed = safe_list.read(str(target / "_coldframe/safe-to-delete.txt"))
    assert len(listed.lines) == 3
    kept = [json.loads(line) for line in (target / "_coldframe/definitions.jsonl").read_text().splitlines()]
    assert [table["name"] for table in kept] == ["orders", "plain"]
    assert [len(part["storage"]["columns"]) for part in kept[0]["partitions"]] == [1, 0]
    assert kept[0]["storage"]["serde_properties"] == PIPES


def test_tables_that_cannot_be_migrated_are_left_out_with_a_reason(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    plain(hive_estate)
    storage = hive_estate.storage
    hive_estate.table("notes", storage([("a", "int")], TEXT, "notes"))
    hive_estate.table("a_view", storage([("a", "int")], TEXT, None), kind="VIRTUAL_VIEW")
    hive_estate.table("one", storage([("a", "bigint")], ORC, "shared"))
    hive_estate.table("two", storage([("a", "bigint")], ORC, "shared/two"))
    hive_estate.file("shared/000000_0", {"a": [1]}, format="orc")
    hive_estate.table("swapped", storage([("b", "int"), ("a", "int")], RC_BINARY, "swapped"), [("p", "int")])
    old = storage([("x", "int"), ("y", "int"), ("b", "int")], RC_BINARY, "swapped/p=1")
    hive_estate.partition("swapped", ["1"], old)
    report = run(hive_server, tmp_path / "dst", only=["COLD.*", "cold.nobody"])
    assert report.exit_code == 1
    assert not report.verified
    root = hive_estate.root
    assert findings(report) == [
        "cold.a_view: left out: a view: it has no rows of its own",
        "cold.nobody: no table of the metastore matches",
        "cold.notes: left out: files of TextInputFormat are not read",
        f"cold.one: left out: its files at {root}/shared may be those of cold.two",
        "cold.swapped: left out: by position, two of its columns match the table's b",
        f"cold.two: left out: its files at {root}/shared/two may be those of cold.one",
    ]
    assert [table.name for table in report.tables] == ["cold.plain"]
    assert "cold.notes: left out: files of TextInputFormat are not read" in summary(report)
    preview = dry_run(
        f"{hive_server.url}/cold", tmp_path / "other", Options(tables=("cold.*", "cold.nobody"))
    )
    assert preview.exit_code == 1
    assert findings(preview) == findings(report)
    with pytest.raises(
        UnsupportedError, match=r"none of its tables can be migrated: cold\.notes: left out: files of Text"
    ):
        run(hive_server, tmp_path / "third", "/cold.notes")


def test_a_view_does_not_fail_the_run(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    plain(hive_estate)
    hive_estate.table("a_view", hive_estate.storage([("a", "int")], TEXT, None), kind="VIRTUAL_VIEW")
    report = run(hive_server, tmp_path / "dst")
    assert report.exit_code == 0, summary(report)
    assert findings(report) == ["cold.a_view: left out: a view: it has no rows of its own"]


def test_missing_unregistered_and_differing_files_are_reported(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    orders(hive_estate)
    plain(hive_estate)
    gone = hive_estate.storage(
        [("id", "int"), ("what", "string")], RC_TEXT, "orders/dt=2014-01-03/r=c", **PIPES
    )
    hive_estate.partition("orders", ["2014-01-03", "c"], gone, numRows="4")
    (hive_estate.root / "orders/dt=2014-01-03/r=c").rmdir()
    hive_estate.file(
        "orders/dt=2014-01-09/r=z/000000_0",
        {"id": [7]},
        pa.schema([("id", pa.int32())]),
        format="rcfile",
        serde="text",
        serde_properties=PIPES,
    )
    hive_estate.file("plain/000001_0", {"a": [4]}, format="orc")
    target = tmp_path / "dst"
    report = run(hive_server, target)
    assert report.exit_code == 1
    text = summary(report)
    for line in (
        f"there is no {hive_estate.root}/orders/dt=2014-01-03/r=c",
        f"1 files in no registered partition, such as {hive_estate.root}/orders/dt=2014-01-09/r=z/000000_0",
        "cold.plain: 3 rows by the metastore, 4 migrated from cold/plain",
    ):
        assert line in text
    assert not safe_list.read(str(target / "_coldframe/safe-to-delete.txt")).lines
    # Hive does not read this folder.
    assert {row["id"] for row in read(target, "orders")} == {1, 2, 3}


def test_patterns_select_tables_and_locations_can_be_replaced(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    orders(hive_estate)
    plain(hive_estate)
    (tmp_path / "wh").rename(tmp_path / "copy")
    options = ["--location", f"file:{tmp_path}/wh={tmp_path}/copy", "--tables", "cold.pl*"]
    options += ["--master", "in-process"]
    assert main(["migrate", hive_server.url, str(tmp_path / "dst"), *options]) == 0
    assert len(read(tmp_path / "dst", "plain")) == 3
    assert not (tmp_path / "dst/cold/orders").exists()
    with pytest.raises(ValueError, match="for a metastore"):
        dry_run(tmp_path, tmp_path / "other", Options(tables=("cold.*",)))
    (tmp_path / "x.toml").write_text('[tables."cold.plain"]\nschema = "a int"\n')
    with pytest.raises(SchemaError, match="and the part iceberg"):
        dry_run(hive_server.url, tmp_path / "other", tables=tmp_path / "x.toml")
    with pytest.raises(ValueError, match="metastore: the source is a metastore itself"):
        run(hive_server, tmp_path / "other", metastore=hive_server.url)


def test_a_table_that_shares_files_with_an_unselected_table_is_left_out(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    plain(hive_estate)
    hive_estate.file("both/000000_0", {"a": [1]}, format="orc")
    for name in ("mine", "theirs"):
        hive_estate.table(name, hive_estate.storage([("a", "bigint")], ORC, "both"))
    report = run(hive_server, tmp_path / "out", only=["cold.plain", "cold.mine"])
    assert any("cold.mine: left out" in line and "cold.theirs" in line for line in findings(report))
    assert not (tmp_path / "out/cold/mine").exists()


def test_a_table_that_shares_files_with_a_spark_table_is_left_out(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    plain(hive_estate)
    hive_estate.file("both/000000_0", {"a": [1]}, format="orc")
    hive_estate.table("mine", hive_estate.storage([("a", "bigint")], ORC, "both"))
    # Spark keeps the directory in a property, and a placeholder as the location.
    spark = hive_estate.storage([("a", "bigint")], ORC, "placeholder", path=f"file:{hive_estate.root}/both")
    hive_estate.table("sparks", spark, **{"spark.sql.sources.provider": "orc"})
    report = run(hive_server, tmp_path / "out", only=["cold.plain", "cold.mine"])
    assert any("cold.mine: left out" in line and "cold.sparks" in line for line in findings(report))
