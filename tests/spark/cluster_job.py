"""The driver process of `test_cluster`: SOURCE TARGET ARCHIVE."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa
from spark_data import NUMBERS

import coldframe
import coldframe.spark
from coldframe.pipeline import migrate
from coldframe.pipeline.session import start_session


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The path from which an executor imports the package."""
    import coldframe as there

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [there.__file__]})


def main() -> None:
    numbers, warehouse, target, archive = sys.argv[1:]
    conf = {"spark.archives": f"{archive}#package", "spark.executorEnv.PYTHONPATH": "./package"}
    spark = start_session("local-cluster[2,1,1024]", conf={**conf, "spark.driver.host": "127.0.0.1"})
    files = {row.file for row in spark.range(0, 8, 1, 4).mapInArrow(where, "file string").collect()}
    # Spark finds the data source by itself, since the driver's environment has the package.
    frame = spark.read.format("coldframe_rcfile").options(**NUMBERS).load(numbers)
    rows = frame.where("a >= 100").count()
    report = migrate(spark, warehouse, target)
    summary = {
        "driver": coldframe.__file__,
        "executors": sorted(files),
        "rows": rows,
        "exit": report.exit_code,
    }
    print(json.dumps({**summary, "migrated": report.rows, "verified": report.verified}))
    spark.stop()


if __name__ == "__main__":
    main()
