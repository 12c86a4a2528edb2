"""A Hive metastore as the source: the definitions of the tables to migrate.

    sales.orders                              a table, and its place among the sources: sales/orders
      dt=2014-01-01   hdfs://nn/wh/o/1        a partition: sales/orders/dt=2014-01-01/.., wherever it lies
      dt=2014-01-02   s3://cold/x9

Files are identified by these places, which come from the definitions and not from directory names. Each
partition has its own format, SerDe, columns and location. A table whose files may belong to another table,
and a partition that cannot be read, are reported and not migrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase

from coldframe._coldframe import escaped, folder_of, parse_columns
from coldframe.errors import SchemaError, unsupported
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import READ, connect, definitions
from coldframe.hive.definition import Definition, PartitionDefinition, in_hive
from coldframe.hive.locations import Locations
from coldframe.hive.metadata import claims_to_be_accurate, row_counts
from coldframe.hive.reader import DefinitionReader, MetastoreRefusal, Refused
from coldframe.hive.write_ids import WriteIds
from coldframe.pipeline.records import Json
from coldframe.pipeline.source.defined_readings import Readings, why_not_read
from coldframe.pipeline.source.findings import Finding
from coldframe.pipeline.source.foreign_formats import why_not_by_spark
from coldframe.pipeline.source.ownership import Claims
from coldframe.pipeline.source.reading import Reading
from coldframe.pipeline.source.storage_handlers import advice, handled_table, hudi_table


@dataclass(frozen=True)
class Part:
    """A partition, or a table without partitions: files with the same reading."""

    place: str
    """The path of the partition's files among the sources: `sales/orders/dt=2014-01-01`."""
    location: str
    """The location, as a path or URL that can be read."""
    name: str
    """The partition's name for people; empty for a table without partitions."""
    format: str
    """The format in the metastore: one of ours, or the name of a class."""
    rows: tuple[int, ...] = ()
    """The row counts that the metastore states."""
    is_accurate: bool = False
    """Whether the metastore claims that the counts are accurate."""
    readings: Mapping[str, int] = field(default_factory=dict)
    """The readings of its files, by the format of their bytes. Empty if the part is not migrated."""
    directories: Mapping[str, int] = field(default_factory=dict)
    """As `readings`, for directories that are read as a whole."""
    by_spark: bool = False
    """Whether Spark reads the table's directory as a whole."""
    keys: tuple[str, ...] = ()
    """For unregistered partitions: the partition keys, whose values are in the names of the folders below."""

    @property
    def is_taken(self) -> bool:
        """Whether any files of this part are migrated."""
        return bool(self.readings or self.directories)

    @property
    def is_walked(self) -> bool:
        """Whether the part's directory is walked for files."""
        return self.is_taken and not self.by_spark


@dataclass(frozen=True)
class TakenTable:
    """A table that is migrated."""

    definition: Definition
    parts: tuple[Part, ...] = field(repr=False)
    readings: tuple[Reading, ...]
    findings: tuple[Finding, ...] = ()
    """Findings on the parts of the table that are not migrated."""
    location: str | None = None
    """The table's readable location."""
    writes: WriteIds | None = None
    """For a transactional table: the writes that the metastore knows."""
    is_handled: bool = False
    """Whether it is a table of another system, whose directory may have other tables: see `handled_table`."""

    @property
    def name(self) -> str:
        """`database.table`."""
        return self.definition.full_name

    @property
    def place(self) -> str:
        """The path of the table's files among the sources."""
        return place_of(self.definition.database, self.definition.name)


@dataclass
class DefinedSource:
    """The metastore's definitions of the selected tables."""

    uri: str
    """The address as the user wrote it."""
    uris: str
    """The address of the metastore alone."""
    tables: list[TakenTable] = field(default_factory=list)
    left_out: list[Finding] = field(default_factory=list)
    claims: Claims = field(default_factory=Claims)
    not_meant: set[str] = field(default_factory=set)
    """The places of tables that are not taken."""
    iceberg: list[Definition] = field(default_factory=list)
    """The Iceberg tables of the whole metastore."""
    kept: list[Json] = field(default_factory=list)
    """The definitions that were used, in the form of the destination's record."""

    @property
    def partitions(self) -> dict[str, frozenset[str]]:
        """The names of the partitions of the migrated tables, as the metastore writes them, by table."""
        return {
            table.name: frozenset(part.place.removeprefix(f"{table.place}/") for part in table.parts)
            for table in self.tables
        }

    @property
    def definitions(self) -> dict[str, Definition]:
        """The definitions of the migrated tables, by name."""
        return {table.name: table.definition for table in self.tables}


def matching(name: str, patterns: Sequence[str]) -> list[str]:
    """The patterns that a table's name matches. Hive ignores the case of names."""
    return [pattern for pattern in patterns if fnmatchcase(name.lower(), pattern.lower())]


