"""The files of an Iceberg table for PyIceberg, through our own stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

from coldframe._coldframe import Store
from coldframe.errors import ColdframeError, NotFoundError, unsupported
from coldframe.hive.locations import Locations
from coldframe.ranged import RangedFile
from coldframe.sources import open_store

__all__ = ["TableFiles"]


class TableFiles(FileIO):
    """Reads a table's files where they are now; writes nothing."""

    def __init__(self, locations: Locations, storage_options: Mapping[str, Any] | None) -> None:
        super().__init__()
        self._locations, self._options = locations, storage_options

    def readable(self, location: str) -> str:
        """The path or URL of a location."""
        return self._locations.readable(location)

    def ranged(self, location: str) -> RangedFile:
        """A file of the table as a Python file object."""
        return RangedFile(self.store(location))

    def store(self, location: str) -> Store:
        """A file of the table, as a store's root."""
        return open_store(self.readable(location), self._options)

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return _Input(location, self)

    def new_output(self, location: str) -> OutputFile:
        """Nothing is written."""
        raise unsupported("writing to an Iceberg table that is read")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Nothing is deleted."""
        raise unsupported("deleting from an Iceberg table that is read")


class _Input(InputFile):
    def __init__(self, location: str, files: TableFiles) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return self._files.ranged(self.location).size

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except (ColdframeError, OSError):
            return False

    def open(self, seekable: bool = True) -> InputStream:
        try:
            return self._files.ranged(self.location)
        except NotFoundError as gone:
            raise FileNotFoundError(self.location) from gone
