"""The connector for the JVM reads what Spark's own ORC reader reads, from the place where Spark reads it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

sys.path.append(str(Path(__file__).parents[1] / "python"))

from buckets import Bucket, Handler

pytestmark = pytest.mark.usefixtures("connector")


def put(rows: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.table(rows), str(path))


def both(read: Callable[[str], DataFrame], *columns: str) -> list[str]:
    """The rows of both readers, which must be the same."""
    answers = [
        sorted(map(repr, map(tuple, read(by).selectExpr(*columns).collect()))) for by in ("orc", "coldframe")
    ]
    assert answers[0] == answers[1]
    return answers[1]


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


def test_a_users_schema_is_schema_on_read(spark: SparkSession, tmp_path: Path) -> None:
    inner = [{"x": 1, "y": "q"}, None, {"x": 3, "y": None}]
    put({"a": pa.array([1, None, 3], pa.int32()), "St": inner}, tmp_path / "t/_store=001/a.orc")
    put({"b": ["new"], "a": [2], "more": [0]}, tmp_path / "t/_store=007/b.orc")
    put({"a": [99]}, tmp_path / "t/_store=007/c.orc._COPYING_")

    def read(by: str) -> DataFrame:
        schema = (
            "A bigint NOT NULL, b string NOT NULL, st struct<X: bigint, y: string, z: int>, _store string"
        )
        return spark.read.schema(schema).format(by).load(str(tmp_path / "t"))

    assert len(both(read, "A", "b", "st", "_store")) == 4
    assert both(lambda by: read(by).where("_store = '007' and b is not null"), "A", "b") == ["(2, 'new')"]
    assert both(lambda by: read(by).where("A is null or st.x > 2 or st.z = 1"), "A", "length(b)")
    assert both(read, "count(A)", "min(A)", "max(A)", "count(b)", "max(_store)") == ["(3, 1, 3, 1, '007')"]
    assert both(lambda by: read(by).where("st is not null"), "st.z", "st.y")


def test_types_that_spark_notes_in_its_files(spark: SparkSession, tmp_path: Path) -> None:
    made = """timestamp_ntz'2020-01-01 00:00:00.5' n, interval '1 02' day to hour d,
              interval '1-2' year to month y, named_struct('n', timestamp_ntz'0001-02-03 04:05:06') s,
              7L plain"""
    if spark.version < "3.4":
        pytest.skip("no timestamp without time zone before Spark 3.4")
    spark.sql(f"select {made}").coalesce(1).write.orc(str(tmp_path / "t"))

    def read(by: str) -> DataFrame:
        return spark.read.format(by).load(str(tmp_path / "t"))

    # PySpark has no values for intervals of months.
    assert read("coldframe").schema.json() == read("orc").schema.json()
    both(read, "n", "cast(d as string)", "cast(y as string)", "s", "plain")
    where = "n = timestamp_ntz'2020-01-01 00:00:00.5' and y >= interval '1-2' year to month"
    both(lambda by: read(by).where(where), "n", "s.n", "plain")
    both(read, "min(n)", "cast(max(y) as string)", "cast(max(d) as string)", "min(plain)")


@contextmanager
def jvm_zone(spark: SparkSession, name: str) -> Iterator[None]:
    """Gives the JVM a default time zone, as `-Duser.timezone` does."""
    jvm: Any = spark.sparkContext._jvm
    own = jvm.java.util.TimeZone.getDefault()
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(name))
    try:
        yield
    finally:
        jvm.java.util.TimeZone.setDefault(own)


MOMENTS = (
    "0001-01-02 00:00:00", "1500-02-28 23:59:59.999999", "1582-10-04 12:00:00", "1883-11-18 17:00:00",
    "1893-04-01 00:00:00", "1899-12-31 23:00:00", "1919-06-01 00:00:00", "1969-12-31 23:59:59.0005",
    "2021-03-14 07:30:00", "2021-11-07 05:30:00", "2021-11-07 06:30:00", "2021-03-28 01:30:00",
    "2021-10-31 00:30:00", "2021-10-31 01:30:00", "2021-04-03 14:45:00", "9999-12-30 00:00:00",
)  # fmt: skip
"""Clocks are set forward and back, time zones begin, calendars end."""
ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "GMT+05:30")


@pytest.mark.parametrize("writer", ZONES[1:3])
def test_timestamps_are_instants_in_the_zone_of_the_jvm(
    spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    path = str(tmp_path / "t")
    moments = ", ".join(f"timestamp'{moment} UTC'" for moment in MOMENTS)
    with jvm_zone(spark, writer):
        made = spark.sql(f"select explode(array({moments})) t").selectExpr("t", "array(t) l")
        made.coalesce(1).write.option("orc.bloom.filter.columns", "t").orc(path)

    def read(by: str) -> DataFrame:
        return spark.read.format(by).load(path)

    for zone in ZONES:
        with jvm_zone(spark, zone):
            assert read("coldframe").schema.json() == read("orc").schema.json()
            rows = both(read, "unix_micros(t)", "unix_micros(l[0])")
            assert len(rows) == len(MOMENTS)
            both(read, "unix_micros(min(t))", "unix_micros(max(t))", "count(t)")
            # With filters pushed down, Spark's reader does not find values of the year 1.
            micros = next(row[1:].split(",")[0] for row in rows if row.startswith("(16"))
            where = f"t = timestamp_micros({micros})"
            assert set(both(lambda by, where=where: read(by).where(where), "unix_micros(t)")) == {
                f"({micros},)"
            }


def test_timestamps_are_read_as_wall_clocks_if_the_user_says_so(spark: SparkSession, tmp_path: Path) -> None:
    if spark.version < "3.4":
        pytest.skip("no timestamp without time zone before Spark 3.4")
    path = str(tmp_path / "t")
    with jvm_zone(spark, "America/New_York"):
        spark.sql("select timestamp'2021-03-14 07:30:00 UTC' t, 1 i").write.orc(path)

    def shown(schema: str, *columns: str) -> list[Any]:
        frame = spark.read.schema(schema).format("coldframe").load(path)
        return [tuple(row) for row in frame.selectExpr(*columns).collect()]

    with jvm_zone(spark, "Asia/Kolkata"):
        assert shown("T timestamp_ntz, i int", "cast(T as string)", "i") == [("2021-03-14 03:30:00", 1)]
        assert shown("T timestamp", "unix_micros(t)") == [(1615672800000000,)]


def test_filters_find_timestamps_of_the_first_year(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader loses them where it pushes filters down."""
    path = str(tmp_path / "t")
    spark.sql("select timestamp'0001-01-02 00:00:00' t, 1 i").write.orc(path)
    where = "t < timestamp'0001-01-03 00:00:00' and t = timestamp'0001-01-02 00:00:00'"
    with settings(spark, {"spark.sql.orc.filterPushdown": "false"}):
        assert both(lambda by: spark.read.format(by).load(path).where(where), "i") == ["(1,)"]
    assert spark.read.format("coldframe").load(path).where(where).count() == 1


