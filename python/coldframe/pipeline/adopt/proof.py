"""What PyIceberg reads from the data files of a table: the proof of an adoption, and of a deep audit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import RawFingerprint
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.parquet_footer import parts_of
from coldframe.pipeline.sink.sinks import in_types_of
from coldframe.sources import is_remote
from coldframe.spark.types import plain_schema


def shown_by(schema: Any) -> pa.Schema:
    """The columns of an Iceberg schema as readers give them, in the fewest types of Arrow."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return plain_schema(schema_to_pyarrow(schema, include_field_ids=False))


class TableReader:
    """PyIceberg as the reader of a table's data files. Threads may share it."""

    def __init__(self, metadata: Any, io: Any, schema: Any) -> None:
        """`schema`: the columns to read."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        self._shown = shown_by(schema)
        # It reads PyIceberg's configuration, which takes longer than a small file.
        self._scan = ArrowScan(metadata, io, schema, AlwaysTrue())

    def rows_of(self, file: Any) -> RawFingerprint:
        """The fingerprint of the rows that PyIceberg reads from a data file."""
        from pyiceberg.table import FileScanTask

        seen = RawFingerprint(self._shown, rows_only=True)
        # `to_record_batches` holds all rows of a file at once, and makes a pool of threads for each.
        for batch in self._scan._record_batches_from_scan_tasks_and_deletes([FileScanTask(file)], {}):
            seen.add(as_shown(in_types_of(self._shown, batch)))
        return seen


def as_shown(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as PyIceberg shows them: in every file, null lists and maps of structs are empty ones."""
    for at, values in enumerate(batch.columns):
        if (plain := _without_null_lists(values)) is not values:
            batch = batch.set_column(at, batch.schema.field(at), plain)
    return batch


def _without_null_lists(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [values.field(at) for at in range(kind.num_fields)]
        plain = [_without_null_lists(part) for part in parts]
        if all(new is old for new, old in zip(plain, parts, strict=True)):
            return values
        return pa.StructArray.from_arrays(plain, fields=parts_of(kind), mask=values.is_null())
    if not pa.types.is_nested(kind) or not pa.types.is_struct(parts_of(kind)[-1].type):
        return values
    if values.null_count:
        values = pc.coalesce(values, pa.scalar([], kind))
    inner = values.items if pa.types.is_map(kind) else values.values
    if (plain := _without_null_lists(inner)) is inner:
        return values
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(values.offsets, values.keys, plain, type=kind)
    return type(values).from_arrays(values.offsets, plain, type=kind)


def checksum_of(rows: RawFingerprint) -> str:
    """A checksum of rows that does not depend on their order."""
    return str(rows.to_json()["row_checksum"])


def access(io: Any, destination: Destination, paths: Iterable[str], storage_options: StorageOptions) -> Any:
    """PyIceberg's access to the files of a source and of the target. `io`: the table's own."""
    if not is_remote(destination.root) and not any(is_remote(path) for path in paths):
        return io
    from coldframe.pipeline.sink.iceberg_store import StoreIO, io_properties

    both = StoreIO(io_properties(destination))
    both.elsewhere = storage_options or {}
    return both


@contextlib.contextmanager
def without_word_of_nanoseconds() -> Iterator[None]:
    """PyIceberg warns of each file of ORC that its nanoseconds become microseconds: the fingerprints of the
    rows show whether that changes a value.
    """
    log = logging.getLogger("pyiceberg.io.pyarrow")

    def is_other(record: logging.LogRecord) -> bool:
        return "'ns' timestamp precision" not in str(record.msg)

    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)
