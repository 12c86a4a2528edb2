"""Stage 6: from staged files to the table, so that a kill at any moment loses no row and doubles none.

    DST/<table>/<key=value>/<file>.parquet          the table
    DST/_coldframe/lock                             held while a run is at work
    DST/_coldframe/staging/000007/                  files that run 7 writes, and those that it held
    DST/_coldframe/state/000000000012.jsonl         the journal: numbered segments
    DST/_coldframe/state/000000000010.base.jsonl    all of it up to segment 10, in short
    DST/_coldframe/manifest.jsonl                   a line for each file of the tables

docs/migration-state.md has the events. A segment is created under the next number, which only one driver can
do; each run begins with one that says so. A driver that was taken for dead, and finds the next number taken,
is fenced: it stops before it touches a table. Segments that began a run are kept for that.

    unit     a part of a large source file is converted, and waits in staging for the others
    hold     a source file is converted, its parts wait in staging until all of its table can be published
    begin    its parts are about to get their final names, and what they replace is about to be deleted
    done     both have happened
    drop     its source is gone: its parts are about to be deleted

New files are published before the old ones are deleted, and a file that several sources share is deleted
with the last of them. After a kill, a `begin` without `done` is completed
if each of its parts is found whole under one of its two names, else undone: the file is converted again.
"""

from __future__ import annotations

import functools
import json
import os
import re
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, TypeVar

from coldframe._coldframe import ColdframeError, UnsupportedError
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.state.ledger import Entry, Ledger, Part
from coldframe.pipeline.state.scratch import Scratch
from coldframe.pipeline.state.stored_files import StoredFiles
from coldframe.pipeline.target.destination import Destination

__all__ = ["HOME", "Entry", "Journal", "Part", "State", "read_state"]

HOME = "_coldframe"
STATE = f"{HOME}/state"
STAGING = f"{HOME}/staging"
COMPACT = 64
"""Segments after which the journal is written in short."""
_ABOUT = ("name", "to", "unit", "place", "format")
T = TypeVar("T")
R = TypeVar("R")
_SEGMENT = re.compile(r"(\d{12})(\.base)?\.jsonl\Z")


