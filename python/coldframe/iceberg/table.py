"""An Iceberg table as it stands: its metadata, a snapshot of it, and that snapshot's columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.snapshots import Snapshot

from coldframe.errors import ColdframeError, NotFoundError, SchemaError
from coldframe.hive.locations import Locations
from coldframe.iceberg.inputs import Inputs
from coldframe.iceberg.places import FOLDER, directory_of
from coldframe.iceberg.store import TableFiles
from coldframe.iceberg.types import Names, columns_of

__all__ = ["Address", "IcebergTable"]


@dataclass(frozen=True)
class Address:
    """Which table, at which snapshot, and where its files are."""

    metadata: str
    """The path or URL of a metadata file."""
    snapshot_id: int | None = None
    as_of: int | None = None
    """Milliseconds since 1970: the snapshot that was the current one then."""
    location: tuple[tuple[str, str], ...] = ()
    """Prefixes of locations and their replacements."""


class IcebergTable:
    """One snapshot of a table."""

    def __init__(self, address: Address, storage_options: Mapping[str, Any] | None) -> None:
        self.address = address
        metadata = Inputs(TableFiles(Locations(), storage_options)).new_input(address.metadata)
        try:
            self.metadata = FromInputFile.table_metadata(metadata)
        except (ColdframeError, OSError):
            raise
        except (ValidationError, ValueError) as reason:
            raise SchemaError(
                f"{address.metadata}: not the metadata of an Iceberg table: {_first_line(reason)}"
            ) from reason
        self.files = TableFiles(Locations({**self._moved(), **dict(address.location)}), storage_options)

    def _moved(self) -> dict[str, str]:
        """Where a copied table's files are, by where they were when its metadata was written."""
        written = [one.manifest_list for one in self.metadata.snapshots if one.manifest_list]
        if not written:
            return {}
        # Names are literal: a URL of a file would be decoded.
        here = Locations().readable(self.address.metadata)
        before, now = written[-1].rpartition("/")[0], here.rpartition("/")[0]
        location = self.metadata.location.rstrip("/")
        if before == f"{location}/{FOLDER}" and now.endswith(f"/{FOLDER}"):
            return {location: now.removesuffix(f"/{FOLDER}")}
        return {before: now}

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The snapshot; None of a table that never had rows."""
        if (number := self.address.snapshot_id) is not None:
            found = self.metadata.snapshot_by_id(number)
            if found is None:
                known = ", ".join(str(one.snapshot_id) for one in self.metadata.snapshots[-5:])
                raise NotFoundError(f"{self.name}: no snapshot {number}; the last ones are {known or 'none'}")
            return found
        if (time := self.address.as_of) is None:
            return self.metadata.current_snapshot()
        before = [entry for entry in self.metadata.snapshot_log if entry.timestamp_ms <= time]
        if not before:
            raise NotFoundError(f"{self.name}: it has no snapshot at {instant(time)} or before")
        found = self.metadata.snapshot_by_id(before[-1].snapshot_id)
        if found is None:
            raise NotFoundError(f"{self.name}: its snapshot of {instant(time)} has expired")
        return found

    @property
    def name(self) -> str:
        """What errors call it."""
        return directory_of(self.address.metadata)

    @cached_property
    def schema(self) -> Schema:
        """Its columns. A snapshot that was asked for has those of its time."""
        if self.address.snapshot_id is None and self.address.as_of is None:
            return self.metadata.schema()
        number = None if self.snapshot is None else self.snapshot.schema_id
        return next((one for one in self.metadata.schemas if one.schema_id == number), self.metadata.schema())

    @property
    def schemas(self) -> list[Schema]:
        """All schemas that it had: its own first, then from the newest on."""
        return [self.schema, *sorted(self.metadata.schemas, key=lambda one: -one.schema_id)]

    @cached_property
    def names(self) -> Names:
        """The names of its columns in files without ids."""
        return Names(self.metadata.name_mapping())

    @cached_property
    def columns(self) -> pa.Schema:
        """Its columns as the readers take them."""
        return columns_of(self.schema.fields, self.names)

    @property
    def spec(self) -> PartitionSpec:
        """How new files are partitioned."""
        return self.metadata.spec()


def instant(milliseconds: int) -> str:
    """A time as errors show it."""
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc).isoformat(timespec="milliseconds")


def _first_line(reason: Exception) -> str:
    return str(reason).partition("\n")[0]
