"""Cells and pairs of an HFile by their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe import _coldframe

if TYPE_CHECKING:
    from coldframe._coldframe import RawCells, RawFile

__all__ = ["Key", "Lookups"]

Key = bytes | str
"""A row key: bytes, or text that stands for its UTF-8."""


class Lookups:
    """What a file that is sorted by keys answers without a scan. Other formats raise `UnsupportedError`.

    Only the index, the bloom filter and the blocks that are needed are read; blocks are kept in a cache of
    `block_cache_bytes` (an option of `open`) for the next question.
    """

    _raw: RawFile
    # What look-ups give, imported once: for one row that takes longer than finding it.
    _cells: Any = None

    def get(self, key: Key) -> Any:
        """The cells of one row (the pairs of one key) as a pyarrow.Table; empty where there are none."""
        return self._table(_coldframe.hfile_get(self._raw, key))

    def get_many(self, keys: Iterable[Key]) -> Any:
        """The cells of many rows as a pyarrow.Table, in the order of the file, each row once."""
        return self._table(_coldframe.hfile_get_many(self._raw, list(keys)))

    def _table(self, found: RawCells) -> Any:
        if self._cells is None:
            self._cells = pa.schema(found)
        schema = self._cells
        batches = [pa.RecordBatch._import_from_c(address, schema) for address in found.addresses()]
        return pa.Table.from_batches(batches, schema)

    def scan(
        self,
        start: Key | None = None,
        stop: Key | None = None,
        *,
        prefix: Key | None = None,
        reverse: bool = False,
        columns: Sequence[str] | None = None,
        time_range: tuple[int, int] | None = None,
        max_versions: int | None = None,
        batch_size: int = 65536,
    ) -> Any:
        """The cells of a range of rows as a pyarrow.RecordBatchReader.

        Args:
            start: the first row.
            stop: the first row behind the range.
            prefix: what rows begin with.
            reverse: the last row first; the cells of each row stay in the order of the file.
            columns: `"family"` or `"family:qualifier"`; None is all.
            time_range: timestamps from, and up to but not at.
            max_versions: at most so many versions of each column, the newest that no delete marker hides;
                None gives all cells as they are stored, delete markers among them.
            batch_size: rows in a batch, at most.
        """
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not the string {columns!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        rows = _coldframe.hfile_scan(
            self._raw,
            start=start,
            stop=stop,
            prefix=prefix,
            reverse=reverse,
            columns=columns,
            time_range=time_range,
            max_versions=max_versions,
            batch_size=batch_size,
        )

        def batches() -> Iterator[Any]:
            for batch in rows:
                yield pa.record_batch(batch)

        return pa.RecordBatchReader.from_batches(pa.schema(rows), batches())

    def might_contain(self, row: Key, qualifier: Key | None = None, *, delete_family: bool = False) -> bool:
        """False only if the bloom filter rules the row (the column in it) out; True without a filter.

        With `delete_family`, whether a marker that deletes a family may be in the row, by their filter.
        Of a bloom file of Kudu's, `row` is an encoded primary key.
        """
        return _coldframe.might_contain(self._raw, row, qualifier, delete_family)
