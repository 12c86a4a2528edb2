"""The outcome of a run in a few lines, for a terminal, and what has changed since the run before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coldframe.byte_size import counted, size_text
from coldframe.pipeline.records import Json
from coldframe.pipeline.report.figures import duration_text
from coldframe.pipeline.report.model import Report, TableReport
from coldframe.pipeline.report.verdict import BY_SPARK
from coldframe.pipeline.source.findings import metastore_lines
from coldframe.terminal import printable

MAX_TABLES = 100
"""Of more tables than these, only those with something to say have lines."""
MAX_NAMED = 3
"""Maximum number of tables that are named for a change."""


def grouped(problems: Iterable[tuple[str, str, str]]) -> list[str]:
    """A line for each cause: pairs of what and which, and why. Causes that differ in names and numbers only
    are the same.
    """
    lines: dict[tuple[str, str], tuple[str, int]] = {}
    for kind, name, why in problems:
        cause = kind, re.sub(r"[0-9][0-9,.]*", "#", why.replace(name, ""))
        line, count = lines.get(cause, (f"{kind}: {name}: {why}", 0))
        lines[cause] = line, count + 1
    return [f"{line}; {count - 1:,} more like this" if count > 1 else line for line, count in lines.values()]


def summary(report: Report) -> str:
    """The outcome in a few lines: of many tables, only those that need attention have lines."""
    lines: list[str] = []
    many = len(report.tables) > MAX_TABLES
    fine = [table for table in report.tables if many and not _has_more(table)]
    if fine:
        count, total = sum(len(table.files) for table in fine), sum(table.rows for table in fine)
        lines.append(f"{len(fine):,} tables without problems: {count:,} files, {total:,} rows, verified")
    for table in (table for table in report.tables if not many or _has_more(table)):
        counts = ", ".join(f"{count} {status}" for status, count in table.counts.items() if count)
        sizes = f"{size_text(table.bytes_in)} -> {size_text(table.bytes_out)}"
        outcome = f"{table.rows:,} rows, {sizes}, {table.verdict.text}"
        lines.append(f"{table.name} ({table.format}): {counts}; {outcome}")
        failed = [file for file in table.problems if file.error is not None]
        lines += grouped((f"  {file.status}", file.source, str(file.error)) for file in failed)
        for file in table.problems:
            if file.error is None and file.damage:
                lost = "an unknown number of" if file.rows_lost is None else f"{file.rows_lost:,}"
                places = "1 place" if len(file.damage) == 1 else f"{len(file.damage)} places"
                lines.append(f"  {file.status}: {file.source}: {lost} rows lost in {places}")
        lines += [f"  {table.error}"] if table.error is not None else []
        lines += [f"  missing: {name}" for name in table.missing]
        lines += [f"  in the table, but not written by the migration: {name}" for name in table.foreign]
        lines += [f"  a part of the table only: {text}" for text in table.partial]
        lines += [f"  {note.text}" for note in table.verdict.notes if note.kind in BY_SPARK]
        lines += metastore_lines(table.metastore, "  ")
        if table.archived:
            rows = f"{table.rows_archived:,} rows of {table.archived:,} deleted source(s) stay in the target"
            lines.append(f"  {rows}")
        if table.vanished:
            what = {"fail": "--on-vanished says what to do", "keep": "their rows stay", "remove": "taken out"}
            count, first = len(table.vanished), table.vanished[0]
            lines.append(f"  {count:,} source(s) are gone, such as {first}: {what[table.on_vanished]}")
    if report.metastore is not None:
        lines += metastore_lines(report.metastore.findings)
        lines.append(report.metastore.summary)
    lines += [f"NOT READ: {item.relative}: {item.reason}" for item in report.unread]
    lines += [f"NOT REQUESTED: {item.source}: {item}" for item in report.left_out if item.blocks]
    lines += [
        f"left behind: {item.source}: {item}" for item in report.left_out if item.visible and item.named
    ]
    if report.hidden:
        names = counted(report.hidden, "hidden name")
        lines.append(f"{names} skipped, such as {report.hidden_names[0]}")
    if report.unknown:
        files = counted(len(report.unknown), "file")
        lines.append(f"{files} of other formats ignored, such as {report.unknown[0]}")
    lines.append(f"{report.verdict.text}; {report.safe_to_delete:,} sources in safe-to-delete.txt")
    lines.append(
        f"{report.rows:,} rows in {duration_text(report.seconds)}; {report.target}/_coldframe/report.html"
    )
    return "\n".join(lines)


def _has_more(table: TableReport) -> bool:
    """Whether there is more to say of a table than that its rows are in the target."""
    return bool(
        table.verdict.reasons
        or not table.verified
        or table.problems
        or table.archived
        or table.vanished
        or len(table.metastore)
    )


def changes(before: Json | None, report: Report) -> str:
    """What has changed since the last run that ended: `before` is its report.json."""
    earlier: Mapping[str, Any] = {} if before is None else before
    known = {str(table["path"]): table for table in earlier.get("tables", ())}
    new = [table for table in report.tables if table.path not in known]
    there = {table.path for table in report.tables}
    gone = [str(table["name"]) for path, table in known.items() if path not in there]
    converted = [table for table in report.tables if table.totals.bytes_now]
    since = "the first run" if before is None else "compared with the last run"
    lines = [
        f"{report.source} -> {report.target}: {since}",
        f"verdict: {_from_to(earlier.get('text'), report.verdict.text)}",
        f"rows in the target: {_from_to(earlier.get('rows'), report.rows)}",
        f"sources in safe-to-delete.txt: {_from_to(earlier.get('safe_to_delete'), report.safe_to_delete)}",
        f"tables read in this run: {len(converted):,}, "
        f"{size_text(sum(table.totals.bytes_now for table in converted))}, {duration_text(report.seconds)}",
        *_group("new tables", [f"{table.name}: {table.verdict.text}" for table in new]),
        *_group("tables that the run before had, and this one has not", gone),
    ]
    same: list[tuple[TableReport, Any]] = [
        (table, known[table.path]) for table in report.tables if table.path in known
    ]
    lines += _verdicts("better", [pair for pair in same if pair[0].verified > pair[1]["verified"]])
    lines += _verdicts("worse", [pair for pair in same if pair[0].verified < pair[1]["verified"]])
    stays = [table for table, old in same if not table.verified and not old["verified"]]
    lines += _group("not verified, as before", [f"{table.name}: {table.verdict.text}" for table in stays])
    return "\n".join(map(printable, lines))


def _from_to(old: object, new: object) -> str:
    texts = [f"{value:,}" if isinstance(value, int) else str(value) for value in (old, new)]
    return texts[1] if old is None else f"{texts[1]} (as before)" if old == new else " -> ".join(texts)


def _verdicts(what: str, pairs: Sequence[tuple[TableReport, Any]]) -> list[str]:
    return _group(
        what, [f"{table.name}: {_from_to(old['text'], table.verdict.text)}" for table, old in pairs]
    )


def _group(what: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    more = len(items) - MAX_NAMED
    tail = [f"  and {more:,} more"] if more > 0 else []
    return [f"{what}: {len(items):,}", *(f"  {item}" for item in items[:MAX_NAMED]), *tail]
