"""The tables that a metastore defines, each with a summary of its partitions."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coldframe._coldframe import formats
from coldframe.errors import install_hint, unsupported
from coldframe.hive.addresses import Selected, dump_file
from coldframe.hive.definition import Definition
from coldframe.hive.dumps import read_dump
from coldframe.hive.metadata import row_counts
from coldframe.hive.reader import DefinitionReader, Refused

READ = frozenset(name for name, about in formats().items() if about["capabilities"]["input_formats"])
"""The formats that both Hive's input formats and coldframe read."""


@dataclass(frozen=True)
class DefinedTable:
    """A table of a metastore."""

    definition: Definition
    partitions: int | None = None
    """The number of partitions; None if the table has no partitions, or if partitions were not requested."""
    formats: tuple[str, ...] = ()
    """The declared formats of the table's partitions, or of the table if it has no partitions."""
    rows: int | None = None
    """The sum of the row counts in the metastore; None if a partition has no row count."""
    outside: int = 0
    """The number of partitions whose location is not below the table's location."""

    @property
    def left_out(self) -> str | None:
        """Why some or all rows of the table cannot be read; None if all rows may be readable."""
        if (reason := self.definition.left_out) is not None:
            return reason
        if self.definition.hudi_view is not None:
            return None
        others = [format or "an unknown format" for format in self.formats if format not in READ]
        return f"files of {', '.join(others)} are not read" if others else None


def connect(uris: str) -> DefinitionReader:
    """Connects to a metastore, which needs the package `thrift`, or reads a dump."""
    if dump_file(uris) is not None:
        return read_dump(uris)
    if importlib.util.find_spec("thrift") is None:
        raise unsupported(f"a Hive metastore without the package thrift; {install_hint('hive')}")
    from coldframe.hive.metastore import Metastore

    return Metastore(uris)


def definitions(metastore: DefinitionReader, selected: Selected) -> Iterator[Definition | Refused]:
    """The selected tables, by database and name."""
    if selected.is_single:
        yield metastore.definition(selected.database, selected.table)
        return
    for database in sorted(metastore.databases()):
        if selected.takes_database(database):
            for table in metastore.definitions(database):
                if isinstance(table, Refused) or selected.takes(database, table.name):
                    yield table


def defined_tables(
    metastore: DefinitionReader, selected: Selected, *, partitions: bool = True
) -> Iterator[DefinedTable | Refused]:
    """The selected tables. Without `partitions`, requests no partitions."""
    for table in definitions(metastore, selected):
        if isinstance(table, Refused):
            yield table
        elif table.has_partitions and table.left_out is None and partitions:
            yield _with_partitions(metastore, table)
        else:
            formats = () if table.left_out is not None else (table.format,)
            yield DefinedTable(table, formats=formats, rows=None if table.has_partitions else table.rows)


def _with_partitions(metastore: DefinitionReader, table: Definition) -> DefinedTable:
    count = outside = rows = 0
    all_known = True
    kinds: dict[str, None] = {}
    below = (table.location or "").rstrip("/") + "/"
    for partition in metastore.partitions(table):
        count += 1
        outside += not (partition.storage.location or "").startswith(below)
        kinds[table.format_of(partition.storage)] = None
        counts = row_counts(partition.parameters)
        rows += counts[0] if counts else 0
        all_known = all_known and bool(counts)
    return DefinedTable(
        table, count, tuple(kinds) or (table.format,), rows if all_known and count else table.rows, outside
    )


def common_root(locations: Sequence[str]) -> str:
    """The deepest directory above all locations; empty if there is none."""
    parts = [location.rstrip("/").split("/")[:-1] for location in locations]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    root = "/".join(shared)
    return "" if root.endswith(":/") or root in ("", "file:", "hdfs:") else root
