"""What the journal says: the state of a target, and how it is read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from coldframe._coldframe import ColdframeError
from coldframe.json_input import parse_json
from coldframe.pipeline.records import Committed
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.sink.live import InCatalog, TableName
from coldframe.pipeline.state import events
from coldframe.pipeline.state.chain import WAY_OUT, Chain, read_head
from coldframe.pipeline.state.events import Event, KnownTable, Unit
from coldframe.pipeline.state.ledger import Ledger
from coldframe.pipeline.state.scratch import Scratch

STATE = f"{HOME}/state"
SEGMENT = re.compile(r"(\d{12})(\.base)?\.jsonl\Z")


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
        self.deleting: dict[str, events.Deleting] = {}
        """Sources whose deletion was announced, and is not known to be complete."""
        self.target: str | None = None
        """The target's name: see `RunBegun`."""
        self.ended_epoch = 0
        """The number of the last run that was not killed."""
        self.chain = Chain()

    def name_of(self, name: str, path: str) -> TableName:
        """The names of a table, including its name in the catalog."""
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
                self.target = event.target or self.target
                self.chain.lost = event.lost or self.chain.lost
            case events.RunEnded():
                self.ended, self.ended_epoch, self.chain.lost = event.at, self.epoch, ""
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
                    self.done.mark_listed(source, (event.traces or {}).get(source, ()))
            case events.Deleting():
                self.deleting[event.source] = event
                self.done.mark_listed(event.source, ())
            case events.Deleted():
                self._delete(event)
            case events.Restored():
                entry = self.done.pop(event.source)
                if entry is not None:
                    self.done.put(replace(entry, source=entry.name, receipt=None))
            case events.Dropping():
                gone = self.done.pop(event.source)
                if gone is not None:
                    self.dropping[gone.source] = gone
            case events.Dropped():
                self.dropping.pop(event.source, None)
            case events.Forgotten():
                self._forget(event)

    def _delete(self, event: events.Deleted) -> None:
        about = self.deleting.pop(event.source, None)
        if event.fate == events.KEPT:
            return
        entry = self.done.pop(event.source)
        self.held.pop(event.source)
        self.units.pop(event.source, None)
        if about is not None and entry is not None:
            self.done.put(event.applied(entry, about.receipt))

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
        yield events.RunBegun(self.epoch, target=self.target)
        if self.ended is not None:
            yield events.RunEnded(self.ended)
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
        yield from self.deleting.values()
        for entry in self.held.each():
            yield events.Held(entry)
        for units in self.units.values():
            yield from units.values()


def read_state(destination: Destination) -> tuple[State, int]:
    """The state and the number of its last segment. Takes no lock, and works beside a run."""
    names = {matches.name.rsplit("/", 1)[-1] for matches in destination.list(STATE)}
    matches = [match for match in map(SEGMENT.match, names) if match is not None]
    base = max((int(match.group(1)) for match in matches if match.group(2)), default=0)
    numbers = sorted(int(match.group(1)) for match in matches if not match.group(2))
    state = State()
    head = state.chain.head = read_head(destination)
    files = [(base, f"{base:012d}.base.jsonl")] if base else []
    for expected, number in enumerate((n for n in numbers if n > base), base + 1):
        if number != expected:
            raise ColdframeError(f"{destination.root}/{STATE}: segment {expected} is missing; {WAY_OUT}")
        files.append((number, f"{number:012d}.jsonl"))
    for number, name in files:
        place, digest = f"{destination.root}/{STATE}/{name}", hashlib.sha256()
        for line, text in enumerate(destination.lines(f"{STATE}/{name}"), 1):
            try:
                record = parse_json(text)
                if line == 1:
                    state.chain.follow(record, place)
                state.apply(events.from_json(record))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
                raise ColdframeError(f"{place}, line {line}: {type(reason).__name__}: {reason}") from reason
            digest.update(text + b"\n")
        if not name.endswith(".base.jsonl"):
            state.chain.digest = digest.hexdigest()
        if head is not None and number == head.number and state.chain.digest != head.digest:
            state.chain.lost = f"segment {number} is not the one that run {head.epoch} wrote"
    last = max([base, *numbers])
    state.chain.compare(last, state.target)
    return state, last
