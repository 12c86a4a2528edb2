"""What a migration can end in: plain Parquet or ORC files, or those files under a Delta log or Iceberg
metadata.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from coldframe._coldframe import UnsupportedError, formats
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.committed import CommittedTable
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout
from coldframe.pipeline.sink.live import LiveTable, TableName
from coldframe.pipeline.sink.sinks import ColdframeSink, ParquetSink, Sink

Register = Callable[[Destination, CommittedTable, str], Json]
"""The target, table, what to do where others have written to it (`"refuse"` or `"append"`) -> what
the report says of the table's metadata.
"""
Live = Callable[[Destination, TableName], "set[str] | None"]
"""The target, a table's name -> the files that it lists; None where there is no table."""


@dataclass(frozen=True)
class Target:
    """A kind of table."""

    name: str
    sink: Sink
    partitions_inside: bool = False
    """Whether partition columns are also in the files (Iceberg), or in the directories' names only."""
    nanoseconds: bool = True
    """Whether its timestamps can have nanoseconds."""
    register: Register | None = None
    live: Live | None = None
    runs: Callable[[Destination, TableName], set[str]] | None = None
    """The target, a table's name -> the runs that its commits name."""
    read_table: Callable[[Destination, TableName], LiveTable] | None = None
    """The target, a table's name -> the table as its log or metadata has it now."""

    settle_layout: Callable[[IcebergLayout, pa.Schema, Sequence[pa.Field]], IcebergLayout] | None = None
    """A layout that a user states, the table's columns and those of its directories -> the layout by the
    exact names of columns. Raises where the table cannot have it. None: tables have no layout of this kind.
    """
    enlist: Callable[[Destination, CommittedTable], Json] | None = None
    """Registers a table, which stands without it, in a catalog that was named."""
    check_catalog: Callable[[str, Destination], None] | None = None
    """The name of a catalog, the target: raises where it cannot be used."""

    def lists(self, destination: Destination, table: TableName) -> set[str] | None:
        """The files that a table lists; None where there is no table, or one that cannot be read."""
        if self.live is None:
            return None
        try:
            return self.live(destination, table)
        except Exception:
            # A log that others have written can be wrong in any way. The converted files are right all the
            # same; registering it fails, and the last look at the table says why it cannot be read.
            return None


OVER_ORC = "iceberg-orc"
"""What the journal and the report call Iceberg over ORC."""


def find_target(name: str, *, files: str = "parquet", compression: str = "zstd", unit: str = "us") -> Target:
    """The target of this name; UnsupportedError where it is unknown, a package is missing, or it has no
    timestamps of this unit.

    `files`: the format of a table's files where that is not Parquet, which only Iceberg allows.
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
        return Target(name, ColdframeSink("orc", unit=unit))
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
            ParquetSink(compression) if name == "iceberg" else ColdframeSink("orc", unit=unit),
            partitions_inside=True,
            nanoseconds=False,
            register=iceberg.register,
            live=iceberg.live,
            runs=iceberg.runs,
            read_table=iceberg.read_table,
            settle_layout=iceberg_partitions.settle_layout,
            check_catalog=iceberg_catalog.check_catalog,
        )
    raise UnsupportedError(f"target {name!r}: expected parquet, iceberg, delta or orc")


def _need(target: str, package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UnsupportedError(
            f"target {target} without the package {package}; pip install 'coldframe[{extra}]'"
        )
