"""Serves the definitions of parsed statements through the interface of a metastore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from coldframe._coldframe import folder_of
from coldframe.hive.ddl import Statements
from coldframe.hive.definition import Definition, PartitionDefinition
from coldframe.hive.reader import DefinitionReader, MetastoreRefusal, Refused
from coldframe.hive.write_ids import WriteIds


class DdlTables(DefinitionReader):
    """The definitions of parsed statements as a `DefinitionReader`."""

    def __init__(self, uri: str, made: Statements) -> None:
        self.uri, self._made = uri, made

    def databases(self) -> list[str]:
        return sorted({database for database, _ in (*self._made.tables, *self._made.refused)})

    def definitions(self, database: str) -> Iterator[Definition | Refused]:
        names = sorted(name for of, name in self._made.tables if of == database)
        yield from (self.definition(database, name) for name in names)
        for (of, name), reason in sorted(self._made.refused.items()):
            if of == database:
                yield Refused(database, name, reason)

    def definition(self, database: str, name: str) -> Definition:
        table = self._made.tables.get((database, name))
        if (reason := self._made.refused.get((database, name))) is not None:
            raise MetastoreRefusal(f"{self.uri}: {database}.{name}: {reason}")
        if table is None:
            raise MetastoreRefusal(f"{self.uri}: {database}.{name} table not found")
        # If no statement adds partitions, the `key=value` folders are the partitions.
        unknown = bool(table.keys) and (database, name) not in self._made.partitions
        return replace(table, by_folders=unknown)

    def partition_names(self, table: Definition) -> list[str]:
        return list(self._named(table))

    def _named(self, table: Definition) -> dict[str, PartitionDefinition]:
        keys = [key.name for key in table.keys]
        partitions = self._made.partitions.get((table.database, table.name), ())
        return {folder_of(keys, partition.values): partition for partition in partitions}

    def partition_definitions(
        self, table: Definition, names: Sequence[str] | None = None
    ) -> Iterator[PartitionDefinition]:
        named = self._named(table)
        yield from (named[name] for name in (named if names is None else names))

    def write_ids(self, table: Definition) -> WriteIds:
        """Raises: statements do not record which writes are committed."""
        raise MetastoreRefusal(
            f"{self.uri}: {table.full_name}: statements do not record which writes are committed"
        )
