"""Reads files in Spark: the driver plans splits from the listing, tasks divide and read them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coldframe._coldframe import conform_batch, find_files, plan_from_bytes, plan_to_bytes
from coldframe._coldframe import pack as pack_sizes
from coldframe.arguments import OpenArguments
from coldframe.errors import CorruptFileError, NotFoundError, SchemaError, UnsupportedError
from coldframe.file import Split
from coldframe.hive.addresses import is_metastore
from coldframe.hive.dataset import hive_table
from coldframe.iceberg.places import metadata_of_scan
from coldframe.iceberg.splits import IcebergSplit, Packed
from coldframe.iceberg.tables import iceberg_table
from coldframe.literals import OnError
from coldframe.scanning import Dataset
from coldframe.spark.damage import record_damage, record_unreadable
from coldframe.spark.options import ReadOptions
from coldframe.spark.types import arrow_schema_for

_log = logging.getLogger(__name__)


@dataclass
class PlanPartition(InputPartition):
    """The splits of one task, as the bytes of a plan."""

    plan: bytes

    def splits(self, storage_options: Mapping[str, str]) -> Sequence[Split]:
        """Its splits."""
        raw = plan_from_bytes(self.plan, storage_options=storage_options)
        return [Split.of(raw_split, None) for raw_split in raw]


@dataclass
class TablePartition(InputPartition):
    """The splits of an Iceberg table for one task."""

    packed: Packed

    def splits(self, storage_options: Mapping[str, str]) -> Sequence[Split]:
        """The splits, which carry their storage options."""
        return self.packed.splits()


class ColdframeReader(DataSourceReader):
    """Reads the columns of a Spark schema. Must not define `pushFilters` (see `source`)."""

    def __init__(
        self, options: ReadOptions, schema: StructType, sources: Sequence[Any] | None = None
    ) -> None:
        self.options = options
        self.schema = schema
        self._sources = sources

    def partitions(self) -> Sequence[InputPartition]:
        """Shares of all files, with small files packed together. Returns a list, since Spark requires a list.

        Opens one file for the columns, and plans the other files from the listing.
        """
        options = self.options
        dataset = open_dataset(options, self._sources)
        self._sources = None  # Spark pickles this object for every task
        resolve(self.schema.fieldNames(), dataset.schema.names)
        splits = dataset.planned(options.split_bytes, filter=options.filter)
        groups = pack(splits, options.split_bytes)
        _log.info("planned %d tasks of %d splits", len(groups), len(splits))
        return [_partition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the partition's files, with exactly the schema that Spark demands."""
        # For a list without partitions, Spark passes one partition, None.
        if not isinstance(partition, PlanPartition | TablePartition):
            return
        target = arrow_schema_for(self.schema)
        for planned in partition.splits(self.options.storage_options):
            for split in self._cut(planned):
                try:
                    yield from self._read_split(split, target)
                except NotFoundError:
                    if not self.options.ignore_missing:
                        raise

    def _cut(self, planned: Split) -> list[Split]:
        """The splits of a share; empty if the file cannot be opened and damage is tolerated."""
        options = self.options
        try:
            return planned.expand()
        except NotFoundError:
            if not options.ignore_missing:
                raise
            return []
        except (CorruptFileError, UnsupportedError) as error:
            share = planned.raw.share
            if options.on_error != "skip" or share is None:
                raise
            if options.damage is not None and share[0] == 0:
                record_unreadable(options.damage, _unopened(planned, error), options.storage_options)
            return []

    def _read_split(self, split: Split, target: pa.Schema) -> Iterator[pa.RecordBatch]:
        options = self.options
        record = None
        if options.damage is not None:
            record = partial(record_damage, options.damage, split, storage_options=options.storage_options)
        batches = split.to_batches(
            resolve(target.names, split.schema.names),
            filter=options.filter,
            batch_size=options.batch_rows,
            on_error=cast(OnError, options.on_error),
            on_damage=record,
        )
        for batch in batches:
            if batch.schema.names != target.names:
                batch = batch.rename_columns(target.names)
            yield conform_batch(batch, target)


