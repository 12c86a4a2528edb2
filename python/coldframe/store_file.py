"""A file of a store as a Python file object."""

from __future__ import annotations

import io
import logging
from typing import Any

from coldframe._coldframe import Store
from coldframe.logs import step
from coldframe.sources import Known

_log = logging.getLogger(__name__)


class RangedFile(io.RawIOBase):
    """A file of a store as a Python file object."""

    def __init__(self, store: Store, name: str = "", known: Known | None = None) -> None:
        self._url = store.url_of(name)
        with step(_log, logging.DEBUG, "opening %s", self._url):
            self._file = store.open(name, known)
        self._at = 0

    @property
    def size(self) -> int:
        """The file's length in bytes."""
        return self._file.size

    def readable(self) -> bool:
        """Always True."""
        return True

    def seekable(self) -> bool:
        """Always True."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the position of the next read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """`size` bytes, fewer at the end of the file."""
        stop = self.size if size is None or size < 0 else self._at + size
        start = min(self._at, self.size)
        with step(_log, logging.DEBUG, "reading %s, %d to %d", self._url, start, stop):
            data = self._file.read(start, stop)
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        """The rest of the file."""
        return self.read()

    def readinto(self, buffer: Any) -> int:
        """Reads into an existing buffer."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
