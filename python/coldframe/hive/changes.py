"""Changes a Hive metastore: creates and changes coldframe's own tables and their partitions.

Partitions are sent in groups: a metastore writes each group in one transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from thrift.Thrift import TType

from coldframe._coldframe import ColdframeError
from coldframe.hive import change_messages as changes
from coldframe.hive import messages
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.metastore import Metastore
from coldframe.hive.raw import Fields, RawAnswer, RawMessage
from coldframe.hive.reader import MetastoreRefusal

PARTITIONS_AT_ONCE = 500
_TABLE = 3
_PRINCIPALS = {1: "user", 2: "role", 3: "group"}
_WHOLE_REQ = replace(messages.GET_TABLE_REQ, answer=RawAnswer)
_WHOLE = replace(messages.GET_TABLE, answer=RawAnswer)
_ALTER_WHOLE = replace(changes.ALTER_TABLE, arguments=RawMessage)


class MetastoreWriter(Metastore):
    """A connection that also creates and changes tables."""

    def find(self, database: str, name: str) -> Definition | None:
        """A table; None if the database has no such table."""
        with contextlib.suppress(MetastoreRefusal):
            if name.lower() in self._texts(messages.GET_ALL_TABLES, database=database):
                return self.definition(database, name)
        return None

    def make_database(self, name: str) -> None:
        """Creates a database at the metastore's default location, if it does not exist."""
        if name.lower() not in self.databases():
            made = changes.Database(name=name, description="tables that coldframe migrated")
            self.call(changes.CREATE_DATABASE, database=made)

    def create(self, table: Definition) -> None:
        """Creates a table."""
        self.call(changes.CREATE_TABLE, table=_table(table))

    def change(self, table: Definition) -> None:
        """Replaces the definition of the table of this name. The table's partitions stay as they are."""
        self.call(changes.ALTER_TABLE, database=table.database, table=table.name, changed=_table(table))

    def rename(self, database: str, name: str, to: str) -> None:
        """Renames a table. All other fields stay as they are, including the location.

        Refuses managed tables, whose files the metastore would move.
        """
        before = self.definition(database, name)
        if before.kind != "EXTERNAL_TABLE":
            raise ColdframeError(
                f"{before.full_name} is not an external table: the metastore would move its files"
            )
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

    def grant_as(self, database: str, name: str, to: str) -> list[str]:
        """Grants on a table what the metastore knows to be granted on another one, as a whole. Returns the
        privileges that are new, in words.
        """
        there = {_key(privilege) for privilege in self._privileges(database, to)}
        granted = [each for each in self._privileges(database, name) if _key(each) not in there]
        for privilege in granted:
            privilege.object.name = to
        if granted:
            self.call(changes.GRANT_PRIVILEGES, privileges=changes.Privileges(privileges=granted))
        return sorted(f"{each.grant.privilege} to {_principal(each)}" for each in granted)

    def _privileges(self, database: str, name: str) -> list[Any]:
        of = changes.HiveObject(kind=_TABLE, database=database, name=name)
        return self._list(self.call(changes.LIST_PRIVILEGES, object=of), changes.Privilege)

    def _whole(self, database: str, name: str) -> Fields:
        """All fields of a table in the metastore, including fields that this package does not know."""
        request = messages.TableRequest(database=database, table=name)
        table: Fields = self._newer(
            lambda: self.call(_WHOLE_REQ, request=request)[1][1],
            lambda: self.call(_WHOLE, database=database, table=name),
        )
        return table

    def add(self, table: Definition, partitions: Sequence[PartitionDefinition]) -> None:
        """Registers new partitions."""
        for group in _groups(partitions):
            self.call(
                changes.ADD_PARTITIONS, partitions=[_partition(table, partition) for partition in group]
            )

    def change_partitions(self, table: Definition, partitions: Sequence[PartitionDefinition]) -> None:
        """Replaces the definitions of existing partitions."""
        for group in _groups(partitions):
            self.call(
                changes.ALTER_PARTITIONS,
                database=table.database,
                table=table.name,
                partitions=[_partition(table, partition) for partition in group],
            )

    def drop(self, table: Definition, partitions: Iterable[PartitionDefinition]) -> None:
        """Removes partitions from the metastore. Touches no files."""
        for partition in partitions:
            self.call(
                changes.DROP_PARTITION,
                database=table.database,
                table=table.name,
                values=list(partition.values),
                delete_data=False,
            )


def _key(privilege: Any) -> tuple[Any, ...]:
    grant = privilege.grant
    return grant.privilege, privilege.principal, privilege.principal_kind, grant.grantor, grant.may_grant


def _principal(privilege: Any) -> str:
    return f"{_PRINCIPALS.get(privilege.principal_kind, 'principal')} {privilege.principal}"


def _groups(partitions: Sequence[PartitionDefinition]) -> Iterable[Sequence[PartitionDefinition]]:
    return (partitions[at : at + PARTITIONS_AT_ONCE] for at in range(0, len(partitions), PARTITIONS_AT_ONCE))


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


def _partition(table: Definition, partition: PartitionDefinition) -> messages.Message:
    return changes.NewPartition(
        values=list(partition.values),
        database=table.database,
        table=table.name,
        storage=_storage(partition.storage),
        parameters=dict(partition.parameters),
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
    return [messages.Column(name=column.name, type=column.type, comment=column.comment) for column in columns]
