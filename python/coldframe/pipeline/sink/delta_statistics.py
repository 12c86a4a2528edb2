"""The statistics of a file in a Delta log, from its Parquet footer. Readers use the statistics to skip files.

    {"numRecords": 3, "minValues": {"id": 1, "s": {"x": 5}}, "maxValues": {..}, "nullCount": {..}}

A wrong bound hides rows, so each bound is exact, or wider than the values, or left out:

    text            32 characters; a longer maximum ends in the highest character, so that it is above all
                    texts with the same beginning
    timestamp       milliseconds: the minimum rounded down, the maximum up
    float, double   as verified, and only without NaN, which readers sort differently. pyarrow does not show
                    the bounds of a footer with the IEEE order
    none            binary, values in lists and maps; dates and times beyond the years 1 to 9999; infinity

A file has bounds of all its columns (whose type can have bounds) or of none: if one column lacks bounds,
deltalake's dataset for pyarrow finds no value in that column. A column that a file lacks is all null.

Readers expect statistics of the first 32 columns, structs taken apart, unless the table's properties say
otherwise.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe.pipeline.sink.committed import DataFile
from coldframe.pipeline.sink.parquet_footer import (
    Path,
    UnknownBounds,
    chunk_statistics,
    columns,
    extremes,
    leaves,
)

INDEXED = "delta.dataSkippingNumIndexedCols"
_INDEXED = 32
_CHARACTERS = 32
_HIGHEST = "\U0010ffff"
_EPOCH = datetime.datetime(1970, 1, 1)
_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}

Writer: TypeAlias = Callable[[Any], str]
"""Turns a bound into its JSON text. Raises `UnknownBounds` if the bound cannot be written."""


def indexed_columns(schema: Iterable[pa.Field], configuration: Mapping[str, str | None]) -> tuple[Path, ...]:
    """The columns for which readers expect statistics, according to the table's properties."""
    setting = configuration.get(INDEXED) or ""
    limit = int(setting) if setting.lstrip("-").isdigit() else _INDEXED
    some = itertools.islice(columns(schema), limit if limit >= 0 else None)
    return tuple(path for path, kind in some if not pa.types.is_nested(kind))


def statistics(footer: pq.FileMetaData, file: DataFile, indexed: Iterable[Path]) -> str:
    """The statistics of a file as JSON."""
    by_path = dict(leaves(footer.schema.to_arrow_schema()))
    nulls: dict[Path, str] = {}
    bounds: dict[Path, tuple[str, str]] | None = {}
    for path in indexed:
        leaf = by_path.get(path)
        chunks = [] if leaf is None else chunk_statistics(footer, leaf.number)
        if leaf is None:
            nulls[path] = str(file.rows)
        elif all(chunk is not None and chunk.has_null_count for chunk in chunks):
            nulls[path] = str(sum(chunk.null_count for chunk in chunks))
        write = None if leaf is None else _writers(leaf.kind)
        if bounds is None or leaf is None or write is None:
            continue
        try:
            ends = _extremes(path, leaf.kind, chunks, file)
            if ends is not None:
                bounds[path] = write[0](ends[0]), write[1](ends[1])
        except UnknownBounds:
            # Only columns of the top level must all have bounds: deltalake does not look for bounds in
            # structs.
            bounds = bounds if path[1:] else None
    parts = [f'"numRecords":{file.rows}']
    if bounds is not None:
        # Joined as text, since decimals have more digits than Python's JSON writes.
        parts.append(f'"minValues":{_nested({path: low for path, (low, _) in bounds.items()})}')
        parts.append(f'"maxValues":{_nested({path: high for path, (_, high) in bounds.items()})}')
    return "{" + ",".join([*parts, f'"nullCount":{_nested(nulls)}']) + "}"


def _extremes(path: Path, kind: pa.DataType, chunks: Sequence[Any], file: DataFile) -> tuple[Any, Any] | None:
    """The smallest and the largest value of a column; None if all are null."""
    if pa.types.is_floating(kind):
        if path[1:] or path[0] not in file.floats:
            raise UnknownBounds
        return file.floats[path[0]]
    return extremes(kind, chunks)


def _writers(kind: pa.DataType) -> tuple[Writer, Writer] | None:
    """The writers of a column's minimum and maximum; None for types without bounds."""
    if pa.types.is_signed_integer(kind):
        return str, str
    if pa.types.is_boolean(kind):
        return json.dumps, json.dumps
    if pa.types.is_floating(kind):
        return _float, _float
    if pa.types.is_decimal(kind):
        return _decimal, _decimal
    if pa.types.is_date32(kind):
        return _date, _date
    if pa.types.is_timestamp(kind):
        per, zone = _PER_MILLISECOND[kind.unit], "" if kind.tz is None else "Z"
        return lambda value: _timestamp(value // per, zone), lambda value: _timestamp(-(-value // per), zone)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: json.dumps(value[:_CHARACTERS]), _longest
    return None


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise UnknownBounds
    return repr(value)


def _decimal(value: object) -> str:
    if not isinstance(value, decimal.Decimal):
        raise UnknownBounds
    return f"{value:f}"


def _date(days: int) -> str:
    try:
        return json.dumps((_EPOCH + datetime.timedelta(days=days)).date().isoformat())
    except OverflowError as beyond:
        raise UnknownBounds from beyond


def _timestamp(milliseconds: int, zone: str) -> str:
    try:
        at = _EPOCH + datetime.timedelta(milliseconds=milliseconds)
    except OverflowError as beyond:
        raise UnknownBounds from beyond
    return json.dumps(at.isoformat(timespec="milliseconds") + zone)


def _longest(value: str) -> str:
    """A text that is not below any text with the same beginning."""
    if len(value) <= _CHARACTERS:
        return json.dumps(value)
    if value[_CHARACTERS] == _HIGHEST:
        raise UnknownBounds
    return json.dumps(value[:_CHARACTERS] + _HIGHEST)


def _nested(values: Mapping[Path, str]) -> str:
    """Values of columns as a JSON object; fields of a struct are nested objects."""
    inside: dict[str, dict[Path, str]] = {}
    parts = {}
    for path, text in values.items():
        if path[1:]:
            inside.setdefault(path[0], {})[path[1:]] = text
        else:
            parts[path[0]] = text
    parts |= {name: _nested(fields) for name, fields in inside.items()}
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in parts.items()) + "}"
