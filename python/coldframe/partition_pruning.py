"""Selects partitions by a filter that only pyarrow evaluates: an expression that the core does not take.

Each partition becomes a fragment with a partition expression, and pyarrow leaves out those that the filter
rules out. No file is opened.
"""

from __future__ import annotations

from typing import Any

from coldframe.arrow import pa


def matching(residual: Any, values: pa.RecordBatch, schema: pa.Schema) -> list[int]:
    """The numbers of the rows of known values that a filter does not rule out.

    `schema`: the columns that the filter may name.
    """
    import pyarrow.dataset as pads
    import pyarrow.fs

    format, filesystem = pads.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
    fragments = [
        format.make_fragment(str(at), filesystem, partition_expression=expression_of(values.slice(at, 1)))
        for at in range(values.num_rows)
    ]
    dataset = pads.FileSystemDataset(fragments, schema, format, filesystem)
    return [int(fragment.path) for fragment in dataset.get_fragments(residual)]


def expression_of(row: pa.RecordBatch) -> Any:
    """A pyarrow expression that is true if the columns have the values of this row."""
    import pyarrow.compute as pc

    whole = pc.scalar(True)
    for name, column in zip(row.schema.names, row.columns, strict=True):
        value = column[0]
        part = pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()
        whole = whole & part
    return whole
