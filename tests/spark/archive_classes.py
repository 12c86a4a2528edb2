"""Archives the classes that Spark loads, which halves the processor time of each Spark start in the tests.

    python tests/spark/archive_classes.py FILE        runs common steps of the tests, and writes FILE

A JVM reads the file by `-XX:SharedArchiveFile=FILE` (class data sharing). `tests/conftest.py`
passes it to all JVMs; a JVM with another Java or other jars ignores it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import CATALOG, CATALOG_CLASS, EXTENSIONS


def run_queries(spark: SparkSession, folder: Path) -> None:
    """Loads the classes of queries, files and streams."""
    spark.range(10).selectExpr("id", "id % 7 as k", "cast(id as string) as s").createOrReplaceTempView("t")
    joined = "select k, count(*), max(s) from t join (select distinct k from t) using (k) group by k"
    assert len(spark.sql(joined).orderBy("k").collect()) == 7
    spark.table("t").coalesce(1).write.parquet(str(folder / "parquet"))
    stream = spark.readStream.schema("id bigint, s string").parquet(str(folder / "parquet"))
    read: list[int] = []
    query = stream.writeStream.foreachBatch(lambda batch, _: read.append(batch.where("id > 3").count()))
    query = query.trigger(availableNow=True).option("checkpointLocation", str(folder / "log"))
    query.start().awaitTermination()
    assert read == [6]


def main(file: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=file.parent))
    made = folder / "classes"
    # Set only for Spark's JVM: the launcher's JVM, which prints the command, would write the file too.
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={made} -Xlog:cds*=off"
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:+UseSerialGC"
    conf = {"spark.sql.shuffle.partitions": "2"}
    with contextlib.suppress(cf.UnsupportedError):
        conf |= {
            "spark.jars": coldframe.spark.jar(),
            CATALOG: CATALOG_CLASS,
            "spark.sql.extensions": EXTENSIONS,
        }
    try:
        spark = start_session("local[2]", conf=conf)
        gateway: Any = spark.sparkContext._gateway
        run_queries(spark, folder)
        spark.stop()
        # The JVM exits when its standard input closes, and writes the file then.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(300)
        made.replace(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
