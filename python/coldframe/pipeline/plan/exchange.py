"""Decides which changes of a table's sources a run applies to the target: all of them, or none.

Hive compacts, moves and overwrites between two runs: a new or changed source may have the rows of a vanished
source. Taking the new source without removing the vanished source would duplicate rows; the reverse would
lose rows. So until the user has decided what happens to vanished sources (`on_vanished`), the run takes no
new or changed files of their table. Earlier results whose sources cannot be converted now (gone, left out,
withheld) stay unchanged, together with the target files that they share with other sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import coldframe
from coldframe.errors import ColdframeError
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.layouts import unreadable
from coldframe.pipeline.plan.table_work import Pending, TableWork, pending_of
from coldframe.pipeline.records import Committed, SourceFile
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source.identity import has_a_trace, is_same_source
from coldframe.pipeline.source.inventory import Inventory
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.state.scratch import Rows

GONE = "whose source is gone"
DELETED = "whose source was deleted as listed"
LEFT_OUT = "whose source this run leaves out, or could not read"
UNKNOWN = "whose source no longer has a known format"
WITHHELD = "which this run does not take"
_ARCHIVED = (
    "nothing is taken out: {} source(s) of this table are gone, such as {}, which was listed as safe to "
    "delete: its rows may be nowhere else. archived_rows 'keep' leaves them in the target, 'drop' takes them "
    "out"
)
_REPLACED = (
    "not converted: an earlier file of this name was listed as safe to delete, and its rows may be nowhere "
    "else; archived_rows 'drop' replaces them by those of this file"
)
_HALF_DELETED = (
    "not converted: its deletion was begun, and a part of it is gone; run `coldframe delete` again"
)


_MADE_ANEW = (
    "not converted: an earlier directory of this name was listed as safe to delete, no file of it is left, "
    "and its rows may be nowhere else; archived_rows 'drop' replaces them by those of this directory"
)


class Absence:
    """Why sources of earlier runs are not among this run's sources."""

    def __init__(self, inventory: Inventory, there: Rows[str], options: Options) -> None:
        self._there, self._selection = there, options.selection
        self._drops = options.archived_rows == "drop" and options.on_vanished == "remove"
        self.moved = there.another()
        """Sources that belong to another table now."""
        self._inventory = inventory
        self.is_empty = not (len(there) or len(inventory.left_out))
        """Whether the source has no files at all."""

    def of(self, source: str) -> str:
        """Why a source is absent; empty if it is present."""
        if self._there.get(source) is not None:
            return ""
        return LEFT_OUT if self._inventory.leaves_out(source) else GONE

    def has_vanished(self, source: str) -> bool:
        """Whether a source that the run covers is gone."""
        return self.of(source) == GONE and self._selection.takes(source)

    def takes_out(self, entry: Committed) -> bool:
        """Whether the user has requested by name that rows of deleted sources are removed."""
        return self._drops and self._selection.takes(entry.name)

    def others(self, work: TableWork, journal: Journal) -> Iterator[Pending]:
        """The earlier results of a table whose sources this run does not cover."""
        for entry in journal.done.of_table(work.table.path):
            source = entry.source
            dealt_with = any(rows.get(source) is not None for rows in (work.done, work.work, work.held))
            if entry.receipt is not None and not self.takes_out(entry):
                yield pending_of(source_of(entry), entry, DELETED)
            elif not dealt_with and not self.has_vanished(source) and self.moved.get(source) is None:
                yield pending_of(source_of(entry), entry, self.of(source) or UNKNOWN)


def is_same(file: SourceFile, entry: Committed) -> bool:
    """Whether a source is still the converted source: see `identity`."""
    details = entry.details
    return is_same_source(file.path, file.identity, details.identity, details.digest, file.storage_options)


def _is_made_anew(file: SourceFile, before: Committed) -> bool:
    """Whether a directory may be another one than the directory that was listed: it has none of its files,
    and no compaction that may have replaced them.
    """
    if not before.traces or has_a_trace(file.path, before.traces, file.storage_options):
        return False
    try:
        with coldframe.open(file.path, storage_options=file.storage_options) as opened:
            return not opened.metadata.get("compacted")
    except ColdframeError:
        return True


def source_of(entry: Committed) -> SourceFile:
    """An absent source, with what the journal knows of it."""
    return SourceFile(entry.source, entry.source, entry.details.bytes, 0, None)


