"""Each format through the Spark source and the migration, with files of its reference implementation."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import coldframe as cf
from coldframe.cli import main
from coldframe.pipeline import migrate

sys.path.append(str(Path(__file__).parents[1] / "python"))

from hudi_tables import hudi_table

DATA = Path(__file__).parents[1] / "data"
FILES = {
    "orc": DATA / "orc/files/types_none.orc",
    "hfile": DATA / "hfile/files/cells_none.hfile",
    "redfile": DATA / "redfile/files/documents_f.redfile",
}
KUDU = DATA / "kudu/files"
KUDU_WITH_LOGS = DATA / "kudu_wal/files"
HBASE = DATA / "hbase/files/orders"
PHOENIX = DATA / "phoenix/files"


COUNTS = {"f:count": "long", "g:note": "string"}


def rows_in(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


@pytest.mark.parametrize("name", sorted(FILES))
def test_spark_reads_the_rows_of_a_file(spark: SparkSession, name: str) -> None:
    expected = cf.open(FILES[name]).count()
    for source in ("coldframe", f"coldframe_{name}"):
        frame = spark.read.format(source).load(str(FILES[name]))
        assert frame.count() == expected > 0
        assert len(frame.limit(3).collect()) == min(3, expected)


def test_spark_reads_a_table_of_kudu(spark: SparkSession) -> None:
    table = cf.open(KUDU / "file_blocks", table="numbers").read()
    frame = spark.read.format("coldframe").option("table", "numbers").load(str(KUDU / "file_blocks"))
    assert frame.count() == table.num_rows > 0
    assert frame.columns == table.column_names


def test_all_formats_are_migrated(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "cold", tmp_path / "lake"
    for name, file in FILES.items():
        (source / name).mkdir(parents=True)
        shutil.copy(file, source / name)
    # A directory without logs counts as a part of its table only, except if the entry accepts that.
    shutil.copytree(KUDU / "encrypted", source / "server")
    # Two tables of a directory: each has an entry.
    shutil.copytree(KUDU / "file_blocks", source / "backup")
    entries = ['[tables.server]\npath = "server"\nwal = false\n']
    entries += [
        f'[tables.{name}]\npath = "backup"\ntable = "{name}"\nwal = false\n' for name in ("events", "numbers")
    ]
    (source / "tables.toml").write_text("\n".join(entries))
    report = migrate(spark, str(source), str(target), to="parquet")
    assert report.exit_code == 0
    for name, file in FILES.items():
        assert rows_in(target / name) == cf.open(file).count()
    assert rows_in(target / "server") == cf.open(KUDU / "encrypted").count()
    for name in ("events", "numbers"):
        expected = cf.open(KUDU / "file_blocks", table=name).count()
        assert rows_in(target / "backup" / name) == expected > 0


def test_a_dead_cluster_is_migrated_table_by_table(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "server", tmp_path / "lake"
    shutil.copytree(KUDU_WITH_LOGS / "lz4", source)
    names = ["ledger", "notes", "trips"]
    for earlier in (False, True):
        report = migrate(spark, str(source), str(target), to="parquet")
        assert report.exit_code == 0
        assert [table.path for table in report.tables] == names
        assert all(file.earlier is earlier for table in report.tables for file in table.files)
        for name in names:
            assert rows_in(target / name) == cf.open(source, table=name).count() > 0


def written(folder: Path) -> list[dict[str, object]]:
    """The rows of a migrated table, by row key."""
    parts = [pq.read_table(path) for path in folder.rglob("*.parquet")]
    return sorted(pa.concat_tables(parts).to_pylist(), key=lambda row: row["row"])


def test_a_root_of_hbase_is_migrated_by_the_proposed_entry(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "hbase", tmp_path / "lake"
    shutil.copytree(HBASE, source)
    assert main(["schema", str(source), "--as", "tables"]) == 0
    proposed = capsys.readouterr().out
    (source / "tables.toml").write_text(proposed)
    entry = cf.open(source).proposal()
    assert entry is not None
    wide = cf.open(source, **entry)
    assert wide.schema.field("g:price").type == pa.float64()
    for earlier in (False, True):
        report = migrate(spark, str(source), str(target), to="parquet")
        assert report.exit_code == 0
        [table] = report.tables
        assert (table.name, table.format) == ("shop.orders", "hbase")
        assert [(f.status, f.verified, f.earlier) for f in table.files] == [("converted", True, earlier)]
    assert written(target) == wide.read().to_pylist()
    # Another entry makes another table, with families and versions.
    entry_of_cells = (
        '[tables.cells]\npath = "."\ntable = "shop:orders"\nview = "versions"\nfamilies = ["g"]\n'
    )
    (source / "tables.toml").write_text(entry_of_cells)
    report = migrate(spark, str(source), str(tmp_path / "cells"), to="parquet")
    assert report.exit_code == 0
    cells = cf.open(source, table="shop:orders", view="versions", families=["g"])
    assert rows_in(tmp_path / "cells") == cells.count() > wide.count()


@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_a_damaged_store_file_loses_its_rows_and_reveals_no_older_version(
    spark: SparkSession, tmp_path: Path, on_error: str
) -> None:
    source, target = tmp_path / "hbase", tmp_path / "lake"
    shutil.copytree(HBASE, source)
    (source / "tables.toml").write_text(
        '[tables.orders]\npath = "."\ntable = "shop:orders"\nview = "pivot"\n'
        'columns = { "f:count" = "long", "g:note" = "string" }\n'
    )
    whole = {row["row"]: row for row in cf.open(source, view="pivot", columns=COUNTS).read().to_pylist()}
    store = max((source / "data/shop/orders").glob("*/f/*"), key=lambda path: path.stat().st_size)
    data = bytearray(store.read_bytes())
    data[60] ^= 0xFF
    store.write_bytes(data)
    assert migrate(spark, str(source), str(tmp_path / "none"), to="parquet").exit_code != 0
    report = migrate(spark, str(source), str(target), to="parquet", on_error=on_error)
    [table] = report.tables
    [file] = table.files
    assert (file.status, file.verified) == ("salvaged", True)
    assert any(store.name in str(item) for item in file.damage)
    assert (file.quarantine is not None) == (on_error == "quarantine")
    left = written(target)
    assert 0 < len(left) < len(whole)
    assert all(row == whole[row["row"]] for row in left)


def test_a_table_of_phoenix_is_migrated_with_its_types(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "hbase", tmp_path / "lake"
    shutil.copytree(PHOENIX / "root", source)
    statement = (PHOENIX / "ORDERS.sql").read_text()
    (source / "tables.toml").write_text(
        '[tables.orders]\npath = "."\ntable = "ORDERS"\nview = "pivot"\nwal = false\n'
        f'phoenix = """\n{statement}"""\n'
    )
    report = migrate(spark, str(source), str(target), to="parquet")
    assert report.exit_code == 0
    [path] = target.rglob("*.parquet")
    expected = cf.open(source, table="ORDERS", phoenix=statement).read()
    got = pq.read_table(path)
    assert got.schema.field("TOTAL").type == pa.decimal128(10, 2)
    assert got.to_pylist() == expected.to_pylist()


def test_spark_reads_the_views_of_a_table_of_hudi(spark: SparkSession, tmp_path: Path) -> None:
    first, second = "20260101120000000", "20260102120000000"
    table = hudi_table(tmp_path / "trips", {first: [1.5, 2.5], second: [1.5, 9.0, 4.0]})
    views: dict[str, dict[str, str]] = {
        "latest": {},
        "split": {"split_bytes": "200"},
        "optimized": {"view": "read_optimized"},
        "earlier": {"as_of": first},
        "changes": {"view": "incremental", "begin": first},
        "first": {"view": "incremental", "begin": "0", "end": first},
        "new": {"hudi_reader": "1.x", "format": "hudi"},
    }
    for source in ("coldframe", "coldframe_python"):
        for name, options in views.items():
            ours = cf.open(table, **{key: text for key, text in options.items() if key != "split_bytes"})
            frame = spark.read.format(source).options(**options).load(str(table))
            expected = ours.read(["id", "fare"], filter="fare < 9").to_pylist()
            rows = frame.where("fare < 9").select("id", "fare").collect()
            assert sorted(row.asDict().items() for row in rows) == sorted(e.items() for e in expected), name
            assert (frame.count(), frame.columns) == (ours.count(), ours.schema.names), name
    defined = f"CREATE TABLE lake.trips (id string) USING hudi LOCATION 'file:{table}';\n"
    (tmp_path / "lake.sql").write_text(defined)
    frame = spark.read.format("coldframe_python").load(f"{tmp_path}/lake.sql/lake.trips")
    assert sorted(row.fare for row in frame.collect()) == [1.5, 4.0, 9.0]
    with pytest.raises(Exception, match="a partition of a Hudi table"):
        spark.read.format("coldframe_python").load(str(table / "eu"))
