"""Changes of a Hive metastore: tables of ours, and their partitions.

Partitions go in groups: a metastore writes each group in one transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from thrift.Thrift import TType

from coldframe._coldframe import ColdframeError
from coldframe.hive import change_messages as changes
from coldframe.hive import messages
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.metastore import Metastore
from coldframe.hive.raw import Fields, RawAnswer, RawMessage
from coldframe.hive.tables import MetastoreRefusal

__all__ = ["MetastoreWriter"]

AT_ONCE = 500
_WHOLE_REQ = replace(messages.GET_TABLE_REQ, answer=RawAnswer)
_WHOLE = replace(messages.GET_TABLE, answer=RawAnswer)
_ALTER_WHOLE = replace(changes.ALTER_TABLE, arguments=RawMessage)


class MetastoreWriter(Metastore):
    """A connection through which tables are made and changed."""

    def __enter__(self) -> MetastoreWriter:
        return self

    def find(self, database: str, name: str) -> Definition | None:
        """A table; None if there is none."""
        with contextlib.suppress(MetastoreRefusal):
            if name.lower() in self._texts(messages.GET_ALL_TABLES, database=database):
                return self.definition(database, name)
        return None

    def make_database(self, name: str) -> None:
        """Creates a database where the metastore puts those without a location, if there is none."""
        if name.lower() not in self.databases():
            made = changes.Database(name=name, description="tables that coldframe migrated")
            self.call(changes.CREATE_DATABASE, database=made)

    def create(self, table: Definition) -> None:
        """Creates a table."""
        self.call(changes.CREATE_TABLE, table=_table(table))

    def change(self, table: Definition) -> None:
        """Gives a table of this name another definition. Its partitions stay as they are."""
        self.call(changes.ALTER_TABLE, database=table.database, table=table.name, changed=_table(table))

    def rename(self, database: str, name: str, to: str) -> None:
        """Gives a table another name. Everything else of it stays as it is, its location too.

        A metastore moves the files of a managed table: those are not renamed.
        """
        before = self.definition(database, name)
        if before.kind != "EXTERNAL_TABLE":
            raise ColdframeError(f"{before.full_name} is no external table: a metastore would move its files")
        whole = self._whole(database, name)
        whole[1] = (TType.STRING, to.encode())
        fields = {
            1: (TType.STRING, database.encode()),
            2: (TType.STRING, name.encode()),
            3: (TType.STRUCT, whole),
        }
        self.call(_ALTER_WHOLE, fields=fields)
        after = self.definition(database, to)
        if after.storage.location != before.storage.location:
            raise ColdframeError(
                f"{after.full_name}: the metastore has moved it from {before.storage.location} to "
                f"{after.storage.location}"
            )

    def _whole(self, database: str, name: str) -> Fields:
        """A table with all that the metastore says of it, known to us or not."""
        request = messages.TableRequest(database=database, table=name)
        found: Fields = self._newer(
            lambda: self.call(_WHOLE_REQ, request=request)[1][1],
            lambda: self.call(_WHOLE, database=database, table=name),
        )
        return found

    def add(self, table: Definition, partitions: Sequence[PartitionDefinition]) -> None:
        """Registers partitions of which there are none yet."""
        for some in _groups(partitions):
            self.call(changes.ADD_PARTITIONS, partitions=[_partition(table, one) for one in some])

    def change_partitions(self, table: Definition, partitions: Sequence[PartitionDefinition]) -> None:
        """Gives partitions that are there other definitions."""
        for some in _groups(partitions):
            self.call(
                changes.ALTER_PARTITIONS,
                database=table.database,
                table=table.name,
                partitions=[_partition(table, one) for one in some],
            )

    def drop(self, table: Definition, partitions: Iterable[PartitionDefinition]) -> None:
        """Forgets partitions. No file is touched."""
        for one in partitions:
            self.call(
                changes.DROP_PARTITION,
                database=table.database,
                table=table.name,
                values=list(one.values),
                delete_data=False,
            )


def _groups(partitions: Sequence[PartitionDefinition]) -> Iterable[Sequence[PartitionDefinition]]:
    return (partitions[at : at + AT_ONCE] for at in range(0, len(partitions), AT_ONCE))


def _table(table: Definition) -> messages.Message:
    return messages.Table(
        name=table.name,
        database=table.database,
        owner=table.owner,
        storage=_storage(table.storage),
        keys=_columns(table.keys),
        parameters=dict(table.parameters),
        kind=table.kind,
    )


def _partition(table: Definition, one: PartitionDefinition) -> messages.Message:
    return changes.NewPartition(
        values=list(one.values),
        database=table.database,
        table=table.name,
        storage=_storage(one.storage),
        parameters=dict(one.parameters),
    )


def _storage(storage: Storage) -> messages.Message:
    serde = messages.WholeSerDe(library=storage.serde, parameters=dict(storage.serde_properties))
    return messages.WholeStorage(
        columns=_columns(storage.columns),
        location=storage.location,
        input_format=storage.input_format,
        output_format=storage.output_format,
        buckets=-1,
        serde=serde,
        bucketed_by=[],
        sorted_by=[],
    )


def _columns(columns: Sequence[Column]) -> list[messages.Message]:
    return [messages.Column(name=one.name, type=one.type, comment=one.comment) for one in columns]
