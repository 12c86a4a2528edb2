"""Reads tables of a Hive metastore twice: with Spark's own reader, and with the connector."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from spark_data import comparable

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import EXTENSIONS

COLUMNARS = "org.apache.hadoop.hive.serde2.columnar"
VALUES = (
    "select cast(id - 3 as tinyint) t, cast(id * 9 as smallint) m, cast(if(id = 3, null, id) as int) i, "
    "id * 1000000007 b, id % 2 = 0 o, cast(id / 3 as float) f, id / 7d d, "
    "element_at(array('', 'a b', 'ä|\\t,', '\\\\N', null, 'null'), cast(id % 6 + 1 as int)) s, "
    "cast(concat('x', id) as binary) y, date_add(date'1969-12-30', cast(id as int)) w, "
    "cast(id / 8 - 1 as decimal(12,3)) c, "
    "timestamp'2014-03-30 02:30:00.123456' + make_interval(0, 0, 0, cast(id as int)) at, "
    "array(id, null) l, map('k', id) q, named_struct('x', id, 'y', array('p', null)) r from range(40)"
)
COLUMNS = (
    "t tinyint, m smallint, i int, b bigint, o boolean, f float, d double, s string, y binary, w date, "
    "c decimal(12,3), at timestamp, l array<bigint>, q map<string,bigint>, r struct<x:bigint,y:array<string>>"
)


def make(spark: SparkSession) -> None:
    """The tables, written by Hive's own classes."""
    stored = "stored as rcfile"
    spark.sql(f"create table texts ({COLUMNS}) row format serde '{COLUMNARS}.ColumnarSerDe' {stored}")
    binary = f"row format serde '{COLUMNARS}.LazyBinaryColumnarSerDe' {stored}"
    spark.sql(f"create table bytes ({COLUMNS}) {binary}")
    spark.sql(
        f"create table odd (s string, l array<int>) row format serde '{COLUMNARS}.ColumnarSerDe' with "
        f"serdeproperties ('field.delim'='|', 'serialization.null.format'='nil', 'collection.delim'=';') "
        f"{stored}"
    )
    spark.sql("insert into odd values ('nil', array(1, 2)), (null, null), ('a|b;c', array())")
    for name in ("texts", "bytes"):
        spark.sql(f"insert into {name} {VALUES}")
    spark.sql(f"create table days (v int, s string) partitioned by (dt date, n int, p string) {binary}")
    spark.sql("set hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(
        "insert into days select cast(id as int), concat('v', id), "
        "date_add(date'2014-01-01', cast(id % 3 as int)), "
        "cast(id % 2 as int), concat('a/b=', id % 4) from range(60)"
    )
    spark.sql(f"create table nulls (v int) partitioned by (p string) {stored}")
    spark.sql("insert into nulls values (1, null), (2, 'x')")
    spark.sql(f"create table wider (v int) {stored}")
    spark.sql("insert into wider values (1), (2)")
    spark.sql("alter table wider add columns (more string)")
    spark.sql("insert into wider values (3, 'x')")
    spark.sql(f"create table altered (v int) partitioned by (p int) {stored}")
    spark.sql("insert into altered partition (p = 1) values (1)")
    spark.sql("alter table altered add columns (more string)")
    spark.sql("insert into altered partition (p = 2) values (2, 'x')")
    spark.sql(f"create table chars (c char(5), v varchar(3)) {stored}")
    spark.sql("insert into chars values ('a', 'abc')")
    spark.sql(f"create table nothing (v int) {stored}")
    make_latin(spark, binary)
    make_orc(spark)


def make_latin(spark: SparkSession, binary: str) -> None:
    """Tables with texts that are not UTF-8, and one whose own properties describe the SerDe."""
    texts = f"row format serde '{COLUMNARS}.ColumnarSerDe' stored as rcfile"
    for name, stored in (("latin_texts", texts), ("latin_bytes", binary), ("orc_latin", "stored as orc")):
        spark.sql(f"create table {name} (i int, s string, r struct<s:string>) {stored}")
        spark.sql(
            f"insert into {name} select id, cast(unhex(element_at(array('636166E9', '636166E8', '6F6B', '', "
            "'C3A9'), cast(id as int))) as string), named_struct('s', cast(unhex('E9') as string)) "
            "from range(1, 6)"
        )
    spark.sql(f"create table raw (t string, n string) {texts}")
    spark.sql("insert into raw values ('2014/01/01 00:00:00', '-'), ('2014-01-02 00:00:00', 'x')")
    spark.sql(
        f"create external table given (t timestamp, n string) row format serde '{COLUMNARS}.ColumnarSerDe' "
        "with serdeproperties ('serialization.null.format' = 'x') stored as rcfile "
        f"location '{located(spark, 'raw')}' "
        "tblproperties ('timestamp.formats' = 'yyyy/MM/dd HH:mm:ss', 'serialization.null.format' = '-')"
    )


