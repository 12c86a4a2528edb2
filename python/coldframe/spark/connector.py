"""The connector for the JVM: no Python worker, and Spark pushes down what a query needs."""

from __future__ import annotations

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
    """A builder of sessions in which `format("coldframe")` is the JVM's, and coldframe.`/path` a table.

    Args:
        builder: one to go on with; jars and extensions that it has stay.
        hive_tables: also tables of a Hive metastore are read by the connector: those of RCFiles, where it
            gives the rows that Spark's own reader gives, and transactional ones, of which Spark finds none.
            Those of ORC files need the setting `spark.coldframe.hive.orc`, too.
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
    """Whether the jar is on the class path of a session's driver.

    Raises if it is of another version than this package.
    """
    found = loaded_version(spark)
    if found is not None and found != __version__:
        raise UnsupportedError(
            f"coldframe {__version__} with the connector's jar of version {found}: take both from one build"
        )
    return found is not None


def loaded_version(spark: SparkSession) -> str | None:
    """The version of the jar on the class path of a session's driver; None if there is no jar."""
    return _version_in_server(spark) if is_remote(spark) else _version_in_jvm(spark)


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, whose JVM is the server's."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _version_in_jvm(spark: SparkSession) -> str | None:
    try:
        loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()  # type: ignore[union-attr]
        source = loader.loadClass(SOURCE)
    except Exception:
        return None
    return str(source.getMethod("version", None).invoke(None, None))


def _version_in_server(spark: SparkSession) -> str | None:
    """Asks by a query, which is all that a client of Spark Connect can ask by."""
    try:
        asked = spark.sql(f"select java_method('{SOURCE}', 'version')")
        asked.schema  # noqa: B018 - the server looks for the class, and starts no job
    except Exception as error:
        if "class" not in str(error).lower():
            raise
        return None
    return str(asked.collect()[0][0])
