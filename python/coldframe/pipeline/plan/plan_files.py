"""Opens each source file once, for its columns and splits. Reads no rows."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa

import coldframe
from coldframe._coldframe import (
    HIVE_NULL,
    ColdframeError,
    SchemaError,
    UnsupportedError,
    formats,
    parse_columns,
)
from coldframe.arguments import OpenArguments
from coldframe.errors import PartialTableWarning
from coldframe.file import Split, has_masked_columns
from coldframe.hive.definition import columns_of
from coldframe.literals import FormatName
from coldframe.options import TYPELESS
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.table_work import Fail, Pending, TableWork
from coldframe.pipeline.records import Failure, Opened, OpenedFile, PlannedFile, Recorded, SourceFile
from coldframe.pipeline.report.progress import Progress
from coldframe.pipeline.scheduling import Scheduler, Threads
from coldframe.pipeline.source.directory_logs import SharedByTables
from coldframe.pipeline.source.identity import CHANGED, is_unchanged
from coldframe.pipeline.source.reading import Reading
from coldframe.pipeline.source.tables import OpenOptions, Table
from coldframe.pipeline.state.scratch import Rows
from coldframe.sources import is_remote
from coldframe.spark.types import plain_schema
from coldframe.widening import unified

FILES_A_TASK = 256
_UNIT_OPTIONS = {name: about["capabilities"]["unit_option"] for name, about in formats().items()}
_WITH_TABLE = frozenset(name for name, about in formats().items() if "schema_of" in about["open"])


def key_maker(table: Table, settings: Mapping[str, str]) -> Callable[[SourceFile], str]:
    """Returns a function that gives the key of a file's conversion: the key changes only if the file, the
    options or the target change.
    """
    made, place = (json.dumps(value, sort_keys=True, default=str) for value in (settings, table.path))
    readings = [
        json.dumps(dict(value.identity), sort_keys=True, default=str)
        for value in table.readings or (Reading(table.format, table.options),)
    ]

    def key(file: SourceFile) -> str:
        # The text is the output of json.dumps with sorted keys; the parts that all files share are made once.
        options = readings[file.reading]
        # An etag identifies the content better than the time.
        etag = f'"etag": {json.dumps(file.etag)}, ' if file.etag else ""
        text = (
            f'{{{etag}"mtime": {file.mtime_ns}, "options": {options}, "path": {json.dumps(file.relative)}, '
            f'"settings": {made}, "size": {file.size}, "table": {place}}}'
        )
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    return key


def open_options(format: str, given: Mapping[str, Any], unit: str) -> OpenOptions:
    """The arguments that open a table's files: `given` are the options of its entry."""
    options = dict(given)
    if format not in TYPELESS:
        # In tables.toml, `schema` names the columns of old ORC files. The types are the file's own, except
        # for text that is not UTF-8 and decimals whose precision the file does not state.
        schema = options.pop("schema", None)
        if format in _WITH_TABLE and isinstance(schema, str):
            options.update(schema=schema, schema_of="table")
    if unit_option := _UNIT_OPTIONS.get(format):
        options.setdefault(unit_option, unit)
    return options


