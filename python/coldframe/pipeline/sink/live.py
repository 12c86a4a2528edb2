"""The names of a table, and the files that its own log or metadata lists now, including those of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class InCatalog:
    """What a table is called in a catalog that was named."""

    catalog: str
    """Of Iceberg: its name in PyIceberg's configuration; of Hive: `thrift://host:9083`."""
    namespace: str
    table: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.table} of catalog {self.catalog}"


@dataclass(frozen=True)
class TableName:
    """A table of the target."""

    name: str
    path: str
    """Relative to the target's root."""
    place: InCatalog | None = None


@dataclass(frozen=True)
class LiveFile:
    """A file that readers of a table see."""

    path: str
    """Relative to the target's root; of a file that lies elsewhere, as the log has it."""
    rows: int | None
    """That a reader of the table sees in it; None where that cannot be said: see `why`."""
    hidden: int = 0
    """Rows of it that the table hides: by a deletion vector, or by delete files."""
    bytes: int | None = None
    why: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Its partition values."""


@dataclass(frozen=True)
class LiveTable:
    """A table as its log or metadata has it."""

    state: Literal["there", "gone", "unreadable"]
    reason: str = ""
    """Why it is gone or cannot be read."""
    version: str = ""
    columns: tuple[str, ...] | None = None
    """None where nothing but the files says what they are."""
    files: Iterable[LiveFile] = ()
