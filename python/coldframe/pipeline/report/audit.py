"""`coldframe audit DST`: compares a target with the records of its migration, at any later time.

    missing     a file does not exist
    resized     a file has another length
    altered     a file has the same length, but another checksum (SHA-256 of the whole file)
    miscounted  a file states another number of rows than was verified
    unlike      (--deep) a file's rows have another fingerprint than the verified rows
    unlisted    the Delta or Iceberg table no longer lists a file
    deleted     the table lists a file, but hides some or an unknown number of its rows
    foreign     the migration did not write a file in the table's directory (Delta and Iceberg: a file that
                the table lists)
    line        (--before-delete) a line of the list no longer matches its source
    table       a Delta or Iceberg table whose log or metadata is gone, unreadable, or lacks columns

Without a journal there is nothing to compare with, and without a log there is no table: both are faults.

The audit only reads; it may run beside a migration, and needs neither Spark nor the source.
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

import coldframe
from coldframe._coldframe import ColdframeError, RawFingerprint
from coldframe.pipeline.file_access import StorageOptions, reading, sha256
from coldframe.pipeline.records import Committed, Json, Part, describe
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.files import last_run
from coldframe.pipeline.report.safe_list import SafeList
from coldframe.pipeline.report.table_check import TableCheck, check_table
from coldframe.pipeline.report.verdict import Failed, Reason, Verdict, judge_audit
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.sinks import Sink
from coldframe.pipeline.sink.targets import find_target
from coldframe.pipeline.state.journal import STATE, State
from coldframe.pipeline.work.convert import as_stored, fingerprint

_THREADS = 4
KIND_OF_FAULT = {
    "missing": "missing",
    "foreign": "foreign",
    "line": "line",
    "table": "",
    "deleted": "",
    "unlisted": "",
}
"""The verdict's kind for each kind of fault; all other faults are `altered`. Faults with an empty kind are
reasons about a whole table, not about a file.
"""
_KINDS = {"resized": "resized", "replaced": "altered"}
"""The kinds of faults for kinds of differences."""


@dataclass(frozen=True)
class Fault:
    """A deviation from what was verified."""

    file: str
    """The file's path, relative to the target's root."""
    kind: str
    reason: str
    source: str | None = None
    """The source of the file."""


@dataclass
class Audit:
    """The outcome of an audit."""

    root: str
    files: int = 0
    rows: int = 0
    bytes: int = 0
    unverified: int = 0
    """Files that the migration never read back, since it ran without verification."""
    deep: bool = False
    listed: int | None = None
    """Lines of the list that was checked."""
    interrupted: bool = False
    """Whether the last run was interrupted: start it again."""
    faults: list[Fault] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    """Faults of whole tables, of the journal and of the list."""
    journal: bool = True
    """Whether there was a journal to compare with."""
    tables: list[Json] = field(default_factory=list)
    """The state of each table's log, and the rows that it states."""

    def __post_init__(self) -> None:
        self._checks: dict[str, TableCheck] = {}

    def add(self, fault: Fault | None) -> None:
        """Adds the fault of a file."""
        if fault is not None:
            self.faults.append(fault)

    def check_state(self, state: State, *, has_journal: bool) -> None:
        """Checks whether the journal exists, and the last run was complete."""
        self.interrupted = bool(state.begun or state.dropping or state.fresh)
        if has_journal and (state.chain.lost or state.chain.is_foreign):
            why = "it is the journal of another target" if state.chain.is_foreign else state.chain.lost
            self.reasons.append(Reason("cut_journal", 1, why))
        self.journal = has_journal
        if not has_journal:
            self.reasons.append(Reason("no_journal", 1, f"{self.root}/{STATE} has no segments"))

    def check_last_run(self, destination: Destination) -> None:
        """Checks the verdict of the last run: what it could not convert is in no record of a file."""
        run = last_run(destination)
        if run is not None and run["colour"] == Failed.colour:
            self.reasons.append(Reason("failed_run", 1, str(run["verdict"])))

    def check_tables(self, destination: Destination, state: State) -> None:
        """Checks each table as a whole: its files in one listing, and its log."""
        self._checks = {path: _check_table(destination, state, path) for path in state.tables}
        for path, check in sorted(self._checks.items()):
            self.add_table(path, check)

    def check_files(self, destination: Destination, state: State) -> None:
        """Reads each file, after its table was checked."""
        undescribed: set[str] = set()

        def entries() -> Iterator[Committed]:
            for entry in state.done.each():
                if entry.table in self._checks:
                    yield entry
                else:
                    undescribed.add(entry.table)

        parts = (
            (entry, part)
            for entry in entries()
            for part in entry.parts
            # A file that sources share is checked once, for all of them. Missing and unlisted files are
            # reported by their table.
            if part.first == 0 and _is_there(part, self._checks[entry.table])
        )

        def looks() -> Iterator[Callable[[], Fault | None]]:
            for entry, part in parts:
                self.files += 1
                self.rows += part.of or part.rows
                self.bytes += part.bytes
                self.unverified += not part.verified
                # Collected here: only one thread at a time may query the state.
                inside = list(state.done.sharing(part.final)) if part.of else [(entry, part)]
                yield functools.partial(judge, destination, sink_of(state, entry), inside, deep=self.deep)

        for fault in in_threads(looks(), _THREADS):
            self.add(fault)
        for path in sorted(undescribed):
            why = f"{path}: the journal has sources of this table, but not its format: a part of it is gone"
            self.reasons.append(Reason("no_journal", 1, why))

    def add_table(self, path: str, check: TableCheck) -> None:
        """Adds the condition of a table."""
        target = check.target
        about = {"path": path, "to": target.kind, "state": target.state, "version": target.version}
        self.tables.append({**about, "rows_verified": check.rows_verified, "rows_now": check.rows_now})
        self.reasons += check.reasons()
        if check.whole is not None:
            self.add(Fault(path, "table", check.whole.reason))
        for name, difference in sorted(check.missing.items()):
            self.add(
                Fault(
                    name,
                    _KINDS.get(difference.kind, "missing"),
                    difference.reason,
                    difference.source,
                )
            )
        for name, difference in sorted(check.changed.items()):
            kind = "unlisted" if difference.kind == "unlisted" else "deleted"
            self.add(Fault(name, kind, difference.reason, difference.source))
        for name in sorted(check.foreign):
            self.add(Fault(name, "foreign", "the migration did not write it"))

    def check_list(self, listed: SafeList, state: State, storage_options: StorageOptions) -> None:
        """Checks each line of a list against its source and the journal."""
        self.listed = len(listed.lines)
        if not listed.is_whole:
            self.reasons.append(Reason("cut_list", 1, "its last line is missing"))
        for line, why in safe_list.check(listed, state, storage_options):
            self.add(Fault(line.path, "line", why))

    @property
    def verdict(self) -> Verdict:
        """The verdict on all findings."""
        counts = Counter(KIND_OF_FAULT.get(fault.kind, "altered") for fault in self.faults)
        reasons = [Reason(kind, count) for kind, count in counts.items() if kind]
        for kind, count in (("unverified", self.unverified), ("interrupted", int(self.interrupted))):
            reasons += [Reason(kind, count)] if count else []
        return judge_audit(self.files, [*reasons, *self.reasons])

    @property
    def exit_code(self) -> int:
        """0: everything matches the verified state; 1: something differs."""
        return self.verdict.exit_code

    def to_json(self) -> Json:
        """The audit as JSON, for programs."""
        return {
            **{name: value for name, value in vars(self).items() if name[0] != "_" and name != "reasons"},
            "faults": [vars(fault) for fault in self.faults],
            "table_reasons": [reason.to_json() for reason in self.reasons],
            **self.verdict.to_json(),
        }


