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
        self.sources: list[Any] | None = None

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "coldframe" if cls.format_name is None else f"coldframe_{cls.format_name}"

    def schema(self) -> StructType:
        """The columns of the files and of the partition directories, or the columns in the option
        `columns`.
        """
        options = read_options(self.options, self.format_name)
        # Spark pickles both attributes, so reader() recognises a user's schema and does not list the files
        # again.
        self.inferred = True
        dataset = open_dataset(options)
        self.sources = dataset.found
        schema = dataset.schema
        if options.columns is not None:
            names = resolve(options.columns, schema.names)
            schema = pa.schema([schema.field(name) for name in names])
        return to_spark_schema(schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns in `schema`."""
        if not self.options:
            raise UnsupportedError(
                "a catalog table with the Python source: Spark does not pass the table's options to it. "
                "Use the connector for the JVM, or a temporary view"
            )
        options = read_options(self.options, self.format_name)
        if not self.inferred:
            options = self._typed_by_user(options, schema)
        return ColdframeReader(options, schema, self.sources)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of one file per Spark partition."""
        return ColdframeWriter(
            write_options(self.options, self.format_name), arrow_schema_for(schema), overwrite
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Unsupported: only the connector for the JVM reads streams."""
        raise UnsupportedError(
            "readStream with the Python source: use the connector for the JVM (coldframe.spark.session())"
        )

    def _typed_by_user(self, options: ReadOptions, schema: StructType) -> ReadOptions:
        """RCFiles have no types: without the option `schema`, `.schema()` defines the columns of the file."""
        if "schema" in options.options:
            return options
        dataset = open_dataset(options)
        self.sources = dataset.found
        about = formats().get(dataset.format, {})
        if not about.get("capabilities", {}).get("needs_schema") or _only_renames(schema, dataset.schema):
            return options
        partitions = {name.lower() for name in dataset.partition_columns}
        fields = [field for field in arrow_schema_for(schema) if field.name.lower() not in partitions]
        return options.with_schema(pa.schema([_as_in_hive(field) for field in fields]))


def _as_in_hive(field: pa.Field) -> pa.Field:
    """Hive's timestamp has no time zone."""
    return field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field


def _only_renames(schema: StructType, file_schema: pa.Schema) -> bool:
    """Whether all names in `schema` are names of files that are read without types (`_c0`, `_c1` ...)."""
    known = {name.lower() for name in file_schema.names}
    return all(name.lower() in known for name in schema.fieldNames())


class PythonSource(ColdframeSource):
    """`coldframe_python`: always the Python source, even if `coldframe` is the JVM's connector."""

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
