"""Whether directories are what they were: looked at behind the last byte that was read of them.

A directory has very many files, and very many tasks read it: some for each of its tables. What they read is
of one directory if its identity behind the last byte is that of the inventory. One look answers for every
table whose last task was back before it began; a table that comes later waits for the next one. What a killed
run has kept needs none: it counts only where the next inventory finds that identity again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from coldframe.pipeline.records import SourceFile
from coldframe.pipeline.source.identity import is_unchanged
from coldframe.pipeline.work.in_flight import Underway

_THREADS = 8


@dataclass
class _Directory:
    waiting: list[Underway] = field(default_factory=list)
    served: list[Underway] = field(default_factory=list)
    """By the look that is under way."""


class DirectoryChecks:
    """Looks of the driver, beside its loop: one at a time at each directory."""

    def __init__(self, finish: Callable[[Underway], None]) -> None:
        """`finish` is told of sources all of whose tasks are back: of directories behind the look at them."""
        self._finish = finish
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="coldframe-look")
        self._directories: dict[str, _Directory] = {}
        self._flying: dict[Future[bool], _Directory] = {}

    def __enter__(self) -> DirectoryChecks:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def finish(self, one: Underway) -> None:
        """All tasks of a source are back."""
        if not one.planned.file.is_folder:
            self._finish(one)
            return
        directory = self._directories.setdefault(one.planned.file.path, _Directory())
        directory.waiting.append(one)
        if not directory.served:
            self._begin(directory)

    def settle(self, *, wait_for_all: bool = False) -> None:
        """Finishes those whose directory has been looked at: `changed` where it is another one now."""
        while self._flying:
            timeout = None if wait_for_all else 0
            back = wait(self._flying, timeout=timeout, return_when=FIRST_COMPLETED).done
            for look in back:
                directory = self._flying.pop(look)
                served, directory.served = directory.served, []
                if directory.waiting:
                    self._begin(directory)
                for one in served:
                    one.changed = not look.result()
                    self._finish(one)
            if not (back or wait_for_all):
                return

    def _begin(self, directory: _Directory) -> None:
        directory.served, directory.waiting = directory.waiting, []
        look = self._threads.submit(_is_unchanged, directory.served[0].planned.file)
        self._flying[look] = directory


def _is_unchanged(file: SourceFile) -> bool:
    return is_unchanged(file.path, file.identity, file.storage_options)
