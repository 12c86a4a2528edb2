"""The names of a table, and the files that its log or metadata lists now, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class InCatalog:
    """A table's name in a catalog that the user named."""

    catalog: str
    """The catalog: for Iceberg, its name in PyIceberg's configuration; for Hive, `thrift://host:9083`."""
    namespace: str
    table: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.table} of catalog {self.catalog}"


@dataclass(frozen=True)
class TableName:
    """The names of a target table."""

    name: str
    path: str
    """Relative to the target's root."""
    place: InCatalog | None = None


@dataclass(frozen=True)
class LiveFile:
    """A file that readers of a table see."""

    path: str
    """The file's path, relative to the target's root; for a file elsewhere, its name in the log."""
    rows: int | None
    """The rows that a reader of the table sees in it; None if unknown: see `why`."""
    hidden: int = 0
    """Rows that a deletion vector or delete files hide."""
    bytes: int | None = None
    why: str = ""
    """Why the number of visible rows is unknown."""
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The file's partition values."""


@dataclass(frozen=True)
class LiveTable:
    """A table according to its log or metadata."""

    state: Literal["there", "gone", "unreadable"]
    reason: str = ""
    """Why the table is gone or cannot be read."""
    version: str = ""
    columns: tuple[str, ...] | None = None
    """The names of the columns; None if only the files define them."""
    files: Iterable[LiveFile] = ()
