"""The Spark source and writer."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_data import DATA, NUMBERS, WAREHOUSE, damaged, survivors

import coldframe as cf
import coldframe.spark
from coldframe.spark.options import read_options
from coldframe.spark.reader import ColdframeReader, pack
from coldframe.spark.types import plain_schema


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
    # Spark 4.3 answers wrongly where one defines it, see spark/source.py.
    assert "pushFilters" not in vars(ColdframeReader)


def test_one_frame_under_two_filters(spark: SparkSession, numbers: Path) -> None:
    frame = load(spark, numbers, **NUMBERS)
    both = frame.where("a = 1").union(frame.where("a = 2")).select("a")
    assert sorted(both.collect()) == [(1,), (2,)]
    assert frame.where("a < 10").count() == 10
    assert frame.count() == 3000
    one = coldframe.spark.read(spark, numbers, filter="a = 1", **NUMBERS)
    two = coldframe.spark.read(spark, numbers, filter="a = 2", **NUMBERS)
    assert sorted(one.union(two).select("a").collect()) == [(1,), (2,)]
    frame.createOrReplaceTempView("numbers")
    sql = "select a from numbers where a = 5 union all select a from numbers where a = 6"
    assert sorted(spark.sql(sql).collect()) == [(5,), (6,)]


def test_columns_filter_and_splits(spark: SparkSession, numbers: Path) -> None:
    frame = coldframe.spark.read(
        spark,
        numbers,
        columns=["h", "a"],
        filter="s like 'row 29%' and a >= 2950",
        split_bytes="8k",
        **NUMBERS,
    )
    assert frame.columns == ["h", "a"]
    assert frame.rdd.getNumPartitions() > 3
    assert sorted(row.a for row in frame.collect()) == list(range(2950, 3000))
    several = coldframe.spark.read(spark, [numbers / "0.rc", numbers / "2.rc"], columns=["a"], **NUMBERS)
    assert several.count() == 2000
    assert load(spark, f"{numbers}/[01].rc", **NUMBERS).count() == 2000
    nothing = coldframe.spark.read(spark, numbers, filter="a < 0", **NUMBERS)
    assert nothing.collect() == []


def test_schema_of_the_user(spark: SparkSession, numbers: Path) -> None:
    pruned = (
        spark.read.format("coldframe_rcfile")
        .options(**NUMBERS)
        .schema("H double, a bigint")
        .load(str(numbers))
    )
    assert pruned.where("a = 7").collect() == [(3.5, 7)]
    # Without the option schema, an RCFile has the types that the user says.
    typed = (
        spark.read.format("coldframe").option("serde", "binary").schema(NUMBERS["schema"]).load(str(numbers))
    )
    assert typed.where("a = 7").collect() == [(7, "row 7", 3.5)]
    untyped = load(spark, numbers)
    assert untyped.columns == ["_c0", "_c1", "_c2"]
    assert untyped.limit(1).collect()[0]._c1 == bytearray(b"row 0")
    narrow = spark.read.format("coldframe_rcfile").options(**NUMBERS).schema("a tinyint").load(str(numbers))
    with pytest.raises(PythonException, match="column a: expected Int8, found Int64"):
        narrow.count()
    with pytest.raises(AnalysisException, match=r"column 'nowhere' not found"):
        spark.read.format("coldframe_rcfile").options(**NUMBERS).schema("nowhere int").load(
            str(numbers)
        ).count()


def test_partitions_become_columns(spark: SparkSession) -> None:
    expected = json.loads((WAREHOUSE / "EXPECTED.json").read_text())["sales"]
    schema = (
        "id bigint, customer string, quantity int, price decimal(10,2), discount double, sold_at timestamp, "
    )
    schema += "paid boolean, channel varchar(12)"
    frame = coldframe.spark.read(spark, WAREHOUSE / "sales", schema=schema, serde="binary")
    assert dict(frame.dtypes)["dt"] == "date"
    assert dict(frame.dtypes)["sold_at"] == "timestamp_ntz"
    sums = frame.agg(F.count("*"), F.sum("id"), F.sum("price"), F.max("dt"), F.count("region")).collect()[0]
    columns = expected["columns"]
    assert sums[:3] == (expected["rows"], columns["id"]["sum"], pytest.approx(sums[2]))
    assert str(sums[2]) == columns["price"]["sum"]
    assert str(sums[3]) == columns["dt"]["max"]
    assert sums[4] == expected["rows"] - columns["region"]["nulls"]
    day = coldframe.spark.read(
        spark,
        WAREHOUSE / "sales",
        columns=["region"],
        filter="dt = date '2014-01-02'",
        schema=schema,
        serde="binary",
    )
    assert day.count() == frame.where("dt = date'2014-01-02'").count() > 0
    assert {row.region for row in day.collect()} == {"eu", "us", "asia/pacific"}


def test_every_type_arrives_as_the_files_have_it(spark: SparkSession) -> None:
    manifest = json.loads((DATA / "files" / "MANIFEST.json").read_text())
    checked = 0
    for entry in manifest:
        options = entry.get("open", {})
        if not isinstance(entry["file"], str) or (
            "_types" not in entry["file"] and "nested" not in entry["file"]
        ):
            continue
        path = DATA / "files" / entry["file"]
        given = {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()
        }
        got = load(spark, path, **given).toArrow()
        plain = cf.open(path, **{**options, "timestamp_unit": "us"})
        assert got.schema.names == plain.schema.names
        assert [f.type for f in plain_schema(plain.schema)] == [
            f.type for f in plain_schema(got.schema.remove_metadata())
        ], entry["file"]
        assert got.num_rows == plain.read().num_rows
        checked += 1
    assert checked >= 5


def test_timestamps_of_all_years(spark: SparkSession, tmp_path: Path) -> None:
    days = [
        datetime.datetime(1, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(9999, 12, 31),
    ]
    rows = pa.table({"t": pa.array(days, pa.timestamp("us"))})
    cf.write(rows, tmp_path / "t.rc", format="rcfile", serde="text")
    frame = load(spark, tmp_path / "t.rc", schema="t timestamp", serde="text")
    assert [row.t for row in frame.collect()] == days


def test_damage_stops_or_is_listed(spark: SparkSession, tmp_path: Path) -> None:
    for entry in damaged():
        path = DATA / "damaged" / entry["file"]
        with pytest.raises(PythonException) as caught:
            load(spark, path, **entry["open"]).collect()
        message = str(caught.value)
        assert "CorruptFileError" in message
        assert entry["file"] in message
        table = tmp_path / entry["file"]
        frame = load(spark, path, mode="DROPMALFORMED", damage=str(table), **entry["open"])
        assert frame.count() == survivors(entry)
        # The frame's second use finds the same damage, and lists it once.
        first = spark.read.json(str(table)).collect()
        assert frame.count() == survivors(entry)
        assert spark.read.json(str(table)).collect() == first
        assert first
        assert all(row.path.endswith(entry["file"]) and row.reason and row.structure for row in first)


def test_files_beyond_opening_are_listed_too(spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.rc").write_bytes((numbers / "0.rc").read_bytes())
    (folder / "b.rc").write_bytes((numbers / "1.rc").read_bytes()[:20])
    with pytest.raises(PythonException, match=r"b\.rc"):
        load(spark, folder, **NUMBERS).count()
    assert load(spark, folder, mode="DROPMALFORMED", damage=str(tmp_path / "d"), **NUMBERS).count() == 1000
    (lost,) = spark.read.json(str(tmp_path / "d")).collect()
    assert lost.path.endswith("b.rc")
    assert lost.length == 20


def test_wrong_options_are_refused(spark: SparkSession, numbers: Path) -> None:
    for options, message in (
        ({"mode": "PERMISSIVE"}, "FAILFAST or DROPMALFORMED"),
        ({"damage": "/nowhere"}, "DROPMALFORMED"),
        ({"split_bytes": "many"}, "split_bytes"),
        ({"columns": "zzz"}, "zzz"),
        ({"nonsense": "1"}, "nonsense"),
    ):
        with pytest.raises(AnalysisException, match=message):
            load(spark, numbers, **{**NUMBERS, **options}).count()


def test_options_become_what_the_reader_takes() -> None:
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
    """`df.write.format("coldframe")`."""

    def frame(self, spark: SparkSession, rows: int) -> DataFrame:
        return spark.range(rows).selectExpr("id as a", "concat('n', id) as s", "id / 2 as h").repartition(3)

    def write(self, frame: DataFrame, path: Path, mode: str, **options: Any) -> None:
        writer = frame.write.format("coldframe").option("as", "rcfile").option("serde", "binary")
        writer.options(**options).mode(mode).save(str(path))

    def test_append_and_overwrite(self, spark: SparkSession, tmp_path: Path) -> None:
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

    def test_abort_leaves_nothing(self, spark: SparkSession, tmp_path: Path) -> None:
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

    def test_what_cannot_be_written_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        frame = self.frame(spark, 10)
        with pytest.raises(AnalysisException, match="option as"):
            frame.write.format("coldframe").mode("append").save(str(tmp_path / "x"))
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
