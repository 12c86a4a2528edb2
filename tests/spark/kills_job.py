"""Reads with the connector on a cluster whose executors have no Python, cancels running queries, and prints
which resources are still open.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from spark_data import NUMBERS

import coldframe.spark

TIMES = 30
"""How often each file is read."""
HELD = "java_method('io.coldframe.spark.ColdframeSource', 'held')"


def start() -> SparkSession:
    """Two executors, each with one core."""
    builder = coldframe.spark.session().master("local-cluster[2,1,1024]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def held(spark: SparkSession) -> dict[int, str]:
    """The open tables, readers and batches of the native library, by executor process."""
    rows = spark.range(0, 32, 1, 32).selectExpr(f"{HELD} as report").distinct().collect()
    matches = (re.fullmatch(r"(\d+)@.*: (.*)", row.report) for row in rows)
    return {int(match[1]): match[2] for match in matches if match}


def is_running(spark: SparkSession) -> bool:
    """Whether any task runs."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)


def cancelled(spark: SparkSession, frame: DataFrame, number: int, rng: random.Random) -> bool:
    """Starts a query and cancels it; returns whether its tasks were still running then."""
    group, failed = f"query-{number}", []

    def run() -> None:
        # Half of the queries are interrupted; in the other half tasks notice the cancellation themselves.
        spark.sparkContext.setJobGroup(group, group, interruptOnCancel=number % 2 == 0)
        try:
            frame.write.format("noop").mode("overwrite").save()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() and not is_running(spark):
        time.sleep(0.005)
    time.sleep(rng.random() * 0.5)
    spark.sparkContext.cancelJobGroup(group)
    thread.join()
    while is_running(spark):
        time.sleep(0.01)
    return bool(failed)


def main(numbers: str, kills: str) -> None:
    """Prints the rows read, the number of cancelled queries, and the files left open."""
    spark, rng = start(), random.Random(23)
    few = spark.read.format("coldframe").options(**NUMBERS, split_bytes="4k").load(numbers)
    read = {
        "rows": few.count(),
        "sum": few.selectExpr("sum(a)").collect()[0][0],
        "row 77": [list(row) for row in few.where("a = 77").select("s", "h").collect()],
        "executors": spark._jsc.sc().getExecutorMemoryStatus().size() - 1,
    }
    files = sorted(map(str, Path(numbers).glob("*.rc"))) * TIMES
    frame = spark.read.format("coldframe").options(**NUMBERS, batch_rows="64", split_bytes="64k").load(files)
    asked = frame.selectExpr("count(s)", "sum(a)")
    expected = list(asked.collect()[0])
    killed = sum(cancelled(spark, frame, number, rng) for number in range(int(kills)))
    left = held(spark)
    opened = [
        file.path
        for pid in left
        for file in psutil.Process(pid).open_files()
        if file.path.startswith(numbers)
    ]
    # A lost executor only costs time.
    results: list[list[int]] = []
    thread = threading.Thread(target=lambda: results.append(list(asked.collect()[0])))
    thread.start()
    while thread.is_alive() and not is_running(spark):
        time.sleep(0.005)
    os.kill(next(iter(left)), signal.SIGKILL)
    thread.join()
    summary = {
        "read": read,
        "killed": killed,
        "executors": len(left),
        "held": sorted(set(left.values())),
        "opened": opened,
        "expected": expected,
        "after": list(asked.collect()[0]),
        "with a lost executor": results,
    }
    spark.stop()
    print(json.dumps(summary))


if __name__ == "__main__":
    main(*sys.argv[1:3])
