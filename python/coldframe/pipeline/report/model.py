"""The report of a run: files found, converted, verified, damaged and quarantined. `files` writes the
report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldframe.pipeline.records import Committed, Damage, Json, Unread
from coldframe.pipeline.report.verdict import (
    Reason,
    RunSummary,
    SourceSummary,
    TableSummary,
    Verdict,
    judge_run,
    judge_table,
)
from coldframe.pipeline.source.findings import Findings, MetastoreReport
from coldframe.pipeline.source.inventory import Inventory
from coldframe.pipeline.state.scratch import Rows, Scratch

FINE = ("converted", "empty")
STATUSES = ("converted", "salvaged", "quarantined", "failed", "changed", "withheld", "held", "empty")


MAX_NAMED = 1000
"""Longest list in report.json; files.jsonl has all files."""


def _few(name: str, items: Rows[Any] | list[Any], shown: Callable[[Any], Any] = lambda item: item) -> Json:
    """A list for report.json, and its full length if it is cut."""
    more = {f"{name}_count": len(items)} if len(items) > MAX_NAMED else {}
    return {name: [shown(item) for item in items[:MAX_NAMED]], **more}


def _counted(name: str, findings: Findings) -> Json:
    """Like `_few`, for findings: only the first are kept."""
    more = {f"{name}_count": len(findings)} if len(findings) > len(findings.shown) else {}
    return {name: findings.to_json(), **more}


@dataclass
class FileReport:
    """The outcome of one source file."""

    source: str
    status: str
    """converted; salvaged: converted except for its damage; quarantined: damaged, no rows saved, copy kept;
    failed; changed: it changed while it was read, and a later run has to convert it; withheld: not taken,
    since its rows may already be in the target; held: converted, but its table cannot be published yet;
    empty: no bytes, no rows."""
    bytes_in: int
    rows: int = 0
    bytes_out: int = 0
    outputs: list[str] = field(default_factory=list)
    verified: bool = False
    damage: list[Damage] = field(default_factory=list)
    error: str | None = None
    quarantine: str | None = None
    """The path of its copy, relative to the target's root."""
    earlier: bool = False
    """Whether an earlier run converted the source."""
    seconds: float = 0.0
    """The total time of the source's tasks."""
    losses: dict[str, int] = field(default_factory=dict)
    """Numbers of changed values, by kind of change: see `options.LOSSES`."""
    digest: str = ""
    """The source's digest when it was converted: see `identity`."""
    passed_over: dict[str, int] | None = None
    """For a directory: cells that were readable but not requested; None if they were not counted."""
    by_spark: bool = False
    """Whether Spark has read it instead of coldframe."""
    cause: str = ""
    """Why it was not converted: see `Cause`. Empty if it was."""

    @staticmethod
    def of_entry(entry: Committed, size: int, *, earlier: bool = False) -> FileReport:
        """The report of a committed file."""
        details = entry.details
        return FileReport(
            entry.source,
            "salvaged" if details.damage else "converted",
            size,
            details.rows,
            sum(part.share for part in entry.parts),
            [part.final for part in entry.parts],
            details.verified,
            list(details.damage),
            None,
            details.quarantine,
            earlier,
            details.seconds,
            dict(details.losses),
            details.digest,
            dict(details.passed_over),
            details.by_spark,
        )

    @property
    def summary(self) -> SourceSummary:
        """The facts that decide whether the source may be listed as safe to delete."""
        return SourceSummary(self.status, self.verified, bool(self.digest), self.losses, self.by_spark)

    def to_json(self) -> Json:
        """A line of files.jsonl."""
        return {**vars(self), "rows_lost": self.rows_lost}

    @property
    def rows_lost(self) -> int | None:
        """How many rows the file's damage cost; None if that is unknown."""
        lost = [item.get("rows_lost") for item in self.damage]
        return None if None in lost else sum(rows for rows in lost if rows is not None)


