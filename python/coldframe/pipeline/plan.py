"""Stage 3: each source file opened once, its columns and splits learnt; nothing of its rows is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import coldframe
from coldframe._coldframe import ColdframeError, SchemaError, UnsupportedError, formats
from coldframe.pipeline.convert import describe
from coldframe.pipeline.identity import CHANGED, is_unchanged
from coldframe.pipeline.inventory import SourceFile
from coldframe.pipeline.tables import TYPELESS, Table
from coldframe.spark.types import plain_schema
from coldframe.widening import unified

_THREADS = 4
_PLACEHOLDER = re.compile(r"_col\d+\Z")


@dataclass
class PlannedFile:
    """A source file that is to be converted."""

    file: SourceFile
    table: Table
    key: str
    splits: Sequence[Any] = ()
    schema: pa.Schema | None = None
    names: tuple[str, ...] | None = None
    rows: int | None = None
    """How many the file says it has."""
    error: str | None = None
    changed: bool = False
    """It is not the file any more that the inventory saw."""


@dataclass
class PlannedTable:
    """A table, its columns, and the files to convert."""

    table: Table
    schema: pa.Schema
    """Of the files to be written: without the partition columns, except where the target wants them inside.
    """
    files: list[PlannedFile] = field(default_factory=list)


def file_key(file: SourceFile, table: Table, settings: dict[str, Any]) -> str:
    """The identity of a piece of work: the same file, unchanged, into the same target gives the same key."""
    identity = {
        "path": file.relative,
        "size": file.size,
        "mtime": file.mtime_ns,
        "table": table.path,
        "options": dict(table.options),
        "settings": settings,
        # Where the store names the content, its time says less than that.
        **({"etag": file.etag} if file.etag else {}),
    }
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def open_options(table: Table, unit: str) -> dict[str, Any]:
    """How a table's files are opened."""
    options = dict(table.options)
    if table.format not in TYPELESS:
        # In tables.toml it names the columns of old ORC files; the types are the file's own.
        options.pop("schema", None)
    if "timestamp_unit" in formats().get(table.format, {}).get("open", {}):
        options.setdefault("timestamp_unit", unit)
    return options


def plan_files(
    work: Sequence[tuple[SourceFile, Table, str]], *, split_bytes: int, unit: str
) -> list[PlannedFile]:
    """Opens the files. One that cannot be opened has its error, and does not stop the others."""

    def plan(item: tuple[SourceFile, Table, str]) -> PlannedFile:
        file, table, key = item
        planned = PlannedFile(file, table, key)
        try:
            opened = coldframe.open(
                file.path,
                format=table.format,
                storage_options=file.storage_options,
                **open_options(table, unit),
            )
            schema = opened.schema
            planned.names = _names_for(schema, table)
            if planned.names is not None:
                schema = pa.schema([f.with_name(n) for f, n in zip(schema, planned.names, strict=True)])
            planned.schema = plain_schema(schema, timestamp_unit=unit)
            _demand_distinct(planned.schema)
            planned.splits = opened.splits(split_bytes)
            planned.rows = opened.num_rows
        except (ColdframeError, OSError) as error:
            planned.error = describe(error)
        # What was learnt above and what the inventory saw must be of one file.
        if not is_unchanged(file.path, file.identity, file.storage_options):
            planned.changed, planned.error = True, f"{file.relative}: {CHANGED}"
        return planned

    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(plan, work))


def table_schema(
    table: Table, schemas: Iterable[tuple[str, pa.Schema]], *, partitions_inside: bool
) -> pa.Schema:
    """The columns of all files of a table: those of the first one, then what others add; types as wide as
    needed. `schemas`: a file for each, and its plain columns.
    """
    schema = unified(schemas, table=table.name)
    partitions = table.partition_fields
    inside = {field.name.lower() for field in partitions}
    # As in Hive: where a file has a column of the partition's name, the directory's value counts.
    own = [field for field in schema if field.name.lower() not in inside]
    if partitions_inside:
        own += partitions
    if not own:
        raise SchemaError(f"table {table.name} has no columns besides those of its partitions")
    return pa.schema(own)


def partition_values(file: SourceFile, table: Table) -> tuple[tuple[str, Any], ...]:
    """The values of the partition columns, as Arrow scalars."""
    given = dict(file.keys)
    values: list[tuple[str, Any]] = []
    for column in table.partition_fields:
        text = given.get(column.name)
        if text is None or text == "__HIVE_DEFAULT_PARTITION__":
            values.append((column.name, pa.scalar(None, column.type)))
            continue
        try:
            values.append((column.name, pa.scalar(text).cast(column.type)))
        except pa.ArrowInvalid as reason:
            raise SchemaError(
                f"{file.relative}: partition {column.name}={text} is no {column.type}"
            ) from reason
    return tuple(values)


def _names_for(schema: pa.Schema, table: Table) -> tuple[str, ...] | None:
    """Old Hive wrote ORC with columns `_col0`, `_col1` ..; their real names stand in tables.toml."""
    given = table.options.get("schema")
    if table.format in TYPELESS or not isinstance(given, str):
        return None
    if not all(_PLACEHOLDER.match(name) for name in schema.names):
        return None
    names = tuple(part.split()[0].strip("`:") for part in _columns_of(given))
    if len(names) < len(schema.names):
        raise SchemaError(
            f"table {table.name}: the file has {len(schema.names)} columns, the schema names {len(names)}"
        )
    return names[: len(schema.names)]


def _columns_of(text: str) -> list[str]:
    """The columns of a list in Hive's language, cut at its outer commas."""
    parts: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        depth += letter in "<("
        depth -= letter in ">)"
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _demand_distinct(schema: pa.Schema) -> None:
    folded = [name.lower() for name in schema.names]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        raise UnsupportedError(f"columns that differ in case only, or not at all: {twice}")
