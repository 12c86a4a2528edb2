"""Finds the table that each file belongs to; tables.toml states what the files do not.

    [tables.sales]
    path = "warehouse/sales"                      # below the source's root; default: the table's name
    schema = "id bigint, amount decimal(10,2)"    # for formats without types
    serde = "binary"
    partitions = "dt date, region string"
    timezone = "America/Los_Angeles"              # and every other option of coldframe.open

    [tables.events]
    schema = "ts timestamp, kind string"
    serde = "text"
    [tables.events.serde_properties]
    "field.delim" = "|"
    [tables.events.iceberg]                       # see `iceberg_layout`
    partition_by = ["days(ts)"]

A directory without an entry is a table by itself, under its own path, down to its first `key=value`
directory. A data directory of Kudu or a root directory of HBase gives all tables that it holds, or the tables
that entries for its path name by `table`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from coldframe._coldframe import (
    ColdframeError,
    NotFoundError,
    SchemaError,
    foreign_files,
    formats,
    parse_columns,
)
from coldframe._coldframe import tables as tables_held
from coldframe.pipeline.file_access import StorageOptions, pieces
from coldframe.pipeline.records import SourceFile, is_partition
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout, iceberg_layout
from coldframe.pipeline.source.inventory import ROOT, SEVERAL, Files, Inventory
from coldframe.pipeline.source.naming import folder_name, name_tables
from coldframe.pipeline.source.reading import Reading
from coldframe.sources import text_options

# Part of Python since 3.11.
tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

DEFINED = "defined"
"""The format, in the journal, of tables that a metastore defines."""
_OWN_KEYS = frozenset({"path", "partitions", "format", "iceberg"})
_FORMAT_OF_ENDING = {
    ending: name for name, about in formats().items() for ending in about["capabilities"]["endings"]
}


OpenOptions: TypeAlias = dict[str, Any]
"""Keyword arguments of `coldframe.open`."""


@dataclass(frozen=True)
class TableSpec:
    """An entry of tables.toml."""

    name: str
    path: str
    format: str | None = None
    partitions: tuple[tuple[str, pa.DataType], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: IcebergLayout | None = None
    """The layout as an Iceberg table."""


@dataclass
class Table:
    """The files that become one table, all of one format."""

    name: str
    path: str
    """The table's path below the target's root. The path is the path below the source's root, with two
    exceptions: Spark would take a name in the path for a partition, or the directory has files of a second
    format, which become a table of their own.
    """
    format: str
    spec: TableSpec | None
    files: Files = field(default_factory=list)
    damaged: Files = field(default_factory=list)
    """Files in its directory whose bytes are of no known format."""
    empty: Files = field(default_factory=list)
    _keys: dict[str, None] = field(default_factory=dict)
    """The names of the partition columns, in the order of their first file."""
    place: str = ""
    """The table's path below the source's root: `naming` derives `path` from it."""
    called: str = ""
    """The table's name in the source: `naming` derives `name` from it."""
    readings: tuple[Reading, ...] = ()
    """The readings of a metastore's table: each file has the number of a reading."""
    declared: pa.Schema | None = None
    """The columns in the metastore, without partition columns; files may have other columns, too."""

    def add(self, file: SourceFile) -> None:
        """Adds a file, and the partition columns in its directories."""
        self.files.append(file)
        self._keys.update(dict.fromkeys(key for key, _ in file.keys))

    def have_keys(self, names: Iterable[str]) -> None:
        """Sets the partition columns, independent of files."""
        self._keys = dict.fromkeys(names)

    def know_only(self, files: Iterable[SourceFile]) -> None:
        """Restricts the partition columns to the keys of files that are in the target, now or after
        this run.
        """
        keys = dict.fromkeys(key for file in files for key, _ in file.keys)
        # Keys stay in the order of the source.
        self._keys = {key: None for key in (*self._keys, *keys) if key in keys}

    @property
    def keys(self) -> Sequence[str]:
        """The names of the partition columns."""
        return tuple(self._keys)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of `coldframe.open`."""
        return {} if self.spec is None else self.spec.options

    def reading_of(self, file: SourceFile) -> Reading:
        """The reading of one of the table's files."""
        return self.readings[file.reading] if self.readings else Reading(self.format, self.options)

    @property
    def known_as(self) -> str:
        """The table's format in the journal; one name for a metastore's table, whose formats may change."""
        return DEFINED if self.declared is not None else self.format

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns; text unless tables.toml gives their types (names match in any case)."""
        types = {name.lower(): kind for name, kind in self._stated}
        return [pa.field(name, types.get(name.lower(), pa.string())) for name in self._keys]

    @property
    def _stated(self) -> tuple[tuple[str, pa.DataType], ...]:
        return () if self.spec is None else self.spec.partitions

    @property
    def unmatched_partitions(self) -> list[str]:
        """The partition columns that tables.toml states and that no folder has."""
        known = {name.lower() for name in self._keys}
        return [name for name, _ in self._stated if name.lower() not in known]


def load_tables(path: str, storage_options: StorageOptions = None) -> list[TableSpec]:
    """Reads a tables.toml."""
    try:
        content = tomllib.loads(b"".join(pieces(path, storage_options)).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise SchemaError(f"{path}: {reason}") from reason
    except RecursionError:
        raise SchemaError(f"{path}: its values are nested too deeply") from None
    tables = content.get("tables")
    if not isinstance(tables, dict) or set(content) != {"tables"}:
        raise SchemaError(f"{path}: expected [tables.NAME] entries only, found {sorted(content)}")
    return [_spec(path, str(name), entry) for name, entry in tables.items()]


def _spec(source: str, name: str, entry: Any) -> TableSpec:
    if not isinstance(entry, dict):
        raise SchemaError(f"{source}: tables.{name} is not a table of options")
    place = str(entry.get("path", name)).strip("/")
    if ".." in place.split("/") or not place:
        raise SchemaError(f"{source}: tables.{name}: path {place!r} does not lie below the source")
    options = {key: value for key, value in entry.items() if key not in _OWN_KEYS}
    partitions = _partitions(source, name, str(entry.get("partitions", "")))
    return TableSpec(name, place, entry.get("format"), partitions, options, _layout(source, name, entry))


def _layout(source: str, name: str, entry: Mapping[str, object]) -> IcebergLayout | None:
    try:
        return iceberg_layout(entry["iceberg"]) if "iceberg" in entry else None
    except SchemaError as error:
        raise SchemaError(f"{source}: tables.{name}: {error}") from None


def _partitions(source: str, name: str, text: str) -> tuple[tuple[str, pa.DataType], ...]:
    try:
        return tuple((field.name, field.type) for field in parse_columns(text, partitions=True))
    except SchemaError as error:
        raise SchemaError(f"{source}: tables.{name}: partitions: {error}") from None


def find_tables(inventory: Inventory, specs: Sequence[TableSpec]) -> list[Table]:
    """Puts each file into its table. If a directory holds several formats, the files of each format are a
    table.
    """
    entries = _Entries(specs)
    # Grouped by place: names do not distinguish `a/b` from `a.b`.
    groups: dict[tuple[str, str, str], Table] = {}
    for file in inventory.files:
        for name, place, spec, part in _tables_of(inventory, file, entries):
            key = (place, "" if spec is None else spec.name, str(file.format))
            table = groups.get(key)
            if table is None:
                table = groups[key] = _new_table(inventory, name, place, str(file.format), spec)
            table.add(part)
    tables = list(groups.values())
    name_tables(tables)
    lonely = _place_others(inventory, tables, entries)
    inventory.unmatched = [spec.path for spec in specs if spec.name not in entries.used]
    # Lonely tables have only empty or unrecognised files.
    return sorted([*tables, *lonely], key=lambda table: table.name)


def _place_others(inventory: Inventory, tables: list[Table], entries: _Entries) -> list[Table]:
    """Puts empty and unknown files into the tables whose directories they lie in.

    Returns tables without other files: those with an entry, and those whose files say by name what they were.
    """
    # The first table of each entry and, for tables without an entry, of each place.
    by_entry: dict[int, Table] = {}
    by_place: dict[str, Table] = {}
    for table in tables:
        if table.spec is not None:
            by_entry.setdefault(id(table.spec), table)
        else:
            by_place.setdefault(table.place, table)
    lonely: dict[int, Table] = {}

    def table_of(file: SourceFile) -> Table | None:
        spec = entries.holding(file)
        if spec is None:
            return by_place.get(_place_of(inventory, file))
        new = _new_table(inventory, spec.name, spec.path, spec.format or "unknown", spec)
        return by_entry.get(id(spec)) or lonely.setdefault(id(spec), new)

    spoilt: dict[str, Table] = {}

    def spoilt_table_of(file: SourceFile) -> Table | None:
        kind = _FORMAT_OF_ENDING.get(file.relative.rpartition(".")[2].lower())
        if kind is None or file.is_folder or _is_of_another_kind(file):
            return None
        place = _place_of(inventory, file)
        table = spoilt.get(place)
        if table is None:
            table = spoilt[place] = _new_table(inventory, place.replace("/", "."), place, kind, None)
        return table

    unknown: dict[int, tuple[Table, list[SourceFile]]] = {}
    for file in inventory.unknown:
        if (owner := table_of(file) or spoilt_table_of(file)) is None:
            inventory.stray.append(file.relative)
        else:
            unknown.setdefault(id(owner), (owner, []))[1].append(file)
    for table, files in unknown.values():
        foreign = _of_other_kinds(table, files, entries)
        for file in files:
            if file.relative in foreign:
                inventory.stray.append(file.relative)
            else:
                table.damaged.append(file)
    for file in inventory.empty:
        if (owner := table_of(file)) is not None:
            owner.empty.append(file)
    return [*lonely.values(), *spoilt.values()]


def _is_of_another_kind(file: SourceFile) -> bool:
    """Whether an unknown file has the first bytes of a kind that is none of ours, such as text."""
    listed = (file.path, list(file.keys), (file.size, None, file.etag))
    try:
        foreign_files([listed], storage_options=file.storage_options)
    except NotFoundError:
        return True
    return False


def _of_other_kinds(table: Table, unknown: list[SourceFile], entries: _Entries) -> set[str]:
    """The unknown files in a table's directory that a scan would leave out, such as a README.

    The other unknown files count as damaged files of the table. A file that is the path of an entry always
    belongs to it.
    """
    listed = [file for file in unknown if not entries.at(file.relative)]
    if not listed or not len(table.files):
        return set()
    files = [*table.files, *listed]
    candidates: list[tuple[str, list[tuple[str, str]], tuple[int, int | None, str | None] | None]] = [
        (file.path, list(file.keys), None if file.is_folder else (file.size, None, file.etag))
        for file in files
    ]
    numbers, _ = foreign_files(candidates, storage_options=listed[0].storage_options)
    return {files[number].relative for number in numbers}


def _new_table(inventory: Inventory, name: str, path: str, format: str, spec: TableSpec | None) -> Table:
    files, damaged, empty = (inventory.new_files() for _ in range(3))
    return Table(name, path, format, spec, files, damaged, empty, place=path, called=name)


class _Entries:
    """The entries of tables.toml by path, so that a file's entry is found by its directories."""

    def __init__(self, specs: Sequence[TableSpec]) -> None:
        self._by_path: dict[str, list[TableSpec]] = {}
        self.used: set[str] = set()
        """The names of entries that have a file."""
        for spec in specs:
            self._by_path.setdefault(spec.path, []).append(spec)

    def at(self, path: str) -> list[TableSpec]:
        """The entries of a path."""
        return self._by_path.get(path, [])

    def holding(self, file: SourceFile) -> TableSpec | None:
        """The entry whose path contains the file; of several, the one with the longest path."""
        spec = self._holding(file)
        if spec is not None:
            self.used.add(spec.name)
        return spec

    def _holding(self, file: SourceFile) -> TableSpec | None:
        for spec in self.at(file.relative):
            return spec
        path = file.relative
        while "/" in path:
            path = path.rpartition("/")[0]
            for spec in self.at(path):
                if spec.format in (None, file.format):
                    return spec
        return None


