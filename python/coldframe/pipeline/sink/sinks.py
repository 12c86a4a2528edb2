"""The files that a task writes, and how they are read back for verification."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypedDict, cast

import pyarrow as pa
import pyarrow.parquet as pq

import coldframe
from coldframe import _coldframe
from coldframe._coldframe import RawFingerprint, RawObserved, RawShape, RawTarget, formats
from coldframe.literals import FormatName
from coldframe.pipeline.file_access import StorageOptions, reading
from coldframe.sources import is_remote, open_store
from coldframe.spark.types import plain_schema

ROW_GROUP_BYTES = 64 << 20
"""Arrow bytes in a row group, which a task holds in memory as pages of the file."""
ROW_GROUP_ROWS = 1 << 20
READ_ROWS = 16 << 10
"""The number of rows that are read back at once: few enough to stay in the processor's cache and to reuse
memory. Four times as many bytes take 10 % longer.
"""


class WrittenFile(TypedDict):
    """A written file, as `_coldframe.convert` returns it."""

    name: str
    rows: int
    bytes: int
    sha256: str
    print: RawFingerprint
    partition: int | None


class Converted(TypedDict):
    """The result of `_coldframe.convert`: the files, and the observed statistics of the source's columns."""

    files: list[WrittenFile]
    observed: RawObserved


Check: TypeAlias = Callable[[pa.RecordBatch], None]
"""Raises if rows are wrong."""


class Divide(Protocol):
    """Gives the partitions of rows: see `coldframe_migrate::Divide` in Rust."""

    columns: Sequence[int]

    def __call__(self, rows: Any) -> pa.Array: ...


