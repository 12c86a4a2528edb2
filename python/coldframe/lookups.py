"""Look-ups of cells and pairs of an HFile by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coldframe import _coldframe
from coldframe.arrow import pa
from coldframe.batches import names_of

if TYPE_CHECKING:
    from coldframe._coldframe import RawCells, RawFile

Key = bytes | str
"""A row key: bytes, or text, which is encoded as UTF-8."""


class Lookups:
    """Queries of a file that is sorted by key, without a scan. Other formats raise `UnsupportedError`.

    Only the index, the bloom filter and the necessary blocks are read; blocks are kept in a cache of
    `block_cache_bytes` (an option of `open`) for later queries.
    """

    _raw: RawFile
    # The schema is imported once: for a single row, importing it takes longer than the look-up.
    _cells: Any = None

    def get(self, key: Key) -> pa.Table:
        """The cells of one row (the pairs of one key) as a pyarrow.Table; empty if there are none."""
        return self._table(_coldframe.hfile_get(self._raw, key))

    def get_many(self, keys: Iterable[Key]) -> pa.Table:
        """The cells of many rows as a pyarrow.Table, in file order, each row once."""
        return self._table(_coldframe.hfile_get_many(self._raw, list(keys)))

    def _table(self, cells: RawCells) -> Any:
        if self._cells is None:
            self._cells = pa.schema(cells)
        schema = self._cells
        batches = [pa.RecordBatch._import_from_c(address, schema) for address in cells.addresses()]
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
    ) -> pa.RecordBatchReader:
        """The cells of a range of rows as a pyarrow.RecordBatchReader.

        Args:
            start: the first row.
            stop: the end of the range, excluded.
            prefix: a prefix of the rows.
            reverse: the last row first; the cells of each row stay in file order.
            columns: `"family"` or `"family:qualifier"`; None is all.
            time_range: a range of timestamps, with its end excluded.
            max_versions: at most this many of the newest versions of each column that no delete marker hides;
                None returns all stored cells, including delete markers.
            batch_size: the maximum number of rows in a batch.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        rows = _coldframe.hfile_scan(
            self._raw,
            start=start,
            stop=stop,
            prefix=prefix,
            reverse=reverse,
            columns=names_of(columns),
            time_range=time_range,
            max_versions=max_versions,
            batch_size=batch_size,
        )

        def batches() -> Iterator[Any]:
            for batch in rows:
                yield pa.record_batch(batch)

        return pa.RecordBatchReader.from_batches(pa.schema(rows), batches())

    def might_contain(self, row: Key, qualifier: Key | None = None, *, delete_family: bool = False) -> bool:
        """False only if the bloom filter rules out the row (or the column in the row); True if there is no
        bloom filter.

        With `delete_family`, asks the separate bloom filter for rows that have a delete-family marker.
        For a Kudu bloom file, `row` is an encoded primary key.
        """
        return _coldframe.might_contain(self._raw, row, qualifier, delete_family)
