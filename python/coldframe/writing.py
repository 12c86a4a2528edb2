"""Writing files, and the one-line ways to read them."""

from __future__ import annotations

import builtins
import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from coldframe import _coldframe
from coldframe._coldframe import shown
from coldframe.arrow import pa
from coldframe.errors import ColdframeError, ExtensionTypeWarning, unsupported
from coldframe.file import File
from coldframe.filters import Filter
from coldframe.literals import OnError, WrittenFormat
from coldframe.logs import step
from coldframe.opening import open
from coldframe.scanning import Dataset
from coldframe.sources import Source, open_store, with_filesystem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from coldframe.keywords import OpenKeywords, WriteOptions

_log = logging.getLogger(__name__)


def write(
    data: Any,
    dest: str | bytes | os.PathLike[str] | os.PathLike[bytes] | BinaryIO,
    *,
    format: WrittenFormat | None = None,
    partitioning: Sequence[str] | Any = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    progress: Callable[[int], None] | None = None,
    **options: Unpack[WriteOptions],
) -> dict[str, Any]:
    """Writes Arrow data as a file of one of the formats, or as a partitioned directory of files.

    Args:
        data: anything with `__arrow_c_stream__` (a pyarrow Table or RecordBatchReader, a polars or pandas
            DataFrame, a DuckDB relation, a File), a polars LazyFrame, a pyarrow RecordBatch or Dataset.
        dest: the file's path or URL. The file appears complete or not at all. Or a binary file object,
            to which the whole file is written at the end.
        format: `"orc"`, `"rcfile"`, `"hfile"`, `"cfile"` or `"redfile"`; None goes by the end of the name.
        partitioning: names of columns (or a pyarrow.Schema with them): `dest`, which must be absent or
            empty, becomes a directory with files below `key=value` directories as in Hive, which `scan`
            reads back as columns. Rows need not be sorted; if they are, each partition is one file. Nothing
            appears before everything is written.
        storage_options, filesystem: as for `open`.
        progress: called with the number of rows written so far.
        **options: the format's own, such as `codec=` and `serde=`; `coldframe convert --help` lists them.

    Returns:
        `{"rows": .., "bytes": ..}`; with `partitioning` also `"files"`, their paths below `dest`

    Dictionaries, runs and views are written as plain values; extension types as their storage, with a
    warning. Data that the file could not return unchanged raises SchemaError or UnsupportedError. Exceptions
    of the data's source are passed on unchanged.
    """
    storage_options = with_filesystem(storage_options, filesystem)
    if not isinstance(dest, (str, bytes, os.PathLike)):
        if not callable(getattr(dest, "write", None)):
            actual = type(dest).__name__
            raise TypeError(
                f"dest: expected a path (str, bytes or os.PathLike) or a binary file, found {actual}"
            )
        return _write_to_object(data, dest, format, partitioning, progress, options)
    dest = os.fsdecode(dest)
    if format is None:
        format = format_by_name(dest)
    if partitioning is None:
        return write_file(
            data, dest, format=format, storage_options=storage_options, progress=progress, options=options
        )
    with _source_errors(data) as stream:
        store = open_store(os.fsdecode(dest), storage_options)
        return _write_partitioned(stream, store, format, partitioning, progress, options)


def format_by_name(dest: str) -> WrittenFormat:
    """The format for the extension of a file name."""
    ending = os.path.splitext(dest)[1].lower()[1:]
    known = _coldframe.formats()
    for name, about in known.items():
        if about["capabilities"]["written"] and ending in about["capabilities"]["endings"]:
            return cast(WrittenFormat, name)
    endings = (ending for about in known.values() for ending in about["capabilities"]["endings"])
    raise ValueError(
        f"{shown(str(dest))}: cannot tell the format from the name: "
        f"give format=, or an end of {sorted(endings)}"
    )


