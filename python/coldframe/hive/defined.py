"""The tables that a metastore defines, each with a summary of its partitions."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coldframe._coldframe import formats
from coldframe.errors import unsupported
from coldframe.hive.addresses import Selected, dump_file
from coldframe.hive.definition import Definition
from coldframe.hive.dumps import read_dump
from coldframe.hive.metadata import stated_rows
from coldframe.hive.reader import DefinitionReader
from coldframe.hive.tables import Refused

__all__ = ["READ", "DefinedTable", "common_root", "connect", "defined_tables", "definitions"]

READ = frozenset(name for name, about in formats().items() if about["capabilities"]["input_formats"])
"""Formats of files that Hive's own classes read, and we do."""


@dataclass(frozen=True)
class DefinedTable:
    """A table of a metastore."""

    definition: Definition
    partitions: int | None = None
    """How many; None where it has none, or they were not asked for."""
    formats: tuple[str, ...] = ()
    """Those that the table or, where there are any, its partitions are declared to have."""
    rows: int | None = None
    """The sum of what the metastore states; None where that is not stated of all partitions."""
    outside: int = 0
    """Partitions whose location is not below the table's."""

    @property
    def left_out(self) -> str | None:
        """Why its rows, or some of them, cannot be read here; None where they may be."""
        if (reason := self.definition.left_out) is not None:
            return reason
        others = [one or "no stated format" for one in self.formats if one not in READ]
        return f"files of {', '.join(others)} are not read" if others else None


def connect(uris: str) -> DefinitionReader:
    """Connects to a metastore, which takes the package `thrift`, or reads a dump of one."""
    if dump_file(uris) is not None:
        return read_dump(uris)
    if importlib.util.find_spec("thrift") is None:
        raise unsupported("a Hive metastore without the package thrift; pip install 'coldframe[hive]'")
    from coldframe.hive.metastore import Metastore

    return Metastore(uris)


def definitions(metastore: DefinitionReader, selected: Selected) -> Iterator[Definition | Refused]:
    """The selected tables, by database and name."""
    if selected.is_one:
        yield metastore.definition(selected.database, selected.table)
        return
    for database in sorted(metastore.databases()):
        if selected.takes_database(database):
            for one in metastore.definitions(database):
                if isinstance(one, Refused) or selected.takes(database, one.name):
                    yield one


def defined_tables(
    metastore: DefinitionReader, selected: Selected, *, partitions: bool = True
) -> Iterator[DefinedTable | Refused]:
    """The selected tables. Without `partitions`, the metastore is not asked for partitions."""
    for one in definitions(metastore, selected):
        if isinstance(one, Refused):
            yield one
        elif one.has_partitions and one.left_out is None and partitions:
            yield _with_partitions(metastore, one)
        else:
            asked = () if one.left_out is not None else (one.format,)
            yield DefinedTable(one, formats=asked, rows=None if one.has_partitions else one.rows)


def _with_partitions(metastore: DefinitionReader, table: Definition) -> DefinedTable:
    count = outside = rows = 0
    is_stated = True
    kinds: dict[str, None] = {}
    below = (table.location or "").rstrip("/") + "/"
    for one in metastore.partitions(table):
        count += 1
        outside += not (one.location or "").startswith(below)
        kinds[table.format_of_input(one.input_format)] = None
        stated = stated_rows(one.parameters)
        rows += stated[0] if stated else 0
        is_stated = is_stated and bool(stated)
    return DefinedTable(
        table, count, tuple(kinds) or (table.format,), rows if is_stated and count else table.rows, outside
    )


def common_root(locations: Sequence[str]) -> str:
    """The deepest directory that all locations lie below; empty where there is none."""
    parts = [one.rstrip("/").split("/")[:-1] for one in locations]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    root = "/".join(shared)
    return "" if root.endswith(":/") or root in ("", "file:", "hdfs:") else root
