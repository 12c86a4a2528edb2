"""What PyIceberg reads from the data files of a table: the proof of an adoption, and of a deep audit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from coldframe._coldframe import RawFingerprint
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.sinks import in_types_of
from coldframe.sources import is_remote
from coldframe.spark.types import plain_schema


def shown_by(schema: Any) -> pa.Schema:
    """The columns of an Iceberg schema as readers give them, in the fewest types of Arrow."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return plain_schema(schema_to_pyarrow(schema, include_field_ids=False))


def rows_of(metadata: Any, io: Any, file: Any, schema: Any) -> RawFingerprint:
    """The fingerprint of the rows that PyIceberg reads from a data file, in the columns of a schema."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import FileScanTask

    shown = shown_by(schema)
    seen = RawFingerprint(shown, rows_only=True)
    scan = ArrowScan(metadata, io, schema, AlwaysTrue())
    # `to_record_batches` holds all rows of a file at once, and makes a pool of threads for each.
    for batch in scan._record_batches_from_scan_tasks_and_deletes([FileScanTask(file)], {}):
        seen.add(in_types_of(shown, batch))
    return seen


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
