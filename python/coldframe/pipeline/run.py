"""Moved to `coldframe.pipeline`: this name is deprecated, and goes with the next version."""

from __future__ import annotations

import warnings

from coldframe.pipeline import migrate

__all__ = ["migrate"]

warnings.warn(
    "coldframe.pipeline.run.migrate is now coldframe.pipeline.migrate", DeprecationWarning, stacklevel=2
)