@dataclass(frozen=True)
class PlanTask:
    """Files of a table to be opened. The outcome has the metadata of each file."""

    files: tuple[tuple[str, str, str, bool], ...]
    """Path, path relative to the source, identity, whether it is a directory."""
    reading: Reading
    split_bytes: int
    unit: str
    storage_options: StorageOptions = field(default=None, repr=False)
    bytes: int = 1 << 20
    recorded: Recorded = field(default=(), repr=False)
    """Data that all tables of a directory share."""

    def run(self) -> Opened:
        """Opens the files. A file that cannot be opened has a failure, and does not stop the others."""
        columns = _Columns(self.unit)
        return Opened(tuple(self._plan(file, columns) for file in self.files), columns.by_name)

    def given_up(self, reason: str) -> Opened:
        """The outcome if no worker could open the files."""
        return Opened(tuple(OpenedFile(file[1], failure=Failure(reason)) for file in self.files))

    def _plan(self, file: tuple[str, str, str, bool], columns: _Columns) -> OpenedFile:
        path, relative, identity, is_folder = file
        try:
            opened = self._look(path, relative, columns)
        except Exception as error:
            # Any error counts as a failure of this file, even an option of the entry that its format does not
            # know.
            opened = OpenedFile(relative, failure=Failure.of(error))
        # This metadata and the inventory must describe the same file. A directory is checked after its last
        # byte was read (see `directory_checks`), and here only if a change may explain a failure.
        look = opened.failure is not None or not is_folder
        if look and not is_unchanged(path, identity, self.storage_options):
            return replace(opened, failure=Failure(f"{relative}: {CHANGED}", "changed"))
        return opened

    def _look(self, path: str, relative: str, columns: _Columns) -> OpenedFile:
        if self.reading.refusal:
            raise UnsupportedError(f"{relative}: {self.reading.refusal}")
        if self.reading.by_spark is not None:
            # Spark opens and reads the partition in a separate task.
            definition = self.reading.by_spark
            name = columns.keep(columns_of(definition.storage.columns, self.unit), self.reading.names)
            return OpenedFile(relative, [(0, 0, 0, None, ())], name)
        opened = self._open(path)
        schema = opened.schema
        names = _names_for(opened, self.reading)
        self._check_columns(path, schema)
        if self.reading.lengths and not opened._raw.has_placeholder_names:
            # Refuses text that is longer than the table's, which Hive cuts.
            checking = {"schema": self.reading.lengths, "schema_of": "hive_exact"}
            coldframe.File.of(_arguments(self.reading.format, self.storage_options, checking), path)
        name = columns.keep(schema, names)
        splits = opened.splits(self.split_bytes)
        return OpenedFile(
            relative,
            [(split.part, split.start, split.stop, split.rows, split.own) for split in splits],
            name,
            names,
            opened.num_rows,
            splits[0].known if splits else None,
            has_masked_columns(opened),
        )

    def _check_columns(self, path: str, schema: pa.Schema) -> None:
        """Raises SchemaError if the file has more columns than the definition: they would be lost."""
        format = self.reading.format
        if format not in TYPELESS or "schema" not in self.reading.options:
            return
        there = len(coldframe.File.of(_arguments(format, self.storage_options, {}), path).schema)
        if there > len(schema):
            raise SchemaError(f"the file has {there} columns, the table's definition names {len(schema)}")

    def _open(self, path: str) -> coldframe.File:
        format = self.reading.format
        options = open_options(format, self.reading.options, self.unit)
        try:
            arguments = _arguments(format, self.storage_options, options)
            return coldframe.File.of(arguments, path, self.recorded or None)
        except (TypeError, ValueError) as error:
            if isinstance(error, ColdframeError):
                raise
            raise SchemaError(
                f"the table's entry has options that {format} does not know: {error}; set 'format' in the "
                "entry to the format of the files that it is for"
            ) from error


