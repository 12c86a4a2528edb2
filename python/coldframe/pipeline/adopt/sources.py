"""The tables of a source and their files, decoded as Hive gives their rows.

    a metastore, a dump, statements    each partition with its own location, format and columns
    a directory                        each folder of files is a table, with `key=value` folders as partitions

Files keep the names that the source has for them: paths, or URLs of stores.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

import coldframe
from coldframe._coldframe import NotFoundError, RawDataset, folder_of, partition_values
from coldframe.arguments import OpenArguments
from coldframe.errors import ColdframeError, SchemaError, unsupported
from coldframe.hive.addresses import Selected, is_metastore
from coldframe.hive.dataset import HiveDataset
from coldframe.hive.defined import READ, connect, definitions
from coldframe.hive.definition import Definition, PartitionDefinition, columns_of, keys_of
from coldframe.hive.locations import Locations
from coldframe.hive.reader import Refused
from coldframe.pipeline.adopt.layouts import PARQUET
from coldframe.pipeline.adopt.parquet_rows import parquet_rows
from coldframe.pipeline.adopt.records import FoundFile, FoundTable
from coldframe.pipeline.file_access import StorageOptions, root_of
from coldframe.pipeline.options import Options
from coldframe.pipeline.sink.iceberg_catalog import NAMESPACE
from coldframe.pipeline.source.defined import matching, place_of
from coldframe.pipeline.source.findings import Finding
from coldframe.pipeline.source.inventory import is_hidden
from coldframe.pipeline.source.survey import look
from coldframe.pipeline.source.tables import Table, TableSpec
from coldframe.sources import is_remote, open_store
from coldframe.spark.types import plain_schema

Tables = str | os.PathLike[str] | Sequence[TableSpec] | None
_UNIT = "us"
_BATCH = 64 * 1024
_OPEN_PARTITIONS = 8
_OF_PARQUET = "MapredParquetInputFormat"


@dataclass
class FoundSource:
    """The tables of a source, and the parts that are no tables."""

    tables: list[FoundTable] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)
    """Notes about tables, by their names."""
    left_out: list[Finding] = field(default_factory=list)


def find_source(source: str, options: Options, tables: Tables = None) -> FoundSource:
    """All tables of a source, without opening their files. `tables`: as in `migrate`, for a directory."""
    if not is_metastore(source, or_file=True):
        return _folders(source, options, tables)
    if tables is not None:
        raise unsupported("adopting tables of a metastore with a tables.toml")
    return _defined(source, options)


def _defined(source: str, options: Options) -> FoundSource:
    selected = Selected.of(source)
    listing = FoundSource()
    matched: set[str] = set()
    with connect(selected.uris) as metastore:
        for definition in definitions(metastore, selected):
            name = f"{definition.database}.{definition.name}"
            patterns = matching(name, options.tables)
            matched.update(patterns)
            if options.tables and not patterns:
                continue
            reason, is_view = _why_left_out(definition)
            if reason is None and isinstance(definition, Definition):
                notes: list[str] = []
                try:
                    listing.tables.append(_Defined(selected.uris, definition, options, notes).table())
                except (ColdframeError, OSError) as error:
                    reason = str(error)
                listing.notes[name] = notes
            if reason is not None:
                listing.left_out.append(Finding("left out", name, reason, is_wrong=not is_view))
    for pattern in options.tables:
        if pattern not in matched:
            listing.left_out.append(Finding("nothing", pattern, "no table of the metastore matches"))
    return listing


def _why_left_out(definition: Definition | Refused) -> tuple[str | None, bool]:
    if isinstance(definition, Refused):
        return definition.reason, False
    if definition.is_iceberg:
        return "it is an Iceberg table already", False
    if definition.hudi_view is not None:
        return "a Hudi table, whose timeline says which of its files count: migrate converts it", False
    return definition.left_out, definition.is_view


class _Reading:
    """The partitions that are being read. Each keeps its files open, so that only the latest ones stay."""

    def __init__(self) -> None:
        self._latest: dict[int, _PartitionReader] = {}
        self._lock = threading.Lock()

    def begin(self, reader: _PartitionReader) -> None:
        """A file of a partition is about to be read."""
        with self._lock:
            self._latest.pop(id(reader), None)
            self._latest[id(reader)] = reader
            while len(self._latest) > _OPEN_PARTITIONS:
                self._latest.pop(next(iter(self._latest))).raw = None


@dataclass
class _PartitionReader:
    """The files of a partition."""

    make: Callable[[], RawDataset]
    raw: RawDataset | None
    reading: _Reading
    location: str
    listed: int
    """A digest of the files as they were listed."""

    def rows(self, number: int | None) -> Iterator[pa.RecordBatch]:
        """The rows of a file, or of all of them."""
        raw = self.raw
        if raw is None:
            raw = self.make()
            if _digest_of(raw) != self.listed:
                raise ColdframeError(f"{self.location}: its files were changed while it was adopted")
        self.raw = raw
        self.reading.begin(self)
        yield from _scanned(raw, number)


def _digest_of(raw: RawDataset) -> int:
    return hash(tuple(path for path, _, _ in raw.found()))


@dataclass
class _Defined:
    """A table of a metastore."""

    uris: str
    definition: Definition
    options: Options
    notes: list[str]
    reading: _Reading = field(default_factory=lambda: _Reading())

    def table(self) -> FoundTable:
        """Lists the files."""
        definition = self.definition
        options = self.options.source_storage_options
        arguments = OpenArguments(None, options, True, None, {"timestamp_unit": _UNIT})
        locations = Locations(self.options.locations)
        dataset = HiveDataset(self.uris, definition, locations, arguments)
        types = {column.name: column.type for column in definition.storage.columns}
        columns, keys = columns_of(definition.storage.columns, _UNIT), keys_of(definition.keys)
        files: list[FoundFile] = []
        names: list[str] = []
        for partition in dataset.partitions():
            names.append(definition.name_of(partition))
            own = partition.storage.location if definition.has_partitions else definition.location
            location = _at(locations.readable(own or ""), definition.full_name)
            if not _is_there(location, options):
                if not definition.has_partitions:
                    raise SchemaError(f"its directory {location} does not exist")
                self.notes.append(f"partition {definition.name_of(partition)} has no directory {location}")
                continue
            files += self._files(dataset, partition, location, columns, keys)
        self._look_for_strays(locations, files)
        return FoundTable(
            definition.full_name,
            (definition.database.lower(), definition.name.lower()),
            place_of(definition.database, definition.name),
            columns,
            keys,
            tuple(files),
            types,
            definition.is_by_position,
            definition.comment,
            definition,
            frozenset(names),
        )

    def _files(
        self,
        dataset: HiveDataset,
        partition: PartitionDefinition,
        location: str,
        columns: pa.Schema,
        keys: pa.Schema,
    ) -> Iterator[FoundFile]:
        definition = self.definition
        format = definition.format_of(partition.storage)
        own = _own_columns(definition, partition)
        if format in READ:
            for file in self._read_by_us(dataset, partition, location, keys):
                yield replace(file, own=own)
        elif format in (PARQUET, _OF_PARQUET) and not definition.is_transactional:
            for path, size in _walked(location, self._storage):
                folder = self._folder(partition, _below(path, location))
                values = self._values(folder, keys)
                rows = functools.partial(parquet_rows, path, plain_schema(columns), values, self._storage)
                yield FoundFile(
                    path, size, PARQUET, folder, values, rows, storage_options=self._storage, own=own
                )
        else:
            name = definition.name_of(partition)
            of = f" of its partition {name}" if name else ""
            raise unsupported(f"files{of} of {format or 'no stated format'} are not read")

    @property
    def _storage(self) -> StorageOptions:
        return self.options.source_storage_options

    def _read_by_us(
        self, dataset: HiveDataset, partition: PartitionDefinition, location: str, keys: pa.Schema
    ) -> Iterator[FoundFile]:
        definition = self.definition
        arguments = dataset._arguments_now()

        def make() -> RawDataset:
            return RawDataset.of_hive(
                arguments.raw, definition, [partition], [location], storage_options=self._storage
            )

        raw = make()
        reader = _PartitionReader(make, raw, self.reading, location, _digest_of(raw))
        listed = [(path, known) for path, _, known in raw.found()]
        if definition.is_transactional:
            size = sum(size for _, size in _walked(location, self._storage))
            folder = self._folder(partition, "")
            if listed:
                values = self._values(folder, keys)
                rows = functools.partial(reader.rows, None)
                yield FoundFile(
                    location,
                    size,
                    definition.format,
                    folder,
                    values,
                    rows,
                    is_whole=True,
                    storage_options=self._storage,
                )
            return
        for number, (path, known) in enumerate(listed):
            if known is None:
                raise ColdframeError(f"{path}: its store does not say how large it is")
            folder = self._folder(partition, _below(path, location))
            values = _row(pa.record_batch(raw.constants(number)))
            rows = functools.partial(reader.rows, number)
            format = coldframe.detect(path, storage_options=self._storage) or "unknown"
            size, _, etag = known
            yield FoundFile(
                path,
                size,
                format,
                folder,
                values,
                rows,
                identity=f"{size}:{etag}" if etag else "",
                storage_options=self._storage,
            )

    def _folder(self, partition: PartitionDefinition, below: str) -> str:
        if self.definition.has_partitions:
            return folder_of((key.name for key in self.definition.keys), partition.values)
        return "/".join(below.split("/")[: len(self.definition.keys)])

    def _values(self, folder: str, keys: pa.Schema) -> Mapping[str, pa.Scalar]:
        if not len(keys):
            return {}
        typed = partition_values(self.definition.full_name, [folder], self.definition.keys)
        return _row(pa.record_batch(typed))

    def _look_for_strays(self, locations: Locations, files: Sequence[FoundFile]) -> None:
        """Notes files in the table's directory that lie in no partition: Hive does not read them."""
        place = self.definition.location
        if not self.definition.has_partitions or not place:
            return
        known = {file.path for file in files}
        whole = tuple(f"{file.path}/" for file in files if file.is_whole)
        strays = [
            path
            for path, _ in _walked(locations.readable(place), self._storage)
            if path not in known and not path.startswith(whole)
        ]
        if strays:
            self.notes.append(
                f"{len(strays):,} file(s) in its directory lie in no partition and were left out, such as "
                f"{strays[0]}"
            )


