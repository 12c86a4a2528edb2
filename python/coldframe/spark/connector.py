"""The connector for the JVM: no Python worker, and Spark pushes down what a query needs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from coldframe._coldframe import UnsupportedError, __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR = "coldframe-spark.jar"
CATALOG = "spark.sql.catalog.coldframe"
CATALOG_CLASS = "io.coldframe.spark.PathCatalog"
SOURCE = "io.coldframe.spark.ColdframeSource"
EXTENSIONS = "io.coldframe.spark.Extensions"
"""For `spark.sql.extensions`: the connector reads RCFile and transactional tables of a Hive metastore."""


def jar() -> str:
    """The path of the connector's jar, for `spark.jars` or `--jars`; it carries the native library."""
    path = Path(__file__).with_name(JAR)
    if not path.is_file():
        raise UnsupportedError("the connector for the JVM: this build of coldframe has no jar (make jar)")
    return str(path)


def session(
    builder: SparkSession.Builder | None = None, *, hive_tables: bool = False
) -> SparkSession.Builder:
    """A builder of sessions in which `format("coldframe")` uses the JVM's connector, and coldframe.`/path` a
    table. Spark's Python is the interpreter that calls this, unless PYSPARK_PYTHON names another one.

    Args:
        builder: a builder to extend; its jars and extensions stay.
        hive_tables: the connector also reads tables of a Hive metastore: RCFile tables, with the same rows
            as Spark's reader, and transactional tables, which Spark cannot read. ORC tables also need the
            setting `spark.coldframe.hive.orc`.
    """
    from pyspark.sql import SparkSession

    if (
        "PYSPARK_GATEWAY_PORT" not in os.environ
    ):  # else spark-submit has started the JVM and chosen the Python
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    extended = SparkSession.builder if builder is None else builder
    extended = _with_list_item(extended, "spark.jars", jar()).config(CATALOG, CATALOG_CLASS)
    return _with_list_item(extended, "spark.sql.extensions", EXTENSIONS) if hive_tables else extended


def _with_list_item(builder: SparkSession.Builder, setting: str, value: str) -> SparkSession.Builder:
    """The builder with `value` added to a setting that is a list with commas."""
    known = str(getattr(builder, "_options", {}).get(setting, ""))
    values = [each for each in known.split(",") if each]
    if value not in values:
        values.append(value)
    return builder.config(setting, ",".join(values))


def is_loaded(spark: SparkSession) -> bool:
    """Whether the jar is on the class path of a session's driver.

    Raises if the connector's version differs from this package's.
    """
    loaded = loaded_version(spark)
    if loaded is not None and loaded != __version__:
        raise UnsupportedError(
            f"coldframe {__version__} with the connector's jar of version {loaded}: take both from one build"
        )
    return loaded is not None


def loaded_version(spark: SparkSession) -> str | None:
    """The version of the jar on the class path of a session's driver; None if there is no jar."""
    return _version_in_server(spark) if is_remote(spark) else _version_in_jvm(spark)


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, whose JVM belongs to the server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _version_in_jvm(spark: SparkSession) -> str | None:
    try:
        loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()  # type: ignore[union-attr]
        source = loader.loadClass(SOURCE)
    except Exception:
        return None
    return str(source.getMethod("version", None).invoke(None, None))


def _version_in_server(spark: SparkSession) -> str | None:
    """The jar's version in the server, by a query: a client of Spark Connect has no other way to ask."""
    try:
        asked = spark.sql(f"select java_method('{SOURCE}', 'version')")
        asked.schema  # noqa: B018 - the server looks for the class, and starts no job
    except Exception as error:
        if "class" not in str(error).lower():
            raise
        return None
    return str(asked.collect()[0][0])
