"""Merges small sources of one table and partition into one file, in which each source has a range of rows.

    source a, rows 0..310 ┐
    source b, rows 310..520 ┼─ staged file ─ read back ─ published when all their entries are
    source c, damaged       ┘  (c has no rows in the file; its outcome is an error)

Each source is decoded completely, and checked against its statistics, before any of its rows is written. So a
source that fails, or changes while it is read, does not affect the other sources. The source's rows stay in
memory until then; if they take more than a small source should, they are decoded again to be written, and
must be the same. The journal has an entry for each source with its range of rows: if a source vanishes or
changes later, exactly these rows are removed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from coldframe._coldframe import RawDecoded, RawFingerprint, RawTarget, decode
from coldframe.pipeline.records import Checks, Failure, MergeOutcome, Outcome, StagedFile
from coldframe.pipeline.work.convert import (
    Decoding,
    Task,
    VerificationError,
    attempt,
    check_change,
    check_unchanged,
    checks_of,
    digest_of_source,
    discard_files,
    finish_file,
    losses,
)


@dataclass(frozen=True)
class MergeTask:
    """Sources of one split each, to become one file."""

    tasks: tuple[Task, ...]
    staged: str
    stem: str
    """The beginning of the file's name."""

    @property
    def bytes(self) -> int:
        """The size of the sources."""
        return sum(task.bytes for task in self.tasks)

    def run(self) -> MergeOutcome:
        """See `run_merge`."""
        return run_merge(self)

    def given_up(self, reason: str) -> MergeOutcome:
        """The outcome if no worker could run the task."""
        return MergeOutcome(tuple(task.given_up(reason) for task in self.tasks))

    def apart(self) -> Sequence[Any]:
        """Two halves, so that the source that kills workers can be found; empty for a single source."""
        middle = len(self.tasks) // 2
        halves = (self.tasks[:middle], self.tasks[middle:]) if middle else ()
        return [replace(self, tasks=half) for half in halves]


def run_merge(merge: MergeTask) -> MergeOutcome:
    """Converts the sources. The outcome contains each source's outcome, as `run_task` returns it."""
    staged = attempt(merge.staged)
    merged = _Merging(merge, staged)
    try:
        for task in merge.tasks:
            merged.add(task)
        file = merged.finish()
    except Exception as error:
        discard_files([staged], merge.tasks[0].target_options)
        return merged.failed(Failure.of(error))
    return merged.outcome(file)


@dataclass(frozen=True)
class _Inside:
    """The rows of a source in the file: the number of the first row, and their fingerprint."""

    first: int
    checks: Checks


class _Merging:
    """The common file of the sources, and each source's result."""

    def __init__(self, merge: MergeTask, staged: str) -> None:
        self._merge, self._task, self._staged = merge, merge.tasks[0], staged
        self._outcomes: list[Outcome] = []
        self._inside: dict[str, _Inside] = {}
        """The sources that have rows in the file, by their keys."""
        self._target: RawTarget | None = None
        """The common file; it is begun with the first row."""
        self._print = RawFingerprint(self._task.schema)
        """The fingerprint of all rows together, and their number."""
        self._count = 0

    def add(self, task: Task) -> None:
        """Decodes another source, and writes its rows if all its checks pass."""
        started = time.monotonic()
        outcome, decoded = Outcome(task.key, task.number), None
        try:
            check_unchanged(task)
            decoding = Decoding(task)
            decoded = decode(decoding.rows, decoding.shape)
            decoding.check(decoded.rows, decoded.observed())
            outcome = replace(
                outcome,
                rows=decoded.rows,
                damage=decoding.damage,
                verified=task.verify,
                passed_over=decoding.passed_over,
                losses=decoding.losses,
                digest=digest_of_source(task),
            )
            outcome = replace(outcome, failure=losses(task.source, task.rows, [outcome]))
        except Exception as error:
            outcome = replace(outcome, failure=Failure.of(error))
        outcome = check_change(task, outcome)
        self._outcomes.append(replace(outcome, seconds=round(time.monotonic() - started, 3)))
        if outcome.failure is not None or decoded is None or not decoded.rows:
            return
        self._inside[task.key] = _Inside(self._count, checks_of(decoded.print) if task.verify else Checks())
        self._count += decoded.rows
        self._print.join(decoded.print)
        if self._target is None:
            self._target = task.sink.begin(task.schema, self._staged, task.target_options)
        if decoded.held:
            self._target.add(decoded)
        else:
            self._add_again(task, decoded)

    def _add_again(self, task: Task, decoded: RawDecoded) -> None:
        """Decodes once more a source that is too large for memory, writes its rows and compares them."""
        assert self._target is not None
        again = Decoding(task)
        rows, fingerprint = self._target.add_rows(again.rows, again.shape)
        differences = decoded.print.differences(fingerprint) if task.verify else []
        if rows != decoded.rows or differences:
            unlike = "; ".join(differences) or f"{decoded.rows} rows, then {rows}"
            raise VerificationError(f"{task.source}: reading it twice gave different rows: {unlike}")

    def finish(self) -> StagedFile | None:
        """Ends the file and reads it back; None if no source has a row."""
        if self._target is None:
            return None
        written = self._target.finish()
        file = StagedFile(self._staged, self._count, written["bytes"], written["sha256"])
        return finish_file(self._task, self._print, file)

    def outcome(self, file: StagedFile | None) -> MergeOutcome:
        """The outcome of each source, with its rows of the file."""
        digest = hashlib.sha256("\n".join(self._inside).encode()).hexdigest()
        name = f"{self._merge.stem}-{digest[:12]}"
        outcomes: list[Outcome] = []
        for outcome in self._outcomes:
            inside = self._inside.get(outcome.key)
            if inside is not None and file is not None:
                mine = replace(file, rows=outcome.rows, checks=inside.checks)
                if len(self._inside) > 1:
                    mine = replace(mine, first=inside.first, of=self._count, name=name)
                outcome = replace(outcome, files=(mine,), verified=file.verified)
            outcomes.append(outcome)
        return MergeOutcome(tuple(outcomes))

    def failed(self, failure: Failure) -> MergeOutcome:
        """Fails every source for a fault of the common file, which is no damage of the sources."""
        failure = Failure(failure.error)
        outcomes = [
            outcome if outcome.failure is not None else replace(outcome, failure=failure)
            for outcome in self._outcomes
        ]
        seen = {outcome.key for outcome in outcomes}
        outcomes += [task.given_up(failure.error) for task in self._merge.tasks if task.key not in seen]
        return MergeOutcome(tuple(outcomes))
