"""The Spark session of the harness."""

from __future__ import annotations

from pyspark.sql import SparkSession

import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import CATALOG, CATALOG_CLASS


def started() -> SparkSession:
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.jars": coldframe.spark.jar(),
        CATALOG: CATALOG_CLASS,
        "spark.ui.enabled": "false",
    }
    session = start_session("local[2]", conf=conf)
    session.sql("set spark.sql.pyspark.jvmStacktrace.enabled=false")
    session.sparkContext.setLogLevel("OFF")
    return session
