"""Which tables of a metastore share their files with its Iceberg tables.

Iceberg's procedures `snapshot` and `add_files` make tables over the files of Hive's. Such a file is in use
even if its rows are in the target: its table is migrated, but no source of the table is safe to delete. The
files of all snapshots count.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence

from coldframe.errors import unsupported
from coldframe.hive.definition import Definition
from coldframe.hive.locations import Locations
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.source.defined import DefinedSource
from coldframe.pipeline.source.ownership import Key, key_of
from coldframe.sources import options_for


def tables_in_use(source: DefinedSource, moved: Mapping[str, str], options: StorageOptions) -> dict[str, str]:
    """The tables whose files Iceberg tables use, or may use, with the reason."""
    in_use: dict[str, str] = {}
    locations = Locations(moved)
    for table in source.iceberg:
        try:
            keys = sorted({key_of(locations.readable(path)) for path in _files_of(table, moved, options)})
        except Exception as error:
            # The metadata may be gone or of a newer version, and PyIceberg has no common class of errors.
            for taken in source.tables:
                in_use.setdefault(
                    taken.name, f"which files the Iceberg table {table.full_name} uses is unknown: {error}"
                )
            continue
        for taken in source.tables:
            if any(_has_below(keys, key_of(part.location)) for part in taken.parts if part.location):
                in_use.setdefault(taken.name, f"the Iceberg table {table.full_name} uses its files")
    return in_use


def _has_below(keys: Sequence[Key], location: Key) -> bool:
    """Whether one of some sorted keys is at or below a location."""
    at = bisect.bisect_left(keys, location)
    return at < len(keys) and keys[at][: len(location)] == location


def _files_of(table: Definition, moved: Mapping[str, str], options: StorageOptions) -> Iterator[str]:
    """The locations of all data files of all snapshots."""
    from pyiceberg.expressions import AlwaysTrue

    from coldframe.iceberg.inputs import Inputs
    from coldframe.iceberg.planning import Planner
    from coldframe.iceberg.table import Address, IcebergTable

    metadata = table.parameters.get("metadata_location")
    if not metadata:
        raise unsupported("an Iceberg table without metadata_location")
    place = Locations(moved).readable(metadata)
    known = IcebergTable(Address(place, location=tuple(moved.items())), options_for(place, options))
    for snapshot in known.metadata.snapshots:
        planner = Planner(known.metadata, snapshot, known.schema, Inputs(known.files))
        yield from (file.path for file in planner.plan(AlwaysTrue()))
