"""Publishes staged files so that a kill at any moment loses and duplicates no row.

    DST/<table>/<key=value>/<file>.parquet          the table
    DST/_coldframe/lock                             held during a run
    DST/_coldframe/staging/000007/                  files that run 7 writes, and those that it held
    DST/_coldframe/state/000000000012.jsonl         the journal: numbered segments
    DST/_coldframe/state/000000000010.base.jsonl    the compacted journal up to segment 10
    DST/_coldframe/manifest.jsonl                   a line for each file of the tables

docs/migration-state.md describes the events. A segment is created under the next number, which only one
driver can do; the first segment of each run has the event `run`. A driver that was believed dead is fenced:
it cannot create the next number, and stops before it changes a table. The first segment of each run is kept
for that.

    unit     a part of a large source file is converted, and waits in staging for the other parts
    hold     a source file is converted, and its parts wait in staging until its whole table can be published
    begin    its parts are about to get their final names; then the files that they replace are deleted
    done     both have happened
    listed   sources are about to be listed as safe to delete
    drop     its source is gone, and its parts are about to be deleted

New files are published before the old ones are deleted, and a file that several sources share is deleted with
the last of these sources. After a kill, a `begin` without `done` is completed if each of its parts exists
completely under its staged or its final name; otherwise it is undone, and the file is converted again.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, TypeVar

from coldframe._coldframe import ColdframeError, UnsupportedError
from coldframe.json_input import parse_json
from coldframe.pipeline.records import Committed, Json, Part
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.sink.live import InCatalog, TableName
from coldframe.pipeline.state import events
from coldframe.pipeline.state.events import Event, KnownTable, Unit
from coldframe.pipeline.state.ledger import Ledger
from coldframe.pipeline.state.scratch import Scratch
from coldframe.pipeline.state.stored_files import StoredFiles

STATE = f"{HOME}/state"
STAGING = f"{HOME}/staging"
COMPACT = 64
"""The number of segments at which the journal is compacted."""
T = TypeVar("T")
R = TypeVar("R")
_SEGMENT = re.compile(r"(\d{12})(\.base)?\.jsonl\Z")


class State:
    """The state that the journal describes. Reading the journal changes nothing."""

    def __init__(self) -> None:
        scratch = Scratch()
        self.done = Ledger(scratch)
        """Finished source files, by their path relative to the source's root."""
        self.held = Ledger(scratch)
        """Source files that are converted, but not published yet."""
        self.schemas: dict[str, str] = {}
        """Serialised columns of source and target files, by a name that is derived from them."""
        self.tables: dict[str, KnownTable] = {}
        """The format and source of each table, by its path."""
        self.registered: dict[str, set[str]] = {}
        """The files that our commits left in Delta and Iceberg tables, by the table's path."""
        self.registering: dict[str, events.Registering] = {}
        """Announced commits whose result is unknown, by the table's path."""
        self.named: dict[str, events.Named] = {}
        """The names of tables in catalogs, by the table's path."""
        self.switched: dict[str, events.Switching] = {}
        """Tables that have, or were about to get, the name of their source table, by path."""
        self.epoch = 0
        """The number of runs."""
        self.ended: float | None = None
        """The end of the last run that was not killed."""
        self.generation = 0
        """How many times `--fresh` was used."""
        self.fresh = False
        """Whether the latest `--fresh` is unfinished."""
        self.units: dict[str, dict[int, Unit]] = {}
        """Converted parts of unfinished sources, by source and number."""
        self.begun: dict[str, Committed] = {}
        """Entries whose publication was begun, by source."""
        self.dropping: dict[str, Committed] = {}
        """Entries whose files were about to be deleted, by source."""

    def name_of(self, name: str, path: str) -> TableName:
        """The names of a table, including its name in its catalog."""
        named = self.named.get(path)
        place = None if named is None else InCatalog(named.catalog, named.namespace, named.table)
        return TableName(name, path, place)

    def begin_fresh(self) -> None:
        """Begins `--fresh`, which converts every source again, or continues an unfinished `--fresh`."""
        if not self.fresh:
            self.generation, self.fresh = self.generation + 1, True

    def apply(self, event: Event) -> None:
        """Applies an event of the journal."""
        match event:
            case events.RunBegun():
                self.epoch = event.epoch
            case events.RunEnded():
                self.ended = event.at
            case events.KnownSchema():
                self.schemas[event.name] = event.schema
            case events.KnownTable():
                self.tables[event.path] = event
            case events.TableFiles():
                self.registered[event.table] = set(event.files)
            case events.Registering():
                self.registering[event.table] = event
            case events.Named():
                self.named[event.path] = event
            case events.Switching():
                self.switched[event.path] = event
            case events.Unswitched():
                self.switched.pop(event.path, None)
            case events.Registered():
                self._settle_registering(event)
            case events.Generation():
                self.generation, self.fresh = event.generation, event.open
            case events.Unit():
                self.units.setdefault(event.source, {})[event.number] = event
            case events.Held():
                self.units.pop(event.entry.source, None)
                self.held.put(event.entry)
            case events.Begun():
                self.units.pop(event.entry.source, None)
                self.begun[event.entry.source] = event.entry
            case events.Compacted():
                self.units.pop(event.entry.source, None)
                self.done.put(event.entry)
            case events.Done():
                self.done.put(event.applied(self.begun.pop(event.source)))
                self.held.pop(event.source)
            case events.Listed():
                for source in event.sources:
                    entry = self.done.look_up(source)
                    if entry is not None:
                        self.done.put(replace(entry, listed=True))
            case events.Dropping():
                gone = self.done.pop(event.source)
                if gone is not None:
                    self.dropping[gone.source] = gone
            case events.Dropped():
                self.dropping.pop(event.source, None)
            case events.Forgotten():
                self._forget(event)

    def _settle_registering(self, event: events.Registered) -> None:
        about = self.registering.pop(event.table)
        if event.made:
            files = self.registered.setdefault(event.table, set())
            files.difference_update(about.remove)
            files.update(about.add)

    def _forget(self, event: events.Forgotten) -> None:
        self.begun.pop(event.source, None)
        self.units.pop(event.source, None)
        self.held.pop(event.source)
        if event.done:
            self.done.pop(event.source)

    def events(self) -> Iterator[Event]:
        """The events that turn an empty state into this state."""
        yield events.RunBegun(self.epoch)
        yield events.Generation(self.generation, self.fresh)
        yield from self.tables.values()
        for path, files in self.registered.items():
            yield events.TableFiles(path, tuple(sorted(files)))
        yield from self.registering.values()
        yield from self.named.values()
        yield from self.switched.values()
        for name, schema in self.schemas.items():
            yield events.KnownSchema(name, schema)
        for entry in self.done.each():
            yield events.Compacted(entry)
        for entry in self.held.each():
            yield events.Held(entry)
        for units in self.units.values():
            yield from units.values()


