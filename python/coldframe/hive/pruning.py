"""Prunes partitions by the values in their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import HIVE_NULL
from coldframe.filters import Condition, bind, given
from coldframe.partition_pruning import PartitionPruner

__all__ = ["kept", "values_of"]


def values_of(name: str) -> tuple[str, ...]:
    """The values in a partition's name, `dt=2014-01-01/region=asia%2Fpacific`."""
    return tuple(unquote(part.partition("=")[2]) for part in name.split("/"))


def kept(values: Sequence[tuple[str, ...]], keys: pa.Schema, filter: Any, schema: pa.Schema) -> list[int]:
    """The numbers of the partitions that a parsed filter does not rule out. `schema`: the table's columns.

    If the type of a key cannot hold one of the values, that key prunes nothing.
    """
    if filter is None or not len(keys):
        return list(range(len(values)))
    typed = {}
    for at, key in enumerate(keys):
        texts = pa.array(
            [None if partition[at] == HIVE_NULL else partition[at] for partition in values], pa.string()
        )
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
    known = pa.RecordBatch.from_arrays(list(typed.values()), names=list(typed))
    return PartitionPruner((known.slice(at, 1) for at in range(len(values))), schema).kept(
        bind(filter, schema)
    )
