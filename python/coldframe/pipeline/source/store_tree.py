"""The files below a root of a store, listed once, then looked up on the driver's disk: there may be millions.

    folder NUL name -> size, time of change, etag      the files of a folder are adjacent, sorted by name

The names below a folder show whether it is one table (of Kudu, HBase). With a listing, this check costs a
request only if it must read a file. Memory holds the names of folders, but not of files.
"""

from __future__ import annotations

import marshal
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from coldframe import _coldframe
from coldframe._coldframe import Store, StoreEntry
from coldframe.errors import ColdframeError
from coldframe.filesystems import Info
from coldframe.pipeline.records import Unread
from coldframe.pipeline.state.scratch import PAGE, Scratch, key_of, text_of


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of a store, from its listing: what a `StoreEntry` says."""

    path: str
    size: int
    modified: int | None
    etag: str | None
    is_folder: bool = False

    @property
    def identity(self) -> tuple[int, int | None, str | None]:
        """The identity for opening the file: other content is then an error."""
        return self.size, self.modified, self.etag


FileEntry: TypeAlias = StoreEntry | Kept
"""A file in a listing."""


class Shelf(Scratch):
    """The files of all folders. Any thread may query it, since format detection uses threads."""

    def __init__(self) -> None:
        super().__init__()
        self.files = self.new_list()
        self._turn = threading.Lock()

    def put(self, number: int, key: bytes, body: bytes) -> None:
        with self._turn:
            super().put(number, key, body)

    def get(self, number: int, key: bytes) -> bytes | None:
        with self._turn:
            return super().get(number, key)

    def page(
        self, number: int, after: bytes | None, limit: int = PAGE, *, before: bytes | None = None
    ) -> list[tuple[bytes, bytes]]:
        with self._turn:
            return super().page(number, after, limit, before=before)


class FolderFiles:
    """The direct files of a folder by name."""

    def __init__(self, shelf: Shelf, folder: str) -> None:
        self._shelf, self._folder = shelf, folder
        self._start = key_of(folder) + b"\0"

    def __setitem__(self, name: str, entry: FileEntry) -> None:
        body = marshal.dumps((entry.size, entry.modified, entry.etag))
        self._shelf.put(self._shelf.files, self._start + key_of(name), body)

    def get(self, name: str) -> Kept | None:
        """The file of that name."""
        body = self._shelf.get(self._shelf.files, self._start + key_of(name))
        return None if body is None else self._entry(name, body)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def values(self) -> Iterator[Kept]:
        """All files."""
        return (entry for _, entry in self.items())

    def items(self) -> Iterator[tuple[str, Kept]]:
        """Names and files, by name."""
        for key, body in self._shelf.rows(self._shelf.files, self._start):
            name = text_of(key[len(self._start) :])
            yield name, self._entry(name, body)

    def _entry(self, name: str, body: bytes) -> Kept:
        return Kept(joined(self._folder, name), *marshal.loads(body))


@dataclass
class Folder:
    """The direct contents of a folder."""

    files: FolderFiles
    folders: set[str] = field(default_factory=set)


class Tree:
    """Entries of a store by folder. Also a file system for `Store.of` that reads through the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._shelf = Shelf()
        self.folders = {"": Folder(FolderFiles(self._shelf, ""))}
        self.unread: list[Unread] = []
        """Folders that could not be listed."""
        self.count = 0
        """The number of listed files and folders."""
        self._listed = Store.of(self, store.url, "")

    def add(self, entry: FileEntry) -> None:
        """Adds a file or a folder."""
        self.count += 1
        above, _, name = entry.path.rpartition("/")
        if entry.is_folder:
            self.folder(entry.path)
        else:
            self.folder(above).files[name] = entry

    def folder(self, path: str) -> Folder:
        """A folder; creates it and the folders above it if they are missing."""
        folder = self.folders.get(path)
        if folder is None:
            folder = self.folders[path] = Folder(FolderFiles(self._shelf, path))
            above, _, name = path.rpartition("/")
            self.folder(above).folders.add(name)
        return folder

    def below(self, path: str) -> Iterator[tuple[str, Kept]]:
        """All files of a folder, by their paths relative to it."""
        start = f"{path}/" if path else ""
        waiting = deque([path])
        while waiting:
            at = waiting.popleft()
            folder = self.folders[at]
            yield from ((entry.path[len(start) :], entry) for entry in folder.files.values())
            waiting.extend(joined(at, name) for name in sorted(folder.folders))

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
        folders = ((joined(folder, name), 0, True, None, None) for name in contents.folders)
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


def _info_of(entry: Kept) -> Info:
    return entry.path, entry.size, entry.is_folder, entry.modified, entry.etag


def joined(folder: str, name: str) -> str:
    """The path of an entry of a folder; "" is the root."""
    return f"{folder}/{name}" if folder else name
