"""Writes one file per Spark partition, under a temporary name until the driver commits.

    PATH/_coldframe-JOB/part-00000-....rc     while the tasks write
    PATH/part-00000-....rc                    after the commit: renamed or, in an object store, copied there

In a store with folders, the driver creates the folder before any task runs, and no task creates it again:
Spark does not wait for the other tasks of a job that it aborts, and their late writes must not create the
deleted folder again.

When all tasks are done, `overwrite` writes a record (`_coldframe-written.json`), deletes the old files,
publishes the new ones and deletes the record. While there is a record, coldframe refuses to read the folder;
the next write, by this source or by the connector for the JVM, first completes what was interrupted.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

import coldframe
from coldframe._coldframe import ColdframeError, NotFoundError, SchemaError, Store, formats
from coldframe.json_input import parse_json
from coldframe.literals import WrittenFormat
from coldframe.publishing import RECORD, STAGED
from coldframe.sources import open_store
from coldframe.spark.options import WriteOptions


@dataclass
class WrittenFile(WriterCommitMessage):
    """A task's message to the driver: the name of its file; None if it had no rows."""

    name: str | None
    rows: int


class ColdframeWriter(DataSourceArrowWriter):
    """Writes the batches of each Spark partition with `coldframe.write`."""

    def __init__(self, options: WriteOptions, schema: pa.Schema, overwrite: bool) -> None:
        self.options = options
        self.schema = schema
        self.overwrite = overwrite
        self.job = uuid.uuid4().hex[:16]
        # Creates the folder, if the store has folders.
        self.store.put(f"{self.staging}/_job", self.job.encode())

    @property
    def store(self) -> Store:
        """The store at the path, opened in this process."""
        return open_store(self.options.path, self.options.storage_options)

    @property
    def staging(self) -> str:
        """The folder of the tasks' files; readers ignore names that begin with `_`."""
        return f"{STAGED}{self.job}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in the task: writes its rows to its own file."""
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        attempt = uuid.uuid4().hex[:8]
        counted = _Counted(iterator, self.schema)
        if not counted.any() and number != 0:
            return WrittenFile(None, 0)
        known = formats().get(self.options.format, {})
        extension = next(iter(known.get("capabilities", {}).get("endings", ())), self.options.format)
        name = f"part-{number:05d}-{self.job}-{attempt}.{extension}"
        stream = pa.RecordBatchReader.from_batches(self.schema, counted)
        coldframe.write(
            stream,
            self.store.url_of(f"{self.staging}/{name}"),
            format=cast(WrittenFormat, self.options.format),
            storage_options=self.options.storage_options,
            **self.options.options,
        )
        return WrittenFile(name, counted.rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs once, when all tasks are done: gives the files their final names."""
        store = self.store
        _complete_last(store)
        names = [message.name for message in messages if isinstance(message, WrittenFile) and message.name]
        if self.overwrite:
            replaced = _data_files(store)
            record = {"staged": self.staging, "replaced": replaced, "end": True}
            # In the form of the connector (Replacement.java), which looks for it as text.
            store.put(RECORD, json.dumps(record, separators=(",", ":")).encode(), mode="over")
            _replace(store, self.staging, replaced)
            return
        for name in names:
            store.publish(f"{self.staging}/{name}", name)
        _forget(store, self.staging)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs once, when a task has failed in all its attempts.

        Other tasks may still be writing, so the folder is renamed before it is deleted.
        """
        store, dead = self.store, f"{self.staging}-aborted"
        with contextlib.suppress(ColdframeError, OSError):
            store.publish(self.staging, dead, mode="over")
        _forget(store, self.staging)
        _forget(store, dead)


def _complete_last(store: Store) -> None:
    """Completes an overwrite of the folder that was interrupted, if there is one."""
    try:
        record = parse_json(store.read(RECORD))
    except (NotFoundError, ValueError):
        return  # none, or the record was not written whole, so that nothing has been replaced yet
    if not (isinstance(record, dict) and isinstance(record.get("replaced"), list) and record.get("end")):
        return
    staged = str(record.get("staged"))
    if not staged.startswith(STAGED) or "/" in staged:
        raise SchemaError(f"{store.url_of(RECORD)}: not the record of a write")
    _replace(store, staged, [str(path) for path in record["replaced"]])


def _replace(store: Store, staged: str, replaced: list[str]) -> None:
    """Replaces files by the staged ones, then deletes the record. May be repeated from the start."""
    for path in replaced:
        with contextlib.suppress(NotFoundError):
            store.delete(path)
    with contextlib.suppress(NotFoundError):
        for path in _data_files(store.below(staged)):
            store.publish(f"{staged}/{path}", path, mode="over")
    _forget(store, staged)
    with contextlib.suppress(NotFoundError):
        store.delete(RECORD)


def _forget(store: Store, folder: str) -> None:
    """Deletes a staging folder, and ignores errors: readers skip its remains."""
    with contextlib.suppress(ColdframeError, OSError):
        store.delete(folder, recursive=True)


class _Counted:
    """Batches of one schema, with a count of their rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self.rows = 0
        self._batches = batches
        self._schema = schema
        self._first: pa.RecordBatch | None = None

    def any(self) -> bool:
        """Whether there are rows; looks at the first batches without losing them."""
        for batch in self._batches:
            if batch.num_rows:
                self._first = batch
                return True
        return False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._first is not None:
            yield self._checked(self._first)
        for batch in self._batches:
            yield self._checked(batch)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.rows += batch.num_rows
        # Spark labels timestamps with the session's time zone; the values are the same.
        columns = [
            column.view(field.type) if pa.types.is_timestamp(field.type) else column
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _data_files(store: Store) -> list[str]:
    """The data files at a path and in its partitions, without names that begin with `_` or `.`."""
    paths = [entry.path for page in store.list(recursive=True) for entry in page]
    return [path for path in paths if not any(part[0] in "_." for part in path.split("/"))]
