"""Opens the files of an Iceberg table at their current location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coldframe._coldframe import Store
from coldframe.hive.locations import Locations
from coldframe.sources import open_store
from coldframe.store_file import RangedFile


class TableFiles:
    """Opens a table's files. Splits carry the settings to other processes."""

    def __init__(self, locations: Locations, storage_options: Mapping[str, Any] | None) -> None:
        self._locations, self._options = locations, storage_options

    def readable(self, location: str) -> str:
        """The path or URL of a location."""
        return self._locations.readable(location)

    def ranged(self, location: str) -> RangedFile:
        """A file of the table as a Python file object."""
        return RangedFile(self.store(location))

    def store(self, location: str) -> Store:
        """A store whose root is a file of the table."""
        return open_store(self.readable(location), self._options)
