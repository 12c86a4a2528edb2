"""From outcomes of tasks to files of the tables.

A source file is committed when its last part is back, several at a time. If files of a table are replaced or
removed, its new files are held until the whole table is converted, and then published at once: until then,
readers see the earlier result, and never files of two types side by side. If a file of such a table failed,
and the types changed or sources are gone, the earlier result stays, and the new files wait for the next run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.plan.exchange import source_of
from coldframe.pipeline.plan.grouping import folder_of
from coldframe.pipeline.plan.plan_files import encoded, schema_id
from coldframe.pipeline.plan.table_work import Fail, Pending, TableWork, pending_of
from coldframe.pipeline.records import (
    Cause,
    Committed,
    Damage,
    Details,
    Failure,
    Outcome,
    Part,
    PlannedFile,
    SourceFile,
)
from coldframe.pipeline.report.model import FileReport
from coldframe.pipeline.source.identity import CHANGED, content_digest
from coldframe.pipeline.state.events import Unit
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.state.ledger import Ledger
from coldframe.pipeline.work.convert import losses
from coldframe.pipeline.work.in_flight import Running

BATCH = 1000
"""Maximum number of source files in a commit: they share a segment of the journal and the disk's syncs."""
BATCH_SECONDS = 2.0
"""How long the first file of a commit waits for further files."""
AT_ONCE = 1000
"""Maximum number of held files and removed sources in a commit."""


class TornFile(ColdframeError):
    """A commit would remove the rows of some sources from a file that they share with other sources."""


