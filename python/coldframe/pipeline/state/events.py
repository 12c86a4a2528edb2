"""The events of the journal and their JSON form: docs/migration-state.md explains each event.

Keys whose value is None are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.records import Committed, Json, Outcome, Receipt, Record
from coldframe.pipeline.sink.destination import HOME

STAGING = f"{HOME}/staging"
KEPT = "kept"


@dataclass(frozen=True)
class Event(Record):
    """What a line of the journal says."""

    kind: ClassVar[str]
    """The name of the event in the journal."""

    def to_json(self) -> Json:
        """The line of the journal."""
        record = super().to_json()
        return {"event": self.kind, **{name: record[name] for name in record if record[name] is not None}}


@dataclass(frozen=True)
class RunBegun(Event):
    """A run began."""

    kind: ClassVar = "run"
    epoch: int
    """The number of runs, including this one."""
    id: str | None = None
    """None, like the fields below, in a compacted journal."""
    host: str | None = None
    pid: int | None = None
    started: float | None = None
    target: str | None = None
    """The name of the target, which its first run made up. None in older journals."""
    lost: str | None = None
    """Why segments before this one are missing."""


@dataclass(frozen=True)
class RunEnded(Event):
    """A run ended."""

    kind: ClassVar = "end"
    at: float


@dataclass(frozen=True)
class KnownSchema(Event):
    """Serialised columns, under a name that is derived from them."""

    kind: ClassVar = "schema"
    name: str
    schema: str


@dataclass(frozen=True)
class KnownTable(Event):
    """How a table is written, and the directory and format of its source."""

    kind: ClassVar = "table"
    path: str
    name: str
    to: str
    unit: str
    """The unit of the table's timestamps."""
    place: str
    format: str


@dataclass(frozen=True)
class TableFiles(Event):
    """The files that commits of the migration left in a Delta or Iceberg table."""

    kind: ClassVar = "lists"
    table: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Registering(Event):
    """A commit to a Delta or Iceberg table is about to be made. The commit has the name of the run."""

    kind: ClassVar = "register"
    table: str
    run: str
    add: tuple[str, ...]
    remove: tuple[str, ...]


@dataclass(frozen=True)
class Registered(Event):
    """Whether the announced commit was made."""

    kind: ClassVar = "registered"
    table: str
    made: bool


@dataclass(frozen=True)
class Named(Event):
    """A table's name in a named catalog, where it is about to be created."""

    kind: ClassVar = "catalog"
    path: str
    catalog: str
    namespace: str
    table: str


@dataclass(frozen=True)
class Switching(Event):
    """In a metastore, a table is about to take over the name of its source table."""

    kind: ClassVar = "switch"
    path: str
    catalog: str
    database: str
    table: str
    """The old table's name before the switch, and the new table's name since."""
    kept: str
    """The old table's name since the switch."""
    new: str
    """The new table's name before the switch."""


@dataclass(frozen=True)
class Unswitched(Event):
    """Both tables have their own names again."""

    kind: ClassVar = "unswitched"
    path: str


@dataclass(frozen=True)
class Generation(Event):
    """The latest `--fresh`. While it is open, results of older generations are converted again."""

    kind: ClassVar = "fresh"
    generation: int
    open: bool


@dataclass(frozen=True)
class Unit(Event):
    """A part of a large source is converted, and waits in staging for the other parts."""

    kind: ClassVar = "unit"
    source: str
    key: str
    identity: str
    number: int
    part: tuple[int, int, int, int | None]
    """See `PlannedSplit`. Excludes the bytes that a split carries: the source's identity covers them."""
    written: str
    """The id of the columns as the target has them: see `schema_id`."""
    generation: int
    outcome: Outcome

    def matches(self, other: Unit) -> bool:
        """Whether everything except the outcome is equal."""
        return replace(self, outcome=other.outcome) == other


@dataclass(frozen=True)
class Held(Event):
    """A source is converted; its parts wait in staging until its whole table can be published."""

    kind: ClassVar = "hold"
    entry: Committed


@dataclass(frozen=True)
class Begun(Event):
    """A source's parts are about to get their final names; then the files that they replace are deleted."""

    kind: ClassVar = "begin"
    entry: Committed


