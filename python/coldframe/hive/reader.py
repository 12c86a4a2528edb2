"""The interface to the definitions of a metastore: a server, or a dump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from coldframe.hive.definition import Definition, PartitionDefinition
from coldframe.hive.tables import Refused
from coldframe.hive.write_ids import WriteIds


class DefinitionReader(Protocol):
    """Databases, tables and partitions. The reader must be closed after use."""

    @property
    def uri(self) -> str:
        """The address of the server, or the file."""

    def __enter__(self) -> DefinitionReader: ...

    def __exit__(self, *_: object) -> None: ...

    def databases(self) -> list[str]:
        """The names of all databases."""

    def definitions(self, database: str) -> Iterator[Definition | Refused]:
        """All named objects of a database."""

    def definition(self, database: str, name: str) -> Definition:
        """One table; raises `MetastoreRefusal` if there is none."""

    def partition_names(self, table: Definition) -> list[str]:
        """The names of a table's partitions, escaped: `dt=2014-01-01/region=asia%2Fpacific`."""

    def partition_definitions(
        self, table: Definition, names: Sequence[str] | None = None
    ) -> Iterator[PartitionDefinition]:
        """The partitions of a table: all, or the partitions with these names."""

    def write_ids(self, table: Definition) -> WriteIds:
        """Which writes of a transactional table are committed; raises `MetastoreRefusal` if unknown."""

    def partitions(self, table: Definition) -> Iterator[PartitionDefinition]:
        """The partitions of a table. Details such as columns may be missing."""
