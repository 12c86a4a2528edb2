"""Data that the tables of one directory share, such as logs: read once per run, not once per table."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from coldframe._coldframe import ColdframeError, shared_of_tables
from coldframe.pipeline.records import Recorded, SourceFile
from coldframe.pipeline.source.reading import Reading
from coldframe.pipeline.source.tables import Table
from coldframe.sources import Source


class SharedByTables:
    """Data that is read when a directory's first table is opened, and kept for its other tables."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], Mapping[str, Recorded]] = {}

    def of(self, file: SourceFile, table: Table) -> Recorded:
        """The data kept for a table of a directory; empty for most formats."""
        reading = table.reading_of(file)
        name = reading.options.get("table")
        if name is None:
            return ()
        place = file.path, reading.format
        if place not in self._of:
            shared = _read(file, reading)
            if not shared:
                return ()  # these options do not need the data; another table's options may
            self._of[place] = shared
        return self._of[place].get(str(name), ())


def _read(file: SourceFile, reading: Reading) -> Mapping[str, Recorded]:
    options = dict(reading.options)
    source = Source(file.path, file.storage_options)
    # Opening the table reports whether it can be read at all.
    with contextlib.suppress(ColdframeError, OSError, TypeError, ValueError):
        return shared_of_tables(
            source.handle(),
            format=reading.format,
            storage_options=source.core_options(),
            verify_checksums=options.pop("verify_checksums", True),
            keys=options.pop("keys", None),
            options=options,
        )
    return {}
