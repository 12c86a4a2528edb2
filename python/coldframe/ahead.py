"""Streams of batches that run side by side and come out one after the other.

    file 0 ──▶ thread ──▶ a few batches ──┐
    file 1 ──▶ thread ──▶ a few batches ──┴──▶ all of file 0, then all of file 1, ..

No more streams are begun than threads may work, and each is only a few batches ahead of who takes them. What
a stream raises comes out in its place, as it is.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["in_order"]

_BATCHES_AHEAD = 4
_LOOK_AROUND = 0.2  # seconds after which a thread that waits looks whether anybody still wants its rows

Stream = Callable[[], Iterator[Any]]


class _Running:
    """A stream at work on a thread of its own."""

    def __init__(self, stream: Stream, stopped: threading.Event) -> None:
        self._stream = stream
        self._stopped = stopped
        self._items: queue.Queue[tuple[Any, BaseException | None] | None] = queue.Queue(_BATCHES_AHEAD)
        # No daemon: Python waits for it when it ends, and it ends because of that.
        threading.Thread(target=self._run, name="coldframe-ahead", daemon=False).start()

    def _run(self) -> None:
        try:
            with contextlib.ExitStack() as ending:
                stream = self._stream()
                if hasattr(stream, "close"):
                    ending.callback(stream.close)
                for batch in stream:
                    if not self._put((batch, None)):
                        return
            self._put(None)
        except BaseException as error:  # whoever takes the rows raises it
            self._put((None, error))

    def _put(self, item: tuple[Any, BaseException | None] | None) -> bool:
        while not self._stopped.is_set() and threading.main_thread().is_alive():
            with contextlib.suppress(queue.Full):
                self._items.put(item, timeout=_LOOK_AROUND)
                return True
        return False

    def __iter__(self) -> Iterator[Any]:
        while (item := self._items.get()) is not None:
            batch, error = item
            if error is not None:
                raise error
            yield batch


def in_order(streams: Iterable[Stream], threads: int) -> Iterator[Any]:
    """The batches of all streams in their order; up to `threads` of them are at work."""
    waiting = iter(streams)
    if threads < 2:
        for stream in waiting:
            yield from stream()
        return
    stopped = threading.Event()
    running: deque[_Running] = deque()
    try:
        while True:
            while len(running) < threads and (following := next(waiting, None)) is not None:
                running.append(_Running(following, stopped))
            if not running:
                return
            yield from running[0]
            running.popleft()
    finally:
        stopped.set()
