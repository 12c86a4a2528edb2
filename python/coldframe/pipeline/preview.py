"""`coldframe migrate --dry-run`: what a run would do, and what it would refuse, without doing any of it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldframe.pipeline.columns import settle_columns
from coldframe.pipeline.comparing import TableWork, compare
from coldframe.pipeline.convert import Cause
from coldframe.pipeline.findings import Findings, MetastoreReport, metastore_lines
from coldframe.pipeline.grouping import grouped
from coldframe.pipeline.inventory import SourceFile
from coldframe.pipeline.journal import Entry, Journal, read_state
from coldframe.pipeline.metastore import hold_preview
from coldframe.pipeline.naming import name_tables
from coldframe.pipeline.options import Options
from coldframe.pipeline.planning import lacking, plan_table
from coldframe.pipeline.progress import NoProgress, Progress
from coldframe.pipeline.run import look, registered_of, roots_of, target_of
from coldframe.pipeline.shared import SharedByTables
from coldframe.pipeline.stored import open_destination
from coldframe.pipeline.tables import Table, TableSpec
from coldframe.pipeline.unmatched import unmatched
from coldframe.pipeline.verdict import Reason, judge_preview


@dataclass
class TablePreview:
    """What would become of one table."""

    name: str
    path: str
    format: str
    files: int = 0
    bytes: int = 0
    tasks: int = 0
    rows: int | None = 0
    """As the files say; None where one does not."""
    done: int = 0
    """Files that an earlier run has converted."""
    columns: str = ""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Files, and why they would fail."""
    vanished: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    """Sources that have a part of the table only, by what they say of themselves."""
    metastore: Findings = field(default_factory=Findings)
    """What a Hive metastore says otherwise than was found."""
    error: str | None = None

    @property
    def reasons(self) -> list[Reason]:
        """Why a run would end with 1 for it."""
        counts = {
            "failed": len(self.refused),
            "vanished": len(self.vanished),
            "part": len(self.partial),
            "error": int(self.error is not None),
            "metastore": self.metastore.wrong,
        }
        return [Reason(kind, count) for kind, count in counts.items() if count]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {**vars(self), "metastore": self.metastore.to_json()}


@dataclass
class Preview:
    """What a run would do."""

    source: str
    target: str
    to: str
    tables: list[TablePreview]
    unknown: list[str]
    unread: list[tuple[str, str]]
    excluded: int
    expected_seconds: float | None = None
    """Of one core, at the rate of earlier runs; None where there was none."""
    expected_bytes: int | None = None
    """To be written, likewise."""
    metastore: MetastoreReport | None = None
    unmatched: list[str] = field(default_factory=list)
    """Paths of entries of tables.toml that match nothing."""

    @property
    def exit_code(self) -> int:
        """1 where a run would end with 1 for what is known now."""
        reasons = [reason for table in self.tables for reason in table.reasons]
        unlike = self.metastore.findings.wrong if self.metastore is not None else 0
        wrong = (("unread", len(self.unread)), ("metastore", unlike), ("unmatched", len(self.unmatched)))
        for kind, count in wrong:
            reasons += [Reason(kind, count)] if count else []
        return judge_preview(reasons).exit_code

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            **vars(self),
            "tables": [table.to_json() for table in self.tables],
            "metastore": None if self.metastore is None else self.metastore.to_json(),
            "exit_code": self.exit_code,
        }


def preview(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    options: Options,
    *,
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None = None,
    progress: Progress | None = None,
) -> Preview:
    """Looks at the source and opens what would be converted. Nothing is written, and no Spark is started.
    `progress` is told of each file that was opened.
    """
    progress = progress or NoProgress()
    target = target_of(options)
    source, goal = roots_of(src, dst)
    registered = registered_of(options, source)
    inventory, found = look(source, tables, options)
    destination = open_destination(goal, options.target_storage_options)
    book = Journal(destination)
    book.state, _ = read_state(destination)
    if options.fresh and not book.state.fresh:
        book.state.generation, book.state.fresh = book.state.generation + 1, True

    def live(table: Table) -> set[str] | None:
        return target.lists(destination, table.name, table.path)

    name_tables(found, book.state, inventory)
    works = compare(inventory, found, book, options, target, live)
    by_path = {
        work.table.path: TablePreview(work.table.name, work.table.path, work.table.format) for work in works
    }

    def refuse(work: TableWork, file: SourceFile, reason: str, cause: Cause = "failed") -> None:
        by_path[work.table.path].refused.append((file.relative, reason))

    plan = functools.partial(
        plan_table, scheduler=None, options=options, fail=refuse, progress=progress, shared=SharedByTables()
    )
    progress.start(
        sum(bool(work.work) for work in works),
        sum(len(work.work) for work in works),
        sum(due.file.size for work in works for due in work.work),
    )
    for work in works:
        plan(work, work.work)
        settle_columns(work, book.state, target, plan, refuse)
        by_path[work.table.path].partial = lacking(work.table, work.table.files, options.timestamp_unit)
        _describe(work, by_path[work.table.path], options, book.done.file_shared_by)
    found_now = Preview(
        source,
        goal,
        target.name,
        list(by_path.values()),
        [file.relative for file in inventory.unknown],
        [(one.relative, one.reason) for one in inventory.unread],
        inventory.excluded,
        unmatched=unmatched(inventory, found, book.state),
    )
    if registered is not None:
        findings = {path: table.metastore for path, table in by_path.items()}
        found_now.metastore = hold_preview(registered, found, inventory, options, findings)
    _expect(found_now, book.done.each())
    return found_now


