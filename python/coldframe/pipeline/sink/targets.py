"""The kinds of tables that a migration can write: plain Parquet or ORC files, or files with a Delta log or
Iceberg metadata.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from coldframe._coldframe import UnsupportedError, formats
from coldframe.errors import install_hint
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.committed import CommittedTable
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout
from coldframe.pipeline.sink.live import LiveTable, TableName
from coldframe.pipeline.sink.sinks import ColdframeSink, ParquetSink, Sink

Register = Callable[[Destination, CommittedTable, str], Json]
"""(target, table, what to do if others have written to it: `"refuse"` or `"append"`) -> the table's metadata
for the report.
"""
Live = Callable[[Destination, TableName], "set[str] | None"]
"""(target, table name) -> the files that the table lists; None if there is no table."""


@dataclass(frozen=True)
class Target:
    """A kind of table."""

    name: str
    sink: Sink
    partitions_inside: bool = False
    """Whether partition columns are also in the files (Iceberg), or only in the directories' names."""
    nanoseconds: bool = True
    """Whether the table's timestamps can have nanoseconds."""
    register: Register | None = None
    live: Live | None = None
    runs: Callable[[Destination, TableName], set[str]] | None = None
    """(target, table name) -> the names of the runs that have committed to the table."""
    read_table: Callable[[Destination, TableName], LiveTable] | None = None
    """(target, table name) -> the table according to its current log or metadata."""

    number_columns: Callable[[Destination, TableName, pa.Schema], tuple[int, ...]] | None = None
    """(target, table name, columns) -> the ids of the columns in the table, those of a field before those
    inside it."""
    settle_layout: Callable[[IcebergLayout, pa.Schema, Sequence[pa.Field]], IcebergLayout] | None = None
    """(a user's layout, the table's columns, those of its directories) -> the layout with the exact names of
    columns. Raises if the table cannot have this layout. None: such tables have no layout.
    """
    enlist: Callable[[Destination, CommittedTable], Json] | None = None
    """Registers a table in a named catalog, if the table also exists without it."""
    check_catalog: Callable[[str, Destination], None] | None = None
    """(name of a catalog, target): raises if the catalog cannot be used."""

    def lists(self, destination: Destination, table: TableName) -> set[str] | None:
        """The files that a table lists; None if there is no table, or it cannot be read."""
        if self.live is None:
            return None
        try:
            return self.live(destination, table)
        except Exception:
            # A log of other writers can be wrong in any way. The converted files are still correct: only
            # registering them fails, and the final check of the table reports why it cannot be read.
            return None


OVER_ORC = "iceberg-orc"
"""The name of Iceberg over ORC in the journal and the report."""


def find_target(name: str, *, files: str = "parquet", compression: str = "zstd", unit: str = "us") -> Target:
    """The target of this name; UnsupportedError if it is unknown, a package is missing, or it has no
    timestamps of this unit.

    `files`: the format of a table's files; other formats than Parquet only for Iceberg.
    """
    if files != "parquet":
        if (name, files) != ("iceberg", "orc"):
            raise UnsupportedError(f"files of {files} in target {name}: only tables of iceberg may have orc")
        name = OVER_ORC
    target = _find_target(name, compression, unit)
    if unit == "ns" and not target.nanoseconds:
        raise UnsupportedError(f"nanoseconds in {name}: its timestamps are microseconds")
    return target


def _find_target(name: str, compression: str, unit: str) -> Target:
    if name == "parquet":
        from coldframe.pipeline.sink import hive_tables

        return Target(
            name,
            ParquetSink(compression),
            enlist=functools.partial(hive_tables.enlist, kind="parquet"),
            check_catalog=hive_tables.check_metastore,
        )
    if name == "orc":
        if not formats().get("orc", {}).get("write"):
            raise UnsupportedError("target orc: this version does not write ORC")
        return Target(name, ColdframeSink("orc", unit=unit, second="pyarrow.orc"))
    if name == "delta":
        _need(name, "deltalake", "delta")
        from coldframe.pipeline.sink import delta, delta_log, hive_tables

        return Target(
            name,
            ParquetSink(compression),
            nanoseconds=False,
            register=delta.register,
            live=delta.live,
            runs=delta.runs,
            read_table=delta_log.read_table,
            enlist=functools.partial(hive_tables.enlist, kind="delta"),
            check_catalog=hive_tables.check_metastore,
        )
    if name in ("iceberg", OVER_ORC):
        _need("iceberg", "pyiceberg", "iceberg")
        from coldframe.pipeline.sink import iceberg, iceberg_catalog, iceberg_partitions

        return Target(
            name,
            ParquetSink(compression)
            if name == "iceberg"
            else ColdframeSink("orc", unit=unit, second="pyarrow.orc"),
            partitions_inside=True,
            nanoseconds=False,
            register=iceberg.register,
            live=iceberg.live,
            runs=iceberg.runs,
            read_table=iceberg.read_table,
            number_columns=iceberg.number_columns if name == "iceberg" else None,
            settle_layout=iceberg_partitions.settle_layout,
            check_catalog=iceberg_catalog.check_catalog,
        )
    raise UnsupportedError(f"target {name!r}: expected parquet, iceberg, delta or orc")


def _need(target: str, package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UnsupportedError(f"target {target} without the package {package}; {install_hint(extra)}")
