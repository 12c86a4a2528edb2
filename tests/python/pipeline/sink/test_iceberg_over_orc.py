"""`--to iceberg --files orc`: PyIceberg, Spark and coldframe read the migrated rows."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.pipeline import InProcess, audit, migrate

pytest.importorskip("pyiceberg")

REFERENCE = Path(__file__).parents[3] / "reference" / "iceberg"


def rows(first: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([first, 2, None], pa.int32()),
            "small": pa.array([1, -2, 3], pa.int8()),
            "text": ["a" * 40, "zz", None],
            "day": [dt.date(2020, 1, 1), dt.date(1600, 1, 1), None],
            "at": pa.array(
                [dt.datetime(2020, 1, 1, 0, 0, 0, 5), dt.datetime(1969, 1, 1), None], pa.timestamp("us")
            ),
            "price": [decimal.Decimal("1.20"), decimal.Decimal("-1.20"), None],
            "f": [1.5, float("-inf"), 2.0],
            "s": [{"x": 1, "l": [1, None]}, None, {"x": None, "l": []}],
            "raw": [b"ab", b"", None],
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for at, place in enumerate(
        ["dt=2020-01-01/r=a%2Fb", "dt=2020-01-01/r=c", "dt=__HIVE_DEFAULT_PARTITION__/r=c"]
    ):
        folder = tmp_path / "src" / "sales" / place
        folder.mkdir(parents=True)
        cf.write(rows(at), folder / "000000_0", format="orc")
    return tmp_path / "src"


def migrate_orc(source: Path, target: Path, **options: Any) -> Any:
    given = {"to": "iceberg", "files": "orc", "archived_rows": "drop", **options}
    return migrate(InProcess(2), source, target, **given)


def table(target: Path) -> cf.IcebergDataset:
    from coldframe.pipeline.sink.iceberg import open_catalog

    return cf.iceberg_table("migrated.sales", catalog=open_catalog(str(target)))


def plain(table: pa.Table) -> list[Any]:
    return ordered(json.loads(json.dumps(row, default=str)) for row in table.to_pylist())


def ordered(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def expected(source: Path) -> list[Any]:
    return plain(cf.scan(source / "sales", timestamp_unit="us").to_table())


def test_rows_and_bounds_equal_the_source(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "lake"
    report = migrate_orc(source, target)
    assert report.to_json()["verdict"] == "verified"
    assert report.exit_code == 0
    dataset = table(target)
    assert dataset.format == "orc"
    assert all(path.endswith(".orc") for path in dataset.files)
    assert plain(dataset.to_table()) == expected(source)
    assert dataset.count("dt = '2020-01-01'") == 6
    assert dataset.count("r = 'a/b' and id = 2") == 1
    for nothing in (
        "id > 2",
        "day > '2020-01-01'",
        "day < '1600-01-01'",
        "at > '2020-01-02'",
        "text > 'zzz'",
        "price > 1.2",
    ):
        assert dataset._plan(dataset._bound(nothing)) == [], nothing
    for some in (
        "id = 2",
        "day = '1600-01-01'",
        "at = '2020-01-01 00:00:00.000005'",
        "price = -1.2",
        "text like 'aaaa%'",
    ):
        assert len(dataset._plan(dataset._bound(some))) == 3, some
    assert dataset._table.metadata.properties["write.format.default"] == "orc"
    assert audit(target).to_json()["verdict"] == "verified"


def test_later_runs_add_and_remove_files_and_change_the_format(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "lake"
    migrate_orc(source, target, files="parquet")
    assert table(target).format == "parquet"
    report = migrate_orc(source, target)
    assert report.exit_code == 0
    assert table(target).format == "orc"
    assert plain(table(target).to_table()) == expected(source)
    snapshot = table(target).snapshot_id
    assert migrate_orc(source, target).exit_code == 0
    assert table(target).snapshot_id == snapshot  # a rerun does nothing
    folder = source / "sales" / "dt=2021-01-01" / "r=new"
    folder.mkdir(parents=True)
    cf.write(rows(50).append_column("extra", pa.array(["x"] * 3)), folder / "000000_0", format="orc")
    (source / "sales" / "dt=2020-01-01" / "r=c" / "000000_0").unlink()
    report = migrate_orc(source, target, on_vanished="remove")
    assert report.exit_code == 0, report.to_json()
    assert plain(table(target).to_table()) == expected(source)
    assert table(target).count("extra = 'x'") == 3
    assert audit(target).to_json()["verdict"] == "verified"


def test_days_that_engines_read_differently_are_refused(source: Path, tmp_path: Path) -> None:
    folder = source / "old"
    folder.mkdir()
    old = pa.table({"s": [{"day": dt.date(1, 1, 1)}], "at": pa.array([None], pa.timestamp("us"))})
    cf.write(old, folder / "000000_0", format="orc")
    report = migrate_orc(source, tmp_path / "lake")
    (refused,) = [summary for summary in report.to_json()["tables"] if summary["name"] == "old"]
    assert "column s.day has days before 1582-10-15" in refused["error"]
    assert report.exit_code != 0
    assert "/old/" not in (tmp_path / "lake" / "_coldframe" / "safe-to-delete.txt").read_text()


def test_other_targets_refuse_the_option_files(source: Path, tmp_path: Path) -> None:
    with pytest.raises(cf.UnsupportedError, match="files of orc in target delta"):
        migrate_orc(source, tmp_path / "lake", to="delta")


@pytest.mark.skipif("COLDFRAME_ICEBERG_PYTHON" not in os.environ, reason="needs Iceberg's Spark")
def test_spark_reads_the_same_rows(source: Path, tmp_path: Path) -> None:
    migrate_orc(source, tmp_path / "lake")
    metadata = table(tmp_path / "lake")._address.metadata
    python, jar = os.environ["COLDFRAME_ICEBERG_PYTHON"], os.environ["COLDFRAME_ICEBERG_JAR"]
    out = tmp_path / "rows.json"
    subprocess.run([python, REFERENCE / "read.py", jar, metadata, out], check=True)
    from_spark = json.loads(out.read_text())
    ours = plain(table(tmp_path / "lake").to_table(["id", "small", "text", "day", "at", "price", "dt", "r"]))
    theirs = [{name: row[name] for name in ours[0]} for row in from_spark]
    assert ordered(theirs) == ours