def _tables_of(
    inventory: Inventory, file: SourceFile, entries: _Entries
) -> Iterator[tuple[str, str, TableSpec | None, SourceFile]]:
    """The tables that a file's rows go to: name, path, entry, and the file as a part of the table."""
    spec = entries.holding(file)
    if file.format in SEVERAL:
        given = [] if spec is None else entries.at(spec.path)
        entries.used.update(entry.name for entry in given)
        if len(given) > 1 or any("table" in entry.options for entry in given):
            # Sources are identified by their relative paths, so each table of the directory needs a path.
            for entry in given:
                shared = len(given) > 1 or entry.path == ROOT
                part = (
                    replace(file, relative=f"{file.relative}/{entry.name}", tables=len(given))
                    if shared
                    else file
                )
                yield entry.name, _below(entry.path, entry.name) if shared else entry.path, entry, part
            return
        held = _held_tables(file, spec)
        if len(held) > 1 or (held and file.relative == ROOT):
            place = file.relative if spec is None else spec.path
            for entry in held:
                path = _below(place, entry.path)
                part = replace(file, relative=f"{file.relative}/{entry.path}", tables=len(held))
                yield (
                    entry.name if place == ROOT else f"{place.replace('/', '.')}.{entry.name}",
                    path,
                    entry,
                    part,
                )
            return
    place = _place_of(inventory, file) if spec is None or spec.path == ROOT else spec.path
    yield place.replace("/", ".") if spec is None else spec.name, place, spec, file


