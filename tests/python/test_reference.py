"""Hive reads the files of coldframe, and coldframe reads the files of Hive. Spark's build of Hive is used.

Spark runs in a separate process, since a process can choose only once whether it uses Hive's catalog.
"""

from __future__ import annotations

import datetime as dt
import decimal
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from truth import difference

import coldframe as cf

pytest.importorskip("pyspark")


SERDES = {
    "binary": "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
    "text": "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe",
}
FORMAT = (
    "INPUTFORMAT 'org.apache.hadoop.hive.ql.io.RCFileInputFormat' "
    "OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.RCFileOutputFormat'"
)
CODEC_CLASSES = {
    "zlib": "org.apache.hadoop.io.compress.DefaultCodec",
    "gzip": "org.apache.hadoop.io.compress.GzipCodec",
    "snappy": "org.apache.hadoop.io.compress.SnappyCodec",
    "lz4": "org.apache.hadoop.io.compress.Lz4Codec",
}

SCHEMA = (
    "id bigint, n int, small smallint, tiny tinyint, flag boolean, f float, d double, s string, c char(5), "
    "v varchar(8), bytes binary, day date, at timestamp, amount decimal(12,3), large decimal(38,10), "
    "tags array<string>, scores map<string,int>, place struct<name:string,lat:double>, "
    "deep array<struct<a:int,b:array<bigint>>>"
)
ROWS = 500


def rows() -> pa.Table:
    """Values of each type of Spark's Hive, with nulls and extremes."""
    numbers = range(ROWS)

    def some(every: int, value: Any) -> list[Any]:
        return [None if i % every == 0 else value(i) for i in numbers]

    edges = [2**63 - 1, -(2**63), 0, -1, 127, -113, 128]
    seconds = dt.datetime(1970, 1, 1)
    epoch = dt.date(1970, 1, 1)
    text = ["plain", "Grüße", "日本語", "🦀 crab", "with\ttab", "x" * 300]
    point = pa.struct([("name", pa.string()), ("lat", pa.float64())])
    item = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int64()))])
    columns: dict[str, pa.Array] = {
        "id": pa.array([edges[i] if i < len(edges) else i * 7_777_777_777 for i in numbers], pa.int64()),
        "n": pa.array(some(7, lambda i: (-1) ** i * i * 4_000_000), pa.int32()),
        "small": pa.array(some(5, lambda i: i * 60 - 15000), pa.int16()),
        "tiny": pa.array(some(11, lambda i: i % 256 - 128), pa.int8()),
        "flag": pa.array(some(3, lambda i: i % 2 == 0), pa.bool_()),
        "f": pa.array(some(4, lambda i: i / 8 - 20), pa.float32()),
        "d": pa.array(some(6, lambda i: [1e300, -1e-300, i / 3, float("inf")][i % 4]), pa.float64()),
        "s": pa.array(some(9, lambda i: text[i % len(text)] + str(i % 3)), pa.string()),
        "c": pa.array(some(8, lambda i: f"{i % 100:5}".strip().ljust(5)), pa.string()),
        "v": pa.array(some(10, lambda i: f"v{i}"), pa.string()),
        "bytes": pa.array(some(13, lambda i: bytes([i % 256, 0, 255, 1])), pa.binary()),
        "day": pa.array(some(5, lambda i: epoch + dt.timedelta(days=i * 200 - 30_000)), pa.date32()),
        "at": pa.array(
            some(
                6, lambda i: seconds + dt.timedelta(days=i * 100 - 20_000, seconds=i, microseconds=i * 1001)
            ),
            pa.timestamp("us"),
        ),
        "amount": pa.array(
            some(7, lambda i: decimal.Decimal(i * 12345 - 10**6).scaleb(-3)), pa.decimal128(12, 3)
        ),
        "large": pa.array(
            some(12, lambda i: decimal.Decimal((-1) ** i * (10**37 + i)).scaleb(-10)), pa.decimal128(38, 10)
        ),
        "tags": pa.array(some(4, lambda i: [f"t{j}" for j in range(i % 4 + 1)]), pa.list_(pa.string())),
        "scores": pa.array(
            some(5, lambda i: [(f"k{j}", j * i) for j in range(i % 3 + 1)]), pa.map_(pa.string(), pa.int32())
        ),
        "place": pa.array(some(3, lambda i: {"name": f"p{i}", "lat": i / 4}), point),
        "deep": pa.array(some(6, lambda i: [{"a": i, "b": [i, None, -i]}] * (i % 2 + 1)), pa.list_(item)),
    }
    return pa.table(columns)


# --- in Spark's process ---