class Committer:
    """Takes the outcomes of one run."""

    def __init__(
        self,
        journal: Journal,
        *,
        extension: str,
        fail: Fail,
        salvaged: Callable[[TableWork, PlannedFile, Sequence[Damage]], str | None],
    ) -> None:
        """`salvaged` is called for damage that cost rows, and returns the path of a copy of the file."""
        self._journal = journal
        self._extension = extension
        self._fail = fail
        self._salvaged = salvaged
        self._ready: list[tuple[TableWork, Committed, FileReport]] = []
        self._units: list[Unit] = []
        self._names: dict[int, tuple[pa.Schema, str]] = {}
        self._since = 0.0

    def finish(self, running: Running) -> None:
        """Takes a source file whose tasks are all back. `settle` commits the change."""
        work, planned = running.work, running.planned
        outcomes = [running.outcomes[number] for number in sorted(running.outcomes)]
        wrong = self._wrong(running, outcomes)
        if wrong is not None:
            destination = self._journal.destination
            for file in (file for outcome in outcomes for file in outcome.files):
                destination.delete(destination.name_of(file.staged))
            self._units = [unit for unit in self._units if unit.source != planned.file.relative]
            if planned.file.relative in self._journal.state.units:
                self._journal.forget(planned.file.relative)
            self._fail(work, planned.file, wrong.error, wrong.cause)
            return
        entry = self._entry(work, planned, outcomes)
        if entry.details.damage:
            copy = self._salvaged(work, planned, entry.details.damage)
            entry = replace(entry, details=replace(entry.details, quarantine=copy))
        self._note()
        self._units = [unit for unit in self._units if unit.source != entry.source]
        self._ready.append((work, entry, FileReport.of_entry(entry, planned.file.share)))

    def _wrong(self, running: Running, outcomes: Sequence[Outcome]) -> Failure | None:
        """Why a source is not converted; None if it is converted."""
        planned = running.planned
        if running.changed:
            return Failure(f"{planned.file.path}: {CHANGED}", "changed")
        failed = [outcome.failure for outcome in outcomes if outcome.failure is not None]
        if not failed:
            # A source that shares a file was checked before its rows were written.
            shared = any(file.of for outcome in outcomes for file in outcome.files)
            return None if shared else losses(planned.file.relative, planned.rows, outcomes)
        causes = {failure.cause for failure in failed}
        # If a part failed for another reason than damage, the source counts as failed, not as damaged.
        cause: Cause = "changed" if "changed" in causes else "failed" if "failed" in causes else "damaged"
        return Failure("; ".join(dict.fromkeys(failure.error for failure in failed)), cause)

    def keep(self, running: Running, outcome: Outcome) -> None:
        """Keeps the outcome of one of several tasks of a source file, so that no later run repeats it."""
        if outcome.failure is None:
            self._note()
            self._units.append(self._unit(running, _moved(outcome, self._journal.destination.name_of)))

    def settle(self) -> None:
        """Commits or holds what is ready, if it fills a batch or has waited long enough. Sources that share a
        target file are ready together.
        """
        if not (self._ready or self._units):
            return
        if len(self._ready) >= BATCH or time.monotonic() - self._since > BATCH_SECONDS:
            self.flush()

    def _note(self) -> None:
        if not (self._ready or self._units):
            self._since = time.monotonic()

    def flush(self) -> None:
        """Commits or holds what is ready."""
        ready, self._ready = self._ready, []
        units, self._units = self._units, []
        if units:
            self._journal.keep_units(units)
        held = [entry for work, entry, _ in ready if work.careful]
        done = [entry for work, entry, _ in ready if not work.careful]
        if held:
            self._journal.hold(held)
        if done:
            self._journal.commit(done)
        for work, entry, report in ready:
            if work.careful:
                report.status = "held"
                planned = work.planned.get(entry.source)
                if planned is not None:
                    work.held.append(Pending(planned.file, entry.key))
            work.files.append(report)

    def publish(self, work: TableWork) -> None:
        """Publishes a careful table, whose tasks are all back, if its earlier result may be replaced."""
        self.flush()
        failed = [file.source for file in work.report.problems if file.error is not None]
        # A file with old types must not stay next to files with new types, nor may a shared file stay if its
        # other rows are published elsewhere.
        stale = [source for source in failed if self._is_outdated(work, source)]
        shared = any(self._leaves_rows(work, source) for source in failed)
        # New sources may have rows that a changed source has lost. If the changed source failed, its earlier
        # result would duplicate these rows.
        news = any(pending.file.relative not in self._journal.done for pending in work.held)
        news = news and work.report.on_vanished != "keep"
        parted = news and any(self._is_rewritten(work, source) for source in failed)
        stays = bool(work.refused or stale or shared or parted or (failed and work.drops))
        if stays and work.report.error is None:
            why = "its types have changed" if stale or work.refused else "sources of it are gone"
            if not (stale or work.refused):
                why = "new files may have rows that it had" if parted else why
                why = "its rows share a file with those of others" if shared else why
            work.report.error = (
                f"{len(failed)} file(s) could not be converted, such as {failed[0]}, and {why}: the earlier "
                "result stays until all are converted or left out"
            )
        for pending in work.held:
            # The report still lacks the files that an earlier run held.
            before = work.files.get(pending.file.relative)
            held = self._journal.held[pending.file.relative]
            report = FileReport.of_entry(held, pending.file.share, earlier=before is None)
            report.status = "held" if stays else report.status
            work.files.append(report)
        if not stays:
            try:
                for entries, drops in batches(work, self._journal):
                    self._journal.commit(entries, drops)
            except TornFile as torn:
                work.report.error = str(torn)

    def kept(self, running: Running) -> dict[int, Outcome]:
        """Outcomes of earlier runs that this run can use: of the same source, with equal splits, and written
        in the same way.
        """
        units = self._journal.state.units.get(running.planned.file.relative, {})
        outcomes = {}
        for number, unit in units.items():
            if number < len(running.planned.parts) and unit.matches(self._unit(running, unit.outcome)):
                outcomes[number] = _moved(unit.outcome, self._journal.destination.path)
        if units and not outcomes:
            self._journal.forget(running.planned.file.relative)
        return outcomes

    def _unit(self, running: Running, outcome: Outcome) -> Unit:
        """The journal's record of a part of a source."""
        part, start, stop, rows, _ = running.planned.parts[outcome.number]
        return Unit(
            source=running.planned.file.relative,
            key=running.planned.key,
            identity=running.planned.file.identity,
            number=outcome.number,
            part=(part, start, stop, rows),
            written=self._keep(running.work.schema),
            generation=self._journal.state.generation,
            outcome=outcome,
        )

    def _leaves_rows(self, work: TableWork, source: str) -> bool:
        """Whether a source's earlier result shares a file with sources whose rows are about to be removed
        from it.
        """
        mates = _beside(self._journal.done, self._journal.done.get(source))
        drops = frozenset(work.drops) if mates else frozenset()
        return any(work.held.get(mate) is not None or mate in drops for mate in mates)

    def _is_rewritten(self, work: TableWork, source: str) -> bool:
        """Whether a source has changed since its rows were converted."""
        entry, pending = self._journal.done.get(source), work.work.get(source)
        return entry is not None and bool(entry.parts) and (pending is None or pending.key != entry.key)

    def _is_outdated(self, work: TableWork, source: str) -> bool:
        entry = self._journal.done.get(source)
        return entry is not None and work.is_outdated(pending_of(source_of(entry), entry))

    def _entry(self, work: TableWork, planned: PlannedFile, outcomes: Sequence[Outcome]) -> Committed:
        run = f"{self._journal.state.epoch:04d}-{self._journal.run[:4]}"
        folder = folder_of(planned.file, work.table.path)
        own = f"{stem_of(planned.file.relative)}-{planned.key[:12]}"
        parts: list[Part] = []
        for outcome in outcomes:
            for more, file in enumerate(outcome.files):
                # The run makes the name unique among all attempts at this file: after a restored backup, its
                # number alone would not.
                name = f"{file.name or own}-{run}-{outcome.number:04d}{f'-{more}' if more else ''}"
                parts.append(
                    Part(
                        self._journal.destination.name_of(file.staged),
                        f"{folder}/{name}.{self._extension}",
                        file.rows,
                        file.bytes,
                        file.checks,
                        file.verified,
                        file.sha256,
                        file.first,
                        file.of,
                        file.partition,
                    )
                )
        return Committed(
            planned.key,
            planned.file.relative,
            work.table.path,
            tuple(parts),
            details=self._details(work, planned, outcomes),
            generation=self._journal.state.generation,
        )

    def _details(self, work: TableWork, planned: PlannedFile, outcomes: Sequence[Outcome]) -> Details:
        losses = _summed(outcome.losses for outcome in outcomes)
        return Details(
            identity=planned.file.identity,
            digest=_digest(planned.file, outcomes),
            passed_over=_summed(outcome.passed_over for outcome in outcomes),
            losses={**losses, **_of_columns(work, planned, outcomes)},
            bytes=planned.file.size,
            rows=sum(outcome.rows for outcome in outcomes),
            damage=tuple(lost for outcome in outcomes for lost in outcome.damage),
            verified=all(outcome.verified for outcome in outcomes),
            seconds=round(sum(outcome.seconds for outcome in outcomes), 3),
            by_spark=work.table.reading_of(planned.file).by_spark is not None,
            schema=self._keep(work.schemas[planned.schema]),
            written=self._keep(work.schema),
        )

    def _keep(self, schema: pa.Schema | None) -> str:
        """Records columns once, and returns their name."""
        if schema is None:
            raise AssertionError("a file without columns was converted")
        known = self._names.get(id(schema))
        if known is None:
            known = self._names[id(schema)] = (schema, schema_id(schema))
            self._journal.keep_schema(known[1], encoded(schema))
        return known[1]


