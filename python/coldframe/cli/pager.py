"""Sends output longer than the screen through a pager, as git does."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from typing import TextIO, cast

from coldframe.cli import output
from coldframe.terminal import Printed

# less exits if everything fits the screen, shows colours, and leaves its output on the screen.
_LESS = "FRX"


@contextlib.contextmanager
def paged(wanted: bool) -> Iterator[None]:
    """Sends standard output through `COLDFRAME_PAGER`, `PAGER` or less, if it is a terminal."""
    command = _command() if wanted and sys.stdout.isatty() else []
    if not command:
        yield
        return
    import subprocess

    terminal = sys.stdout
    pager = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={"LESS": _LESS, **os.environ},
    )
    assert pager.stdin is not None
    sys.stdout = cast(TextIO, Printed(pager.stdin))
    output.paging(True)
    try:
        with contextlib.suppress(BrokenPipeError):  # the reader has quit
            yield
    finally:
        sys.stdout = terminal
        output.paging(False)
        with contextlib.suppress(BrokenPipeError):
            pager.stdin.close()
        while pager.poll() is None:
            with contextlib.suppress(KeyboardInterrupt):  # while the pager runs, it handles Ctrl-C
                pager.wait()


def _command() -> list[str]:
    import shutil

    given = os.environ.get("COLDFRAME_PAGER", os.environ.get("PAGER", "less"))
    command = shlex.split(given)
    return command if command and command != ["cat"] and shutil.which(command[0]) else []