def test_wall_clocks_and_instants_in_one_folder_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """As by Spark's own reader: one column cannot be both."""
    if spark.version < "3.4":
        pytest.skip("no timestamp without time zone before Spark 3.4")
    path = str(tmp_path / "t")
    for kind in ("timestamp", "timestamp_ntz"):
        spark.sql(f"select {kind}'2021-03-14 07:30:00' t").write.mode("append").orc(path)
    for schema in ("t timestamp", "t timestamp_ntz"):
        for by, words in (("orc", "ORC_TYPE_CAST"), ("coldframe", r"SchemaError: .*column 't'")):
            with pytest.raises(Exception, match=words):
                spark.read.schema(schema).format(by).load(path).collect()


def test_an_executor_in_another_time_zone_refuses_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("select timestamp'2021-03-14 07:30:00' t, 1 i").write.orc(str(tmp_path / "t"))
    frame = spark.read.format("coldframe").load(str(tmp_path / "t"))
    planned = [frame.select(name)._jdf.queryExecution().toRdd() for name in ("t", "i")]
    with jvm_zone(spark, "Asia/Kolkata"):
        with pytest.raises(Exception, match=r"UnsupportedError: .* that of an executor in Asia/Kolkata"):
            planned[0].count()
        assert planned[1].count() == 1


