"""Groups partitions of one format, SerDe and list of columns, whose files are read with the same options.

table             id, price, channel
partition         id, cost             cost is price: a partition's columns match the table's by position
file with names   price, id            by the table's names, not the partition's; by position if the table has
                                       orc.force.positional.evolution
without           _col0, _col1         by position: RCFile, and ORC of Hive before 2.0
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from coldframe._coldframe import parse_columns
from coldframe.arguments import Keys, OpenArguments
from coldframe.discovery import DiscoveredFile, discover
from coldframe.errors import NotFoundError, SchemaError
from coldframe.hive.definition import Column, PartitionDefinition, Storage, in_hive
from coldframe.hive.metadata import are_folders_of
from coldframe.hive.pruning import fitting
from coldframe.listing import is_flat
from coldframe.logs import step
from coldframe.scanning import Dataset
from coldframe.sources import is_remote, open_store, options_for, scheme_of

__all__ = ["Group", "Reading", "columns_of", "grouped", "keys_of"]

_log = logging.getLogger(__name__)
_LISTED_AT_ONCE = 8
_UNIT = "timestamp_unit"


@dataclass(frozen=True)
class Reading:
    """How all files of a table are opened; `options` override those in the metastore."""

    storage_options: Mapping[str, Any] | None = None
    verify_checksums: bool = True
    keys: Keys | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The unit of timestamps."""
        return str(self.options.get(_UNIT, "ns"))

    def arguments(self, format: str, storage: Storage) -> OpenArguments:
        """How files of a partition are opened."""
        options = {**storage.options(format), **self.options}
        return OpenArguments(format, self.storage_options, self.verify_checksums, self.keys, options)


@dataclass
class Group:
    """Partitions, or a table without partitions, with their locations."""

    format: str
    storage: Storage
    """The storage of any of the partitions: only their locations differ."""
    is_whole: bool
    """Whether each location is opened as one table, as for transactional tables."""
    members: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Readable locations, and values of the partition columns."""

    @property
    def location(self) -> str:
        """The location of any partition: all locations are in stores of one scheme."""
        return self.members[0][0]

    @staticmethod
    def key(format: str, storage: Storage) -> tuple[object, ...]:
        """A key that all partitions of one group share."""
        types = tuple((column.name, column.type) for column in storage.columns)
        return format, storage.serde, types, tuple(sorted(storage.serde_properties.items()))

    def datasets(
        self,
        table: pa.Schema,
        keys: pa.Schema,
        reading: Reading,
        *,
        by_position: bool = False,
        lengths: str = "",
    ) -> Iterator[tuple[Dataset, dict[str, str]]]:
        """The group's files, and for each column of the table its name in these files, if it has one.

        `table` has the table's columns without the `keys`, which are the partition columns. `by_position`:
        whether to ignore the names in files. `lengths`: see `of_length`.
        """
        own = options_for(self.location, reading.storage_options)
        arguments = replace(reading, storage_options=own).arguments(self.format, self.storage)
        files = self._files(keys, own)
        # Hive's readers look up the table's column names in files that have names.
        is_named = "schema" not in arguments.options
        names_there = (
            table.names if is_named else [column.name for column in self.storage.columns[: len(table)]]
        )
        by_names = self._by_own_names if by_position and is_named else self._by_names
        for names, some in by_names(files, arguments, names_there, lengths if is_named else ""):
            columns = [kind.with_name(name) for name, kind in zip(names, table, strict=False)]
            schema = pa.schema([*columns, *keys])
            dataset = Dataset(some, arguments, keys if len(keys) else None, schema=schema)
            same = {name: name for name in keys.names}
            yield dataset, {**dict(zip(table.names, names, strict=False)), **same}

    def _files(self, schema: pa.Schema, storage_options: Mapping[str, Any] | None) -> list[DiscoveredFile]:
        keys = schema.names

        def typed(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
            """The values of the keys; null where a value does not fit, as in Hive."""
            return tuple((key, fitting(value, schema.field(key).type)) for key, value in pairs)

        def is_named(location: str, file: DiscoveredFile) -> bool:
            """Whether the folders above a file give its partition's values: no partition is registered."""
            return are_folders_of(keys, file.source[len(location) :].strip("/").split("/")[:-1])

        def listed(member: tuple[str, tuple[str, ...]]) -> list[DiscoveredFile]:
            location, values = member
            files = _listed(location, storage_options, self.is_whole, by_folders=len(values) < len(keys))
            if len(values) < len(keys):
                return [
                    file._replace(keys=typed(file.keys[: len(keys)]))
                    for file in files
                    if is_named(location, file)
                ]
            pairs = typed(tuple(zip(keys, values, strict=True)))
            return [file._replace(keys=pairs) for file in files]

        what = "listing %d locations, the first is %s", len(self.members), self.location
        with step(_log, logging.INFO, *what) as notes, ThreadPoolExecutor(_LISTED_AT_ONCE) as pool:
            all_files = [file for files in pool.map(listed, self.members) for file in files]
            notes.append(f"{len(all_files)} files")
        return all_files

    @staticmethod
    def _by_names(
        files: Sequence[DiscoveredFile], arguments: OpenArguments, own: Sequence[str], lengths: str
    ) -> Iterator[tuple[Sequence[str], list[DiscoveredFile]]]:
        """The files whose columns have the partition's names, and those whose names are like `_col0`."""
        if not files:
            return
        if "schema" in arguments.options:
            # These files store no column names.
            yield own, list(files)
            return
        apart = Dataset(files, arguments, partitioned=False)
        with_lengths = None
        if lengths:
            checking = {**arguments.options, "schema": lengths, "schema_of": "hive"}
            with_lengths = Dataset(files, replace(arguments, options=checking), partitioned=False)
        by_columns: dict[tuple[str, ...], list[DiscoveredFile]] = {}
        for at, file in enumerate(files):
            opened = apart.open_file(at)
            # Names such as _col1, _col5 only number the columns: their positions count.
            names = tuple(opened.schema.names[: len(own)]) if opened._raw.has_placeholder_names else ()
            if with_lengths is not None and not names:
                # Refuses text that is longer than the table's, which Hive cuts.
                with_lengths.open_file(at)
            by_columns.setdefault(names, []).append(file)
        for names, some in sorted(by_columns.items()):
            yield names or own, some

    @staticmethod
    def _by_own_names(
        files: Sequence[DiscoveredFile], arguments: OpenArguments, columns: Sequence[str], _: str
    ) -> Iterator[tuple[Sequence[str], list[DiscoveredFile]]]:
        """The files, grouped by their own column names; the columns match the table's by position."""
        apart = Dataset(files, arguments, partitioned=False)
        by_columns: dict[tuple[str, ...], list[DiscoveredFile]] = {}
        for at, file in enumerate(files):
            names = tuple(apart.open_file(at).schema.names[: len(columns)])
            taken = sorted({name.lower() for name in names} & {key.lower() for key, _ in file.keys})
            if taken:
                raise SchemaError(
                    f"{file.source}: columns match by position, but {taken[0]} has a partition column's name"
                )
            by_columns.setdefault(names, []).append(file)
        yield from by_columns.items()