def _moved(outcome: Outcome, move: Callable[[str], str]) -> Outcome:
    """An outcome with its files renamed: the journal's names are relative to the target's root."""
    return replace(outcome, files=tuple(replace(file, staged=move(file.staged)) for file in outcome.files))


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of the counts of all parts of a source."""
    total: Counter[str] = Counter()
    for some in counts:
        total.update(some)
    return {key: count for key, count in total.items() if count}


def _of_columns(work: TableWork, planned: PlannedFile, outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Values that are lost with whole columns: one per row."""
    rows = sum(outcome.rows for outcome in outcomes)
    partitions = {field.name.lower() for field in work.table.partition_fields}
    dropped = [name for name in work.schemas[planned.schema].names if name.lower() in partitions]
    lost = {"partition-columns": rows * len(dropped), "masked-columns": rows * planned.masked}
    return {how: count for how, count in lost.items() if count}


def _digest(file: SourceFile, outcomes: Sequence[Outcome]) -> str:
    """The digest by which a later run recognises the source: see `identity`. Empty if the digest cannot be
    taken.
    """
    if file.is_folder:
        return f"tree:{file.identity}"
    if file.etag:
        return f"etag:{file.etag}"
    digest = next((outcome.digest for outcome in outcomes if outcome.digest is not None), "")
    if digest or outcomes:
        return digest
    # A file without rows has no task that could have taken the digest.
    try:
        return content_digest(file.path, file.storage_options)
    except (ColdframeError, OSError):
        return ""


def batches(work: TableWork, journal: Journal) -> Iterator[tuple[list[Committed], list[str]]]:
    """Divides held and removed sources of a table into commits. Sources that share a target file, before or
    after the commit, are in the same commit.
    """
    drops = dict.fromkeys(work.drops)
    entries: dict[str, Committed] = {}
    dropped: dict[str, None] = {}

    def take(source: str) -> None:
        """Takes a source with all sources that share its new or its old file."""
        waiting, seen = [source], set[str]()
        while waiting:
            current = waiting.pop()
            if current in seen or current in entries or current in dropped:
                continue
            seen.add(current)
            if current not in drops and work.held.get(current) is not None:
                held = journal.held.look_up(current)
                # A source that is no longer held has been committed.
                if held is None:
                    continue
                entries[current] = held
                waiting += _beside(journal.held, held)
            elif current in drops:
                dropped[current] = None
            elif work.stays.get(current) is not None:
                raise TornFile(f"not published: {current} has to stay, but shares a file with {source}")
            waiting += _beside(journal.done, journal.done.look_up(current))

    for sources in ((pending.file.relative for pending in work.held), iter(work.drops)):
        for source in sources:
            take(source)
            if len(entries) + len(dropped) >= AT_ONCE:
                yield list(entries.values()), list(dropped)
                entries, dropped = {}, {}
    if entries or dropped:
        yield list(entries.values()), list(dropped)


def _beside(ledger: Ledger, entry: Committed | None) -> list[str]:
    name = "" if entry is None else entry.shared_file
    return [other.source for other, _ in ledger.sharing(name)] if name else []


def stem_of(relative: str) -> str:
    name = relative.rsplit("/", 1)[-1]
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    # The result is not hidden from readers of the table, and short enough for every file system.
    return safe.lstrip("_.")[:80] or "file"
