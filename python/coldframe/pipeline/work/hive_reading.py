"""The rows of a directory as Hive would return them, from a Spark session with Hive support.

    Parquet     spark.read.parquet, with the columns of the definition
    others      HiveTableRelation -> Hive's input format and SerDe, which read the directory

The relation is built from a definition, without any catalog: the session may have the source's metastore,
another metastore, or no metastore. Spark has no public API for that, so this module calls internal classes.

Hive's timestamps have no zone. Hive's classes return such timestamps as the wall clock of the JVM, and Spark
converts them to instants. These instants are the wall clock of UTC only if the JVM's zone is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coldframe.errors import unsupported
from coldframe.hive.definition import Column, PartitionDefinition
from coldframe.pipeline.source.foreign_formats import PARQUET
from coldframe.sources import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CATALOG = "org.apache.spark.sql.catalyst.catalog."
_SETTINGS = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    # A damaged or missing file is an error instead of fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_READING_PARQUET = {
    "mergeSchema": "false",
    # Dates and times before 1900 with an unknown calendar are an error.
    "datetimeRebaseMode": "EXCEPTION",
    "int96RebaseMode": "EXCEPTION",
}


def rows_of(spark: SparkSession, definition: PartitionDefinition, location: str) -> DataFrame:
    """The rows of a directory with the columns of a definition."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    columns = definition.storage.columns
    # Hadoop resolves a path without a scheme in its default file system.
    location = location if is_remote(location) else f"file://{location}"
    if definition.storage.input_format in PARQUET:
        reader = session.read.schema(_in_spark(columns, has_lengths=False)).options(**_READING_PARQUET)
        return reader.parquet(_literal(location))
    if any("timestamp" in column.type.lower() for column in columns):
        _check_utc(session)
    return _relation(session, definition, location)


def _in_spark(columns: Sequence[Column], *, has_lengths: bool) -> str:
    """Columns in Spark's DDL. `has_lengths`: whether a varchar may have a length."""
    types = (
        column.type if has_lengths else re.sub(r"varchar\(\d+\)", "string", column.type.lower())
        for column in columns
    )
    named = zip((column.name.replace("`", "``") for column in columns), types, strict=True)
    return ", ".join(f"`{name}` {kind}" for name, kind in named)


def _literal(location: str) -> str:
    """A path with escaped pattern characters: Spark would expand them."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", location)


def _check_utc(session: SparkSession) -> None:
    """Raises UnsupportedError if the JVM's zone is not UTC."""
    zone = (
        session.range(1).selectExpr("reflect('java.time.ZoneId', 'systemDefault') AS zone").collect()[0].zone
    )
    if zone not in ("UTC", "Etc/UTC", "GMT", "Z"):
        raise unsupported(
            f"timestamps in a Spark whose Java has the time zone {zone}: set -Duser.timezone=UTC in"
            " spark.driver.extraJavaOptions and spark.executor.extraJavaOptions"
        )


def _relation(session: SparkSession, definition: PartitionDefinition, location: str) -> DataFrame:
    """The directory as a Hive table without partitions."""
    from pyspark.sql import DataFrame

    java = _Java(session)
    of_spark, storage = java.jvm.org.apache.spark.sql, definition.storage
    columns = of_spark.types.StructType.fromDDL(_in_spark(storage.columns, has_lengths=True))
    columns = of_spark.catalyst.util.CharVarcharUtils.replaceCharVarcharWithStringInSchema(columns)
    described = java.storage(
        locationUri=java.option(java.jvm.org.apache.hadoop.fs.Path(location).toUri()),
        inputFormat=java.option(storage.input_format),
        outputFormat=java.option(storage.output_format),
        serde=java.option(storage.serde),
        properties=java.map(storage.serde_properties),
    )
    table = java.table(
        identifier=of_spark.catalyst.TableIdentifier("directory", java.option("coldframe")),
        tableType=of_spark.catalyst.catalog.CatalogTableType.EXTERNAL(),
        storage=described,
        schema=columns,
        provider=java.option("hive"),
        properties=java.map(definition.parameters),
    )
    plan = of_spark.execution.command.DDLUtils.readHiveTable(table)
    datasets = of_spark.classic.Dataset if int(session.version.split(".")[0]) >= 4 else of_spark.Dataset
    return DataFrame(datasets.ofRows(java.session, plan), session)


class _Java:
    """Makes records of Spark's catalog in the JVM. Newer versions of Spark append fields to these classes."""

    _STORAGE = ("locationUri", "inputFormat", "outputFormat", "serde", "compressed", "properties")
    _TABLE = (
        *("identifier", "tableType", "storage", "schema", "provider", "partitionColumnNames", "bucketSpec"),
        *("owner", "createTime", "lastAccessTime", "createVersion", "properties"),
    )
    """The first fields of a CatalogTable, in the order of its constructor."""

    def __init__(self, session: SparkSession) -> None:
        given: Any = session
        self.session, self.jvm = given._jsparkSession, given._jvm
        self._gateway = given.sparkContext._gateway

    def storage(self, **fields: Any) -> Any:
        """A CatalogStorageFormat: how a table's files are read."""
        empty = self.jvm.org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat.empty()
        return self._record("CatalogStorageFormat", self._STORAGE, fields, empty.productElement)

    def table(self, **fields: Any) -> Any:
        """A CatalogTable."""
        name = f"{_CATALOG}CatalogTable$"
        companion = self.jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)

        def default(at: int) -> Any:
            return getattr(companion, f"apply$default${at + 1}")()

        return self._record("CatalogTable", self._TABLE, fields, default)

    def _record(
        self, name: str, order: Sequence[str], fields: Mapping[str, Any], default: Callable[[int], Any]
    ) -> Any:
        constructors = self.jvm.java.lang.Class.forName(f"{_CATALOG}{name}").getConstructors()
        longest = max(constructors, key=lambda constructor: constructor.getParameterCount())
        count = longest.getParameterCount()
        values = self._gateway.new_array(self.jvm.java.lang.Object, count)
        for at in range(count):
            known = order[at] if at < len(order) else ""
            values[at] = fields[known] if known in fields else default(at)
        return longest.newInstance(values)

    def option(self, value: Any) -> Any:
        """A Scala Option; None becomes Scala's None."""
        return self.jvm.scala.Option.apply(value)

    def map(self, given: Mapping[str, str]) -> Any:
        """A Scala Map."""
        java_map = self.jvm.java.util.HashMap()
        for key, value in given.items():
            java_map.put(key, value)
        return self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java_map)
