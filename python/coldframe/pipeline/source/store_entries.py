"""Files of a listing, on the driver's disk: a store may have millions.

    folder NUL name -> size, time of change, etag

The files of a folder are adjacent, sorted by name.
"""

from __future__ import annotations

import marshal
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from coldframe.listing import FileEntry
from coldframe.pipeline.state.scratch import PAGE, Scratch, key_of, text_of


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of a store, from its listing."""

    path: str
    size: int
    modified: int | None
    etag: str | None
    is_folder: bool = False

    @property
    def identity(self) -> tuple[int, int | None, str | None]:
        """The identity for opening the file: other content is then an error."""
        return self.size, self.modified, self.etag


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
    """The direct files of a folder by name: the part of a dictionary's interface that `Listed` needs."""

    def __init__(self, shelf: Shelf, folder: str) -> None:
        self._shelf, self._folder = shelf, folder
        self._start = key_of(folder) + b"\0"

    def __setitem__(self, name: str, entry: FileEntry) -> None:
        body = marshal.dumps((entry.size, entry.modified, entry.etag))
        self._shelf.put(self._shelf.files, self._start + key_of(name), body)

    def get(self, name: str) -> FileEntry | None:
        """The file of that name."""
        body = self._shelf.get(self._shelf.files, self._start + key_of(name))
        return None if body is None else self._entry(name, body)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def values(self) -> Iterator[FileEntry]:
        """All files."""
        return (entry for _, entry in self.items())

    def items(self) -> Iterator[tuple[str, FileEntry]]:
        """Names and files, by name."""
        for key, body in self._shelf.rows(self._shelf.files, self._start):
            name = text_of(key[len(self._start) :])
            yield name, self._entry(name, body)

    def _entry(self, name: str, body: bytes) -> Kept:
        return Kept(f"{self._folder}/{name}" if self._folder else name, *marshal.loads(body))
