"""A Hive metastore as the source: the definitions of the tables to migrate.

    sales.orders                              a table, and its place among the sources: sales/orders
      dt=2014-01-01   hdfs://nn/wh/o/1        a partition: sales/orders/dt=2014-01-01/.., wherever it lies
      dt=2014-01-02   s3://cold/x9

Files are identified by these places, which come from the definitions and not from directory names. Each
partition has its own format, SerDe, columns and location. A table whose files may belong to another table,
and a partition that cannot be read, are reported and not migrated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase

from coldframe._coldframe import parse_columns
from coldframe.errors import SchemaError, unsupported
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import READ, connect, definitions
from coldframe.hive.definition import Definition, PartitionDefinition, in_hive
from coldframe.hive.locations import Locations
from coldframe.hive.metadata import claims_to_be_accurate, stated_rows
from coldframe.hive.reader import DefinitionReader
from coldframe.hive.tables import MetastoreRefusal, Refused
from coldframe.hive.write_ids import WriteIds
from coldframe.partitions import escaped, folder_of
from coldframe.pipeline.records import Json
from coldframe.pipeline.source.defined_readings import Readings, why_not_read
from coldframe.pipeline.source.findings import Finding
from coldframe.pipeline.source.foreign_formats import why_not_by_spark
from coldframe.pipeline.source.ownership import Claims
from coldframe.pipeline.source.reading import Reading
from coldframe.pipeline.source.storage_handlers import advice, handled

__all__ = ["DefinedSource", "Part", "TakenTable", "read_defined"]


@dataclass(frozen=True)
class Part:
    """A partition, or a table without such: files that are read alike."""

    place: str
    """Where its files stand among the sources: `sales/orders/dt=2014-01-01`."""
    location: str
    """A readable path or URL."""
    name: str
    """The partition's, for people; empty of a table without partitions."""
    format: str
    """By the metastore: one of ours, or the name of a class."""
    rows: tuple[int, ...] = ()
    """The numbers of rows that the metastore states."""
    is_accurate: bool = False
    """Whether the metastore claims that they are accurate."""
    readings: Mapping[str, int] = field(default_factory=dict)
    """How its files are read, by the format of their bytes. Empty if nothing of it is migrated."""
    directories: Mapping[str, int] = field(default_factory=dict)
    """As `readings`, for directories that are read as one."""
    by_spark: bool = False
    """Whether Spark reads its directory, which is taken as a whole."""
    keys: tuple[str, ...] = ()
    """Partition keys whose values are in the names of the folders below, as partitions are not registered."""

    @property
    def is_taken(self) -> bool:
        """Whether anything of it is migrated."""
        return bool(self.readings or self.directories)

    @property
    def is_walked(self) -> bool:
        """Whether its files are looked for one by one."""
        return self.is_taken and not self.by_spark


@dataclass(frozen=True)
class TakenTable:
    """A table that is migrated."""

    definition: Definition
    parts: tuple[Part, ...] = field(repr=False)
    readings: tuple[Reading, ...]
    findings: tuple[Finding, ...] = ()
    """The parts of it that are not migrated."""
    location: str | None = None
    """Its own, readable."""
    writes: WriteIds | None = None
    """Those of a transactional table that the metastore knows."""
    is_handled: bool = False
    """Whether it is a table of another system, in a directory that may have others: see `handled`."""

    @property
    def name(self) -> str:
        """`database.table`."""
        return self.definition.full_name

    @property
    def place(self) -> str:
        """Where its files stand among the sources."""
        return place_of(self.definition.database, self.definition.name)


@dataclass
class DefinedSource:
    """What the metastore says of the selected tables."""

    uri: str
    """The address as the user wrote it."""
    uris: str
    """The address of the metastore alone."""
    tables: list[TakenTable] = field(default_factory=list)
    left_out: list[Finding] = field(default_factory=list)
    claims: Claims = field(default_factory=Claims)
    not_meant: set[str] = field(default_factory=set)
    """The places of tables that are not taken."""
    kept: list[Json] = field(default_factory=list)
    """The definitions that were used, as they are written down in the destination."""

    @property
    def definitions(self) -> dict[str, Definition]:
        """Those of the tables that are taken, by their names."""
        return {table.name: table.definition for table in self.tables}


