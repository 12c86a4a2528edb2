"""Now `coldframe.pipeline.target.destination`; this name is deprecated and goes with the next version."""

from __future__ import annotations

import warnings

from coldframe.pipeline.target.destination import Destination, Found

__all__ = ["Destination", "Found"]

warnings.warn(
    "coldframe.pipeline.destination is now coldframe.pipeline.target.destination",
    DeprecationWarning,
    stacklevel=2,
)