@dataclass
class Totals:
    """The sums over files of one table."""

    statuses: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    """Rows in the target; excludes held results."""
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_now: int = 0
    """Source bytes that this run converted."""
    seconds: float = 0.0
    """The total time of this run's tasks."""
    earlier: int = 0
    written: int = 0
    """Files with results in the target."""
    unverified: int = 0
    """Files whose results were not read back."""
    undigested: int = 0
    """Converted sources without a digest."""
    by_spark: int = 0
    """Sources that Spark has read."""
    losses: Counter[str] = field(default_factory=Counter)

    def add(self, file: FileReport, sign: int = 1) -> None:
        """Adds or subtracts a file."""
        self.statuses[file.status] += sign
        self.rows += sign * (file.rows if file.status != "held" else 0)
        self.bytes_in += sign * file.bytes_in
        self.bytes_out += sign * file.bytes_out
        if file.earlier:
            self.earlier += sign
        else:
            self.bytes_now += sign * file.bytes_in
            self.seconds += sign * file.seconds
        if file.outputs:
            self.written += sign
            self.unverified += sign * (not file.verified)
        self.undigested += sign * (file.status == "converted" and not file.digest)
        self.by_spark += sign * (file.by_spark and file.status == "converted")
        for how, count in file.losses.items():
            self.losses[how] += sign * count


@dataclass(frozen=True)
class LeftOut:
    """Something that could be read from a directory but was not requested."""

    source: str
    """The directory."""
    kind: str
    """The part's name in `--leave-behind`, if it has a name."""
    of: str = ""
    name: str = ""
    count: int | None = None
    unit: str = ""
    note: str = ""
    visible: bool = True
    """Whether the engine shows this content to readers."""
    named: bool = False
    """Whether the user allowed to leave the part behind."""

    def __str__(self) -> str:
        amount = "" if self.count is None else f" ({self.count:,} {self.unit})"
        note = f": {self.note}" if self.note else ""
        return f"{self.kind}{f' {self.name}' if self.name else ''}{amount}{note}"

    @property
    def blocks(self) -> bool:
        """Whether this content keeps the directory off the list of sources that are safe to delete."""
        return self.visible and not self.named