def place_of(database: str, table: str = "") -> str:
    """Where the files of a table, or of all of a database, stand among the sources."""
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
    """Reads the tables of the address; where there are patterns `db.table`, those that match one.

    `others_by_spark`: formats that are not ours are taken, too.

    Raises UnsupportedError where no table can be taken.
    """
    selected = Selected.of(uri)
    found = DefinedSource(uri, selected.uris)
    with connect(selected.uris) as metastore:
        locations = Locations(moved or {})
        _Reader(metastore, found, locations, selected, patterns, others_by_spark).read()
    if not found.tables:
        reasons = "; ".join(map(str, found.left_out[:3])) or "no such tables"
        raise unsupported(f"{uri}: a migration of none of its tables: {reasons}")
    return found


@dataclass
class _Reader:
    """Reads all definitions, since a table that is not selected may use the same files."""

    metastore: DefinitionReader
    found: DefinedSource
    locations: Locations
    selected: Selected
    patterns: Sequence[str]
    others_by_spark: bool
    matched: set[str] = field(default_factory=set)

    def read(self) -> None:
        taken: list[tuple[TakenTable, Json]] = []
        for one in definitions(self.metastore, Selected(self.selected.uris)):
            name = f"{one.database}.{one.name}"
            is_meant = self._is_meant(one, name)
            try:
                if isinstance(one, Refused):
                    raise _LeftOut(one.reason)
                partitions = self._partitions(one, is_meant)
                if is_meant:
                    taken.append(self._taken(one, partitions))
            except (_LeftOut, MetastoreRefusal, SchemaError) as reason:
                self._leave_out(one, str(reason), is_meant=is_meant)
            if not is_meant:
                self.found.not_meant.add(_place_of(one))
        for table, kept in taken:
            shared = self._shared(table)
            if shared is None:
                self.found.tables.append(table)
                self.found.kept.append(kept)
            else:
                self._leave_out(table.definition, shared, is_meant=True)
        for pattern in self.patterns:
            if pattern not in self.matched:
                self.found.left_out.append(Finding("nothing", pattern, "no table of the metastore matches"))

    def _leave_out(self, one: Definition | Refused, reason: str, *, is_meant: bool) -> None:
        """`is_meant`: whether it was selected; others are only reported, since their files are unknown."""
        text = f"left out: {reason}" if is_meant else f"where its files lie is not known: {reason}"
        database, table = one.database, one.name
        is_wrong = is_meant and not (isinstance(one, Definition) and one.is_view)
        finding = Finding("left out", f"{database}.{table}", text, is_wrong=is_wrong)
        self.found.left_out.append(finding)
        self.found.not_meant.add(place_of(database, "" if table == "*" else table))

    def _is_meant(self, one: Definition | Refused, name: str) -> bool:
        # Hive's names are the same in any case.
        matching = [pattern for pattern in self.patterns if fnmatchcase(name.lower(), pattern.lower())]
        self.matched.update(matching)
        if self.patterns and not matching:
            return False
        if isinstance(one, Refused) and (one.name == "*" or not self.selected.is_single):
            # The server refuses a whole database, or a table that the pattern may mean.
            return self.selected.takes_database(one.database)
        return self.selected.takes(one.database, one.name)

    def _partitions(self, table: Definition, is_meant: bool) -> list[PartitionDefinition]:
        """The partitions of a table that is meant. The places of all files of a table are claimed."""
        if not table.has_partitions:
            for location in _own_locations(table):
                self.found.claims.add(self.locations.readable(location), table.full_name)
            return []
        if not is_meant:
            for brief in self.metastore.partitions(table):
                if brief.location:
                    self.found.claims.add(self.locations.readable(brief.location), table.full_name)
            return []
        found = list(self.metastore.partition_definitions(table))
        for one in found:
            if one.storage.location:
                self.found.claims.add(self.locations.readable(one.storage.location), table.full_name)
        return found

    def _taken(self, table: Definition, partitions: Sequence[PartitionDefinition]) -> tuple[TakenTable, Json]:
        """Raises _LeftOut or SchemaError where nothing of a table can be taken."""
        behind = handled(table, self.locations)
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
        left_out = [one for one in findings if one.kind == "left out"]
        if left_out and not any(part.is_taken for part in parts):
            raise _LeftOut(left_out[0].text.removeprefix("left out: "))
        made = TakenTable(table, tuple(parts), tuple(readings.all), tuple(findings), own, writes)
        return made, _kept(table, partitions)

    def _writes(self, table: Definition, findings: list[Finding]) -> WriteIds | None:
        """Which writes of a transactional table count. Open ones, and what is not known, go to `findings`."""
        if not table.is_transactional:
            return None
        try:
            found = self.metastore.write_ids(table)
        except MetastoreRefusal as refusal:
            text = f"which writes count is not known, and all were migrated: {refusal}"
            findings.append(Finding("writes", table.full_name, text))
            return None
        if found.open:
            text = f"{len(found.open):,} writes are open: their rows are not migrated"
            findings.append(Finding("writes", table.full_name, text))
        return found

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
        for one in [*whole, *partitions]:
            name, location = table.name_of(one), table.location if whole else one.storage.location
            keys = () if table.has_partitions else tuple(key.name for key in table.keys)
            if len(one.values) + len(keys) != len(table.keys):
                raise _LeftOut(f"its partition {one.values} has not one value for each of its keys")
            where = self.locations.readable(location or "")
            format = table.format_of(one.storage)
            reason = why_not_read(table, one, format) if location else "it has no location"
            by_spark = self.others_by_spark and format not in READ and bool(location)
            if by_spark:
                reason = "its partitions are not in the metastore" if keys else why_not_by_spark(table, one)
            if reason is not None:
                findings.append(
                    Finding("left out", table.full_name, f"left out: {reason}", name, location=where)
                )
                of_it: dict[str, int] = {}
                directories: dict[str, int] = {}
            elif by_spark:
                of_it = {}
                directories = readings.by_spark(one, format)
            else:
                of_it = readings.of(one.storage, format)
                directories = readings.of_directories(one.storage, format)
            folder = folder_of((key.name for key in table.keys), one.values)
            yield Part(
                f"{place}/{folder}" if folder else place,
                where,
                name,
                format,
                stated_rows(one.parameters),
                claims_to_be_accurate(one.parameters),
                of_it,
                directories,
                by_spark and bool(directories),
                keys,
            )

    def _shared(self, table: TakenTable) -> str | None:
        """Why its files may not be its own alone; None if they are."""
        for part in table.parts:
            others = self.found.claims.others(part.location, table.name) if part.location else iter(())
            # A table without partitions may have claimed several places.
            other = next((name for name in others if name != table.name or part.name), None)
            if other == table.name:
                return f"the files of its partition {part.name} at {part.location} may be those of another"
            if other is not None:
                whose = f"those of its partition {part.name}" if part.name else "its files"
                return f"{whose} at {part.location} may be those of {other}"
        return None


def _place_of(one: Definition | Refused) -> str:
    return place_of(one.database, "" if one.name == "*" else one.name)


def _own_locations(table: Definition) -> set[str]:
    """Where a table without registered partitions has, or may have, files."""
    # Storage handlers and Spark may use a location differently; it still is the table's.
    return {one for one in (table.location, table.storage.location) if one}


def _kept(table: Definition, partitions: Sequence[PartitionDefinition]) -> Json:
    """A definition as it is written down; a partition repeats no columns that are the table's."""
    columns = table.storage.columns

    def short(part: PartitionDefinition) -> PartitionDefinition:
        same = part.storage.columns == columns
        return replace(part, storage=replace(part.storage, columns=())) if same else part

    return {**asdict(table), "partitions": [asdict(short(part)) for part in partitions]}
