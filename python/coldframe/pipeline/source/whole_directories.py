"""A directory that Spark reads as one source: its files, and why Spark may not read them as Hive does.

000000_0, part-1.parquet    read
_SUCCESS, .hive-staging     skipped, as Hive and Spark do
old/000000_0                the directory is refused: it depends on Hive's settings whether Hive reads this
000001_0, an ORC file       the directory is refused: the bytes contradict the definition
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import coldframe
from coldframe._coldframe import ColdframeError, NotFoundError
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.records import SourceFile, Unread
from coldframe.pipeline.source.identity import identity_of
from coldframe.pipeline.source.inventory import ROOT, is_hidden
from coldframe.pipeline.source.store_tree import FileEntry
from coldframe.sources import open_store


@dataclass(frozen=True)
class Directory:
    """The contents of a directory."""

    file: SourceFile | None = None
    """The directory as a source; None if it has no rows."""
    refusal: str = ""
    """Why Spark may not read the directory."""
    hidden: list[str] = field(default_factory=list)


def look_at_directory(path: str, storage_options: StorageOptions) -> Directory | Unread | None:
    """Lists a directory; None if it does not exist."""
    try:
        # Taken first, so that the check after reading notices any later change.
        identity = identity_of(path, storage_options)
        store = open_store(path, storage_options)
        entries = [entry for some in store.list("", recursive=True) for entry in some if not entry.is_folder]
        return _directory(path, entries, identity, storage_options)
    except (FileNotFoundError, NotFoundError):
        return None
    except (OSError, ColdframeError) as error:
        return Unread(ROOT, str(error))


def _directory(
    path: str, entries: Sequence[FileEntry], identity: str, storage_options: StorageOptions
) -> Directory:
    shown = [entry for entry in entries if not any(is_hidden(name) for name in entry.path.split("/"))]
    hidden = [entry.path for entry in entries if entry not in shown]
    if not any(entry.size for entry in shown):
        return Directory(hidden=hidden)
    file = SourceFile(
        path,
        ROOT,
        sum(entry.size for entry in entries),
        max(entry.modified or 0 for entry in entries) * 1_000_000,
        None,
        identity,
        is_folder=True,
        storage_options=storage_options,
    )
    return Directory(file, _refusal(path, shown, storage_options), hidden)


def _refusal(path: str, shown: Sequence[FileEntry], storage_options: StorageOptions) -> str:
    """Why Spark may not read the files as Hive does; empty if it may read them."""
    for entry in shown:
        if "/" in entry.path:
            return f"{entry.path} lies in a subdirectory, and Hive's settings decide whether Hive reads these"
        format = _format_of(f"{path}/{entry.path}", storage_options) if entry.size else None
        if format is not None:
            return f"{entry.path} is {format} by its bytes"
    return ""


def _format_of(path: str, storage_options: StorageOptions) -> str | None:
    """One of our formats; None if the bytes have none of them."""
    try:
        return coldframe.detect(path, storage_options=storage_options)
    except NotFoundError:
        raise
    except ColdframeError:
        return None
