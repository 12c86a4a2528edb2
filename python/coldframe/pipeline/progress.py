"""A bar where somebody looks, nothing where nobody does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from coldframe.pipeline.run import Progress


class _Bar:
    """rich's progress bar, by bytes of the source."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None

    def start(self, files: int, size: int) -> None:
        """Shows the whole of the work."""
        self._task = self._bar.add_task(f"{files:,} files", total=max(1, size))

    def advance(self, file: str, size: int) -> None:
        """One more file is done."""
        self._bar.update(self._task, advance=size, description=file[-40:])


@contextlib.contextmanager
def progress_for(terminal: TextIO) -> Iterator[Progress]:
    """A bar on the terminal, if it is one and rich is installed."""
    from coldframe.pipeline.run import NoProgress

    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        yield NoProgress()
        return
    if not terminal.isatty():
        yield NoProgress()
        return
    with progress.Progress(
        progress.TextColumn("{task.description}", justify="left"),
        progress.BarColumn(),
        progress.DownloadColumn(binary_units=True),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(file=terminal),
        transient=True,
    ) as bar:
        yield _Bar(bar)