class FileReports(Rows[FileReport]):
    """The reports of many files, by source, with their sums."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(
            scratch, lambda file: file.source, lambda file: tuple(vars(file).values()), _file_report
        )
        self.totals = Totals()
        # Kept apart: usually few files have problems.
        self._problems: Rows[FileReport] = Rows(scratch, self._key, self._pack, self._unpack)

    @property
    def problems(self) -> Rows[FileReport]:
        """The files whose status needs attention: all statuses except those in `FINE`."""
        return self._problems

    def append(self, file: FileReport) -> None:
        """Adds a report, or replaces the earlier report of its source."""
        self.discard(file.source)
        super().append(file)
        self.totals.add(file)
        if file.status not in FINE:
            self._problems.append(file)

    def discard(self, source: str) -> None:
        """Removes a report, if there is one."""
        before = self.get(source)
        if before is not None:
            super().discard(source)
            self._problems.discard(source)
            self.totals.add(before, -1)


def _file_report(row: Sequence[Any]) -> FileReport:
    return FileReport(*row)


@dataclass
class TableReport:
    """The outcome of one table."""

    name: str
    path: str
    format: str
    files: FileReports | list[FileReport] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Target files that are gone, or have another size."""
    foreign: list[str] = field(default_factory=list)
    """Files that others wrote into the table's directory: readers take them for a part of the table."""
    vanished: list[str] = field(default_factory=list)
    """Sources that an earlier run converted and that are gone."""
    archived: int = 0
    """Sources that `coldframe delete` deleted, whose rows stay, and these rows."""
    rows_archived: int = 0
    partial: list[str] = field(default_factory=list)
    """Sources whose own metadata says that they hold only a part of the table."""
    metastore: Findings = field(default_factory=Findings)
    """Discrepancies with a Hive metastore."""
    metadata: Json = field(default_factory=dict)
    """The version or snapshot of a Delta or Iceberg table."""
    error: str | None = None
    """Why the table could not be published or registered."""
    rows_now: int | None = None
    """The rows in the table according to its log; None if there is no log, or it does not state them."""
    reasons: list[Reason] = field(default_factory=list)
    """See `add_reason`."""
    on_vanished: str = "fail"
    allowed: frozenset[str] = frozenset()
    """Changes of values that the user allowed by name."""
    judged: Verdict | None = None
    """The final verdict: see `Report.judge`."""

    def add_reason(self, kind: str, count: int = 1, detail: str = "") -> None:
        """Adds a reason for the verdict on this table: see `verdict`."""
        self.reasons.append(Reason(kind, count, detail))
        self.judged = None

    @property
    def verdict(self) -> Verdict:
        """The verdict on everything that is known of the table."""
        if self.judged is not None:
            return self.judged
        totals = self.totals
        return judge_table(
            TableSummary(
                written=totals.written,
                unverified=totals.unverified,
                undigested=totals.undigested,
                by_spark=totals.by_spark,
                statuses=totals.statuses,
                losses={how: count for how, count in totals.losses.items() if count},
                missing=len(self.missing),
                foreign=len(self.foreign),
                partial=len(self.partial),
                vanished=len(self.vanished),
                archived=self.archived,
                on_vanished=self.on_vanished,
                metastore=self.metastore.wrong,
                error=self.error is not None,
                reasons=tuple(self.reasons),
            ),
            self.allowed,
        )

    @property
    def verified(self) -> bool:
        """Whether the verdict is `Verified`."""
        return self.verdict.is_verified

    @property
    def totals(self) -> Totals:
        """The sums over the table's files."""
        if isinstance(self.files, FileReports):
            return self.files.totals
        totals = Totals()
        for file in self.files:
            totals.add(file)
        return totals

    @property
    def counts(self) -> dict[str, int]:
        """The number of files, and how many have each status."""
        statuses = self.totals.statuses
        return {"found": len(self.files), **{status: statuses[status] for status in STATUSES}}

    def count(self, *statuses: str) -> int:
        """How many files have one of the statuses."""
        totals = self.totals
        return sum(totals.statuses[status] for status in statuses)

    @property
    def rows(self) -> int:
        """The rows in the target; excludes held results."""
        return self.totals.rows

    @property
    def bytes_in(self) -> int:
        """Bytes of the source."""
        return self.totals.bytes_in

    @property
    def problems(self) -> Rows[FileReport] | list[FileReport]:
        """The files whose status needs attention: all statuses except those in `FINE`."""
        if isinstance(self.files, FileReports):
            return self.files.problems
        return [file for file in self.files if file.status not in FINE]

    @property
    def seconds(self) -> float:
        """The total time of this run's tasks."""
        return self.totals.seconds

    @property
    def bytes_out(self) -> int:
        """Bytes of the target."""
        return self.totals.bytes_out

    def to_json(self) -> Json:
        """The table's part of report.json."""
        return {
            "name": self.name,
            "path": self.path,
            "format": self.format,
            "rows": self.rows,
            "rows_now": self.rows_now,
            "archived": self.archived,
            "rows_archived": self.rows_archived,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            **self.verdict.to_json(),
            "counts": self.counts,
            "seconds": round(self.seconds, 3),
            **_few("missing", self.missing),
            **_few("foreign", self.foreign),
            **_few("vanished", self.vanished),
            **_few("partial", self.partial),
            **_counted("metastore", self.metastore),
            "metadata": self.metadata,
            "error": self.error,
            **_few("problems", self.problems, FileReport.to_json),
        }


