"""The partitions of a task's rows, for tables that are partitioned by values in their files.

The core asks for a partition number for each row, and writes the rows of each number into separate files.
When such a file is read back, all of its rows must be in its partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.records import PartitionValues, stored_value
from coldframe.pipeline.sink.iceberg_layout import Term
from coldframe.pipeline.sink.iceberg_terms import transformed

_VALUE, _ROW = "v", "row"


class Division:
    """Numbers the partitions of rows in the order of their first row."""

    def __init__(self, terms: Sequence[Term], schema: pa.Schema) -> None:
        self._terms = terms
        names = dict.fromkeys(term.column for term in terms)
        self.columns: Sequence[int] = [schema.get_field_index(name) for name in names]
        """The columns that determine the partition, by their number in the table."""
        self._names = list(names)
        self._numbers: dict[tuple[Any, ...], int] = {}

    def __call__(self, rows: Any) -> pa.Array:
        """The partition of each row, given `columns`."""
        return self._partitions(pa.record_batch(rows).select(self._names))

    def values(self, partition: int) -> PartitionValues:
        """The values of a partition, by terms."""
        values = list(self._numbers)[partition]
        return {str(term): stored_value(value) for term, value in zip(self._terms, values, strict=True)}

    def check(self, rows: pa.RecordBatch, partition: int | None) -> None:
        """Raises if a row of a written file is not in the file's partition."""
        partitions = self._partitions(rows).unique().to_pylist()
        if partitions not in ([], [partition]):
            raise ColdframeError(
                f"rows of the partitions {partitions} are in the file of partition {partition}"
            )

    def _partitions(self, rows: pa.RecordBatch) -> pa.Array:
        columns = [transformed(term, rows.column(term.column)) for term in self._terms]
        if rows.num_rows == 0:
            return pa.array([], pa.uint32())
        codes = _codes(columns)
        groups = pa.table({_VALUE: codes, _ROW: pa.array(range(rows.num_rows))}).group_by(_VALUE)
        firsts = groups.aggregate([(_ROW, "min")]).sort_by(_VALUE)[f"{_ROW}_min"].combine_chunks()
        tuples = zip(*(column.take(firsts).to_pylist() for column in columns), strict=True)
        numbers = [self._numbers.setdefault(values, len(self._numbers)) for values in tuples]
        return pa.array(numbers, pa.uint32()).take(codes)


def _codes(columns: Sequence[pa.Array]) -> pa.Array:
    """Numbers from 0 on, equal for rows with equal values."""
    codes = _encoded(columns[0])
    for column in columns[1:]:
        high, low = (part.cast(pa.int64()) for part in (codes, _encoded(column)))
        codes = _encoded(pc.bit_wise_or(pc.shift_left(high, pa.scalar(32, pa.int64())), low))
    return codes


def _encoded(column: pa.Array) -> pa.Array:
    return column.dictionary_encode(null_encoding="encode").indices
