"""Reads files inside UDFs: batches for `mapInArrow`, and files that stay open for look-ups.

    paths.mapInArrow(decode, udfs.columns_of(example))
                     └── for each path: yield from udfs.batches(path)

Spark compares the types of a UDF's batches with the declared columns, so this module makes the batches and
the declaration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe._coldframe import conform_batch
from coldframe.arguments import OpenArguments
from coldframe.batches import Damage
from coldframe.file import File
from coldframe.filters import Filter
from coldframe.literals import OnError
from coldframe.spark.types import plain_schema, to_spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

KEPT_OPEN = 16
"""The number of files that a worker keeps open for `opened`."""

BATCH_ROWS = 16384
"""Spark reads batches of 8 to 32 thousand rows equally fast."""


def batches(
    source: object,
    columns: Sequence[str] | None = None,
    *,
    filter: Filter | None = None,
    batch_rows: int = BATCH_ROWS,
    on_error: OnError = "raise",
    on_damage: Callable[[Damage], None] | None = None,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in the types that Spark takes from `mapInArrow`.

    Args:
        source: a path or URL, or the content of a file, such as a value of a `binaryFile` column.
        columns: names, in the order of the result; None is all of them.
        filter: as in `File.read`.
        batch_rows: the maximum number of rows in a batch.
        on_error: as in `File.read`.
        on_damage: called with the losses, as in `File.to_batches`.
        **options: those of `coldframe.open`.
    """
    rows = _open(source, options).to_batches(
        columns, filter=filter, batch_size=batch_rows, on_error=on_error, on_damage=on_damage
    )
    target = plain_schema(rows.schema)
    for batch in rows:
        yield conform_batch(batch, target)


def columns_of(source: object, columns: Sequence[str] | None = None, **options: Any) -> StructType:
    """The columns that `batches` returns for such a file: the second argument of `mapInArrow`."""
    schema = _open(source, options).schema
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    return to_spark_schema(schema)


def opened(path: str | os.PathLike[str], **options: Any) -> File:
    """The file (or HBase or Kudu directory) at a path, opened once in each Python worker.

    A worker runs many tasks, and keeps the last 16 files open with their cached blocks. If a file is
    replaced, answers may come from its old content: give new content a new name.

    Args:
        path: a path or URL.
        **options: those of `coldframe.open`.
    """
    key = (os.fspath(path), repr(sorted(options.items())))
    file = _OPEN.pop(key, None)
    if file is None or file.closed:
        file = _open(path, options)
    _OPEN[key] = file  # the most recently used file is last
    while len(_OPEN) > KEPT_OPEN:
        del _OPEN[next(iter(_OPEN))]
    return file


_OPEN: dict[tuple[str, str], File] = {}


def _open(source: object, given: dict[str, Any]) -> File:
    options = dict(given)
    # Spark has no nanoseconds; microseconds also cover the years 1 and 9999, which are frequent in tables.
    arguments = OpenArguments(
        options.pop("format", None),
        options.pop("storage_options", None),
        options.pop("verify_checksums", True),
        options.pop("keys", None),
        options,
        microseconds=True,
    )
    return File.of(arguments, _content(source))


def _content(source: object) -> object:
    """The source; if it is bytes of a column, they are the content of a file, never a path."""
    if isinstance(source, pa.Scalar):
        return source.as_buffer()
    return memoryview(source) if isinstance(source, bytes | bytearray) else source