@dataclass
class Report:
    """The outcome of a migration."""

    source: str
    target: str
    to: str
    on_error: str
    tables: list[TableReport]
    unknown: list[str] = field(default_factory=list)
    """Files of foreign formats outside of every table; they were ignored."""
    unread: list[Unread] = field(default_factory=list)
    """Places of the source that could not be read: unreadable, links, neither file nor directory."""
    excluded: int = 0
    """The number of files and directories that the patterns exclude."""
    hidden: int = 0
    """The number of skipped names, which Hive and Spark skip, too: `_x`, `.x`, `x.tmp`."""
    hidden_names: list[str] = field(default_factory=list)
    """The first skipped names."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Contents of directories that were not requested."""
    on_vanished: str = "fail"
    timeline: Json = field(default_factory=dict)
    """Bytes of the source and rows by time: see `progress.Timeline`."""
    safe_to_delete: int = 0
    """How many sources `safe-to-delete.txt` lists."""
    metastore: MetastoreReport | None = None
    """The comparison with a Hive metastore, if requested."""
    runs: list[Json] = field(default_factory=list)
    """The runs into this target, this one last: lines of runs.jsonl."""
    started: float = 0.0
    seconds: float = 0.0
    reasons: list[Reason] = field(default_factory=list)
    """See `add_reason`."""
    judged: Verdict | None = None

    def add_reason(self, kind: str, count: int = 1, detail: str = "") -> None:
        """Adds a reason that belongs to no table to the verdict on the run: see `verdict`."""
        self.reasons.append(Reason(kind, count, detail))
        self.judged = None

    def judge(self) -> None:
        """Keeps the verdicts on the run and its tables, which many ask for: nothing is added after this."""
        for table in self.tables:
            table.judged = table.verdict
        self.judged = self.verdict

    def add_unmatched(self, paths: Sequence[str]) -> None:
        """Adds entries of tables.toml that match nothing."""
        if paths:
            self.add_reason("unmatched", len(paths), ", ".join(paths[:3]))

    def add_source(self, inventory: Inventory, tables: list[TableReport]) -> None:
        """Adds what was found in the source."""
        self.tables, self.unread, self.unknown = tables, inventory.unread, sorted(inventory.stray)
        self.excluded = inventory.excluded
        self.hidden, self.hidden_names = inventory.hidden, inventory.hidden_names

    @property
    def verdict(self) -> Verdict:
        """The verdict on everything known."""
        if self.judged is not None:
            return self.judged
        return judge_run(
            [table.verdict for table in self.tables],
            RunSummary(
                unread=len(self.unread),
                excluded=self.excluded,
                hidden=self.hidden,
                left_out=sum(item.blocks for item in self.left_out),
                left_behind=sum(item.visible and item.named for item in self.left_out),
                stray=len(self.unknown),
                metastore=0 if self.metastore is None else self.metastore.findings.wrong,
                reasons=tuple(self.reasons),
            ),
        )

    @property
    def rows(self) -> int:
        """The rows in the target, including rows of earlier runs."""
        return sum(table.rows for table in self.tables)

    @property
    def bytes_in(self) -> int:
        """Bytes of the source; a directory of several tables is counted once."""
        return sum(table.bytes_in for table in self.tables)

    @property
    def failures(self) -> list[FileReport]:
        """The files that were not converted although they should have been."""
        return [
            file for table in self.tables for file in table.problems if file.status in ("failed", "changed")
        ]

    @property
    def verified(self) -> bool:
        """Whether the verdict is `Verified`."""
        return self.verdict.is_verified

    @property
    def exit_code(self) -> int:
        """0: nothing that was requested is missing, wrong or unexplained; else 1."""
        return self.verdict.exit_code

    @property
    def statuses(self) -> dict[str, int]:
        """The number of files by status."""
        counts: Counter[str] = Counter()
        for table in self.tables:
            counts.update(table.totals.statuses)
        return {status: counts[status] for status in STATUSES if counts[status]}

    def to_json(self) -> Json:
        """report.json."""
        return {**self.about(), "tables": [table.to_json() for table in self.tables]}

    def about(self) -> Json:
        """report.json without its tables."""
        return {
            "source": self.source,
            "target": self.target,
            "to": self.to,
            "on_error": self.on_error,
            "on_vanished": self.on_vanished,
            "excluded": self.excluded,
            "hidden": self.hidden,
            "hidden_names": self.hidden_names,
            "safe_to_delete": self.safe_to_delete,
            "started": self.started,
            "seconds": self.seconds,
            "rows": self.rows,
            **self.verdict.to_json(),
            "counts": self.statuses,
            "timeline": self.timeline,
            "metastore": None if self.metastore is None else self.metastore.to_json(),
            **_few("left_out", self.left_out, vars),
            **_few("unknown", self.unknown),
            **_few("unread", [vars(place) for place in self.unread]),
        }
