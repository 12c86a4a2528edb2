"""Whole Hudi tables through every function of Python: open, detect, scan, tables, verify, migrate."""

from __future__ import annotations

import pickle
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from estates import Estate
from hudi_tables import hudi_table
from test_filter_law import SEED, hold

import coldframe as cf
from coldframe.cli import main
from coldframe.pipeline import InProcess, migrate
from coldframe.pipeline.report.summary import summary
from coldframe.spark.options import read_options
from coldframe.spark.reader import open_dataset
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


@pytest.mark.parametrize("archive", sorted(DATA.glob("history-*.tar.gz")), ids=lambda path: path.name)
def test_filters_hold_on_a_history(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    [table] = tmp_path.iterdir()
    for options in ({}, {"view": "read_optimized"}, {"view": "incremental", "begin": "0"}):
        print(f"COLDFRAME_SEED={SEED}", options)
        hold(table, options, SEED)


def test_views(trips: Path) -> None:
    assert cf.open(trips, as_of=FIRST).read(["fare"])["fare"].to_pylist() == [1.5, 2.5]
    assert cf.open(trips, as_of="2026-01-01 23:00:00").read().num_rows == 2
    changed = cf.open(trips, format="hudi", view="incremental", begin=FIRST)
    assert sorted(changed.read(["id"])["id"].to_pylist()) == ["t1", "t2"]
    with pytest.raises(ValueError, match="begin"):
        cf.open(trips, view="incremental")


def test_spark_options_name_the_view(trips: Path) -> None:
    def count(**options: str) -> int:
        return open_dataset(read_options({"path": str(trips), **options}, None)).count()

    assert count() == count(view="snapshot", split_bytes="100") == 3
    assert count(as_of=FIRST) == count(AS_OF="2026-01-01 23:00:00") == 2
    assert count(view="incremental", begin="0", end=FIRST) == 2
    with pytest.raises(cf.SchemaError, match="snapshot_id"):
        count(snapshot_id="1", as_of=FIRST)


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


def definition(name: str, place: Path, storage: str, properties: str = "") -> str:
    """A statement as SHOW CREATE TABLE prints it, with a partition."""
    return (
        f"CREATE EXTERNAL TABLE `lake`.`{name}`(`id` string, `fare` double) PARTITIONED BY (`city` string)\n"
        f"{storage}\nLOCATION 'file:{place}'\nTBLPROPERTIES ('last_commit_time_sync'='1'{properties});\n"
        f"ALTER TABLE `lake`.`{name}` ADD PARTITION (city='eu') LOCATION 'file:{place}/eu';\n"
    )


def by_class(name: str, more: str = "") -> str:
    return (
        f"ROW FORMAT SERDE 'x.ParquetHiveSerDe'{more} STORED AS INPUTFORMAT 'org.apache.hudi.hadoop.{name}'"
        " OUTPUTFORMAT 'x.MapredParquetOutputFormat'"
    )


OPTIMIZED = " WITH SERDEPROPERTIES ('hoodie.query.as.ro.table'='true')"


@pytest.fixture
def dump(trips: Path) -> Path:
    place = trips.parent / "lake.sql"
    storages = {
        "trips": by_class("HoodieParquetInputFormat"),
        "trips_ro": by_class("realtime.HoodieParquetRealtimeInputFormat", OPTIMIZED),
        "trips_rt": by_class("realtime.HoodieParquetRealtimeInputFormat"),
        "of_spark": "STORED AS ORC",
    }
    provider = {"of_spark": ", 'spark.sql.sources.provider'='hudi'"}
    statements = [
        definition(name, trips, storage, provider.get(name, "")) for name, storage in storages.items()
    ]
    place.write_text("".join(statements))
    return place


def test_a_definition_of_a_hudi_table_is_read_by_its_timeline(dump: Path) -> None:
    views = {}
    for name in ("trips", "trips_ro", "trips_rt", "of_spark"):
        table = cf.scan(f"{dump}/lake.{name}")
        assert sorted(table.read()["fare"].to_pylist()) == [1.5, 4.0, 9.0], name
        assert (table.format, table.count(), table.count("fare > 2")) == ("hudi", 3, 2)
        assert table.schema.names == cf.open(dump.parent / "trips").schema.names
        again = pickle.loads(pickle.dumps(cf.hive_table(f"{dump}/lake.{name}", filter="id = 't1'")))
        assert again.read(["fare"])["fare"].to_pylist() == [9.0]
        assert sum(batch.num_rows for split in table.splits() for batch in split.to_batches()) == 3
        views[name] = again.definition.hudi_view
    assert views == {
        "trips": "read_optimized",
        "trips_ro": "read_optimized",
        "trips_rt": "snapshot",
        "of_spark": "snapshot",
    }
    assert cf.scan(f"{dump}/lake.trips_rt", as_of=FIRST).count() == 2
    with pytest.raises(cf.UnsupportedError, match="its timeline lists them"):
        cf.hive_table(f"{dump}/lake.trips").partitions()


def test_definitions_of_a_hudi_table_are_migrated_side_by_side(dump: Path, tmp_path: Path) -> None:
    target = tmp_path / "dst"
    command = ["migrate", str(dump), str(target), "--master", "in-process"]
    assert main([*command, "--leave-behind", "older-versions"]) == 0
    for name in ("trips", "trips_ro", "trips_rt", "of_spark"):
        rows = pads.dataset(target / "lake" / name, format="parquet").to_table()
        assert sorted(rows["fare"].to_pylist()) == [1.5, 4.0, 9.0], name
        assert "city" in rows.schema.names
    adopted = migrate(InProcess(1), str(dump), tmp_path / "other", to="iceberg", adopt=True)
    assert (adopted.exit_code, sum(table.rows for table in adopted.tables)) == (1, 0)
    assert "migrate converts it" in summary(adopted)


def test_files_of_a_partition_are_no_table(tmp_path: Path) -> None:
    table = hudi_table(tmp_path / "src/trips", {FIRST: [1.5]})
    cf.write(pa.table({"fare": [1.5]}), table / "eu/g_0-1-2_1.orc", format="orc")
    for path in (table / "eu", tmp_path / "src/*/eu"):
        with pytest.raises(cf.UnsupportedError, match="a partition of a Hudi table"):
            cf.scan(path)
    statement = definition("plain", table, "STORED AS ORC")
    (tmp_path / "plain.sql").write_text(statement)
    with pytest.raises(cf.UnsupportedError, match="a partition of a Hudi table"):
        cf.scan(f"{tmp_path}/plain.sql/lake.plain").read()
    for number, source in enumerate((table / "eu", tmp_path / "plain.sql")):
        report = migrate(InProcess(1), str(source), tmp_path / f"dst{number}")
        assert (report.exit_code, sum(table.rows for table in report.tables)) == (1, 0)


def test_a_log_has_a_layout_and_no_rows(tmp_path: Path) -> None:
    log = tmp_path / ".7f1c2f0e-0_1.log.1_0-1-2"
    log.write_bytes(b"#HUDI#" + (64).to_bytes(8, "big") + b"torn")
    assert cf.detect(log) == "hudi"
    [block] = cf.open(log).inspect()["children"]
    assert (block["name"], block["offset"], block["length"]) == ("corrupt block", 0, 18)
    with pytest.raises(cf.UnsupportedError, match="open the table's directory"):
        cf.open(log).read()
    assert main(["layout", str(log), "-o", str(tmp_path / "layout.html")]) == 0
