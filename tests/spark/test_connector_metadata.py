"""The connector for the JVM: answers from metadata, metrics and statistics. Spark's own ORC reader is the
reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_data import NUMBERS, held

import coldframe as cf
from coldframe.spark.connector import is_loaded

ROWS = 40_000


@pytest.fixture(scope="module", autouse=True)
def _connector(spark: SparkSession) -> Iterator[None]:
    if not is_loaded(spark):
        pytest.skip("no jar of the connector here (make jar): not tried")
    adaptive = spark.conf.get("spark.sql.adaptive.enabled")
    # Only a plan that is not adaptive has the metrics in its own nodes.
    spark.conf.set("spark.sql.adaptive.enabled", False)
    # Spark also evaluates the filters of tables that it may broadcast.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.adaptive.enabled", str(adaptive))
    assert held(spark) == [0, 0]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ORC files written by Spark, with several stripes each, in four partition folders."""
    path = tmp_path_factory.mktemp("metadata") / "table"
    rows = spark.range(ROWS).selectExpr(
        "cast(id % 100 - 50 as tinyint) t",
        "cast(id % 30000 - 100 as smallint) m",
        "cast(if(id % 7 = 0, null, id) as int) i",
        "id * 1000003 - 5 b",
        "id % 2 = 0 o",
        "date_add(date'1969-06-01', cast(id / 100 as int)) d",
        "concat('v', id) s",
        "if(id = 9, double('NaN'), id / 7d) x",
        "cast(id / 100 as decimal(9,2)) c",
        "cast(null as int) n",
        "cast(id / 10000 as int) part",
    )
    write = rows.repartition(4, "part").sortWithinPartitions("b").write.partitionBy("part")
    write.option("orc.stripe.size", 16384).option("orc.compress", "NONE").orc(str(path))
    return path


@pytest.fixture(scope="module")
def nested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nested") / "table"
    inner = "named_struct('x', id, 'y', if(id % 3 = 0, null, concat('y', id)))"
    listed = "array(named_struct('p', id * 2, 'q', if(id % 2 = 0, null, 'q')))"
    mapped = "map('k', named_struct('u', id, 'v', uuid()))"
    missing = "if(id % 4 = 0, null, named_struct('n', cast(id as int), 'o', 1))"
    fields = f"'a', cast(id as int), 'b', uuid(), 'deep', {inner}, 'l', {listed}, 'm', {mapped}"
    fields += f", 'missing', {missing}"
    rows = spark.range(5000).selectExpr("id", f"if(id % 10 = 9, null, named_struct({fields})) s")
    rows.coalesce(2).write.orc(str(path))
    return path


def scan(frame: DataFrame) -> Any:
    """The scan in a frame's plan."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    assert leaves.size() == 1
    return leaves.apply(0)


def counts(frame: DataFrame) -> dict[str, int]:
    """The metrics of a frame's scan after a run."""
    frame.collect()
    metrics = scan(frame).metrics()
    names = ["Rows", "Splits", "Units", "UnitsPruned", "RowsDecoded", "Bytes"]
    return {name: int(metrics.apply(f"coldframe{name}").value()) for name in names}


ENDS = [f"{end}({name})" for name in ("t", "m", "i", "b", "o", "d", "n", "part") for end in ("min", "max")]
ALL = ["count(*)", *ENDS, "count(i)", "count(n)", "count(s)"]


