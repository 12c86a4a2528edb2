"""Moved to `coldframe.pipeline.state.journal`: this name is deprecated, and goes with the next version."""

from __future__ import annotations

import warnings

from coldframe.pipeline.state.journal import Journal, State, read_state

__all__ = ["Journal", "State", "read_state"]

warnings.warn(
    "coldframe.pipeline.journal is now coldframe.pipeline.state.journal", DeprecationWarning, stacklevel=2
)
