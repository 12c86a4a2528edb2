"""Iceberg tables in Spark through the Python source: planned in the driver's Python, read by the tasks."""

from __future__ import annotations

import datetime
import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_data import HAS_PYTHON_SOURCE, comparable

import coldframe as cf
import coldframe.spark
from coldframe.spark.connector import is_loaded

pytest.importorskip("pyiceberg")
if not HAS_PYTHON_SOURCE:
    pytest.skip("no Python source in this PySpark", allow_module_level=True)

DATA = Path(__file__).parents[1] / "data" / "iceberg"
WROTE = "/tmp/coldframe-iceberg"
"""The path at which the tables were made."""
TABLES = ["evolved", "partitions", "imported", "positions", "equality", "vectors", "defaults", "mixed"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("iceberg")
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def read(spark: SparkSession, made: Path, name: str, **options: Any) -> DataFrame:
    path = made / "warehouse" / "t" / name
    return coldframe.spark.read(spark, path, location={WROTE: str(made)}, **options)


def expected(made: Path, name: str, **options: Any) -> pa.Table:
    return cf.iceberg_table(
        made / "warehouse" / "t" / name, location={WROTE: str(made)}, **options
    ).to_table()


def rows(table: pa.Table) -> list[str]:
    """The rows as PySpark returns them: instants in the local time zone."""
    columns = [
        [_local(value) for value in column.to_pylist()]
        for column in (c.cast(pa.timestamp("us", "UTC")) if _is_instant(c.type) else c for c in table.columns)
    ]
    return sorted(comparable(zip(*columns, strict=True)))


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _local(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {key: _local(item) for key, item in value}
        return [_local(item) for item in value]
    return value


@pytest.mark.parametrize("name", TABLES)
def test_spark_reads_the_rows_of_each_table(spark: SparkSession, made: Path, name: str) -> None:
    frame = read(spark, made, name, split_bytes="1k")
    assert sorted(comparable(frame.collect())) == rows(expected(made, name))


def test_snapshots(spark: SparkSession, made: Path) -> None:
    truth = json.loads((DATA / "truth.json").read_text())["positions"]
    numbers = sorted(
        (snapshot["at"], int(number)) for number, snapshot in truth.items() if number != "current"
    )
    for at, number in numbers[:3]:
        whole = rows(expected(made, "positions", snapshot_id=number))
        assert sorted(comparable(read(spark, made, "positions", snapshot_id=number).collect())) == whole
        moment = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)
        for time in (at, moment):
            assert read(spark, made, "positions", as_of=time).count() == len(whole)


def test_columns_and_filters(spark: SparkSession, made: Path) -> None:
    frame = read(spark, made, "positions", columns=["v", "id"], filter="part = 'b' and id > 2500")
    assert frame.columns == ["v", "id"]
    dataset = cf.iceberg_table(made / "warehouse/t/positions", filter="part = 'b' and id > 2500")
    assert sorted(comparable(frame.collect())) == rows(dataset.to_table(["v", "id"]))
    assert frame.where("id < 2600").count() == dataset.count("id < 2600")
    twice = frame.where("id = 2700").union(frame.where("id = 2701"))
    assert twice.count() == dataset.count("id in (2700, 2701)")
    assert frame.agg(F.sum("id")).collect()[0][0] == sum(dataset.to_table(["id"])["id"].to_pylist())


def test_a_metadata_file_and_a_folder_are_read_by_the_source_of_its_own_name(
    spark: SparkSession, made: Path
) -> None:
    coldframe.spark.register(spark)
    folder = made / "warehouse" / "t" / "evolved"
    frame = spark.read.format("coldframe_python").load(str(folder / "metadata" / "v2.metadata.json"))
    assert frame.count() == 2
    spark.read.format("coldframe_python").load(str(folder)).createOrReplaceTempView("evolved_view")
    assert spark.sql("select count(*), max(id) from evolved_view").collect() == [(4, 3000000000)]


def test_damage_is_listed(spark: SparkSession, made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        tar.extractall(copy, filter="data")
    folder = copy / "warehouse" / "t" / "evolved"
    (path, *_) = cf.scan(folder).files
    data = bytearray(Path(path).read_bytes())
    data[3 : len(data) // 2] = bytes(len(data) // 2 - 3)
    Path(path).write_bytes(data)
    with pytest.raises(Exception, match="CorruptFileError"):
        coldframe.spark.read(spark, folder).collect()
    lost = tmp_path / "lost"
    frame = coldframe.spark.read(spark, folder, mode="DROPMALFORMED", damage=lost)
    assert len(frame.collect()) < 4
    assert {row.path for row in spark.read.json(str(lost)).collect()} == {path}


def test_unsupported_options_are_refused(spark: SparkSession, made: Path) -> None:
    folder = str(made / "warehouse" / "t" / "positions")
    coldframe.spark.register(spark)
    with pytest.raises(Exception, match="no snapshot 1"):
        spark.read.format("coldframe_python").option("snapshot_id", "1").load(folder).count()
    with pytest.raises(Exception, match="option snapshot_id"):
        spark.read.format("coldframe_python").option("snapshot_id", "x").load(folder).count()
    files = str(made / "warehouse" / "t" / "positions" / "data")
    with pytest.raises(Exception, match="options of an Iceberg table"):
        spark.read.format("coldframe_python").option("snapshot_id", "1").load(files).count()
    if is_loaded(spark):
        with pytest.raises(Exception, match=r"UnsupportedError.*coldframe_python"):
            spark.read.format("coldframe").load(folder).count()
