"""Batches from Rust to the caller: which columns to decode, which rows and columns to keep."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coldframe import _coldframe
from coldframe.arrow import pa
from coldframe.errors import SchemaError
from coldframe.filters import Bound, keep, needed
from coldframe.logs import watched

if TYPE_CHECKING:
    from coldframe._coldframe import RawScan, RawTableRows

_log = logging.getLogger(__name__)

DEFAULT_BATCH_SIZE = 65536
DEFAULT_SPLIT_BYTES = 128 << 20

Damage = list[dict[str, Any]]
"""What a tolerant read lost, see `File.damage`."""


def names_of(columns: Sequence[str] | None) -> list[str] | None:
    """Column names as a list. Refuses a single string, whose letters would be taken for names."""
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, not the string {columns!r}")
    return None if columns is None else list(columns)


def with_tested(columns: Sequence[str] | None, bound: Bound, schema: Any) -> list[str] | None:
    """The columns to decode: the requested columns, and the columns that pyarrow needs for its part of a
    filter.
    """
    names = names_of(columns)
    if names is None or bound.exact:
        return names
    return needed(names, bound.residual, schema)


def projected(schema: Any, columns: Sequence[str] | None) -> Any:
    """A table's schema with these columns only."""
    names = names_of(columns)
    if names is None:
        return schema
    for name in names:
        if name not in schema.names:
            known = ", ".join(map(repr, schema.names[:20]))
            raise SchemaError(f"no column {name!r}; the columns are {known}")
    return pa.schema([schema.field(name) for name in names], metadata=schema.metadata)


def reader_of(
    rows: RawScan | RawTableRows,
    bound: Bound,
    wanted: pa.Schema,
    limit: int | None,
    ended: Callable[[], None],
    *what: object,
) -> pa.RecordBatchReader:
    """The rows that pass, with the columns of `wanted`. `what`: a text for log lines, and its values.

    `limit` applies only if pyarrow evaluates a part of the filter; otherwise Rust has applied it. `ended` is
    called once, also after an error or if the caller stops early.
    """

    def batches() -> Iterator[Any]:
        # Passes batches one by one: a C stream would reduce an error to its text.
        try:
            yield from watched(_log, logging.INFO, *what, batches=map(pa.record_batch, rows))
        finally:
            ended()

    stream = batches()
    if not bound.exact:
        stream = filtered(stream, bound.residual, wanted, limit)
    return pa.RecordBatchReader.from_batches(wanted, stream)


def filtered(batches: Iterator[Any], test: Any, schema: Any, limit: int | None) -> Iterator[Any]:
    """The rows that pass (see `keep`), with the columns of `schema` only."""
    remaining = limit
    with contextlib.closing(batches):  # type: ignore[type-var]
        if remaining == 0:
            return
        for batch in batches:
            kept = keep(batch, test)
            if remaining is not None:
                kept = kept.slice(0, remaining)
                remaining -= kept.num_rows
            if kept.num_rows:
                yield columns_of(kept, schema)
            if remaining == 0:
                return


def columns_of(batch: Any, schema: Any) -> Any:
    """The batch with the columns of `schema` only, in the types of `schema`."""
    if batch.schema.equals(schema):
        return batch
    if len(schema) == 0:
        return row_count_batch(batch.num_rows, schema)
    columns = ((batch.column(field.name), field.type) for field in schema)
    arrays = [c if c.type.equals(type) else _coldframe.pruned(c, type) for c, type in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row_count_batch(rows: int, schema: Any) -> Any:
    """A batch without columns that still has a number of rows."""
    empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty).replace_schema_metadata(schema.metadata)
