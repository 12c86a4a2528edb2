"""The option -v: log lines on standard error."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterator

from coldframe.logs import traced

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEVELS = (logging.INFO, logging.DEBUG)
_HELP = "log what the command waits for, with times, to standard error; -vv logs more"


def add_verbose_options(parser: argparse.ArgumentParser, commands: argparse.Action) -> None:
    """Adds -v before and after the name of a command."""
    parser.add_argument("-v", "--verbose", action="count", default=0, help=_HELP)
    for command in dict.fromkeys(commands.choices.values()):  # type: ignore[union-attr]
        # With one `dest` for both places, argparse would forget a -v before the command.
        command.add_argument("-v", "--verbose", action="count", default=0, dest="verbose_command", help=_HELP)


def verbosity_of(parsed: argparse.Namespace) -> int:
    """How often -v was given."""
    return int(parsed.verbose) + int(getattr(parsed, "verbose_command", 0))


@contextlib.contextmanager
def log_to_stderr(verbosity: int) -> Iterator[None]:
    """Logs to standard error: nothing for 0, info for 1, debug and the trace of the core for more."""
    if verbosity == 0:
        yield
        return
    logger = logging.getLogger("coldframe")
    before = logger.level
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS)) - 1])
    try:
        with traced():
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
