"""The connector for the JVM: no Python worker, and Spark pushes down what a query needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from coldframe._coldframe import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR = "coldframe-spark.jar"
CATALOG = "spark.sql.catalog.coldframe"
CATALOG_CLASS = "io.coldframe.spark.PathCatalog"
EXTENSIONS = "io.coldframe.spark.Extensions"
"""For `spark.sql.extensions`: RCFile tables of a Hive metastore are read by the connector."""


def jar() -> str:
    """The path of the connector's jar, for `spark.jars` or `--jars`; it carries the native library."""
    path = Path(__file__).with_name(JAR)
    if not path.is_file():
        raise UnsupportedError("the connector for the JVM: this build of coldframe has no jar (make jar)")
    return str(path)


def session(
    builder: SparkSession.Builder | None = None, *, hive_tables: bool = False
) -> SparkSession.Builder:
    """A builder of sessions in which `format("coldframe")` is the JVM's, and coldframe.`/path` a table.

    Args:
        builder: one to go on with; jars and extensions that it has stay.
        hive_tables: also RCFile tables of a Hive metastore are read by the connector, where it gives the rows
            that Spark's own reader gives.
    """
    from pyspark.sql import SparkSession

    going_on = SparkSession.builder if builder is None else builder
    going_on = _also(going_on, "spark.jars", jar()).config(CATALOG, CATALOG_CLASS)
    return _also(going_on, "spark.sql.extensions", EXTENSIONS) if hive_tables else going_on


def _also(builder: SparkSession.Builder, setting: str, one: str) -> SparkSession.Builder:
    """The builder with one more in a list with commas."""
    known = str(getattr(builder, "_options", {}).get(setting, ""))
    all_of_them = [each for each in known.split(",") if each]
    if one not in all_of_them:
        all_of_them.append(one)
    return builder.config(setting, ",".join(all_of_them))


def is_loaded(spark: SparkSession) -> bool:
    """Whether the jar is on the class path of a session's driver."""
    try:
        loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()  # type: ignore[union-attr]
        loader.loadClass("io.coldframe.spark.ColdframeSource")
    except Exception:
        return False
    return True
