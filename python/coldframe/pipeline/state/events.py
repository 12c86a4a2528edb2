"""The events of the journal and their JSON form: docs/migration-state.md explains each event.

Keys whose value is None are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, TypeAlias, get_args

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.records import Committed, Json, Outcome, Receipt
from coldframe.pipeline.sink.destination import HOME

STAGING = f"{HOME}/staging"
KEPT = "kept"


@dataclass(frozen=True)
class RunBegun:
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
class RunEnded:
    """A run ended."""

    kind: ClassVar = "end"
    at: float


@dataclass(frozen=True)
class KnownSchema:
    """Serialised columns, under a name that is derived from them."""

    kind: ClassVar = "schema"
    name: str
    schema: str


@dataclass(frozen=True)
class KnownTable:
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
class TableFiles:
    """The files that commits of the migration left in a Delta or Iceberg table."""

    kind: ClassVar = "lists"
    table: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Registering:
    """A commit to a Delta or Iceberg table is about to be made. The commit has the name of the run."""

    kind: ClassVar = "register"
    table: str
    run: str
    add: tuple[str, ...]
    remove: tuple[str, ...]


@dataclass(frozen=True)
class Registered:
    """Whether the announced commit was made."""

    kind: ClassVar = "registered"
    table: str
    made: bool


@dataclass(frozen=True)
class Named:
    """A table's name in a named catalog, where it is about to be created."""

    kind: ClassVar = "catalog"
    path: str
    catalog: str
    namespace: str
    table: str


@dataclass(frozen=True)
class Switching:
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
class Unswitched:
    """Both tables have their own names again."""

    kind: ClassVar = "unswitched"
    path: str


@dataclass(frozen=True)
class Generation:
    """The latest `--fresh`. While it is open, results of older generations are converted again."""

    kind: ClassVar = "fresh"
    generation: int
    open: bool


@dataclass(frozen=True)
class Unit:
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
class Held:
    """A source is converted; its parts wait in staging until its whole table can be published."""

    kind: ClassVar = "hold"
    entry: Committed


@dataclass(frozen=True)
class Begun:
    """A source's parts are about to get their final names; then the files that they replace are deleted."""

    kind: ClassVar = "begin"
    entry: Committed


@dataclass(frozen=True)
class Done:
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
class Listed:
    """Sources are about to be listed as safe to delete: if they are gone later, their rows stay."""

    kind: ClassVar = "listed"
    sources: tuple[str, ...]
    traces: Mapping[str, Sequence[str]] | None = None
    """Of directories, by source: see `identity`."""


@dataclass(frozen=True)
class Deleting:
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
class Deleted:
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
class Restored:
    """A deleted source is there again, with the same content. `source` is the name of its entry."""

    kind: ClassVar = "restored"
    source: str


@dataclass(frozen=True)
class Compacted:
    """Replaces a `Begun` and `Done` pair after compaction."""

    kind: ClassVar = "is"
    entry: Committed


@dataclass(frozen=True)
class Dropping:
    """A source is gone: its parts are about to be deleted."""

    kind: ClassVar = "drop"
    source: str


@dataclass(frozen=True)
class Dropped:
    """The parts of a dropped source are deleted."""

    kind: ClassVar = "dropped"
    source: str


@dataclass(frozen=True)
class Forgotten:
    """The held, begun or partial results of a source are discarded."""

    kind: ClassVar = "forget"
    source: str
    done: bool | None = None
    """Whether the source's earlier result is lost, too."""


Event: TypeAlias = (
    RunBegun
    | RunEnded
    | KnownSchema
    | KnownTable
    | TableFiles
    | Registering
    | Registered
    | Named
    | Switching
    | Unswitched
    | Generation
    | Unit
    | Held
    | Begun
    | Done
    | Listed
    | Deleting
    | Deleted
    | Restored
    | Compacted
    | Dropping
    | Dropped
    | Forgotten
)


def deleted_name(source: str) -> str:
    """The beginning of the names of entries whose source had this name and was deleted."""
    return f"{source} (deleted "


def to_json(event: Event) -> Json:
    """An event in the form of a line of the journal."""
    record = {name: value for name, value in vars(event).items() if value is not None}
    if isinstance(event, Held | Begun | Compacted):
        record["entry"] = event.entry.to_json()
    elif isinstance(event, Unit):
        record["outcome"] = event.outcome.to_json()
    elif isinstance(event, Deleting):
        record["receipt"] = vars(event.receipt)
    return {"event": event.kind, **record}


def from_json(json: Mapping[str, Any]) -> Event:
    """The reverse of `to_json`."""
    kind = json["event"]
    reader = _READERS.get(kind)
    if reader is None:
        raise ColdframeError(f"the journal has an event {kind!r} that this version does not know")
    return reader(json)


def _entry(json: Mapping[str, Any]) -> Committed:
    """An entry, checked to have all its files in the target: a forged journal must not reach other files."""
    entry = Committed.from_json(json)
    inside_target(entry.table)
    for part in entry.parts:
        inside_target(part.final)
        if part.staged:
            inside_target(part.staged, STAGING)
    for name in entry.replaces:
        inside_target(name)
    return entry


def inside_target(name: str, folder: str = "") -> None:
    """Raises unless a path of the journal leads to a table of the target, or into `folder`."""
    names = name.split("/")
    if any(part in ("", ".", "..") for part in names) or "\0" in name:
        raise ValueError(f"expected a path below the target, found {name!r}")
    if not name.startswith(f"{folder}/") if folder else names[0] == HOME:
        raise ValueError(f"expected a path below {folder or 'a table'}, found {name!r}")


def _outcome(json: Mapping[str, Any]) -> Outcome:
    outcome = Outcome.from_json(json)
    for file in outcome.files:
        inside_target(file.staged, STAGING)
    return outcome


def _part(json: Any) -> tuple[int, int, int, int | None]:
    part, start, stop, rows = json
    return part, start, stop, rows


_VALUES: Mapping[str, Callable[[Any], object]] = {
    "tuple[str, ...]": tuple,
    "tuple[int, int, int, int | None]": _part,
    "Committed": _entry,
    "Outcome": _outcome,
    "Receipt": lambda json: Receipt(**json),
}
"""The readers of values that JSON has in another form, by the types of fields."""


def _reader(made: type[Any]) -> Callable[[Mapping[str, Any]], Event]:
    """A reader of events of a class; values with a default may be missing."""
    keys = [(field.name, field.default is MISSING, _VALUES.get(str(field.type))) for field in fields(made)]

    def read(json: Mapping[str, Any]) -> Event:
        values = {}
        for key, is_needed, of_json in keys:
            value = json[key] if is_needed else json.get(key)
            values[key] = value if of_json is None else of_json(value)
        event: Event = made(**values)
        return event

    return read


_READERS = {made.kind: _reader(made) for made in get_args(Event)}
