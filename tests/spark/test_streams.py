"""`readStream` of new files reads each file once, also across restarts and kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_data import DATA, HAS_PYTHON_SOURCE, damaged, survivors

import coldframe as cf

pytestmark = pytest.mark.usefixtures("connector")

RCFILE = {"schema": "a bigint, s string", "serde": "binary"}
KILLS = int(os.environ.get("COLDFRAME_STREAM_KILLS", "2"))
SEED = int(os.environ.get("COLDFRAME_SEED", "17"))


def put(folder: Path, number: int, modified: float | None = None) -> Path:
    """Moves a complete file of ten rows into place."""
    folder.mkdir(parents=True, exist_ok=True)
    path, made = folder / f"{number:04d}.rc", folder / f".{number}.tmp"
    ids = range(number * 10, number * 10 + 10)
    rows = pa.table({"a": pa.array(ids, pa.int64()), "s": [f"row {i}" for i in ids]})
    cf.write(rows, made, format="rcfile", serde="binary")
    if modified is not None:
        os.utime(made, (modified, modified))
    made.rename(path)
    return path


class Stream:
    """A query over a folder, restarted several times with the same checkpoint."""

    def __init__(self, spark: SparkSession, source: Path, checkpoint: Path, **options: str) -> None:
        self.spark = spark
        self.source = source
        self.checkpoint = checkpoint
        self.options = {**RCFILE, **options}

    def frame(self) -> DataFrame:
        reader = self.spark.readStream.format("coldframe").options(**self.options)
        return reader.load(str(self.source))

    def run(self, *, once: bool = False) -> dict[int, list[int]]:
        """Reads all present files; returns the values of `a` by batch number."""
        batches: dict[int, list[int]] = {}

        def take(frame: DataFrame, number: int) -> None:
            values = (row.a for row in frame.select("a").collect())
            batches[number] = sorted(values, key=lambda a: (a is None, a))

        trigger = {"once": True} if once else {"availableNow": True}
        query = (
            self.frame()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger)
            .start()
        )
        query.awaitTermination(300)
        assert query.exception() is None
        return batches

    def offsets(self) -> list[dict[str, Any]]:
        """The source's entries in Spark's log, by batch."""
        files = sorted(self.checkpoint.glob("offsets/[0-9]*"), key=lambda path: int(path.name))
        return [json.loads(path.read_text().splitlines()[-1]) for path in files]


def rows(*numbers: int) -> list[int]:
    """The values of `a` in some files."""
    return sorted(number * 10 + row for number in numbers for row in range(10))


def test_each_file_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path / "in", tmp_path / "checkpoint")
    for number in range(3):
        put(stream.source, number, modified=1000)
    assert stream.run() == {0: rows(0, 1, 2)}
    assert stream.run() == {}, "no file is new"
    put(stream.source, 3, modified=10)  # older than what was read
    put(stream.source, 4, modified=1000)
    put(stream.source, 2)  # read before, and written again
    assert stream.run() == {1: rows(3, 4)}
    # A file of another name is another file.
    (stream.source / "0003.rc").rename(stream.source / "0009.rc")
    assert stream.run() == {2: rows(3)}
    assert stream.offsets() == [{"entry": 0}, {"entry": 1}, {"entry": 2}]


def test_limits_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    sizes = [put(source, number, modified=1000 - number).stat().st_size for number in range(5)]
    by_files = Stream(spark, source, tmp_path / "files", maxFilesPerTrigger="2")
    # The oldest files come first.
    assert by_files.run() == {0: rows(4, 3), 1: rows(2, 1), 2: rows(0)}
    by_bytes = Stream(spark, source, tmp_path / "bytes", maxBytesPerTrigger=str(max(sizes) * 3))
    assert by_bytes.run() == {0: rows(4, 3, 2), 1: rows(1, 0)}
    tiny = Stream(spark, source, tmp_path / "tiny", maxBytesPerTrigger="1")
    assert len(tiny.run()) == 5
    # The trigger that runs once has no limit.
    once = Stream(spark, source, tmp_path / "once", maxFilesPerTrigger="1")
    assert once.run(once=True) == {0: rows(0, 1, 2, 3, 4)}


def test_a_folder_may_appear_after_the_stream_has_started(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path / "later", tmp_path / "checkpoint")
    reader = spark.readStream.format("coldframe").option("serde", "binary").schema("a bigint, s string")
    stream.frame = lambda: reader.load(str(stream.source))  # type: ignore[method-assign]
    assert stream.run() == {}
    put(stream.source, 1)
    (stream.source / "_half-written.rc").write_bytes(b"RCF")
    assert stream.run() == {0: rows(1)}


def test_rows_of_a_stream_know_their_files(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", 1)
    put(tmp_path / "in", 2)
    stream = Stream(spark, tmp_path / "in", tmp_path / "checkpoint")
    files = stream.frame().where("_metadata.file_size > 1")
    numbers = files.selectExpr("cast(substring(_metadata.file_name, 1, 4) as int) a")
    stream.frame = lambda: numbers  # type: ignore[method-assign]
    assert stream.run() == {0: [1] * 10 + [2] * 10}


def test_folders_columns_and_filters_apply_to_streams(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    put(source / "p=1", 1)
    put(source / "p=x", 2)
    stream = Stream(
        spark,
        source,
        tmp_path / "checkpoint",
        columns="a,p",
        filter="a >= 15 and a < 25",
        maxFilesPerTrigger="1",
    )
    assert [field.dataType.simpleString() for field in stream.frame().schema] == ["bigint", "string"]
    assert stream.run() == {0: [15, 16, 17, 18, 19], 1: [20, 21, 22, 23, 24]}


def test_damage_is_skipped_with_the_option(spark: SparkSession, tmp_path: Path) -> None:
    entry = next(item for item in damaged() if item["file"] == "flipped_byte_zlib.rc")
    source = tmp_path / "in"
    source.mkdir()
    shutil.copy(DATA / "damaged" / entry["file"], source)
    options = {"schema": "a bigint, name string", "serde": "binary"}
    batches = Stream(
        spark, source, tmp_path / "c", mode="DROPMALFORMED", damage=str(tmp_path / "d"), **options
    ).run()
    assert len(batches[0]) == survivors(entry)
    assert spark.read.json(str(tmp_path / "d")).count() == 1
    with pytest.raises(Exception, match=r"flipped_byte_zlib"):
        Stream(spark, source, tmp_path / "c2", **options).run()


def test_a_batch_that_spark_did_not_log(spark: SparkSession, tmp_path: Path) -> None:
    """The driver dies between our log entry and Spark's: the batch is the same, despite new files."""
    stream = Stream(spark, tmp_path / "in", tmp_path / "checkpoint", maxFilesPerTrigger="1")
    for number in range(3):
        put(stream.source, number, modified=1000 + number)
    before = stream.run()
    for log in ("offsets", "commits"):
        for file in (stream.checkpoint / log).iterdir():
            if file.name.strip(".").startswith("2"):
                file.unlink()
    put(stream.source, 7, modified=5)
    assert stream.run() == {2: before[2], 3: rows(7)}


