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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coldframe.pipeline.inventory import Inventory, SourceFile, packing
from coldframe.pipeline.journal import Entry, Journal
from coldframe.pipeline.ledger import shared_file
from coldframe.pipeline.options import Options
from coldframe.pipeline.places import StorageOptions
from coldframe.pipeline.plan import PlannedFile, key_maker, planned_rows
from coldframe.pipeline.report import FileReport, FileReports, TableReport
from coldframe.pipeline.scratch import Rows, Scratch, names
from coldframe.pipeline.tables import Table
from coldframe.pipeline.targets import Target

Live = Callable[[Table], "set[str] | None"]
"""The files that a Delta or Iceberg table lists; None where there is no such table."""


@dataclass(frozen=True)
class Due:
    """A source file and its key: to be converted, or converted already."""

    file: SourceFile
    key: str
    schema: str = ""
    """Of what was converted: the names of the columns that it had, and of those that it was written with;"""
    written: str = ""
    has_parts: bool = False
    """and whether there was a row in it;"""
    shared: str = ""
    """the file of the target that it shares with other sources."""


@dataclass
class TableWork:
    """A table and what of it is done and to be done."""

    table: Table
    report: TableReport
    files: FileReports
    """Those of the report."""
    work: Rows[Due]
    done: Rows[Due]
    held: Rows[Due]
    """Converted by an earlier run, which did not come to publish it."""
    planned: Rows[PlannedFile]
    vanished: list[Due] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    """Those of `vanished` that are to be taken out."""
    schema: pa.Schema | None = None
    """Of the files to be written."""
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    """Columns of files that are planned, by their names."""
    rewritten: bool = False
    """Whether files of earlier runs have to be written in other types."""
    careful: bool = False
    """Whether what is converted is held until all of the table is: files are replaced or taken out."""
    left: int = 0
    """How many files are still to be converted."""


class _Works:
    """The work of each table, in one database."""

    def __init__(self, root: str, storage_options: StorageOptions) -> None:
        self._scratch, self._root, self._storage_options = Scratch(), root, storage_options
        pack, unpack = packing(root, storage_options)

        def pack_due(due: Due) -> tuple[Any, ...]:
            return (pack(due.file), due.key, due.schema, due.written, due.has_parts, due.shared)

        self._due: Rows[Due] = Rows(
            self._scratch,
            lambda due: due.file.relative,
            pack_due,
            lambda row: Due(unpack(row[0]), *row[1:]),
        )
        self.there = names(self._scratch)
        """The sources that there are."""

    def new(self, table: Table) -> TableWork:
        files = FileReports(self._scratch)
        report = TableReport(table.name, table.path, table.format, files)
        work, done, held = (self._due.another() for _ in range(3))
        planned = planned_rows(self._scratch, self._root, self._storage_options)
        return TableWork(table, report, files, work, done, held, planned)


def settings_of(options: Options, target: Target, table: Table) -> dict[str, Any]:
    """What makes two conversions of one file different."""
    settings = {"to": target.name, "sink": repr(target.sink), "unit": options.timestamp_unit}
    if target.partitions_inside and table.spec is not None:
        settings["partitions"] = str(table.spec.partitions)
    return settings


def compare(
    inventory: Inventory,
    tables: Sequence[Table],
    journal: Journal,
    options: Options,
    target: Target,
    live: Live,
) -> list[TableWork]:
    """The work of each table; those that are known by the state alone come last."""
    all_works = _Works(inventory.root, options.source_storage_options)
    works = [all_works.new(table) for table in tables]
    by_path = {work.table.path: work for work in works}
    for files in (
        *(table.files for table in tables),
        *(table.damaged for table in tables),
        inventory.unknown,
    ):
        for file in files:
            all_works.there.append(file.relative)
    sharing = _Sharing()
    for source in journal.held:
        if all_works.there.get(source) is None:
            sharing.leave(journal.held.look_up(source))
            journal.forget(source)
    for source in list(journal.state.units):
        if all_works.there.get(source) is None:
            journal.forget(source)
    for entry in _vanished(inventory, all_works.there, journal, options):
        work = by_path.get(entry.table)
        if work is None:
            gone = Table(entry.table.replace("/", "."), entry.table, "gone", None)
            work = by_path[entry.table] = all_works.new(gone)
            works.append(work)
        size, nowhere = entry.details.get("bytes", 0), entry.source
        work.vanished.append(_due(SourceFile(nowhere, entry.source, size, 0, None), entry))
        work.report.vanished.append(entry.source)
    for work in works:
        listed = live(work.table)
        key_of = key_maker(work.table, settings_of(options, target, work.table))
        replaces = False
        for file in work.table.files:
            replaces = _sort(work, file, journal, key_of(file), listed, sharing) or replaces
        if options.on_vanished == "remove":
            work.drops = [due.file.relative for due in work.vanished]
            for due in work.vanished:
                sharing.gone.add(due.shared)
        else:
            if options.on_vanished == "fail" and work.vanished:
                _leave_new(work, journal)
            _keep_together(work, journal, sharing)
        replaces = _convert_mates(work, journal, sharing) or replaces
        work.careful = bool(work.drops or work.held or replaces)
    return works


def _due(file: SourceFile, entry: Entry) -> Due:
    schema, written = str(entry.details.get("schema", "")), str(entry.details.get("written", ""))
    return Due(file, entry.key, schema, written, bool(entry.parts), shared_file(entry))