def session() -> Any:
    """Spark with Hive's catalog, in this process."""
    from pyspark.sql import SparkSession

    from coldframe.spark.java import find_java

    os.environ.setdefault("JAVA_HOME", str(find_java()))
    scratch = Path.cwd()
    builder: Any = SparkSession.builder
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Dderby.stream.error.file=" + os.devnull,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:reference;create=true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.enableHiveSupport().getOrCreate()


def start(folder: str) -> None:
    os.chdir(folder)
    os.environ["TZ"] = "UTC"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def create_table(spark: Any, folder: str, schema: str, serde: str) -> None:
    spark.sql("DROP TABLE IF EXISTS t")
    spark.sql(
        f"CREATE EXTERNAL TABLE t ({schema}) ROW FORMAT SERDE '{SERDES[serde]}' "
        f"STORED AS {FORMAT} LOCATION '{folder}'"
    )


def hive_reads(folder: str, schema: str, serde: str) -> pa.Table:
    """The rows that Spark's Hive reads from a folder."""
    spark = session()
    create_table(spark, folder, schema, serde)
    return spark.table("t").toArrow()


def hive_writes(parquet: str, folder: str, schema: str, serde: str, codec: str) -> None:
    """Writes the rows of a Parquet file as RCFiles."""
    spark = session()
    spark.read.parquet(parquet).createOrReplaceTempView("given")
    create_table(spark, folder, schema, serde)
    spark.sql(f"SET hive.exec.compress.output={str(codec in CODEC_CLASSES).lower()}")
    if codec in CODEC_CLASSES:
        spark.sql(f"SET mapreduce.output.fileoutputformat.compress.codec={CODEC_CLASSES[codec]}")
        spark.sql("SET mapreduce.output.fileoutputformat.compress.type=BLOCK")
    spark.sql("INSERT INTO t SELECT * FROM given")


# --- the tests ---


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    scratch = str(tmp_path_factory.mktemp("spark"))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=start, initargs=(scratch,)) as pool:
        yield pool


def assert_hive_reads(spark: Executor, folder: Path, serde: str, want: pa.Table) -> None:
    got = spark.submit(hive_reads, folder.as_uri(), SCHEMA, serde).result()
    assert difference(got.sort_by("id"), want.sort_by("id")) is None


@pytest.mark.parametrize("serde", sorted(SERDES))
@pytest.mark.parametrize(
    ("codec", "header"),
    [
        ("none", "RCF1"),
        ("none", "SEQ6"),
        ("zlib", "RCF1"),
        ("zlib", "SEQ6"),
        ("gzip", "RCF1"),
        ("snappy", "RCF1"),
        ("lz4", "SEQ6"),
    ],
)
def test_hive_reads_coldframe_files(
    spark: Executor, tmp_path: Path, serde: str, codec: str, header: str
) -> None:
    table = rows()
    written = cf.write(
        table,
        tmp_path / "000000_0",
        format="rcfile",
        serde=serde,
        schema=SCHEMA,
        codec=codec,
        header=header,
        record_interval=60,
        hive_version="2.3",
        timezone="UTC",
    )
    assert written["rows"] == ROWS
    assert_hive_reads(spark, tmp_path, serde, table)


def test_hive_reads_many_large_row_groups(spark: Executor, tmp_path: Path) -> None:
    """Several blocks of a framed codec, and sync markers at which splits start."""
    table = pa.concat_tables([rows()] * 40)
    table = table.set_column(0, "id", pa.array(range(table.num_rows), pa.int64()))
    cf.write(
        table,
        tmp_path / "000000_0",
        format="rcfile",
        serde="binary",
        schema=SCHEMA,
        codec="snappy",
        row_group_bytes=1 << 20,
        hive_version="2.3",
    )
    assert_hive_reads(spark, tmp_path, "binary", table)


@pytest.mark.parametrize("serde", sorted(SERDES))
@pytest.mark.parametrize("codec", ["none", "zlib", "gzip", "snappy", "lz4"])
def test_coldframe_reads_hive_files(spark: Executor, tmp_path: Path, serde: str, codec: str) -> None:
    table = rows()
    at = table.schema.get_field_index("at")
    instants = table.column(at).cast(pa.timestamp("us", "UTC"))
    pq.write_table(table.set_column(at, "at", instants), tmp_path / "given.parquet")
    folder = tmp_path / "table"
    parquet = (tmp_path / "given.parquet").as_uri()
    spark.submit(hive_writes, parquet, folder.as_uri(), SCHEMA, serde, codec).result()
    parts = [p for p in sorted(folder.iterdir()) if p.name.startswith("part-")]
    assert parts
    files = [cf.open(p, schema=SCHEMA, serde=serde, hive_version="2.3", timezone="UTC") for p in parts]
    assert {file.metadata["codec"] for file in files} == {CODEC_CLASSES.get(codec)}
    got = pa.concat_tables(file.read() for file in files)
    assert difference(got.sort_by("id"), table.sort_by("id")) is None
