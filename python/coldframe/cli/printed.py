"""Columns and rows of one file as the command line prints them, without pyarrow where that is possible.

pyarrow takes longer to import than a few rows take to read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from coldframe.arrow import without_numpy
from coldframe.batches import DEFAULT_BATCH_SIZE
from coldframe.errors import warn
from coldframe.file import File
from coldframe.logs import watched
from coldframe.scanning import Dataset

__all__ = ["printed_columns", "printed_rows"]

_log = logging.getLogger(__name__)


def printed_columns(rows: File | Dataset) -> list[tuple[str, str, bool]]:
    """Each column's name, its type, and whether it may be null."""
    columns = rows._raw.printed_columns() if isinstance(rows, File) else None
    if columns is not None:
        return columns
    without_numpy()
    return [(field.name, str(field.type), field.nullable) for field in rows.schema]


def printed_rows(
    rows: File | Dataset, columns: Sequence[str] | None, limit: int | None
) -> list[tuple[Any, ...]] | None:
    """The first rows of a file; None if only pyarrow can read or print them."""
    if not isinstance(rows, File) or limit is None or limit < 1:
        return None
    scan = rows._raw.scan(
        columns=None if columns is None else list(columns),
        limit=limit,
        # More rows are decoded than are printed: a wrong schema may only show in a later one.
        batch_size=DEFAULT_BATCH_SIZE,
        threads=1,
        read_ahead=False,
        strings="plain",
    )
    printed: list[tuple[Any, ...]] = []
    for batch in watched(_log, logging.INFO, "reading %s", rows.path, batches=scan):
        values = batch.printed()
        if not values:  # a type that is not known here, or rows without columns
            return None
        printed.extend(zip(*values, strict=True))
    for kind, text in scan.take_notices():
        warn(rows._raw.path, kind, text)
    return printed
