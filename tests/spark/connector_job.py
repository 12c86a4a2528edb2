"""Reads by the connector for the JVM on a cluster whose executors have no Python."""

from __future__ import annotations

import json
import sys

from spark_data import NUMBERS

import coldframe.spark


def main(numbers: str) -> None:
    """Prints what was read."""
    builder = coldframe.spark.session().master("local-cluster[2,1,1024]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    frame = spark.read.format("coldframe").options(**NUMBERS, split_bytes="4k").load(numbers)
    facts = {
        "rows": frame.count(),
        "sum": frame.selectExpr("sum(a)").collect()[0][0],
        "found": [list(row) for row in frame.where("a = 77").select("s", "h").collect()],
        "executors": spark._jsc.sc().getExecutorMemoryStatus().size() - 1,
    }
    spark.stop()
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:2])
