"""Parquet files as one table, for comparing a migration's result with its source.

Parquet files are found and combined like files of coldframe's formats, in any store, and read by pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coldframe._coldframe import RawDataset
from coldframe.arguments import OpenArguments
from coldframe.arrow import pa
from coldframe.cli.source_files import first_file
from coldframe.errors import ColdframeError, NotFoundError
from coldframe.filters import bind, keep, needed
from coldframe.sources import is_remote, open_store
from coldframe.store_file import RangedFile
from coldframe.widening import unified
from coldframe.writing import detect

_MAGIC = b"PAR1"


def is_parquet(source: str, storage_options: Mapping[str, Any] | None) -> bool:
    """Whether a file (or the first file of a directory or pattern) begins with the magic of Parquet."""
    try:
        first = first_file(source, storage_options)
        if detect(first, storage_options=storage_options) is not None:
            return False
        return open_store(first, storage_options).read("", 0, len(_MAGIC)) == _MAGIC
    except (NotFoundError, IsADirectoryError):
        return False  # opening it as one of coldframe's formats reports the error


def parquet_rows(source: str, storage_options: Mapping[str, Any] | None) -> ParquetRows:
    """Parquet files as one table, `key=value` directories as columns."""
    return ParquetRows(source, storage_options)


class ParquetRows:
    """The interface of a table for `diff`."""

    def __init__(self, source: str, storage_options: Mapping[str, Any] | None) -> None:
        self._storage_options = storage_options
        arguments = OpenArguments(storage_options=storage_options)
        dataset = RawDataset(arguments.raw, [source])
        self._paths = [path for path, _, _ in dataset.found()]
        schemas = []
        for path in self._paths:
            with self._opened(path) as file:
                schemas.append((path, file.schema_arrow))
        partitions = pa.Schema._import_from_c_capsule(dataset.partitions())
        own = [field for field in unified(schemas) if field.name not in partitions.names]
        self.schema = pa.schema([*own, *partitions])
        self._raw = RawDataset(arguments.raw, dataset.found(), schema=self.schema)

    def to_batches(
        self, columns: Sequence[str], *, filter: Any = None, batch_size: int = 65536
    ) -> Iterator[Any]:
        """The rows that pass a parsed filter, with these columns."""
        test = None if filter is None else bind(filter, self.schema).test
        tested = list(columns) if test is None else needed(columns, test, self.schema)
        for number, path in enumerate(self._paths):
            with self._opened(path) as file:
                for batch in file.iter_batches(batch_size=batch_size):
                    adapted = pa.record_batch(self._raw.adapt(number, batch, tested))
                    yield (adapted if test is None else keep(adapted, test)).select(list(columns))

    def _opened(self, path: str) -> Any:
        import pyarrow.parquet as pq

        source: Any = path
        if is_remote(path):
            source = RangedFile(open_store(path, self._storage_options))
        try:
            return pq.ParquetFile(source, pre_buffer=False)
        except pa.ArrowInvalid as reason:
            raise ColdframeError(f"{path}: {reason}") from reason
