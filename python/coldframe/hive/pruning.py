"""Prunes partitions by the values in their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import HIVE_NULL
from coldframe.filters import Condition, bind, given
from coldframe.partition_pruning import PartitionPruner

__all__ = ["fitting", "kept", "values_of"]

_INTEGER = re.compile(r"([+-]?\d+)\.\d*\Z")
_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T].*)?\s*\Z")


def values_of(name: str) -> tuple[str, ...]:
    """The values in a partition's name, `dt=2014-01-01/region=asia%2Fpacific`."""
    return tuple(unquote(part.partition("=")[2]) for part in name.split("/"))


def fitting(text: str, kind: pa.DataType) -> str:
    """A partition's value as a text of its key's type; as in Hive, null if it is none."""
    if text == HIVE_NULL or pa.types.is_string(kind):
        return text
    if pa.types.is_integer(kind) and (cut := _INTEGER.match(text)):
        text = cut[1]
    elif pa.types.is_date(kind) and (date := _DATE.match(text)):
        text = f"{date[1]}-{int(date[2]):02d}-{int(date[3]):02d}"
    try:
        pa.scalar(text.strip()).cast(kind)
    except pa.ArrowException:
        return HIVE_NULL
    return text.strip()


def kept(values: Sequence[tuple[str, ...]], keys: pa.Schema, filter: Any, schema: pa.Schema) -> list[int]:
    """The numbers of the partitions that a parsed filter does not rule out. `schema`: the table's columns."""
    if filter is None or not len(keys):
        return list(range(len(values)))
    typed = {}
    for at, key in enumerate(keys):
        texts = [fitting(partition[at], key.type) for partition in values]
        column = pa.array([None if text == HIVE_NULL else text for text in texts], pa.string())
        typed[key.name] = column.cast(key.type)
    if isinstance(filter, Condition):
        return [
            at
            for at in range(len(values))
            if not given(filter, schema, {name: column[at] for name, column in typed.items()}).never_true
        ]
    known = pa.RecordBatch.from_arrays(list(typed.values()), names=list(typed))
    return PartitionPruner((known.slice(at, 1) for at in range(len(values))), schema).kept(
        bind(filter, schema)
    )