def read_state(destination: Destination) -> tuple[State, int]:
    """The state and the number of its last segment. Takes no lock, and works beside a run."""
    names = {matches.name.rsplit("/", 1)[-1] for matches in destination.list(STATE)}
    matches = [match for match in map(_SEGMENT.match, names) if match is not None]
    base = max((int(match.group(1)) for match in matches if match.group(2)), default=0)
    numbers = sorted(int(match.group(1)) for match in matches if not match.group(2))
    state = State()
    files = [f"{base:012d}.base.jsonl"] if base else []
    for expected, number in enumerate((n for n in numbers if n > base), base + 1):
        if number != expected:
            raise ColdframeError(f"{destination.root}/{STATE}: segment {expected} is missing")
        files.append(f"{number:012d}.jsonl")
    for name in files:
        for line, text in enumerate(destination.lines(f"{STATE}/{name}"), 1):
            try:
                state.apply(events.from_json(parse_json(text)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
                place = f"{destination.root}/{STATE}/{name}, line {line}"
                raise ColdframeError(f"{place}: {type(reason).__name__}: {reason}") from reason
    return state, max([base, *numbers])


class Journal:
    """The state of a target. Only one run holds the lock at a time."""

    def __init__(self, target: str | Destination, *, keep_replaced: bool = False) -> None:
        """`keep_replaced`: do not delete replaced files, since older versions of a table list them."""
        self.destination = target if isinstance(target, Destination) else Destination(target)
        self.state = State()
        self._keep_replaced = keep_replaced
        self.run = ""
        """The name of this run in commits of Delta and Iceberg."""
        self._number = 0
        self._late: list[Event] = []
        """Events that can wait for the next segment, since the files reveal them, too."""
        self._lock: IO[str] | None = None

    @property
    def staging(self) -> str:
        """The directory in which the tasks of this run write."""
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
        self.destination.expect_no_links([STATE, STAGING, f"{HOME}/quarantine", f"{HOME}/report"])
        if not self.destination.is_empty() and not self.destination.has(HOME):
            raise UnsupportedError(
                f"migrating into {root}: it is neither empty nor the target of an earlier migration"
            )
        self._lock = self.destination.lock(f"{HOME}/lock")
        if self._lock is None:
            raise ColdframeError(f"{root}: another migration is at work here")
        try:
            self._check_state()
            self.destination.sweep(HOME)
            self._take_over()
            self.destination.expect_no_links([f"{STAGING}/{self.state.epoch:06d}"])
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
        """Records columns, for later runs."""
        if name not in self.state.schemas:
            self._later(events.KnownSchema(name, schema))

    def keep_table(self, table: KnownTable) -> None:
        """Records the format and the source of a table."""
        if self.state.tables.get(table.path) != table:
            self._later(table)

    def keep_name(self, path: str, place: InCatalog) -> None:
        """Records the name of a table in a catalog, before it is created there."""
        named = events.Named(path, place.catalog, place.namespace, place.table)
        if self.state.named.get(path) != named:
            self._append(named)

    def begin_switch(self, switching: events.Switching) -> None:
        """Records which tables are about to change their names."""
        self._append(switching)

    def end_unswitch(self, path: str) -> None:
        """Records that both tables have their own names again."""
        self._append(events.Unswitched(path))

    def announce(self, table: str, add: Iterable[str], remove: Iterable[str]) -> None:
        """Records the commit that is about to be made to a Delta or Iceberg table.

        The commit has this run's name.
        """
        self._append(events.Registering(table, self.run, tuple(sorted(add)), tuple(sorted(remove))))

    def settle(self, table: str, *, made: bool) -> None:
        """Records whether the announced commit was made."""
        if table in self.state.registering:
            self._later(events.Registered(table, made))

    def begin_fresh(self) -> None:
        """Records that every source must be converted again. Continues an unfinished `--fresh`."""
        if not self.state.fresh:
            self._append(events.Generation(self.state.generation + 1, open=True))

    def end_fresh(self) -> None:
        """Ends `--fresh` after every file was tried: files that failed keep their earlier results."""
        if self.state.fresh:
            self._append(events.Generation(self.state.generation, open=False))

    def keep_units(self, units: Iterable[Unit]) -> None:
        """Keeps converted parts of large files in staging, even after a kill, until all parts are
        converted.
        """
        self._append(*units)

    def hold(self, entries: Iterable[Committed]) -> None:
        """Keeps converted files in staging, even after a kill, until they are committed."""
        self._append(*map(events.Held, entries))

    def forget(self, source: str) -> None:
        """Records that the held results of a source are no longer needed."""
        self._later(events.Forgotten(source))

    def commit(self, entries: Sequence[Committed], drops: Sequence[str] = ()) -> None:
        """Gives the parts of source files their final names. Deletes the files that they replace, and the
        files of `drops`, which are vanished sources.
        """
        before = {source: self.done[source] for source in drops if source in self.done}
        begun = [replace(entry, replaces=self._replaced(entry)) for entry in entries]
        self._append(*map(events.Begun, begun), *map(events.Dropping, before))
        self._finish(begun, before.values())

    def list_as_safe(self, sources: Iterable[str]) -> None:
        """Records that these sources are about to be listed as safe to delete."""
        new: list[str] = []
        for source in sources:
            entry = self.done.look_up(source)
            if entry is not None and not entry.listed:
                new.append(source)
        if new:
            self._append(events.Listed(tuple(new)))

    def clear_staging(self) -> None:
        """Deletes files that this run and earlier ones have staged and that are not held."""
        held = {part.staged for entry in self.held.each() for part in entry.parts}
        held |= {name for units in self.state.units.values() for name, _ in _staged(units)}

        def useless() -> Iterator[str]:
            for file in self.destination.list(STAGING):
                run = file.name.removeprefix(f"{STAGING}/").partition("/")[0]
                if file.name not in held and not (run.isdigit() and int(run) > self.state.epoch):
                    yield file.name

        self._each(self.destination.delete, useless())
        self.destination.prune(STAGING)

    def compact(self) -> None:
        """Writes a compacted journal, and deletes the segments that it replaces."""
        names = [match.name for match in self.destination.list(STATE)]
        if len(names) < COMPACT:
            return
        self._append()
        self.destination.write(f"{STATE}/{self._number:012d}.base.jsonl", _lines_of(self.state.events()))
        base = f"{STATE}/{self._number:012d}.base.jsonl"
        for name in names:
            match = _SEGMENT.match(name.rsplit("/", 1)[-1])
            # Keep the segments of a newer driver, and the first segment of each run: an old driver that wakes
            # up after whole runs tries to create the first of these segments, and must fail.
            if match is None or name == base or int(match.group(1)) > self._number:
                continue
            if not self._begins_run(name):
                self.destination.delete(name)

    def end(self) -> None:
        """Records the end of the run; a fenced driver fails here at the latest."""
        self._append(events.RunEnded(time.time()))

    def write_manifest(self) -> str:
        """Writes a line for each file of the tables; for shared files, a line for each source."""
        lines = (_manifest_line(entry, part) for entry in self.done.each() for part in entry.parts)
        self.destination.write(f"{HOME}/manifest.jsonl", _each_line(lines))
        return self.destination.path(f"{HOME}/manifest.jsonl")

    def is_whole(self, name: str, size: int) -> bool:
        """Whether a target file exists with its size."""
        file = self.destination.stat(name)
        return file is not None and file.size == size

    def _replaced(self, entry: Committed) -> tuple[str, ...]:
        before = self.done.get(entry.source)
        return () if before is None else tuple(part.final for part in before.parts)

    def _begins_run(self, name: str) -> bool:
        if name.endswith(".base.jsonl"):
            return False
        return next(iter(self.destination.lines(name)), b"").startswith(b'{"event": "run"')

    def _later(self, event: Event) -> None:
        self.state.apply(event)
        self._late.append(event)

    def _append(self, *new: Event) -> None:
        """Writes another segment. Only one driver can create a segment with this number."""
        late, self._late = self._late, []
        if not late and not new:
            return
        name = f"{STATE}/{self._number + 1:012d}.jsonl"
        if not self.destination.create(name, b"".join(_lines_of([*late, *new]))):
            raise ColdframeError(
                f"{self.destination.root}: another driver has taken this migration over; this one stops"
            )
        self._number += 1
        for event in new:
            self.state.apply(event)

    def _check_state(self) -> None:
        """Raises if the state is gone: the migration's files would be unknown, and rows duplicated."""
        if self.destination.has(STATE):
            return
        names = (file.name for file in self.destination.list())
        table = next((name for name in names if not name.startswith(f"{HOME}/")), None)
        if table is not None:
            raise UnsupportedError(
                f"migrating into {self.destination.root}: {STATE}, which records the sources of {table} and "
                "other files, is gone. Restore it, or migrate into another directory"
            )

    def _take_over(self) -> None:
        for _ in range(10):
            self.state, self._number = read_state(self.destination)
            name = uuid.uuid4().hex
            epoch = self.state.epoch + 1
            run = events.RunBegun(epoch, name, socket.gethostname(), os.getpid(), time.time())
            if self.destination.create(f"{STATE}/{self._number + 1:012d}.jsonl", b"".join(_lines_of([run]))):
                self._number += 1
                self.state.apply(run)
                self.run = name
                return
        raise ColdframeError(f"{self.destination.root}: another driver keeps writing the journal")

    def _recover(self) -> None:
        whole: list[Committed] = []
        begun = list(self.state.begun.values())
        # Sources may share a file, which is looked up once.
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
        # Looks up the staged name first, since a driver that is still alive may rename the file in between.
        return any(self.is_whole(name, size) for name in (staged, final))

    def _finish(self, entries: Sequence[Committed], dropped: Iterable[Committed]) -> None:
        """Publishes and deletes the files that a segment has announced. Repeating the call changes
        nothing.
        """
        dropped = list(dropped)
        parts = {part.final: part for entry in entries for part in entry.parts}
        self._each(self._publish, parts.values())
        self.destination.settle(parts)
        marks = dict(zip(parts, self._each(self._mark, parts), strict=True))
        if not self._keep_replaced:
            replaced = Counter(name for entry in entries for name in entry.replaces if name not in parts)
            old = [name for name, users in replaced.items() if self.done.users(name) <= users]
            # A dropped source is no longer finished.
            gone = dict.fromkeys(part.final for entry in dropped for part in entry.parts)
            old += [name for name in gone if name not in replaced and not self.done.users(name)]
            self._each(self.destination.delete, old)
            self.destination.settle(old)
        for entry in entries:
            own = {part.final: mark for part in entry.parts if (mark := marks[part.final])}
            self._later(events.Done(entry.source, own or None))
        for entry in dropped:
            self._later(events.Dropped(entry.source))

    def _each(self, act: Callable[[T], R], things: Iterable[T]) -> list[R]:
        """Calls `act` for each item, many at once. Raises an error when the other calls are done."""
        calls = (functools.partial(act, thing) for thing in things)
        return list(in_threads(calls, self.destination.at_once))

    def _mark(self, name: str) -> str:
        """What tells a published file from others: see `StoredFile.mark`."""
        file = self.destination.stat(name)
        return "" if file is None else file.mark

    def _publish(self, part: Part) -> None:
        try:
            self.destination.publish(part.staged, part.final)
        except FileNotFoundError:
            if not self.is_whole(part.final, part.bytes):
                raise
        except FileExistsError as reason:
            raise ColdframeError(
                f"{self.destination.path(part.final)}: another file has this name"
            ) from reason

    def _undo(self, entry: Committed) -> None:
        """Undoes the publication of a killed commit. If the earlier result is also lost, the source is no
        longer finished.
        """
        before = self.done.get(entry.source)
        lost = before is not None and not all(self.is_whole(part.final, part.bytes) for part in before.parts)
        for part in entry.parts:
            self.destination.delete(part.staged)
            self.destination.delete(part.final)
        if lost and before is not None and not self._keep_replaced:
            for part in before.parts:
                self.destination.delete(part.final)
        self._later(events.Forgotten(entry.source, done=lost))


def _staged(units: Mapping[int, Unit]) -> Iterator[tuple[str, int]]:
    """The staged files of the parts of a source, and their lengths."""
    for unit in units.values():
        for file in unit.outcome.files:
            yield file.staged, file.bytes


def _manifest_line(entry: Committed, part: Part) -> Json:
    """A line of the manifest; has the range of a source's rows only for shared files."""
    omitted = {"staged", "final", "stored", *(() if part.of else ("first", "of"))}
    record = {name: value for name, value in vars(part).items() if name not in omitted}
    return {"table": entry.table, "source": entry.source, "file": part.final, **record}


def _lines_of(some: Iterable[Event]) -> Iterator[bytes]:
    return _each_line(map(events.to_json, some))


def _each_line(lines: Iterable[Json]) -> Iterator[bytes]:
    for line in lines:
        yield (json.dumps(line) + "\n").encode()
