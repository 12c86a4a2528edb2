"""A Hive metastore as the source: its definitions take the place of a tables.toml.

    root        the directory that holds all tables that are taken
    an entry    for each: its columns, SerDe, partition keys and place below the root
    left out    tables that one entry cannot describe, with the reason: nothing of them is migrated

An entry says one thing of all files of its table, and folders name the values of partitions. So each
partition must lie in a `key=value` folder of its table and be declared as the table is; it may lack the last
columns.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from coldframe._coldframe import parse_columns
from coldframe.errors import SchemaError, unsupported
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import READ, common_root, connect, definitions
from coldframe.hive.definition import Column, Definition, PartitionDefinition, in_hive
from coldframe.hive.locations import Locations
from coldframe.hive.tables import MetastoreRefusal, Refused
from coldframe.pipeline.file_access import root_of
from coldframe.pipeline.records import Json
from coldframe.pipeline.source.findings import Finding
from coldframe.pipeline.source.tables import TableSpec

if TYPE_CHECKING:
    from coldframe.hive.metastore import Metastore

__all__ = ["DefinedSource", "read_defined"]


@dataclass(frozen=True)
class DefinedSource:
    """What the metastore says of the selected tables."""

    uris: str
    selected: Selected
    root: str
    specs: tuple[TableSpec, ...]
    left_out: tuple[Finding, ...]
    kept: tuple[Json, ...]
    """The definitions that were used, as they are written down in the destination."""


@dataclass(frozen=True)
class _Taken:
    """A table that is taken."""

    definition: Definition
    format: str
    location: str
    partitions: tuple[PartitionDefinition, ...] = field(default=(), repr=False)


class _LeftOut(Exception):
    """Why a table is left out."""


def read_defined(
    uri: str, patterns: Sequence[str] = (), moved: Mapping[str, str] | None = None
) -> DefinedSource:
    """Reads the tables of the address; where there are patterns `db.table`, those that match one.

    Raises UnsupportedError where no table can be taken, or no directory holds all of them.
    """
    selected, locations = Selected.of(uri), Locations(moved or {})
    taken: list[_Taken] = []
    left_out: list[Finding] = []
    places: dict[str, list[str]] = {}
    with connect(selected.uris) as metastore:
        # All of them: a table that nobody selected may use the same files.
        for one in definitions(metastore, Selected(selected.uris)):
            name = f"{one.database}.{one.name}"
            if isinstance(one, Definition) and one.location:
                places.setdefault(locations.readable(one.location), []).append(name)
            if not _is_meant(one, name, selected, patterns):
                continue
            try:
                taken.append(_taken(metastore, one, locations))
            except (_LeftOut, MetastoreRefusal, SchemaError) as reason:
                left_out.append(_finding(name, str(reason)))
    taken = list(_apart(taken, places, left_out))
    if not taken:
        reasons = "; ".join(map(str, left_out[:3])) or "no such tables"
        raise unsupported(f"{uri}: a migration of none of its tables: {reasons}")
    root = common_root([one.location for one in taken])
    if not root:
        some = ", ".join(sorted(one.location for one in taken)[:3])
        raise unsupported(f"{uri}: tables that no directory holds ({some}); name fewer at once")
    specs = tuple(_spec(one, root) for one in taken)
    kept = tuple(_kept(one) for one in taken)
    return DefinedSource(selected.uris, selected, root_of(root), specs, tuple(left_out), kept)


def _is_meant(one: Definition | Refused, name: str, selected: Selected, patterns: Sequence[str]) -> bool:
    if patterns and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
        return False
    if isinstance(one, Refused) and (one.name == "*" or not selected.is_one):
        # The server refuses a whole database, or a table that the pattern may mean.
        return selected.takes_database(one.database)
    return selected.takes(one.database, one.name)


def _finding(table: str, reason: str) -> Finding:
    return Finding("left out", table, f"left out: {reason}")


def _taken(metastore: Metastore, one: Definition | Refused, locations: Locations) -> _Taken:
    if isinstance(one, Refused):
        raise _LeftOut(one.reason)
    if one.left_out is not None:
        raise _LeftOut(one.left_out)
    if one.keys and not one.has_partitions:
        raise _LeftOut("its partitions are not in the metastore")
    location = locations.readable(one.location or "")
    partitions = tuple(metastore.partition_definitions(one)) if one.has_partitions else ()
    format = one.format_of(partitions[0].storage) if partitions else one.format
    if format not in READ:
        raise _LeftOut(f"files of {format or 'no stated format'} are not read")
    for partition in partitions:
        if (reason := _unlike(one, partition, format, partitions[0])) is not None:
            raise _LeftOut(f"its partition {one.name_of(partition)} {reason}")
        _demand_place(one, partition, location, locations)
    # Report an unsupported type once, here, rather than for each file.
    parse_columns(in_hive(one.storage.columns))
    parse_columns(in_hive(one.keys), partitions=True)
    return _Taken(one, format, location, partitions)


def _unlike(
    table: Definition, partition: PartitionDefinition, format: str, first: PartitionDefinition
) -> str | None:
    """What sets a partition apart from the others, so that one entry cannot describe all; None if nothing."""
    storage, other = partition.storage, first.storage
    found = table.format_of(storage)
    if found != format:
        return f"is {found or 'of no stated format'}, others are {format}"
    if storage.options(format) and (storage.serde, storage.serde_properties) != (
        other.serde,
        other.serde_properties,
    ):
        return "has another SerDe, or other properties of it, than others"
    if _types(storage.columns) != _types(table.storage.columns)[: len(storage.columns)]:
        return "has columns that are not the table's first ones"
    return None


def _types(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(one.name.lower(), one.type.lower()) for one in columns]


def _demand_place(
    table: Definition, partition: PartitionDefinition, location: str, locations: Locations
) -> None:
    """Raises unless the folders below the table name the partition's values."""
    place = locations.readable(partition.storage.location or "")
    folders = place[len(location) :].strip("/").split("/") if place.startswith(f"{location}/") else []
    found = [tuple(map(unquote, folder.split("=", 1))) for folder in folders]
    wanted = list(zip([key.name for key in table.keys], partition.values, strict=False))
    if found != wanted:
        text = "which is not a folder of the table that names its values"
        raise _LeftOut(f"its partition {table.name_of(partition)} lies at {place}, {text}")


