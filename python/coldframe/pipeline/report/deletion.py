"""`coldframe delete LIST`: deletes the sources that a list names, and keeps a receipt of each.

    each line       the source as it was read, or deleted by an earlier call, or gone
    each target     every file with rows of these sources: in its table as its engine reads it, with its
    digest then            journal: delete │ the source is removed or moved │ journal: deleted, with the
    receipt

Sources are deleted only if all lines and all their target files are as they were verified. A kill leaves
sources that the journal has announced; the next call goes on with them.
"""

from __future__ import annotations

import functools
import getpass
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from coldframe._coldframe import SchemaError
from coldframe.errors import unsupported
from coldframe.pipeline.file_access import StorageOptions, root_of
from coldframe.pipeline.records import Committed, Json, Part, Receipt
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.audit import judge, sink_of
from coldframe.pipeline.report.safe_list import Line, SafeList, Sources
from coldframe.pipeline.report.target_table import TargetTable, look, of_part, of_table
from coldframe.pipeline.report.verdict import Reason, Verdict, judge_audit
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.source.identity import identity_of, is_same_source
from coldframe.pipeline.source.removal import Remainder, Removal
from coldframe.pipeline.state import events
from coldframe.pipeline.state.journal import Journal, State
from coldframe.sources import is_remote, options_for

BATCH = 1000
"""How many sources are announced, and deleted, at once."""


@dataclass
class Item:
    """A line of the list, and the outcome for its source."""

    line: Line
    entries: list[Committed] = field(default_factory=list)
    """The source's entries in the journal; a directory may hold several tables."""
    fate: str = ""
    """`"deleted"`, `"moved"`, `"gone"`; `"would be deleted"`; empty if the source stays."""
    to: str = ""
    why: str = ""
    """Why the source cannot be deleted."""
    earlier: bool = False
    """Whether an earlier call has deleted the source."""
    settled: bool = False
    """Whether the source no longer exists."""
    is_rest: bool = False
    """Whether the source is the rest of a directory whose deletion was interrupted."""

    def to_json(self) -> Json:
        """A source in the output for programs."""
        line = self.line
        about = {"path": line.path, "size": line.size, "digest": line.digest, "fate": self.fate or "kept"}
        return {**about, "to": self.to or None, "earlier": self.earlier, "error": self.why or None}

    @property
    def text(self) -> str:
        """The source in the output for people."""
        if self.why:
            return f"NOT DELETED: {self.line.path}: {self.why}"
        place = f" -> {self.to}" if self.to else ""
        return f"{self.fate or 'kept'}{' earlier' if self.earlier else ''}: {self.line.path}{place}"


@dataclass
class Deletion:
    """The outcome of `coldframe delete`."""

    target: str
    is_whole: bool = True
    items: list[Item] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Files of the target that differ from their verified state."""
    files: int = 0
    """Files of the target that were compared."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the list and the target."""
        lines = sum(bool(item.why) for item in self.items)
        counts = (("cut_list", int(not self.is_whole)), ("line", lines), ("altered", len(self.faults)))
        reasons = [Reason(kind, count) for kind, count in counts if count]
        return judge_audit(max(self.files, len(self.items)), reasons)

    @property
    def exit_code(self) -> int:
        """0: every source of the list is deleted (or would be); 1: no source is deleted, or not all."""
        return self.verdict.exit_code

    def to_json(self) -> Json:
        """The outcome for programs."""
        return {
            "target": self.target,
            "sources": [item.to_json() for item in self.items],
            "faults": self.faults,
            **self.verdict.to_json(),
        }


