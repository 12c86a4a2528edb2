"""The Spark data sources: one class per format name, all with the same reader and writer.

Spark runs `schema()` and `partitions()` in Python processes next to the driver, and `read()` in the
executors' workers; everything passed between them is pickled. A reader must not define `pushFilters`: Spark
4.3 keeps the filters of one use of a DataFrame for its next use, and then returns wrong rows without an
error.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from coldframe._coldframe import UnsupportedError, formats
from coldframe.spark.options import ReadOptions, read_options, write_options
from coldframe.spark.reader import ColdframeReader, open_dataset, resolve
from coldframe.spark.types import arrow_schema_for, to_spark_schema
from coldframe.spark.writer import ColdframeWriter


class ColdframeSource(DataSource):
    """`spark.read.format("coldframe")`: detects the format from the bytes."""

    format_name: ClassVar[str | None] = None

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.inferred = False
        self.found: list[Any] | None = None

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "coldframe" if cls.format_name is None else f"coldframe_{cls.format_name}"

    def schema(self) -> StructType:
        """The columns of the files and of the partition directories, or those in the option `columns`."""
        options = read_options(self.options, self.format_name)
        # Kept when Spark pickles this object, so that reader() can tell a user's schema from this one, and
        # nothing is listed twice.
        self.inferred = True
        dataset = open_dataset(options)
        self.found = dataset.found
        schema = dataset.schema
        if options.columns is not None:
            names = resolve(options.columns, schema.names)
            schema = pa.schema([schema.field(name) for name in names])
        return to_spark_schema(schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns in `schema`."""
        if not self.options:
            raise UnsupportedError(
                "a table of the catalog by the Python source: Spark does not tell it the table's options. "
                "The connector for the JVM reads it; a temporary view can be read by both"
            )
        options = read_options(self.options, self.format_name)
        if not self.inferred:
            options = self._typed_by_user(options, schema)
        return ColdframeReader(options, schema, self.found)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of one file per Spark partition."""
        return ColdframeWriter(
            write_options(self.options, self.format_name), arrow_schema_for(schema), overwrite
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Streams are the connector's for the JVM."""
        raise UnsupportedError(
            "readStream by the Python source: the connector for the JVM has it (coldframe.spark.session())"
        )

    def _typed_by_user(self, options: ReadOptions, schema: StructType) -> ReadOptions:
        """RCFiles have no types. Without the option `schema`, `.schema()` names the file's columns."""
        if "schema" in options.options:
            return options
        dataset = open_dataset(options)
        self.found = dataset.found
        about = formats().get(dataset.format, {})
        if not about.get("capabilities", {}).get("needs_schema") or _only_renames(schema, dataset.schema):
            return options
        partitions = {name.lower() for name in dataset.partition_columns}
        fields = [field for field in arrow_schema_for(schema) if field.name.lower() not in partitions]
        return options.with_schema(pa.schema([_as_in_hive(field) for field in fields]))


def _as_in_hive(field: pa.Field) -> pa.Field:
    """Hive's timestamp is a local time."""
    return field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field


def _only_renames(schema: StructType, found: pa.Schema) -> bool:
    """Whether all names in `schema` are among those of files read without types (`_c0`, `_c1` ...)."""
    known = {name.lower() for name in found.names}
    return all(name.lower() in known for name in schema.fieldNames())


class PythonSource(ColdframeSource):
    """`coldframe_python`: this one, also where `coldframe` is the JVM's."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "coldframe_python"


class OrcSource(ColdframeSource):
    """`coldframe_orc`."""

    format_name = "orc"


class RcfileSource(ColdframeSource):
    """`coldframe_rcfile`."""

    format_name = "rcfile"


class HfileSource(ColdframeSource):
    """`coldframe_hfile`."""

    format_name = "hfile"


class CfileSource(ColdframeSource):
    """`coldframe_cfile`."""

    format_name = "cfile"


class RedfileSource(ColdframeSource):
    """`coldframe_redfile`."""

    format_name = "redfile"


SOURCES: tuple[type[ColdframeSource], ...] = (
    ColdframeSource,
    PythonSource,
    OrcSource,
    RcfileSource,
    HfileSource,
    CfileSource,
    RedfileSource,
)