def _own_columns(definition: Definition, partition: PartitionDefinition) -> str:
    """A digest of the columns that a partition has in another type than its table, or lacks."""
    of_table = {column.name: column.type for column in definition.storage.columns}
    of_partition = {column.name: column.type for column in partition.storage.columns}
    unlike = sorted(
        (name, of_partition.get(name)) for name, kind in of_table.items() if of_partition.get(name) != kind
    )
    return hashlib.sha256(repr(unlike).encode()).hexdigest()[:16] if unlike else ""


def _at(location: str, table: str) -> str:
    if not location:
        raise SchemaError(f"{table}: a partition has no location")
    return location.rstrip("/") if is_remote(location) else os.path.abspath(location)


def _is_there(location: str, storage_options: StorageOptions) -> bool:
    if not is_remote(location):
        return os.path.isdir(location)
    # An object store has no empty directories.
    return open_store(location, storage_options).stat() is not None


def _below(path: str, location: str) -> str:
    """The path of a file below the location of its partition."""
    return path[len(location) :].lstrip("/") if path.startswith(location) else path.rpartition("/")[2]


def _walked(location: str, storage_options: StorageOptions) -> Iterator[tuple[str, int]]:
    """The files below a directory that Hive reads, and their sizes: not those with hidden names, nor empty
    ones.
    """
    if is_remote(location):
        yield from sorted(_in_store(location, storage_options))
        return
    for at, folders, names in os.walk(location):
        linked = [name for name in folders if os.path.islink(os.path.join(at, name))]
        if linked:
            raise unsupported(f"adopting a table with the link {os.path.join(at, linked[0])}")
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in sorted(names):
            path = os.path.join(at, name)
            if not is_hidden(name) and (size := os.path.getsize(path)):
                yield path, size


