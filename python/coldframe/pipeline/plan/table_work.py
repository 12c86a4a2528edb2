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
    """If the file was converted: the id of its columns in the source."""
    written: str = ""
    """If the file was converted: the id of its columns in the target."""
    has_parts: bool = False
    """If the file was converted: whether it had rows."""
    shared: str = ""
    """If the file was converted: the target file that it shares with other sources."""
    again: bool = False
    """If the file must be converted: whether the same content was converted before."""
    why: str = ""
    """If the file's earlier result stays: why this run cannot convert it."""


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
    """The files of the report."""
    work: Rows[Pending]
    done: Rows[Pending]
    held: Rows[Pending]
    """Converted, but not yet published, by an earlier run."""
    stays: Rows[Pending]
    """Results of earlier runs that this run does not replace: their source is gone, left out, or withheld.
    The rest of the table must fit these results.
    """
    planned: Rows[PlannedFile]
    known: int = 0
    """How many of the present sources an earlier run has converted."""
    vanished: list[Pending] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    """The vanished sources whose rows this run removes."""
    schema: pa.Schema | None = None
    """The columns of the files to be written."""
    layout: IcebergLayout | None = None
    """The layout of an Iceberg table, if its entry states one."""
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """The columns of planned files, by their names."""
    is_outdated: Callable[[Pending], bool] = lambda pending: False
    """Whether an earlier result has other types than `schema`, so that it cannot stay."""
    refused: bool = False
    """Whether nothing of the table may be published, since its files have incompatible columns."""
    careful: bool = False
    """Whether results are held until the whole table is converted, since files are replaced or removed."""
    half_dropped: bool = False
    """Whether a run that removed all files of the table was killed before its commit to the table's log."""

    @property
    def divided_by(self) -> tuple[Term, ...]:
        """The partition terms that have one value in each file, and that the names of directories do not
        give.
        """
        return () if self.layout is None else self.layout.divided_by(self.table.keys)

    def file_bytes(self, usual: int) -> int:
        """The target size of the table's files; `usual`: the size for tables without a layout."""
        own = None if self.layout is None else self.layout.file_bytes
        return usual if own is None else own

    def refuse(self, pending: Pending, reason: str) -> None:
        """Leaves a file out of this run, as failed."""
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
        """The sources that are present."""

    def new(self, table: Table) -> TableWork:
        """The empty work of a table."""
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
    """Called for a file that is not converted, with a message and a cause."""

    def __call__(self, work: TableWork, file: SourceFile, error: str, cause: Cause = "failed") -> None: ...
