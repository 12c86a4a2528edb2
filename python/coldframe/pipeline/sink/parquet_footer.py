"""The footer's statistics of a Parquet file, for columns that are not in lists or maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

Path: TypeAlias = tuple[str, ...]
"""The names of a column and of the fields inside it."""


@dataclass(frozen=True)
class Leaf:
    """A column of the Parquet file that is a column of the table, or a field of its structs."""

    number: int
    kind: pa.DataType


class UnknownBounds(Exception):
    """A column has values, but no bounds."""


def columns(fields: Iterable[pa.Field], above: Path = ()) -> Iterator[tuple[Path, pa.DataType]]:
    """The columns, with structs replaced by their fields."""
    for field in fields:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from columns(field.type, path)
        else:
            yield path, field.type


def leaves(schema: pa.Schema) -> Iterator[tuple[Path, Leaf]]:
    """The leaves that are not in lists or maps, numbered in the order of the schema, as in the file."""
    number = 0
    for path, kind in columns(schema):
        if not pa.types.is_nested(kind):
            yield path, Leaf(number, kind)
        number += _width(kind)


def _width(kind: pa.DataType) -> int:
    """How many leaves a type has."""
    if not pa.types.is_nested(kind):
        return 1
    return sum(_width(kind.field(number).type) for number in range(kind.num_fields))


def chunk_statistics(footer: pq.FileMetaData, number: int) -> list[Any]:
    """The statistics of a leaf in each row group."""
    groups = (footer.row_group(group) for group in range(footer.num_row_groups))
    return [group.column(number).statistics for group in groups if group.num_rows]


def extremes(kind: pa.DataType, chunks: Sequence[Any]) -> tuple[Any, Any] | None:
    """The smallest and the largest value of a column other than floats; None if all are null. Dates and times
    are numbers.
    """
    # Python's own dates end with the year 9999.
    raw = pa.types.is_temporal(kind)
    lows, highs = [], []
    for chunk in chunks:
        if chunk is not None and chunk.has_min_max:
            lows.append(chunk.min_raw if raw else chunk.min)
            highs.append(chunk.max_raw if raw else chunk.max)
        elif chunk is None or chunk.num_values:
            raise UnknownBounds
    return (min(lows), max(highs)) if lows else None


def row_group_offsets(footer: pq.FileMetaData) -> list[int]:
    """Where the row groups begin."""
    offsets = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if group.num_columns:
            first = group.column(0)
            begins = [first.data_page_offset]
            if first.has_dictionary_page:
                begins.append(first.dictionary_page_offset)
            offsets.append(min(begins))
    return sorted(offsets)


def parts_of(kind: pa.DataType) -> list[pa.Field]:
    """The fields inside a type: those of a struct or union, the element of a list, key and value of a map."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_nested(kind):
        return [kind.field(at) for at in range(kind.num_fields)]
    return []