def _listed(
    location: str, storage_options: Mapping[str, Any] | None, is_whole: bool, *, by_folders: bool
) -> list[DiscoveredFile]:
    """The files at a location: none if it is empty; raises NotFoundError if it does not exist."""
    try:
        return discover([location], storage_options, partitioned=by_folders, whole_directories=is_whole)
    except NotFoundError:
        # Object stores have no directories: an empty and a missing one look the same.
        if is_remote(location) and is_flat(location):
            return []
        if open_store(location, storage_options).stat() is None:
            raise
        return []


def columns_of(columns: Sequence[Column], unit: str) -> pa.Schema:
    """The columns of a table as a pyarrow.Schema, with timestamps in `unit`."""
    return pa.schema(
        [column.with_type(_in_unit(column.type, unit)) for column in parse_columns(in_hive(columns))]
        if columns
        else []
    )


def keys_of(columns: Sequence[Column]) -> pa.Schema:
    """The partition columns as a pyarrow.Schema."""
    return parse_columns(in_hive(columns), partitions=True) if columns else pa.schema([])


def _in_unit(kind: Any, unit: str) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.timestamp(unit, kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_unit(field.type, unit)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_in_unit(kind.key_type, unit), _in_unit(kind.item_type, unit))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_unit(kind.value_type, unit)))
    return kind


def grouped(members: Sequence[tuple[str, PartitionDefinition, str]], *, is_whole: bool) -> list[Group]:
    """Groups partitions, given with format and readable location; ordered by each group's first partition."""
    groups: dict[tuple[object, ...], Group] = {}
    for format, partition, location in members:
        key = (*Group.key(format, partition.storage), scheme_of(location))
        group = groups.setdefault(key, Group(format, partition.storage, is_whole))
        group.members.append((location, partition.values))
    return list(groups.values())