def _expect(found: Preview, done: Iterable[Entry]) -> None:
    """Time and size by what earlier runs took."""
    read = seconds = written = 0.0
    for entry in done:
        read += entry.details["bytes"]
        seconds += entry.details["seconds"]
        written += sum(part.share for part in entry.parts)
    if read:
        size = sum(table.bytes for table in found.tables)
        found.expected_seconds = round(seconds * size / read, 3)
        found.expected_bytes = int(written * size / read)


def _describe(work: TableWork, table: TablePreview, options: Options, shared: Callable[[str], str]) -> None:
    for one in work.planned:
        table.files += 1
        table.bytes += one.file.size
        table.rows = None if table.rows is None or one.rows is None else table.rows + one.rows
    groups = grouped(work.planned, options.target_file_bytes, shared)
    table.tasks = sum(len(group[0].parts) for group in groups)
    table.done = len(work.done) + len(work.held)
    table.vanished = work.report.vanished if work.report.on_vanished == "fail" else []
    table.error = work.report.error
    if work.schema is not None:
        table.columns = ", ".join(f"{column.name} {column.type}" for column in work.schema)
    reason = f"its bytes are not of the format {work.table.format}, nor of any other that is known"
    table.refused += [(file.relative, reason) for file in work.table.damaged]
    table.refused += [
        (file.source, str(file.error)) for file in work.files.problems if file.error is not None
    ]


def preview_text(found: Preview) -> str:
    """For people."""
    from coldframe.pipeline.report_html import size_text

    lines: list[str] = []
    for table in found.tables:
        rows = "" if table.rows is None else f", {table.rows:,} rows"
        done = f"; {table.done:,} files are done" if table.done else ""
        lines.append(
            f"{table.name} ({table.format}) -> {table.path}: {table.files:,} files, {size_text(table.bytes)}"
            f"{rows}, {table.tasks:,} tasks{done}"
        )
        lines += [f"  {table.columns}"] if table.columns else []
        lines += [f"  WOULD BE REFUSED: {file}: {reason}" for file, reason in table.refused[:20]]
        if len(table.refused) > 20:
            lines.append(f"  and {len(table.refused) - 20:,} more")
        if table.vanished:
            lines.append(
                f"  {len(table.vanished):,} sources are gone since an earlier run, such as "
                f"{table.vanished[0]}"
            )
        lines += [f"  a part of the table only: {text}" for text in table.partial]
        lines += metastore_lines(table.metastore, "  ")
        lines += [f"  {table.error}"] if table.error is not None else []
    lines += metastore_lines(found.metastore.findings) if found.metastore is not None else []
    lines += [f"NOTHING LIES in {path}, which an entry of tables.toml names" for path in found.unmatched]
    lines += [f"CANNOT BE READ: {place}: {reason}" for place, reason in found.unread]
    if found.unknown:
        lines.append(f"{len(found.unknown):,} files of other formats, such as {found.unknown[0]}")
    if found.excluded:
        lines.append(f"{found.excluded:,} files and directories are left out as asked")
    total = sum(table.files for table in found.tables)
    size = size_text(sum(table.bytes for table in found.tables))
    tasks = sum(table.tasks for table in found.tables)
    expected = ""
    if total and found.expected_seconds is not None and found.expected_bytes is not None:
        wanted = size_text(found.expected_bytes)
        expected = f", about {found.expected_seconds:,.1f} s of one core and {wanted} by earlier runs"
    lines.append(f"{total:,} files, {size}, {tasks:,} tasks to {found.to}{expected}; nothing was written")
    return "\n".join(lines)
