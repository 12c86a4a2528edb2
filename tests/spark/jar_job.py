"""Prints the errors of an incompatible jar and of a task without memory, in its own session."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pyspark.errors
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from spark_data import NUMBERS

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.session import start_session


def message_of(act: Callable[[], object]) -> str:
    """The error that a call raises."""
    try:
        act()
    except (cf.ColdframeError, Py4JJavaError, pyspark.errors.PySparkException) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def main(jar: str, numbers: str, fraction: str) -> None:
    """Prints the error of the first use, through the connector and through `coldframe.spark.read`."""
    conf = {"spark.jars": jar, "spark.driver.memory": "512m", "spark.memory.fraction": fraction}
    spark: SparkSession = start_session("local[1]", conf=conf)
    reader = spark.read.format("coldframe").options(**NUMBERS)
    messages = {
        "format": message_of(lambda: reader.load(numbers).selectExpr("sum(a)", "max(s)").collect()),
        "read": message_of(lambda: coldframe.spark.read(spark, numbers, **NUMBERS).count()),
    }
    spark.stop()
    print(json.dumps(messages))


if __name__ == "__main__":
    main(*sys.argv[1:4])
