"""What a migration can end in: plain Parquet or ORC files, or those files under a Delta log or Iceberg
metadata.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import UnsupportedError, formats
from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.sinks import ColdframeSink, ParquetSink, Sink

Register = Callable[[str, CommittedTable], dict[str, Any]]
"""Root of the target and table -> what the report says of the table's metadata."""


@dataclass(frozen=True)
class Target:
    """A kind of table."""

    name: str
    sink: Sink
    partitions_inside: bool = False
    """Whether partition columns are also in the files (Iceberg), or in the directories' names only."""
    nanoseconds: bool = True
    """Whether its timestamps can have nanoseconds."""
    register: Register | None = None


def find_target(name: str, *, compression: str = "zstd", unit: str = "us") -> Target:
    """The target of this name; UnsupportedError where it is unknown, or a package is missing."""
    if name == "parquet":
        return Target(name, ParquetSink(compression))
    if name == "orc":
        if not formats().get("orc", {}).get("write"):
            raise UnsupportedError("target orc: this version does not write ORC")
        return Target(name, ColdframeSink("orc", unit=unit))
    if name == "delta":
        _need(name, "deltalake", "delta")
        from coldframe.pipeline.delta import register as register_delta

        return Target(name, ParquetSink(compression), nanoseconds=False, register=register_delta)
    if name == "iceberg":
        _need(name, "pyiceberg", "iceberg")
        from coldframe.pipeline.iceberg import register as register_iceberg

        return Target(
            name,
            ParquetSink(compression),
            partitions_inside=True,
            nanoseconds=False,
            register=register_iceberg,
        )
    raise UnsupportedError(f"target {name!r}: expected parquet, iceberg, delta or orc")


def _need(target: str, package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UnsupportedError(
            f"target {target} without the package {package}; pip install 'coldframe[{extra}]'"
        )
