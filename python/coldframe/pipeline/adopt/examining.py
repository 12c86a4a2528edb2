"""Decodes each file of a table once, completely, and decides whether it can stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from coldframe.arguments import default_threads
from coldframe.errors import SchemaError, unsupported
from coldframe.pipeline.adopt.changes import identity_now
from coldframe.pipeline.adopt.layouts import PARQUET, layout_of
from coldframe.pipeline.adopt.mapping import Mapping as NameMapping
from coldframe.pipeline.adopt.measures import Measured
from coldframe.pipeline.adopt.proof import shown_by
from coldframe.pipeline.adopt.records import FileLayout, FoundFile, FoundTable, Verdict
from coldframe.pipeline.adopt.rules import (
    DETACHED,
    FOREIGN,
    SHARED,
    WHOLE,
    ZEROS,
    Facts,
    assumed,
    hides_zeros,
    reason_of,
    why_never,
)
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.parquet_footer import parts_of
from coldframe.pipeline.source.identity import content_digest
from coldframe.spark.types import plain_schema

_RESERVED = frozenset({"_file", "_pos", "_deleted", "_spec_id", "_partition"})
"""Names of columns that Spark with Iceberg reserves."""


@dataclass(frozen=True)
class Examined:
    """A file, and the facts about its values."""

    file: FoundFile
    verdict: Verdict
    values: Measured
    layout: FileLayout | None
    """None for a file whose format Iceberg does not have."""
    assumed: str | None


@dataclass(frozen=True)
class Columns:
    """The columns of the new table."""

    schema: Any
    """Iceberg's schema, with ids."""
    shown: pa.Schema
    """As readers give them, in the fewest types of Arrow."""


def columns_of_table(table: FoundTable) -> Columns:
    """The columns of the new table; raises if Iceberg has no such type or name."""
    from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    names = [*table.columns.names, *table.keys.names]
    lower = [name.lower() for name in names]
    if twice := sorted({name for name in lower if lower.count(name) > 1}):
        raise SchemaError(f"two of its columns are called {twice[0]}")
    if reserved := sorted(_RESERVED.intersection(names)):
        raise unsupported(f"adopting a table with a column {reserved[0]}: Spark reserves this name")
    for column in table.columns:
        if _has_union(column.type):
            raise unsupported(f"adopting column {column.name}, a union: Iceberg has no such type")
    plain = plain_schema(pa.schema([*table.columns, *table.keys]))
    try:
        schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(plain))
    except (UnsupportedPyArrowTypeException, TypeError, ValueError) as error:
        raise unsupported(f"adopting its columns: Iceberg has no such type: {error}") from error
    return Columns(schema, shown_by(schema))


def _has_union(kind: pa.DataType) -> bool:
    return pa.types.is_union(kind) or any(_has_union(part.type) for part in parts_of(kind))


def examine(
    table: FoundTable,
    columns: Columns,
    files: Sequence[FoundFile],
    taken: Collection[str] = (),
    *,
    detach: bool = False,
) -> list[Examined]:
    """The verdicts on files; raises if not even a conversion of one would be right. `taken`: paths of files
    that stay since an earlier run. `detach`: no file may stay.
    """
    mapping = NameMapping(columns.schema, table.keys.names)
    calls = (partial(_examine, table, columns, mapping, file, detach=detach) for file in files)
    examined = list(in_threads(calls, default_threads()))
    _look_at_zeros(examined)
    return _once(examined, set(taken))


def _look_at_zeros(examined: Sequence[Examined]) -> None:
    signs = (pair for item in examined for pair in item.values.zeros.items())
    columns = {name for name, of in signs if True in of}
    for item in examined:
        if item.verdict.reason or item.layout is None:
            continue
        is_parquet = item.file.format == PARQUET
        if any(hides_zeros(item.layout, item.values, name, is_parquet=is_parquet) for name in columns):
            item.verdict.reason = ZEROS


def _once(examined: list[Examined], seen: set[str]) -> list[Examined]:
    """A file in two partitions stays in the first."""
    for item in examined:
        if item.file.path in seen and not item.verdict.reason:
            item.verdict.reason = SHARED
        seen.add(item.file.path)
    return examined


def _examine(
    table: FoundTable, columns: Columns, mapping: NameMapping, file: FoundFile, *, detach: bool
) -> Examined:
    from pyiceberg.manifest import FileFormat

    identity = identity_now(file)
    values = Measured(columns.shown, table.types, table.keys.names)
    for batch in file.rows():
        values.add(batch)
    values.end()
    verdict = Verdict(
        file.path,
        file.bytes,
        values.rows,
        folder=file.folder,
        own=file.own,
        identity=identity,
        digest=_digest(file, identity),
        checksum=values.checksum,
    )
    if file.is_whole or file.format.upper() not in FileFormat.__members__:
        verdict.reason = WHOLE if file.is_whole else FOREIGN
        return Examined(file, verdict, values, None, None)
    layout = layout_of(file.path, file.format, file.storage_options)
    facts = Facts(replace(table, columns=plain_schema(table.columns)), file, layout, values, mapping)
    if never := why_never(facts):
        raise unsupported(f"adopting {never}")
    verdict.reason = reason_of(facts) or (DETACHED if detach else "")
    return Examined(file, verdict, values, layout, None if verdict.reason else assumed(facts))


def _digest(file: FoundFile, identity: str) -> str:
    if file.is_whole:
        return f"tree:{identity}"
    return content_digest(file.path, file.storage_options)
