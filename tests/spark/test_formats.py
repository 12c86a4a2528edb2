"""Each format through Spark's source and through the migration, on files of its reference implementation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import coldframe as cf
from coldframe.pipeline import migrate

DATA = Path(__file__).parents[1] / "data"
FILES = {
    "orc": DATA / "orc/files/types_none.orc",
    "hfile": DATA / "hfile/files/cells_none.hfile",
    "redfile": DATA / "redfile/files/documents_f.redfile",
}
KUDU = DATA / "kudu/files"


def rows_in(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


@pytest.mark.parametrize("name", sorted(FILES))
def test_spark_reads_what_a_file_has(spark: SparkSession, name: str) -> None:
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
    shutil.copytree(KUDU / "encrypted", source / "server")
    # Two tables of one directory: each has an entry.
    shutil.copytree(KUDU / "file_blocks", source / "backup")
    entries = [f'[tables.{name}]\npath = "backup"\ntable = "{name}"\n' for name in ("events", "numbers")]
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
    shutil.copytree(KUDU / "file_blocks", source)
    for earlier in (False, True):
        report = migrate(spark, str(source), str(target), to="parquet")
        assert report.exit_code == 0
        assert [table.path for table in report.tables] == ["events", "numbers"]
        assert all(file.earlier is earlier for table in report.tables for file in table.files)
        for name in ("events", "numbers"):
            assert rows_in(target / name) == cf.open(source, table=name).count() > 0
