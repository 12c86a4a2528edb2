"""The connector for the JVM: joins and groups by partition folders need no shuffle. The reference is the same
query with Spark's own setting turned off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_data import held

import coldframe as cf
from coldframe.spark.connector import is_loaded

SETTING = "spark.sql.sources.v2.bucketing.enabled"
CONF = {
    SETTING: "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
SPLIT = "200"
"""Bytes per task: less than a file."""
NULL = "__HIVE_DEFAULT_PARTITION__"
KEYS = {
    "whole": ["-1", "2", "10", NULL],
    "day": ["1969-12-31", "2014-01-01", "2014-01-02", NULL],
    "city": ["a%20b", "\u00e4", "z", NULL],
}


@pytest.fixture(scope="module", autouse=True)
def _connector(spark: SparkSession) -> Iterator[None]:
    if not is_loaded(spark):
        pytest.skip("no jar of the connector here (make jar): not tried")
    before = {name: spark.conf.get(name) for name in CONF}
    for name, value in CONF.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        spark.conf.set(name, str(old))
    assert held(spark) == [0, 0]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each kind of key two tables: `left` with two files a value, `right` without the first value."""
    root = tmp_path_factory.mktemp("keys")
    for key, values in KEYS.items():
        for at, value in enumerate(values):
            for side, files in (("left", (0, 1)), ("right", (0,) if at else ())):
                folder = root / key / side / f"{key}={value}"
                folder.mkdir(parents=True, exist_ok=True)
                for file in files:
                    ids = [at * 100 + file * 10 + number for number in range(5)]
                    rows = pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(ids, pa.int32())})
                    cf.write(rows, folder / f"{file}.orc", format="orc")
    return root


def load(spark: SparkSession, path: Path, name: str, **options: str) -> None:
    spark.read.format("coldframe").options(**options).load(str(path)).createOrReplaceTempView(name)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def shuffles(spark: SparkSession, query: str) -> list[str]:
    """Checks that the rows are the same without the setting; returns the shuffles with it."""
    spark.conf.set(SETTING, "false")
    shuffled = spark.sql(query)
    expected = sorted(map(str, shuffled.collect()))
    assert "Exchange" in plan(shuffled)
    spark.conf.set(SETTING, "true")
    frame = spark.sql(query)
    assert sorted(map(str, frame.collect())) == expected
    assert expected
    return ["Exchange"] if "Exchange hashpartitioning" in plan(frame) else []


JOIN = "from left l join right r on l.key = r.key"


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "query",
    [
        f"select l.key, count(*), sum(r.n) {JOIN} where l.id > 2 group by l.key",
        "select key, count(*) from left group by key",
        "select l.key, l.id, r.id from left l left join right r on l.key = r.key",
    ],
)
def test_rows_equal_the_rows_of_a_shuffle(spark: SparkSession, tables: Path, key: str, query: str) -> None:
    for side in ("left", "right"):
        # Each file has two tasks; tasks with the same key are grouped.
        load(spark, tables / key / side, side, split_bytes=SPLIT)
    assert shuffles(spark, re.sub(r"\bkey\b", key, query)) == []


@pytest.mark.parametrize(
    "query",
    [
        f"select l.id, r.n {JOIN}",
        "select a.key, a.id, b.id from (select * from left where n > 101) a join left b on a.key = b.key",
    ],
)
def test_sides_may_lack_keys_and_columns(spark: SparkSession, tables: Path, query: str) -> None:
    for side in ("left", "right"):
        load(spark, tables / "whole" / side, side)
    assert shuffles(spark, re.sub(r"\bkey\b", "whole", query)) == []


def test_no_file_has_the_key(spark: SparkSession, tables: Path) -> None:
    for side in ("left", "right"):
        load(spark, tables / "whole" / side, side)
    # Spark shuffles a side without partitions.
    right = "(select * from right where whole = -1) r"
    shuffles(spark, f"select l.id, r.id from left l left join {right} on l.whole = r.whole")


def test_a_partition_of_many_tasks_is_shuffled(spark: SparkSession, tables: Path) -> None:
    # A single Spark task would hold the memory of all partial aggregations of the partition.
    load(spark, tables / "whole" / "left", "left", split_bytes="60")
    assert shuffles(spark, "select whole, count(*), sum(id) from left group by whole") == ["Exchange"]


def test_a_column_that_is_not_read_clusters_nothing(spark: SparkSession, tables: Path) -> None:
    load(spark, tables / "whole" / "left", "left")
    assert shuffles(spark, "select id % 3, count(*) from left group by id % 3") == ["Exchange"]


def test_the_users_types_are_used(spark: SparkSession, tables: Path) -> None:
    for side in ("left", "right"):
        path = str(tables / "whole" / side)
        frame = spark.read.format("coldframe").schema("whole smallint, id bigint").load(path)
        frame.createOrReplaceTempView(side)
    query = "select l.whole, l.id, r.id from left l join right r on l.whole = r.whole"
    assert shuffles(spark, query) == []


def test_partitions_selected_by_a_join_need_no_shuffle(
    spark: SparkSession, tables: Path, tmp_path: Path
) -> None:
    load(spark, tables / "day" / "left", "left")
    days = spark.sql("select date'2014-01-02' as at, 1 as wanted union all select date'2014-01-01', 0")
    days.write.parquet(str(tmp_path / "days"))
    spark.read.parquet(str(tmp_path / "days")).createOrReplaceTempView("days")
    query = """select /*+ BROADCAST(days) */ day, count(*), sum(id) from left join days on day = at
               where wanted = 1 group by day"""
    assert "dynamicpruning" in plan(spark.sql(query))
    assert shuffles(spark, query.replace("count(*)", "count(*), 1")) in ([], ["Exchange"])