def _in_store(location: str, storage_options: StorageOptions) -> Iterator[tuple[str, int]]:
    store = open_store(location, storage_options)
    try:
        for entries in store.list("", recursive=True):
            for entry in entries:
                if not entry.is_folder and entry.size and not any(map(is_hidden, entry.path.split("/"))):
                    yield store.url_of(entry.path), entry.size
    except NotFoundError:
        return


def _scanned(raw: RawDataset, number: int | None) -> Iterator[pa.RecordBatch]:
    files = None if number is None else [number]
    for batch in raw.scan(files=files, batch_size=_BATCH):
        yield pa.record_batch(batch)


def _row(batch: pa.RecordBatch) -> dict[str, pa.Scalar]:
    return {name: column[0] for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _folders(source: str, options: Options, tables: Tables) -> FoundSource:
    inventory, tables_there = look(root_of(source), tables, options)
    listing = FoundSource()
    for table in tables_there:
        try:
            listing.tables.append(_in_folder(table))
        except (ColdframeError, OSError) as error:
            listing.left_out.append(Finding("left out", table.name, str(error)))
    for place in inventory.unread:
        listing.left_out.append(Finding("left out", place.relative, place.reason))
    if inventory.stray:
        listing.left_out.append(
            Finding(
                "left out",
                inventory.stray[0],
                f"{len(inventory.stray):,} file(s) of other formats: for tables of Parquet, "
                "give a metastore, a dump of one, or CREATE TABLE statements as the source",
            )
        )
    return listing


def _in_folder(table: Table) -> FoundTable:
    if table.damaged:
        raise SchemaError(f"{len(table.damaged):,} damaged file(s), such as {next(iter(table.damaged)).path}")
    if any(file.is_folder for file in table.files):
        raise unsupported("adopting a directory that is read as a whole: give its metastore as the source")
    options = {"timestamp_unit": _UNIT} if table.format in READ else {}
    listed = list(table.files)
    storage = listed[0].storage_options if listed else None
    arguments = OpenArguments(None, storage, True, None, {**options, **table.options})
    types = pa.schema(table.partition_fields) if table.keys else None
    listing = [(file.path, list(file.keys), None) for file in listed]
    raw = RawDataset(arguments.raw, listing, types=types)
    schema = pa.schema(raw)
    keys = pa.schema([schema.field(name) for name in raw.partition_columns()])
    columns = pa.schema([column for column in schema if column.name not in keys.names])
    files = tuple(
        FoundFile(
            file.path,
            file.size,
            str(file.format),
            folder_of([name for name, _ in file.keys], [value for _, value in file.keys]),
            _row(pa.record_batch(raw.constants(number))) if len(keys) else {},
            functools.partial(_scanned, raw, number),
            identity=file.identity,
            storage_options=storage,
        )
        for number, file in enumerate(listed)
    )
    if table.spec is not None and table.spec.layout is not None:
        raise unsupported("adopting with a layout in tables.toml: its files stay as they are divided")
    plain = re.sub(r"\W", "_", table.name)
    return FoundTable(table.name, (NAMESPACE, plain), table.path, columns, keys, files)
