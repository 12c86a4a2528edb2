"""The statistics of a file's columns in a manifest. Readers use the statistics to skip files.

    values, nulls        of each column that is not in a list or map
    NaNs                 of floats, as verified
    lower, upper bound   texts and bytes are cut, the upper one upwards; floats only if they are known to have
                         no NaN, and zero as the outer zero: -0.0 is sorted below 0.0

A wrong bound hides rows, so each bound is exact, or wider than the values, or left out. The table's
properties (`write.metadata.metrics..`) select the statistics of each column: by default the first 100 columns
have all, with bounds of 16 characters or bytes.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe.pipeline.sink.committed import DataFile
from coldframe.pipeline.sink.parquet_footer import (
    Path,
    UnknownBounds,
    chunk_statistics,
    extremes,
    leaves,
    row_group_offsets,
)

_DEFAULT = "write.metadata.metrics.default"
_OF_COLUMN = "write.metadata.metrics.column."
_MAX_INFERRED = "write.metadata.metrics.max-inferred-column-defaults"
_USUAL, _USUAL_MAX = "truncate(16)", 100


@dataclass
class FileStatistics:
    """The statistics of a file's columns, by field id."""

    sizes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    nans: dict[int, int] = field(default_factory=dict)
    low: dict[int, bytes] = field(default_factory=dict)
    high: dict[int, bytes] = field(default_factory=dict)
    splits: list[int] | None = None
    """The offsets where the file's row groups begin."""


@dataclass(frozen=True)
class Measured:
    """A column that has statistics: a column of the table, or a field of its structs."""

    id: int
    kind: Any
    """The column's Iceberg type."""
    has_bounds: bool
    width: int | None
    """The length of bounds of texts and bytes, in characters or bytes; None: unlimited."""


def measured_columns(schema: Any, properties: Mapping[str, str]) -> dict[Path, Measured]:
    """The columns of a table that have statistics."""
    usual = properties.get(_DEFAULT, _USUAL)
    setting = properties.get(_MAX_INFERRED, "")
    limit = int(setting) if setting.isdigit() else _USUAL_MAX
    measured: dict[Path, Measured] = {}
    for number, (path, column) in enumerate(_primitives(schema.fields)):
        inferred = usual if number < limit or _DEFAULT in properties else "none"
        mode = properties.get(_OF_COLUMN + ".".join(path), inferred).strip().lower()
        if mode == "none":
            continue
        cut = re.fullmatch(r"truncate\((\d+)\)", mode)
        measured[path] = Measured(
            column.field_id, column.field_type, mode != "counts", int(cut[1]) if cut else None
        )
    return measured


def _primitives(fields: Iterable[Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    for column in fields:
        path = (*above, column.name)
        if column.field_type.is_primitive:
            yield path, column
        elif column.field_type.is_struct:
            yield from _primitives(column.field_type.fields, path)


def parquet_statistics(
    footer: pq.FileMetaData, file: DataFile, columns: Mapping[Path, Measured]
) -> FileStatistics:
    """The statistics in the footer of a Parquet file."""
    statistics = FileStatistics(splits=row_group_offsets(footer))
    for path, leaf in leaves(footer.schema.to_arrow_schema()):
        column = columns.get(path)
        if column is None:
            continue
        groups = [footer.row_group(group).column(leaf.number) for group in range(footer.num_row_groups)]
        statistics.sizes[column.id] = sum(group.total_compressed_size for group in groups)
        statistics.values[column.id] = sum(group.num_values for group in groups)
        chunks = chunk_statistics(footer, leaf.number)
        if all(chunk is not None and chunk.has_null_count for chunk in chunks):
            statistics.nulls[column.id] = sum(chunk.null_count for chunk in chunks)
        if path[1:] == () and path[0] in file.nans:
            statistics.nans[column.id] = file.nans[path[0]]
        if not column.has_bounds:
            continue
        try:
            if pa.types.is_floating(leaf.kind):
                ends = file.floats.get(path[0]) if path[1:] == () else None
            else:
                ends = extremes(leaf.kind, chunks)
        except UnknownBounds:
            continue
        if ends is not None:
            set_bounds(statistics, column, *ends)
    return statistics


def reported_statistics(
    reported: Iterable[Mapping[str, Any]], file: DataFile, columns: Mapping[Path, Measured]
) -> FileStatistics:
    """The statistics of a file in one of our formats; `reported`: the result of `File.statistics`."""
    statistics = FileStatistics()
    for name, count in file.nulls.items():
        if (column := columns.get((name,))) is not None:
            statistics.nulls[column.id], statistics.values[column.id] = count, file.rows
            if name in file.nans:
                statistics.nans[column.id] = file.nans[name]
            if column.has_bounds and (ends := file.floats.get(name)) is not None:
                set_bounds(statistics, column, *ends)
    for entry in reported:
        column = columns.get((entry["path"],))
        if column is not None and column.has_bounds:
            set_bounds(statistics, column, *_ends(entry, column.kind))
    return statistics


def _ends(entry: Mapping[str, Any], kind: Any) -> tuple[Any, Any]:
    """The smallest and the largest value; None if unknown."""
    from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, StringType, TimestampType
    from pyiceberg.types import TimestamptzType as WithZone

    if isinstance(kind, (IntegerType, LongType, StringType)):
        return entry.get("min"), entry.get("max")
    if isinstance(kind, DateType):
        return entry.get("min_days"), entry.get("max_days")
    if isinstance(kind, (TimestampType, WithZone)):
        return (
            _microseconds(entry.get("min_seconds_utc"), decimal.ROUND_FLOOR),
            _microseconds(entry.get("max_seconds_utc"), decimal.ROUND_CEILING),
        )
    if isinstance(kind, DecimalType):
        texts = (entry.get("min"), entry.get("max"))
        low, high = (None if text is None else decimal.Decimal(text) for text in texts)
        return low, high
    return None, None


def _microseconds(seconds: str | None, rounding: str) -> int | None:
    if seconds is None:
        return None
    return int((decimal.Decimal(seconds) * 1_000_000).to_integral_value(rounding=rounding))


def set_bounds(statistics: FileStatistics, column: Measured, low: Any, high: Any) -> None:
    """Sets the known bounds, in Iceberg's form."""
    from pyiceberg.conversions import to_bytes

    if (low := _lower(column, low)) is not None:
        statistics.low[column.id] = to_bytes(column.kind, low)
    if (high := _upper(column, high)) is not None:
        statistics.high[column.id] = to_bytes(column.kind, high)


def _lower(column: Measured, value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        return value[: column.width]
    return -0.0 if isinstance(value, float) and value == 0 else _scaled(column, value)


def _upper(column: Measured, value: Any) -> Any:
    from pyiceberg.utils.truncate import truncate_upper_bound_binary_string, truncate_upper_bound_text_string

    if isinstance(value, bytes):
        return truncate_upper_bound_binary_string(value, column.width)
    if isinstance(value, str):
        cut = truncate_upper_bound_text_string(value, column.width)
        # The character after U+D7FF is a surrogate, which UTF-8 cannot encode.
        return None if cut is None or any("\ud800" <= letter <= "\udfff" for letter in cut) else cut
    return 0.0 if isinstance(value, float) and value == 0 else _scaled(column, value)


def _scaled(column: Measured, value: Any) -> Any:
    """A decimal with the scale of its column."""
    if not isinstance(value, decimal.Decimal):
        return value
    return value.quantize(decimal.Decimal(1).scaleb(-column.kind.scale), context=_DIGITS)


_DIGITS = decimal.Context(prec=76)
"""By default, Python rounds to 28 digits."""