@dataclass
class Exchange:
    """Decides what this run takes of each table."""

    journal: Journal
    options: Options
    target: Target
    absence: Absence
    nested: Mapping[str, str]
    """Why tables cannot be written, by their paths."""
    gone: set[str]
    """Target files that cannot stay, since the rows of one of their sources are removed."""

    def settle(self, work: TableWork) -> bool:
        """Decides what to take. Returns whether the decision replaces earlier results of unchanged files."""
        work.report.on_vanished = self.options.on_vanished
        beside: Pending | None = None
        if self.journal.done.sources_of(work.table.path) > work.known + len(work.vanished):
            for pending in self.absence.others(work, self.journal):
                work.stays.append(pending)
                beside = pending if pending.why == GONE else beside
        if not (work.work or work.held or work.vanished):
            # The table's columns and folders are the columns and folders of all its files.
            work.table.know_only(pending.file for rows in (work.done, work.stays) for pending in rows)
            return False
        blocked, how = "", self.options.on_vanished
        archived = self._first_archived(work)
        if how == "remove" and archived and self.options.archived_rows == "keep":
            how = work.report.on_vanished = "keep"
        if how == "remove":
            blocked = _why_not_removed(work, self.journal, self.options, self.absence, beside)
            if archived and self.options.archived_rows == "ask":
                blocked = blocked or _ARCHIVED.format(len(work.vanished), archived)
        if how == "remove" and not blocked:
            work.drops = [pending.file.relative for pending in work.vanished]
            self.gone.update(pending.shared for pending in work.vanished)
        else:
            if blocked:
                work.report.error, work.report.on_vanished = blocked, "fail"
            for pending in work.vanished:
                work.stays.append(replace(pending, why=GONE))
            if how != "keep" and (work.vanished or beside):
                _withhold(work, self.journal, blocked, beside)
        self._withhold_replaced(work)
        self._refuse_unreadable(work)
        _keep_together(work, self.journal, self.gone)
        return _convert_mates(work, self.journal, self.gone)

    def _first_archived(self, work: TableWork) -> str:
        """A source that is gone, and that was listed as safe to delete; empty if there is none."""
        sources = (pending.file.relative for pending in work.vanished)
        entries = (self.journal.done.look_up(source) for source in sources)
        return next((entry.source for entry in entries if entry is not None and entry.listed), "")

    def _withhold_replaced(self, work: TableWork) -> None:
        """Leaves out files that have the name of a source that was listed as safe to delete."""
        if self.options.archived_rows == "drop":
            return
        for rows in (work.work, work.held):
            for pending in rows:
                file = pending.file
                if file.is_folder and file.relative in self.journal.state.deleting:
                    _leave(work, pending, self.journal, _HALF_DELETED)
                before = None if pending.again else self.journal.done.look_up(file.relative)
                if before is None or not before.listed or not before.parts or is_same(file, before):
                    continue
                if not file.is_folder:
                    _leave(work, pending, self.journal, _REPLACED)
                elif _is_made_anew(file, before):
                    _leave(work, pending, self.journal, _MADE_ANEW)

    def _refuse_unreadable(self, work: TableWork) -> None:
        """Refuses files that would make the table unreadable as a whole."""
        around = self.nested.get(work.table.path)
        if around is not None and (work.work or work.held):
            work.report.error = f"not converted: {around}"
            refused = [(pending, work.report.error) for rows in (work.work, work.held) for pending in rows]
        else:
            refused = list(unreadable(work, self.target))
        for pending, reason in refused:
            _leave(work, pending, self.journal, reason)
        places = (work.work, work.held, work.done, work.stays)
        work.table.know_only(pending.file for rows in places for pending in rows)


def _why_not_removed(
    work: TableWork, journal: Journal, options: Options, absence: Absence, beside: Pending | None
) -> str:
    """Why rows of vanished sources are not removed although that was requested."""
    if beside is not None:
        return (
            f"{beside.file.relative} is gone, too, but this run leaves it out. A table's changes can only be "
            "taken as a whole: select all of the table"
        )
    if not work.vanished:
        return ""
    stays = {pending.shared: pending for pending in work.stays if pending.shared}
    for pending in work.vanished:
        mate = stays.get(pending.shared)
        if mate is not None:
            return (
                f"the rows of {pending.file.relative}, which is gone, share a file with those of "
                f"{mate.file.relative}, {mate.why}: select all of the table to take them out"
            )
    return _brake(work, journal, options, absence)


