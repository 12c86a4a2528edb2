"""Reads queries from a terminal: several lines up to a semicolon, with a persistent history."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Protocol

from coldframe.cli import output
from coldframe.errors import ColdframeError

_KEPT = 1000
_HELP = """\
.tables   the tables that queries can name
.exit     leave (or Ctrl-D)
A query ends with a semicolon. Quote files and directories: from 'warehouse/sales';"""


class Shown(Protocol):
    """Runs the queries."""

    tables: dict[str, Any]

    def show_all(self, text: str) -> None:
        """Runs statements, and shows their rows."""


def ask(session: Shown) -> None:
    """Runs queries until the end of input. An error ends the query, not the session."""
    with _history():
        print("A query ends with a semicolon; .help shows the commands.")
        while (text := _query()) is not None:
            if text.startswith("."):
                if text in (".exit", ".quit"):
                    return
                print("\n".join(session.tables) if text == ".tables" else _HELP)
                continue
            try:
                session.show_all(text)
            except KeyboardInterrupt:
                output.complain("interrupted")
            except (ColdframeError, ValueError, OSError) as error:
                output.complain(str(error))


def _query() -> str | None:
    """The input up to a semicolon, or a line that begins with a dot; None at the end."""
    lines: list[str] = []
    while True:
        try:
            line = input("...> " if lines else "sql> ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            lines = []
            continue
        if not lines and line.strip().startswith("."):
            return line.strip()
        if line.strip():
            lines.append(line)
        if line.rstrip().endswith(";"):
            return "\n".join(lines)


@contextlib.contextmanager
def _history() -> Any:
    try:
        import readline
    except ImportError:  # a Python without readline
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(state) / "coldframe" / "sql_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_KEPT)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            readline.write_history_file(path)
