"""The single owner of sources whose tasks are running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import Outcome, PlannedFile


@dataclass
class Running:
    """A source file whose tasks are running."""

    work: TableWork
    planned: PlannedFile
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    changed: bool = False
    """Whether it is a directory that has changed since it was planned."""

    @property
    def is_back(self) -> bool:
        """Whether all tasks of the source are back."""
        return len(self.outcomes) == len(self.planned.parts)


class InFlight:
    """The sources of a run, from the first task handed out until each source is finished."""

    def __init__(self, works: Sequence[TableWork]) -> None:
        self._sources: dict[str, Running] = {}
        """Sources by their keys."""
        self._unfinished = {work.table.path: len(work.planned) for work in works}
        """How many sources of each table are not finished."""

    @property
    def tables(self) -> int:
        """How many tables have unfinished sources."""
        return sum(count > 0 for count in self._unfinished.values())

    @property
    def files(self) -> int:
        """How many sources are unfinished."""
        return sum(self._unfinished.values())

    def begin(self, work: TableWork, planned: PlannedFile) -> Running:
        """Registers a source whose tasks are about to be handed out."""
        running = self._sources[planned.key] = Running(work, planned)
        return running

    def take(self, outcome: Outcome) -> Running | None:
        """Takes a returned task; None if another attempt at it was already accepted."""
        running = self._sources.get(outcome.key)
        if running is None or outcome.number in running.outcomes:
            return None
        running.outcomes[outcome.number] = outcome
        return running

    def finish(self, running: Running) -> bool:
        """Finishes a source; returns whether it was the last source of its table."""
        self._sources.pop(running.planned.key, None)
        self._unfinished[running.work.table.path] -= 1
        return not self._unfinished[running.work.table.path]
