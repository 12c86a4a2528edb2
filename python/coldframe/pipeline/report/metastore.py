"""Compares the migration with the row counts and formats in a Hive metastore.

Each file is counted for every registered directory above it. If directories of tables are nested, the owner
of the inner files is unknown: a count is right whether or not it includes these files. Discrepancies with a
known cause are not reported here: files that failed or were not read, and damage with an unknown number of
rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.report.model import FileReport
from coldframe.pipeline.source.findings import Finding, Findings, MetastoreReport
from coldframe.pipeline.source.inventory import Inventory, lies_below
from coldframe.pipeline.source.registered import Place, Registered
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.scratch import Rows, Scratch
from coldframe.sources import is_flat, is_remote, open_store, options_for

_STALE = (
    "; the metastore does not claim that its number is accurate (COLUMN_STATS_ACCURATE), and all existing"
    " files were read and verified"
)
_DECODED = ("converted", "salvaged")


@dataclass(frozen=True)
class Tally:
    """The files at and below a directory."""

    path: str = ""
    rows: int = 0
    """Migrated rows."""
    lost: int = 0
    """Rows that damage is known to have lost."""
    is_unsure: bool = False
    """Whether its number of rows cannot be known, which is reported elsewhere."""
    files: int = 0
    """Files in formats that coldframe reads."""
    strange: int = 0
    """Files in other formats."""
    empty: int = 0
    """Files without a byte."""
    formats: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    """The paths of the migrated tables that its files belong to."""
    own_rows: int = 0
    """Migrated rows outside of registered subdirectories."""
    own_lost: int = 0
    own_files: int = 0
    example: str = ""
    """One of the table's files, for messages."""
    is_proven: bool = True
    """Whether all of its files were converted completely, and read back."""

    def plus(self, other: Tally, *, is_own: bool) -> Tally:
        """Adds the contents of a directory; `is_own`: they are in no registered subdirectory."""
        return replace(
            self,
            rows=self.rows + other.rows,
            lost=self.lost + other.lost,
            is_unsure=self.is_unsure or other.is_unsure,
            files=self.files + other.files,
            strange=self.strange + other.strange,
            empty=self.empty + other.empty,
            formats=_union(self.formats, other.formats),
            tables=_union(self.tables, other.tables),
            own_rows=self.own_rows + is_own * other.rows,
            own_lost=self.own_lost + is_own * other.lost,
            own_files=self.own_files + is_own * other.files,
            example=self.example or (other.example if is_own else ""),
            is_proven=self.is_proven and other.is_proven,
        )

    @property
    def has_files(self) -> bool:
        """Whether there are files."""
        return bool(self.files or self.strange or self.empty)


