"""Whether memory stays flat over many queries of the Spark connector in one session.

    python benches/spark_leaks.py [--queries 1000]

After each tenth of the queries, prints the resident memory of the JVM, its heap after a collection, and the
objects of the native library; then the classes whose objects have grown most since the third tenth. The first
three tenths are a warm-up, in which the JVM compiles and mimalloc fills its segments. Exits 1 if, after that,
resident memory or heap grow by more than 5 %, or the connector's classes get more objects.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.session import start_session

ROWS = 50_000
GROWTH = 0.05
OURS = 100_000
"""Tolerated growth of the connector's objects in bytes: tables that Spark has not released yet."""
HELD = "java_method('io.coldframe.spark.ColdframeSource', 'held')"


def make(folder: Path) -> None:
    """Two tables of texts and numbers."""
    for part in range(2):
        ids = range(part * ROWS, (part + 1) * ROWS)
        table = pa.table({"a": pa.array(ids, pa.int64()), "s": [f"row {i % 997}" for i in ids]})
        cf.write(table, folder / f"{part}.orc", format="orc", codec="zlib")


def query(frame: DataFrame, number: int) -> None:
    """One of five kinds of queries; the last fails in the middle."""
    kind = number % 5
    if kind == 0:
        assert frame.count() == 2 * ROWS
    elif kind == 1:
        assert frame.where(f"a = {number}").collect()[0].s == f"row {number % 997}"
    elif kind == 2:
        assert frame.groupBy("s").count().count() == 997
    elif kind == 3:
        assert len(frame.take(5)) == 5
    else:
        try:
            frame.selectExpr(f"if(a = {number}, raise_error('as asked'), a)").write.format("noop").mode(
                "overwrite"
            ).save()
        except Exception as error:
            assert "as asked" in str(error)


def memory(spark: SparkSession, jvm: psutil.Process) -> tuple[float, float, str]:
    """Megabytes of the process and of its heap after a collection, and the library's objects."""
    java = spark._jvm.java.lang  # type: ignore[union-attr]
    for _ in range(3):
        java.System.gc()
    runtime = java.Runtime.getRuntime()
    heap = runtime.totalMemory() - runtime.freeMemory()
    held = spark.sql(f"select {HELD}").collect()[0][0].split(": ")[1]
    return jvm.memory_info().rss / 1e6, heap / 1e6, held


def classes(jvm: psutil.Process) -> dict[str, int]:
    """Bytes of the objects that live after a full collection, by class."""
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return {}
    jcmd_run = subprocess.run(
        [jcmd, str(jvm.pid), "GC.class_histogram"], capture_output=True, text=True, check=True
    )
    lines = (line.split() for line in jcmd_run.stdout.splitlines())
    return {parts[3]: int(parts[2]) for parts in lines if len(parts) >= 4 and parts[0][:-1].isdigit()}


def grown_most(before: dict[str, int], after: dict[str, int]) -> list[tuple[int, str]]:
    """The growth of each class in bytes, largest first."""
    gains = [(size - before.get(name, 0), name) for name, size in after.items()]
    return sorted(gains, reverse=True)


def main() -> int:
    """Runs the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    queries = parser.parse_args().queries
    conf = {
        "spark.jars": coldframe.spark.jar(),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        # Spark keeps data of queries for its web page, which is no leak of ours.
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        # Spark 4's pools start a thread with buffers for each stage until they are full.
        "spark.sql.shuffleExchange.maxThreadThreshold": "8",
        "spark.sql.resultQueryStage.maxThreadThreshold": "8",
        # A heap of fixed size, so that the process does not grow with it.
        "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch -XX:+UseSerialGC",
    }
    spark = start_session("local[2]", conf=conf)
    jvm = next(child for child in psutil.Process().children(recursive=True) if "java" in child.name())
    print("| queries | resident, MB | heap, MB | held |\n|---|---|---|---|")
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for number in range(1, queries + 1):
            # Opens the table anew, as long-running programs do.
            query(spark.read.format("coldframe").option("batch_rows", 4096).load(folder), number)
            if number % max(1, queries // 10) == 0:
                measured.append(memory(spark, jvm))
                resident, heap, held = measured[-1]
                print(f"| {number} | {resident:.0f} | {heap:.0f} | {held} |", flush=True)
                if len(measured) == 3:
                    before = classes(jvm)
        gains = grown_most(before, classes(jvm))
    spark.stop()
    print(*(f"{gain / 1e3:+9.0f} kB {name}" for gain, name in gains[:12]), sep="\n")
    ours = sum(gain for gain, name in gains if "coldframe" in name)
    print(f"{ours / 1e3:+9.0f} kB of the connector's own classes")
    after = measured[2:]
    grown = [max(sample[at] for sample in after) / after[0][at] - 1 for at in (0, 1)]
    print(f"grown by at most {grown[0]:.1%} (resident) and {grown[1]:.1%} (heap)")
    return int(any(ratio > GROWTH for ratio in grown) or ours > OURS)


if __name__ == "__main__":
    sys.exit(main())