class State:
    """What the journal says. Reading it changes nothing."""

    def __init__(self) -> None:
        scratch = Scratch()
        self.done = Ledger(scratch)
        """Source files that are finished, by their path relative to the source's root."""
        self.held = Ledger(scratch)
        """Source files that are converted, but not published yet."""
        self.schemas: dict[str, str] = {}
        """Columns that files have or were written with, serialised, by a name that follows from them."""
        self.tables: dict[str, dict[str, Any]] = {}
        """What each table was written as: its name, `to` and the unit of its timestamps, by its path; and
        what of the source it is: place and format, which early versions did not write down.
        """
        self.registered: dict[str, set[str]] = {}
        """The files that our commits left in a Delta or Iceberg table, whatever others did since;"""
        self.registering: dict[str, dict[str, Any]] = {}
        """and the commit that was about to be made."""
        self.epoch = 0
        """How many runs there were."""
        self.ended: float | None = None
        """When the last run that was not killed came to its end."""
        self.generation = 0
        """How many times everything was begun afresh; `fresh`: and is not through with it."""
        self.fresh = False
        self.units: dict[str, dict[int, dict[str, Any]]] = {}
        """Parts that are converted of sources that are not: the events, by source and number."""
        self.begun: dict[str, Entry] = {}
        """Entries whose publishing was begun, by their source; `dropping`: what was about to be deleted."""
        self.dropping: dict[str, Entry] = {}

    def begin_fresh(self) -> None:
        """What was done before counts as not done. One that was killed goes on."""
        if not self.fresh:
            self.generation, self.fresh = self.generation + 1, True

    def apply(self, event: dict[str, Any]) -> None:
        """One event of the journal."""
        kind = event["event"]
        if kind == "run":
            self.epoch = event["epoch"]
        elif kind == "end":
            self.ended = event["at"]
        elif kind == "schema":
            self.schemas[event["name"]] = event["schema"]
        elif kind == "table":
            self.tables[event["path"]] = {key: event[key] for key in _ABOUT if key in event}
        elif kind == "lists":
            self.registered[event["table"]] = set(event["files"])
        elif kind == "register":
            self.registering[event["table"]] = event
        elif kind == "registered":
            about = self.registering.pop(event["table"])
            if event["made"]:
                files = self.registered.setdefault(event["table"], set())
                files.difference_update(about["remove"])
                files.update(about["add"])
        elif kind == "fresh":
            self.generation, self.fresh = event["generation"], event["open"]
        elif kind in ("hold", "begin", "is"):
            entry = Entry.from_json(event["entry"])
            self.units.pop(entry.source, None)
            if kind == "begin":
                self.begun[entry.source] = entry
            else:
                (self.held if kind == "hold" else self.done).put(entry)
        elif kind == "unit":
            self.units.setdefault(event["source"], {})[event["number"]] = event
        elif kind == "done":
            self.done.put(self.begun.pop(event["source"]))
            self.held.pop(event["source"])
        elif kind == "drop":
            gone = self.done.pop(event["source"])
            if gone is not None:
                self.dropping[gone.source] = gone
        elif kind == "dropped":
            self.dropping.pop(event["source"], None)
        elif kind == "forget":
            self.begun.pop(event["source"], None)
            self.units.pop(event["source"], None)
            self.held.pop(event["source"])
            if event.get("done"):
                self.done.pop(event["source"])
        else:
            raise ColdframeError(f"the journal has an event {kind!r} that this version does not know")

    def events(self) -> Iterator[dict[str, Any]]:
        """What makes the same state out of an empty one."""
        yield {"event": "run", "epoch": self.epoch}
        yield {"event": "fresh", "generation": self.generation, "open": self.fresh}
        for path, table in self.tables.items():
            yield {"event": "table", "path": path, **table}
        for path, files in self.registered.items():
            yield {"event": "lists", "table": path, "files": sorted(files)}
        yield from self.registering.values()
        for name, schema in self.schemas.items():
            yield {"event": "schema", "name": name, "schema": schema}
        for kind, entries in (("is", self.done), ("hold", self.held)):
            for entry in entries.each():
                yield {"event": kind, "entry": entry.to_json()}
        for units in self.units.values():
            yield from units.values()


def read_state(destination: Destination) -> tuple[State, int]:
    """The state and the number of its last segment. Takes no lock, and works beside a run."""
    names = {found.name.rsplit("/", 1)[-1] for found in destination.list(STATE)}
    if "journal.jsonl" in names:
        raise UnsupportedError(
            f"{destination.root}: the state of an early version; migrate into a new directory"
        )
    found = [match for match in map(_SEGMENT.match, names) if match is not None]
    base = max((int(match.group(1)) for match in found if match.group(2)), default=0)
    numbers = sorted(int(match.group(1)) for match in found if not match.group(2))
    state = State()
    files = [f"{base:012d}.base.jsonl"] if base else []
    for expected, number in enumerate((n for n in numbers if n > base), base + 1):
        if number != expected:
            raise ColdframeError(f"{destination.root}/{STATE}: segment {expected} is missing")
        files.append(f"{number:012d}.jsonl")
    for name in files:
        for line, text in enumerate(destination.lines(f"{STATE}/{name}"), 1):
            try:
                state.apply(json.loads(text))
            except (ValueError, KeyError, TypeError) as reason:
                place = f"{destination.root}/{STATE}/{name}, line {line}"
                raise ColdframeError(f"{place}: {type(reason).__name__}: {reason}") from reason
    return state, max([base, *numbers])


