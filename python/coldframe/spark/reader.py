"""Reading: shares of files planned beside the driver by their listing, opened and read by Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coldframe._coldframe import conform_batch, formats
from coldframe.discovery import Found, discover
from coldframe.errors import CorruptFileError, NotFoundError, SchemaError, UnsupportedError
from coldframe.file import OpenArguments, opened_again
from coldframe.fragment import Fragment
from coldframe.scanning import Dataset, unopened
from coldframe.sources import Source
from coldframe.spark.damage import record_damage, record_unreadable
from coldframe.spark.options import ReadOptions
from coldframe.spark.types import arrow_schema_for

OPEN_COST = 4 << 20
"""What opening one more file counts when small splits are packed into one task (Spark's own figure)."""


@dataclass(frozen=True)
class Share:
    """One of `of` equal shares of a file's splits, made by the task that reads it.

    All tasks make the same splits of the same file. One that was changed since it was listed is an error.
    """

    found: Found
    arguments: OpenArguments
    fragment: Fragment
    size: int
    number: int = 0
    of: int = 1

    def splits(self, target_bytes: int) -> list[Any]:
        """The splits of this share, with the columns of the dataset."""
        source = Source(self.found.source, self.arguments.storage_options, self.found.known)
        splits = self.arguments.open(source).splits(target_bytes)
        first, last = (len(splits) * number // self.of for number in (self.number, self.number + 1))
        return [replace(split, fragment=self.fragment) for split in splits[first:last]]


@dataclass(frozen=True)
class Ready:
    """A split that planning made: of a folder that is one table, which planning has to open."""

    split: Any
    size: int

    def splits(self, _: int) -> list[Any]:
        """The split."""
        return [self.split]


@dataclass
class SharesPartition(InputPartition):
    """What one task reads."""

    shares: Sequence[Share | Ready]


class ColdframeReader(DataSourceReader):
    """Reads the columns of a Spark schema. Must not define `pushFilters` (see `source`)."""

    def __init__(
        self, options: ReadOptions, schema: StructType, found: Sequence[Found] | None = None
    ) -> None:
        self.options = options
        self.schema = schema
        self._found = found

    def partitions(self) -> Sequence[InputPartition]:
        """Shares of all files, the small ones packed together. A list, since Spark takes nothing else.

        One file is opened for the columns; the others are known by their listing.
        """
        options = self.options
        dataset = open_dataset(options, self._found)
        self._found = None  # what follows travels to every task
        resolve(self.schema.fieldNames(), dataset.schema.names)
        shares = list(shares_of(dataset, options.split_bytes, options.filter))
        return [SharesPartition(group) for group in pack(shares, options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the partition's files, with exactly the schema that Spark demands."""
        # Spark makes a list without partitions into one partition of None.
        if not isinstance(partition, SharesPartition):
            return
        target = arrow_schema_for(self.schema)
        for share in partition.shares:
            for split in self._splits(share):
                yield from self._read_split(split, target)

    def _splits(self, share: Share | Ready) -> list[Any]:
        """The splits of a share; none of a file that cannot be opened, if that may be passed over."""
        options = self.options
        try:
            return share.splits(options.split_bytes)
        except (CorruptFileError, UnsupportedError) as error:
            if options.on_error != "skip" or not isinstance(share, Share):
                raise
            if options.damage is not None and share.number == 0:
                record_unreadable(options.damage, unopened(share.found, error), options.storage_options)
            return []

    def _read_split(self, split: Any, target: pa.Schema) -> Iterator[pa.RecordBatch]:
        options = self.options
        record = None
        if options.damage is not None:
            record = partial(record_damage, options.damage, split, storage_options=options.storage_options)
        batches = split.to_batches(
            resolve(target.names, split.schema.names),
            filter=options.filter,
            batch_size=options.batch_rows,
            on_error=options.on_error,
            on_damage=record,
        )
        for batch in batches:
            if batch.schema.names != target.names:
                batch = batch.rename_columns(target.names)
            yield conform_batch(batch, target)


def find(options: ReadOptions) -> list[Found]:
    """The files of a `load()`."""
    return discover(
        list(options.paths),
        options.storage_options,
        partitioned=True,
        whole_directories=bool(options.options.get("acid")),
    )


def open_dataset(options: ReadOptions, found: Sequence[Found] | None = None) -> Dataset:
    """The files of a `load()` as one dataset, of which one file is open.

    With DROPMALFORMED that is the first that can be opened; the others show themselves when they are read.
    """
    found = list(find(options) if found is None else found)
    given = OpenArguments(
        options.format, options.storage_options, options.verify_checksums, options.keys, options.options
    )
    for at, one in enumerate(found):
        source = Source(one.source, options.storage_options, one.known)
        try:
            first = given.open(source)
        except (CorruptFileError, UnsupportedError):
            if options.on_error != "skip":
                raise
            continue
        arguments = given
        if "timestamp_unit" in formats().get(first.format, {}).get("open", {}):
            # Spark has no others, and nanoseconds do not reach the years 1 and 9999 that tables are full of.
            details = {"timestamp_unit": "us", **options.options}
            arguments = replace(given, options=details)
            first = opened_again(first, arguments)
        return Dataset(found, arguments, unify=options.unify, first=(at, first))
    raise NotFoundError(f"no file of {list(options.paths)} can be opened")


def shares_of(dataset: Dataset, split_bytes: int, filter: str | None) -> Iterator[Share | Ready]:
    """What there is to read, in parts of about `split_bytes`."""
    for found, fragment in dataset.fragments(filter):
        if found.known is None:  # a folder, or a web server's file
            for split in dataset.open_fragment(found).splits(split_bytes):
                yield Ready(replace(split, fragment=fragment), split.size or split_bytes)
            continue
        size = found.known[0]
        of = max(1, -(-size // split_bytes))
        for number in range(of):
            yield Share(found, dataset.arguments, fragment, size // of, number, of)


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


def pack(shares: Sequence[Share | Ready], target_bytes: int) -> list[list[Share | Ready]]:
    """Consecutive shares together until they make up `target_bytes`."""
    groups: list[list[Share | Ready]] = []
    room = 0
    for share in shares:
        cost = share.size + OPEN_COST
        if not groups or cost > room:
            groups.append([])
            room = target_bytes + OPEN_COST
        groups[-1].append(share)
        room -= cost
    return groups
