"""The files of a planned snapshot.

This module does not need PyIceberg: tasks get these objects with splits, and may lack PyIceberg.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coldframe.arrow import pa


@dataclass(frozen=True)
class DeleteFile:
    """A file or a part of a file that lists deleted rows."""

    path: str
    format: str
    referenced: str | None = None
    """The data file to which the deletes apply, if the delete file names one."""
    part: tuple[int, int] | None = None
    """The offset and length, if it is a deletion vector."""
    equality_ids: tuple[int, ...] = ()
    """For equality deletes: the ids of the compared columns."""
    rows: int | None = None
    """The number of its rows that the manifest states."""


@dataclass(frozen=True)
class PlannedFile:
    """A data file to be read."""

    path: str
    """The location in the metadata."""
    format: str
    rows: int
    bytes: int
    partition: Mapping[int, Any]
    """Values of identity partitions by column id, as the manifest stores them."""
    positions: tuple[DeleteFile, ...] = ()
    equality: tuple[DeleteFile, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the file has no deletes."""
        return not self.positions and not self.equality


@dataclass(frozen=True)
class Located:
    """A file to be opened."""

    location: str
    defaults: pa.RecordBatch | None = None
    """Values of columns that the file may lack: a batch of one row."""
    bytes: int | None = None
    """The file's size if it is known; otherwise opening the file asks the store."""
    rows: int | None = None
    """The number of its rows that the manifest states: a file with another number is damage."""


@dataclass(frozen=True)
class ReadyFile:
    """A data file with the parts of the table's schemas that its rows need."""

    planned: PlannedFile
    defaults: pa.RecordBatch
    """Values of columns that the file may lack: a batch of one row."""
    compared: tuple[pa.Field, ...] = ()
    """The columns that its equality deletes compare, under reserved names."""
