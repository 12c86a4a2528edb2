"""Interrupts a run at its n-th operation: by a kill, or by a change that others make."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from coldframe import pipeline
from coldframe.pipeline.report import deletion
from coldframe.pipeline.sink.destination import open_destination
from coldframe.pipeline.source.removal import Removal
from coldframe.pipeline.work import committing, convert, merging

OPERATIONS = frozenset(
    [
        "list",
        "stat",
        "has",
        "read",
        "lines",
        "create",
        "write",
        "publish",
        "delete",
        "copy_in",
        "settle",
        "sweep",
        "prune",
    ]
)


class Killed(BaseException):
    """Simulates a kill."""


class Clock:
    """Counts the operations of a driver and its tasks. Calls `strike` at the given operation."""

    def __init__(self, at: int, strike: Callable[[], None]) -> None:
        self.left, self._strike, self.dead = at, strike, False

    def tick(self) -> None:
        if self.dead:
            # A killed process does not clean up.
            raise Killed
        self.left -= 1
        if self.left == 0:
            try:
                self._strike()
            except Killed:
                self.dead = True
                raise

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.tick()
            answer = call(*given, **named)
            self.tick()
            return answer

        return counted


def ticking(destination: Any, clock: Clock) -> Any:
    """The destination, with its operations counted."""
    for name in OPERATIONS:
        setattr(destination, name, clock.around(getattr(destination, name)))
    return destination


@contextlib.contextmanager
def deleting_until(at: int) -> Iterator[None]:
    """Kills `coldframe delete` after it has deleted `at` sources, before their receipts; never if 0."""
    left, remove = [at], Removal.run

    def counted(removal: Removal) -> str:
        place = remove(removal)
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return place

    with mock.patch.object(Removal, "run", counted), mock.patch.object(deletion, "BATCH", 2):
        yield


@contextlib.contextmanager
def striking(at: int, strike: Callable[[], None]) -> Iterator[Clock]:
    """Calls `strike` at operation `at` of each run that begins in the block."""
    clock = Clock(at, strike)
    with contextlib.ExitStack() as stack:

        def put(place: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(place, name, value))

        put(
            pipeline,
            "open_destination",
            lambda root, options: ticking(open_destination(root, options), clock),
        )
        put(committing, "BATCH", 3)
        for module in (convert, merging):
            put(module, "check_unchanged", clock.around(convert.check_unchanged))
            put(module, "check_change", clock.around(convert.check_change))
        with contextlib.suppress(ImportError):
            import deltalake
            import deltalake.transaction as made

            put(made, "create_table_with_add_actions", clock.around(made.create_table_with_add_actions))
            write = deltalake.DeltaTable.create_write_transaction
            put(deltalake.DeltaTable, "create_write_transaction", clock.around(write))
        with contextlib.suppress(ImportError):
            from pyiceberg.table import Transaction

            put(Transaction, "commit_transaction", clock.around(Transaction.commit_transaction))
        yield clock