def _brake(work: TableWork, journal: Journal, options: Options, absence: Absence) -> str:
    """Why the run refuses to remove so much of a table without an explicit request.

    An empty mount point looks like a source whose every file was deleted.
    """
    table = work.table
    if any(fnmatchcase(name, pattern) for pattern in options.dropped for name in (table.name, table.path)):
        return ""
    before = sum(entry.details.bytes for entry in journal.done.of_table(table.path))
    there = sum(file.size for files in (table.files, table.damaged) for file in files)
    there += sum(pending.file.size for pending in work.stays)
    lost = 1 - there / before if before else 0.0 if there else 1.0
    if lost <= options.most_vanished and not absence.is_empty:
        return ""
    what = "the source is empty" if absence.is_empty else f"{lost:.0%} of its bytes"
    how = "" if absence.is_empty else f", or with most_vanished {lost:.2f} or more"
    return (
        f"nothing is taken out: {len(work.vanished)} source(s) of this table are gone, such as "
        f"{work.vanished[0].file.relative} ({what}). Is the whole source mounted? If these files were really "
        f"deleted, allow it with dropped '{table.path}'{how}"
    )


def _withhold(work: TableWork, journal: Journal, blocked: str, beside: Pending | None) -> None:
    """Takes nothing new or changed; restores earlier results that are lost."""
    first = work.vanished[0] if work.vanished else beside
    if first is None:
        return
    why = blocked or (
        f"{max(len(work.vanished), 1)} source(s) of this table are gone since an earlier run, such as "
        f"{first.file.relative}, and their rows may be in this file; on_vanished 'remove' takes them out of "
        "the target, 'keep' leaves them there"
    )
    for rows in (work.work, work.held):
        for pending in rows:
            if not pending.again:
                _leave(work, pending, journal, f"not converted: {why}")


def _leave(work: TableWork, pending: Pending, journal: Journal, reason: str) -> None:
    """Leaves a file out of this run: the result of an earlier run stays."""
    work.refuse(pending, reason)
    before = journal.done.look_up(pending.file.relative)
    if before is not None and before.table == work.table.path:
        work.stays.append(pending_of(pending.file, before, WITHHELD))


def _keep_together(work: TableWork, journal: Journal, gone: set[str]) -> None:
    """Keeps the target files of results that stay, together with all other rows in those files."""
    kept = {pending.shared: pending for pending in work.stays if pending.shared}
    for name, pending in kept.items():
        gone.discard(name)
        shared = journal.done.sharing(name) if pending.why in (GONE, DELETED) else ()
        if not all(journal.done.is_whole(part) for _, part in shared):
            work.report.error = (
                f"{name} has rows of {pending.file.relative}, which is gone, and of sources that have moved "
                "since: on_vanished 'remove' takes them out"
            )
    for rows in (work.work, work.held) if kept else ():
        for pending in rows:
            mate = kept.get(journal.done.file_shared_by(pending.file.relative))
            if mate is not None:
                how = {
                    GONE: "on_vanished 'remove' takes that out of the target",
                    DELETED: "archived_rows 'drop' with on_vanished 'remove' takes that out of the target",
                    LEFT_OUT: "a run that takes all of the table converts both",
                }.get(mate.why, "it is converted together with that")
                gone.add(pending.shared)
                _leave(
                    work,
                    pending,
                    journal,
                    f"not converted: its earlier rows share a file with those of {mate.file.relative}, "
                    f"{_which(mate)}; {how}",
                )


def _which(pending: Pending) -> str:
    return "which is gone" if pending.why == GONE else pending.why


def _convert_mates(work: TableWork, journal: Journal, gone: set[str]) -> bool:
    """Converts again all sources that share a file with a source whose rows are removed from it.

    Returns whether this replaces finished results.
    """
    gone.discard("")
    # Sources that are held in one file are taken together or not at all.
    known: dict[str, bool] = {}
    for pending in work.held:
        if pending.shared and pending.shared not in known:
            mates = journal.held.sharing(pending.shared)
            known[pending.shared] = all(work.held.get(entry.source) is not None for entry, _ in mates)
            if not known[pending.shared]:
                gone.add(pending.shared)
    if not gone:
        return False
    replaces = False
    for rows in (work.done, work.held):
        for pending in rows:
            if pending.shared in gone:
                rows.discard(pending.file.relative)
                work.files.discard(pending.file.relative)
                work.work.append(Pending(pending.file, pending.key, again=True))
                replaces = replaces or rows is work.done
    return replaces
