"""Which partitions can have rows that pass a filter, by the values in their names alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import HIVE_NULL
from coldframe.filters import Condition, given

__all__ = ["kept", "values_of"]


def values_of(name: str) -> tuple[str, ...]:
    """The values in a partition's name, `dt=2014-01-01/region=asia%2Fpacific`."""
    return tuple(unquote(part.partition("=")[2]) for part in name.split("/"))


def kept(values: Sequence[tuple[str, ...]], keys: pa.Schema, filter: Any, schema: pa.Schema) -> list[int]:
    """The partitions, by number, that a parsed filter does not rule out. `schema`: all columns of the table.

    Values that are not of a key's type rule nothing out.
    """
    if filter is None or not len(keys):
        return list(range(len(values)))
    typed = {}
    for at, key in enumerate(keys):
        texts = pa.array([None if one[at] == HIVE_NULL else one[at] for one in values], pa.string())
        try:
            typed[key.name] = texts.cast(key.type)
        except pa.ArrowException:
            continue
    if isinstance(filter, Condition):
        return [
            at
            for at in range(len(values))
            if not given(filter, schema, {name: column[at] for name, column in typed.items()}).never_true
        ]
    return _kept_by_expression(len(values), typed, filter, schema)


def _kept_by_expression(count: int, typed: dict[str, Any], filter: Any, schema: pa.Schema) -> list[int]:
    import pyarrow.compute as pc
    import pyarrow.dataset as pads
    import pyarrow.fs

    def stated(at: int) -> Any:
        whole = pc.scalar(True)
        for name, column in typed.items():
            value, column_of = column[at], pc.field(name)
            whole = whole & (column_of == value if value.is_valid else column_of.is_null())
        return whole

    # Fragments that are never opened, named by their numbers.
    format, files = pads.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()
    fragments = [format.make_fragment(str(at), files, partition_expression=stated(at)) for at in range(count)]
    found = pads.FileSystemDataset(fragments, schema, format, files).get_fragments(filter)
    return [int(fragment.path) for fragment in found]
