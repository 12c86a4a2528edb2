"""Whole Hudi tables through every function of Python: open, detect, scan, tables, verify, migrate."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from estates import Estate
from hudi_tables import hudi_table

import coldframe as cf
from coldframe.table_listing import tables

FIRST, SECOND = "20260101120000000", "20260102120000000"
DATA = Path(__file__).parents[1] / "data" / "hudi"


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    return hudi_table(tmp_path / "trips", {FIRST: [1.5, 2.5], SECOND: [1.5, 9.0, 4.0]})


def test_a_table_has_its_last_state(trips: Path) -> None:
    assert cf.detect(trips) == "hudi"
    table = cf.open(trips)
    assert (table.format, table.schema.names[-3:]) == ("hudi", ["id", "city", "fare"])
    assert table.read(["id", "fare"], filter="fare > 2").to_pylist() == [
        {"id": "t1", "fare": 9.0},
        {"id": "t2", "fare": 4.0},
    ]
    assert [entry["instant"] for entry in table.metadata["commits"]] == [FIRST, SECOND]
    assert sum(batch.num_rows for split in table.splits(100) for batch in table.to_batches(split=split)) == 3
    assert cf.scan(trips).count() == 3


def test_views(trips: Path) -> None:
    assert cf.open(trips, as_of=FIRST).read(["fare"])["fare"].to_pylist() == [1.5, 2.5]
    assert cf.open(trips, as_of="2026-01-01 23:00:00").read().num_rows == 2
    changed = cf.open(trips, format="hudi", view="incremental", begin=FIRST)
    assert sorted(changed.read(["id"])["id"].to_pylist()) == ["t1", "t2"]
    with pytest.raises(ValueError, match="begin"):
        cf.open(trips, view="incremental")


def test_a_missing_file_is_damage(trips: Path) -> None:
    (trips / "eu" / next(p.name for p in (trips / "eu").glob(f"*{SECOND}.parquet"))).unlink()
    with pytest.raises(cf.CorruptFileError, match=f"which commit {SECOND} names"):
        cf.open(trips).read()
    table = cf.open(trips)
    assert table.read(on_error="skip").num_rows == 0
    assert len(table.damage) == 1
    assert len(table.verify()["damage"]) == 1


def test_the_table_of_the_fixture_has_lost_its_files(tmp_path: Path) -> None:
    with tarfile.open(DATA / "lab-1.1.1.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    with pytest.raises(cf.CorruptFileError, match="names, found none"):
        cf.open(tmp_path / "lab").read()
    metadata = cf.open(tmp_path / "lab", format="hudi", metadata=True)
    assert metadata.read().num_rows == cf.open(tmp_path / "lab/.hoodie/metadata").read().num_rows > 0


def test_the_table_is_listed_and_migrated(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    hudi_table(estate.source / "trips", {FIRST: [1.5, 2.5], SECOND: [1.5, 9.0, 4.0]})
    estate.orc("other/f", {"a": [2]})
    listing = {table.name: table for table in tables(estate.source)}
    assert (listing["trips"].format, listing["trips"].is_whole) == ("hudi", True)
    report = estate.migrate()
    assert {table.name: table.rows for table in report.tables} == {"trips": 3, "other": 1}
    assert sorted(estate.read("trips")["fare"].to_pylist()) == [1.5, 4.0, 9.0]
    # The earlier state is not in the target, and the user did not allow to leave it behind.
    assert not any("trips" in path for path in estate.safe())
    with pytest.raises(cf.UnsupportedError, match="a Hudi table"):
        cf.scan(estate.source)
