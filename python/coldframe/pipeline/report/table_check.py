"""The check of a target table: compares the verified rows with the rows that readers of the table see.

    rows_verified    according to the journal
    rows_now         according to the table's own log, including deletion vectors; None if unknown

For plain files, only their existence and size are checked; their footers are not opened here. Rows that
others deleted are missing. Rows that others rewrote, as compactions do, are in files that were never
compared: with `on_foreign_changes="append"` that is expected, otherwise it is a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from coldframe.pipeline.report.target_table import (
    WHOLE_TABLE,
    Difference,
    TargetTable,
    differences,
    foreign,
    look,
)
from coldframe.pipeline.report.verdict import Reason
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.live import LiveFile
from coldframe.pipeline.state.journal import State

MAX_NAMED = 1000
_GONE = ("gone", "resized", "replaced")


@dataclass
class TableCheck:
    """The result of the check."""

    target: TargetTable
    rows_verified: int = 0
    rows_now: int | None = None
    whole: Difference | None = None
    """The fault of the table as a whole."""
    missing: dict[str, Difference] = field(default_factory=dict)
    """Files that are missing or have other bytes, and why."""
    changed: dict[str, Difference] = field(default_factory=dict)
    """Files whose rows others deleted or rewrote, and why; only the first such files."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of differences of each kind."""
    foreign: list[str] = field(default_factory=list)
    """Files of others that readers see."""

    def reasons(self, on_foreign_changes: str = "refuse") -> Iterator[Reason]:
        """The reasons for the verdict, besides missing and foreign files."""
        known = on_foreign_changes == "append"
        if self.whole is not None:
            yield Reason("columns_gone" if self.whole.kind == "columns" else "no_log", 1, self.whole.reason)
        if self.counts["deleted"] or self.counts["unlisted"] or self.counts["unknown"]:
            now = self.rows_now
            gone = 0 if now is None else self.rows_verified - now
            detail = next(
                (f"{difference.file}: {difference.reason}" for difference in self.changed.values()), ""
            )
            if gone > 0 and not self.foreign:
                yield Reason("known_gone" if known else "rows_gone", gone, detail)
            else:
                # Foreign files may contain our rewritten rows.
                kind = "known_elsewhere" if known else "rows_elsewhere"
                yield Reason(
                    kind,
                    sum(self.counts[difference] for difference in ("deleted", "unlisted", "unknown")),
                    detail,
                )
                if gone > 0:
                    yield Reason("known_gone" if known else "rows_gone", gone, "at least")


def check_table(destination: Destination, state: State, kind: str, name: str, path: str) -> TableCheck:
    """Checks a table. Lists the table's directory once, and reads the table's log once."""
    target = look(destination, kind, state.name_of(name, path))
    check = TableCheck(target)
    check.rows_verified = state.done.rows_of(path)
    if target.has_log and target.state == "there":
        seen = [file.rows for file in target.files]
        check.rows_now = None if None in seen else sum(rows for rows in seen if rows is not None)
    for difference in differences(target, state):
        if difference.kind in WHOLE_TABLE:
            check.whole = difference
        elif difference.kind in _GONE:
            check.missing.setdefault(difference.file, difference)
        else:
            check.counts[difference.kind] += 1
            if len(check.changed) < MAX_NAMED:
                check.changed.setdefault(difference.file, difference)
    for file in foreign(target, state):
        check.foreign.append(file.path)
        if target.has_log and file.path.startswith(f"{path}/"):
            wrong = _unreadable(target, file)
            if wrong is not None:
                check.missing[file.path] = Difference(wrong[0], path, "", file.path, file.rows or 0, wrong[1])
    return check


def _unreadable(target: TargetTable, file: LiveFile) -> tuple[str, str] | None:
    """A foreign file because of which the whole table cannot be read, and the reason."""
    there = target.stored.get(file.path)
    if there is None:
        return "gone", "others wrote it, and it no longer exists: the table cannot be read"
    if file.bytes is not None and there.size != file.bytes:
        sizes = f"it has {there.size:,} bytes, but the table states {file.bytes:,}"
        return "resized", f"others wrote it, and {sizes}: the table cannot be read"
    return None
