"""The entry point of the command `coldframe`: prints the version without importing Arrow."""

from __future__ import annotations

import sys
import traceback

from coldframe import __version__

_INTERRUPTED = 130  # the same as in `coldframe.cli`


def main() -> int:
    """Runs the command and returns its exit code, also if it is interrupted while it loads."""
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"coldframe {__version__}")
        return 0
    try:
        from coldframe.cli import main as run
    except KeyboardInterrupt:
        print("coldframe: interrupted", file=sys.stderr)
        return _INTERRUPTED
    from coldframe.arrow import own_process
    from coldframe.terminal import printed_safely

    own_process()
    # The text of an error that nobody expected may come from a file, too.
    with printed_safely():
        try:
            return run()
        except Exception:
            traceback.print_exc()
            return 1