def _check_table(destination: Destination, state: State, path: str) -> TableCheck:
    about = state.tables[path]
    return check_table(destination, state, about.to, about.name, path)


def _is_there(part: Part, table: TableCheck) -> bool:
    there = part.final not in table.missing
    target = table.target
    listed = not target.has_log or target.state != "there" or target.files.get(part.final) is not None
    return there and listed


def sink_of(state: State, entry: Committed) -> Sink:
    about = state.tables[entry.table]
    return find_target(about.to, unit=about.unit).sink


def judge(
    destination: Destination, sink: Sink, inside: Sequence[tuple[Committed, Part]], *, deep: bool
) -> Fault | None:
    """The fault of a file, given the sources with rows in it.

    The caller has checked that the file exists and has its size.
    """
    entry, part = inside[0]
    for kind, reason, source in _faults(destination, sink, inside, deep):
        return Fault(part.final, kind, reason, source or (entry.source if len(inside) == 1 else None))
    return None


def _faults(
    destination: Destination, sink: Sink, inside: Sequence[tuple[Committed, Part]], deep: bool
) -> Iterator[tuple[str, str, str | None]]:
    _, part = inside[0]
    path, options = destination.path(part.final), destination.storage_options
    try:
        if part.sha256 is not None and sha256(path, options) != part.sha256:
            yield "altered", "its bytes differ from those that were written", None
            return
        rows = _rows(path, options)
        verified = part.of or part.rows
        if rows != verified:
            yield "miscounted", f"it states {rows} rows, but {verified} were verified", None
        elif not deep or not part.checks:
            # A result that was never verified has no fingerprint to compare with.
            return
        elif part.of:
            yield from _unlike(sink, path, inside, options)
        elif fingerprint(sink, path, options) != part.checks:
            yield "unlike", "its rows differ from those that were verified", None
    except (ColdframeError, pa.ArrowException, OSError) as error:
        yield "altered", f"it cannot be read: {describe(error)}", None


def _unlike(
    sink: Sink, path: str, inside: Sequence[tuple[Committed, Part]], storage_options: StorageOptions
) -> Iterator[tuple[str, str, str | None]]:
    """Compares each source's rows in a shared file with the rows that were read from the source."""
    schema, batches = sink.open(path, storage_options)
    waiting = deque(inside)
    seen, left = RawFingerprint(schema), waiting[0][1].rows
    for batch in batches:
        at = 0
        while at < batch.num_rows and waiting:
            some = batch.slice(at, left)
            seen.add(some)
            at, left = at + some.num_rows, left - some.num_rows
            if left == 0:
                entry, part = waiting.popleft()
                if as_stored(seen) != part.checks:
                    yield (
                        "unlike",
                        f"rows of {entry.source} differ from those that were verified",
                        entry.source,
                    )
                seen, left = RawFingerprint(schema), waiting[0][1].rows if waiting else 0


def _rows(path: str, storage_options: StorageOptions) -> int | None:
    if path.endswith(".parquet"):
        return int(pq.read_metadata(reading(path, storage_options)).num_rows)
    return coldframe.open(path, storage_options=storage_options).num_rows
