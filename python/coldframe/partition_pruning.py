"""Selects the files or partitions whose partition values allow rows that pass a filter.

pyarrow evaluates the filter: each file is a fragment with a partition expression. No file is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

__all__ = ["PartitionPruner", "expression_of"]


class PartitionPruner:
    """Prunes files or partitions, which are numbered from 0."""

    def __init__(self, rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """`rows`: one row of known values for each file; `schema`: the columns that filters may name."""
        import pyarrow.dataset as pads
        import pyarrow.fs

        format, filesystem = pads.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
        fragments = [
            format.make_fragment(str(at), filesystem, partition_expression=expression_of(row))
            for at, row in enumerate(rows)
        ]
        self._dataset = pads.FileSystemDataset(fragments, schema, format, filesystem)

    def kept(self, filter: Any) -> list[int]:
        """The numbers of the files that a pyarrow expression does not rule out."""
        return [int(fragment.path) for fragment in self._dataset.get_fragments(filter)]


def expression_of(row: pa.RecordBatch) -> Any:
    """A pyarrow expression that is true if the columns have the values of this row."""
    import pyarrow.compute as pc

    whole = pc.scalar(True)
    for name, column in zip(row.schema.names, row.columns, strict=True):
        value = column[0]
        part = pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()
        whole = whole & part
    return whole
