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
    delete   a source is about to be deleted, by `coldframe delete`
    deleted  it is: its rows stay, whatever lies under its name later
    drop     its source is gone, and its parts are about to be deleted

The segments are a chain: the first line of each segment has the digest of the previous segment (`chain`).

New files are published before the old ones are deleted, and a file that several sources share is deleted with
the last of these sources. After a kill, a `begin` without `done` is completed if each of its parts exists
completely under its staged or its final name; otherwise it is undone, and the file is converted again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, TypeVar

from coldframe._coldframe import ColdframeError, UnsupportedError
from coldframe.pipeline.records import Committed, Json, Part
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.sink.live import InCatalog
from coldframe.pipeline.state import events
from coldframe.pipeline.state.chain import Fenced, Head, chained, write_head
from coldframe.pipeline.state.events import STAGING, Event, KnownTable, Unit
from coldframe.pipeline.state.ledger import Ledger
from coldframe.pipeline.state.state import SEGMENT, STATE, State, read_state
from coldframe.pipeline.state.stored_files import StoredFiles

__all__ = ["STAGING", "STATE", "Journal", "State", "read_state"]

ADOPTED = f"{HOME}/adopted"
"""What is known of adopted files, in the target of an adoption: see `adopt.ledger`."""
COMPACT = 64
"""The number of segments at which the journal is compacted."""
T = TypeVar("T")
R = TypeVar("R")


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
            raise Fenced(f"{root}: another migration is at work here")
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

    def list_as_safe(
        self, sources: Iterable[str], traces_of: Callable[[str], Sequence[str]] = lambda source: ()
    ) -> None:
        """Records that these sources are about to be listed as safe to delete, with traces of directories."""
        new: list[str] = []
        for source in sources:
            entry = self.done.look_up(source)
            if entry is not None and not entry.listed:
                new.append(source)
        if new:
            traces = {source: some for source in new if (some := traces_of(source))}
            self._append(events.Listed(tuple(new), traces or None))

    def begin_deleting(self, some: Iterable[events.Deleting]) -> None:
        """Records that these sources are about to be deleted."""
        self._append(*some)

    def end_deleting(self, source: str, fate: str, to: str | None = None) -> None:
        """Records what became of a source that was to be deleted."""
        self._later(events.Deleted(source, fate, to))

    def restore(self, entry: Committed) -> None:
        """Records that a deleted source is there again, with the same content."""
        self._later(events.Restored(entry.source))

    def adopt(self, table: str, entries: Sequence[Committed], files: Iterable[str] | None) -> None:
        """Enters files of the table that a lost part of the journal had. `files`: of a Delta or Iceberg
        table, those that the migration's commits left in it.
        """
        lists = [] if files is None else [events.TableFiles(table, tuple(sorted(files)))]
        new: list[Event] = [*map(events.Compacted, entries), *lists]
        if self._lock is not None:
            self._append(*new)
        for event in () if self._lock is not None else new:
            # A preview writes nothing.
            self.state.apply(event)

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
        # The base has the digest of the segment that it replaces.
        lines = chained(_records(self.state.events()), self.state.chain.digest)
        self.destination.write(f"{STATE}/{self._number:012d}.base.jsonl", _each_line(lines))
        base = f"{STATE}/{self._number:012d}.base.jsonl"
        for name in names:
            match = SEGMENT.match(name.rsplit("/", 1)[-1])
            # Keep the segments of a newer driver, and the first segment of each run: an old driver that wakes
            # up after whole runs tries to create the first of these segments, and must fail.
            if match is None or name == base or int(match.group(1)) > self._number:
                continue
            if not self._begins_run(name):
                self.destination.delete(name)

    def end(self) -> None:
        """Records the end of the run; a fenced driver fails here at the latest."""
        self._append(events.RunEnded(time.time()))
        self._write_head()

    def _write_head(self) -> None:
        chain, state = self.state.chain, self.state
        write_head(self.destination, Head(state.target or "", state.epoch, self._number, chain.digest or ""))

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
        if not self._create([*late, *new]):
            raise Fenced(
                f"{self.destination.root}: another driver has taken this migration over; this one stops"
            )
        for event in new:
            self.state.apply(event)

    def _create(self, new: Iterable[Event]) -> bool:
        """Creates the next segment. Returns False if another driver has created it."""
        content = b"".join(_each_line(chained(_records(new), self.state.chain.digest)))
        if not self.destination.create(f"{STATE}/{self._number + 1:012d}.jsonl", content):
            return False
        self._number += 1
        self.state.chain.digest = hashlib.sha256(content).hexdigest()
        return True

    def _check_state(self) -> None:
        """Raises if the state is gone: the migration's files would be unknown, and rows duplicated."""
        if self.destination.has(STATE):
            return
        names = (file.name for file in self.destination.list())
        table = next((name for name in names if not name.startswith(f"{HOME}/")), None)
        if table is not None:
            if self.destination.has(ADOPTED):
                raise UnsupportedError(
                    f"migrating into {self.destination.root}: it is the target of an adoption. Choose "
                    "another directory"
                )
            raise UnsupportedError(
                f"migrating into {self.destination.root}: {STATE}, which records the sources of {table} and "
                "other files, is gone. Restore it, or migrate into another directory"
            )

    def _take_over(self) -> None:
        for _ in range(10):
            self.state, self._number = read_state(self.destination)
            self.state.chain.check_target(f"{self.destination.root}/{STATE}")
            name, target = uuid.uuid4().hex, self.state.target or uuid.uuid4().hex
            epoch = self.state.chain.next_epoch(self.state.epoch)
            host, lost = socket.gethostname(), self.state.chain.lost or None
            run = events.RunBegun(epoch, name, host, os.getpid(), time.time(), target, lost)
            if self._create([run]):
                self.state.apply(run)
                self.run = name
                if self.state.chain.lost:
                    # The lost segments may have listed any source.
                    self.list_as_safe(list(self.done))
                self._write_head()
                return
        raise Fenced(f"{self.destination.root}: another driver keeps writing the journal")

    def _recover(self) -> None:
        whole: list[Committed] = []
        begun = list(self.state.begun.values())
        parts = (part for entry in (*begun, *self.state.dropping.values()) for part in entry.parts)
        self.destination.expect_no_links({part.final.rpartition("/")[0] for part in parts})
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
        """Distinguishes a published file from others: see `StoredFile.mark`."""
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


def _records(some: Iterable[Event]) -> Iterator[Json]:
    return (event.to_json() for event in some)


def _each_line(lines: Iterable[Json]) -> Iterator[bytes]:
    for line in lines:
        yield (json.dumps(line) + "\n").encode()
