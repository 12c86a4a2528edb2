"""What a listing has told of files, on the driver's own disk: a store may have millions.

    folder NUL name -> size, time of change, etag

Files of one folder follow each other, by their names.
"""

from __future__ import annotations

import marshal
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from coldframe.listing import FileEntry
from coldframe.pipeline.scratch import Scratch, key_of, text_of


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of a store, as its listing told of it."""

    path: str
    size: int
    modified: int | None
    etag: str | None
    is_folder: bool = False

    @property
    def identity(self) -> tuple[int, int | None, str | None]:
        """What a file is opened with, so that another content is an error."""
        return self.size, self.modified, self.etag


class Shelf:
    """Where the files of all folders are."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._number = self._scratch.new_list()
        # What detects formats asks from threads of its own.
        self._turn = threading.Lock()

    def put(self, key: bytes, entry: FileEntry) -> None:
        """Adds a file."""
        with self._turn:
            self._scratch.put(self._number, key, marshal.dumps((entry.size, entry.modified, entry.etag)))

    def get(self, key: bytes) -> bytes | None:
        """A file, if there is one."""
        with self._turn:
            return self._scratch.get(self._number, key)

    def page(self, after: bytes) -> list[tuple[bytes, bytes]]:
        """Some files that come after a key, in the order of their keys."""
        with self._turn:
            return self._scratch.page(self._number, after)


class FolderFiles:
    """The files that lie directly in a folder, by name; as much of a dictionary as `Listed` needs."""

    def __init__(self, shelf: Shelf, folder: str) -> None:
        self._shelf, self._folder = shelf, folder
        self._start = key_of(folder) + b"\0"

    def __setitem__(self, name: str, entry: FileEntry) -> None:
        self._shelf.put(self._start + key_of(name), entry)

    def get(self, name: str) -> FileEntry | None:
        """The file of that name."""
        body = self._shelf.get(self._start + key_of(name))
        return None if body is None else self._entry(name, body)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def values(self) -> Iterator[FileEntry]:
        """All files."""
        return (entry for _, entry in self.items())

    def items(self) -> Iterator[tuple[str, FileEntry]]:
        """Names and files, by name."""
        after = self._start
        while rows := self._shelf.page(after):
            for key, body in rows:
                if not key.startswith(self._start):
                    return
                name = text_of(key[len(self._start) :])
                yield name, self._entry(name, body)
            after = rows[-1][0]

    def _entry(self, name: str, body: bytes) -> Kept:
        return Kept(f"{self._folder}/{name}" if self._folder else name, *marshal.loads(body))
