"""Compares the source with the state, to find out what has to be done.

    done       unchanged, and its files are in the target
    deleted    deleted by `coldframe delete`: its rows stay
    work       new, changed, to be converted again (`--fresh`), or its files in the target are lost
    held       converted, but not yet published, by an earlier run
    vanished   converted once, and gone now
    stays      converted once, and skipped by this run: left out, gone, or withheld

`exchange` decides what happens to a table with vanished sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.exchange import GONE, Absence, Exchange, is_same, source_of
from coldframe.pipeline.plan.layouts import nested
from coldframe.pipeline.plan.lost_entries import enter_lost
from coldframe.pipeline.plan.plan_files import key_maker
from coldframe.pipeline.plan.table_work import Pending, TableWork, Works, pending_of
from coldframe.pipeline.records import Committed, SourceFile
from coldframe.pipeline.report.model import FileReport
from coldframe.pipeline.sink.sinks import ParquetSink
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source.identity import digest_now
from coldframe.pipeline.source.inventory import Inventory
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.state.stored_files import StoredFiles

__all__ = ["Pending", "TableWork", "compare"]

Live = Callable[[Table], "set[str] | None"]
"""The files that a Delta or Iceberg table lists; None if there is no such table."""


def settings_of(options: Options, target: Target, table: Table) -> dict[str, str]:
    """The settings that decide whether two conversions of one file differ."""
    sink = target.sink
    if type(sink) is ParquetSink:
        # The codec makes no difference to the rows.
        sink = replace(sink, compression="zstd")
    settings = {"to": target.name, "sink": repr(sink), "unit": options.timestamp_unit}
    if target.partitions_inside and table.spec is not None:
        settings["partitions"] = str(table.spec.partitions)
        layout = table.spec.layout if target.settle_layout is not None else None
        divided_by = () if layout is None else layout.divided_by(table.keys)
        if divided_by:
            settings["divided by"] = ", ".join(map(str, divided_by)).lower()
    return settings


def compare(
    inventory: Inventory,
    tables: Sequence[Table],
    journal: Journal,
    options: Options,
    target: Target,
) -> list[TableWork]:
    """The work of each table; tables that only the state knows come last."""

    def live(table: Table) -> set[str] | None:
        return target.lists(journal.destination, journal.state.name_of(table.name, table.path))

    all_works = Works(inventory.root, options.source_storage_options)
    known = _KnownTables(all_works, tables, journal)
    if target.settle_layout is not None:
        for made in known.works:
            made.layout = None if made.table.spec is None else made.table.spec.layout
    for path, file in _spoilt(inventory, journal):
        known.of(path).table.damaged.append(file)
        inventory.stray.remove(file.relative)
    _note_what_is_there(all_works, inventory, tables)
    absence = Absence(inventory, all_works.there, options)
    sharing = _Sharing(journal)
    _forget_what_has_gone(all_works, journal, sharing)
    for source in list(journal.state.deleting):
        if absence.of(source) == GONE:
            # The deletion was killed before its receipt.
            journal.end_deleting(source, "deleted")
    for entry in (journal.done[source] for source in journal.done if absence.has_vanished(source)):
        work = known.of(entry.table)
        if entry.receipt is not None and not absence.takes_out(entry):
            work.report.archived += 1
            work.report.rows_archived += sum(part.rows for part in entry.parts)
            continue
        work.vanished.append(pending_of(source_of(entry), entry))
        work.report.vanished.append(entry.name)
    for path in _half_dropped(journal, target, live):
        if path not in known:
            known.of(path).half_dropped = True
    works = known.works
    replaces: list[bool] = []
    for work in works:
        key_of = key_maker(work.table, settings_of(options, target, work.table))
        files = live(work.table)
        sharing.stored = StoredFiles(journal.destination, work.table.path)
        for entry in enter_lost(work, journal, target, sharing.stored, files, key_of):
            if absence.has_vanished(entry.source) and entry.source not in work.report.vanished:
                work.vanished.append(pending_of(source_of(entry), entry))
                work.report.vanished.append(entry.source)
        replaces.append(_sort_files(work, journal, key_of, files, sharing, absence))
    exchange = Exchange(journal, options, target, absence, nested(works, journal), sharing.gone)
    for work, replaced in zip(works, replaces, strict=True):
        replaced = exchange.settle(work) or replaced
        work.careful = bool(work.drops or work.held or replaced) or _has_spoilt(work, journal)
    return works


class _KnownTables:
    """The work of each table: tables of the source, then tables that only the state knows."""

    def __init__(self, all_works: Works, tables: Sequence[Table], journal: Journal) -> None:
        self._all_works, self._journal = all_works, journal
        self.works = [all_works.new(table) for table in tables]
        self._by_path = {work.table.path: work for work in self.works}

    def __contains__(self, path: str) -> bool:
        return path in self._by_path

    def of(self, path: str) -> TableWork:
        """The work of the table with this path."""
        if path not in self._by_path:
            self.works.append(self._all_works.new(_gone_table(path, self._journal)))
            self._by_path[path] = self.works[-1]
        return self._by_path[path]


def _note_what_is_there(all_works: Works, inventory: Inventory, tables: Sequence[Table]) -> None:
    for files in (
        *(table.files for table in tables),
        *(table.damaged for table in tables),
        inventory.unknown,
    ):
        for file in files:
            all_works.there.append(file.relative)


def _forget_what_has_gone(all_works: Works, journal: Journal, sharing: _Sharing) -> None:
    """Forgets unfinished results of sources that are gone."""
    for source in journal.held:
        if all_works.there.get(source) is None:
            sharing.leave(journal.held.look_up(source))
            journal.forget(source)
    for source in list(journal.state.units):
        if all_works.there.get(source) is None:
            journal.forget(source)


def _spoilt(inventory: Inventory, journal: Journal) -> list[tuple[str, SourceFile]]:
    """Files that an earlier run converted and that now have no known format and no table: their earlier
    tables, and the files.
    """
    stray = set(inventory.stray)
    spoilt = []
    for file in inventory.unknown if stray else ():
        entry = journal.done.look_up(file.relative) if file.relative in stray else None
        if entry is not None:
            spoilt.append((entry.table, file))
    return spoilt


def _has_spoilt(work: TableWork, journal: Journal) -> bool:
    """Whether a converted file has no known format now: its earlier rows stay."""
    before = (journal.done.get(file.relative) for file in work.table.damaged)
    return any(entry is not None and entry.parts for entry in before)


def _gone_table(path: str, journal: Journal) -> Table:
    """A table without files in the source."""
    known = journal.state.tables.get(path)
    if known is None:
        raise ColdframeError(
            f"{journal.destination.root}: the journal has sources of table {path}, but not its format: "
            "a part of it is gone. Restore it, or migrate into another directory"
        )
    return Table(known.name, path, known.format, None)


def _half_dropped(journal: Journal, target: Target, live: Live) -> Iterator[str]:
    """Paths of tables that still list files of ours, although the journal has dropped all their sources."""
    for path, files in journal.state.registered.items():
        known = journal.state.tables.get(path)
        if journal.done.sources_of(path) or known is None or known.to != target.name:
            continue
        if files and live(_gone_table(path, journal)) is not None:
            yield path


class _Sharing:
    """Files of the target that several sources share."""

    def __init__(self, journal: Journal) -> None:
        self.gone: set[str] = set()
        """Files that cannot stay, since the rows of one of their sources must be removed."""
        self._last: tuple[str, bool] = ("", False)
        self.stored = StoredFiles(journal.destination, "")
        """The stored files of the table that is being compared."""

    def leave(self, entry: Committed | None) -> None:
        """Records that a source's rows must be removed from the file that the source shares with other
        sources.
        """
        self.gone.add("" if entry is None else entry.shared_file)

    def lost(self, entry: Committed, journal: Journal, live: set[str] | None) -> bool:
        """See `_lost`; a shared file is checked once for consecutive sources."""
        name = entry.shared_file
        if not name:
            return _lost(entry, journal, self.stored, live)
        if self._last[0] != name:
            self._last = name, _lost(entry, journal, self.stored, live)
        return self._last[1]


def _sort_files(
    work: TableWork,
    journal: Journal,
    key_of: Callable[[SourceFile], str],
    live: set[str] | None,
    sharing: _Sharing,
    absence: Absence,
) -> bool:
    """Sorts the files of a table into done, held and work. Returns whether earlier results are replaced."""
    replaces = False
    for file in work.table.files:
        before = _settled(work, file, journal)
        if before is not None and before.table == work.table.path:
            work.known += 1
        elif before is not None:
            absence.moved.append(file.relative)
        replaces = _sort(work, file, before, journal, key_of(file), live, sharing) or replaces
    return replaces


def _settled(work: TableWork, file: SourceFile, journal: Journal) -> Committed | None:
    """The earlier result of a file. A source that was deleted and is there again has its earlier result; a
    new file of its name has none.
    """
    before = journal.done.look_up(file.relative)
    if before is not None and file.relative in journal.state.deleting:
        if is_same(file, before) or file.is_folder:
            return before
        # Its deletion was killed before its receipt, and this is a new file.
        journal.end_deleting(file.relative, "deleted")
        return None
    for entry in journal.done.deleted(file.relative) if before is None else ():
        digest = entry.details.digest
        if digest and digest == digest_now(file.path, file.identity, digest, file.storage_options):
            journal.restore(entry)
            if entry.table == work.table.path:
                work.report.archived -= 1
                work.report.rows_archived -= sum(part.rows for part in entry.parts)
            return journal.done.look_up(file.relative)
    return before


def _sort(
    work: TableWork,
    file: SourceFile,
    before: Committed | None,
    journal: Journal,
    key: str,
    live: set[str] | None,
    sharing: _Sharing,
) -> bool:
    """Sorts one file. Returns whether the file's earlier result is replaced."""
    waiting = journal.held.look_up(file.relative)
    state = journal.state
    usable = (
        waiting is not None
        and waiting.key == key
        and is_same(file, waiting)
        and waiting.generation == state.generation
        and all(journal.held.is_whole(part) for part in waiting.parts)
    )
    now = not state.fresh or (before is not None and before.generation == state.generation)
    # Files that share a target file are held, and published, together.
    together = usable and waiting is not None and bool(waiting.shared_file)
    again = before is not None and before.key == key and is_same(file, before)
    same = again and now and not together
    if before is not None and same and not sharing.lost(before, journal, live):
        work.done.append(pending_of(file, before))
        work.files.append(FileReport.of_entry(before, file.share, earlier=True))
        return False
    if usable and waiting is not None:
        work.held.append(replace(pending_of(file, waiting), again=again))
        sharing.leave(before)
        return False
    if before is not None and same:
        for part in before.parts:
            if sharing.stored.is_whole(part.final, part.bytes) and not sharing.stored.is_intact(part):
                work.report.add_reason("altered", 1, f"{part.final} was replaced by others")
    sharing.leave(before)
    sharing.leave(waiting)
    work.work.append(Pending(file, key, again=again))
    return before is not None and bool(before.parts)


def _lost(entry: Committed, journal: Journal, stored: StoredFiles, live: set[str] | None) -> bool:
    """Whether a target file of an entry is gone, or has other bytes. Ignores files that a Delta or Iceberg
    table no longer lists: others removed them on purpose.
    """
    return any(
        not (stored.is_intact(part) and journal.done.is_whole(part))
        for part in entry.parts
        if live is None or part.final in live
    )