def test_a_long_log_is_compacted_at_intervals(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path / "in", tmp_path / "checkpoint", maxFilesPerTrigger="1")
    for number in range(12):
        put(stream.source, number, modified=1000 + number)
    assert stream.run() == {number: rows(number) for number in range(12)}
    log = stream.checkpoint / "sources" / "0" / "coldframe"
    assert sorted(path.name for path in log.iterdir() if not path.name.startswith(".")) == [
        "10",
        "11",
        "9.all",
    ]
    put(stream.source, 12)
    assert stream.run() == {12: rows(12)}


def test_an_impossible_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", 1)
    with pytest.raises(Exception, match="option maxFilesPerTrigger: expected a positive number"):
        Stream(spark, tmp_path / "in", tmp_path / "c", maxFilesPerTrigger="none").run()
    folder = tmp_path / "acid" / "delta_1_1"
    folder.mkdir(parents=True)
    (folder / "bucket_00000").write_bytes(b"ORC")
    reader = spark.readStream.format("coldframe").schema("a bigint")
    acid = reader.load(str(tmp_path / "acid")).writeStream.format("noop").trigger(availableNow=True)
    query = acid.option("checkpointLocation", str(tmp_path / "k")).start()
    with pytest.raises(Exception, match="a stream needs a folder of files"):
        query.awaitTermination(300)
    if HAS_PYTHON_SOURCE:
        python = spark.readStream.format("coldframe_python").options(**RCFILE).load(str(tmp_path / "in"))
        query = python.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "p")).start()
        with pytest.raises(Exception, match="readStream with the Python source"):
            query.awaitTermination(300)


def test_kills_lose_nothing_and_repeat_nothing(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    job = [
        sys.executable,
        str(Path(__file__).with_name("stream_job.py")),
        str(source),
        str(target),
        str(checkpoint),
    ]
    rng = random.Random(SEED)
    written = 0
    for number in range(10):
        put(source, number)
        written += 1
    for _ in range(KILLS):
        for _ in range(5):
            put(source, written)
            written += 1
        batches = len(list(checkpoint.glob("offsets/[0-9]*")))
        process = subprocess.Popen(job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(checkpoint.glob("offsets/[0-9]*"))) <= batches:
            time.sleep(0.01)
        time.sleep(rng.random())
        for running in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
            running.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(job, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    counts = Counter(row.a for row in spark.read.parquet(str(target)).collect())
    assert counts == Counter(range(written * 10))
