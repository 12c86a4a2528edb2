"""A table as a Hive metastore defines it, partition by partition.

    metastore: names of the partitions  ->  pruned by their values  ->  definitions of the rest
    definitions  ->  `coldframe::metastore` in Rust: format, SerDe, columns and files of each partition

Partitions that a filter rules out cost no further request to the metastore or the file system.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coldframe._coldframe import RawDataset, matching_rows, partition_values
from coldframe.arguments import Keys, OpenArguments, check_plain
from coldframe.arrow import pa
from coldframe.errors import unsupported
from coldframe.file import File
from coldframe.filters import Bound, Filter, bind, both, parse
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import connect
from coldframe.hive.definition import Definition, PartitionDefinition, columns_of, keys_of
from coldframe.hive.locations import Locations
from coldframe.hive.write_ids import OPTION
from coldframe.logs import step
from coldframe.notebook import summary_html
from coldframe.partition_pruning import matching
from coldframe.scanning import Dataset
from coldframe.sources import with_filesystem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from coldframe.keywords import OpenOptions

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

    A Hudi table is read by its own timeline, with its own columns: the metastore only says where it is, and
    whether it is shown with its logs.
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
    given: dict[str, Any] = {**options}
    storage_options = with_filesystem(storage_options, filesystem)
    arguments = OpenArguments(None, storage_options, verify_checksums, keys, given)
    kind = HiveDataset if definition.hudi_view is None else HudiDataset
    return kind(selected.uris, definition, Locations(location or {}), arguments, filter)


class HiveDataset(Dataset):
    """A table that a Hive metastore defines, created by `coldframe.hive_table`.

    Anything that accepts Arrow streams accepts it. Every pass asks the metastore for the partitions again.
    """

    def __init__(
        self,
        uris: str,
        definition: Definition,
        locations: Locations,
        arguments: OpenArguments,
        filter: Filter | None = None,
    ) -> None:
        # Dataset.__init__ is not called: each pass finds its own files, by its filter.
        check_plain(arguments.options, "a table of a Hive metastore")
        self.definition = definition
        self._given = filter
        self._uris, self._locations, self._arguments = uris, locations, arguments
        unit = str(arguments.options.get("timestamp_unit", "ns"))
        self._keys = keys_of(definition.keys)
        self._schema = pa.schema([*columns_of(definition.storage.columns, unit), *self._keys])
        self._damage = []
        self._objects = {}
        self._label = definition.full_name
        self._filter = parse(filter)
        if self._filter is not None:
            bind(self._filter, self._schema)

    @property
    def partition_columns(self) -> list[str]:
        """The columns whose values the metastore stores for each partition."""
        return list(self._keys.names)

    def partitions(self, filter: Filter | None = None) -> list[PartitionDefinition]:
        """The partitions that the filter does not rule out; a table without partitions counts as one."""
        return self._partitions_of(self._bound(filter))

    @property
    def format(self) -> str:
        """The declared format of the table; its partitions may have others."""
        return self.definition.format

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if a scan is needed to know it."""
        return None if self._filter is not None else super().num_rows

    @property
    def found(self) -> list[Any]:
        """The table itself, whose passes find its files."""
        return [self]

    def open_file(self, number: int) -> File:
        """Unsupported: a file alone has the columns of its partition, not those of the table."""
        raise unsupported("opening a file of a table of a metastore: use coldframe.open with its path")

    def parts(self, filter: Any = None) -> Iterator[tuple[str, Dataset, Any]]:
        """Unsupported: see `open_file`."""
        raise unsupported("fragments of a table of a metastore")

    def _repr_html_(self) -> str:
        return summary_html(self.definition.full_name, [("format", self.format)], self.schema, self._damage)

    def __reduce__(self) -> tuple[Any, ...]:
        return HiveDataset, (self._uris, self.definition, self._locations, self._arguments, self._given)

    def __repr__(self) -> str:
        return f"<coldframe.HiveDataset {self.definition.full_name}: {', '.join(self.schema.names[:8])}>"

    def _bound(self, filter: Filter | None) -> Bound:
        """The table's filter and `filter`, joined by AND."""
        test = both(self._filter, parse(filter))
        return Bound(None) if test is None else bind(test, self.schema)

    def _raw_for(self, bound: Bound) -> RawDataset:
        partitions = self._partitions_of(bound)
        has_own = self.definition.has_partitions
        locations = [
            partition.storage.location if has_own else self.definition.location for partition in partitions
        ]
        with step(_log, logging.INFO, "finding the files of %s", self._label) as notes:
            table = RawDataset.of_hive(
                self._arguments_now().raw,
                self.definition,
                partitions,
                [self._locations.readable(location) if location else "" for location in locations],
                storage_options=self._arguments.storage_options,
            )
            notes.append(f"{len(partitions)} partitions, {len(table)} files")
        return table

    def _partitions_of(self, bound: Bound) -> list[PartitionDefinition]:
        table = self.definition
        if not table.has_partitions:
            if table.keys and not table.by_folders:
                raise unsupported(
                    f"{table.full_name}: its partitions are not in the metastore: scan its directory instead"
                )
            return [PartitionDefinition((), table.storage, table.parameters)]
        with connect(self._uris) as metastore:
            names = metastore.partition_names(table)
            some = [names[at] for at in self._kept(names, bound)]
            _log.info("%s: %d of %d partitions to read", table.full_name, len(some), len(names))
            return list(metastore.partition_definitions(table, some))

    def _kept(self, names: Sequence[str], bound: Bound) -> Sequence[int]:
        """The numbers of the partitions that a filter does not rule out."""
        values = pa.record_batch(partition_values(self._label, names, self.definition.keys))
        if bound.predicate is not None:
            return matching_rows(bound.predicate, self._schema, values)
        if bound.residual is not None:
            return matching(bound.residual, values, self._schema)
        return range(len(names))

    def _arguments_now(self) -> OpenArguments:
        """How files are opened: for a transactional table, with the writes that are committed now."""
        arguments, table = self._arguments, self.definition
        if not table.is_transactional or OPTION in arguments.options:
            return arguments
        with connect(self._uris) as metastore:
            writes = metastore.write_ids(table)
        if writes.all_committed:
            return arguments
        return arguments.with_options({OPTION: writes.text(table.full_name)})


