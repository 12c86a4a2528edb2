"""Log lines about what a read waits for: sources, plans, scans, calls to metastores and stores.

The loggers have the names of the modules, below `coldframe`. Lines name paths and hosts, but no credentials:
each text in a line passes through `safe`. For an error, a line states the class only: the error's text may
have secrets.

The compiled core writes its own lines, the trace, to the standard error of the process: see `traced`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any

from coldframe import _coldframe
from coldframe.terminal import printable


def safe(value: object) -> object:
    """A value for a log line: a number, or a text without passwords, queries and control characters."""
    if value is None or isinstance(value, (int, float)):
        return value
    return printable(_coldframe.shown(str(value)))


@contextlib.contextmanager
def traced() -> Iterator[None]:
    """Turns the core's trace on, if the logger `coldframe` logs at debug level."""
    if not logging.getLogger("coldframe").isEnabledFor(logging.DEBUG):
        yield
        return
    before = _coldframe.set_trace(True)
    try:
        yield
    finally:
        _coldframe.set_trace(before)


@contextlib.contextmanager
def step(logger: logging.Logger, level: int, what: object, *values: object) -> Iterator[list[str]]:
    """Logs the start of a step, and its end with the milliseconds and the notes that the body appends.

    An error ends the step with its class only.
    """
    notes: list[str] = []
    if not logger.isEnabledFor(level):
        yield notes
        return
    text = str(what) % tuple(map(safe, values))
    logger.log(level, "%s", text)
    began, outcome = time.monotonic(), "done"
    try:
        yield notes
    except BaseException as error:
        outcome = type(error).__name__
        raise
    finally:
        logger.log(level, "%s: %s", text, ", ".join([outcome, *notes, _since(began)]))


def watched(
    logger: logging.Logger, level: int, what: object, *values: object, batches: Iterable[Any]
) -> Iterable[Any]:
    """Passes the batches on unchanged.

    Logs the request for the first batch, and the end with rows and milliseconds.
    """
    if not logger.isEnabledFor(level):
        return batches
    return _watched(logger, level, str(what) % tuple(map(safe, values)), batches)


def _watched(logger: logging.Logger, level: int, text: str, batches: Iterable[Any]) -> Iterator[Any]:
    logger.log(level, "%s", text)
    began, outcome = time.monotonic(), "stopped by the caller"
    count = rows = 0
    try:
        for batch in batches:
            if count == 0:
                logger.debug("%s: first batch, %s", text, _since(began))
            count += 1
            rows += batch.num_rows
            yield batch
        outcome = "done"
    except GeneratorExit:
        raise
    except BaseException as error:
        outcome = type(error).__name__
        raise
    finally:
        logger.log(level, "%s: %s, %d rows in %d batches, %s", text, outcome, rows, count, _since(began))


def _since(began: float) -> str:
    return f"{(time.monotonic() - began) * 1000:.0f} ms"