def _below(place: str, name: str) -> str:
    return name if place == ROOT else f"{place}/{name}"


def _held_tables(file: SourceFile, spec: TableSpec | None) -> list[TableSpec]:
    """An entry for each table that a directory holds, with the options of the directory's entry, and a folder
    name as its path. Empty if the tables cannot be listed: opening the directory reports why.
    """
    options = dict(spec.options) if spec is not None else {}
    ways = {key: options[key] for key in ("keys", "verify_checksums") if key in options}
    try:
        held = tables_held(
            file.path, format=str(file.format), storage_options=text_options(file.storage_options), **ways
        )
    except (ColdframeError, OSError, ValueError):
        return []
    names = [name for _, name in held]
    folders = [folder_name(name) for name in names]
    return [
        TableSpec(
            name if names.count(name) == 1 else f"{name}-{table_id}",
            folder if folders.count(folder) == 1 else f"{folder}-{table_id}",
            file.format,
            options={**options, "table": table_id},
            layout=None if spec is None else spec.layout,
        )
        for (table_id, name), folder in zip(held, folders, strict=True)
    ]


def _place_of(inventory: Inventory, file: SourceFile) -> str:
    place: list[str] = []
    # A directory that is a table is the last name of the table's path.
    for folder in file.relative.split("/") if file.is_folder else file.folders:
        if is_partition(folder):
            break
        if folder != ROOT:
            place.append(folder)
    return "/".join(place) or os.path.basename(inventory.root) or "root"
