"""Where the command `coldframe` begins: what needs no Arrow is answered before that is imported."""

from __future__ import annotations

import sys

from coldframe import __version__

__all__ = ["main"]

_INTERRUPTED = 130  # as `coldframe.cli` has it


def main() -> int:
    """Runs the command and gives its exit code, also where it is interrupted before it has begun."""
    if sys.argv[1:] in (["--version"], ["version"]):
        print(f"coldframe {__version__}")
        return 0
    try:
        from coldframe.cli import main as run
    except KeyboardInterrupt:
        print("coldframe: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return run()
