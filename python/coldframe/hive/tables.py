"""What a metastore says of tables and partitions, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coldframe._coldframe import ColdframeError


class MetastoreRefusal(ColdframeError):
    """The metastore is well, but does not give what it was asked for."""


@dataclass(frozen=True)
class HiveTable:
    """A table; or a view, or what else has a name."""

    database: str
    name: str
    kind: str = "MANAGED_TABLE"
    """`MANAGED_TABLE`, `EXTERNAL_TABLE`, `VIRTUAL_VIEW` ..."""
    location: str | None = None
    input_format: str | None = None
    """The name of a Java class."""
    keys: tuple[str, ...] = ()
    """The partition columns."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    serde_parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HivePartition:
    """A partition of a table."""

    values: tuple[str, ...]
    location: str | None = None
    input_format: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """A table that the metastore does not tell of."""

    database: str
    name: str
    reason: str