def _union(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return some if set(others) <= set(some) else tuple(sorted({*some, *others}))


class Tallies:
    """The tallies of all registered directories. Add files directory by directory for speed."""

    def __init__(self, places: Iterator[Place]) -> None:
        self._rows: Rows[Tally] = Rows(
            Scratch(),
            lambda tally: tally.path,
            lambda tally: tuple(vars(tally).values()),
            lambda row: Tally(*row),
        )
        for place in places:
            self._rows.append(Tally(place.path))
        self._folder = ""
        self._waiting: Tally | None = None

    def add(self, source: str, tally: Tally) -> None:
        """Adds a file, or a directory that is read as one, by its path below the source's root."""
        folder = source.rpartition("/")[0]
        if self._rows.get(source) is not None:
            folder = source
        if self._waiting is not None and folder != self._folder:
            self._settle()
        before = self._waiting or Tally()
        self._folder, self._waiting = folder, before.plus(tally, is_own=True)

    def of(self, path: str) -> Tally:
        """The tally of a registered directory."""
        self._settle()
        return self._rows.get(path) or Tally(path)

    def _settle(self) -> None:
        if self._waiting is None:
            return
        is_own = True
        for path in _upwards(self._folder):
            tally = self._rows.get(path)
            if tally is not None:
                self._rows.append(tally.plus(self._waiting, is_own=is_own))
                is_own = False
        self._waiting = None


def _upwards(path: str) -> Iterator[str]:
    """A path, and the paths of its parent directories up to the root."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


def compare_run(
    registered: Registered, works: Sequence[TableWork], inventory: Inventory, options: Options
) -> MetastoreReport:
    """Compares at the end of a run. Findings about a migrated table go to its report."""
    tallies = Tallies(registered.each())
    for work in works:
        for file in work.files:
            tallies.add(file.source, _of_report(file, work.table))
    reports = {work.table.path: work.report.metastore for work in works}
    comparison = _Comparison(registered, inventory, options, tallies, reports, counts=True)
    return comparison.run([work.table for work in works])


def compare_preview(
    registered: Registered,
    tables: Sequence[Table],
    inventory: Inventory,
    options: Options,
    findings: dict[str, Findings],
) -> MetastoreReport:
    """Compares what is possible before a run: the existing files and their formats.

    `findings`: the findings of each table, by the table's path.
    """
    tallies = Tallies(registered.each())
    for table in tables:
        for file in table.files:
            formats = (table.reading_of(file).format,)
            tally = Tally(files=1, formats=formats, tables=(table.path,), example=file.relative)
            tallies.add(file.relative, tally)
    return _Comparison(registered, inventory, options, tallies, findings, counts=False).run(tables)


def _format_of(table: Table, source: str) -> str:
    """The format of a file, or the format of its table if the file is gone."""
    if not table.readings or isinstance(table.files, list):
        return table.format
    file = table.files.get(source)
    return "" if file is None else table.reading_of(file).format


def _of_report(file: FileReport, table: Table) -> Tally:
    if file.status == "empty":
        return Tally(empty=1)
    tally = Tally(files=1, tables=(table.path,), example=file.source)
    if file.status not in (*_DECODED, "held"):
        return replace(tally, is_unsure=True, is_proven=False)
    lost = file.rows_lost
    is_unsure = lost is None or file.status == "held"
    format = _format_of(table, file.source)
    formats = (format,) if format else ()
    is_proven = file.status == "converted" and file.verified
    return replace(
        tally,
        rows=file.rows,
        lost=lost or 0,
        is_unsure=is_unsure,
        formats=formats,
        is_proven=is_proven,
    )


class _Comparison:
    """One comparison."""

    def __init__(
        self,
        registered: Registered,
        inventory: Inventory,
        options: Options,
        tallies: Tallies,
        findings: dict[str, Findings],
        *,
        counts: bool,
    ) -> None:
        self._registered, self._report = registered, registered.report
        self._inventory, self._options = inventory, options
        self._tallies, self._findings, self._counts = tallies, findings, counts
        self._asked = bool(inventory.excluded) and options.selection.has_patterns
        """Whether files were excluded as requested: then missing rows are no fault."""
        self._unread = {place.relative for place in inventory.unread}
        self._by_name: dict[str, Findings] = {}
        """Findings on tables that the metastore defines, by its names."""
        self._open: set[str] = set()
        """Tables with a partition without a number of rows."""

    def run(self, tables: Sequence[Table]) -> MetastoreReport:
        """Compares all registered places. `tables`: the tables of the source."""
        self._by_name = {
            table.called: self._findings[table.path] for table in tables if table.declared is not None
        }
        for name, findings in self._registered.findings.items():
            for finding in findings:
                self._by_name[name].add(finding)
        for file in self._inventory.unknown:
            self._tallies.add(file.relative, Tally(strange=1, is_proven=False))
        for file in self._inventory.empty:
            self._tallies.add(file.relative, Tally(empty=1))
        for path in sorted(self._unread):
            self._tallies.add(path, Tally(is_unsure=True, is_proven=False))
        for place in self._registered.places:
            if place.partition and not place.rows:
                self._open.add(place.table)
            tally = self._tallies.of(place.path)
            if self._is_meant(place, tally) and self._has_files(place, tally):
                self._compare_format(place, tally)
                self._compare_rows(place, tally)
        for place in self._registered.wholes:
            tally = self._tallies.of(place.path)
            if self._is_meant(place, tally):
                self._compare_whole(place, tally)
        return self._report

    def _is_meant(self, place: Place, tally: Tally) -> bool:
        """Whether this run should have read the directory: whether that was requested and possible."""
        selection = self._options.selection
        if not selection.enters(place.path):
            return False
        if not tally.has_files and (selection.include or tally.is_unsure):
            return False
        return not lies_below(place.path, self._unread)

    def _has_files(self, place: Place, tally: Tally) -> bool:
        """Whether the directory has files; reports a directory that does not exist or is empty."""
        if tally.has_files:
            return True
        matters = place.is_ours or not place.format
        where = place.location or f"{self._inventory.root}/{place.path}".rstrip("/")
        if not is_flat(where) and not _exists(where, self._options):
            self._add(place, tally, "missing", f"there is no {where}", is_wrong=matters)
        elif matters and place.rows:
            text = f"{place.rows[0]:,} rows by the metastore, but {where} holds no files"
            self._add_rows(place, tally, text)
        elif matters:
            self._add(place, tally, "empty", f"{where} holds no files", is_wrong=False)
        return False

    def _compare_format(self, place: Place, tally: Tally) -> None:
        if tally.formats and place.format and set(tally.formats) != {place.format}:
            text = f"{place.format} by the metastore, {' and '.join(tally.formats)} by its bytes"
            self._add(place, tally, "format", text, is_wrong=False)
        elif place.is_ours and tally.strange and not tally.formats and not tally.is_unsure:
            text = f"{place.format} by the metastore, but {tally.strange:,} files of no known format"
            self._add(place, tally, "format", text)

    def _compare_rows(self, place: Place, tally: Tally) -> None:
        """Compares the row counts of a directory whose rows are all known."""
        if not (self._counts and place.rows and tally.formats) or tally.is_unsure:
            return
        own, own_lost = tally.own_rows, tally.own_lost
        self._compare(place, tally, {tally.rows, tally.rows + tally.lost, own, own + own_lost})

    def _compare(self, place: Place, tally: Tally, numbers: set[int]) -> None:
        self._report.compared += 1
        if numbers.intersection(place.rows):
            self._report.agreed += 1
            return
        expected = place.rows[0]
        text = (
            f"{expected:,} rows by the metastore, {tally.rows:,} migrated from {place.path or 'the source'}"
        )
        text += f"; {tally.lost:,} are known to be lost" if tally.lost else ""
        self._add_rows(place, tally, text)

    def _add_rows(self, place: Place, tally: Tally, text: str) -> None:
        expected, migrated = place.rows[0], tally.rows
        asked = self._asked and migrated < expected
        text += "; files were excluded as requested" if asked else ""
        # If the metastore does not claim accuracy, fully verified files prove the number to be stale.
        stale = not (asked or place.is_accurate) and tally.has_files and tally.is_proven
        text += _STALE if stale else ""
        is_wrong = not (asked or stale)
        self._add(place, tally, "rows", text, expected=expected, migrated=migrated, is_wrong=is_wrong)

    def _compare_whole(self, place: Place, tally: Tally) -> None:
        """Compares a table with partitions."""
        if not tally.has_files:
            self._has_files(replace(place, rows=()), tally)
            return
        if tally.own_files:
            rows = f", {tally.own_rows:,} rows," if self._counts else ""
            text = f"{tally.own_files:,} files{rows} in no registered partition, such as {tally.example}"
            self._add(place, tally, "unregistered", text)
        if place.table in self._registered.scattered or place.table not in self._open:
            return
        if self._counts and place.rows and tally.formats and not tally.is_unsure:
            inner, lost = tally.rows - tally.own_rows, tally.lost - tally.own_lost
            self._compare(place, tally, {tally.rows, tally.rows + tally.lost, inner, inner + lost})

    def _add(
        self,
        place: Place,
        tally: Tally,
        kind: str,
        text: str,
        *,
        expected: int | None = None,
        migrated: int | None = None,
        is_wrong: bool = True,
    ) -> None:
        finding = Finding(kind, place.table, text, place.partition, place.path, expected, migrated, is_wrong)
        known = [self._findings[path] for path in tally.tables if path in self._findings]
        if place.table in self._by_name:
            known = [self._by_name[place.table]]
        for findings in known or [self._report.findings]:
            findings.add(finding)


def _exists(path: str, options: Options) -> bool:
    if not is_remote(path):
        return os.path.lexists(path)
    try:
        return open_store(path, options_for(path, options.source_storage_options)).stat() is not None
    except (ColdframeError, OSError):
        # An error other than "not found" means that the path exists.
        return True
