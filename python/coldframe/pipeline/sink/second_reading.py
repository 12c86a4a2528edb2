"""Reads the files that a commit has added to a table once more, through the table and with the library of the
table's format.

Each file was read back when it was written. This check finds errors that only a reader of the table meets: a
log or metadata that cannot be read, columns that are confused with others, and values that differ from the
file's values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coldframe._coldframe import ColdframeError, RawFingerprint
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.committed import CommittedTable
from coldframe.pipeline.sink.sinks import in_types_of

MAX_BYTES = 1 << 30
"""Bytes of a table that are read again after a commit: only the driver does this."""
_WORD = (1 << 64) - 1


@dataclass
class _Expected:
    """What was verified of a file."""

    rows: int = 0
    first: int = 0
    second: int = 0
    is_printed: bool = True
    """Whether there is a fingerprint of the rows, over the columns of the table."""


def read_again(
    table: CommittedTable, added: Iterable[str], by: str, read: Callable[[Set[str]], Iterable[Any]]
) -> Json:
    """Compares the rows that `read` gives for some added files with the verified rows. Returns what was read,
    for the report; raises ColdframeError if the rows differ.
    """
    if table.schema is None:
        return {}
    wanted = frozenset(added)
    if not wanted:
        return {}
    expected: dict[str, _Expected] = defaultdict(_Expected)
    names, size = list(table.schema.names), 0
    for part in (part for entry in table.entries for part in entry.parts if part.final in wanted):
        if part.final not in expected:
            if size > MAX_BYTES:
                continue
            size += part.bytes
        file, print = expected[part.final], part.checks.get("row_checksum", "")
        file.rows += part.rows
        if len(print) != 32 or list(part.checks.get("columns", ())) != names:
            file.is_printed = False
        else:
            file.first = (file.first + int(print[:16], 16)) & _WORD
            file.second = (file.second + int(print[16:], 16)) & _WORD
    seen = RawFingerprint(table.schema, rows_only=True)
    try:
        for batch in read(expected.keys()):
            seen.add(in_types_of(table.schema, batch))
    except (NotImplementedError, pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        # pyarrow reads timestamps of ORC as nanoseconds only.
        if isinstance(error, pa.ArrowInvalid) and "out of range for nanosecond" not in str(error):
            raise
        return {f"not read by {by}": str(error).partition("\n")[0]}
    rows = sum(file.rows for file in expected.values())
    if seen.rows != rows:
        raise ColdframeError(f"table {table.name}: {by} reads {seen.rows} rows, but {rows} were verified")
    if all(file.is_printed for file in expected.values()):
        first = sum(file.first for file in expected.values()) & _WORD
        second = sum(file.second for file in expected.values()) & _WORD
        if seen.to_json()["row_checksum"] != f"{first:016x}{second:016x}":
            raise ColdframeError(f"table {table.name}: {by} reads other values than were verified")
    if len(expected) < len(wanted):
        left = (
            f"{len(wanted) - len(expected):,} of {len(wanted):,} new files: more than {MAX_BYTES >> 30} GiB"
        )
        return {f"not read by {by}": left}
    return {f"read by {by}": f"{len(expected):,} new files, {rows:,} rows"}
