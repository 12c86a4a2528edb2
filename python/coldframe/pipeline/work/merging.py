"""Small sources of one table and partition become one file of the target, each with rows of its own in it.

    source a, rows 0..310 ┐
    source b, rows 310..520 ┼─ staged file ─ read back ─ published when all their entries are
    source c, damaged       ┘  (c has no rows in it, and an error of its own)

Each source is decoded whole, and held against what it says of itself, before a row of it is written: so that
one that fails, or changes while it is read, costs nobody else anything. The journal has an entry for each
source with the rows of the file that are its own: what vanishes or changes later takes out exactly these.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from coldframe._coldframe import RawDecoded, RawFingerprint, RawTarget, decode
from coldframe.pipeline.work.convert import (
    Decoding,
    Task,
    attempt,
    demand_unchanged,
    discard_files,
    finish_file,
    losses,
    reported,
    take_digest,
    tell_change,
)


@dataclass(frozen=True)
class MergeTask:
    """Sources that are one split each, to become one file."""

    tasks: tuple[Task, ...]
    staged: str
    stem: str
    """What the file's name begins with."""

    @property
    def bytes(self) -> int:
        """Of the sources."""
        return sum(task.bytes for task in self.tasks)

    def run(self) -> dict[str, Any]:
        """See `run_merge`."""
        return run_merge(self)

    def given_up(self, reason: str) -> dict[str, Any]:
        """The outcome where no worker lived long enough to give one."""
        return {"sources": [task.given_up(reason) for task in self.tasks]}

    def apart(self) -> Sequence[Any]:
        """Two halves, so that the source that kills workers is found; none of a single one."""
        middle = len(self.tasks) // 2
        halves = (self.tasks[:middle], self.tasks[middle:]) if middle else ()
        return [replace(self, tasks=half) for half in halves]


def run_merge(merge: MergeTask) -> dict[str, Any]:
    """Converts the sources. The outcome has that of each, as `run_task` gives it."""
    task = merge.tasks[0]
    file: dict[str, Any] = {"staged": attempt(merge.staged), "verified": False}
    whole: dict[str, Any] = {}
    merged = _Merging(merge, file["staged"])
    with reported(whole):
        for one in merge.tasks:
            merged.add(one)
        if merged.target is not None:
            written = merged.target.finish()
            file.update(bytes=written["bytes"], sha256=written["sha256"])
            finish_file(task, merged.print, file)
    if "error" in whole:
        discard_files([file], task.target_options)
        for outcome in merged.outcomes:
            outcome.setdefault("error", whole["error"])
        seen = {outcome["key"] for outcome in merged.outcomes}
        merged.outcomes += [one.given_up(whole["error"]) for one in merge.tasks if one.key not in seen]
        return {"sources": merged.outcomes}
    inside = [outcome for outcome in merged.outcomes if "checks" in outcome]
    digest = hashlib.sha256("\n".join(outcome["key"] for outcome in inside).encode()).hexdigest()
    for outcome in inside:
        mine = {"rows": outcome["rows"], "checks": outcome.pop("checks")}
        first = outcome.pop("first")
        if len(inside) > 1:
            mine.update(first=first, of=merged.count, name=f"{merge.stem}-{digest[:12]}")
        outcome["files"].append({**file, **mine})
        outcome["verified"] = file["verified"]
    return {"sources": merged.outcomes}


class _Merging:
    """The file that the sources go into, one after the other, and what became of each."""

    def __init__(self, merge: MergeTask, staged: str) -> None:
        self._task, self._staged = merge.tasks[0], staged
        self.outcomes: list[dict[str, Any]] = []
        self.target: RawTarget | None = None
        """Begun with the first row."""
        self.print = RawFingerprint(self._task.schema)
        """Of all rows together, and how many there are."""
        self.count = 0

    def add(self, task: Task) -> None:
        started = time.monotonic()
        outcome: dict[str, Any] = {"key": task.key, "number": task.number, "files": []}
        decoded: RawDecoded | None = None
        with reported(outcome):
            demand_unchanged(task)
            decoding = Decoding(task)
            decoded = decode(decoding.rows, decoding.shape)
            decoding.demand(decoded.rows, decoded.observed())
            outcome.update(rows=decoded.rows, damage=decoding.damage, verified=task.verify)
            outcome.update(passed_over=decoding.passed_over, losses=decoding.losses)
            take_digest(task, outcome)
            lost = losses(task.source, task.rows, [outcome])
            if lost is not None:
                outcome.update(error=lost[0], damaged=lost[1] == "damaged")
        tell_change(task, outcome)
        outcome["seconds"] = round(time.monotonic() - started, 3)
        self.outcomes.append(outcome)
        if "error" in outcome or decoded is None or not decoded.rows:
            return
        outcome.update(first=self.count, checks=decoded.print.to_json() if task.verify else {})
        self.count += decoded.rows
        self.print.join(decoded.print)
        if self.target is None:
            self.target = task.sink.begin(task.schema, self._staged, task.target_options)
        self.target.add(decoded)
