"""The values of a file, measured while it is decoded: counts and bounds for Iceberg's metadata, and what the
rules ask for.

Counts and bounds are those of the values, not those that the file states. A bound that is not known is left
out: a wrong one hides rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import RawFingerprint
from coldframe.pipeline.adopt.proof import as_shown, checksum_of
from coldframe.pipeline.sink.iceberg_files import REFORM
from coldframe.pipeline.sink.iceberg_statistics import FileStatistics, measured_columns, set_bounds
from coldframe.pipeline.sink.sinks import in_types_of

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_NONE: set[str] = set()
_CHAR = re.compile(r"char\s*\(\s*(\d+)\s*\)\Z", re.IGNORECASE)


@dataclass(slots=True)
class _Column:
    nulls: int = 0
    nans: int = 0
    low: Any = None
    high: Any = None


@dataclass(slots=True)
class Measured:
    """Counts, bounds and other facts about a file's values."""

    schema: pa.Schema
    """The table's columns."""
    types: Mapping[str, str]
    """The columns' types in Hive's words."""
    keys: Collection[str] = ()
    """The partition columns."""
    columns: dict[str, _Column] = field(default_factory=dict)
    old: set[str] = field(default_factory=set)
    """Columns with days before 1582-10-15."""
    early: set[str] = field(default_factory=set)
    """Columns with fractions of a second before 1970."""
    short: set[str] = field(default_factory=set)
    """Columns of char with values that are shorter than their type."""
    zeros: dict[str, set[bool]] = field(default_factory=dict)
    """The signs of the zeros in columns of floats: True for -0.0."""
    hollow: bool = False
    """Whether a list or map of structs is null, which PyIceberg shows as an empty one."""
    null_keys: set[str] = field(default_factory=set)
    """Columns with a map that has a null key."""
    first_time: int | None = None
    """The earliest time, in microseconds since 1970."""
    last_time: int | None = None
    rows: int = 0
    checksum: str = ""
    """Of the rows, without their order; set by `end`."""
    _print: RawFingerprint | None = field(init=False)
    _lengths: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._print = RawFingerprint(self.schema, rows_only=True)
        self.columns = {column.name: _Column() for column in self.schema}
        self._lengths = {
            name: int(match[1]) for name, kind in self.types.items() if (match := _CHAR.match(kind.strip()))
        }

    def add(self, batch: pa.RecordBatch) -> None:
        """Measures rows of the table."""
        batch = in_types_of(self.schema, self.without_padding(batch))
        if self._print is None:
            raise RuntimeError("the file has ended")
        shown = as_shown(batch)
        self._print.add(shown)
        self.rows += batch.num_rows
        self.hollow |= shown is not batch
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if not pa.types.is_nested(values.type):
                self._measure(name, values)
            for leaf in self._leaves(name, values):
                # A partition's value is in the manifest, not in the file.
                if name not in self.keys:
                    self._look(name, leaf)

    def without_padding(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows without the blanks to which Hive pads char, and which it ignores in comparisons."""
        for name in self._lengths:
            at = batch.schema.get_field_index(name)
            values = pc.utf8_rtrim(batch.column(at), characters=" ")
            batch = batch.set_column(at, batch.schema.field(at), values)
        return batch

    def _measure(self, name: str, values: pa.Array) -> None:
        column = self.columns[name]
        column.nulls += values.null_count
        if pa.types.is_floating(values.type):
            column.nans += pc.sum(pc.is_nan(values)).as_py() or 0
        if pa.types.is_boolean(values.type):
            return
        ends = pc.min_max(as_numbers(values)).as_py()
        if ends["min"] is not None:
            column.low = ends["min"] if column.low is None else min(column.low, ends["min"])
            column.high = ends["max"] if column.high is None else max(column.high, ends["max"])
        length = self._lengths.get(name)
        if length is not None:
            lengths = pc.utf8_length(values)
            if (pc.min(lengths).as_py() or 0) < length and values.null_count < len(values):
                self.short.add(name)

    def _leaves(self, name: str, values: pa.Array) -> Iterator[pa.Array]:
        kind = values.type
        if pa.types.is_map(kind):
            if values.keys.null_count:
                self.null_keys.add(name)
            yield from self._leaves(name, values.keys)
            yield from self._leaves(name, values.items)
        elif pa.types.is_struct(kind):
            for part in values.flatten():
                yield from self._leaves(name, part)
        elif pa.types.is_nested(kind):
            yield from self._leaves(name, values.flatten())
        else:
            yield values

    def _look(self, name: str, leaf: pa.Array) -> None:
        if pa.types.is_floating(leaf.type):
            zeros = leaf.filter(pc.equal(leaf, 0))
            if len(zeros):
                signs = pc.unique(pc.less(pc.divide(1.0, zeros), 0)).to_pylist()
                self.zeros.setdefault(name, set()).update(signs)
            return
        is_time = pa.types.is_timestamp(leaf.type)
        if not is_time and not pa.types.is_date(leaf.type):
            return
        numbers = as_numbers(leaf)
        ends = pc.min_max(numbers).as_py()
        if ends["min"] is None:
            return
        if ends["min"] < REFORM * (_DAY if is_time else 1):
            self.old.add(name)
        if is_time:
            first, last = ends["min"], ends["max"]
            self.first_time = first if self.first_time is None else min(first, self.first_time)
            self.last_time = last if self.last_time is None else max(last, self.last_time)
            if first < 0 and _has_early_fraction(numbers):
                self.early.add(name)

    def end(self) -> None:
        """The file has no more rows."""
        if self._print is not None:
            self.checksum, self._print = checksum_of(self._print), None

    def forget(self) -> None:
        """Frees the memory of a file that is done."""
        self.columns, self.zeros = {}, {}
        self.old = self.early = self.short = self.null_keys = _NONE

    def statistics(self, schema: Any, properties: Mapping[str, str], names: set[str]) -> FileStatistics:
        """The statistics for a manifest. `names`: the columns that the file has."""
        statistics = FileStatistics()
        for path, measured in measured_columns(schema, properties).items():
            if path[1:] or path[0] not in names:
                continue
            column = self.columns[path[0]]
            statistics.values[measured.id] = self.rows
            statistics.nulls[measured.id] = column.nulls
            if pa.types.is_floating(self.schema.field(path[0]).type):
                statistics.nans[measured.id] = column.nans
            # For Spark, NaN is the largest value, but bounds cannot express that.
            if measured.has_bounds and not column.nans:
                set_bounds(statistics, measured, column.low, column.high)
        return statistics


def as_numbers(values: pa.Array) -> pa.Array:
    """Dates and times as numbers since 1970: Python's own dates end with the year 9999."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.int64())
    return values.cast(pa.int32()) if pa.types.is_date(values.type) else values


def _has_early_fraction(numbers: pa.Array) -> bool:
    early = numbers.filter(pc.less(numbers, 0))
    whole = pc.multiply(pc.divide(early, _SECOND), _SECOND)
    return bool(pc.any(pc.not_equal(whole, early)).as_py())
