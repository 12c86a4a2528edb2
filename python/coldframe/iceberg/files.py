"""A snapshot's files, as its plan has them. None of this needs PyIceberg: it travels with splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = ["DeleteFile", "Located", "PlannedFile", "ReadyFile"]


@dataclass(frozen=True)
class DeleteFile:
    """A file, or a part of one, that says which rows are gone."""

    path: str
    format: str
    referenced: str | None = None
    """The data file that it is for, if it says that it is for one alone."""
    part: tuple[int, int] | None = None
    """The offset and length, if it is a deletion vector."""
    equality_ids: tuple[int, ...] = ()
    """Of equality deletes: the ids of the columns that are compared."""


@dataclass(frozen=True)
class PlannedFile:
    """A data file to be read."""

    path: str
    """As the metadata has it."""
    format: str
    rows: int
    bytes: int
    partition: Mapping[int, Any]
    """Values by the ids of columns: those of identity partitions, as the manifest stores them."""
    positions: tuple[DeleteFile, ...] = ()
    equality: tuple[DeleteFile, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether no deletes apply to it."""
        return not self.positions and not self.equality


@dataclass(frozen=True)
class Located:
    """A file to be opened."""

    location: str
    defaults: pa.RecordBatch | None = None
    """Values of columns that it may lack: a batch of one row."""
    bytes: int | None = None
    """Its size, if it is to be taken as known."""


@dataclass(frozen=True)
class ReadyFile:
    """A data file with all that its rows need of the table's schemas."""

    planned: PlannedFile
    defaults: pa.RecordBatch
    """Values of columns that it may lack: a batch of one row."""
    compared: tuple[pa.Field, ...] = ()
    """The columns that its equality deletes compare, under names that no table has."""
