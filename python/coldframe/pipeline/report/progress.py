"""Progress: a bar on a terminal, otherwise a line now and then for a log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO

from coldframe.pipeline.records import Json
from coldframe.terminal import console_of

LINE_SECONDS = 30.0
"""Seconds between two lines of a log."""
MAX_BUCKETS = 240
MIN_TASKS = 3
"""The tasks that must have ended before a time is estimated."""


class Progress(Protocol):
    """Receives progress."""

    def start(self, tables: int, files: int, size: int) -> None: ...
    def advance(self, table: str, size: int, rows: int) -> None: ...


class NoProgress:
    """Ignores progress."""

    def start(self, tables: int, files: int, size: int) -> None:
        """Announces the total work; `size` is in bytes of the source."""

    def advance(self, table: str, size: int, rows: int) -> None:
        """A task has finished: it has read about `size` bytes of the source, and written `rows` rows."""


@dataclass
class Timeline:
    """Bytes and rows over time, in at most `MAX_BUCKETS` steps of equal length."""

    step: float = 0.25
    """Seconds."""
    bytes: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    _begun: float = field(default_factory=time.monotonic, repr=False)

    def add(self, size: int, rows: int, *, at: float | None = None) -> None:
        """Records work done now, or `at` seconds after the start."""
        seconds = time.monotonic() - self._begun if at is None else at
        while seconds >= self.step * MAX_BUCKETS:
            self.step *= 2
            self.bytes = [sum(self.bytes[at : at + 2]) for at in range(0, len(self.bytes), 2)]
            self.rows = [sum(self.rows[at : at + 2]) for at in range(0, len(self.rows), 2)]
        place = int(seconds / self.step)
        missing = place + 1 - len(self.bytes)
        self.bytes += [0] * missing
        self.rows += [0] * missing
        self.bytes[place] += size
        self.rows[place] += rows

    def to_json(self) -> Json:
        """The steps as JSON, for the report."""
        return {"step_seconds": self.step, "bytes": self.bytes, "rows": self.rows}


class Pace:
    """How long the rest takes, by the tasks that have ended.

    Time counts from the end of the first task: before it, a Spark session may have started.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._tasks = self._first = self._bytes = 0
        self._begun = 0.0

    def add(self, size: int) -> None:
        """A task has ended."""
        self._tasks += 1
        self._bytes += size
        if self._tasks == 1:
            self._first, self._begun = size, time.monotonic()

    def left(self) -> str:
        """A range of durations, narrower with each task; empty before three tasks have ended."""
        done = self._bytes - self._first
        if self._tasks < MIN_TASKS or done <= 0:
            return ""
        seconds = (time.monotonic() - self._begun) * max(0, self._size - self._bytes) / done
        spread = self._tasks**-0.5
        ends = dict.fromkeys(_duration(seconds * factor) for factor in (1 - spread, 1 + spread))
        return f"{' to '.join(ends)} left"


class _Bar:
    """rich's progress bar, by bytes of the source."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None
        self._rows = 0
        self._pace = Pace(0)

    def start(self, tables: int, files: int, size: int) -> None:
        """Shows the total work."""
        what = f"{files:,} files of {tables:,} tables"
        self._pace = Pace(size)
        self._task = self._bar.add_task(what, total=max(1, size), rows="", left="")

    def advance(self, table: str, size: int, rows: int) -> None:
        """Adds a finished task."""
        self._rows += rows
        self._pace.add(size)
        shown = {"rows": f"{self._rows:,} rows", "left": self._pace.left()}
        self._bar.update(self._task, advance=size, description=table[-32:], **shown)


class Lines:
    """A line each half minute, for logs."""

    def __init__(self, out: TextIO, *, every: float = LINE_SECONDS) -> None:
        self._out = out
        self._every = every
        self._begun = self._last = time.monotonic()
        self._size = self._bytes = self._rows = 0
        self._pace = Pace(0)

    def start(self, tables: int, files: int, size: int) -> None:
        """Records the total work."""
        self._size = size
        self._pace = Pace(size)
        self._begun = self._last = time.monotonic()

    def advance(self, table: str, size: int, rows: int) -> None:
        """Adds a finished task."""
        self._bytes += size
        self._rows += rows
        self._pace.add(size)
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        rate = self._bytes / max(1e-9, now - self._begun)
        left = self._pace.left()
        share = 100 * self._bytes / max(1, self._size)
        mebibytes = (self._bytes / 2**20, self._size / 2**20, rate / 2**20)
        print(
            f"{share:.1f} %: {mebibytes[0]:,.1f} of {mebibytes[1]:,.1f} MiB, {self._rows:,} rows, "
            f"{mebibytes[2]:,.1f} MiB/s, {left + ', ' if left else ''}at {table}",
            file=self._out,
            flush=True,
        )


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


@contextlib.contextmanager
def progress_for(terminal: TextIO) -> Iterator[Progress]:
    """A bar if `terminal` is a terminal and rich is installed; otherwise lines."""
    try:
        from rich import progress
    except ImportError:
        yield Lines(terminal)
        return
    if not terminal.isatty():
        yield Lines(terminal)
        return
    with progress.Progress(
        progress.TextColumn("{task.description}", justify="left", markup=False),
        progress.BarColumn(),
        progress.DownloadColumn(binary_units=True),
        progress.TransferSpeedColumn(),
        progress.TextColumn("{task.fields[rows]}"),
        progress.TextColumn("{task.fields[left]}"),
        console=console_of(terminal),
        transient=True,
    ) as bar:
        yield _Bar(bar)