def make_orc(spark: SparkSession) -> None:
    """Tables of ORC files; some files have other columns than their table."""
    spark.sql(f"create table orcs ({COLUMNS}) stored as orc")
    spark.sql(f"insert into orcs {VALUES}")
    spark.sql("create table orc_days (v int, s string) partitioned by (dt date, n int) stored as orc")
    spark.sql(
        "insert into orc_days select cast(id as int), concat('v', id), "
        "date_add(date'2014-01-01', cast(id % 3 as int)), cast(id % 2 as int) from range(60)"
    )
    spark.sql("create table orc_wider (v int) stored as orc")
    spark.sql("insert into orc_wider values (1), (2)")
    spark.sql("alter table orc_wider add columns (more string)")
    spark.sql("insert into orc_wider values (3, 'x')")
    spark.sql("create table orc_altered (v int) partitioned by (p int) stored as orc")
    spark.sql("insert into orc_altered partition (p = 1) values (1)")
    spark.sql("alter table orc_altered add columns (more string)")
    spark.sql("insert into orc_altered partition (p = 1) values (2, 'y')")
    spark.sql("insert into orc_altered partition (p = 2) values (3, 'x')")
    spark.sql("create table orc_mixed (v bigint, s string, more double) stored as orc")
    spark.sql("insert into orc_mixed values (5, 'named', 0.5)")
    # As Hive before 2.0 wrote files. Some readers apply the first file's columns to all files.
    old = pa.table({"_col0": pa.array([1, None, 3], pa.int32()), "_col1": ["a", "b", None]})
    for name in ("000000_0", "part-z"):
        cf.write(old, located(spark, "orc_mixed") / name, format="orc")
    spark.sql(
        "create table orc_narrow (t tinyint, i int, f float, c decimal(5,2), w varchar(9)) stored as orc"
    )
    spark.sql(
        "insert into orc_narrow values (-1, 2147483647, 0.1, -123.45, 'w '), (null, null, null, null, null)"
    )
    spark.sql("create table orc_later (v int) stored as orc")
    for name, kind in (("0", pa.int32()), ("1", pa.int64())):
        cf.write(pa.table({"v": pa.array([7], kind)}), located(spark, "orc_later") / name, format="orc")
    spark.sql("create table orc_chars (c char(5)) stored as orc")
    spark.sql("insert into orc_chars values ('a')")
    for name, columns, of in (
        ("orc_widened", "t int, i bigint, f double, c decimal(9,3), w string, more int", "orc_narrow"),
        ("orc_narrowed", "t tinyint, i smallint", "orc_narrow"),
        ("orc_text", "c string", "orc_chars"),
    ):
        where = located(spark, of)
        spark.sql(f"create external table {name} ({columns}) stored as orc location '{where}'")


def located(spark: SparkSession, table: str) -> Path:
    """The folder of a table."""
    return Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")) / table


LATIN = """select i, hex(s), hex(r.s), s = 'ok', s > 'cafz', s like 'ca%', s in ('ok', '')
           from {} where s <> 'zz' union all
           select count(distinct s), hex(min(s)), hex(max(s)), null, null, null, null
           from {} where s >= 'caf'"""
