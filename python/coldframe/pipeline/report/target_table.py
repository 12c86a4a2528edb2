"""What the tables of a target are now: by their own logs and metadata, and by the files that lie there.

    look          what a table is now, whoever has written to it since
    differences   what of ours it does not have as it was verified
    foreign       what it has besides

What the journal says is what was done once. Others delete rows, compact, vacuum and lose logs since then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coldframe.pipeline.plan.plan_files import decoded
from coldframe.pipeline.records import Part
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.live import LiveFile, LiveTable, TableName
from coldframe.pipeline.sink.targets import OVER_ORC, find_target
from coldframe.pipeline.source.inventory import is_hidden
from coldframe.pipeline.state.journal import State
from coldframe.pipeline.state.scratch import Rows, Scratch
from coldframe.pipeline.state.stored_files import StoredFiles

WHOLE_TABLE = ("log gone", "log unreadable", "columns")
"""Kinds of differences that are those of every source of a table."""
_PLAIN = "in its footer"
_OWN = {"delta": ("_delta_log",), "iceberg": ("metadata",), OVER_ORC: ("metadata",)}
"""Folders of a table's log or metadata."""


@dataclass(frozen=True)
class TargetTable:
    """A table of a target as it is now."""

    kind: str
    """As `to` of a migration: `"parquet"`, `"orc"`, `"delta"`, `"iceberg"`, `"iceberg-orc"`."""
    path: str
    """Relative to the target's root."""
    state: str
    """`"there"`, `"gone"` or `"unreadable"`: its log or metadata; of plain files their directory."""
    reason: str
    version: str
    columns: tuple[str, ...] | None
    """That the table has now; None of plain files."""
    files: Rows[LiveFile]
    """That readers of the table see."""
    stored: StoredFiles
    """That lie in its directory."""

    @property
    def has_log(self) -> bool:
        """Whether something else than the directory says which files are the table's."""
        return self.kind in _OWN


@dataclass(frozen=True)
class Difference:
    """Something of ours that a table does not have as it was verified."""

    kind: str
    """`"log gone"`, `"log unreadable"`, `"columns"`: of the table; `"gone"`, `"resized"`, `"unlisted"`,
    `"deleted"`, `"unknown"`: of a file.
    """
    table: str
    source: str
    """Empty: every source of the table."""
    file: str
    rows: int
    """Of this source, in this file."""
    reason: str


def look(destination: Destination, kind: str, name: TableName) -> TargetTable:
    """What a table is now. A table that cannot be read is no error: its state says so."""
    scratch, path = Scratch(), name.path
    files = _live_files(scratch)
    stored = StoredFiles(destination, path, without=_OWN.get(kind, ()))
    try:
        read = find_target(kind).read_table
        table = _plain(stored, path) if read is None else read(destination, name)
        for file in table.files:
            files.append(file)
    except Exception as error:
        # A log that others have written can be wrong in any way, and each library has its own errors.
        table, files = LiveTable("unreadable", f"{type(error).__name__}: {error}"), files.another()
    about = (table.state, table.reason, table.version, table.columns)
    return TargetTable(kind, path, *about, files, stored)


def differences(target: TargetTable, state: State) -> Iterator[Difference]:
    """Files of the migration that the table lacks or has changed since they were verified, by source."""
    entries = state.done.of_table(target.path)
    has_parts = any(entry.parts for entry in entries)
    # If a killed run was about to empty the table, it is unknown whether it did.
    if not has_parts and not state.registered.get(target.path):
        return
    whole = _of_table(target, state)
    if whole is not None:
        yield whole
    if target.state == "unreadable" or (target.has_log and target.state == "gone"):
        return
    ours = state.registered.get(target.path)
    for entry in state.done.of_table(target.path):
        for part in entry.parts:
            fault = _of_part(target, part, ours)
            if fault is not None:
                yield Difference(fault[0], target.path, entry.source, part.final, part.rows, fault[1])


def foreign(target: TargetTable, state: State) -> Iterator[LiveFile]:
    """Files of others that readers of the table see."""
    for file in target.files:
        if not state.done.has_final(file.path):
            yield file


def _of_table(target: TargetTable, state: State) -> Difference | None:
    def difference(kind: str, reason: str) -> Difference:
        rows = sum(part.rows for entry in state.done.of_table(target.path) for part in entry.parts)
        return Difference(kind, target.path, "", "", rows, reason)

    if target.state == "unreadable":
        return difference("log unreadable", f"the table cannot be read: {target.reason}")
    if target.has_log and target.state == "gone":
        return difference("log gone", f"there is no table: {target.reason}")
    if target.columns is not None:
        lost = sorted(_columns(target.path, state) - {name.lower() for name in target.columns})
        if lost:
            return difference("columns", f"the table has no such columns any more: {', '.join(lost)}")
    return None


def _columns(path: str, state: State) -> set[str]:
    """The names of the columns that files of a table were written with, in small letters."""
    written = {entry.details.written for entry in state.done.of_table(path) if entry.parts}
    known = (decoded(state.schemas[name]) for name in written if name in state.schemas)
    return {name.lower() for schema in known for name in schema.names}


def _of_part(target: TargetTable, part: Part, ours: set[str] | None) -> tuple[str, str] | None:
    """What is wrong with a file, and why."""
    listed = target.files.get(part.final)
    if listed is None and target.has_log:
        if ours and part.final not in ours:
            return "unlisted", "no version of the table has it yet"
        return "unlisted", "others have taken it out of the table: its rows are deleted, or written elsewhere"
    there = target.stored.get(part.final)
    if there is None:
        return "gone", "it is not there any more"
    if there.size != part.bytes:
        return "resized", f"it has {there.size:,} bytes, {part.bytes:,} were written"
    if not target.has_log or listed is None:
        return None
    if listed.rows is None:
        return "unknown", listed.why
    if listed.hidden:
        return "deleted", f"others have deleted {listed.hidden:,} of its rows"
    if listed.rows != (part.of or part.rows):
        return "unknown", f"the table says that it has {listed.rows:,} rows, {part.of or part.rows:,} do"
    return None


def _plain(stored: StoredFiles, path: str) -> LiveTable:
    if not stored:
        return LiveTable("gone", f"{path} has no files")
    seen = (
        LiveFile(file.name, None, 0, file.size, _PLAIN)
        for file in stored
        if not any(map(is_hidden, file.name.removeprefix(f"{path}/").split("/")))
    )
    return LiveTable("there", files=seen)


def _live_files(scratch: Scratch) -> Rows[LiveFile]:
    return Rows(
        scratch,
        lambda file: file.path,
        lambda file: (file.path, file.rows, file.hidden, file.bytes, file.why),
        lambda row: LiveFile(*row),
    )
