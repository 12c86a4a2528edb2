"""Definitions that statements made, read as those of a metastore are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from coldframe.hive.ddl import Statements
from coldframe.hive.definition import Definition, PartitionDefinition
from coldframe.hive.tables import HivePartition, HiveTable, MetastoreRefusal, Refused
from coldframe.hive.write_ids import WriteIds
from coldframe.partitions import folder_of

__all__ = ["DdlTables"]


class DdlTables:
    """Reads definitions."""

    def __init__(self, uri: str, made: Statements) -> None:
        self.uri, self._made = uri, made

    def __enter__(self) -> DdlTables:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def databases(self) -> list[str]:
        """The names of all databases."""
        return sorted({database for database, _ in self._made.tables})

    def tables(self, database: str) -> Iterator[HiveTable | Refused]:
        """All named objects of a database, briefly."""
        yield from (one.brief for one in self.definitions(database) if isinstance(one, Definition))

    def definitions(self, database: str) -> Iterator[Definition | Refused]:
        """All named objects of a database."""
        names = sorted(name for of, name in self._made.tables if of == database)
        yield from (self.definition(database, name) for name in names)

    def definition(self, database: str, name: str) -> Definition:
        """One table; a `MetastoreRefusal` where there is none."""
        table = self._made.tables.get((database, name))
        if table is None:
            raise MetastoreRefusal(f"{self.uri}: {database}.{name} table not found")
        # Nobody told its partitions: they are what folders are called.
        unknown = bool(table.keys) and (database, name) not in self._made.partitions
        return replace(table, by_folders=unknown)

    def partition_names(self, table: Definition | HiveTable) -> list[str]:
        """The names of a table's partitions, escaped: `dt=2014-01-01/region=asia%2Fpacific`."""
        return list(self._named(table.database, table.name))

    def _named(self, database: str, table: str) -> dict[str, PartitionDefinition]:
        keys = [key.name for key in self.definition(database, table).keys]
        found = self._made.partitions.get((database, table), ())
        return {folder_of(keys, one.values): one for one in found}

    def partition_definitions(
        self, table: Definition, names: Sequence[str] | None = None
    ) -> Iterator[PartitionDefinition]:
        """The partitions of a table, all or those of these names."""
        named = self._named(table.database, table.name)
        yield from (named[name] for name in (named if names is None else names))

    def write_ids(self, table: Definition) -> WriteIds:
        """Statements do not tell which writes count."""
        raise MetastoreRefusal(f"{self.uri}: {table.full_name}: statements do not tell which writes count")

    def partitions(self, table: Definition | HiveTable) -> Iterator[HivePartition]:
        """The partitions of a table, briefly."""
        yield from (one.brief for one in self._named(table.database, table.name).values())
