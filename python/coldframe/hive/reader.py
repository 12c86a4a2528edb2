"""The interface to the definitions of a metastore: a server, or a dump."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coldframe._coldframe import ColdframeError
from coldframe.hive.definition import Definition, PartitionDefinition
from coldframe.hive.write_ids import WriteIds

if TYPE_CHECKING:
    from typing_extensions import Self


class MetastoreRefusal(ColdframeError):
    """The metastore works, but refuses the request."""


@dataclass(frozen=True)
class Refused:
    """A table that the metastore refuses to describe."""

    database: str
    name: str
    reason: str


class DefinitionReader(ABC):
    """Databases, tables and partitions. The reader must be closed after use."""

    uri: str
    """The address of the server, or the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - only a connection has to be closed
        """Closes a connection, if there is one."""

    @abstractmethod
    def databases(self) -> list[str]:
        """The names of all databases."""

    @abstractmethod
    def definitions(self, database: str) -> Iterator[Definition | Refused]:
        """All named objects of a database."""

    @abstractmethod
    def definition(self, database: str, name: str) -> Definition:
        """One table; raises `MetastoreRefusal` if there is none."""

    @abstractmethod
    def partition_names(self, table: Definition) -> list[str]:
        """The names of a table's partitions, escaped: `dt=2014-01-01/region=asia%2Fpacific`."""

    @abstractmethod
    def partition_definitions(
        self, table: Definition, names: Sequence[str] | None = None
    ) -> Iterator[PartitionDefinition]:
        """The partitions of a table: all, or the partitions with these names."""

    @abstractmethod
    def write_ids(self, table: Definition) -> WriteIds:
        """Which writes of a transactional table are committed; raises `MetastoreRefusal` if unknown."""

    def partitions(self, table: Definition) -> Iterator[PartitionDefinition]:
        """The partitions of a table. Details such as columns may be missing."""
        return self.partition_definitions(table)
