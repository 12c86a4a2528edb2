"""A run: hands files out as tasks, and commits their outcomes.

Spark only schedules splits (`scheduling`). Each source file is committed as soon as its last split is back
(`committing`), so a killed run keeps what it has done.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import (
    Cause,
    Damage,
    MergeOutcome,
    Outcome,
    PlannedFile,
    SourceFile,
    describe,
)
from coldframe.pipeline.report.model import FileReport, TableReport
from coldframe.pipeline.report.progress import Progress, Timeline
from coldframe.pipeline.scheduling import Pace, Scheduler
from coldframe.pipeline.sink.destination import HOME
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source.identity import is_unchanged
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.events import KnownTable
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.work.committing import Committer
from coldframe.pipeline.work.directory_checks import DirectoryChecks
from coldframe.pipeline.work.in_flight import InFlight, Running
from coldframe.pipeline.work.tasks import Conversion


@dataclass
class Run:
    """One run of a migration, while its files are converted."""

    scheduler: Scheduler
    journal: Journal
    target: Target
    options: Options
    progress: Progress
    pace: Pace = field(default_factory=Pace)
    timeline: Timeline = field(default_factory=Timeline)

    def begin(self, works: Sequence[TableWork]) -> None:
        """Reports what is known of each table before its files are opened."""
        self.journal.destination.expect_no_links(work.table.path for work in works)
        for work in works:
            work.report.allowed = frozenset(self.options.allow_loss)
            self._report_unreadable(work)
            if work.table.files:
                self.journal.keep_table(self._known(work.table))

    def _known(self, table: Table) -> KnownTable:
        unit = self.options.timestamp_unit
        return KnownTable(table.path, table.name, self.target.name, unit, table.place, table.known_as)

    def _report_unreadable(self, work: TableWork) -> None:
        for file in work.table.empty:
            work.files.append(FileReport(file.relative, "empty", bytes_in=0))
        for file in work.table.damaged:
            reason = f"its bytes are not of the format {work.table.format}, nor of any other that is known"
            same = is_unchanged(file.path, file.identity, file.storage_options)
            self.fail(work, file, reason, "damaged" if same else "changed")

    def fail(self, work: TableWork, file: SourceFile, error: str, cause: Cause = "failed") -> None:
        """Fails a source. Quarantines the source if that is requested and the source itself is damaged."""
        status = "changed" if cause == "changed" else "failed"
        failed = FileReport(file.relative, status, bytes_in=file.share, error=error, cause=cause)
        if cause == "damaged" and self.options.on_error != "raise":
            # A file without its end is not even opened; the command knows how to find the rest of it.
            failed.error = f"{error}; `coldframe salvage FILE OUT.parquet` finds the rows that remain of it"
        if self.options.on_error == "quarantine" and cause == "damaged":
            try:
                failed.quarantine = self._quarantine(work.report, file, error, [])
                failed.status = "quarantined"
            except (ColdframeError, OSError) as reason:
                failed.error = f"{failed.error}; no copy of it could be kept: {describe(reason)}"
        work.files.append(failed)

    def _salvaged(self, work: TableWork, planned: PlannedFile, damage: Sequence[Damage]) -> str | None:
        if self.options.on_error != "quarantine":
            return None
        try:
            return self._quarantine(work.report, planned.file, None, damage)
        except (ColdframeError, OSError) as error:
            work.report.add_reason("no_copy", detail=f"{planned.file.relative}: {describe(error)}")
            return None

    def _quarantine(
        self, report: TableReport, file: SourceFile, error: str | None, damage: Sequence[Damage]
    ) -> str:
        """Copies the file, with a list of its damage; the source is not touched."""
        place = f"{HOME}/quarantine/{posixpath.normpath(file.relative)}"
        self.journal.destination.copy_in(file.path, place, file.storage_options)
        details = {"source": file.path, "table": report.name, "error": error, "damage": list(damage)}
        content = json.dumps(details, indent=2, default=str).encode()
        self.journal.destination.write(f"{place}.damage.json", content)
        return place

    def convert(self, works: Sequence[TableWork]) -> None:
        """Runs the tasks of all tables, and commits their outcomes."""
        journal = self.journal
        committer = Committer(
            journal,
            extension=self.target.sink.extension,
            fail=self.fail,
            salvaged=self._salvaged,
        )
        flight = InFlight(works)
        size = sum(running.file.share for work in works for running in work.planned)
        self.progress.start(flight.tables, flight.files, size)

        def finish(running: Running) -> None:
            committer.finish(running)
            if flight.finish(running) and running.work.careful:
                committer.publish(running.work)

        conversion = Conversion(self.options, self.target, journal.destination, journal, committer, flight)
        with DirectoryChecks(finish) as checks:
            for tasks in self.pace.spells(conversion.tasks(works, checks.finish)):
                self._take(self.scheduler.run(tasks), flight, committer, checks)
        for work in works:
            if work.careful and not work.planned:
                committer.publish(work)
        committer.flush()

    def _take(
        self,
        answers: Iterator[Outcome | MergeOutcome],
        flight: InFlight,
        committer: Committer,
        checks: DirectoryChecks,
    ) -> None:
        """Handles outcomes until every task has returned."""
        for answer in answers:
            # Sources that share a target file return together.
            for outcome in answer.outcomes:
                running = flight.take(outcome)
                if running is None:
                    continue
                self._advance(running, outcome)
                if running.is_back:
                    checks.finish(running)
                else:
                    committer.keep(running, outcome)
            checks.settle()
            committer.settle()
        checks.settle(wait_for_all=True)

    def _advance(self, running: Running, outcome: Outcome) -> None:
        size = running.planned.file.share // len(running.planned.parts)
        self.timeline.add(size, outcome.rows)
        self.progress.advance(running.work.table.name, size, outcome.rows)
