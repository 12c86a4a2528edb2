"""The files below a root of a store, listed once and then looked up in memory.

Whether a folder is one table (of Kudu, HBase) shows in the names below it: asked of a listing it costs
requests only where files have to be read for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from coldframe import _coldframe
from coldframe._coldframe import Store, StoreEntry
from coldframe.errors import ColdframeError
from coldframe.filesystems import Told
from coldframe.sources import scheme_of

__all__ = ["FileEntry", "Files", "Listed", "is_flat"]

_FLAT = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss", "wasb", "wasbs"))


def is_flat(url: str) -> bool:
    """Whether folders are parts of names only in the URL's store, so that one listing has all below."""
    return scheme_of(url) in _FLAT


class FileEntry(Protocol):
    """What a listing tells of a file; `StoreEntry` is one."""

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
    """The files of a folder by name; a dictionary is one."""

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
    """Entries of a store by their folders; also as files for `Store.of`, read from the store itself."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folders: dict[str, Folder] = {"": Folder(self.new_files(""))}
        self._listed = Store.of(self, store.url, "")

    def new_files(self, folder: str) -> Files:
        """Room for the files of a folder."""
        return {}

    def add(self, entry: StoreEntry) -> None:
        """Takes in a file or a folder."""
        above, _, name = entry.path.rpartition("/")
        if entry.is_folder:
            self.folder(entry.path)
        else:
            self.folder(above).files[name] = entry

    def folder(self, path: str) -> Folder:
        """A folder, which is made with those above it."""
        found = self.folders.get(path)
        if found is None:
            found = self.folders[path] = Folder(self.new_files(path))
            above, _, name = path.rpartition("/")
            self.folder(above).folders.add(name)
        return found

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
        """The format that takes a folder for one table."""
        try:
            return _coldframe.detect(self._listed.below(path) if path else self._listed, None)
        except ColdframeError:
            return None

    # What `Store.of` asks, by paths.

    def list(self, folder: str, deep: bool) -> Iterator[Told]:
        """The direct contents of a folder, or all files below it."""
        if folder not in self.folders:
            raise FileNotFoundError(folder)
        if deep:
            return (_told(entry) for _, entry in self.below(folder))
        found = self.folders[folder]
        folders = ((_join(folder, name), 0, True, None, None) for name in found.folders)
        return iter([*(_told(entry) for entry in found.files.values()), *folders])

    def stat(self, path: str) -> Told | None:
        """A file or folder, if there is one."""
        if path in self.folders:
            return path, 0, True, None, None
        above, _, name = path.rpartition("/")
        entry = self.folders[above].files.get(name) if above in self.folders else None
        return None if entry is None else _told(entry)

    def read(self, path: str, start: int, end: int) -> bytes:
        """A range of a file."""
        return self.store.read(path, start, end)


def _told(entry: FileEntry) -> Told:
    return entry.path, entry.size, entry.is_folder, entry.modified, entry.etag


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
