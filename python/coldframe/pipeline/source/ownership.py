"""Which tables own which locations: the locations of all tables and partitions of a metastore.

    sales.orders   /wh/orders/dt=1        a partition, which owns the files below it
    sales.returns  /wh/orders/dt=1/old    so these may be rows of both tables

A location is identified by its file system and path, independent of a scheme's spelling and of ports. For a
partitioned table, only its partitions claim locations.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from coldframe.pipeline.source.locations import Location

Key = tuple[str, ...]
"""Scheme, authority unless it is a host, and the names of a path."""


def key_of(location: str) -> Key:
    """The key of a readable location; local links are resolved."""
    place = Location.of(location)
    if place.is_local:
        place = Location.of(os.path.realpath("/" + "/".join(place.names)))
    return place.key


@dataclass
class Claims:
    """The locations that tables claim."""

    _sorted: list[tuple[Key, str, Location]] = field(default_factory=list)
    _at: dict[Key, list[tuple[str, Location]]] = field(default_factory=dict)

    def add(self, location: str, table: str) -> None:
        """Records that a table has files at and below a readable location."""
        owner = table, Location.of(location)
        self._at.setdefault(key_of(location), []).append(owner)
        self._sorted.clear()

    def others(self, location: str, table: str) -> Iterator[str]:
        """Tables with files at, below or above a location; also `table`, if another partition is there."""
        key, place = key_of(location), Location.of(location)
        mine = 0
        for name, other in self._at.get(key, ()):
            if name == table and not mine:
                mine = 1
            elif other.is_on(place):
                yield name
        for depth in range(1, len(key)):
            yield from (name for name, other in self._at.get(key[:depth], ()) if other.is_on(place))
        yield from self._below(key, place)

    def _below(self, key: Key, place: Location) -> Iterator[str]:
        if not self._sorted:
            self._sorted = sorted(
                ((key, name, owner) for key, some in self._at.items() for name, owner in some),
                key=lambda owner: owner[:2],
            )
        at = bisect.bisect_left(self._sorted, (key, ""), key=lambda owner: owner[:2])
        while at < len(self._sorted) and (entry := self._sorted[at])[0][: len(key)] == key:
            if entry[0] != key and entry[2].is_on(place):
                yield entry[1]
            at += 1

    def at(self, key: Key) -> list[str]:
        """The tables that have files at exactly this place."""
        return [name for name, _ in self._at.get(key, ())]
