"""A run: files are handed out as tasks, and what comes back is committed.

Spark schedules splits and nothing else (`scheduling`). Each source file is committed as soon as its last
split is back (`committing`), so that a run that is killed keeps what it has done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import Cause, PlannedFile, SourceFile
from coldframe.pipeline.report.model import FileReport, TableReport
from coldframe.pipeline.report.progress import Progress, Timeline
from coldframe.pipeline.scheduling import Scheduler
from coldframe.pipeline.source.identity import is_unchanged
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.journal import HOME, Journal
from coldframe.pipeline.target.targets import Target
from coldframe.pipeline.work.committing import Committer, Underway
from coldframe.pipeline.work.convert import describe
from coldframe.pipeline.work.directory_checks import Looks
from coldframe.pipeline.work.tasks import Conversion


@dataclass
class Run:
    """One run of a migration, while its files are converted."""

    scheduler: Scheduler
    journal: Journal
    target: Target
    options: Options
    progress: Progress
    timeline: Timeline = field(default_factory=Timeline)

    def begin(self, works: Sequence[TableWork]) -> None:
        """Tells what is known of each table before a file of it is opened."""
        for work in works:
            work.report.allowed = frozenset(self.options.allow_loss)
            self._report_unreadable(work)
            if work.table.files:
                self.journal.keep_table(work.table.path, self._about(work.table))

    def _about(self, table: Table) -> dict[str, str]:
        about = {"name": table.name, "to": self.target.name, "unit": self.options.timestamp_unit}
        return {**about, "place": table.place, "format": table.format}

    def _report_unreadable(self, work: TableWork) -> None:
        for file in work.table.empty:
            work.files.append(FileReport(file.relative, "empty", bytes_in=0))
        for file in work.table.damaged:
            reason = f"its bytes are not of the format {work.table.format}, nor of any other that is known"
            same = is_unchanged(file.path, file.identity, file.storage_options)
            self.fail(work, file, reason, "damaged" if same else "changed")

    def fail(self, work: TableWork, file: SourceFile, error: str, cause: Cause = "failed") -> None:
        """A source is not converted. Only damage of its own is quarantined, where that is asked for."""
        status = "changed" if cause == "changed" else "failed"
        failed = FileReport(file.relative, status, bytes_in=file.share, error=error)
        if self.options.on_error == "quarantine" and cause == "damaged":
            try:
                failed.quarantine = self._quarantine(work.report, file, error, [])
                failed.status = "quarantined"
            except (ColdframeError, OSError) as reason:
                failed.error = f"{error}; no copy of it could be kept: {describe(reason)}"
        work.files.append(failed)

    def _salvaged(self, work: TableWork, planned: PlannedFile, damage: list[Any]) -> str | None:
        if self.options.on_error != "quarantine":
            return None
        try:
            return self._quarantine(work.report, planned.file, None, damage)
        except (ColdframeError, OSError) as error:
            work.report.tell("no_copy", detail=f"{planned.file.relative}: {describe(error)}")
            return None

    def _quarantine(self, report: TableReport, file: SourceFile, error: str | None, damage: list[Any]) -> str:
        """A copy of the file, and what is known of its damage beside it; the source is not touched."""
        place = f"{HOME}/quarantine/{file.relative}"
        self.journal.destination.copy_in(file.path, place, file.storage_options)
        details = {"source": file.path, "table": report.name, "error": error, "damage": damage}
        content = json.dumps(details, indent=2, default=str).encode()
        self.journal.destination.write(f"{place}.damage.json", content)
        return place

    def convert(self, works: Sequence[TableWork]) -> None:
        """Has the tasks of all tables done, and commits what comes back."""
        journal = self.journal
        committer = Committer(
            journal,
            extension=self.target.sink.extension,
            fail=self.fail,
            salvaged=self._salvaged,
        )
        for work in works:
            work.left = len(work.planned)
        self.progress.start(
            sum(bool(work.left) for work in works),
            sum(work.left for work in works),
            sum(one.file.share for work in works for one in work.planned),
        )
        under_way: dict[str, Underway] = {}

        def finish(one: Underway) -> None:
            committer.finish(one)
            one.work.left -= 1
            if one.work.careful and not one.work.left:
                committer.publish(one.work)

        conversion = Conversion(
            self.options, self.target, self.journal.destination, journal, committer, under_way
        )
        with Looks(finish) as looks:
            self._take(self.scheduler.run(conversion.tasks(works, looks.finish)), under_way, committer, looks)
        for work in works:
            if work.careful and not work.planned:
                committer.publish(work)
        committer.flush()

    def _take(
        self,
        answers: Iterator[dict[str, Any]],
        under_way: dict[str, Underway],
        committer: Committer,
        looks: Looks,
    ) -> None:
        """Takes what comes back, until all of it is."""
        for answer in answers:
            # Sources that share a file of the target come together.
            for outcome in answer.get("sources", [answer]):
                one = under_way.get(outcome["key"])
                if one is None or outcome["number"] in one.outcomes:
                    # Another attempt at what was accepted already.
                    continue
                one.outcomes[outcome["number"]] = outcome
                self._tell(one, outcome)
                if len(one.outcomes) == len(one.planned.parts):
                    looks.finish(under_way.pop(outcome["key"]))
                else:
                    committer.keep(one, outcome["number"])
            looks.settle()
            committer.settle()
        looks.settle(wait_for_all=True)

    def _tell(self, one: Underway, outcome: dict[str, Any]) -> None:
        size, rows = one.planned.file.share // len(one.planned.parts), int(outcome.get("rows", 0))
        self.timeline.add(size, rows)
        self.progress.advance(one.work.table.name, size, rows)
