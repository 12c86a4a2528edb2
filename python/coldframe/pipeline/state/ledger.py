"""Converted source files: entries of the journal, on the driver's disk since there may be many.

A `Ledger` is a sorted mapping from sources to entries. It also answers which entries a table has, and whether
a file of the target belongs to one of them, without scanning all entries.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coldframe.pipeline.records import Committed, Part
from coldframe.pipeline.state.events import deleted_name
from coldframe.pipeline.state.scratch import Scratch, key_of, text_of


class Ledger(Mapping[str, Committed]):
    """Entries by source, sorted. Small sources may share a file of the target."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._entries, self._tables, self._finals, self._members = (scratch.new_list() for _ in range(4))
        self._length = 0
        self._deleted = 0
        self._last: tuple[str, Committed] | None = None
        """The entry that was looked up last: a table of one file asks for it several times."""
        # Of each table:
        self._parts: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()

    def put(self, entry: Committed) -> None:
        """Adds an entry; replaces an entry of the same source."""
        self._last = None
        source = key_of(entry.source)
        if self._length and self._scratch.get(self._entries, source) is not None:
            self.pop(entry.source)
        self._scratch.put(self._entries, source, marshal.dumps(entry.to_json()))
        self._scratch.put(self._tables, _of_table(entry), b"")
        for part in entry.parts:
            users, rows = self._used(part.final) if part.of else (0, 0)
            about = (entry.table, part.bytes, users + 1, rows + part.rows)
            self._scratch.put(self._finals, key_of(part.final), marshal.dumps(about))
            if part.of:
                self._scratch.put(self._members, _member(part), source)
            self._parts[entry.table] += not users
            self._rows[entry.table] += part.rows
        self._sources[entry.table] += 1
        self._length += 1
        self._deleted += entry.receipt is not None

    def look_up(self, source: str) -> Committed | None:
        """The entry of a source."""
        if self._last is not None and self._last[0] == source:
            return self._last[1]
        body = self._scratch.get(self._entries, key_of(source)) if self._length else None
        if body is None:
            return None
        self._last = source, Committed.from_json(marshal.loads(body))
        return self._last[1]

    def pop(self, source: str) -> Committed | None:
        """Removes an entry and returns it; None if there is none."""
        entry = self.look_up(source)
        self._last = None
        if entry is not None:
            self._scratch.delete(self._entries, key_of(source))
            self._scratch.delete(self._tables, _of_table(entry))
            for part in entry.parts:
                self._release(entry, part)
            self._sources[entry.table] -= 1
            self._length -= 1
            self._deleted -= entry.receipt is not None
        return entry

    def mark_listed(self, source: str, traces: Sequence[str]) -> None:
        """Records that a source was listed as safe, with its traces, if there are any."""
        key = key_of(source)
        body = self._scratch.get(self._entries, key) if self._length else None
        if body is not None:
            entry = {**marshal.loads(body), "listed": True, **({"traces": list(traces)} if traces else {})}
            self._scratch.put(self._entries, key, marshal.dumps(entry))
            self._last = None

    def deleted(self, source: str) -> Iterator[Committed]:
        """The entries of deleted sources that had this name."""
        if self._deleted:
            for _, body in list(self._scratch.rows(self._entries, key_of(deleted_name(source)))):
                entry = Committed.from_json(marshal.loads(body))
                if entry.receipt is not None:
                    yield entry

    def _release(self, entry: Committed, part: Part) -> None:
        final = key_of(part.final)
        self._rows[entry.table] -= part.rows
        if part.of:
            self._scratch.delete(self._members, _member(part))
            users, rows = self._used(part.final)
            if users > 1:
                about = (entry.table, part.bytes, users - 1, rows - part.rows)
                self._scratch.put(self._finals, final, marshal.dumps(about))
                return
        self._scratch.delete(self._finals, final)
        self._parts[entry.table] -= 1

    def of_table(self, table: str) -> Iterator[Committed]:
        """The entries of a table, by its path."""
        prefix = key_of(table) + b"\0"
        for key, _ in self._scratch.rows(self._tables, prefix):
            yield self[text_of(key[len(prefix) :])]

    def has_final(self, name: str) -> bool:
        """Whether a file of the target belongs to an entry."""
        return self._scratch.get(self._finals, key_of(name)) is not None

    def final(self, name: str) -> tuple[str, int] | None:
        """The table and the length of a file of the target; None if it belongs to no entry."""
        body = self._scratch.get(self._finals, key_of(name))
        return None if body is None else marshal.loads(body)[:2]

    def users(self, name: str) -> int:
        """How many sources have rows in a file of the target."""
        return self._used(name)[0]

    def is_whole(self, part: Part) -> bool:
        """Whether all rows of a shared file belong to entries."""
        return not part.of or self._used(part.final)[1] == part.of

    def _used(self, name: str) -> tuple[int, int]:
        """How many sources have rows in a file of the target, and the total of these rows."""
        body = self._scratch.get(self._finals, key_of(name)) if self._length else None
        if body is None:
            return 0, 0
        _, _, users, rows = marshal.loads(body)
        return users, rows

    def sharing(self, name: str) -> Iterator[tuple[Committed, Part]]:
        """The sources with rows in a shared file, in row order."""
        for _, source in self._scratch.rows(self._members, key_of(name) + b"\0"):
            entry = self[text_of(source)]
            yield entry, next(part for part in entry.parts if part.final == name)

    def file_shared_by(self, source: str) -> str:
        """The file of the target that a source shares with others; empty if it shares no file."""
        entry = self.look_up(source)
        return "" if entry is None else entry.shared_file

    def tables(self) -> list[str]:
        """The paths of the tables that have files in the target."""
        return [path for path, count in self._parts.items() if count > 0]

    def has_parts(self, table: str) -> bool:
        """Whether a table has files in the target."""
        return self._parts[table] > 0

    def rows_of(self, table: str) -> int:
        """How many rows a table has in the target."""
        return self._rows[table]

    def sources_of(self, table: str) -> int:
        """How many entries a table has."""
        return self._sources[table]

    def each(self) -> Iterator[Committed]:
        """All entries, in the order of their sources."""
        for _, body in self._scratch.rows(self._entries):
            yield Committed.from_json(marshal.loads(body))

    def __getitem__(self, source: str) -> Committed:
        entry = self.look_up(source)
        if entry is None:
            raise KeyError(source)
        return entry

    def __contains__(self, source: object) -> bool:
        return isinstance(source, str) and self._scratch.get(self._entries, key_of(source)) is not None

    def __iter__(self) -> Iterator[str]:
        for key, _ in self._scratch.rows(self._entries):
            yield text_of(key)

    def __len__(self) -> int:
        return self._length


@dataclass(frozen=True)
class TableEntries:
    """The entries of a table, by its path; read again on each iteration."""

    ledger: Ledger
    table: str

    def __iter__(self) -> Iterator[Committed]:
        return self.ledger.of_table(self.table)


def _member(part: Part) -> bytes:
    return key_of(part.final) + b"\0%012d" % part.first


def _of_table(entry: Committed) -> bytes:
    return key_of(entry.table) + b"\0" + key_of(entry.source)
