"""The files in the current metadata of an Iceberg table, including delete files of other writers.

    snapshot -> manifests -> data files                 how many rows each has
                          -> positional delete files    which rows of which file are gone
                          -> equality delete files      rows of any older file may be gone: not counted
                          -> deletion vectors           the same: pyiceberg does not return their data file

pyiceberg's own scan cannot be used: it refuses tables with equality deletes.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.live import LiveFile

_THREADS = 32
"""The number of manifests and delete files that are read at once."""
_EQUALITY = "rows of it may be deleted by an equality delete file"
_OTHER_DELETES = "rows of it may be deleted by a deletion vector, or by a delete file that is not Parquet"


@dataclass
class _Deletes:
    """Delete files of a snapshot."""

    positional: list[Any] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)
    """Delete files whose rows cannot be counted: their sequence number, and why."""

    def add(self, entry: Any) -> None:
        """Adds a delete file."""
        from pyiceberg.manifest import DataFileContent, FileFormat

        file = entry.data_file
        number = entry.sequence_number or 0
        if file.content == DataFileContent.EQUALITY_DELETES:
            # An equality delete does not apply to data files of the same transaction.
            self.unknown.append((number - 1, _EQUALITY))
        elif file.file_format == FileFormat.PARQUET:
            self.positional.append(file)
        else:
            self.unknown.append((number, _OTHER_DELETES))


def live_entries(table: Any, prefix: str) -> Iterator[tuple[Any, LiveFile]]:
    """The files of the current snapshot, in the library's form and in ours. `prefix` is the beginning of the
    target's file names.
    """
    snapshot = table.current_snapshot()
    if snapshot is None:
        return
    data, deletes = _entries(table, snapshot)
    hidden = _hidden(table, deletes)
    names = {number: _partition_columns(table, spec) for number, spec in table.specs().items()}
    for entry in data:
        file = entry.data_file
        number = entry.sequence_number or 0
        why = next((why for newest, why in deletes.unknown if number <= newest), "")
        gone = hidden.get(file.file_path, 0)
        columns = names[file.spec_id]
        values = {name: make(file.partition[at]) for at, (name, make) in enumerate(columns) if make}
        rows = None if why else file.record_count - gone
        path = file.file_path.removeprefix(prefix)
        yield file, LiveFile(path, rows, gone, file.file_size_in_bytes, why, values)


def _entries(table: Any, snapshot: Any) -> tuple[list[Any], _Deletes]:
    from pyiceberg.manifest import DataFileContent

    def read(manifest: Any) -> list[Any]:
        return list(manifest.fetch_manifest_entry(table.io, discard_deleted=True))

    data: list[Any] = []
    deletes = _Deletes()
    calls = (functools.partial(read, manifest) for manifest in snapshot.manifests(table.io))
    for entries in in_threads(calls, _THREADS):
        for entry in entries:
            if entry.data_file.content == DataFileContent.DATA:
                data.append(entry)
            else:
                deletes.add(entry)
    return data, deletes


def _hidden(table: Any, deletes: _Deletes) -> dict[str, int]:
    """Numbers of deleted rows by data file; a row that is deleted twice is counted once."""

    def read(file: Any) -> pa.Table:
        with table.io.new_input(file.file_path).open() as opened:
            rows = pq.read_table(opened, columns=["file_path", "pos"])
        return rows.cast(pa.schema([("file_path", pa.string()), ("pos", pa.int64())]))

    some: dict[str, list[pa.Array]] = defaultdict(list)
    calls = (functools.partial(read, file) for file in deletes.positional)
    for rows in in_threads(calls, _THREADS):
        for path in pc.unique(rows["file_path"]).to_pylist():
            some[path].append(rows.filter(pc.equal(rows["file_path"], path))["pos"].combine_chunks())
    return {path: len(pc.unique(pa.concat_arrays(positions))) for path, positions in some.items()}


def _partition_columns(table: Any, spec: Any) -> list[tuple[str, Callable[[Any], Any] | None]]:
    """For each partition field: its column, and the conversion of a manifest's value; None if the field is
    not the column itself.
    """
    from pyiceberg.transforms import IdentityTransform

    schema = table.schema()
    columns: list[tuple[str, Callable[[Any], Any] | None]] = []
    for part in spec.fields:
        column = schema.find_column_name(part.source_id)
        identity = isinstance(part.transform, IdentityTransform) and column is not None
        kind = schema.find_type(part.source_id) if identity else None
        columns.append((column or part.name, functools.partial(_value, kind) if identity else None))
    return columns


def _value(kind: Any, stored: Any) -> Any:
    """A value in pyarrow's form: manifests store dates and times as numbers."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    if stored is None or not isinstance(stored, int) or isinstance(stored, bool):
        return stored
    arrow = schema_to_pyarrow(kind)
    whole = pa.int32() if pa.types.is_date(arrow) else pa.int64()
    return pa.scalar(stored, whole).cast(arrow).as_py()