@dataclass
class Deleter:
    """Deletes the sources of one list."""

    listed: SafeList
    state: State
    destination: Destination
    to: str | None = None
    storage_options: StorageOptions = None
    """The options of the sources' stores, and of the trash's store."""

    def __post_init__(self) -> None:
        self.result = Deletion(self.destination.root, self.listed.is_whole)
        self._sources = Sources(self.listed)
        if self.to is not None:
            self.to = root_of(self.to)
            for place in (str(self.listed.about.get("source", "")), self.destination.root):
                if place and f"{self.to}/".startswith(f"{place.rstrip('/')}/"):
                    raise unsupported(f"moving sources to {self.to}: it is below {place}, which a run reads")

    def check(self) -> bool:
        """Compares each line and its files in the target. Returns whether all sources may be deleted."""
        name = self.listed.about.get("journal")
        if name is not None and self.state.target is not None and name != self.state.target:
            raise SchemaError(f"the list is of another target than {self.destination.root}")
        trees: dict[str, list[Committed]] = {}
        for entry in self.state.done.each():
            if entry.details.digest.startswith("tree:"):
                trees.setdefault(entry.details.digest, []).append(entry)

        def looks() -> Iterator[Callable[[], Item]]:
            for line in self.listed.lines:
                item = self._item(line, trees)
                known = item.entries[0].details.identity if item.entries else None
                yield functools.partial(self._look, item, known)

        self.result.items = list(in_threads(looks(), self.destination.at_once))
        items = [item for item in self.result.items if not item.earlier]
        if items and all(item.fate == "gone" for item in items) and not self.state.deleting:
            for item in items:
                item.why = "it no longer exists, nor does any other source of the list: is it mounted?"
        if not any(item.why for item in items):
            self._check_target([entry for item in items for entry in item.entries])
        return not self.result.exit_code

    def _item(self, line: Line, trees: dict[str, list[Committed]]) -> Item:
        """A line with its entries in the journal."""
        item = Item(line)
        source = self._sources.of(line.path)
        entries = trees.get(line.digest, [])
        if not line.digest.startswith("tree:"):
            entry = self.state.done.look_up(source)
            if entry is not None and entry.details.digest == line.digest:
                entries = [entry]
            else:
                entries = [e for e in self.state.done.deleted(source) if e.details.digest == line.digest]
        receipts = [entry.receipt for entry in entries if entry.receipt is not None]
        item.entries = [entry for entry in entries if entry.receipt is None]
        if not entries:
            item.why = "the journal does not have this source, or has another digest of it"
        elif receipts and not item.entries:
            item.earlier, item.fate, item.to = True, receipts[-1].fate, receipts[-1].to or ""
        return item

    def _look(self, item: Item, known: str | None) -> Item:
        """Compares a source with its line."""
        options = options_for(item.line.path, self.storage_options)
        if item.why or item.earlier:
            return item
        _, why = safe_list.look(item.line, known, options)
        announced = self.state.deleting.get(item.entries[0].source)
        if why == safe_list.GONE and announced is not None:
            # An earlier call has deleted it, and was killed before the receipt.
            item.to = announced.receipt.to or ""
            item.fate, item.settled = "moved" if item.to else "deleted", True
        elif why == safe_list.GONE:
            item.fate, item.settled = "gone", True
        elif why is not None and announced is not None and announced.files is not None:
            whole = Remainder(announced.files, announced.newest or 0)
            item.is_rest = Remainder.of(item.line.path, options).is_rest_of(whole)
            item.why = (
                "" if item.is_rest else f"a part of it was deleted, and others wrote to it since: {why}"
            )
        else:
            item.why = why or ""
        return item

    def _check_target(self, entries: Sequence[Committed]) -> None:
        """Compares every file of the target with rows of these sources."""
        tables: dict[str, tuple[TargetTable, set[str] | None]] = {}
        faults = self.result.faults

        def looks() -> Iterator[Callable[[], str]]:
            seen: set[str] = set()
            for entry in entries:
                if entry.table not in tables:
                    tables[entry.table] = (
                        self._look_at_table(entry.table),
                        self.state.registered.get(entry.table),
                    )
                target, ours = tables[entry.table]
                for part in entry.parts:
                    if part.final in seen:
                        continue
                    seen.add(part.final)
                    fault = of_part(target, part, ours)
                    inside = list(self.state.done.sharing(part.final)) if part.of else [(entry, part)]
                    if fault is not None:
                        faults.append(f"{part.final}: {fault[1]}")
                    elif not part.verified:
                        faults.append(f"{part.final}: it was never read back")
                    else:
                        self.result.files += 1
                        yield functools.partial(self._read, entry, inside)

        faults += [fault for fault in in_threads(looks(), self.destination.at_once) if fault]

    def _look_at_table(self, path: str) -> TargetTable:
        known = self.state.tables[path]
        target = look(self.destination, known.to, self.state.name_of(known.name, path))
        whole = of_table(target, self.state)
        if whole is not None:
            self.result.faults.append(f"{path}: {whole.reason}")
        return target

    def _read(self, entry: Committed, inside: Sequence[tuple[Committed, Part]]) -> str:
        fault = judge(self.destination, sink_of(self.state, entry), inside, deep=False)
        return "" if fault is None else f"{fault.file}: {fault.reason}"

    def run(self, journal: Journal) -> None:
        """Deletes the sources. Raises OSError or ColdframeError if a source cannot be deleted; the call can
        be repeated.
        """
        items = [item for item in self.result.items if not item.earlier]
        for start in range(0, len(items), BATCH):
            some = items[start : start + BATCH]
            journal.begin_deleting(event for item in some for event in self._announced(item))
            calls = (functools.partial(self._delete, item) for item in some)
            for item in in_threads(calls, self.destination.at_once):
                for entry in item.entries:
                    journal.end_deleting(entry.source, item.fate or events.KEPT, item.to or None)

    def _announced(self, item: Item) -> Iterator[events.Deleting]:
        line, now, by = item.line, time.time(), f"{_user()}@{socket.gethostname()}"
        rest: Remainder | None = None
        if line.digest.startswith("tree:") and not item.settled:
            rest = Remainder.of(line.path, options_for(line.path, self.storage_options))
        for entry in item.entries:
            if entry.source not in self.state.deleting:
                receipt = Receipt(entry.source, line.path, line.size, line.digest, now, by, self._trash(line))
                files, newest = (None, None) if rest is None else (rest.files, rest.newest)
                yield events.Deleting(entry.source, receipt, files, newest)

    def _delete(self, item: Item) -> Item:
        line, details = item.line, item.entries[0].details
        options = options_for(line.path, self.storage_options)
        is_folder = line.digest.startswith("tree:")
        removal = Removal(line.path, is_folder, line.digest[-12:], self._trash(line), self.storage_options)
        if item.settled:
            removal.clear()
            return item
        # Others may have written since the whole list was compared.
        now = "" if item.is_rest else identity_of(line.path, options)
        if now and not is_same_source(line.path, now, details.identity, line.digest, options):
            item.why = "it was changed meanwhile"
            return item
        item.to = removal.run()
        item.fate = "moved" if item.to else "deleted"
        return item

    def _trash(self, line: Line) -> str | None:
        """Where to move a source; None to delete it."""
        if self.to is None:
            return None
        root, path = str(self.listed.about.get("source", "")).rstrip("/"), line.path
        if path.startswith(f"{root}/"):
            return f"{self.to}/{path[len(root) + 1 :]}"
        path = path.partition("://")[2] if is_remote(path) else path
        return f"{self.to}/{path.rpartition('/')[2] if line.path == root else path.lstrip('/')}"


def preview(deleter: Deleter) -> None:
    """Marks what would be deleted."""
    if deleter.check():
        for item in deleter.result.items:
            if not item.earlier and not item.fate:
                item.fate = "would be deleted" if deleter.to is None else "would be moved"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
