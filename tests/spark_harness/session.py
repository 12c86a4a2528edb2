"""The Spark session of the harness."""

from __future__ import annotations

import logging
from pathlib import Path

from pyspark.sql import SparkSession

import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import CATALOG, CATALOG_CLASS, EXTENSIONS


def started(hive: Path | None = None) -> SparkSession:
    """A session; with a folder, it has a Hive metastore there, and the connector's rule."""
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.jars": coldframe.spark.jar(),
        CATALOG: CATALOG_CLASS,
        "spark.ui.enabled": "false",
    }
    if hive:
        conf |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(hive / "warehouse"),
            "spark.sql.extensions": EXTENSIONS,
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:tables;create=true",
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={hive}",
            # Derby does not accept every filter of Spark.
            "spark.sql.hive.metastorePartitionPruningFallbackOnException": "true",
            "spark.coldframe.hive.orc": "on",
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        }
    session = start_session("local[2]", conf=conf)
    session.sql("set spark.sql.pyspark.jvmStacktrace.enabled=false")
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True  # queries may be wrong on purpose
    return session
