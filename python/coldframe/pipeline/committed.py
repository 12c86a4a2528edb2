"""What the work ends in: a table whose files are all in place. Delta and Iceberg describe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from coldframe.pipeline.journal import Entry


@dataclass(frozen=True)
class CommittedTable:
    """A table whose files have their final names."""

    name: str
    path: str
    """Relative to the target's root."""
    schema: pa.Schema
    """Of the files."""
    partitions: Sequence[pa.Field]
    entries: Sequence[Entry]
