"""The command `coldframe`: shows, checks, rescues and converts files of all formats.

Exit codes of all commands: 0 success; 1 damage or a mismatch; 2 failure (usage, unsupported, not found);
3 stopped by the surroundings (migrate, delete, unswitch); 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence

from coldframe._coldframe import shown_in
from coldframe.cli import output
from coldframe.cli.commands import parser_for, parser_of_all
from coldframe.cli.pager import paged
from coldframe.cli.verbosity import log_to_stderr, verbosity_of
from coldframe.errors import ColdframeError, CorruptFileError
from coldframe.terminal import printed_safely, stream_of

__all__ = ["main", "parser_of_all"]

# Commands with output that people read from the top.
_PAGED = frozenset(
    {
        "schema",
        "meta",
        "stats",
        "dictionary",
        "splits",
        "head",
        "cat",
        "get",
        "scan",
        "keys",
        "sizes",
        "index",
        "inspect",
        "diff",
        "summarize",
        "tables",
        "options",
    }
)

DAMAGED, FAILED, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    warnings.showwarning = _show_warning
    out = stream_of(sys.stdout)
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="surrogateescape")  # file names need not be UTF-8
    with printed_safely():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        parsed = parser_for(arguments).parse_args(arguments)
        run: Callable[[argparse.Namespace], int | None] = parsed.run
        code = 0
        with (
            log_to_stderr(verbosity_of(parsed)),
            paged(parsed.command in _PAGED and not parsed.no_pager),
        ):
            code = run(parsed) or 0
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. Without the redirection, Python reports the closed pipe
        # again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        output.complain("interrupted")
        return INTERRUPTED
    except CorruptFileError as error:
        _complain(str(error), is_damage=True)
        return DAMAGED
    except (ColdframeError, ValueError, OSError, TypeError) as error:
        _complain(_as_options(str(error)))
        return FAILED


def _complain(message: str, *, is_damage: bool = False) -> None:
    """Prints an error, and below it the next step if the message names none."""
    from coldframe.cli.next_steps import next_step

    message = shown_in(message)
    output.complain(message)
    if (step := next_step(message, is_damage=is_damage)) is not None:
        print(f"  next: {step}", file=sys.stderr)


def _as_options(message: str) -> str:
    """A message with arguments of `open` replaced by options of the command line."""
    return re.sub(r"\bby table=(?:\"<id>\")?: ", "by --option table=NAME: ", message)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Prints a warning as one line, without its location in the code."""
    output.complain(f"warning: {shown_in(str(message))}")
