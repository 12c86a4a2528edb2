"""Reads a table as a Hive metastore defines it, partition by partition.

    metastore: names of the partitions  ->  pruned by their values  ->  definitions of the rest
    partitions with the same format, SerDe and columns form a group, read with the same options (`group`)
    a group's columns match the table's by position; columns that a partition lacks are null

Partitions that a filter rules out cost no further request to the metastore or the file system.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe.arguments import Keys, check_plain
from coldframe.batches import DEFAULT_BATCH_SIZE, DEFAULT_SPLIT_BYTES, Damage, filtered, projected
from coldframe.errors import SchemaError, unsupported
from coldframe.file import File, Split
from coldframe.filters import Filter, bind, both, mentioned, needed, parse
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import READ, connect
from coldframe.hive.definition import Definition, PartitionDefinition, of_length
from coldframe.hive.group import Group, Reading, columns_of, grouped, keys_of
from coldframe.hive.locations import Locations
from coldframe.hive.pruning import kept, values_of
from coldframe.hive.write_ids import OPTION
from coldframe.literals import OnError
from coldframe.notebook import summary_html
from coldframe.scanning import Dataset, DefinedDataset
from coldframe.sources import with_filesystem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from coldframe.keywords import OpenOptions

__all__ = ["HiveDataset", "hive_table"]

_log = logging.getLogger(__name__)


def hive_table(
    uri: str,
    *,
    filter: Filter | None = None,
    location: Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    **options: Unpack[OpenOptions],
) -> HiveDataset:
    """A table as a Hive metastore defines it: each partition has its own format, SerDe, columns and location.

    Args:
        uri: `thrift://host:9083/database.table`, or `FILE/database.table` for a file of definitions: see
            docs/hive-metastore.md.
        filter: selects the rows of the table. This filter and the filters of its methods prune partitions.
        location: for copied files, prefixes of locations and their replacements:
            `{"hdfs://old/": "/mnt/copy/"}`.

    The other arguments are those of `open`; `options` override those in the metastore. Columns have the
    types in the metastore: values in files are widened to them, or raise SchemaError if they do not fit. A
    partition in an unsupported format raises UnsupportedError unless a filter rules it out.
    """
    selected = Selected.of(uri)
    if not selected.is_single or selected.table == "*":
        raise ValueError(
            f"{uri}: expected thrift://host:9083/database.table, or a dump's FILE/database.table"
        )
    with connect(selected.uris) as metastore:
        definition = metastore.definition(selected.database, selected.table)
    if (reason := definition.left_out) is not None:
        raise unsupported(f"{definition.full_name}: {reason}")
    reading = Reading(with_filesystem(storage_options, filesystem), verify_checksums, keys, options)
    return HiveDataset(selected.uris, definition, Locations(location or {}), reading, filter)


class HiveDataset(DefinedDataset):
    """A table that a Hive metastore defines, created by `coldframe.hive_table`.

    Anything that accepts Arrow streams accepts it. Every pass asks the metastore for the partitions again.
    """

    def __init__(
        self,
        uris: str,
        definition: Definition,
        locations: Locations,
        reading: Reading,
        filter: Filter | None = None,
    ) -> None:
        # Dataset.__init__ is not called: each pass finds its own files, by its filter.
        check_plain(reading.options, "a table of a Hive metastore")
        self.definition = definition
        self._given = filter
        self._uris, self._locations, self._reading = uris, locations, reading
        self._columns = columns_of(definition.storage.columns, reading.unit)
        self._keys = keys_of(definition.keys)
        self._schema = pa.schema([*self._columns, *self._keys])
        self._damage: Damage = []
        self._filter = parse(filter)
        if self._filter is not None:
            bind(self._filter, self._schema)

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema: the columns that the metastore states, then those of the partitions."""
        return self._schema

    @property
    def partition_columns(self) -> list[str]:
        """The columns whose values the metastore stores for each partition."""
        return list(self._keys.names)

    def partitions(self, filter: Filter | None = None) -> list[PartitionDefinition]:
        """The partitions that the filter does not rule out; a table without partitions counts as one."""
        return self._partitions_of(self._both(filter))

    @property
    def files(self) -> list[str]:
        """The files of all partitions, except those that the table's own filter rules out."""
        return [path for dataset, _ in self._datasets(self._filter) for path in dataset.files]

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader, one group of partitions after the other."""
        wanted = projected(self._schema, columns)
        test = self._both(filter)

        def batches() -> Iterator[Any]:
            damage: Damage = []
            left = limit
            for dataset, own in self._datasets(test):
                if left == 0:
                    break
                for batch in self._rows(
                    dataset,
                    own,
                    wanted,
                    test,
                    batch_size=batch_size,
                    limit=left,
                    on_error=on_error,
                    use_threads=use_threads,
                ):
                    left = left if left is None else left - batch.num_rows
                    yield batch
                damage += dataset.damage
            if on_error != "raise":
                self._damage = damage
                if on_damage is not None:
                    on_damage(self.damage)

        return pa.RecordBatchReader.from_batches(wanted, batches())

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        test = self._both(filter)
        total = 0
        for dataset, own in self._datasets(test):
            if test is None or self._is_direct(test, own):
                total += dataset.count(test)
            else:
                some = projected(self._schema, [])
                total += sum(batch.num_rows for batch in self._rows(dataset, own, some, test))
        return total

    count_rows = count

    @property
    def format(self) -> str:
        """The declared format of the table; its partitions may have others."""
        return self.definition.format

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if a scan is needed to know it."""
        if self._filter is not None:
            return None
        numbers = [dataset.num_rows for dataset, _ in self._datasets(None)]
        known = [number for number in numbers if number is not None]
        return sum(known) if len(known) == len(numbers) else None

    def splits(
        self,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        *,
        filter: Filter | None = None,
        target_bytes: int | None = None,
    ) -> list[Split]:
        """Unsupported: a split has the columns of its partition, not those of the table."""
        raise self._unsupported("splits")

    def planned(self, split_bytes: int, *, filter: Filter | None = None) -> list[Split]:
        """Unsupported: see `splits`."""
        raise self._unsupported("splits")

    @property
    def found(self) -> list[Any]:
        """Unsupported: each partition has options of its own."""
        raise self._unsupported("found")

    def open_file(self, number: int) -> File:
        """Unsupported: each partition has options of its own."""
        raise self._unsupported("open_file")

    def parts(self, filter: Any = None) -> Iterator[tuple[str, Dataset, Any]]:
        """Unsupported: a file has the columns of its partition, not those of the table."""
        raise self._unsupported("fragments")

    def _unsupported(self, what: str) -> Exception:
        return unsupported(f"{what} of a table of a metastore: scan the directory of a partition instead")

    def _repr_html_(self) -> str:
        return summary_html(self.definition.full_name, [("format", self.format)], self.schema, self._damage)

    def __reduce__(self) -> tuple[Any, ...]:
        return HiveDataset, (self._uris, self.definition, self._locations, self._reading, self._given)

    def __repr__(self) -> str:
        return f"<coldframe.HiveDataset {self.definition.full_name}: {', '.join(self.schema.names[:8])}>"

    def _both(self, filter: Filter | None) -> Any:
        """The table's filter and `filter`, joined by AND."""
        return both(self._filter, parse(filter))

    def _partitions_of(self, test: Any) -> list[PartitionDefinition]:
        table = self.definition
        if not table.has_partitions:
            if table.keys and not table.by_folders:
                raise unsupported(
                    f"{table.full_name}: its partitions are not in the metastore: scan its directory instead"
                )
            return [PartitionDefinition((), table.storage, table.parameters)]
        with connect(self._uris) as metastore:
            names = metastore.partition_names(table)
            values = [values_of(name) for name in names]
            self._check(values)
            some = [names[at] for at in kept(values, self._keys, test, self._schema)]
            _log.info("%s: %d of %d partitions to read", table.full_name, len(some), len(names))
            return list(metastore.partition_definitions(table, some))

    def _check(self, values: Sequence[tuple[str, ...]]) -> None:
        for partition in values:
            if len(partition) != len(self._keys):
                text = (
                    f"expected {len(self._keys)} values of a partition, found {len(partition)}: {partition}"
                )
                raise SchemaError(f"{self.definition.full_name}: {text}")

    def _datasets(self, test: Any) -> Iterator[tuple[Dataset, dict[str, str]]]:
        partitions = self._partitions_of(test)
        reading = self._reading_now()
        for group in self._groups(partitions):
            by_position = self.definition.is_by_position
            lengths = of_length(self.definition.storage.columns)
            yield from group.datasets(
                self._columns, self._keys, reading, by_position=by_position, lengths=lengths
            )

    def _reading_now(self) -> Reading:
        """How files are opened: for a transactional table, with the writes that are committed now."""
        reading, table = self._reading, self.definition
        if not table.is_transactional or OPTION in reading.options:
            return reading
        with connect(self._uris) as metastore:
            writes = metastore.write_ids(table)
        if writes.all_committed:
            return reading
        return replace(reading, options={**reading.options, OPTION: writes.text(table.full_name)})

    def _groups(self, partitions: Sequence[PartitionDefinition]) -> list[Group]:
        table = self.definition
        members = []
        for partition in partitions:
            name = f"{table.full_name} {table.name_of(partition)}".rstrip()
            format = table.format_of(partition.storage)
            if format not in READ:
                raise unsupported(f"{name}: files of {format or 'unknown format'}")
            location = partition.storage.location if table.has_partitions else table.location
            if not location:
                raise unsupported(f"{name}: it has no location")
            partition = replace(partition, storage=table.storage_of(partition))
            members.append((format, partition, self._locations.readable(location)))
        return grouped(members, is_whole=table.is_transactional)

    def _is_direct(self, test: Any, own: Mapping[str, str]) -> bool:
        """Whether a dataset has all columns of a filter under the same names."""
        asked = mentioned(bind(test, self._schema).test, self._schema)
        return all(own.get(name) == name for name in asked)

    def _rows(
        self,
        dataset: Dataset,
        own: Mapping[str, str],
        wanted: pa.Schema,
        test: Any,
        *,
        limit: int | None = None,
        **ways: Any,
    ) -> Iterator[Any]:
        """The rows of some partitions, with the columns of the table."""
        if test is None or self._is_direct(test, own):
            names = [own[name] for name in wanted.names if name in own]
            for batch in dataset.to_batches(names, filter=test, limit=limit, **ways):
                yield _arranged(batch, own, wanted)
            return
        # Some columns of the filter have other names in these files, or are missing: filter afterwards.
        asked = bind(test, self._schema).test
        tested = needed(wanted.names, asked, self._schema)
        whole = projected(self._schema, tested)
        names = [own[name] for name in tested if name in own]
        rows = (_arranged(batch, own, whole) for batch in dataset.to_batches(names, **ways))
        yield from filtered(rows, bind(test, whole).test, wanted, limit)


def _arranged(batch: Any, own: Mapping[str, str], wanted: pa.Schema) -> Any:
    """A batch with the table's columns and names; missing columns are null."""
    if not wanted.names:
        return batch
    columns = [
        batch.column(own[field.name]) if field.name in own else pa.nulls(batch.num_rows, field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
