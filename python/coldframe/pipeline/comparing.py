"""What is to be done: the source as it lies there, against what the state says was done with it.

    done       unchanged, and its files are there
    work       new, changed, begun afresh, or its files in the target are lost
    held       converted by a run that did not come to publish it
    vanished   done once, and not there any more

Hive compacts, moves and drops between two runs. The rows of a source that is gone may stand in another one
that is new: `on_vanished` says what shall become of them, and until somebody has said so nothing new of such
a table is taken, since it could double them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe.pipeline.inventory import Inventory, SourceFile
from coldframe.pipeline.journal import Entry, Journal
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan import PlannedFile, file_key
from coldframe.pipeline.report import FileReport, TableReport
from coldframe.pipeline.tables import Table
from coldframe.pipeline.targets import Target

Live = Callable[[Table], "set[str] | None"]
"""The files that a Delta or Iceberg table lists; None where there is no such table."""


@dataclass
class TableWork:
    """A table and what of it is done and to be done."""

    table: Table
    report: TableReport
    work: list[tuple[SourceFile, str]] = field(default_factory=list)
    done: list[tuple[SourceFile, Entry]] = field(default_factory=list)
    held: list[tuple[SourceFile, Entry]] = field(default_factory=list)
    vanished: list[Entry] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    """Those of `vanished` that are to be taken out."""
    schema: pa.Schema | None = None
    """Of the files to be written."""
    rewritten: bool = False
    """Whether files of earlier runs have to be written in other types."""
    planned: list[PlannedFile] = field(default_factory=list)
    careful: bool = False
    """Whether what is converted is held until all of the table is: files are replaced or taken out."""
    waiting: list[tuple[Entry, FileReport]] = field(default_factory=list)
    """What of it is held, and will be published."""


def settings_of(options: Options, target: Target, table: Table) -> dict[str, Any]:
    """What makes two conversions of one file different."""
    settings = {"to": target.name, "sink": repr(target.sink), "unit": options.timestamp_unit}
    if target.partitions_inside and table.spec is not None:
        settings["partitions"] = str(table.spec.partitions)
    return settings


def compare(
    inventory: Inventory,
    tables: Sequence[Table],
    reports: Sequence[TableReport],
    journal: Journal,
    options: Options,
    target: Target,
    live: Live,
) -> list[TableWork]:
    """The work of each table; those that are known by the state alone come last."""
    works = [TableWork(table, report) for table, report in zip(tables, reports, strict=True)]
    by_path = {work.table.path: work for work in works}
    there = _there(inventory, tables)
    for source, waiting in list(journal.held.items()):
        if source not in there:
            journal.forget(waiting)
    for entry in _vanished(inventory, there, journal, options):
        work = by_path.get(entry.table)
        if work is None:
            gone = Table(entry.table.replace("/", "."), entry.table, "gone", None)
            report = TableReport(gone.name, gone.path, gone.format)
            work = by_path[entry.table] = TableWork(gone, report)
            works.append(work)
        work.vanished.append(entry)
        work.report.vanished.append(entry.source)
    for work in works:
        listed = live(work.table)
        settings = settings_of(options, target, work.table)
        for file in work.table.files:
            _sort(work, file, journal, file_key(file, work.table, settings), listed)
        if options.on_vanished == "remove":
            work.drops = [entry.source for entry in work.vanished]
        elif options.on_vanished == "fail" and work.vanished:
            _leave_new(work, journal)
        work.careful = bool(
            work.drops
            or work.held
            or any(_has_parts(journal.done.get(file.relative)) for file, _ in work.work)
        )
    return works


def _there(inventory: Inventory, tables: Iterable[Table]) -> set[str]:
    """The sources that there are."""
    there = {file.relative for table in tables for file in (*table.files, *table.damaged)}
    return there | {file.relative for file in inventory.unknown}


def _vanished(inventory: Inventory, there: set[str], journal: Journal, options: Options) -> list[Entry]:
    """What was done once and is not there now; what could not be looked at, or is left out, is not gone."""
    unread = {one.relative for one in inventory.unread}
    return [
        entry
        for source, entry in sorted(journal.done.items())
        if source not in there and options.selection.takes(source) and not _lies_below(source, unread)
    ]


def _lies_below(source: str, places: set[str]) -> bool:
    if not places:
        return False
    names = source.split("/")
    return "." in places or any("/".join(names[:depth]) in places for depth in range(1, len(names) + 1))


def _sort(work: TableWork, file: SourceFile, journal: Journal, key: str, live: set[str] | None) -> None:
    before, waiting = journal.done.get(file.relative), journal.held.get(file.relative)
    state = journal.state
    now = not state.fresh or (before is not None and before.generation == state.generation)
    if before is not None and before.key == key and now and not _lost(before, journal, live):
        work.done.append((file, before))
        work.report.files.append(FileReport.of_entry(before, file.size, earlier=True))
    elif waiting is not None and waiting.key == key and waiting.generation == state.generation:
        work.held.append((file, waiting))
    else:
        work.work.append((file, key))


def _lost(entry: Entry, journal: Journal, live: set[str] | None) -> bool:
    """Whether a file of the target is gone, or has another size. One that a Delta or Iceberg table does not
    list any more was taken out by others, on purpose.
    """
    return any(
        not journal.is_whole(part.final, part.bytes)
        for part in entry.parts
        if live is None or part.final in live
    )


def _has_parts(entry: Entry | None) -> bool:
    return entry is not None and bool(entry.parts)


def _leave_new(work: TableWork, journal: Journal) -> None:
    new = [file for file, _ in work.work if file.relative not in journal.done]
    new += [file for file, _ in work.held if file.relative not in journal.done]
    work.work = [(file, key) for file, key in work.work if file.relative in journal.done]
    work.held = [(file, entry) for file, entry in work.held if file.relative in journal.done]
    reason = (
        f"not converted: {len(work.vanished)} source(s) of this table are gone since an earlier run, such as "
        f"{work.vanished[0].source}, and their rows may stand in this one; on_vanished 'remove' takes them "
        "out of the target, 'keep' leaves them there"
    )
    for file in new:
        work.report.files.append(FileReport(file.relative, "failed", bytes_in=file.size, error=reason))


def schema_id(schema: pa.Schema) -> str:
    """A name that follows from the columns."""
    return hashlib.sha256(schema.serialize().to_pybytes()).hexdigest()[:16]