QUERIES = {
    "latin texts": LATIN.replace("{}", "latin_texts"),
    "latin bytes": LATIN.replace("{}", "latin_bytes"),
    "orc latin": LATIN.replace("{}", "orc_latin"),
    "given": "select cast(t as string), n from given",
    "texts": "select * from texts",
    "bytes": "select * from bytes",
    "filters": "select b, at, s from bytes where i > 5 and s is not null and at > timestamp'2014-04-10'",
    "odd": "select * from odd",
    "days": "select * from days",
    "one day": "select count(*), sum(v), max(p) from days where dt = date'2014-01-02' and n = 1",
    "join": "select a.v, b.s from days a join days b on a.v = b.v + 1 and a.dt <> b.dt where a.n = 1",
    "days twice": "select v, 'a' from days where n = 1 union all "
    "select v, 'b' from days where dt > date'2014-01-01'",
    "no days": "select * from days where p = 'nothing'",
    "no day": "select count(v), max(s) from days where p = 'nothing'",
    "some day": "select v, p from days where n in (0, 7) and p like 'a/b=%' and v % 7 < 3 "
    "and dt = date'2014-01-03'",
    "nulls": "select * from nulls",
    "no nulls": "select v, p from nulls where p = 'x'",
    "wider": "select * from wider",
    "written": "select * from nothing union all select v from wider",
    "altered": "select * from altered",
    "not altered": "select v, more from altered where p > 1",
    "chars": "select * from chars",
    "nothing": "select * from nothing",
    "orcs": "select * from orcs",
    "orc fields": "select r.y, at, c from orcs where i > 5 and s is not null",
    "orc days": "select * from orc_days where dt > date'2014-01-01' and v % 5 < 3",
    "orc day": "select count(*), max(v), max(s) from orc_days where n = 1 and dt = date'2014-01-02'",
    "orc changed": "select v, more, null from orc_wider union all "
    "select v, s, more from orc_mixed where v < 9 union all "
    "select i, w, f from orc_widened where t < 300 and more is null",
    "orc widened": "select *, i > 3000000000 from orc_widened",
    "orc counts": "select count(more), count(v), min(v), max(v) from orc_mixed where v > 1",
    "orc altered": "select * from orc_altered",
    "orc others": "select c, 0 from orc_chars union all select c, 1 from orc_text union all "
    "select string(t), i from orc_narrowed union all select string(v), 2 from orc_later",
    "names": "select distinct input_file_name() like '%days%', v from days where v < 3",
}


def answers_of(spark: SparkSession, setting: str, names: str = "") -> dict[str, Any]:
    """The rows of each query whose name begins with `names`, and whether the connector read them."""
    spark.conf.set("spark.coldframe.hive", setting)
    answers = {}
    for name, sql in QUERIES.items():
        if not name.startswith(names):
            continue
        frame = spark.sql(sql)
        answers[name] = [connector_scans(frame), frame.schema.json(), sorted(comparable(frame.collect()))]
    return answers


def connector_scans(frame: DataFrame) -> int:
    """The number of scans by the connector."""
    return str(frame._jdf.queryExecution().optimizedPlan().toString()).count("RelationV2[")


def main(work: str, metastore: str | None = None) -> None:
    """Prints the rows that each reader returned. `metastore`: the URL of a server."""
    where = {"spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:tables;create=true"}
    if metastore:
        where = {"spark.hadoop.hive.metastore.uris": metastore}
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(Path(work) / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": coldframe.spark.jar(),
        "spark.sql.extensions": EXTENSIONS,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={work} -Duser.timezone=UTC",
        **where,
        "spark.sql.session.timeZone": "America/New_York",
        # Derby does not accept every filter of Spark.
        "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
    }
    spark = start_session("local[2]", conf=conf)
    make(spark)
    answers = {"spark": answers_of(spark, "off"), "coldframe": answers_of(spark, "on")}
    spark.conf.set("spark.coldframe.hive.orc", "on")
    answers["orc"] = answers_of(spark, "on", "orc")
    # With Hive's classes: Spark's own reader is turned off.
    spark.conf.set("spark.sql.hive.convertMetastoreOrc", "false")
    answers["hive"] = answers_of(spark, "off", "orc")
    answers["orc by Hive"] = answers_of(spark, "on", "orc")
    spark.conf.unset("spark.sql.hive.convertMetastoreOrc")
    # Spark's readers return instants by the JVM's time zone, which is here another one than the writer's.
    jvm: Any = spark.sparkContext._jvm
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("Europe/Berlin"))
    for setting in ("off", "on"):
        zoned = [answers_of(spark, setting, name) for name in ("orcs", "orc fields", "texts")]
        answers[f"zoned {setting}"] = {name: answer for each in zoned for name, answer in each.items()}
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    spark.conf.unset("spark.coldframe.hive.orc")
    frame, unused = spark.table("days"), spark.table("days")
    before = frame.count()
    spark.sql("insert into days partition (dt = date'2015-01-01', n = 5, p = 'x') values (99, 'late')")
    answers["late"] = [before, frame.count(), unused.count(), connector_scans(frame)]
    both = frame.where("n = 1").select("v").union(frame.where("n = 5").select("v"))
    answers["reused"] = [
        connector_scans(both),
        both.count(),
        frame.where("n = 5").collect()[0].s,
        frame.count(),
    ]
    spark.table("wider").cache().count()
    cached = (
        "InMemoryRelation"
        in spark.sql("select v from wider")._jdf.queryExecution().withCachedData().toString()
    )
    spark.sql("insert into wider values (4, 'y')")
    answers["cached"] = [cached, spark.table("wider").count()]
    spark.stop()
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
