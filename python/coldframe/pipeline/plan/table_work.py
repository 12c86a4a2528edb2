"""A table with its files: done, to be done, or to stay as they are; the result of `compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.records import Cause, Committed, PlannedFile, SourceFile
from coldframe.pipeline.report.model import FileReport, FileReports, TableReport
from coldframe.pipeline.sink.iceberg_layout import IcebergLayout, Term
from coldframe.pipeline.source.inventory import packing
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.scratch import Rows, Scratch, names


@dataclass(frozen=True)
class Pending:
    """A source file and its key: to be converted, or already converted."""

    file: SourceFile
    key: str
    schema: str = ""
    """If it was converted: the name of the columns that it had."""
    written: str = ""
    """If it was converted: the name of the columns that it was written with."""
    has_parts: bool = False
    """If it was converted: whether there was a row in it."""
    shared: str = ""
    """If it was converted: the file of the target that it shares with other sources."""
    again: bool = False
    """If it is to be converted: whether its content was before, and its files are lost or begun afresh."""
    why: str = ""
    """If it stays as it is in the target: why this run cannot convert it."""


def pending_of(file: SourceFile, entry: Committed, why: str = "") -> Pending:
    """A source that was converted."""
    details = entry.details
    return Pending(
        file, entry.key, details.schema, details.written, bool(entry.parts), entry.shared_file, why=why
    )


@dataclass
class TableWork:
    """A table with its files: done and to be done."""

    table: Table
    report: TableReport
    files: FileReports
    """Those of the report."""
    work: Rows[Pending]
    done: Rows[Pending]
    held: Rows[Pending]
    """Converted by an earlier run, which did not come to publish it."""
    stays: Rows[Pending]
    """In the target by earlier runs, and neither looked at nor replaced by this one: its source is gone, left
    out, or withheld. The rest of the table has to fit to it.
    """
    planned: Rows[PlannedFile]
    known: int = 0
    """How many of the sources that are there an earlier run has converted."""
    vanished: list[Pending] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    """Those of `vanished` that are to be taken out."""
    schema: pa.Schema | None = None
    """Of the files to be written."""
    layout: IcebergLayout | None = None
    """How it is laid out, where it becomes an Iceberg table and its entry says so."""
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """Columns of files that are planned, by their names."""
    is_outdated: Callable[[Pending], bool] = lambda pending: False
    """Whether an earlier result has other types than `schema`, and may not lie beside files of these."""
    refused: bool = False
    """Whether nothing of it may be published: its files do not go together."""
    careful: bool = False
    """Whether what is converted is held until all of the table is: files are replaced or taken out."""
    half_dropped: bool = False
    """Whether a run that took out all of it was killed before the table's own log said so."""

    @property
    def divided_by(self) -> tuple[Term, ...]:
        """What a file is to have one value of, and is not constant in its directory."""
        return () if self.layout is None else self.layout.divided_by(self.table.keys)

    def file_bytes(self, usual: int) -> int:
        """How large its files become; `usual`: of tables that say nothing."""
        own = None if self.layout is None else self.layout.file_bytes
        return usual if own is None else own

    def refuse(self, pending: Pending, reason: str) -> None:
        """Does not convert a file in this run."""
        self.work.discard(pending.file.relative)
        self.held.discard(pending.file.relative)
        self.files.append(
            FileReport(pending.file.relative, "failed", bytes_in=pending.file.share, error=reason)
        )


class Works:
    """The work of each table, in one database."""

    def __init__(self, root: str, storage_options: StorageOptions) -> None:
        self._scratch, self._root, self._storage_options = Scratch(), root, storage_options
        pack, unpack = packing(root, storage_options)

        def pack_pending(pending: Pending) -> tuple[Any, ...]:
            return (pack(pending.file), *list(vars(pending).values())[1:])

        self._pending: Rows[Pending] = Rows(
            self._scratch,
            lambda pending: pending.file.relative,
            pack_pending,
            lambda row: Pending(unpack(row[0]), *row[1:]),
        )
        self.there = names(self._scratch)
        """The sources that there are."""

    def new(self, table: Table) -> TableWork:
        """The work of a table of which nothing is known yet."""
        files = FileReports(self._scratch)
        report = TableReport(table.name, table.path, table.format, files)
        work, done, held, stays = (self._pending.another() for _ in range(4))
        planned = planned_rows(self._scratch, self._root, self._storage_options)
        return TableWork(table, report, files, work, done, held, stays, planned)


def planned_rows(scratch: Scratch, root: str, storage_options: StorageOptions) -> Rows[PlannedFile]:
    """Planned files, by relative path."""
    pack_file, unpack_file = packing(root, storage_options)

    def pack(planned: PlannedFile) -> tuple[Any, ...]:
        parts = [tuple(part) for part in planned.parts]
        return (
            pack_file(planned.file),
            planned.key,
            parts,
            planned.schema,
            planned.names,
            planned.rows,
            planned.known,
            planned.masked,
        )

    def unpack(row: Any) -> PlannedFile:
        return PlannedFile(unpack_file(row[0]), *row[1:])

    return Rows(scratch, lambda planned: planned.file.relative, pack, unpack)


class Fail(Protocol):
    """Called for a file that is not converted, with the reason in words and as a cause."""

    def __call__(self, work: TableWork, file: SourceFile, error: str, cause: Cause = "failed") -> None: ...
