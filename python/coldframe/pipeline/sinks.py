"""The files that a task writes, and how they are read back for verification."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

import coldframe
from coldframe._coldframe import RawFingerprint, formats
from coldframe.pipeline.places import StorageOptions, reading, sync, writing
from coldframe.sources import is_remote, text_options
from coldframe.spark.types import plain_schema
from coldframe.writing import write_file

ROW_GROUP_BYTES = 64 << 20
"""Arrow bytes in a row group: what a task holds in memory."""
ROW_GROUP_ROWS = 1 << 20
DICTIONARY_BYTES = 256 << 10
"""Of a column of a row group: one with more different values is written without. A quarter of Arrow's default
saves a third of the time that writing takes, and a tenth of the file.
"""


class Sink(Protocol):
    """A file format as target."""

    @property
    def extension(self) -> str:
        """The end of the file's name."""

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        path: str,
        storage_options: StorageOptions = None,
        most_bytes: int = 0,
    ) -> None:
        """Writes a whole file, and has it on disk, or in its store, when it returns.

        `most_bytes`: it may end with so many, and leave the rest of the batches to the next one.
        """

    def read(
        self, path: str, schema: pa.Schema | None = None, storage_options: StorageOptions = None
    ) -> RawFingerprint:
        """The fingerprint of what the file gives back, in the types of `schema` or in the file's own.

        Every checksum is checked.
        """

    def open(
        self, path: str, storage_options: StorageOptions = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns and the rows of a file, in their order."""


@dataclass(frozen=True)
class ParquetSink:
    """Parquet with a CRC on each page: without one, three of four damages to a file give wrong values without
    an error.
    """

    compression: str = "zstd"
    row_group_bytes: int = ROW_GROUP_BYTES
    extension: str = "parquet"

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        path: str,
        storage_options: StorageOptions = None,
        most_bytes: int = 0,
    ) -> None:
        """Batches are gathered into row groups of a size that readers like; a file ends after one."""
        with (
            writing(path, storage_options) as out,
            pq.ParquetWriter(
                out,
                schema,
                compression=self.compression,
                write_page_checksum=True,
                version="2.6",
                dictionary_pagesize_limit=DICTIONARY_BYTES,
            ) as writer,
        ):
            for group in _gather(batches, self.row_group_bytes):
                writer.write_table(pa.Table.from_batches(group, schema), row_group_size=ROW_GROUP_ROWS)
                if most_bytes and _written(out) >= most_bytes:
                    break

    def read(
        self, path: str, schema: pa.Schema | None = None, storage_options: StorageOptions = None
    ) -> RawFingerprint:
        """By another implementation than the one that wrote it; a wrong page CRC is an error."""
        if schema is None:
            schema = pq.read_schema(reading(path, storage_options))
        found = RawFingerprint(schema)
        found.add_parquet(path, text_options(storage_options))
        return found

    def open(
        self, path: str, storage_options: StorageOptions = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """By Arrow's own implementation."""
        file = pq.ParquetFile(reading(path, storage_options), page_checksum_verification=True)
        return file.schema_arrow, file.iter_batches()


@dataclass(frozen=True)
class ColdframeSink:
    """A format that coldframe itself writes."""

    format: str
    options: tuple[tuple[str, Any], ...] = ()
    unit: str = "us"
    """Of the timestamps that it is given."""

    @property
    def extension(self) -> str:
        """The end of the file's name."""
        return self.format

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        path: str,
        storage_options: StorageOptions = None,
        most_bytes: int = 0,
    ) -> None:
        """As coldframe.write does; a file ends after a stripe."""
        stream = pa.RecordBatchReader.from_batches(schema, iter(batches))
        if not is_remote(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(
            stream,
            path,
            format=self.format,
            storage_options=storage_options,
            options=dict(self.options),
            most_bytes=most_bytes or None,
        )
        if not is_remote(path):
            sync(path)

    def read(
        self, path: str, schema: pa.Schema | None = None, storage_options: StorageOptions = None
    ) -> RawFingerprint:
        """Reads with coldframe.open."""
        found_schema, batches = self.open(path, storage_options)
        found = RawFingerprint(found_schema if schema is None else schema)
        for batch in batches:
            found.add(batch)
        return found

    def open(
        self, path: str, storage_options: StorageOptions = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """With coldframe.open."""
        known = formats().get(self.format, {}).get("open", {})
        options: dict[str, Any] = {"timestamp_unit": self.unit} if "timestamp_unit" in known else {}
        opened = coldframe.open(path, format=self.format, storage_options=storage_options, **options)
        return plain_schema(opened.schema, timestamp_unit=self.unit), iter(opened.to_batches())


def _written(out: Any) -> int:
    """The bytes that a file has by now."""
    return os.path.getsize(out) if isinstance(out, str) else int(out.tell())


def _gather(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
        if size >= most_bytes or rows >= ROW_GROUP_ROWS:
            yield group
            group, size, rows = [], 0, 0
    if group:
        yield group