class _Columns:
    """The schemas of files in types that Spark has (see `plain_schema`); equal schemas are kept once."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self.by_name: dict[str, str] = {}
        """The schemas as text (see `encoded`), by their `schema_id`."""
        self._known: dict[bytes, str] = {}

    def keep(self, schema: pa.Schema, names: Sequence[str] | None) -> str:
        """Keeps a file's schema and returns its id; `names` replace the file's names of columns."""
        exact = schema.serialize().to_pybytes() + repr(names).encode()
        if exact not in self._known:
            self._known[exact] = self._keep(schema, names)
        return self._known[exact]

    def _keep(self, schema: pa.Schema, names: Sequence[str] | None) -> str:
        if names is not None:
            schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        plain = plain_schema(schema, timestamp_unit=self._unit)
        _check_distinct(plain)
        name = schema_id(plain)
        self.by_name[name] = encoded(plain)
        return name


def plan_tasks(
    work: Iterable[tuple[SourceFile, str]],
    table: Table,
    *,
    split_bytes: int,
    unit: str,
    files_a_task: int = FILES_A_TASK,
    shared: SharedByTables | None = None,
) -> Iterator[PlanTask]:
    """The tasks for files (and their keys). `shared`: data that the tables of a directory share."""
    for some in _alike(work, files_a_task):
        files = tuple((file.path, file.relative, file.identity, file.is_folder) for file in some)
        reading = table.reading_of(some[0])
        task = PlanTask(files, reading, split_bytes, unit, some[0].storage_options)
        if shared is not None and some[0].is_folder:
            # Such a directory is the only source of each of its tables.
            task = replace(task, recorded=shared.of(some[0], table))
        yield task


def _alike(work: Iterable[tuple[SourceFile, str]], count: int) -> Iterator[list[SourceFile]]:
    """Groups files with the same reading, up to `count` at a time."""
    for _, files in itertools.groupby((file for file, _ in work), lambda file: file.reading):
        while some := list(itertools.islice(files, count)):
            yield some


def splits_of(planned: PlannedFile, table: Table, unit: str) -> Iterator[Split]:
    """The splits of `File.splits`, rebuilt without the footer: reading one opens the file again."""
    reading = table.reading_of(planned.file)
    options = open_options(reading.format, reading.options, unit)
    arguments = _arguments(reading.format, planned.file.storage_options, options)
    known: Any = None if planned.known is None else tuple(planned.known)
    for part, start, stop, rows, own in planned.parts:
        place = (part, start, stop, rows)
        yield Split(planned.file.path, reading.format, *place, arguments, known=known, own=own)


def _arguments(format: str, storage_options: StorageOptions, options: Mapping[str, Any]) -> OpenArguments:
    """How sources of a table are opened, by the options of its entry."""
    options = dict(options)
    verified, keys = options.pop("verify_checksums", True), options.pop("keys", None)
    return OpenArguments(format, storage_options, verified, keys, options)


def schema_id(schema: pa.Schema) -> str:
    """An id that is derived from the columns: equal columns have equal ids."""
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()[:16]


def encoded(schema: pa.Schema) -> str:
    """Columns as text."""
    return base64.b64encode(schema.serialize()).decode("ascii")


def decoded(text: str) -> pa.Schema:
    """The reverse of `encoded`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def table_schema(
    table: Table, schemas: Iterable[tuple[str, pa.Schema]], *, partitions_inside: bool
) -> pa.Schema:
    """The columns of a table: the columns of its first file, then the columns that further files add, in
    types that hold all values. `schemas`: pairs of a file and its plain columns.
    """
    schema = unified(schemas, table=table.name)
    partitions = table.partition_fields
    inside = {field.name.lower() for field in partitions}
    # As in Hive, the directory's value replaces a file's column of the same name.
    own = [field for field in schema if field.name.lower() not in inside]
    if partitions_inside:
        own += partitions
    if not own:
        raise SchemaError(f"table {table.name} has no columns besides those of its partitions")
    return pa.schema(own)


def partition_values(file: SourceFile, table: Table) -> tuple[tuple[str, Any], ...]:
    """The values of the partition columns, as Arrow scalars."""
    given = dict(file.keys)
    _check_text(file)
    values: list[tuple[str, Any]] = []
    for column in table.partition_fields:
        text = given.get(column.name)
        if text is None or text == HIVE_NULL:
            values.append((column.name, pa.scalar(None, column.type)))
            continue
        try:
            values.append((column.name, pa.scalar(text).cast(column.type)))
        except pa.ArrowInvalid as reason:
            raise SchemaError(
                f"{file.relative}: partition {column.name}={text} is not a value of type {column.type}"
            ) from reason
    return tuple(values)


def _check_text(file: SourceFile) -> None:
    """Raises SchemaError if a folder's name, or the value in it, is not UTF-8."""
    for folder in file.folders:
        try:
            folder.encode()
            unquote(folder, errors="strict")
        except UnicodeError:
            shown = folder.encode(errors="backslashreplace").decode()
            raise SchemaError(f"the name of folder {shown} is not UTF-8") from None


def _names_for(opened: coldframe.File, reading: Reading) -> tuple[str, ...] | None:
    """The table's names for a file's columns; None if the names are the same.

    tables.toml or a metastore names the columns of a file that only numbers its columns.
    """
    if reading.renamed:
        return tuple(reading.renamed.get(name, name) for name in opened.schema.names)
    if reading.by_position:
        return _by_position(reading.names, opened.schema.names)
    given = reading.options.get("schema")
    if not isinstance(given, str) or not opened._raw.has_placeholder_names:
        return _in_case_of(opened.schema.names, reading.names)
    return _by_position(parse_columns(given).names, opened.schema.names)


