"""Writing files, and the one-line ways to read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from coldframe import _coldframe
from coldframe.errors import unsupported
from coldframe.file import open
from coldframe.filters import Filter
from coldframe.sources import Source

__all__ = ["detect", "read_table", "write"]


def write(
    data: Any,
    dest: str | os.PathLike[str],
    *,
    format: str,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Writes Arrow data as a file of one of the formats.

    Args:
        data: anything with `__arrow_c_stream__` (a pyarrow Table or RecordBatchReader, a polars or pandas
            DataFrame, a DuckDB relation, a File), a polars LazyFrame, a pyarrow RecordBatch or Dataset.
        dest: the file's path, or a `file://` URL. It appears whole or not at all: a temporary name beside it
            is renamed at the end.
        format: `"orc"`, `"rcfile"`, `"hfile"`, `"cfile"` or `"redfile"`.
        progress: told the rows written so far.
        **options: the format's own, such as `codec=` and `serde=`; `coldframe convert --help` lists them.

    Returns:
        `{"rows": .., "bytes": ..}`
    """
    if not isinstance(dest, (str, os.PathLike)):
        # Bytes are contents where a file is read; here they could only be meant as a path.
        raise TypeError(f"dest: expected a path (str or os.PathLike), found {type(dest).__name__}")
    return _coldframe.write(
        _stream(data), os.fsdecode(dest), format=format, options=options, progress=progress
    )


def read_table(
    source: object,
    columns: Sequence[str] | None = None,
    *,
    filter: Filter | None = None,
    limit: int | None = None,
    on_error: str = "raise",
    **arguments: Any,
) -> Any:
    """`open(source, **arguments).read(columns, ...)`: the rows as a pyarrow.Table."""
    return open(source, **arguments).read(columns, filter=filter, limit=limit, on_error=on_error)


def detect(source: object, *, storage_options: Mapping[str, Any] | None = None) -> str | None:
    """The format's name, judged by the bytes; None if it is not one of ours."""
    opened = Source(source, storage_options)
    return _coldframe.detect(opened.handle(), opened.core_options())


def _stream(data: Any) -> Any:
    if hasattr(data, "__arrow_c_stream__"):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if hasattr(data, "scanner"):  # a pyarrow Dataset
        return data.scanner().to_reader()
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a polars LazyFrame
        return data.collect()
    raise unsupported(f"writing {type(data).__name__}: expected something with __arrow_c_stream__")