def _vanished(inventory: Inventory, there: Rows[str], journal: Journal, options: Options) -> Iterable[Entry]:
    """What was done once and is not there now; what could not be looked at, or is left out, is not gone."""
    unread = {one.relative for one in inventory.unread}
    for source in journal.done:
        if there.get(source) is None and options.selection.takes(source) and not lies_below(source, unread):
            yield journal.done[source]


def lies_below(source: str, places: set[str]) -> bool:
    """Whether a path is one of the places or lies below one; "." is the root."""
    if not places:
        return False
    names = source.split("/")
    return "." in places or any("/".join(names[:depth]) in places for depth in range(1, len(names) + 1))


class _Sharing:
    """Files of the target that several sources share."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        """Those that cannot stay, since a source of theirs has to leave;"""
        self._last: tuple[str, bool] = ("", False)

    def leave(self, entry: Entry | None) -> None:
        """A source's rows have to leave the file, which others share with it."""
        self.gone.add(shared_file(entry))

    def lost(self, entry: Entry, journal: Journal, live: set[str] | None) -> bool:
        """See `_lost`; each shared file is looked at once for sources that come one after the other."""
        name = shared_file(entry)
        if not name:
            return _lost(entry, journal, live)
        if self._last[0] != name:
            self._last = name, _lost(entry, journal, live)
        return self._last[1]


def _sort(
    work: TableWork,
    file: SourceFile,
    journal: Journal,
    key: str,
    live: set[str] | None,
    sharing: _Sharing,
) -> bool:
    """Puts a file where it belongs; whether what was made of it before is to be replaced."""
    before, waiting = journal.done.look_up(file.relative), journal.held.look_up(file.relative)
    state = journal.state
    usable = (
        waiting is not None
        and waiting.key == key
        and waiting.generation == state.generation
        and all(journal.held.is_whole(part) for part in waiting.parts)
    )
    now = not state.fresh or (before is not None and before.generation == state.generation)
    # What is held together with others is published together with them.
    together = usable and bool(shared_file(waiting))
    same = before is not None and before.key == key and now and not together
    if before is not None and same and not sharing.lost(before, journal, live):
        work.done.append(_due(file, before))
        work.files.append(FileReport.of_entry(before, file.size, earlier=True))
        return False
    if usable and waiting is not None:
        work.held.append(_due(file, waiting))
        sharing.leave(before)
        return False
    sharing.leave(before)
    sharing.leave(waiting)
    work.work.append(Due(file, key))
    return before is not None and bool(before.parts)


def _keep_together(work: TableWork, journal: Journal, sharing: _Sharing) -> None:
    """Sources that are gone, and stay: so do the files that they share, and what else is in these."""
    kept = {due.shared: due.file.relative for due in work.vanished if due.shared}
    for name, gone in kept.items():
        sharing.gone.discard(name)
        if not all(journal.done.is_whole(part) for _, part in journal.done.sharing(name)):
            work.report.error = (
                f"{name} has rows of {gone}, which is gone, and of sources that lie elsewhere by now: "
                "on_vanished 'remove' takes them out"
            )
    for dues in (work.work, work.held) if kept else ():
        for due in dues:
            gone_with = kept.get(journal.done.file_shared_by(due.file.relative))
            if gone_with is not None:
                dues.discard(due.file.relative)
                sharing.gone.add(due.shared)
                reason = (
                    f"not converted: its earlier rows share a file with those of {gone_with}, which is gone; "
                    "on_vanished 'remove' takes that out of the target"
                )
                failed = FileReport(due.file.relative, "failed", bytes_in=due.file.size, error=reason)
                work.files.append(failed)


def _convert_mates(work: TableWork, journal: Journal, sharing: _Sharing) -> bool:
    """Sources that share a file with one that has to leave it are converted once more; whether there are."""
    sharing.gone.discard("")
    # Of what is held together, all is or nothing.
    known: dict[str, bool] = {}
    for due in work.held:
        if due.shared and due.shared not in known:
            mates = journal.held.sharing(due.shared)
            known[due.shared] = all(work.held.get(entry.source) is not None for entry, _ in mates)
            if not known[due.shared]:
                sharing.gone.add(due.shared)
    if not sharing.gone:
        return False
    found = False
    for dues in (work.done, work.held):
        for due in dues:
            if due.shared in sharing.gone:
                dues.discard(due.file.relative)
                work.files.discard(due.file.relative)
                work.work.append(Due(due.file, due.key))
                found = found or dues is work.done
    return found


def _lost(entry: Entry, journal: Journal, live: set[str] | None) -> bool:
    """Whether a file of the target is gone, or has another size. One that a Delta or Iceberg table does not
    list any more was taken out by others, on purpose.
    """
    return any(
        not (journal.is_whole(part.final, part.bytes) and journal.done.is_whole(part))
        for part in entry.parts
        if live is None or part.final in live
    )


def _leave_new(work: TableWork, journal: Journal) -> None:
    reason = (
        f"not converted: {len(work.vanished)} source(s) of this table are gone since an earlier run, such as "
        f"{work.vanished[0].file.relative}, and their rows may stand in this one; on_vanished 'remove' takes "
        "them out of the target, 'keep' leaves them there"
    )
    for dues in (work.work, work.held):
        for due in dues:
            if due.file.relative not in journal.done:
                dues.discard(due.file.relative)
                failed = FileReport(due.file.relative, "failed", bytes_in=due.file.size, error=reason)
                work.files.append(failed)
