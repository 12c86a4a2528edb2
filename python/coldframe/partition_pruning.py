"""Selects the files or partitions whose partition values allow rows that pass a filter.

The core evaluates the filter on these values. If the core does not support the filter, pyarrow evaluates it:
each file is a fragment with a partition expression. No file is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from coldframe._coldframe import Predicate
from coldframe.filters import Bound

__all__ = ["PartitionPruner", "expression_of"]


class PartitionPruner:
    """Prunes files or partitions, which are numbered from 0."""

    def __init__(self, rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """`rows`: one row of known values for each file; `schema`: the columns that filters may name."""
        self._rows, self._schema = list(rows), schema
        self._dataset: Any = None

    def kept(self, bound: Bound) -> list[int]:
        """The numbers of the files that a filter, bound to the schema, does not rule out."""
        if bound.predicate is not None:
            return [at for at, row in enumerate(self._rows) if not self._excluded(bound.predicate, row)]
        if self._dataset is None:
            self._dataset = self._of_fragments()
        return [int(fragment.path) for fragment in self._dataset.get_fragments(bound.residual)]

    def _excluded(self, predicate: Predicate, row: pa.RecordBatch) -> bool:
        return predicate.excludes(self._schema, dict(zip(row.schema.names, row.columns, strict=True)))

    def _of_fragments(self) -> Any:
        import pyarrow.dataset as pads
        import pyarrow.fs

        format, filesystem = pads.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
        fragments = [
            format.make_fragment(str(at), filesystem, partition_expression=expression_of(row))
            for at, row in enumerate(self._rows)
        ]
        return pads.FileSystemDataset(fragments, self._schema, format, filesystem)


def expression_of(row: pa.RecordBatch) -> Any:
    """A pyarrow expression that is true if the columns have the values of this row."""
    import pyarrow.compute as pc

    whole = pc.scalar(True)
    for name, column in zip(row.schema.names, row.columns, strict=True):
        value = column[0]
        part = pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()
        whole = whole & part
    return whole