def place_of(database: str, table: str = "") -> str:
    """The path of a table's files, or of a whole database's, among the sources."""
    return "/".join(escaped(name) for name in (database, table) if name)


class _LeftOut(Exception):
    """Why a table is left out."""


def read_defined(
    uri: str,
    patterns: Sequence[str] = (),
    moved: Mapping[str, str] | None = None,
    *,
    others_by_spark: bool = False,
) -> DefinedSource:
    """Reads the tables of an address; with patterns `db.table`, only the matching tables.

    `others_by_spark`: also takes foreign formats.

    Raises UnsupportedError if no table can be taken.
    """
    selected = Selected.of(uri)
    source = DefinedSource(uri, selected.uris)
    with connect(selected.uris) as metastore:
        locations = Locations(moved or {})
        _Reader(metastore, source, locations, selected, patterns, others_by_spark).read()
    if not source.tables:
        reasons = "; ".join(map(str, source.left_out[:3])) or "no such tables"
        raise unsupported(f"{uri}: none of its tables can be migrated: {reasons}")
    return source


@dataclass
class _Reader:
    """Reads all definitions, since a table that is not selected may use the same files."""

    metastore: DefinitionReader
    source: DefinedSource
    locations: Locations
    selected: Selected
    patterns: Sequence[str]
    others_by_spark: bool
    matched: set[str] = field(default_factory=set)
    of_hudi: set[str] = field(default_factory=set)
    """Hudi tables: several definitions may show one table, in different views."""

    def read(self) -> None:
        taken: list[tuple[TakenTable, Json]] = []
        for definition in definitions(self.metastore, Selected(self.selected.uris)):
            name = f"{definition.database}.{definition.name}"
            if isinstance(definition, Definition) and definition.is_iceberg:
                self.source.iceberg.append(definition)
            is_meant = self._is_meant(definition, name)
            try:
                if isinstance(definition, Refused):
                    raise _LeftOut(definition.reason)
                partitions = self._partitions(definition, is_meant)
                if is_meant:
                    taken.append(self._taken(definition, partitions))
            except (_LeftOut, MetastoreRefusal, SchemaError) as reason:
                self._leave_out(definition, str(reason), is_meant=is_meant)
            if not is_meant:
                self.source.not_meant.add(_place_of(definition))
        for table, kept in taken:
            shared = self._shared(table)
            if shared is None:
                self.source.tables.append(table)
                self.source.kept.append(kept)
            else:
                self._leave_out(table.definition, shared, is_meant=True)
        for pattern in self.patterns:
            if pattern not in self.matched:
                self.source.left_out.append(Finding("nothing", pattern, "no table of the metastore matches"))

    def _leave_out(self, definition: Definition | Refused, reason: str, *, is_meant: bool) -> None:
        """Records a left-out table. `is_meant`: whether it was selected; other tables are only reported,
        since their files are unknown.
        """
        text = f"left out: {reason}" if is_meant else f"the location of its files is unknown: {reason}"
        database, table = definition.database, definition.name
        is_wrong = is_meant and not (isinstance(definition, Definition) and definition.is_view)
        finding = Finding("left out", f"{database}.{table}", text, is_wrong=is_wrong)
        self.source.left_out.append(finding)
        self.source.not_meant.add(place_of(database, "" if table == "*" else table))

    def _is_meant(self, definition: Definition | Refused, name: str) -> bool:
        patterns = matching(name, self.patterns)
        self.matched.update(patterns)
        if self.patterns and not patterns:
            return False
        if isinstance(definition, Refused) and (definition.name == "*" or not self.selected.is_single):
            # The server refuses a whole database, or a table that may match the pattern.
            return self.selected.takes_database(definition.database)
        return self.selected.takes(definition.database, definition.name)

    def _partitions(self, table: Definition, is_meant: bool) -> list[PartitionDefinition]:
        """The partitions of a selected table. Claims the locations of a table's files, for any table."""
        if table.hudi_view is not None:
            self.of_hudi.add(table.full_name)
        if not table.has_partitions:
            for location in _own_locations(table):
                self.source.claims.add(self.locations.readable(location), table.full_name)
            return []
        if not is_meant:
            self._claim(table, self.metastore.partitions(table))
            return []
        partitions = list(self.metastore.partition_definitions(table))
        self._claim(table, partitions)
        return partitions

    def _claim(self, table: Definition, partitions: Iterable[PartitionDefinition]) -> None:
        for partition in partitions:
            if partition.storage.location:
                self.source.claims.add(self.locations.readable(partition.storage.location), table.full_name)

    def _taken(self, table: Definition, partitions: Sequence[PartitionDefinition]) -> tuple[TakenTable, Json]:
        """Raises _LeftOut or SchemaError if nothing of a table can be taken."""
        behind = hudi_table(table, self.locations) or handled_table(table, self.locations)
        if behind is not None:
            place, root = place_of(table.database, table.name), behind.root
            part = Part(place, root, "", behind.reading.format, directories={behind.reading.format: 0})
            return TakenTable(table, (part,), (behind.reading,), (), root, is_handled=True), _kept(table, ())
        if table.left_out is not None:
            raise _LeftOut(f"{table.left_out}{advice(table)}")
        if table.keys and not (table.has_partitions or table.by_folders):
            raise _LeftOut("its partitions are not in the metastore")
        # Report an unsupported type once, here, rather than for each file.
        parse_columns(in_hive(table.storage.columns))
        parse_columns(in_hive(table.keys), partitions=True)
        findings: list[Finding] = []
        writes = self._writes(table, findings)
        readings = Readings(table, writes)
        parts = list(self._parts(table, partitions, readings, findings))
        own = self.locations.readable(table.location) if table.location else None
        left_out = [finding for finding in findings if finding.kind == "left out"]
        if left_out and not any(part.is_taken for part in parts):
            raise _LeftOut(left_out[0].text.removeprefix("left out: "))
        made = TakenTable(table, tuple(parts), tuple(readings.all), tuple(findings), own, writes)
        return made, _kept(table, partitions)

    def _writes(self, table: Definition, findings: list[Finding]) -> WriteIds | None:
        """The valid writes of a transactional table; None if unknown. Reports open writes in `findings`."""
        if not table.is_transactional:
            return None
        try:
            writes = self.metastore.write_ids(table)
        except MetastoreRefusal as refusal:
            text = f"the valid writes are unknown, so all were migrated: {refusal}"
            findings.append(Finding("writes", table.full_name, text))
            return None
        if writes.open:
            text = f"{len(writes.open):,} writes are open: their rows are not migrated"
            findings.append(Finding("writes", table.full_name, text))
        return writes

    def _parts(
        self,
        table: Definition,
        partitions: Sequence[PartitionDefinition],
        readings: Readings,
        findings: list[Finding],
    ) -> Iterator[Part]:
        """Parts that cannot be migrated are reported in `findings`."""
        place = place_of(table.database, table.name)
        whole = [] if table.has_partitions else [PartitionDefinition((), table.storage, table.parameters)]
        for partition in [*whole, *partitions]:
            name, location = table.name_of(partition), table.location if whole else partition.storage.location
            keys = () if table.has_partitions else tuple(key.name for key in table.keys)
            if len(partition.values) + len(keys) != len(table.keys):
                raise _LeftOut(f"a partition has the values {partition.values}, but {len(table.keys)} keys")
            where = self.locations.readable(location or "")
            format = table.format_of(partition.storage)
            reason = why_not_read(table, partition, format) if location else "it has no location"
            by_spark = self.others_by_spark and format not in READ and bool(location)
            if by_spark:
                reason = (
                    "its partitions are not in the metastore" if keys else why_not_by_spark(table, partition)
                )
            if reason is not None:
                findings.append(
                    Finding("left out", table.full_name, f"left out: {reason}", name, location=where)
                )
                of_it: dict[str, int] = {}
                directories: dict[str, int] = {}
            elif by_spark:
                of_it = {}
                directories = readings.by_spark(partition, format)
            else:
                storage = table.storage_of(partition)
                of_it = readings.of(storage, format)
                directories = readings.of_directories(storage, format)
            folder = folder_of((key.name for key in table.keys), partition.values)
            yield Part(
                f"{place}/{folder}" if folder else place,
                where,
                name,
                format,
                row_counts(partition.parameters),
                claims_to_be_accurate(partition.parameters),
                of_it,
                directories,
                by_spark and bool(directories),
                keys,
            )

    def _shared(self, table: TakenTable) -> str | None:
        """Why other tables may share a table's files; None if no other table shares them."""
        for part in table.parts:
            others = self.source.claims.others(part.location, table.name) if part.location else iter(())
            if table.name in self.of_hudi:
                others = (name for name in others if name not in self.of_hudi)
            # A table without partitions may have claimed several locations.
            other = next((name for name in others if name != table.name or part.name), None)
            if other == table.name:
                return f"the files of its partition {part.name} at {part.location} may be those of another"
            if other is not None:
                files = f"the files of its partition {part.name}" if part.name else "its files"
                return f"{files} at {part.location} may be those of {other}"
        return None


def _place_of(definition: Definition | Refused) -> str:
    return place_of(definition.database, "" if definition.name == "*" else definition.name)


def _own_locations(table: Definition) -> set[str]:
    """The locations where a table without registered partitions may have files."""
    # Storage handlers and Spark may use the location differently, but it still belongs to the table.
    return {location for location in (table.location, table.storage.location) if location}


def _kept(table: Definition, partitions: Sequence[PartitionDefinition]) -> Json:
    """A definition for the destination's record; a partition does not repeat the table's columns."""
    columns = table.storage.columns

    def short(part: PartitionDefinition) -> PartitionDefinition:
        same = part.storage.columns == columns
        return replace(part, storage=replace(part.storage, columns=())) if same else part

    return {**asdict(table), "partitions": [asdict(short(part)) for part in partitions]}
