"""Parquet files as one table, so that what was migrated can be compared with what it was made of.

They are found, put together and filtered as files of our own formats are, wherever they lie: a `Dataset`
asks little of its files, and pyarrow's reader can give that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe.discovery import discover
from coldframe.errors import ColdframeError, NotFoundError
from coldframe.filters import bind, keep, mentioned
from coldframe.ranged import RangedFile
from coldframe.scanning import Dataset
from coldframe.sources import Source, is_remote, open_store

__all__ = ["is_parquet", "parquet_rows"]

_MAGIC = b"PAR1"


def is_parquet(source: str, storage_options: Mapping[str, Any] | None) -> bool:
    """Whether a file, or the first one of a directory or a pattern, begins as Parquet does."""
    try:
        first = discover(source, storage_options, partitioned=False, whole_directories=False)[0].source
        if not isinstance(first, str):
            return False
        return open_store(first, storage_options).read("", 0, len(_MAGIC)) == _MAGIC
    except (NotFoundError, IsADirectoryError):
        return False  # said when it is opened as one of our formats


def parquet_rows(source: str, storage_options: Mapping[str, Any] | None) -> Dataset:
    """Parquet files as one table, `key=value` directories as columns."""
    found = discover(source, storage_options, partitioned=True, whole_directories=False)
    arguments: Any = _Opener(storage_options)
    return Dataset(found, arguments)


@dataclass(frozen=True)
class _Opener:
    """What `coldframe.file.OpenArguments` is for our own formats."""

    storage_options: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self, source: Source) -> _ParquetFile:
        assert source.path is not None
        return _ParquetFile(source.path, self.storage_options)


class _ParquetFile:
    """What a `Dataset` asks of a file."""

    format = "parquet"

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None) -> None:
        self.path = path
        self._storage_options = storage_options
        with self._opened() as file:
            self.schema = file.schema_arrow
            self.num_rows = file.metadata.num_rows

    def _opened(self) -> Any:
        source: Any = self.path
        if is_remote(self.path):
            source = RangedFile(open_store(self.path, self._storage_options))
        try:
            return pq.ParquetFile(source, pre_buffer=False)
        except pa.ArrowInvalid as reason:
            raise ColdframeError(f"{self.path}: {reason}") from reason

    def _threads(self) -> int:
        return int(pa.cpu_count())

    def to_batches(
        self,
        columns: Sequence[str],
        *,
        filter: Any = None,
        batch_size: int,
        limit: int | None = None,
        **_: Any,
    ) -> Iterator[Any]:
        """The rows that pass a parsed filter, with these columns."""
        test = None if filter is None else bind(filter, self.schema).test
        more = [] if test is None else [n for n in mentioned(test, self.schema) if n not in columns]
        left = limit
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=batch_size, columns=[*columns, *more]):
                kept = batch if test is None else keep(batch, test)
                if left is not None:
                    kept = kept.slice(0, left)
                    left -= kept.num_rows
                yield kept.select(list(columns))
                if left == 0:
                    return
