"""The Spark source and writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_data import NUMBERS

import coldframe as cf
import coldframe.spark
from coldframe.spark.options import read_options
from coldframe.spark.reader import ColdframeReader, open_dataset, pack
from coldframe.spark.types import to_spark_schema


def load(
    spark: SparkSession, path: Path | str, /, *, format: str = "coldframe_rcfile", **options: str
) -> DataFrame:
    reader = spark.read.format(format)
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.load(str(path))


def test_formats_are_discovered_and_count_right(spark: SparkSession, numbers: Path) -> None:
    for format in ("coldframe", "coldframe_rcfile"):
        frame = load(spark, numbers, format=format, **NUMBERS)
        assert frame.count() == 3000
        assert frame.agg(F.sum("a"), F.min("s"), F.sum("h")).collect() == [(4498500, "row 0", 2249250.0)]
    coldframe.spark.register(spark)
    assert load(spark, numbers, **NUMBERS).select("s").where("a = 1234").collect() == [("row 1234",)]


def test_no_reader_pushes_filters() -> None:
    # Spark 4.3 returns wrong rows for a reader that pushes filters, see spark/source.py.
    assert "pushFilters" not in vars(ColdframeReader)


def test_a_table_of_a_metastore_is_planned_as_files_are(tmp_path: Path) -> None:
    text = (
        f"CREATE TABLE t (id int, v string) PARTITIONED BY (p int) STORED AS ORC LOCATION '{tmp_path}/t';\n"
    )
    for number in range(3):
        path = tmp_path / f"t/p={number}/f"
        path.parent.mkdir(parents=True)
        cf.write(pa.table({"v": ["a"], "id": pa.array([number], pa.int32())}), path, format="orc")
        text += f"ALTER TABLE t ADD PARTITION (p={number}) LOCATION '{path.parent}';\n"
    (tmp_path / "s.hql").write_text(text)
    given = {"path": f"{tmp_path}/s.hql/default.t", "filter": "p > 0"}
    options = read_options(given, None)
    dataset = open_dataset(options)
    reader = ColdframeReader(options, to_spark_schema(dataset.schema), dataset.found)
    partitions = reader.partitions()
    rows = [row for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"id": number, "v": "a", "p": number} for number in (1, 2)]


def test_options_become_arguments_of_the_reader() -> None:
    options = read_options(
        {
            "path": "/x",
            "schema": "a int",
            "serde_properties.field.delim": "|",
            "serde_properties": '{"escape.delim": "\\\\"}',
            "hive_version": "3.1",
            "max_depth": "7",
            "batch_rows": "8k",
            "columns": '["a,b", "c"]',
            "keys.k": "00ff",
        },
        "rcfile",
    )
    assert options.columns == ["a,b", "c"]
    assert options.batch_rows == 8192
    assert options.keys == {"k": b"\x00\xff"}
    assert options.options == {
        "schema": "a int",
        "hive_version": "3.1",
        "max_depth": 7,
        "serde_properties": {"escape.delim": "\\", "field.delim": "|"},
    }


def test_small_splits_share_a_task(numbers: Path) -> None:
    splits = cf.scan(str(numbers), **NUMBERS).splits(4000)  # type: ignore[arg-type]
    assert len(splits) > 3
    groups = pack(splits, 128 << 20)
    assert [split for group in groups for split in group] == splits
    assert len(groups) == 1
    assert len(pack(splits, 1)) == len(splits)


class TestWriter:
    """Writes of the Python source."""

    def frame(self, spark: SparkSession, rows: int) -> DataFrame:
        return spark.range(rows).selectExpr("id as a", "concat('n', id) as s", "id / 2 as h").repartition(3)

    def write(self, frame: DataFrame, path: Path, mode: str, **options: Any) -> None:
        writer = frame.write.format("coldframe_python").option("as", "rcfile").option("serde", "binary")
        writer.options(**options).mode(mode).save(str(path))

    def test_append_adds_files_and_overwrite_replaces_them(self, spark: SparkSession, tmp_path: Path) -> None:
        path = tmp_path / "out"
        self.write(self.frame(spark, 1000), path, "append", codec="zlib")
        self.write(self.frame(spark, 500), path, "append")
        back = load(spark, path, **NUMBERS)
        assert back.agg(F.count("*"), F.sum("a")).collect() == [(1500, 499500 + 124750)]
        assert not [name for name in path.iterdir() if name.name.startswith("_")]
        self.write(self.frame(spark, 10), path, "overwrite")
        again = load(spark, path, **NUMBERS).collect()
        assert sorted(again) == [(i, f"n{i}", i / 2) for i in range(10)]
        assert cf.open(next(path.iterdir())).format == "rcfile"

    def test_no_rows_still_make_a_file(self, spark: SparkSession, tmp_path: Path) -> None:
        self.write(self.frame(spark, 10).where("a < 0"), tmp_path / "none", "append")
        assert load(spark, tmp_path / "none", **NUMBERS).collect() == []

    def test_abort_leaves_no_file(self, spark: SparkSession, tmp_path: Path) -> None:
        path = tmp_path / "out"
        self.write(self.frame(spark, 10), path, "append")
        before = sorted(path.iterdir())

        def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                if 5 in batch.column(0).to_pylist():
                    raise ValueError("a task that fails")

        broken = self.frame(spark, 10).mapInArrow(fail, "a bigint, s string, h double")
        for mode in ("append", "overwrite"):
            with pytest.raises(Exception, match="a task that fails"):
                self.write(broken, path, mode)
            assert sorted(path.iterdir()) == before

    def test_unsupported_writes_are_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        frame = self.frame(spark, 10)
        with pytest.raises(AnalysisException, match="option as"):
            frame.write.format("coldframe_python").mode("append").save(str(tmp_path / "x"))
        with pytest.raises(AnalysisException, match="web server"):
            frame.write.format("coldframe").option("as", "rcfile").mode("append").save("http://127.0.0.1:9/x")

    def test_timestamps_and_nesting_survive(self, spark: SparkSession, tmp_path: Path) -> None:
        frame = spark.sql(
            "select timestamp_ntz'1955-11-05 06:15:00.000001' as t, array(1, null) as l, map('k', 1.5d) as m,"
            " named_struct('x', cast(3 as tinyint), 'y', cast(null as date)) as r,"
            " cast(1.5 as decimal(9,2)) as d"
        )
        frame.write.format("coldframe_rcfile").mode("append").option("serde", "binary").save(
            str(tmp_path / "n")
        )
        schema = "t timestamp, l array<int>, m map<string,double>, r struct<x:tinyint,y:date>, d decimal(9,2)"
        back = load(spark, tmp_path / "n", schema=schema, serde="binary")
        assert back.collect() == frame.collect()
