"""Tables and partitions of a metastore, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coldframe._coldframe import ColdframeError


class MetastoreRefusal(ColdframeError):
    """The metastore works, but refuses the request."""


@dataclass(frozen=True)
class HiveTable:
    """A table, a view, or another named object."""

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
    """A table that the metastore refuses to describe."""

    database: str
    name: str
    reason: str