def _by_position(names: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """The table's names for a file's columns."""
    if len(names) < len(own):
        raise SchemaError(f"the file has {len(own)} columns, the table's definition names {len(names)}")
    return tuple(names[: len(own)])


def _in_case_of(own: Sequence[str], names: Sequence[str]) -> tuple[str, ...] | None:
    """A file's names with the table's upper and lower case; None if all names are the same."""
    of_table = {name.lower(): name for name in names}
    cased = tuple(name if name in names else of_table.get(name.lower(), name) for name in own)
    return None if cased == tuple(own) else cased


def _check_distinct(fields: Iterable[pa.Field], inside: str = "") -> None:
    """Raises UnsupportedError for names that Hive, Spark or Delta take for the same; also within structs."""
    fields = list(fields)
    folded = [column.name.lower() for column in fields]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        what = f"fields of {inside}" if inside else "columns"
        raise UnsupportedError(f"{what} that differ in case only, or not at all: {twice}")
    for column in fields:
        if pa.types.is_nested(column.type):
            parts = [column.type.field(number) for number in range(column.type.num_fields)]
            _check_distinct(parts, f"{inside}.{column.name}" if inside else column.name)


DRIVER_FILES = 2000
"""The driver itself opens up to this many files of a table; if there are more, the scheduler opens them."""
_THREADS = 8
_THREADS_FAR = 64
"""Threads of the driver for files of a store: opening a file takes a few requests and little memory."""
_FILES_A_THREAD = 8
"""Files that a thread opens in one task."""


def plan_table(
    work: TableWork,
    rows: Rows[Pending],
    *,
    scheduler: Scheduler | None,
    options: Options,
    fail: Fail,
    progress: Progress | None = None,
    shared: SharedByTables | None = None,
) -> None:
    """Opens files of a table: passes their metadata to `planned`, and files that cannot be opened to
    `fail`.
    """
    if not rows:
        return
    in_driver = scheduler is None or len(rows) <= DRIVER_FILES
    remote = any(is_remote(pending.file.path) for pending in itertools.islice(rows, 1))
    doer = Threads(_THREADS_FAR if remote else _THREADS) if in_driver or scheduler is None else scheduler
    given = ((pending.file, pending.key) for pending in rows)
    tasks = plan_tasks(
        given,
        work.table,
        split_bytes=options.split_bytes,
        unit=options.timestamp_unit,
        files_a_task=_FILES_A_THREAD if in_driver else FILES_A_TASK,
        shared=shared,
    )
    for outcome in doer.run(tasks):
        for name, schema in outcome.schemas.items():
            if name not in work.schemas:
                work.schemas[name] = decoded(schema)
        for opened in outcome.files:
            pending = rows.get(opened.relative)
            if pending is None:
                raise AssertionError("a file was planned that was not requested")
            if progress is not None:
                progress.advance(work.table.name, pending.file.share, opened.rows or 0)
            if opened.failure is not None:
                fail(work, pending.file, opened.failure.error, opened.failure.cause)
                continue
            work.planned.append(opened.planned(pending.file, pending.key))


def lacking(table: Table, files: Iterable[SourceFile], unit: str) -> list[str]:
    """What directories report as missing, such as tablets that other servers hold."""
    missing: list[str] = []
    for file in files:
        if not file.is_folder or table.reading_of(file).by_spark is not None:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PartialTableWarning)
            # Planning reports files that cannot be opened.
            with contextlib.suppress(ColdframeError, OSError, TypeError, ValueError):
                reading = table.reading_of(file)
                options = open_options(reading.format, reading.options, unit)
                opened = coldframe.open(
                    file.path,
                    format=cast(FormatName, reading.format),
                    storage_options=file.storage_options,
                    **options,
                )
                met = opened._raw.notices_by_reading()
                missing += [text for kind, text in met if kind == "partial_table"]
        missing += [
            str(warning.message) for warning in caught if issubclass(warning.category, PartialTableWarning)
        ]
    return missing