class TestAggregates:
    @pytest.mark.parametrize(
        "where",
        [
            "true",
            "part = 2",
            "part in (1, 3)",
            "part = 99",
            "d >= date'1970-01-01'",
            "t > 3 and part < 2",
            "i is null",
        ],
    )
    def test_rows_equal_those_of_sparks_reader(self, spark: SparkSession, table: Path, where: str) -> None:
        own = spark.read.format("coldframe").load(str(table)).where(where).selectExpr(*ALL)
        assert f"pushed aggregates: {', '.join(ALL)}]" in scan(own).toString()
        assert own.collect() == spark.read.orc(str(table)).where(where).selectExpr(*ALL).collect()

    def test_aggregates_come_from_metadata_without_decoding(self, spark: SparkSession, table: Path) -> None:
        frame = spark.read.format("coldframe").load(str(table))
        ends = frame.where("part <> 1").selectExpr("min(b)", "max(d)", "count(i)", "count(*)")
        done = counts(ends)
        assert (done["Units"], done["RowsDecoded"], done["Rows"]) == (0, 0, 30_000)
        # Metadata may truncate texts, so they are decoded.
        texts = frame.selectExpr("min(s)", "max(s)", "max(b)")
        assert counts(texts)["RowsDecoded"] == ROWS
        assert texts.collect() == [("v0", "v9999", (ROWS - 1) * 1000003 - 5)]

    def test_files_answered_from_metadata_are_not_split(
        self, spark: SparkSession, table: Path, tmp_path: Path
    ) -> None:
        def tasks(frame: DataFrame) -> int:
            number: int = scan(frame).inputRDD().getNumPartitions()
            return number

        loaded = spark.read.format("coldframe").option("split_bytes", "16k").load(str(table))
        assert tasks(loaded) >= 8
        for asked in (["count(*)"], ["min(b)", "count(i)"], ["count(*)", "max(d)"]):
            known = loaded.where("part > 0").selectExpr(*asked)
            assert (tasks(known), counts(known)["Rows"]) == (3, 30_000)
        whole = spark.read.format("coldframe").load(str(table)).selectExpr("count(*)")
        assert tasks(whole) == 1
        for decoded in (loaded.selectExpr("max(s)"), loaded.where("t > 0").selectExpr("count(*)")):
            assert tasks(decoded) > 1
        # Only the first file's metadata have bounds, so the second file's rows are read.
        for name in ("a.orc", "b.redfile"):
            ids = pa.table({"b": pa.array(range(-5, 995), pa.int64())})
            cf.write(ids, tmp_path / name, format=name.partition(".")[2])
        mixed = [str(tmp_path / "a.orc"), str(tmp_path / "b.redfile")]
        ends = spark.read.format("coldframe").load(mixed).selectExpr("count(b)", "min(b)", "max(b)")
        # Decoded rows are counted in the first run: a second run reuses its shuffle, and decodes nothing.
        assert counts(ends)["RowsDecoded"] == 1000
        assert ends.collect() == [(2000, -5, 994)]

    @pytest.mark.parametrize(
        "asked", ["min(x)", "max(c)", "sum(i)", "count(distinct t)", "min(i + 1)", "count(*), avg(i)"]
    )
    def test_spark_computes_aggregates_that_may_differ(
        self, spark: SparkSession, table: Path, asked: str
    ) -> None:
        columns = asked.split(", ")
        own = spark.read.format("coldframe").load(str(table)).selectExpr(*columns)
        assert "pushed aggregates" not in scan(own).toString()
        assert str(own.collect()) == str(spark.read.orc(str(table)).selectExpr(*columns).collect())

    def test_spark_computes_grouped_aggregates(self, spark: SparkSession, table: Path) -> None:
        own = spark.read.format("coldframe").load(str(table)).groupBy("part").agg({"b": "max"})
        assert "pushed aggregates" not in scan(own).toString()
        assert sorted(own.collect()) == [(part, (part * 10_000 + 9999) * 1000003 - 5) for part in range(4)]

    def test_each_use_has_its_own_aggregates(self, spark: SparkSession, table: Path) -> None:
        frame = spark.read.format("coldframe").load(str(table))
        frame.createOrReplaceTempView("parts")
        query = "select max(i) from parts where part = 0"
        both = f"{query} union all select max(i) from parts where part = 1 union all select min(i) from parts"
        assert [row[0] for row in spark.sql(both).collect()] == [9999, 19_998, 1]
        assert frame.selectExpr("max(i)").collect() == [(ROWS - 1,)]
        assert frame.where("i = 5").selectExpr("max(i)", "count(*)").collect() == [(5, 1)]

    def test_formats_without_statistics_are_decoded(self, spark: SparkSession, numbers: Path) -> None:
        frame = spark.read.format("coldframe").options(**NUMBERS, split_bytes="4k").load(str(numbers))
        asked = frame.selectExpr("min(a)", "max(a)", "max(s)", "count(h)")
        assert "pushed aggregates" in scan(asked).toString()
        assert asked.collect() == [(0, 2999, "row 999", 3000)]

    def test_lost_rows_do_not_count(self, spark: SparkSession, table: Path, tmp_path: Path) -> None:
        rows = spark.read.orc(str(table)).select("b", "s")
        rows.coalesce(1).write.option("orc.stripe.size", 16384).option("orc.compress", "ZLIB").orc(
            str(tmp_path / "whole")
        )
        whole = bytearray(next((tmp_path / "whole").glob("*.orc")).read_bytes())
        for at in range(len(whole) // 4, len(whole) // 2):
            whole[at] ^= 0x55
        (tmp_path / "damaged.orc").write_bytes(whole)
        frame = (
            spark.read.format("coldframe").option("mode", "DROPMALFORMED").load(str(tmp_path / "damaged.orc"))
        )
        left = [row.b for row in frame.collect()]
        assert len(left) < ROWS
        assert frame.selectExpr("count(b)", "min(b)", "max(b)").collect() == [
            (len(left), min(left), max(left))
        ]


class TestTop:
    """The first rows in an order: Spark sorts only rows that metadata do not exclude."""

    @pytest.mark.parametrize(
        ("order", "limit"),
        [
            ("b", 5),
            ("b desc", 12_000),
            ("i", 5),
            ("i nulls last", 5),
            ("i desc", 6000),
            ("i desc nulls first", 5),
            ("d desc, i", 150),
            ("part desc, t, b", 7),
        ],
    )
    def test_rows_equal_those_of_sparks_reader(
        self, spark: SparkSession, table: Path, order: str, limit: int
    ) -> None:
        results = []
        for source in ("coldframe", "orc"):
            frame = spark.read.format(source).load(str(table)).selectExpr("b", "i", "d", "t", "part")
            frame.createOrReplaceTempView("rows")
            first = spark.sql(f"select * from rows order by {order}, b limit {limit}")
            if source == "coldframe":
                assert f"[pushed top: {limit} by {order.split()[0].rstrip(',')} " in scan(first).toString()
            results.append(first.collect())
        assert results[0] == results[1]
        assert len(results[0]) == limit

    def test_excluded_rows_are_not_decoded(self, spark: SparkSession, table: Path) -> None:
        frame = spark.read.format("coldframe").load(str(table))
        last = frame.orderBy(F.desc("b")).limit(3)
        done = counts(last)
        assert [row.part for row in last.collect()] == [3, 3, 3]
        assert done["RowsDecoded"] <= ROWS / 4
        assert done["Rows"] <= ROWS / 4
        paged = frame.orderBy("b").offset(2).limit(2) if hasattr(frame, "offset") else frame.limit(0)
        assert [row.b for row in paged.collect()] in ([2 * 1000003 - 5, 3 * 1000003 - 5], [])

    @pytest.mark.parametrize(
        ("order", "where", "options"),
        [
            ("x", "true", {}),
            ("s", "true", {}),
            ("b + 1", "true", {}),
            ("b", "i > 5", {}),
            ("b", "true", {"mode": "DROPMALFORMED"}),
        ],
    )
    def test_spark_sorts_without_metadata(
        self, spark: SparkSession, table: Path, order: str, where: str, options: dict[str, str]
    ) -> None:
        frame = spark.read.format("coldframe").options(**options).load(str(table)).where(where)
        own = frame.orderBy(F.expr(order)).limit(3)
        assert "pushed top" not in scan(own).toString()
        reference = spark.read.orc(str(table)).where(where).orderBy(F.expr(order)).limit(3)
        assert [row.b for row in own.collect()] == [row.b for row in reference.collect()]


class TestMetrics:
    def test_a_scan_reports_its_metrics(self, spark: SparkSession, table: Path) -> None:
        frame = spark.read.format("coldframe").load(str(table))
        done = counts(frame)
        assert (done["Rows"], done["RowsDecoded"], done["UnitsPruned"]) == (ROWS, ROWS, 0)
        assert done["Units"] > done["Splits"] == 4
        size = sum(file.stat().st_size for file in table.rglob("*.orc"))
        assert size * 0.9 < done["Bytes"] < size * 1.5
        selected = counts(frame.where(f"b = {1000003 * 12345 - 5}").select("b"))
        assert (selected["Rows"], selected["Units"]) == (1, 1)
        assert selected["RowsDecoded"] < ROWS / 4
        assert selected["UnitsPruned"] == done["Units"] - 1
        # With several tasks, the driver opens the files, and gives no task to stripes that cannot match.
        several = spark.read.format("coldframe").option("split_bytes", "64k").load(str(table))
        known = counts(several.where(f"b = {1000003 * 12345 - 5}").select("b"))
        assert (known["Units"], known["Splits"]) == (1, 1)
        assert known["UnitsPruned"] == done["Units"] - 1
        assert selected["Bytes"] < done["Bytes"] / 4
        # A second query in the session has its own counts.
        assert counts(frame.where("part = 1").select("t"))["Rows"] == 10_000

    def test_excluded_stripes_get_no_task(self, spark: SparkSession, table: Path) -> None:
        frame = spark.read.format("coldframe").option("split_bytes", "16k").load(str(table))
        assert counts(frame)["Splits"] >= 8
        selected = counts(frame.where(f"b = {1000003 * 12345 - 5}"))
        assert (selected["Rows"], selected["Splits"], selected["Units"]) == (1, 1, 1)
        last = frame.orderBy(F.desc("b")).limit(3)
        assert counts(last)["Splits"] == 1
        assert [row.s for row in last.collect()] == ["v39999", "v39998", "v39997"]
        assert frame.where("b < -5").collect() == []
        assert frame.where("b < -5").agg(F.count("*"), F.max("s")).collect() == [(0, None)]


class TestRuntimeFilters:
    def test_the_values_of_a_join_prune_stripes(
        self, spark: SparkSession, table: Path, tmp_path: Path
    ) -> None:
        wanted = "select cast(id * 1000003 - 5 as bigint) k, id w from range(0, 40000, 1000)"
        spark.sql(wanted).write.parquet(str(tmp_path / "wanted"))
        few = F.broadcast(spark.read.parquet(str(tmp_path / "wanted")).where("w in (3000, 31000, null)"))
        frame = spark.read.format("coldframe").load(str(table))
        joined = frame.join(few, F.expr("b = k")).select("i", "s", "w")
        assert "RuntimeFilters: [dynamicpruning" in joined._jdf.queryExecution().executedPlan().toString()
        expected = [(3000, "v3000", 3000), (31_000, "v31000", 31_000)]
        # Each run of the query has its own values.
        for _ in range(2):
            assert sorted(joined.collect()) == expected
        others = F.broadcast(spark.read.parquet(str(tmp_path / "wanted")).where("w = 8000"))
        both = joined.union(frame.join(others, F.expr("b = k")).select("i", "s", "w"))
        assert sorted(both.collect()) == [expected[0], (8000, "v8000", 8000), expected[1]]
        leaves = joined._jdf.queryExecution().executedPlan().collectLeaves()
        nodes = [leaves.apply(at) for at in range(leaves.size())]
        own = next(leaf for leaf in nodes if leaf.metrics().contains("coldframeUnits"))
        assert int(own.metrics().apply("coldframeRows").value()) <= 4, "expected two rows in each of two runs"
        assert int(own.metrics().apply("coldframeUnits").value()) <= 4

    def test_an_outer_join_keeps_rows_without_a_match(
        self, spark: SparkSession, table: Path, tmp_path: Path
    ) -> None:
        """An outer join keeps rows that the other side lacks."""
        spark.sql("select 'v7' k union all select null").write.parquet(str(tmp_path / "keys"))
        keys = F.broadcast(spark.read.parquet(str(tmp_path / "keys")).where("k is null or k > ''"))
        frame = spark.read.format("coldframe").load(str(table)).select("s", "i")
        assert frame.join(keys, F.expr("s = k"), "left").count() == ROWS
        assert frame.join(keys, F.expr("s = k"), "leftsemi").collect() == [("v7", None)]
        assert frame.join(keys, F.expr("s = k"), "leftanti").count() == ROWS - 1


class TestFieldsOfStructs:
    QUERIES = (
        "s.a",
        "s.deep.y",
        "s.l.p",
        "s.l[0].q, s.a",
        "s.m['k'].u",
        "s.deep",
        "id, s.missing.n",
        "sum(s.deep.x), count(s), count(s.b)",
    )

    @pytest.mark.parametrize("columns", QUERIES)
    @pytest.mark.parametrize(
        "where", ["true", "s.b is not null and id > 7", "s.deep.x % 5 = 1 and s.a < 4000"]
    )
    def test_rows_equal_those_of_sparks_reader(
        self, spark: SparkSession, nested: Path, columns: str, where: str
    ) -> None:
        asked = f"select {columns} from {{}}.`{nested}` where {where}"
        spark.sql(f"create or replace temporary view nested using coldframe options (path '{nested}')")
        own = spark.sql(f"select {columns} from nested where {where}").collect()
        assert sorted(map(str, own)) == sorted(map(str, spark.sql(asked.format("orc")).collect()))

    def test_other_fields_are_not_read(self, spark: SparkSession, nested: Path) -> None:
        frame = spark.read.format("coldframe").load(str(nested))
        whole, field = counts(frame.select("s"))["Bytes"], counts(frame.select("s.a"))["Bytes"]
        assert field < whole / 4, (field, whole)


class TestStatistics:
    @pytest.fixture(autouse=True)
    def _by_cost(self, spark: SparkSession) -> Iterator[None]:
        spark.conf.set("spark.sql.cbo.enabled", True)
        yield
        spark.conf.unset("spark.sql.cbo.enabled")

    def of(self, frame: DataFrame) -> Any:
        return frame._jdf.queryExecution().optimizedPlan().stats()

    def test_the_row_count_of_many_files_is_known(self, spark: SparkSession, table: Path) -> None:
        frame = spark.read.format("coldframe").load(str(table))
        assert self.of(frame).rowCount().toString() == f"Some({ROWS})"
        assert self.of(frame.where("part = 2")).rowCount().toString() == "Some(10000)"
        assert self.of(frame.where("b > 3")).rowCount().toString() == "None"
        spark.conf.set("spark.sql.cbo.enabled", False)
        assert self.of(frame.select("b")).rowCount().toString() == "None"

    def test_spark_estimates_conditions_on_timestamp_ntz(self, spark: SparkSession, tmp_path: Path) -> None:
        if spark.version.startswith("3.3"):
            pytest.skip("no timestamp_ntz before Spark 3.4")
        path = str(tmp_path / "t")
        frame = spark.range(3).selectExpr("id", "timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(id) n")
        frame.write.format("orc").save(path)
        spark.read.format("coldframe").load(path).createOrReplaceTempView("times")
        asked = "from times a where exists (select 1 from times b where a.id = b.id and b.n = "
        asked = f"select id {asked} timestamp_ntz'2020-01-02 00:00:00')"
        assert [row.id for row in spark.sql(asked).collect()] == [1]

    def test_statistics_of_columns_are_known(self, spark: SparkSession, table: Path) -> None:
        if spark.version.startswith("3.3"):
            pytest.skip("Spark asks for them from 3.4 on")
        frame = spark.read.format("coldframe").load(str(table)).where("part < 3")
        known = self.of(frame.select("t", "i", "o", "s", "n", "part", "d")).attributeStats().toSeq()
        bounds = {}
        for at in range(known.size()):
            attribute, stat = known.apply(at)._1(), known.apply(at)._2()
            bounds[attribute.name()] = [
                stat.min().toString(),
                stat.max().toString(),
                stat.nullCount().toString(),
                stat.distinctCount().toString(),
            ]
        nulls = len(range(0, 30_000, 7))
        assert bounds == {
            "t": ["Some(-50)", "Some(49)", "Some(0)", "Some(100)"],
            "i": ["Some(1)", "Some(29999)", f"Some({nulls})", f"Some({30_000 - nulls})"],
            "o": ["Some(false)", "Some(true)", "Some(0)", "Some(2)"],
            "s": ["None", "None", "Some(0)", "None"],
            "n": ["None", "None", "Some(30000)", "None"],
            "part": ["Some(0)", "Some(2)", "Some(0)", "Some(3)"],
            "d": ["Some(-214)", "Some(85)", "Some(0)", "Some(300)"],
        }
