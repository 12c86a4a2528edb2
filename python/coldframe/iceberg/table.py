"""An Iceberg table: its metadata, a snapshot, and the columns of that snapshot."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyiceberg.exceptions import ValidationError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.snapshots import Snapshot

from coldframe._coldframe import shown
from coldframe.arrow import pa
from coldframe.errors import ColdframeError, NotFoundError, SchemaError
from coldframe.hive.locations import Locations
from coldframe.iceberg.inputs import Inputs
from coldframe.iceberg.places import FOLDER, directory_of
from coldframe.iceberg.store import TableFiles
from coldframe.iceberg.types import Names, columns_of
from coldframe.logs import step

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Address:
    """A table, one of its snapshots, and where the table's files are."""

    metadata: str
    """The path or URL of a metadata file."""
    snapshot_id: int | None = None
    as_of: int | None = None
    """Milliseconds since 1970: selects the snapshot that was current at that time."""
    location: tuple[tuple[str, str], ...] = ()
    """Prefixes of locations and their replacements."""


class IcebergTable:
    """One snapshot of an Iceberg table."""

    def __init__(self, address: Address, storage_options: Mapping[str, Any] | None) -> None:
        self.address = address
        metadata = Inputs(TableFiles(Locations(), storage_options)).new_input(address.metadata)
        try:
            with step(_log, logging.INFO, "reading the metadata %s", address.metadata):
                self.metadata = FromInputFile.table_metadata(metadata)
        except (ColdframeError, OSError):
            raise
        except (ValidationError, ValueError, RecursionError) as reason:
            raise SchemaError(
                f"{shown(address.metadata)}: not the metadata of an Iceberg table: {_first_line(reason)}"
            ) from reason
        self.files = TableFiles(Locations({**self._moved(), **dict(address.location)}), storage_options)

    def _moved(self) -> dict[str, str]:
        """Maps the locations in the metadata of a copied table to the current locations."""
        written = [snapshot.manifest_list for snapshot in self.metadata.snapshots if snapshot.manifest_list]
        if not written:
            return {}
        # `Locations` takes paths literally; parsing a file URL would decode %-escapes in names.
        metadata_path = Locations().readable(self.address.metadata)
        before, now = written[-1].rpartition("/")[0], metadata_path.rpartition("/")[0]
        location = self.metadata.location.rstrip("/")
        if before == f"{location}/{FOLDER}" and now.endswith(f"/{FOLDER}"):
            return {location: now.removesuffix(f"/{FOLDER}")}
        return {before: now}

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The snapshot; None if the table never had rows."""
        if (number := self.address.snapshot_id) is not None:
            snapshot = self.metadata.snapshot_by_id(number)
            if snapshot is None:
                known = ", ".join(str(recent.snapshot_id) for recent in self.metadata.snapshots[-5:])
                raise NotFoundError(f"{self.name}: no snapshot {number}; the last ones are {known or 'none'}")
            return snapshot
        if (time := self.address.as_of) is None:
            return self.metadata.current_snapshot()
        before = [entry for entry in self.metadata.snapshot_log if entry.timestamp_ms <= time]
        if not before:
            raise NotFoundError(f"{self.name}: it has no snapshot of {instant(time)} or earlier")
        snapshot = self.metadata.snapshot_by_id(before[-1].snapshot_id)
        if snapshot is None:
            raise NotFoundError(f"{self.name}: the snapshot of {instant(time)} has expired")
        return snapshot

    @property
    def name(self) -> str:
        """The table's name in errors."""
        return directory_of(self.address.metadata)

    @cached_property
    def schema(self) -> Schema:
        """Its columns. An explicitly selected snapshot has the columns of its time."""
        if self.address.snapshot_id is None and self.address.as_of is None:
            return self.metadata.schema()
        number = None if self.snapshot is None else self.snapshot.schema_id
        return next(
            (schema for schema in self.metadata.schemas if schema.schema_id == number), self.metadata.schema()
        )

    @property
    def schemas(self) -> list[Schema]:
        """All schemas of the table: first the snapshot's, then the others from the newest to the oldest."""
        return [self.schema, *sorted(self.metadata.schemas, key=lambda schema: -schema.schema_id)]

    @cached_property
    def names(self) -> Names:
        """The names of the table's columns in files without ids."""
        return Names(self.metadata.name_mapping())

    @cached_property
    def columns(self) -> pa.Schema:
        """The table's columns with metadata for the readers."""
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