class Sink(ABC):
    """A file format of the target. The core decodes and writes, without Python in between."""

    @property
    @abstractmethod
    def extension(self) -> str:
        """The end of the file's name."""

    @abstractmethod
    def _written_as(self) -> tuple[str, Mapping[str, Any]]:
        """The format's name and options for the core."""

    @abstractmethod
    def open(
        self, path: str, storage_options: StorageOptions = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns and rows of a file, in order."""

    def convert(
        self,
        rows: Any,
        shape: RawShape,
        path: str,
        storage_options: StorageOptions = None,
        max_bytes: int = 0,
        divide: Divide | None = None,
    ) -> Converted:
        """Writes the rows of a part of a source by `_coldframe.convert`. The files are on disk, or in their
        store, when it returns. The first file is at `path`.

        `max_bytes`: the number of bytes after which another file is begun. `divide`: each file has the rows
        of one partition.
        """
        format, options = self._written_as()
        folder, name = os.path.split(path)
        converted: Any = _coldframe.convert(
            rows,
            shape,
            open_store(folder, storage_options),
            name,
            format=format,
            options=options,
            most_bytes=max_bytes or None,
            **({} if divide is None else {"divide": (divide.columns, divide)}),
        )
        result: Converted = converted
        return result

    def begin(self, schema: pa.Schema, path: str, storage_options: StorageOptions = None) -> RawTarget:
        """Begins a file for the rows of several sources."""
        format, options = self._written_as()
        folder, name = os.path.split(path)
        return RawTarget(schema, open_store(folder, storage_options), name, format=format, options=options)

    def read(
        self,
        path: str,
        schema: pa.Schema | None = None,
        storage_options: StorageOptions = None,
        *,
        rows_only: bool = False,
        check: Check | None = None,
    ) -> RawFingerprint:
        """The fingerprint of the file's rows, in the types of `schema` or in the file's own.

        Verifies all checksums. `rows_only`: see RawFingerprint.
        """
        file_schema, batches = self.open(path, storage_options)
        fingerprint = RawFingerprint(file_schema if schema is None else schema, rows_only=rows_only)
        for batch in batches:
            if check is not None:
                check(batch)
            fingerprint.add(batch)
        return fingerprint


@dataclass(frozen=True)
class ParquetSink(Sink):
    """Parquet with a CRC on each page: without it, three of four kinds of damage give wrong values without an
    error. The `parquet` crate writes, Arrow's C++ library reads back.
    """

    compression: str = "zstd"
    row_group_bytes: int = ROW_GROUP_BYTES
    extension: str = "parquet"
    # No part of the representation, which is a part of the key of a conversion.
    field_ids: tuple[int, ...] = field(default=(), repr=False)
    """The ids of all fields, those of a field before those inside it."""

    def _written_as(self) -> tuple[str, Mapping[str, Any]]:
        options = {
            "codec": self.compression,
            "row_group_bytes": self.row_group_bytes,
            "row_group_rows": ROW_GROUP_ROWS,
            **({"field_ids": ",".join(map(str, self.field_ids))} if self.field_ids else {}),
        }
        return "parquet", options

    def open(
        self, path: str, storage_options: StorageOptions = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Reads with another implementation than the writer's; a wrong page CRC is an error."""
        remote = is_remote(path)
        file = pq.ParquetFile(
            reading(path, storage_options),
            page_checksum_verification=True,
            # Fetches a remote row group in one request or a few.
            pre_buffer=remote,
        )

        def batches() -> Iterator[pa.RecordBatch]:
            # One row group at a time: otherwise all row groups would be fetched first.
            for number in range(file.num_row_groups):
                yield from file.iter_batches(READ_ROWS, row_groups=[number], use_threads=False)

        return file.schema_arrow, batches()


@dataclass(frozen=True)
class ColdframeSink(Sink):
    """A format that coldframe itself writes."""

    format: str
    options: tuple[tuple[str, Any], ...] = ()
    unit: str = "us"
    """The unit of the written timestamps."""
    second: str = field(default="", repr=False)
    """A module of pyarrow that also reads the format: written files are read back by it."""

    @property
    def extension(self) -> str:
        """The end of the file's name."""
        return self.format

    def _written_as(self) -> tuple[str, Mapping[str, Any]]:
        return self.format, dict(self.options)

    def read(
        self,
        path: str,
        schema: pa.Schema | None = None,
        storage_options: StorageOptions = None,
        *,
        rows_only: bool = False,
        check: Check | None = None,
    ) -> RawFingerprint:
        """Reads with another implementation than the writer's, where there is one. Its timestamps have
        nanoseconds, which cannot hold all values: files with them are read by coldframe, and their other
        columns by both.
        """
        second = importlib.import_module(self.second) if self.second and _has(self.second) else None
        if second is None or schema is None:
            return super().read(path, schema, storage_options, rows_only=rows_only, check=check)
        file = second.ORCFile(reading(path, storage_options))
        names = [column.name for column in schema if "timestamp" not in str(column.type)]
        batches = (file.read_stripe(number, columns=names) for number in range(file.nstripes))
        if len(names) < len(schema):
            own = super().read(path, schema, storage_options, rows_only=rows_only, check=check)
            rows = sum(batch.num_rows for batch in batches) if names else file.nrows
            if rows != own.rows:
                raise coldframe.ColdframeError(f"{path}: {self.second} reads {rows} rows, not {own.rows}")
            return own
        fingerprint = RawFingerprint(schema, rows_only=rows_only)
        for batch in batches:
            columns = in_types_of(schema, batch)
            if check is not None:
                check(columns)
            fingerprint.add(columns)
        return fingerprint

    def open(
        self, path: str, storage_options: StorageOptions = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Reads with coldframe.open."""
        unit_option = formats()[self.format]["capabilities"]["unit_option"]
        options: Any = {unit_option: self.unit} if unit_option else {}
        opened = coldframe.open(
            path, format=cast(FormatName, self.format), storage_options=storage_options, **options
        )
        return plain_schema(opened.schema, timestamp_unit=self.unit), iter(opened.to_batches())


@functools.cache
def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def in_types_of(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a schema: another library may have other types for the same values."""
    columns = [batch.column(column.name).cast(column.type) for column in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
