"""`coldframe migrate --dry-run`: previews what a run would convert and refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.grouping import grouped
from coldframe.pipeline.plan.plan_files import lacking
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import Cause, Committed, Json, SourceFile
from coldframe.pipeline.report.verdict import Reason, judge_preview
from coldframe.pipeline.source.findings import Findings, MetastoreReport, metastore_lines
from coldframe.pipeline.source.inventory import Inventory
from coldframe.pipeline.state.ledger import Ledger


@dataclass
class TablePreview:
    """What a run would do with one table."""

    name: str
    path: str
    format: str
    files: int = 0
    bytes: int = 0
    tasks: int = 0
    rows: int | None = 0
    """The rows that the files state; None if a file does not state them."""
    done: int = 0
    """Files that an earlier run has converted."""
    columns: str = ""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Files that would fail, and why."""
    vanished: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    """Sources that state to have only a part of the table."""
    metastore: Findings = field(default_factory=Findings)
    """Discrepancies with a Hive metastore."""
    error: str | None = None

    @property
    def reasons(self) -> list[Reason]:
        """Why the table would make the exit code 1."""
        counts = {
            "failed": len(self.refused),
            "vanished": len(self.vanished),
            "part": len(self.partial),
            "error": int(self.error is not None),
            "metastore": self.metastore.wrong,
        }
        return [Reason(kind, count) for kind, count in counts.items() if count]

    def to_json(self) -> Json:
        """The table's preview as JSON, for programs."""
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
    """Time on one core at the rate of earlier runs; None if there were none."""
    expected_bytes: int | None = None
    """Bytes to be written, estimated in the same way."""
    metastore: MetastoreReport | None = None
    unmatched: list[str] = field(default_factory=list)
    """Paths of entries of tables.toml that match nothing."""

    def __post_init__(self) -> None:
        self._by_path = {table.path: table for table in self.tables}

    @property
    def exit_code(self) -> int:
        """1 if a run would end with exit code 1, as far as is known now."""
        reasons = [reason for table in self.tables for reason in table.reasons]
        unlike = self.metastore.findings.wrong if self.metastore is not None else 0
        wrong = (("unread", len(self.unread)), ("metastore", unlike), ("unmatched", len(self.unmatched)))
        for kind, count in wrong:
            reasons += [Reason(kind, count)] if count else []
        return judge_preview(reasons).exit_code

    def refuse(self, work: TableWork, file: SourceFile, error: str, cause: Cause = "failed") -> None:
        """Adds a file that a run would not convert."""
        self._by_path[work.table.path].refused.append((file.relative, error))

    @property
    def findings(self) -> dict[str, Findings]:
        """The metastore's discrepancies for each table, by path."""
        return {table.path: table.metastore for table in self.tables}

    def describe(self, works: Sequence[TableWork], options: Options, done: Ledger) -> None:
        """Describes what a run would do with each table, once its files were opened."""
        for work in works:
            table = self._by_path[work.table.path]
            table.partial = lacking(work.table, work.table.files, options.timestamp_unit)
            _describe(work, table, options, done.file_shared_by)
        _expect(self, done.each())

    def to_json(self) -> Json:
        """For programs."""
        return {
            **{name: value for name, value in vars(self).items() if not name.startswith("_")},
            "tables": [table.to_json() for table in self.tables],
            "metastore": None if self.metastore is None else self.metastore.to_json(),
            "exit_code": self.exit_code,
        }


def new_preview(works: Sequence[TableWork], inventory: Inventory, target: str, to: str) -> Preview:
    """The preview before any file is opened."""
    return Preview(
        inventory.root,
        target,
        to,
        [TablePreview(work.table.name, work.table.path, work.table.format) for work in works],
        [file.relative for file in inventory.unknown],
        [(place.relative, place.reason) for place in inventory.unread],
        inventory.excluded,
    )


def _expect(preview: Preview, done: Iterable[Committed]) -> None:
    """Estimates time and size from earlier runs."""
    read = seconds = written = 0.0
    for entry in done:
        read += entry.details.bytes
        seconds += entry.details.seconds
        written += sum(part.share for part in entry.parts)
    if read:
        size = sum(table.bytes for table in preview.tables)
        preview.expected_seconds = round(seconds * size / read, 3)
        preview.expected_bytes = int(written * size / read)


def _describe(work: TableWork, table: TablePreview, options: Options, shared: Callable[[str], str]) -> None:
    for planned in work.planned:
        table.files += 1
        table.bytes += planned.file.share
        table.rows = None if table.rows is None or planned.rows is None else table.rows + planned.rows
    file_bytes = 0 if work.divided_by else work.file_bytes(options.target_file_bytes)
    groups = grouped(work.planned, file_bytes, shared)
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


def preview_text(preview: Preview) -> str:
    """The preview as text, for people."""
    from coldframe.byte_size import size_text

    lines: list[str] = []
    for table in preview.tables:
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
    lines += metastore_lines(preview.metastore.findings) if preview.metastore is not None else []
    lines += [f"NOTHING MATCHES {path}, which an entry of tables.toml names" for path in preview.unmatched]
    lines += [f"CANNOT BE READ: {place}: {reason}" for place, reason in preview.unread]
    if preview.unknown:
        lines.append(f"{len(preview.unknown):,} files of other formats, such as {preview.unknown[0]}")
    if preview.excluded:
        lines.append(f"{preview.excluded:,} files and directories are excluded as requested")
    total = sum(table.files for table in preview.tables)
    size = size_text(sum(table.bytes for table in preview.tables))
    tasks = sum(table.tasks for table in preview.tables)
    expected = ""
    if total and preview.expected_seconds is not None and preview.expected_bytes is not None:
        wanted = size_text(preview.expected_bytes)
        expected = f", at the rate of earlier runs {preview.expected_seconds:,.1f} s of one core and {wanted}"
    lines.append(f"{total:,} files, {size}, {tasks:,} tasks to {preview.to}{expected}; nothing was written")
    return "\n".join(lines)