def open_dataset(options: ReadOptions, sources: Sequence[Any] | None = None) -> Dataset:
    """The files of a `load()` as one dataset, with one file open. `sources`: files of an earlier discovery.

    With DROPMALFORMED, the first file that can be opened is open; errors of the other files appear when they
    are read.
    """
    if (table := _table(options, sources)) is not None:
        return table
    # Spark has no nanoseconds; microseconds also cover the years 1 and 9999, which are frequent in tables.
    arguments = OpenArguments(
        options.format,
        options.storage_options,
        options.verify_checksums,
        options.keys,
        options.of_files,
        microseconds=True,
    )
    files = sources or _selected(options) or list(options.paths)
    dataset = Dataset(files, arguments, partitioned=options.partitioned, unify=options.unify)
    if options.on_error == "raise" and not options.ignore_missing:
        dataset.open_file(0)
        return dataset
    try:
        dataset.schema  # noqa: B018
    except (CorruptFileError, UnsupportedError) as reason:
        raise NotFoundError(f"no file of {list(options.paths)} can be opened") from reason
    return dataset


def _selected(options: ReadOptions) -> Sequence[Any]:
    """The listed files that the options select; empty if they select nothing in particular."""
    if not options.selection:
        return []
    return find_files(options.paths, storage_options=options.storage_options, selection=options.selection)


def _table(options: ReadOptions, sources: Sequence[Any] | None) -> Dataset | None:
    """The table of a metastore or Iceberg table of a `load()`; None if the path is neither."""
    if sources is not None:
        return sources[0] if sources and isinstance(sources[0], Dataset) else None
    place = options.paths[0] if len(options.paths) == 1 else None
    if is_metastore(place) and not options.only_of_iceberg and options.format is None:
        given: dict[str, Any] = {"timestamp_unit": "us", **options.of_files}
        return hive_table(
            str(place),
            storage_options=options.storage_options,
            verify_checksums=options.verify_checksums,
            keys=options.keys,
            **given,
        )
    metadata = metadata_of_scan(place, options.format, options.storage_options)
    if metadata is None:
        if options.only_of_iceberg:
            named = ", ".join(options.only_of_iceberg)
            raise SchemaError(
                f"options of an Iceberg table ({named}): {options.paths} is not an Iceberg table"
            )
        return None
    return iceberg_table(
        metadata,
        storage_options=options.storage_options,
        verify_checksums=options.verify_checksums,
        keys=options.keys,
        **options.of_table,
        **options.options,
    )


def _partition(splits: Sequence[Split]) -> InputPartition:
    of_table = [split for split in splits if isinstance(split, IcebergSplit)]
    if of_table:
        return TablePartition(Packed.of(of_table))
    return PlanPartition(plan_to_bytes([split.raw for split in splits]))


def _unopened(split: Split, error: Exception) -> dict[str, Any]:
    """The damage record of a file that cannot be opened."""
    size = split.size or 0
    structure = getattr(error, "structure", None) or "file"
    whole = {"offset": 0, "length": size, "rows_lost": None, "structure": structure}
    return {"path": split.path, **whole, "reason": str(error)}


def resolve(wanted: Sequence[str], known_names: Sequence[str]) -> list[str]:
    """The requested names as the files write them.

    Ignores case, as Spark does, if no name matches exactly.
    """
    exact = set(known_names)
    folded: dict[str, list[str]] = {}
    for name in known_names:
        folded.setdefault(name.lower(), []).append(name)
    names: list[str] = []
    for name in wanted:
        alike = [name] if name in exact else folded.get(name.lower(), [])
        if len(alike) != 1:
            problem = "not found" if not alike else f"ambiguous among {alike}"
            raise SchemaError(f"column {name!r} {problem}; the files have {list(known_names)}")
        names.append(alike[0])
    return names


def pack(splits: Sequence[Split], target_bytes: int) -> list[Sequence[Split]]:
    """Packs consecutive splits until they have `target_bytes` bytes."""
    sizes = [target_bytes if split.raw.weight is None else split.raw.weight for split in splits]
    return [splits[start:stop] for start, stop in pack_sizes(sizes, target_bytes)]
