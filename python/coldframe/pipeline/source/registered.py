"""What a Hive metastore registers below the source: read before anything is converted, kept on disk.

    table without partitions     its location, a number of rows, a format
    partition                    the same
    table with partitions        its location, the number of rows of all partitions

`numRows` is what Hive counted when it wrote, or what a user set; 0 and less mean unknown (Spark's inserts
leave 0). Spark's ANALYZE stores another number, which Hive's inserts do not update: a location may have two
numbers, and matches if either is right. Hive's claim of accuracy is kept with its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coldframe._coldframe import formats
from coldframe.hive.defined import connect
from coldframe.hive.definition import Definition, PartitionDefinition
from coldframe.hive.metadata import claims_to_be_accurate, row_counts
from coldframe.hive.reader import MetastoreRefusal, Refused
from coldframe.pipeline.source.defined import DefinedSource
from coldframe.pipeline.source.findings import Finding, MetastoreReport
from coldframe.pipeline.source.locations import Root
from coldframe.pipeline.source.selection import Selection
from coldframe.pipeline.state.scratch import Rows, Scratch

_KNOWN = frozenset(formats())


@dataclass(frozen=True)
class Place:
    """A location registered below the source."""

    path: str
    """The path relative to the source's root; "" is the root."""
    table: str
    partition: str = ""
    rows: tuple[int, ...] = ()
    """The stated numbers of rows; empty if unknown."""
    is_accurate: bool = False
    """Whether the metastore claims that the numbers are accurate."""
    format: str = ""
    """The format, derived from the input format: one of ours, or the name of the class; empty if unknown."""
    location: str = ""
    """The registered location, if it is not below the source's root."""
    is_migrated: bool = False
    """Whether Spark migrates the place although its format is foreign."""

    @property
    def is_ours(self) -> bool:
        """Whether the table's declared format is a format that is migrated."""
        return self.format in _KNOWN or self.is_migrated


@dataclass
class Registered:
    """All locations, by path."""

    report: MetastoreReport
    places: Rows[Place]
    """Tables without partitions, and partitions."""
    wholes: Rows[Place]
    """Tables with partitions."""
    scattered: set[str] = field(default_factory=set)
    """Tables with a partition outside of the table's own directory."""
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    """Earlier findings on tables, by their names in the metastore."""

    @staticmethod
    def empty(uri: str) -> Registered:
        """An empty collection."""
        scratch = Scratch()
        return Registered(MetastoreReport(uri), _rows(scratch), _rows(scratch))

    def each(self) -> Iterator[Place]:
        """All places."""
        yield from self.places
        yield from self.wholes


def _rows(scratch: Scratch) -> Rows[Place]:
    # Several tables may share a directory.
    return Rows(
        scratch,
        lambda place: f"{place.path}\0{place.table}\0{place.partition}",
        lambda place: tuple(vars(place).values()),
        lambda row: Place(*row),
    )


def registered_of(source: DefinedSource, findings: Mapping[str, Sequence[Finding]]) -> Registered:
    """The locations of a metastore's tables, with earlier findings on these."""
    registered = Registered.empty(source.uris)
    registered.findings = findings
    for finding in source.left_out:
        registered.report.findings.add(finding)
    for table in source.tables:
        registered.report.tables += 1
        definition = table.definition
        if definition.has_partitions:
            rows = row_counts(definition.parameters)
            is_accurate = claims_to_be_accurate(definition.parameters)
            where = table.location or ""
            whole = Place(table.place, table.name, "", rows, is_accurate, definition.format, where)
            registered.wholes.append(whole)
        for part in table.parts:
            registered.report.partitions += bool(part.name)
            if part.is_taken:
                registered.places.append(
                    Place(
                        part.place,
                        table.name,
                        part.name,
                        part.rows,
                        part.is_accurate,
                        part.format,
                        part.location,
                        is_migrated=part.by_spark,
                    )
                )
    return registered


def read_registered(uris: str, source: str, selection: Selection) -> Registered:
    """Reads from a metastore all selected locations below a root (as `file_access.root_of` returns it)."""
    with connect(uris) as metastore:
        tables = (table for database in metastore.databases() for table in metastore.definitions(database))
        return collect(metastore.uri, source, tables, metastore.partitions, selection)


def collect(
    uri: str,
    source: str,
    tables: Iterable[Definition | Refused],
    partitions: Callable[[Definition], Iterable[PartitionDefinition]],
    selection: Selection | None = None,
) -> Registered:
    """The locations of selected tables below the source."""
    scratch = Scratch()
    registered = Registered(MetastoreReport(uri), _rows(scratch), _rows(scratch))
    collector = _Collector(registered, Root(source), partitions, selection or Selection())
    others, other = 0, ""
    for table in tables:
        if isinstance(table, Refused):
            _add_refused(registered, f"{table.database}.{table.name}", table.reason)
            continue
        location = table.location
        if location is not None and not collector.take(table, location):
            others, other = others + 1, location
    if not collector.taken:
        text = "the metastore has no table with files"
        if others:
            text = f"none of its {others:,} tables lies below {source}, but elsewhere, such as {other}"
        registered.report.findings.add(Finding("nothing", "", text))
    return registered


@dataclass
class _Collector:
    """Collects tables and partitions."""

    registered: Registered
    root: Root
    partitions: Callable[[Definition], Iterable[PartitionDefinition]]
    selection: Selection
    taken: int = 0
    """Tables below the source, including tables that were excluded as requested."""

    def take(self, table: Definition, location: str) -> bool:
        """Takes a table if it lies below the source; returns whether it lies there."""
        path = self.root.relative(location)
        if path is None:
            return False
        self.taken += 1
        if self.selection.enters(path):
            self._add(table, path)
        return True

    def _add(self, table: Definition, path: str) -> None:
        name, parameters = table.full_name, table.parameters
        is_accurate = claims_to_be_accurate(parameters)
        place = Place(path, name, "", row_counts(parameters), is_accurate, table.format)
        self.registered.report.tables += 1
        if not table.has_partitions:
            self.registered.places.append(place)
            return
        self.registered.wholes.append(place)
        try:
            self._add_partitions(table, place)
        except MetastoreRefusal as refusal:
            self.registered.scattered.add(name)
            _add_refused(self.registered, name, str(refusal))

    def _add_partitions(self, table: Definition, whole: Place) -> None:
        others, other = 0, ""
        for partition in self.partitions(table):
            self.registered.report.partitions += 1
            path = self.root.relative(partition.storage.location)
            if path is None:
                others, other = others + 1, str(partition.storage.location)
                continue
            if not f"{path}/".startswith(f"{whole.path}/" if whole.path else ""):
                self.registered.scattered.add(whole.table)
            name, kind = table.name_of(partition), table.format_of(partition.storage)
            rows, is_accurate = row_counts(partition.parameters), claims_to_be_accurate(partition.parameters)
            self.registered.places.append(Place(path, whole.table, name, rows, is_accurate, kind))
        if others:
            self.registered.scattered.add(whole.table)
            text = f"{others:,} of its partitions lie outside of the source, such as {other}"
            # With include patterns, it is unknown whether these partitions would have been selected.
            wrong = not self.selection.include
            finding = Finding("elsewhere", whole.table, text, location=other, is_wrong=wrong)
            self.registered.report.findings.add(finding)


def _add_refused(registered: Registered, table: str, reason: str) -> None:
    registered.report.findings.add(Finding("refused", table, reason))