def _apart(
    taken: Sequence[_Taken], places: Mapping[str, Sequence[str]], left_out: list[Finding]
) -> Iterator[_Taken]:
    """The tables whose directory no other table shares, holds or lies in: those files are theirs alone."""
    below = {above: names[0] for place, names in places.items() for above in _above(place)}
    for one in taken:
        name = one.definition.full_name
        others = [other for other in places.get(one.location, ()) if other != name]
        others += [below[one.location]] if one.location in below else []
        others += [places[above][0] for above in _above(one.location) if above in places]
        if others:
            left_out.append(_finding(name, f"its files at {one.location} may be those of {others[0]}"))
        else:
            yield one


def _above(place: str) -> Iterator[str]:
    while "/" in place:
        place = place.rpartition("/")[0]
        yield place


def _spec(one: _Taken, root: str) -> TableSpec:
    table = one.definition
    storage = one.partitions[0].storage if one.partitions else table.storage
    options = replace(storage, columns=table.storage.columns).options(one.format)
    keys = parse_columns(in_hive(table.keys), partitions=True) if table.keys else ()
    partitions = tuple((key.name, key.type) for key in keys)
    return TableSpec(table.full_name, one.location[len(root) :].strip("/"), None, partitions, options)


def _kept(one: _Taken) -> Json:
    """A definition as it is written down; a partition repeats no columns that are the table's."""
    columns = one.definition.storage.columns

    def short(part: PartitionDefinition) -> PartitionDefinition:
        same = part.storage.columns == columns
        return replace(part, storage=replace(part.storage, columns=())) if same else part

    return {**asdict(one.definition), "partitions": [asdict(short(part)) for part in one.partitions]}