class HudiDataset(HiveDataset):
    """A Hudi table that a metastore defines: its timeline says which files count, and has the columns."""

    def __init__(
        self,
        uris: str,
        definition: Definition,
        locations: Locations,
        arguments: OpenArguments,
        filter: Filter | None = None,
    ) -> None:
        given = {"view": definition.hudi_view, **arguments.options}
        # Hudi's columns have units of their own.
        given.pop("timestamp_unit", None)
        place = locations.readable(definition.location or "")
        opening = replace(arguments, format=definition.format, options=given)
        Dataset.__init__(self, [(place, [], None)], opening, partitioned=False)
        self.definition, self._label, self._given = definition, definition.full_name, filter
        self._uris, self._locations, self._original = uris, locations, arguments
        self._filter = parse(filter)
        if self._filter is not None:
            bind(self._filter, self.schema)

    @property
    def partition_columns(self) -> list[str]:
        """None: the partition columns of a Hudi table are columns of its files."""
        return []

    def partitions(self, filter: Filter | None = None) -> list[PartitionDefinition]:
        """Unsupported: the table's timeline lists its partitions, not the metastore."""
        raise unsupported("partitions of a Hudi table of a metastore: its timeline lists them")

    def __reduce__(self) -> tuple[Any, ...]:
        return HudiDataset, (self._uris, self.definition, self._locations, self._original, self._given)

    def _raw_for(self, bound: Bound) -> RawDataset:
        return self._raw
