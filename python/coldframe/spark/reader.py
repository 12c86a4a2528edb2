"""Reading: splits planned beside the driver, each read by one Spark task."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import coldframe
from coldframe._coldframe import formats
from coldframe.discovery import Found, discover
from coldframe.errors import ColdframeError, CorruptFileError, NotFoundError, SchemaError, UnsupportedError
from coldframe.file import OpenArguments
from coldframe.scanning import Dataset
from coldframe.spark.damage import record_damage, record_unreadable
from coldframe.spark.options import ReadOptions
from coldframe.spark.types import arrow_schema_for, conform_batch

OPEN_COST = 4 << 20
"""What opening one more file counts when small splits are packed into one task (Spark's own figure)."""


@dataclass
class SplitsPartition(InputPartition):
    """What one task reads. Splits carry the footers of their files: executors read none of them again."""

    splits: Sequence[Any]


class ColdframeReader(DataSourceReader):
    """Reads the columns of a Spark schema. Must not define `pushFilters` (see `source`)."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Splits of all files, the small ones packed together. A list, since Spark takes nothing else."""
        options = self.options
        unreadable: list[dict[str, Any]] = []
        dataset = open_dataset(options, unreadable)
        if options.damage is not None:
            record_unreadable(options.damage, unreadable)
        resolve(self.schema.fieldNames(), dataset.schema.names)
        splits = dataset.splits(options.split_bytes, filter=options.filter)
        return [SplitsPartition(group) for group in pack(splits, self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the partition's splits, with exactly the schema that Spark demands."""
        # Spark makes a list without partitions into one partition of None.
        if not isinstance(partition, SplitsPartition):
            return
        target = arrow_schema_for(self.schema)
        for split in partition.splits:
            yield from self._read_split(split, target)

    def _read_split(self, split: Any, target: pa.Schema) -> Iterator[pa.RecordBatch]:
        options = self.options
        batches = split.to_batches(
            resolve(target.names, split.schema.names),
            filter=options.filter,
            batch_size=options.batch_rows,
            on_error=options.on_error,
            on_damage=None if options.damage is None else partial(record_damage, options.damage, split),
        )
        for batch in batches:
            if batch.schema.names != target.names:
                batch = batch.rename_columns(target.names)
            yield conform_batch(batch, target)


def open_dataset(options: ReadOptions, unreadable: list[dict[str, Any]] | None = None) -> Dataset:
    """The files of a `load()` as one dataset.

    With DROPMALFORMED, files that cannot be opened at all are left out; `unreadable` is told of them.
    """
    found = discover(
        list(options.paths),
        options.storage_options,
        partitioned=True,
        whole_directories=bool(options.options.get("acid")),
    )
    format = options.format or next(filter(None, map(_detect, found)), None)
    details = dict(options.options)
    known = {} if format is None else formats().get(format, {}).get("open", {})
    if "timestamp_unit" in known:
        # Spark has no others, and nanoseconds do not reach the years 1 and 9999 that tables are full of.
        details.setdefault("timestamp_unit", "us")
    arguments = OpenArguments(
        options.format, options.storage_options, options.verify_checksums, options.keys, details
    )
    if options.on_error == "skip":
        found = [one for one in found if _opens(one, arguments, unreadable)]
        if not found:
            raise NotFoundError(f"no file of {list(options.paths)} can be opened")
    return Dataset(found, arguments)


def format_of(dataset: Dataset, options: ReadOptions) -> str | None:
    """The format of a dataset's files, judged by the first."""
    return options.format or coldframe.detect(dataset.files[0])


def _detect(found: Found) -> str | None:
    try:
        return coldframe.detect(found.source)
    except ColdframeError:
        return None


def _opens(found: Found, arguments: OpenArguments, unreadable: list[dict[str, Any]] | None) -> bool:
    try:
        arguments.open(found.source)
    except (CorruptFileError, UnsupportedError) as error:
        if unreadable is not None:
            path = str(found.source)
            structure = getattr(error, "structure", None) or "file"
            lost = {"offset": 0, "length": local_size(path), "rows_lost": None, "structure": structure}
            unreadable.append({"path": path, **lost, "reason": str(error)})
        return False
    return True


def resolve(wanted: Sequence[str], found: Sequence[str]) -> list[str]:
    """The names as the files write them. Spark does not distinguish case, so neither does this where it need
    not.
    """
    exact = set(found)
    folded: dict[str, list[str]] = {}
    for name in found:
        folded.setdefault(name.lower(), []).append(name)
    names: list[str] = []
    for name in wanted:
        alike = [name] if name in exact else folded.get(name.lower(), [])
        if len(alike) != 1:
            problem = "not found" if not alike else f"ambiguous among {alike}"
            raise SchemaError(f"column {name!r} {problem}; the files have {list(found)}")
        names.append(alike[0])
    return names


def pack(splits: Sequence[Any], target_bytes: int) -> list[list[Any]]:
    """Consecutive splits together until they make up `target_bytes`."""
    groups: list[list[Any]] = []
    room = 0
    for split, size in zip(splits, split_sizes(splits), strict=True):
        cost = size + OPEN_COST
        if not groups or cost > room:
            groups.append([])
            room = target_bytes + OPEN_COST
        groups[-1].append(split)
        room -= cost
    return groups


def split_sizes(splits: Sequence[Any]) -> list[int]:
    """About how many bytes each split has: its file's, in equal parts."""
    parts: dict[str, int] = {}
    for split in splits:
        parts[split.path] = parts.get(split.path, 0) + 1
    sizes = {path: local_size(path) for path in parts}
    return [sizes[split.path] // parts[split.path] for split in splits]


def local_size(path: str) -> int:
    """The size of a local file; of one elsewhere the default split, since asking costs a request a file."""
    try:
        return os.stat(path.removeprefix("file://")).st_size
    except OSError:
        return 128 << 20
