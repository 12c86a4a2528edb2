"""The current state of target tables, from their logs or metadata and from their stored files.

    look          the current state of a table, whoever has written to it
    differences   our files that it lacks, or that have changed since they were verified
    foreign       files of others

The journal only records what the migration did. Since then, others may have deleted rows, compacted, vacuumed
or lost logs.
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
"""Kinds of differences that affect every source of a table."""
_PLAIN = "in its footer"
_OWN = {"delta": ("_delta_log",), "iceberg": ("metadata",), OVER_ORC: ("metadata",)}
"""Folders of a table's log or metadata."""


@dataclass(frozen=True)
class TargetTable:
    """The current state of a target table."""

    kind: str
    """The `to` of its migration: `"parquet"`, `"orc"`, `"delta"`, `"iceberg"`, `"iceberg-orc"`."""
    path: str
    """Relative to the target's root."""
    state: str
    """`"there"`, `"gone"` or `"unreadable"`: the state of its log or metadata; for plain files, of the
    directory.
    """
    reason: str
    version: str
    columns: tuple[str, ...] | None
    """The current columns; None for plain files."""
    files: Rows[LiveFile]
    """The files that readers of the table see."""
    stored: StoredFiles
    """The files in the table's directory."""

    @property
    def has_log(self) -> bool:
        """Whether a log or metadata lists the table's files."""
        return self.kind in _OWN


@dataclass(frozen=True)
class Difference:
    """A difference between a table and its verified state."""

    kind: str
    """`"log gone"`, `"log unreadable"`, `"columns"`: of the table; `"gone"`, `"resized"`, `"replaced"`,
    `"unlisted"`, `"deleted"`, `"unknown"`: of a file.
    """
    table: str
    source: str
    """The source with the difference; empty if the difference affects every source of the table."""
    file: str
    rows: int
    """The source's rows in this file."""
    reason: str


def look(destination: Destination, kind: str, name: TableName) -> TargetTable:
    """The current state of a table. Does not raise for an unreadable table, but sets its state."""
    scratch, path = Scratch(), name.path
    files = _live_files(scratch)
    stored = StoredFiles(destination, path, without=_OWN.get(kind, ()))
    try:
        read = find_target(kind).read_table
        table = _plain(stored, path) if read is None else read(destination, name)
        for file in table.files:
            files.append(file)
    except Exception as error:
        # A log of other writers can be wrong in any way, and each library has its own errors.
        table, files = LiveTable("unreadable", f"{type(error).__name__}: {error}"), files.another()
    about = (table.state, table.reason, table.version, table.columns)
    return TargetTable(kind, path, *about, files, stored)


def differences(target: TargetTable, state: State) -> Iterator[Difference]:
    """Files of the migration that the table lacks, or that have changed since they were verified."""
    # If a killed run was about to empty the table, it is unknown whether the table was emptied.
    if not state.done.has_parts(target.path) and not state.registered.get(target.path):
        return
    whole = of_table(target, state)
    if whole is not None:
        yield whole
    if target.state == "unreadable" or (target.has_log and target.state == "gone"):
        return
    ours = state.registered.get(target.path)
    for entry in state.done.of_table(target.path):
        for part in entry.parts:
            fault = of_part(target, part, ours)
            if fault is not None:
                yield Difference(fault[0], target.path, entry.source, part.final, part.rows, fault[1])


def foreign(target: TargetTable, state: State) -> Iterator[LiveFile]:
    """Files of others that readers of the table see. Files of a run that was killed are not of others."""
    unsettled = [*state.begun.values(), *state.dropping.values()]
    own = {part.final for entry in unsettled for part in entry.parts}
    for file in target.files:
        if not state.done.has_final(file.path) and file.path not in own:
            yield file


def of_table(target: TargetTable, state: State) -> Difference | None:
    def difference(kind: str, reason: str) -> Difference:
        return Difference(kind, target.path, "", "", state.done.rows_of(target.path), reason)

    if target.state == "unreadable":
        return difference("log unreadable", f"the table cannot be read: {target.reason}")
    if target.has_log and target.state == "gone":
        return difference("log gone", f"there is no table: {target.reason}")
    if target.columns is not None:
        lost = sorted(_columns(target.path, state) - {name.lower() for name in target.columns})
        if lost:
            return difference("columns", f"the table no longer has the columns {', '.join(lost)}")
    return None


def _columns(path: str, state: State) -> set[str]:
    """The names of the columns with which a table's files were written, in lower case."""
    written = {entry.details.written for entry in state.done.of_table(path) if entry.parts}
    known = (decoded(state.schemas[name]) for name in written if name in state.schemas)
    return {name.lower() for schema in known for name in schema.names}


def of_part(target: TargetTable, part: Part, ours: set[str] | None) -> tuple[str, str] | None:
    """The kind of a file's difference, and the reason; None if there is none."""
    listed = target.files.get(part.final)
    if listed is None and target.has_log:
        if ours and part.final not in ours:
            return "unlisted", "no version of the table lists it yet"
        return "unlisted", "others have removed it from the table: its rows are deleted, or rewritten"
    there = target.stored.get(part.final)
    if there is None:
        return "gone", "it no longer exists"
    if there.size != part.bytes:
        return "resized", f"it has {there.size:,} bytes, but {part.bytes:,} were written"
    if not target.stored.is_intact(part):
        return "replaced", "others have replaced it: its bytes are not those that were written"
    if not target.has_log or listed is None:
        return None
    if listed.rows is None:
        return "unknown", listed.why
    if listed.hidden:
        return "deleted", f"others have deleted {listed.hidden:,} of its rows"
    if listed.rows != (part.of or part.rows):
        return "unknown", f"the table states {listed.rows:,} rows, but it has {part.of or part.rows:,}"
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
