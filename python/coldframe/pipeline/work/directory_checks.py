"""Checks that directories are unchanged, after their last byte was read.

A directory may have very many files, and many tasks read it, several for each of its tables. All tasks have
read the same state if the directory's identity after the last byte equals the inventory's. One check covers
every table whose last task was back before the check began; later tables wait for the next check. Results
that a killed run kept need no check: they are used only if the next inventory finds the same identity.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from coldframe.pipeline.records import SourceFile
from coldframe.pipeline.source.identity import is_unchanged
from coldframe.pipeline.work.in_flight import Running

_THREADS = 8


@dataclass
class _Directory:
    waiting: list[Running] = field(default_factory=list)
    served: list[Running] = field(default_factory=list)
    """The sources that the running check covers."""


class DirectoryChecks:
    """Checks by the driver, in parallel to its loop: one at a time per directory."""

    def __init__(self, finish: Callable[[Running], None]) -> None:
        """`finish` is called for sources whose tasks are all back; for directories after their check."""
        self._finish = finish
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="coldframe-look")
        self._directories: dict[str, _Directory] = {}
        self._flying: dict[Future[bool], _Directory] = {}

    def __enter__(self) -> DirectoryChecks:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def finish(self, running: Running) -> None:
        """Takes a source whose tasks are all back."""
        if not running.planned.file.is_folder:
            self._finish(running)
            return
        directory = self._directories.setdefault(running.planned.file.path, _Directory())
        directory.waiting.append(running)
        if not directory.served:
            self._begin(directory)

    def settle(self, *, wait_for_all: bool = False) -> None:
        """Finishes sources whose directory has been checked; sets `changed` if the directory differs now."""
        while self._flying:
            timeout = None if wait_for_all else 0
            back = wait(self._flying, timeout=timeout, return_when=FIRST_COMPLETED).done
            for look in back:
                directory = self._flying.pop(look)
                served, directory.served = directory.served, []
                if directory.waiting:
                    self._begin(directory)
                for running in served:
                    running.changed = not look.result()
                    self._finish(running)
            if not (back or wait_for_all):
                return

    def _begin(self, directory: _Directory) -> None:
        directory.served, directory.waiting = directory.waiting, []
        look = self._threads.submit(_is_unchanged, directory.served[0].planned.file)
        self._flying[look] = directory


def _is_unchanged(file: SourceFile) -> bool:
    return is_unchanged(file.path, file.identity, file.storage_options)