def test_rows_know_their_files(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a b", "c"):
        put({"name": [name] * 3}, tmp_path / f"t/{name}.orc")
    columns = ("name", "input_file_name()", "input_file_block_start() >= 0")
    rows = both(lambda by: spark.read.format(by).load(str(tmp_path / "t")), *columns)
    assert len(rows) == 6
    assert "a%20b.orc" in rows[0]


METADATA = (
    "file_path",
    "file_name",
    "file_size",
    "file_modification_time",
    "file_block_start",
    "file_block_length",
)


def test_rows_have_the_metadata_of_their_files(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("p=1/a b", "p=2/c"):
        put({"name": [name] * 3}, tmp_path / f"t/{name}.orc")

    def read(by: str) -> DataFrame:
        return spark.read.format(by).load(str(tmp_path / "t"))

    columns = [f"_metadata.{name}" for name in (METADATA if spark.version >= "3.5" else METADATA[:4])]
    assert len(both(read, *columns, "name", "p")) == 6
    both(lambda by: read(by).where("_metadata.file_name = 'c.orc' and p = 2"), "name")
    both(read, "_metadata.file_name")
    both(lambda by: read(by).orderBy("_metadata.file_size", "name").limit(4), "_metadata.file_name")
    both(lambda by: read(by).groupBy("_metadata.file_path").count(), "*")
    assert read("coldframe").columns == ["name", "p"]
    put({"_metadata": [1]}, tmp_path / "own/a.orc")
    both(lambda by: spark.read.format(by).load(str(tmp_path / "own")), "_metadata")


def test_filters_of_a_small_table_prune_the_other_side(spark: SparkSession, tmp_path: Path) -> None:
    for p in range(4):
        put({"v": [p] * 3}, tmp_path / f"fact/p={p}/a.orc")
    put({"k": [0, 1, 2], "name": ["a", "b", None]}, tmp_path / "small/a.orc")

    def read(by: str, where: str) -> DataFrame:
        fact, small = (spark.read.format(by).load(str(tmp_path / name)) for name in ("fact", "small"))
        return fact.join(small.where(where), fact["p"] == small["k"])

    for where in ("name = 'b'", "name like 'a%' or k > 1", "k in (0, 1)"):
        both(partial(read, where=where), "v", "name")
        plan = str(read("coldframe", where)._jdf.queryExecution().executedPlan().toString())
        assert "dynamicpruning" in plan
        assert "BroadcastHashJoin" in plan
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        small = spark.read.format("coldframe").load(str(tmp_path / "small")).where("k > 0")
        assert "Filter" not in str(small._jdf.queryExecution().optimizedPlan().toString())
        assert small.count() == 2


def test_settings_of_other_stores_are_refused(spark: SparkSession) -> None:
    for setting, url in (
        ("fs.azure.account.key.a.dfs.core.windows.net", "abfss://c@a.dfs.core.windows.net/t"),
        ("fs.gs.auth.type", "gs://b/t"),
    ):
        with settings(spark, {setting: "x"}), pytest.raises(Exception, match=f"UnsupportedError.*{setting}"):
            spark.read.format("coldframe").load(url)


def test_collations_are_evaluated_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    if spark.version < "4":
        pytest.skip("no collations before Spark 4")
    put({"s": ["b", "C", "a", "D"]}, tmp_path / "t/a.orc")
    frame = spark.read.schema("s string collate UTF8_LCASE").format("coldframe").load(str(tmp_path / "t"))
    assert frame.selectExpr("min(s)", "max(s)", "count(s)").collect() == [("a", "D", 4)]
    assert frame.where("s > 'B'").count() == 2
    assert [row.s for row in frame.orderBy("s").limit(3).collect()] == ["a", "b", "C"]


def test_a_path_lies_where_the_session_says(spark: SparkSession, tmp_path: Path) -> None:
    put({"v": ["cluster"]}, tmp_path / "cluster/p=1/a.orc")
    put({"v": ["local"]}, tmp_path / "local/p=1/a.orc")
    mount = {f"fs.viewfs.mounttable.vc.link.{tmp_path}/local": (tmp_path / "cluster").as_uri()}
    with settings(spark, {"fs.defaultFS": "viewfs://vc/", **mount}):
        for path in ("local", "local/p=*", "local/p=1/a.orc"):
            whole = f"{tmp_path}/{path}"
            assert both(partial(load, spark, whole), "v") == ["('cluster',)"]
        several = [f"{tmp_path}/local/p=1", f"viewfs://vc{tmp_path}/local/p=1"]
        rows = spark.read.format("coldframe").load(several).select("v").collect()
        assert [row.v for row in rows] == ["cluster", "cluster"]
        with pytest.raises(Exception, match="PATH_NOT_FOUND"):
            spark.read.format("coldframe").load(f"{tmp_path}/local/nothing")
        with pytest.raises(Exception, match="above the mounts"):
            spark.read.format("coldframe").load(str(tmp_path))


def load(spark: SparkSession, path: str, by: str) -> DataFrame:
    return spark.read.format(by).load(path)


def test_s3a_has_the_settings_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    put({"v": [1, 2, 3]}, tmp_path / "a.orc")
    signed: list[str] = []
    with Bucket() as bucket:
        bucket.objects["t/a.orc"] = (tmp_path / "a.orc").read_bytes()

        def note(request: Handler) -> bool:
            signed.append(request.headers.get("Authorization", ""))
            return False

        bucket.answer = note
        threading.Thread(target=bucket.serve_forever, daemon=True).start()
        own = {
            "access.key": "SPARKSKEY",
            "secret.key": "secret",
            "endpoint": f"127.0.0.1:{bucket.server_port}",
            "endpoint.region": "here",
            "connection.ssl.enabled": "false",
        }
        whole = {f"fs.s3a.bucket.data.{name}": value for name, value in own.items()}
        provider = "fs.s3a.aws.credentials.provider"
        reader = spark.read.format("coldframe").option("storage_options.timeout", "20")
        with settings(spark, {"fs.s3a.access.key": "OTHER", **whole}):
            assert reader.load("s3a://data/t").count() == 3
            assert signed
            assert all("SPARKSKEY" in each and "/here/s3/" in each for each in signed)
            with pytest.raises(Exception, match="different settings"):
                reader.load(["s3a://data/t", "s3a://elsewhere/t"])
            signed.clear()
            with settings(spark, {provider: "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}):
                assert reader.load("s3a://data/t").count() == 3
            assert set(signed) == {""}
            unknown = settings(spark, {provider: "org.example.Ours"})
            refused = pytest.raises(
                Exception, match=r"UnsupportedError.*credentials\.provider = org\.example"
            )
            with unknown, refused:
                reader.load("s3a://data/t")
        bucket.shutdown()


MISTAKES: dict[str, tuple[str, Callable[[SparkSession, str, Path], Any]]] = {
    "no such path": ("PATH_NOT_FOUND", lambda s, by, at: s.read.format(by).load(f"{at}/none")),
    "one of two": ("PATH_NOT_FOUND", lambda s, by, at: s.read.format(by).load([f"{at}/t", f"{at}/none"])),
    "no match": ("PATH_NOT_FOUND", lambda s, by, at: s.read.format(by).load(f"{at}/none*")),
    "no such path, columns": (
        "PATH_NOT_FOUND",
        lambda s, by, at: s.read.schema("a int").format(by).load(f"{at}/none").count(),
    ),
    "no file": ("UNABLE_TO_INFER_SCHEMA", lambda s, by, at: s.read.format(by).load(f"{at}/empty")),
    "no path": ("UNABLE_TO_INFER_SCHEMA", lambda s, by, at: s.read.format(by).load()),
    "a column twice": (
        "COLUMN_ALREADY_EXISTS",
        lambda s, by, at: s.read.schema("a int, s struct<b:int,B:int>").format(by).load(f"{at}/t").count(),
    ),
    "a type of no file": (
        "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
        lambda s, by, at: s.read.schema("a array<interval>").format(by).load(f"{at}/t").count(),
    ),
    "a type to write": (
        "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
        lambda s, by, at: s.sql("select null a").write.format(by).save(f"{at}/w"),
    ),
    "no time": (
        "modified",
        lambda s, by, at: s.read.format(by).option("modifiedAfter", "zz").load(f"{at}/t"),
    ),
    "an empty path": ("IllegalArgument", lambda s, by, at: s.read.format(by).load("")),
    "no switch": (
        "IllegalArgument",
        lambda s, by, at: s.read.format(by).option("recursiveFileLookup", "zz").load(f"{at}/t").count(),
    ),
    "no target": ("IllegalArgument", lambda s, by, at: s.range(1).write.format(by).save()),
}
"""What Spark's readers and writers say to a mistake: the condition, or the kind of the error."""


def test_mistakes_are_spark_errors(spark: SparkSession, tmp_path: Path) -> None:
    put({"a": [1]}, tmp_path / "t/a.orc")
    (tmp_path / "empty").mkdir()
    for mistake, (condition, make) in MISTAKES.items():
        errors = []
        for by in ("orc", "coldframe"):
            with pytest.raises(Exception, match=r"\S") as caught:
                make(spark, by, tmp_path)
            errors.append(caught.value)
            assert condition in f"{type(caught.value).__name__}: {caught.value}", (mistake, by)
        assert type(errors[0]) is type(errors[1]), (mistake, errors)
