"""Prints Spark's answers to queries of transactional tables: rows, or the error.

python hive_acid_job.py METASTORE QUERIES      QUERIES: a file of {name: {"sql": .., "settings": {..}}}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from spark_data import comparable

import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import EXTENSIONS


def answer(spark: SparkSession, query: dict[str, Any]) -> dict[str, Any]:
    """The rows of a query, its plan, and the error if it failed."""
    settings = query.get("settings", {})
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        frame = spark.sql(query["sql"])
        rows = sorted(comparable(frame.collect()))
        plan = frame._jdf.queryExecution()
        return {
            "rows": rows,
            "taken": str(plan.optimizedPlan().toString()).count("RelationV2["),
            "plan": str(plan),
        }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        for name in settings:
            spark.conf.unset(name)


def main(metastore: str, queries: str) -> None:
    """Runs all queries in a single session."""
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": coldframe.spark.jar(),
        "spark.sql.extensions": EXTENSIONS,
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.hadoop.hive.metastore.uris": metastore,
    }
    spark = start_session("local[2]", conf=conf)
    print(
        json.dumps(
            {name: answer(spark, query) for name, query in json.loads(Path(queries).read_text()).items()}
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
