"""Which files or partitions can have rows that pass a filter, by the values of their partition columns.

pyarrow evaluates the filter: each file is a fragment with a partition expression, and none is ever opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

__all__ = ["Prunable", "expression_of"]


class Prunable:
    """Files or partitions, numbered from 0."""

    def __init__(self, rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """`rows`: one row of known values for each; `schema`: all columns that a filter may name."""
        import pyarrow.dataset as pads
        import pyarrow.fs

        format, filesystem = pads.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
        fragments = [
            format.make_fragment(str(at), filesystem, partition_expression=expression_of(row))
            for at, row in enumerate(rows)
        ]
        self._dataset = pads.FileSystemDataset(fragments, schema, format, filesystem)

    def kept(self, filter: Any) -> list[int]:
        """The numbers of those that a pyarrow expression does not rule out."""
        return [int(fragment.path) for fragment in self._dataset.get_fragments(filter)]


def expression_of(row: pa.RecordBatch) -> Any:
    """A pyarrow expression that holds where columns have the values of this one row."""
    import pyarrow.compute as pc

    whole = pc.scalar(True)
    for name, column in zip(row.schema.names, row.columns, strict=True):
        value = column[0]
        part = pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()
        whole = whole & part
    return whole
