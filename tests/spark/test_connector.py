"""The connector for the JVM: pushed-down filters and columns. For reading see test_reading.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_data import HAS_PYTHON_SOURCE, NUMBERS, WAREHOUSE, held

import coldframe as cf
import coldframe.spark

ORC = Path(__file__).parents[1] / "data/orc/files/types_none.orc"


def load(spark: SparkSession, path: Path | str, /, *, format: str = "coldframe", **options: str) -> DataFrame:
    return spark.read.format(format).options(**options).load(str(path))


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture
def _nothing_left(spark: SparkSession) -> Iterator[None]:
    yield
    assert held(spark) == [0, 0]


pytestmark = pytest.mark.usefixtures("connector", "_nothing_left")


@pytest.fixture
def _larger_than_a_broadcast(spark: SparkSession) -> Iterator[None]:
    """Spark also evaluates the filters of tables that it may broadcast."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.usefixtures("_larger_than_a_broadcast")
class TestPushedDown:
    """The plan shows the parts of a query that are pushed down; Spark evaluates the rest."""

    def test_columns_and_filters_are_pushed_down(self, spark: SparkSession, numbers: Path) -> None:
        frame = load(spark, numbers, **NUMBERS)
        text = plan(frame.where("a > 5 and s like 'row 1%' and h + 1 > 3").select("s"))
        assert "[columns: s, h]" in text or "[columns: h, s]" in text, text
        assert "pushed filters: " in text
        assert "a > 5" in text
        # Spark evaluates the filter that only it supports.
        assert "Filter " in text
        whole = plan(frame.where("a > 5").select("s"))
        assert "Filter " not in whole, whole
        assert "[columns: s]" in whole

    def test_counts_are_pushed_down(self, spark: SparkSession, numbers: Path) -> None:
        frame = load(spark, numbers, **NUMBERS)
        counted = frame.groupBy().count()
        assert "pushed aggregates: count(*)" in plan(counted)
        assert counted.collect() == [(3000,)]
        assert frame.where("a >= 2990").count() == 10
        assert frame.where("h + 1 > 3 and a < 10").count() == 5
        assert frame.where("a < 0").count() == 0

    def test_limits_are_pushed_down(self, spark: SparkSession, numbers: Path) -> None:
        frame = load(spark, numbers, **NUMBERS, split_bytes="4k")
        assert len(frame.limit(7).collect()) == 7
        assert frame.where("a >= 100").limit(2).count() == 2
        assert "pushed limit: 7" in plan(frame.limit(7))


def test_a_join_selects_partitions_at_run_time(spark: SparkSession, tmp_path: Path) -> None:
    schema = "id bigint, customer string, quantity int, price decimal(10,2), discount double, "
    schema += "sold_at timestamp, paid boolean, channel varchar(12)"
    sales = load(spark, WAREHOUSE / "sales", schema=schema, serde="binary")
    days = spark.sql("select date'2014-01-02' as day, 1 as wanted union all select date'2014-01-01', 0")
    days.write.parquet(str(tmp_path / "days"))
    days = spark.read.parquet(str(tmp_path / "days"))
    joined = sales.join(F.broadcast(days.where("wanted = 1")), F.expr("dt = day")).select("id")
    assert "RuntimeFilters: [dynamicpruning" in plan(joined)
    expected = sales.where("dt = date'2014-01-02'").select("id").collect()
    # The second run has its own partition values.
    for _ in range(2):
        assert sorted(joined.collect()) == sorted(expected)


def test_paths_are_tables(spark: SparkSession) -> None:
    rows = cf.open(ORC).count()
    assert spark.sql(f"select count(*) from coldframe.`{ORC}`").collect() == [(rows,)]
    assert spark.table(f"coldframe.`{ORC}`").count() == rows


def test_a_killed_task_leaks_nothing(spark: SparkSession, numbers: Path) -> None:
    frame = load(spark, numbers, **NUMBERS, batch_rows="50")
    for _ in range(5):
        with pytest.raises(Exception, match="ends in the middle"):
            frame.selectExpr("if(a = 777, raise_error('ends in the middle'), a)").write.format("noop").mode(
                "overwrite"
            ).save()
        assert held(spark) == [0, 0]
    # A limit ends the tasks early.
    assert len(frame.take(3)) == 3


def test_read_accepts_python_values(spark: SparkSession, numbers: Path) -> None:
    files = [numbers / "0.rc", numbers / "2.rc"]
    frame = coldframe.spark.read(
        spark, files, columns=["h", "a"], filter="a >= 2950", split_bytes=8192, **NUMBERS
    )
    assert "coldframe" in plan(frame)
    assert frame.columns == ["h", "a"]
    assert sorted(row.a for row in frame.collect()) == list(range(2950, 3000))


def test_the_python_source_writes_to_stores_that_hadoop_lacks(spark: SparkSession) -> None:
    refused = "option as" if HAS_PYTHON_SOURCE else r"UnsupportedError: .*writing .*needs Spark 4\.1"
    with pytest.raises(Exception, match=refused):
        spark.range(3).write.format("coldframe").mode("append").save("http://127.0.0.1:9/at/all")


def test_a_builder_keeps_its_jars_and_extensions() -> None:
    builder = SparkSession.Builder().config("spark.jars", "other.jar").config("spark.sql.extensions", "x.Y")
    made = coldframe.spark.session(coldframe.spark.session(builder), hive_tables=True)._options
    assert made["spark.jars"] == f"other.jar,{coldframe.spark.jar()}"
    assert made["spark.sql.extensions"] == "x.Y,io.coldframe.spark.Extensions"


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="a JVM's mapped files are listed on Linux only"
)
def test_the_native_library_leaves_no_file(spark: SparkSession, numbers: Path) -> None:
    """A killed executor could not remove the file."""
    assert load(spark, numbers, **NUMBERS).count() == 3000
    assert spark._jvm is not None
    java = spark._jvm.java.lang
    maps = Path(f"/proc/{java.ProcessHandle.current().pid()}/maps").read_text()
    folder = java.System.getProperty("java.io.tmpdir")
    ours = [line for line in maps.splitlines() if f" {folder}/coldframe-" in line]
    assert ours
    assert all(line.endswith(".so (deleted)") for line in ours), ours
