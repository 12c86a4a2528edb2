"""Now `coldframe.pipeline.sink.destination`; this name is deprecated and goes with the next version."""

from __future__ import annotations

import warnings

from coldframe.pipeline.sink.destination import Destination, Found

__all__ = ["Destination", "Found"]

warnings.warn(
    "coldframe.pipeline.destination is now coldframe.pipeline.sink.destination",
    DeprecationWarning,
    stacklevel=2,
)
