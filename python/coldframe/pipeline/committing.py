"""From outcomes of tasks to files of the tables.

A source file is committed when its last part is back, several at a time. Where files of a table are replaced
or taken out, what is converted is held until all of the table is, and then published at once: readers see the
earlier result until then, and never files of two types side by side. Where something of such a table failed,
and the types changed or sources are gone, the earlier result stays; what is converted waits for the next run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe.pipeline.comparing import Due, TableWork
from coldframe.pipeline.inventory import SourceFile, is_partition
from coldframe.pipeline.journal import Entry, Journal, Part
from coldframe.pipeline.plan import PlannedFile, encoded, schema_id
from coldframe.pipeline.report import FileReport

BATCH = 1000
"""Source files that are committed together, at most: they share a segment of the journal and the waits for
the disk;"""
BATCH_SECONDS = 2.0
"""and how long the first of them waits for the others."""
AT_ONCE = 1000
"""Held files that are published in one commit, and sources that are taken out in one."""

Fail = Callable[[TableWork, SourceFile, str, bool], None]
"""Is told of a file that failed, why, and whether it changed while it was read."""


@dataclass
class Underway:
    """A source file whose tasks are running."""

    work: TableWork
    planned: PlannedFile
    outcomes: dict[int, dict[str, Any]] = field(default_factory=dict)


class Committer:
    """Takes the outcomes of one run."""

    def __init__(
        self,
        journal: Journal,
        *,
        extension: str,
        fail: Fail,
        salvaged: Callable[[TableWork, PlannedFile, list[Any]], str | None],
    ) -> None:
        """`salvaged` is told of damage that cost rows, and gives where a copy of the file lies."""
        self._journal = journal
        self._extension = extension
        self._fail = fail
        self._salvaged = salvaged
        self._ready: list[tuple[TableWork, Entry, FileReport]] = []
        self._names: dict[int, tuple[pa.Schema, str]] = {}
        self._since = 0.0

    def finish(self, one: Underway) -> None:
        """All tasks of a source file are back."""
        work, planned = one.work, one.planned
        outcomes = [one.outcomes[number] for number in sorted(one.outcomes)]
        errors = list(dict.fromkeys(outcome["error"] for outcome in outcomes if "error" in outcome))
        errors = errors or _losses(planned, outcomes)
        if errors:
            for outcome in outcomes:
                if outcome.get("staged") is not None:
                    destination = self._journal.destination
                    destination.delete(destination.name_of(outcome["staged"]))
            changed = any(outcome.get("changed") for outcome in outcomes)
            self._fail(work, planned.file, "; ".join(errors), changed)
            return
        entry = self._entry(work, planned, outcomes)
        damage = entry.details["damage"]
        if damage:
            entry.details["quarantine"] = self._salvaged(work, planned, damage)
        if not self._ready:
            self._since = time.monotonic()
        self._ready.append((work, entry, FileReport.of_entry(entry, planned.file.size)))
        if len(self._ready) >= BATCH or time.monotonic() - self._since > BATCH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Commits, or holds, what is ready."""
        ready, self._ready = self._ready, []
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
                    work.held.append(Due(planned.file, entry.key))
            work.files.append(report)

    def publish(self, work: TableWork) -> None:
        """All tasks of a careful table are back."""
        self.flush()
        failed = [file.source for file in work.report.problems if file.error is not None]
        # In its old types, beside the others in their new ones, a file must not lie.
        stale = [source for source in failed if self._has_parts(source)] if work.rewritten else []
        stays = bool(stale or (failed and work.drops))
        if stays:
            why = "its types have changed" if stale else "sources of it are gone"
            work.report.error = (
                f"{len(failed)} file(s) could not be converted, such as {failed[0]}, and {why}: the earlier "
                "result stays until they are converted, or left out"
            )
        held = iter(work.held)
        while dues := list(itertools.islice(held, AT_ONCE)):
            entries = [self._journal.held[due.file.relative] for due in dues]
            if not stays:
                self._journal.commit(entries)
            for due, entry in zip(dues, entries, strict=True):
                # What an earlier run has held is told of here for the first time.
                before = work.files.get(entry.source)
                report = FileReport.of_entry(entry, due.file.size, earlier=before is None)
                report.status = "held" if stays else report.status
                work.files.append(report)
        for start in range(0, 0 if stays else len(work.drops), AT_ONCE):
            self._journal.commit([], drops=work.drops[start : start + AT_ONCE])

    def _has_parts(self, source: str) -> bool:
        entry = self._journal.done.get(source)
        return entry is not None and bool(entry.parts)

    def _entry(self, work: TableWork, planned: PlannedFile, outcomes: Sequence[dict[str, Any]]) -> Entry:
        journal = self._journal
        folder = "/".join([work.table.path, *(name for name in planned.file.folders if is_partition(name))])
        stem = _stem(planned.file.relative)
        parts: list[Part] = []
        for outcome in outcomes:
            if not outcome["rows"]:
                continue
            # The run's number makes the name one that no other attempt at this file has, at any time.
            run, number = journal.state.epoch, outcome["number"]
            name = f"{stem}-{planned.key[:12]}-{run:04d}-{number:04d}.{self._extension}"
            parts.append(
                Part(
                    staged=journal.destination.name_of(outcome["staged"]),
                    final=f"{folder}/{name}",
                    rows=outcome["rows"],
                    bytes=outcome["bytes"],
                    checks=outcome["checks"],
                    verified=outcome["verified"],
                    sha256=outcome.get("sha256"),
                )
            )
        details = {
            "bytes": planned.file.size,
            "rows": sum(outcome["rows"] for outcome in outcomes),
            "damage": [lost for outcome in outcomes for lost in outcome["damage"]],
            "verified": all(outcome["verified"] for outcome in outcomes),
            "seconds": round(sum(outcome["seconds"] for outcome in outcomes), 3),
            "schema": self._keep(work.schemas[planned.schema]),
            "written": self._keep(work.schema),
        }
        generation = journal.state.generation
        return Entry(
            planned.key, planned.file.relative, work.table.path, tuple(parts), (), details, generation
        )

    def _keep(self, schema: pa.Schema | None) -> str:
        """Remembers columns once, and gives the name under which files have them."""
        if schema is None:
            raise AssertionError("a file without columns was converted")
        known = self._names.get(id(schema))
        if known is None:
            known = self._names[id(schema)] = (schema, schema_id(schema))
            self._journal.keep_schema(known[1], encoded(schema))
        return known[1]


def _losses(planned: PlannedFile, outcomes: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong with a file as a whole whose every part is right in itself."""
    rows = sum(outcome["rows"] for outcome in outcomes)
    damaged = any(outcome["damage"] for outcome in outcomes)
    if damaged and not rows:
        reasons = [f"{lost['structure']}: {lost['reason']}" for one in outcomes for lost in one["damage"]]
        return [f"CorruptFileError: none of its rows could be saved; {reasons[0]}"]
    if not damaged and planned.rows is not None and rows != planned.rows:
        return [
            f"VerificationError: {planned.file.relative} has {planned.rows} rows, as it says; "
            f"{rows} were decoded"
        ]
    return []


def _stem(relative: str) -> str:
    name = relative.rsplit("/", 1)[-1]
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    # Not hidden from readers of the table, and short enough for every file system.
    return safe.lstrip("_.")[:80] or "file"
