"""Stage 6: from staged files to the table, so that a kill at any moment loses no row and doubles none.

    DST/<table>/<key=value>/<file>.parquet      the table
    DST/_coldframe/lock                         held while a run is at work
    DST/_coldframe/staging/                     files that are being written
    DST/_coldframe/state/journal.jsonl          what follows
    DST/_coldframe/manifest.jsonl               one line for each file of the tables, made anew at the end of
    a run

The journal only grows, a line at a time, each line on disk before the next step:

    begin   source file, its finished parts (staged and final name, bytes, fingerprint), the files that they
    replace done    its parts stand under their final names

Final names follow from the source file's identity (path, size, time, options). After a kill, a `begin`
without `done` is completed if each of its parts is found whole under one of its two names, else undone; the
file is then converted again. A last line that was cut off by the kill counts as not written.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from coldframe._coldframe import ColdframeError, UnsupportedError

HOME = "_coldframe"


@dataclass(frozen=True)
class Part:
    """A file of the target."""

    staged: str
    final: str
    rows: int
    bytes: int
    checks: dict[str, Any] = field(default_factory=dict)
    verified: bool = False


@dataclass(frozen=True)
class Entry:
    """A source file that has been converted; all paths are relative to the target's root."""

    key: str
    source: str
    table: str
    parts: tuple[Part, ...]
    replaces: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    """What the report says of it: bytes and rows read, damage."""

    def to_json(self) -> dict[str, Any]:
        """A line of the journal."""
        return {
            "event": "begin",
            "key": self.key,
            "source": self.source,
            "table": self.table,
            "parts": [vars(part) for part in self.parts],
            "replaces": list(self.replaces),
            "details": self.details,
        }

    @staticmethod
    def from_json(line: dict[str, Any]) -> Entry:
        """The reverse of `to_json`."""
        parts = tuple(Part(**part) for part in line["parts"])
        return Entry(
            line["key"], line["source"], line["table"], parts, tuple(line["replaces"]), line["details"]
        )


class Journal:
    """The state of a target directory. One run holds it at a time."""

    def __init__(self, root: str, *, keep_replaced: bool = False) -> None:
        """`keep_replaced`: files that newer ones replace stay, since older versions of a table list them."""
        self.root = os.path.abspath(root)
        self._keep_replaced = keep_replaced
        self.home = os.path.join(self.root, HOME)
        self.path = os.path.join(self.home, "state", "journal.jsonl")
        self.done: dict[str, Entry] = {}
        """Source files that are finished, by their path relative to the source's root."""
        self.schemas: dict[str, str] = {}
        """Columns that files have or were written with, serialised, by a name that follows from them."""
        self._out: IO[str] | None = None
        self._lock: IO[str] | None = None

    @property
    def staging(self) -> str:
        """Where the tasks write."""
        return os.path.join(self.home, "staging")

    def __enter__(self) -> Journal:
        if not os.path.isdir(self.home) and os.path.isdir(self.root) and os.listdir(self.root):
            raise UnsupportedError(
                f"migrating into {self.root}: it is neither empty nor of an earlier migration"
            )
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self._lock = open(os.path.join(self.home, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as reason:
            self._lock.close()
            raise ColdframeError(f"{self.root}: another migration is at work here") from reason
        try:
            self._recover()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._out is not None:
            self._out.close()
        if self._lock is not None:
            self._lock.close()

    def commit(self, entry: Entry) -> None:
        """Gives the parts of a source file their final names."""
        self._append(entry.to_json())
        self._move(entry)
        self._append({"event": "done", "key": entry.key, "source": entry.source})
        self.done[entry.source] = entry

    def keep_schema(self, name: str, schema: str) -> None:
        """Remembers columns, for files that come later."""
        if name not in self.schemas:
            self._append({"event": "schema", "name": name, "schema": schema})
            self.schemas[name] = schema

    def clear_staging(self) -> None:
        """Deletes what was staged and never committed."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def write_manifest(self) -> str:
        """One line for each file of the tables."""
        path = os.path.join(self.home, "manifest.jsonl")
        with replacing(path) as out:
            for source in sorted(self.done):
                entry = self.done[source]
                for part in entry.parts:
                    line = {"table": entry.table, "source": source, "file": part.final, **vars(part)}
                    del line["staged"], line["final"]
                    out.write(json.dumps(line) + "\n")
        return path

    def _append(self, line: dict[str, Any]) -> None:
        if self._out is None:
            raise ColdframeError("the journal is not open")
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()
        os.fsync(self._out.fileno())

    def _recover(self) -> None:
        begun: dict[str, Entry] = {}
        for line in self._lines():
            if line["event"] == "begin":
                entry = Entry.from_json(line)
                begun[entry.key] = entry
            elif line["event"] == "done":
                self.done[line["source"]] = begun.pop(line["key"])
            elif line["event"] == "schema":
                self.schemas[line["name"]] = line["schema"]
        self._cut_torn_line()
        self._out = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 - closed by __exit__
        for entry in begun.values():
            if all(self._whole(part) for part in entry.parts):
                self.commit(entry)
            else:
                self._undo(entry)
        self.clear_staging()

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not os.path.exists(self.path):
            return
        with open(self.path, encoding="utf-8") as source:
            for number, text in enumerate(source, 1):
                if not text.endswith("\n"):
                    return
                try:
                    yield json.loads(text)
                except json.JSONDecodeError as reason:
                    raise ColdframeError(f"{self.path}, line {number}: {reason}") from reason

    def _cut_torn_line(self) -> None:
        """So that the next line starts on a line of its own."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb+") as journal:
            journal.truncate(journal.read().rfind(b"\n") + 1)
            os.fsync(journal.fileno())

    def _whole(self, part: Part) -> bool:
        return any(self._has(name, part.bytes) for name in (part.staged, part.final))

    def _has(self, name: str, size: int) -> bool:
        path = os.path.join(self.root, name)
        return os.path.isfile(path) and os.path.getsize(path) == size

    def _move(self, entry: Entry) -> None:
        finals = {part.final for part in entry.parts}
        for name in () if self._keep_replaced else entry.replaces:
            if name not in finals:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.root, name))
        for part in entry.parts:
            staged, final = os.path.join(self.root, part.staged), os.path.join(self.root, part.final)
            if os.path.exists(staged):
                os.makedirs(os.path.dirname(final), exist_ok=True)
                os.replace(staged, final)
        for folder in {os.path.dirname(os.path.join(self.root, name)) for name in finals}:
            _sync_folder(folder)

    def _undo(self, entry: Entry) -> None:
        """Takes back what a killed commit had renamed; the older version went with it, so it is not done
        either.
        """
        names = [name for part in entry.parts for name in (part.staged, part.final)]
        before = self.done.get(entry.source)
        if before is not None and not all(self._has(part.final, part.bytes) for part in before.parts):
            names += [part.final for part in before.parts]
            del self.done[entry.source]
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.root, name))


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[str]]:
    """A file that appears whole or not at all."""
    temporary = f"{path}.{os.getpid()}.new"
    with open(temporary, "w", encoding="utf-8") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, path)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
