"""Equality deletes: rows that are deleted by their values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from coldframe.arrow import pa


class DeletedValues:
    """Combinations of values: rows with one of them are deleted. Null is equal to null, NaN to NaN.

    Each value is replaced by a number: its index among its column's deleted values. The numbers in two
    columns are then replaced by one number for the pair, and so on for further columns. In the end each row
    has one number, or null if it is not deleted.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        self._steps: list[tuple[pa.Array, pa.Array]] = []
        numbers: pa.ChunkedArray | None = None
        for column in columns:
            values = column.unique()
            value_numbers = _number(column, values)
            pairs = value_numbers if numbers is None else _paired(numbers, value_numbers, len(values))
            known = pairs.unique()
            numbers = _number(pairs, known)
            self._steps.append((values, known))

    def kept(self, batch: pa.RecordBatch, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """The rows of a batch that are not deleted; `columns`: the compared columns of the batch."""
        numbers: pa.Array | None = None
        for column, (values, known) in zip(columns, self._steps, strict=True):
            value_numbers = _number(column, values)
            pairs = value_numbers if numbers is None else _paired(numbers, value_numbers, len(values))
            numbers = pc.index_in(pairs, value_set=known).cast(pa.int64())
        return batch if numbers is None else batch.filter(pc.is_null(numbers))


def _number(column: pa.Array, values: pa.Array) -> pa.Array:
    return pc.index_in(column, value_set=values).cast(pa.int64())


def _paired(first: pa.Array, second: pa.Array, size: int) -> pa.Array:
    """One number for each pair of numbers; all numbers are below 2^31, and the numbers in `second` are below
    `size`.
    """
    return pc.add(pc.multiply(first, size), second)