class Journal:
    """The state of a target. One run holds it at a time."""

    def __init__(self, target: str | Destination, *, keep_replaced: bool = False) -> None:
        """`keep_replaced`: files that newer ones replace stay, since older versions of a table list them."""
        self.destination = target if isinstance(target, Destination) else Destination(target)
        self.state = State()
        self._keep_replaced = keep_replaced
        self.run = ""
        """What this run is called in commits of Delta and Iceberg."""
        self._number = 0
        self._late: list[dict[str, Any]] = []
        """Events that the next segment may take along: what they say shows in the files as well."""
        self._lock: IO[str] | None = None

    @property
    def staging(self) -> str:
        """Where the tasks of this run write."""
        return self.destination.path(f"{STAGING}/{self.state.epoch:06d}")

    @property
    def done(self) -> Ledger:
        """See `State`."""
        return self.state.done

    @property
    def held(self) -> Ledger:
        """See `State`."""
        return self.state.held

    def __enter__(self) -> Journal:
        root = self.destination.root
        if not self.destination.is_empty() and not self.destination.has(HOME):
            raise UnsupportedError(f"migrating into {root}: it is neither empty nor of an earlier migration")
        self._lock = self.destination.lock(f"{HOME}/lock")
        if self._lock is None:
            raise ColdframeError(f"{root}: another migration is at work here")
        try:
            self._demand_state()
            self.destination.sweep(HOME)
            self._take_over()
            self._recover()
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._append()
        finally:
            if self._lock is not None:
                self._lock.close()

    def keep_schema(self, name: str, schema: str) -> None:
        """Remembers columns, for files that come later."""
        if name not in self.state.schemas:
            self._later({"event": "schema", "name": name, "schema": schema})

    def keep_table(self, path: str, about: dict[str, str]) -> None:
        """Remembers what a table is written as, and of what it is made: see `State.tables`."""
        if self.state.tables.get(path) != about:
            self._later({"event": "table", "path": path, **about})

    def announce(self, table: str, add: Iterable[str], remove: Iterable[str]) -> None:
        """Says which commit is about to be made to a Delta or Iceberg table: it bears this run's name."""
        event = {"event": "register", "table": table, "run": self.run}
        self._append({**event, "add": sorted(add), "remove": sorted(remove)})

    def settle(self, table: str, *, made: bool) -> None:
        """Whether the commit that was announced was made."""
        if table in self.state.registering:
            self._later({"event": "registered", "table": table, "made": made})

    def begin_fresh(self) -> None:
        """From here on, what was done before counts as not done. One that was killed goes on."""
        if not self.state.fresh:
            self._append({"event": "fresh", "generation": self.state.generation + 1, "open": True})

    def end_fresh(self) -> None:
        """Everything was tried once: what could not be done again stays as it was."""
        if self.state.fresh:
            self._append({"event": "fresh", "generation": self.state.generation, "open": False})

    def keep_units(self, units: Iterable[dict[str, Any]]) -> None:
        """Keeps converted parts of large files in staging, over kills too, until the others are converted."""
        self._append(*({"event": "unit", **unit} for unit in units))

    def hold(self, entries: Iterable[Entry]) -> None:
        """Keeps converted files in staging, over kills too, until they are committed."""
        self._append(*({"event": "hold", "entry": entry.to_json()} for entry in entries))

    def forget(self, source: str) -> None:
        """Lets go of what is held of a source, and of no use any more."""
        self._later({"event": "forget", "source": source})

    def commit(self, entries: Sequence[Entry], drops: Sequence[str] = ()) -> None:
        """Gives the parts of source files their final names, and takes out what they replace and what of
        `drops`, sources that are gone, there is.
        """
        before = {source: self.done[source] for source in drops if source in self.done}
        begun = [replace(entry, replaces=self._replaced(entry)) for entry in entries]
        self._append(
            *({"event": "begin", "entry": entry.to_json()} for entry in begun),
            *({"event": "drop", "source": source} for source in before),
        )
        self._finish(begun, before.values())

    def clear_staging(self) -> None:
        """Deletes what this run and those before it have staged, and nobody holds."""
        held = {part.staged for entry in self.held.each() for part in entry.parts}
        held |= {name for units in self.state.units.values() for name, _ in _staged(units)}

        def useless() -> Iterator[str]:
            for found in self.destination.list(STAGING):
                run = found.name.removeprefix(f"{STAGING}/").partition("/")[0]
                if found.name not in held and not (run.isdigit() and int(run) > self.state.epoch):
                    yield found.name

        self._each(self.destination.delete, useless())
        self.destination.prune(STAGING)

    def compact(self) -> None:
        """Writes the journal in short, and deletes what that makes superfluous."""
        names = [found.name for found in self.destination.list(STATE)]
        if len(names) < COMPACT:
            return
        self._append()
        self.destination.write(f"{STATE}/{self._number:012d}.base.jsonl", _each_line(self.state.events()))
        base = f"{STATE}/{self._number:012d}.base.jsonl"
        for name in names:
            found = _SEGMENT.match(name.rsplit("/", 1)[-1])
            # What a newer driver has written is its own. A driver that slept through whole runs would next
            # create the segment with which the first of them began: it must find that taken.
            if found is None or name == base or int(found.group(1)) > self._number:
                continue
            if not self._begins_run(name):
                self.destination.delete(name)

    def end(self) -> None:
        """Says that the run came to its end; a driver that is fenced gets no further than this."""
        self._append({"event": "end", "at": time.time()})

    def write_manifest(self) -> str:
        """One line for each file of the tables; of those that sources share one for each source."""
        lines = (_manifest_line(entry, part) for entry in self.done.each() for part in entry.parts)
        self.destination.write(f"{HOME}/manifest.jsonl", _each_line(lines))
        return self.destination.path(f"{HOME}/manifest.jsonl")

    def is_whole(self, name: str, size: int) -> bool:
        """Whether a file of the target is there, with its size."""
        found = self.destination.stat(name)
        return found is not None and found.size == size

    def _replaced(self, entry: Entry) -> tuple[str, ...]:
        before = self.done.get(entry.source)
        return () if before is None else tuple(part.final for part in before.parts)

    def _begins_run(self, name: str) -> bool:
        if name.endswith(".base.jsonl"):
            return False
        return next(iter(self.destination.lines(name)), b"").startswith(b'{"event": "run"')

    def _later(self, event: dict[str, Any]) -> None:
        self.state.apply(event)
        self._late.append(event)

    def _append(self, *events: dict[str, Any]) -> None:
        """One more segment. Its number is the fence."""
        late, self._late = self._late, []
        if not late and not events:
            return
        name = f"{STATE}/{self._number + 1:012d}.jsonl"
        if not self.destination.create(name, _lines([*late, *events])):
            raise ColdframeError(
                f"{self.destination.root}: another driver has taken this migration over; this one stops"
            )
        self._number += 1
        for event in events:
            self.state.apply(event)

    def _demand_state(self) -> None:
        """Where the state is gone, nobody knows which files of the tables are ours: rows would be doubled."""
        if self.destination.has(STATE):
            return
        names = (found.name for found in self.destination.list())
        table = next((name for name in names if not name.startswith(f"{HOME}/")), None)
        if table is not None:
            raise UnsupportedError(
                f"migrating into {self.destination.root}: {STATE} is gone, which says where the rows of "
                f"{table} and others come from. Bring it back, or migrate into another directory"
            )

    def _take_over(self) -> None:
        for _ in range(10):
            self.state, self._number = read_state(self.destination)
            run = {
                "event": "run",
                "epoch": self.state.epoch + 1,
                "id": uuid.uuid4().hex,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "started": time.time(),
            }
            if self.destination.create(f"{STATE}/{self._number + 1:012d}.jsonl", _lines([run])):
                self._number += 1
                self.state.apply(run)
                self.run = str(run["id"])
                return
        raise ColdframeError(f"{self.destination.root}: another driver goes on writing its journal")

    def _recover(self) -> None:
        whole: list[Entry] = []
        begun = list(self.state.begun.values())
        # Sources may share a file: it is looked for once.
        places = dict.fromkeys(
            (part.staged, part.final, part.bytes) for entry in begun for part in entry.parts
        )
        there = dict(zip(places, self._each(lambda place: self._is_anywhere(*place), places), strict=True))
        for entry in begun:
            if all(there[part.staged, part.final, part.bytes] for part in entry.parts):
                whole.append(entry)
            else:
                self._undo(entry)
        self._finish(whole, list(self.state.dropping.values()))
        staged = StoredFiles(self.destination, STAGING)
        for entry in self.held.each():
            if not all(staged.is_whole(part.staged, part.bytes) for part in entry.parts):
                self.forget(entry.source)
        for source, units in list(self.state.units.items()):
            if not all(staged.is_whole(name, size) for name, size in _staged(units)):
                self.forget(source)
        self._append()
        self.clear_staging()

    def _is_anywhere(self, staged: str, final: str, size: int) -> bool:
        # In this order: a driver that is not quite dead may rename it in between.
        return any(self.is_whole(name, size) for name in (staged, final))

    def _finish(self, entries: Sequence[Entry], dropped: Iterable[Entry]) -> None:
        """Publishes and deletes what a segment has announced. Doing so twice changes nothing."""
        dropped = list(dropped)
        parts = {part.final: part for entry in entries for part in entry.parts}
        self._each(self._publish, parts.values())
        self.destination.settle(parts)
        if not self._keep_replaced:
            replaced = Counter(name for entry in entries for name in entry.replaces if name not in parts)
            old = [name for name, users in replaced.items() if self.done.users(name) <= users]
            # What is dropped does not count as done any more.
            gone = dict.fromkeys(part.final for entry in dropped for part in entry.parts)
            old += [name for name in gone if name not in replaced and not self.done.users(name)]
            self._each(self.destination.delete, old)
            self.destination.settle(old)
        for entry in entries:
            self._later({"event": "done", "source": entry.source})
        for entry in dropped:
            self._later({"event": "dropped", "source": entry.source})

    def _each(self, act: Callable[[T], R], things: Iterable[T]) -> list[R]:
        """Does something with each thing, many side by side. An error comes when the others are done."""
        calls = (functools.partial(act, thing) for thing in things)
        return list(in_threads(calls, self.destination.at_once))

    def _publish(self, part: Part) -> None:
        try:
            self.destination.publish(part.staged, part.final)
        except FileNotFoundError:
            if not self.is_whole(part.final, part.bytes):
                raise
        except FileExistsError as reason:
            raise ColdframeError(
                f"{self.destination.path(part.final)}: a file of others has this name"
            ) from reason

    def _undo(self, entry: Entry) -> None:
        """Takes back what a killed commit had published; where the older version went with it, the source is
        not done any more.
        """
        before = self.done.get(entry.source)
        lost = before is not None and not all(self.is_whole(part.final, part.bytes) for part in before.parts)
        for part in entry.parts:
            self.destination.delete(part.staged)
            self.destination.delete(part.final)
        if lost and before is not None and not self._keep_replaced:
            for part in before.parts:
                self.destination.delete(part.final)
        self._later({"event": "forget", "source": entry.source, "done": lost})


def _staged(units: dict[int, dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """The staged files of the parts of a source, and their lengths."""
    for unit in units.values():
        for file in unit["outcome"]["files"]:
            yield file["staged"], file["bytes"]


def _manifest_line(entry: Entry, part: Part) -> dict[str, Any]:
    """A file as it is now; the place of a source's rows only where others' are beside them."""
    unsaid = {"staged", "final"} if part.of else {"staged", "final", "first", "of"}
    said = {name: value for name, value in vars(part).items() if name not in unsaid}
    return {"table": entry.table, "source": entry.source, "file": part.final, **said}


def _lines(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(_each_line(events))


def _each_line(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        yield (json.dumps(event) + "\n").encode()
