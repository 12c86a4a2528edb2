"""The files below a root of a store, listed once and then looked up in memory.

The names below a folder show whether it is one table (of Kudu, HBase). With a listing, this check costs a
request only if it must read a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from coldframe import _coldframe
from coldframe._coldframe import Store, StoreEntry
from coldframe.errors import ColdframeError
from coldframe.filesystems import Info
from coldframe.sources import scheme_of

_FLAT = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss", "wasb", "wasbs"))


def is_flat(url: str) -> bool:
    """Whether the URL's store has no real folders, so that one listing returns all files below a prefix."""
    return scheme_of(url) in _FLAT


class FileEntry(Protocol):
    """A file in a listing; `StoreEntry` implements it."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def is_folder(self) -> bool: ...
    @property
    def modified(self) -> int | None: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def identity(self) -> tuple[int, int | None, str | None]: ...


class Files(Protocol):
    """The files of a folder by name; a dictionary implements it."""

    def __setitem__(self, name: str, entry: FileEntry, /) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def get(self, name: str, /) -> FileEntry | None: ...
    def values(self) -> Iterable[FileEntry]: ...
    def items(self) -> Iterable[tuple[str, FileEntry]]: ...


@dataclass
class Folder:
    """The direct contents of a folder."""

    files: Files
    folders: set[str] = field(default_factory=set)


class Listed:
    """Entries of a store by folder. Also a file system for `Store.of` that reads through the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folders: dict[str, Folder] = {"": Folder(self.new_files(""))}
        self._listed = Store.of(self, store.url, "")

    def new_files(self, folder: str) -> Files:
        """An empty container for the files of a folder."""
        return {}

    def add(self, entry: StoreEntry) -> None:
        """Adds a file or a folder."""
        above, _, name = entry.path.rpartition("/")
        if entry.is_folder:
            self.folder(entry.path)
        else:
            self.folder(above).files[name] = entry

    def folder(self, path: str) -> Folder:
        """A folder; creates it and the folders above it if they are missing."""
        folder = self.folders.get(path)
        if folder is None:
            folder = self.folders[path] = Folder(self.new_files(path))
            above, _, name = path.rpartition("/")
            self.folder(above).folders.add(name)
        return folder

    def below(self, path: str) -> Iterator[tuple[str, FileEntry]]:
        """All files of a folder, by their paths relative to it."""
        start = f"{path}/" if path else ""
        waiting = deque([path])
        while waiting:
            at = waiting.popleft()
            folder = self.folders[at]
            yield from ((entry.path[len(start) :], entry) for entry in folder.files.values())
            waiting.extend(_join(at, name) for name in sorted(folder.folders))

    def detect(self, path: str) -> str | None:
        """The format for which a folder is one table; None if there is none."""
        try:
            return _coldframe.detect(self._listed.below(path) if path else self._listed, None)
        except ColdframeError:
            return None

    # The interface that `Store.of` calls.

    def list(self, folder: str, deep: bool) -> Iterator[Info]:
        """The direct contents of a folder, or all files below it."""
        if folder not in self.folders:
            raise FileNotFoundError(folder)
        if deep:
            return (_info_of(entry) for _, entry in self.below(folder))
        contents = self.folders[folder]
        folders = ((_join(folder, name), 0, True, None, None) for name in contents.folders)
        return iter([*(_info_of(entry) for entry in contents.files.values()), *folders])

    def stat(self, path: str) -> Info | None:
        """A file or folder, if there is one."""
        if path in self.folders:
            return path, 0, True, None, None
        above, _, name = path.rpartition("/")
        entry = self.folders[above].files.get(name) if above in self.folders else None
        return None if entry is None else _info_of(entry)

    def read(self, path: str, start: int, end: int) -> bytes:
        """A range of a file."""
        return self.store.read(path, start, end)


def _info_of(entry: FileEntry) -> Info:
    return entry.path, entry.size, entry.is_folder, entry.modified, entry.etag


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
