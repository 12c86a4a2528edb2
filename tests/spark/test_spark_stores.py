"""Spark on URLs: the store requests of planning and reading, and secrets in logs and plans."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.sink.destination import StoreDestination

sys.path.append(str(Path(__file__).parents[1] / "python"))

from buckets import Bucket
from servers import S3

FILES = 12


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    with Bucket() as running:
        for number in range(FILES):
            rows = pa.table({"n": pa.array(range(number * 100, number * 100 + 100), pa.int64())})
            cf.write(rows, tmp_path / "a.orc", format="orc")
            running.objects[f"t/p={number % 3}/{number:02}.orc"] = (tmp_path / "a.orc").read_bytes()
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def load(spark: SparkSession, bucket: Bucket, **options: str) -> DataFrame:
    reader = spark.read.format("coldframe_orc").options(**options)
    for name, value in {**bucket.options, "timeout": "20"}.items():
        reader = reader.option(f"storage_options.{name}", value)
    return reader.load("s3://data/t")


def counted(bucket: Bucket) -> tuple[int, Counter[str]]:
    """The number of list requests, and of requests for each object."""
    lists = sum("list-type=2" in request for request in bucket.asked)
    paths = (unquote(request.split()[1]) for request in bucket.asked if "list-type" not in request)
    objects = Counter(path.removeprefix("/data/") for path in paths)
    return lists, objects


def test_planning_lists_once_and_opens_one_file(spark: SparkSession, bucket: Bucket) -> None:
    frame = load(spark, bucket)
    lists, objects = counted(bucket)
    # Requests: a head and a list to see that the root is a folder, then the list of all its objects.
    assert lists == 2, bucket.asked
    assert objects.pop("t") == 1
    opened = [name for name in objects if name.endswith(".orc")]
    assert len(opened) == 1, "the columns come from a single file"
    assert objects[opened[0]] <= 2
    bucket.asked.clear()

    plan: Any = frame._jdf  # planning without running
    assert plan.rdd().getNumPartitions() >= 1
    lists, objects = counted(bucket)
    assert lists == 0
    assert set(objects) <= set(opened)
    bucket.asked.clear()

    assert frame.count() == 100 * FILES
    lists, objects = counted(bucket)
    assert lists == 0
    assert len(objects) == FILES
    # A small file takes a single request; the first file was opened for the plan as well.
    assert all(count <= 2 for name, count in objects.items() if name not in opened), objects


def test_sizes_come_from_the_listing(spark: SparkSession, bucket: Bucket) -> None:
    from coldframe._coldframe import plan_from_bytes
    from coldframe.spark.options import read_options
    from coldframe.spark.reader import ColdframeReader, open_dataset
    from coldframe.spark.types import to_spark_schema

    nested = {f"storage_options.{name}": value for name, value in bucket.options.items()}
    options = read_options({"path": "s3://data/t", "split_bytes": "1g", **nested}, "orc")
    files = open_dataset(options).found
    assert [known[0] for _, _, known in files if known] == [
        len(bucket.objects[name]) for name in sorted(bucket.objects)
    ]
    schema = to_spark_schema(pa.schema([("n", pa.int64())]))
    (partition,) = ColdframeReader(options, schema, files).partitions()
    splits = plan_from_bytes(partition.plan)  # type: ignore[attr-defined]
    assert len(splits) == FILES
    assert sum(split.weight or 0 for split in splits) == sum(map(len, bucket.objects.values()))


def test_dropmalformed_opens_nothing_twice(spark: SparkSession, bucket: Bucket) -> None:
    bad = "t/p=1/04.orc"
    bucket.objects[bad] = b"ORC" + bytes(5000)
    frame = load(spark, bucket, mode="DROPMALFORMED")
    bucket.asked.clear()
    assert frame.count() == 100 * (FILES - 1)
    lists, objects = counted(bucket)
    assert lists == 0
    first = min(objects)
    assert all(count == 1 for name, count in objects.items() if name != first), objects
    assert objects[bad] == 1


def test_a_migration_by_spark_logs_no_secret(tmp_path: Path) -> None:
    """Tasks in Spark workers read from a store and write to another, and Spark writes a log."""
    server = S3(tmp_path / "s3")
    events, conf = tmp_path / "events", tmp_path / "conf"
    events.mkdir()
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir {events.as_uri()}\n"
    )
    for number in range(4):
        rows = pa.table({"a": range(number * 10, number * 10 + 10)})
        cf.write(rows, f"s3://data/src/t/{number}", format="orc", storage_options=server.options)
    command = [sys.executable, "-m", "coldframe", "migrate", "s3://data/src", "s3a://data/dst"]
    for name, value in server.options.items():
        for end in ("source", "target"):
            command.append(f"--{end}-storage-option={name}={value}")
    done = subprocess.run(
        [*command, "--master=local[2]", "--json"],
        env={**os.environ, "SPARK_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["rows"] == 40
    assert report["target"] == "s3a://data/dst"
    destination = StoreDestination("s3a://data/dst", server.options)
    written = [destination.read(file.name).decode(errors="replace") for file in destination.list()]
    log = [path.read_text(errors="replace") for path in events.rglob("*") if path.is_file()]
    server.stop()
    assert any("SparkListenerTaskEnd" in text for text in log)
    assert not [text for text in [*written, *log, done.stdout, done.stderr] if server.SECRET in text]


def test_options_in_sql_are_hidden(spark: SparkSession) -> None:
    coldframe.spark.register(spark)
    coldframe.spark.register(spark)
    hiding = spark.conf.get("spark.sql.redaction.options.regex") or ""
    assert hiding.startswith("(?i)url|")
    assert hiding.count("storage_options") == 1
    secrets = {"storage_options.access_key_id": "id-of-a-key", "storage_options.account_key": "account-key"}
    secrets |= {"keys.pii": "5ec4e7", "storage_options": '{"access_key_id": "id-in-json"}'}
    options = ", ".join(f"'{name}' '{value}'" for name, value in {**secrets, "columns": "a,b"}.items())
    view = f"CREATE TEMPORARY VIEW hidden USING coldframe OPTIONS (path 's3://data/t', {options})"
    plan = spark.sql(f"EXPLAIN FORMATTED {view}").collect()[0][0]
    assert "columns -> a,b" in plan
    assert not [value for value in secrets.values() if value in plan]
    assert plan.count("redacted") == len(secrets)
