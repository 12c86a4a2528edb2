"""The exit codes of commands that a migration's surroundings can stop."""

from __future__ import annotations

import sys

from coldframe._coldframe import ColdframeError, shown_in

WRONG_USE = 2
"""Nothing was begun: wrong usage, or something that is not supported."""
SURROUNDINGS = 3
"""A disk, a permission, a store or another driver has stopped it: the same call can succeed later."""
ERRORS = (ColdframeError, ValueError, OSError)


def stopped(command: str, error: Exception) -> int:
    """Prints why a command has stopped, and returns its exit code."""
    from coldframe.pipeline.state.chain import Fenced

    print(f"coldframe {command}: {shown_in(str(error))}", file=sys.stderr)
    outside = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
    return SURROUNDINGS if outside or isinstance(error, Fenced) else WRONG_USE