def _write_to_object(
    data: Any,
    dest: Any,
    format: str | None,
    partitioning: Any,
    progress: Callable[[int], None] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Writes to a temporary file, since formats end with a footer, then copies it to the file object."""
    if format is None or partitioning is not None:
        raise ValueError("a file object needs format=, and takes no partitioning=")
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="coldframe-") as folder:
        path = os.path.join(folder, "whole")
        report = write_file(
            data, path, format=format, storage_options=None, progress=progress, options=options
        )
        with builtins.open(path, "rb") as whole:
            shutil.copyfileobj(whole, dest, 1 << 20)
    return report


def write_file(
    data: Any,
    dest: str | os.PathLike[str],
    *,
    format: str,
    storage_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Writes one file for `write`."""
    with _source_errors(data) as stream:
        target = Source(dest, storage_options)
        with step(_log, logging.INFO, "writing %s, format %s", target, format) as notes:
            report = _coldframe.write(
                stream,
                target.handle(),
                format=format,
                options=options,
                progress=progress,
                storage_options=target.core_options(),
            )
            notes.append(f"{report['rows']} rows, {report['bytes']} bytes")
        return report


@contextlib.contextmanager
def _source_errors(data: Any) -> Iterator[Any]:
    """The data as an object with `__arrow_c_stream__`. Exceptions of the batches' source are passed on
    unchanged.
    """
    failures: list[Exception] = []
    stream = _stream(data, failures)
    try:
        yield stream
    except (ColdframeError, pa.ArrowException) as error:
        if failures:
            raise failures[0] from error
        raise


def _write_partitioned(
    stream: Any,
    store: _coldframe.Store,
    format: str,
    partitioning: Any,
    progress: Callable[[int], None] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    from coldframe.publishing import begin

    names = partitioning.names if isinstance(partitioning, pa.Schema) else partitioning
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise TypeError(
            f"partitioning: expected names of columns or a pyarrow.Schema, found {partitioning!r}"
        )
    publication = begin(store)
    try:
        files = _coldframe.write_partitioned(
            stream, publication.staged, list(names), format=format, options=options, progress=progress
        )
        if files:
            publication.publish()
    except BaseException:
        publication.abandon()
        raise
    return {
        "rows": sum(rows for _, rows, _ in files),
        "bytes": sum(size for _, _, size in files),
        "files": [path for path, _, _ in files],
    }


def with_progress(reader: Any, progress: Callable[[int], None] | None) -> Any:
    """The same batches; calls `progress`, if it is not None, with the number of rows so far."""
    if progress is None:
        return reader

    def batches() -> Iterator[Any]:
        rows = 0
        for batch in reader:
            yield batch
            rows += batch.num_rows
            progress(rows)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def read_schema(source: object, **arguments: Unpack[OpenKeywords]) -> pa.Schema:
    """`open(source, **arguments).schema`: the columns and their types as a pyarrow.Schema."""
    return open(source, **arguments).schema


def read_table(
    source: object,
    columns: Sequence[str] | None = None,
    *,
    filter: Filter | None = None,
    limit: int | None = None,
    on_error: OnError = "raise",
    **arguments: Any,
) -> pa.Table:
    """`open(source, **arguments).read(columns, ...)`: the rows as a pyarrow.Table."""
    return open(source, **arguments).read(columns, filter=filter, limit=limit, on_error=on_error)


def detect(
    source: object, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None
) -> str | None:
    """The format's name, detected from the bytes; None if it is not one of ours."""
    opened = Source(source, with_filesystem(storage_options, filesystem))
    return _coldframe.detect(opened.handle(), opened.core_options(), opened.known)


def _stream(data: Any, failures: list[Exception]) -> Any:
    """The data as an object with `__arrow_c_stream__`; exceptions of its source are added to `failures`."""
    _warn_of_extensions(data)
    if isinstance(data, (File, Dataset)):
        return _watched(data.to_batches(), failures)
    if isinstance(data, pa.RecordBatchReader):
        return _watched(data, failures)
    if hasattr(data, "__arrow_c_stream__"):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if hasattr(data, "scanner"):  # a pyarrow Dataset
        return _watched(data.scanner().to_reader(), failures)
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a polars LazyFrame
        return data.collect()
    raise unsupported(f"writing {type(data).__name__}: expected something with __arrow_c_stream__")


def _watched(reader: Any, failures: list[Exception]) -> Any:
    """The same batches; records exceptions, since the C stream would keep only their text."""

    def batches() -> Iterator[Any]:
        try:
            yield from reader
        except Exception as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _warn_of_extensions(data: Any) -> None:
    """Warns of columns with an extension type: a file keeps only the storage."""
    if not isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return
    for field in data.schema:
        if isinstance(field.type, pa.BaseExtensionType):
            warnings.warn(
                f"column {field.name!r} is written as {field.type.storage_type}, the storage of "
                f"{field.type.extension_name}: the file does not record the extension type",
                ExtensionTypeWarning,
                stacklevel=4,
            )
