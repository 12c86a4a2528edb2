"""What travels from room to room: a source file, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from coldframe.pipeline.file_access import StorageOptions

Recorded = Sequence[tuple[int, bytes]]
"""What was read to open something, for opening it again."""


Cause = Literal["failed", "changed", "damaged"]
"""Why a source was not converted. Damaged: its own bytes are wrong, and nobody changed them meanwhile; only
such a one may be quarantined. Failed: all else, from a full disk to values that have no form in the table.
"""


@dataclass(frozen=True)
class SourceFile:
    """A file of the source tree, or a directory that a format takes as a whole (of Kudu, HBase)."""

    path: str
    relative: str
    size: int
    mtime_ns: int
    format: str | None
    identity: str = ""
    """What it is compared with while it is read: see `identity`."""
    is_folder: bool = False
    etag: str | None = None
    """What its store calls this content, where it does."""
    storage_options: StorageOptions = field(default=None, repr=False, compare=False)
    """How its store is reached."""
    tables: int = 1
    """How many tables a directory holds, of which this is one."""

    @property
    def share(self) -> int:
        """The bytes of it that count: of a directory of several tables, each has an equal part."""
        return self.size // self.tables

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the directories between the source's root and the file."""
        return tuple(self.relative.split("/")[:-1])

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Hive's partition: the `key=value` directories, undone of their escapes."""
        return tuple((unquote(key), unquote(value)) for key, value in map(_split_key, self.folders) if key)


@dataclass(frozen=True)
class Unread:
    """A place of the source tree whose rows, if it has any, nobody has seen."""

    relative: str
    reason: str


Part = tuple[int, int, int, int | None, Recorded]
"""Of a source file: part, start, stop, its rows where they are known, and what travels with the split."""


@dataclass
class PlannedFile:
    """A source file that is to be converted."""

    file: SourceFile
    key: str
    parts: Sequence[Part] = ()
    schema: str = ""
    """The name of its columns: see `schema_id`."""
    names: tuple[str, ...] | None = None
    rows: int | None = None
    """How many the file says it has."""
    known: tuple[Any, ...] | None = None
    """What its store says it is, compared when it is opened again."""
    masked: bool = False
    """Encrypted columns of it are as their mask left them, since there is no key."""
    error: str | None = None
    changed: bool = False
    """It is not the file any more that the inventory saw."""


def is_partition(folder: str) -> bool:
    """Whether a directory's name is `key=value`."""
    return bool(_split_key(folder)[0])


def _split_key(folder: str) -> tuple[str, str]:
    key, equals, value = folder.partition("=")
    return (key, value) if equals else ("", "")