@dataclass(frozen=True)
class Done(Event):
    """The publication that `Begun` announced is complete."""

    kind: ClassVar = "done"
    source: str
    stored: Mapping[str, str] | None = None
    """The marks of the published files, by name: see `StoredFile.mark`."""

    def applied(self, entry: Committed) -> Committed:
        """The announced entry, with the marks of its files."""
        marks = self.stored or {}
        parts = (replace(part, stored=marks.get(part.final, "")) for part in entry.parts)
        return replace(entry, parts=tuple(parts)) if marks else entry


@dataclass(frozen=True)
class Listed(Event):
    """Sources are about to be listed as safe to delete: if they are gone later, their rows stay."""

    kind: ClassVar = "listed"
    sources: tuple[str, ...]
    traces: Mapping[str, Sequence[str]] | None = None
    """Of directories, by source: see `identity`."""


@dataclass(frozen=True)
class Deleting(Event):
    """A source is about to be deleted, as its list says. From now on the source's rows in the target are
    protected.
    """

    kind: ClassVar = "delete"
    source: str
    receipt: Receipt
    files: int | None = None
    """Of a directory: how many files it has, and when the newest was written: see `Remainder`."""
    newest: int | None = None


@dataclass(frozen=True)
class Deleted(Event):
    """A source is deleted: its entry keeps the rows under another name, with the receipt."""

    kind: ClassVar = "deleted"
    source: str
    fate: str
    """See `Receipt`; or `KEPT`: it has changed, and was not deleted."""
    to: str | None = None

    def applied(self, entry: Committed, receipt: Receipt) -> Committed:
        """The entry with its receipt."""
        source = f"{deleted_name(entry.source)}{entry.key[:8]}-{int(receipt.at * 1000):x})"
        receipt = replace(receipt, fate=self.fate, to=self.to or receipt.to)
        return replace(entry, source=source, receipt=receipt, listed=True)


@dataclass(frozen=True)
class Restored(Event):
    """A deleted source is there again, with the same content. `source` is the name of its entry."""

    kind: ClassVar = "restored"
    source: str


@dataclass(frozen=True)
class Compacted(Event):
    """Replaces a `Begun` and `Done` pair after compaction."""

    kind: ClassVar = "is"
    entry: Committed


@dataclass(frozen=True)
class Dropping(Event):
    """A source is gone: its parts are about to be deleted."""

    kind: ClassVar = "drop"
    source: str


@dataclass(frozen=True)
class Dropped(Event):
    """The parts of a dropped source are deleted."""

    kind: ClassVar = "dropped"
    source: str


@dataclass(frozen=True)
class Forgotten(Event):
    """The held, begun or partial results of a source are discarded."""

    kind: ClassVar = "forget"
    source: str
    done: bool | None = None
    """Whether the source's earlier result is lost, too."""


def deleted_name(source: str) -> str:
    """The beginning of the names of entries whose source had this name and was deleted."""
    return f"{source} (deleted "


def from_json(json: Mapping[str, Any]) -> Event:
    """The event of a line."""
    made = _KINDS.get(json["event"])
    if made is None:
        raise ColdframeError(f"the journal has an event {json['event']!r} that this version does not know")
    event = made.from_json({name: json[name] for name in json if name in made.__dataclass_fields__})
    if isinstance(event, Held | Begun | Compacted):
        _check_entry(event.entry)
    elif isinstance(event, Unit):
        for file in event.outcome.files:
            inside_target(file.staged, STAGING)
    return event


_KINDS = {made.kind: made for made in Event.__subclasses__()}


def _check_entry(entry: Committed) -> None:
    """Checks that an entry has all its files in the target: a forged journal must not reach other files."""
    inside_target(entry.table)
    for part in entry.parts:
        inside_target(part.final)
        if part.staged:
            inside_target(part.staged, STAGING)
    for name in entry.replaces:
        inside_target(name)


def inside_target(name: str, folder: str = "") -> None:
    """Raises unless a path of the journal leads to a table of the target, or into `folder`."""
    names = name.split("/")
    if any(part in ("", ".", "..") for part in names) or "\0" in name:
        raise ValueError(f"expected a path below the target, found {name!r}")
    if not name.startswith(f"{folder}/") if folder else names[0] == HOME:
        raise ValueError(f"expected a path below {folder or 'a table'}, found {name!r}")
