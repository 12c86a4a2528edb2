"""The data that passes between packages: immutable records, each with one JSON form.

    SourceFile   a file or directory of the source                           source/
    PlannedFile  its metadata, and the splits in which it is read            plan/
    Task         one split, to be converted and verified anywhere            work/ (defined there)
    Outcome      the result of a task: staged files, or a failure
    StagedFile   a file of the target that no reader sees yet
    Committed    a source whose files have their final names                 state/

Executors return outcomes by `dumps` and `loads`. The journal stores `Outcome` and `Committed` in the same
form, which docs/migration-state.md describes.
"""

from __future__ import annotations

import base64
import decimal
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypedDict
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import ColdframeError, CorruptFileError, formats
from coldframe.pipeline.file_access import StorageOptions

Json: TypeAlias = dict[str, object]
"""A record in JSON. The record's `from_json` reads it."""
Recorded = Sequence[tuple[int, bytes]]
"""Data that was read when a source was opened, for opening it again: pairs of offset and bytes."""
PartitionValues: TypeAlias = Mapping[str, object]
"""The common values of a file's rows, by terms such as `days(ts)`, in the form of `stored_value`."""
Cause = Literal["failed", "changed", "damaged"]
"""Why a source was not converted. Damaged: its bytes are wrong, and did not change meanwhile; only such a
source may be quarantined. Failed: anything else, from a full disk to values that the table cannot hold.
"""


class Damage(TypedDict):
    """A part of a file that could not be read, as the core reports it."""

    offset: int
    length: int
    rows_lost: int | None
    structure: str
    reason: str


class ColumnCheck(TypedDict, total=False):
    """The fingerprint of a column."""

    nulls: int
    nans: int
    """Only for columns of floats."""
    min: str | None
    max: str | None
    checksum: str


class Checks(TypedDict, total=False):
    """The fingerprint of rows, as the core returns it; empty if nothing was verified."""

    rows: int
    row_checksum: str
    columns: dict[str, ColumnCheck]


# ---- of the source


_PARTITIONED = frozenset(name for name, about in formats().items() if not about["capabilities"]["tables"])
"""Formats whose directories may be partitions; directories of other formats hold tables."""


@dataclass(frozen=True)
class SourceFile:
    """A file of the source tree, or a directory that a format reads as a whole (Kudu, HBase)."""

    path: str
    relative: str
    size: int
    mtime_ns: int
    format: str | None
    identity: str = ""
    """Compared with the file while it is read: see `identity`."""
    is_folder: bool = False
    etag: str | None = None
    """The store's etag of the content, if it has one."""
    storage_options: StorageOptions = field(default=None, repr=False, compare=False)
    """Credentials and settings of the file's store. These options hold secrets and are never in JSON."""
    tables: int = 1
    """The number of tables in the directory, including this one."""
    reading: int = 0
    """The number of the file's reading: see `Table.readings`."""

    @property
    def share(self) -> int:
        """The size in bytes; if a directory holds several tables, each table counts an equal part."""
        return self.size // self.tables

    @property
    def folders(self) -> tuple[str, ...]:
        """The directories between the source's root and the file, including a partition's own directory."""
        names = self.relative.split("/")
        return tuple(names if self.is_partition else names[:-1])

    @property
    def is_partition(self) -> bool:
        """Whether it is a directory that is a whole partition, as in a transactional table."""
        return self.is_folder and self.format in _PARTITIONED and is_partition(self.relative.split("/")[-1])

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Hive's partition: the `key=value` directories, unescaped."""
        return tuple((unquote(key), unquote(value)) for key, value in map(_split_key, self.folders) if key)


@dataclass(frozen=True)
class Unread:
    """A place of the source tree that could not be examined and may contain rows."""

    relative: str
    reason: str


def is_partition(folder: str) -> bool:
    """Whether a directory's name is `key=value`."""
    return bool(_split_key(folder)[0])


def _split_key(folder: str) -> tuple[str, str]:
    key, equals, value = folder.partition("=")
    return (key, value) if equals else ("", "")


_OF_FILE = tuple(name for name in SourceFile.__dataclass_fields__ if name != "storage_options")


MAX_HIDDEN = 1000
"""How many skipped names are kept; further names are only counted."""


@dataclass
class Listing:
    """The direct contents of some directories. Grows while they are examined."""

    files: list[SourceFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    hidden: int = 0
    hidden_names: list[str] = field(default_factory=list)

    def add(self, file: SourceFile | Unread) -> None:
        """Adds an item."""
        if isinstance(file, Unread):
            self.unread.append(file)
        else:
            self.files.append(file)

    def hide(self, names: Sequence[str]) -> None:
        """Adds skipped names."""
        self.hidden += len(names)
        self.hidden_names += names[: MAX_HIDDEN - len(self.hidden_names)]

    def drained(self) -> Listing:
        """A copy of the contents; empties this object."""
        listing = Listing(**vars(self))
        self.files, self.folders, self.unread, self.left_out = [], [], [], []
        self.hidden, self.hidden_names = 0, []
        return listing

    def to_json(self) -> Json:
        """Leaves out storage options, which hold secrets."""
        files = [[getattr(file, name) for name in _OF_FILE] for file in self.files]
        unread = [[place.relative, place.reason] for place in self.unread]
        return {**vars(self), "files": files, "unread": unread}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> Listing:
        """The reverse of `to_json`."""
        files = [SourceFile(**dict(zip(_OF_FILE, row, strict=True))) for row in json["files"]]
        return Listing(**{**json, "files": files, "unread": [Unread(*row) for row in json["unread"]]})


# ---- of the plan


@dataclass(frozen=True)
class Failure:
    """Why something could not be done with a source."""

    error: str
    cause: Cause = "failed"

    @staticmethod
    def of(error: Exception) -> Failure:
        """An error's message and, for a bug of this program, its location."""
        if isinstance(error, CorruptFileError):
            return Failure(describe(error), "damaged")
        if isinstance(error, ColdframeError | pa.ArrowException | OSError):
            return Failure(describe(error))
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(f"{describe(error)} (at {os.path.basename(last.filename)}:{last.lineno})")

    def to_json(self) -> Json:
        """The failure as JSON, for outcomes."""
        record: Json = {"error": self.error}
        if self.cause != "failed":
            record[self.cause] = True
        return record

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> Failure | None:
        """The reverse of `to_json`; None if nothing failed.

        Damage is reported only if the file is still the planned file.
        """
        if json.get("error") is None:
            return None
        cause: Cause = "changed" if json.get("changed") else "damaged" if json.get("damaged") else "failed"
        return Failure(str(json["error"]), cause)


def describe(error: BaseException) -> str:
    """The error's kind and message."""
    return f"{type(error).__name__}: {error}"


PlannedSplit = tuple[int, int, int, int | None, Recorded]
"""A split of a source file: part, start, stop, rows if known, and bytes that were read to open the file."""


@dataclass(frozen=True)
class PlannedFile:
    """A source file that is to be converted."""

    file: SourceFile
    key: str
    parts: Sequence[PlannedSplit] = ()
    schema: str = ""
    """The id of the file's columns: see `schema_id`."""
    names: tuple[str, ...] | None = None
    rows: int | None = None
    """The number of rows that the file states."""
    known: tuple[Any, ...] | None = None
    """The file's identity in its store; compared when the file is opened again."""
    masked: bool = False
    """Whether encrypted columns are read with masked values, since there is no key."""


@dataclass(frozen=True)
class OpenedFile:
    """A source file's own metadata when it was opened (see `PlannedFile`), or why it could not be opened."""

    relative: str
    parts: Sequence[PlannedSplit] = ()
    schema: str = ""
    names: tuple[str, ...] | None = None
    rows: int | None = None
    known: tuple[Any, ...] | None = None
    masked: bool = False
    failure: Failure | None = None

    def planned(self, file: SourceFile, key: str) -> PlannedFile:
        """The plan for this file."""
        return PlannedFile(file, key, self.parts, self.schema, self.names, self.rows, self.known, self.masked)

    def to_json(self) -> Json:
        """Bytes that a split carries are encoded as base64."""
        parts = [
            [*part[:4], [[at, base64.b64encode(some).decode()] for at, some in part[4]]]
            for part in self.parts
        ]
        failure = None if self.failure is None else self.failure.to_json()
        return {**vars(self), "parts": parts, "failure": failure}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> OpenedFile:
        """The reverse of `to_json`."""
        parts = [
            (part, start, stop, rows, tuple((at, base64.b64decode(some)) for at, some in own))
            for part, start, stop, rows, own in json["parts"]
        ]
        names, known = (None if json[key] is None else tuple(json[key]) for key in ("names", "known"))
        failure = None if json["failure"] is None else Failure.from_json(json["failure"])
        return OpenedFile(**{**json, "parts": parts, "names": names, "known": known, "failure": failure})


@dataclass(frozen=True)
class Opened:
    """Opened files of a table, and their columns by name, as text."""

    files: tuple[OpenedFile, ...]
    schemas: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Json:
        """The JSON form of each file."""
        return {"files": [file.to_json() for file in self.files], "schemas": dict(self.schemas)}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> Opened:
        """The reverse of `to_json`."""
        return Opened(tuple(OpenedFile.from_json(file) for file in json["files"]), json["schemas"])


# ---- of the work


def _without_partition(record: Mapping[str, object]) -> Json:
    return {key: value for key, value in record.items() if key != "partition"}


def stored_value(value: object) -> object:
    """A value of a partition in JSON."""
    if isinstance(value, decimal.Decimal):
        return ["decimal", str(value)]
    return ["binary", base64.b64encode(value).decode()] if isinstance(value, bytes) else value


def restored_value(stored: object) -> object:
    """The reverse of `stored_value`."""
    if not isinstance(stored, Sequence) or isinstance(stored, str):
        return stored
    kind, text = stored
    return decimal.Decimal(text) if kind == "decimal" else base64.b64decode(text)


@dataclass(frozen=True)
class StagedFile:
    """A file that a task wrote, or the part of such a file that has a source's rows."""

    staged: str
    rows: int
    bytes: int
    """The length of the whole file; `sha256` and `verified` are about the whole file, too."""
    sha256: str | None
    checks: Checks = field(default_factory=lambda: Checks())
    """The fingerprint of this source's rows in the file."""
    verified: bool = False
    first: int = 0
    """If several sources share the file: the number of this source's first row."""
    of: int = 0
    """The number of rows in a file that several sources share; 0 if all its rows are from this source."""
    name: str = ""
    """If several sources share the file: the beginning of its name."""
    partition: PartitionValues = field(default_factory=dict)
    """The partition values, if the table is partitioned by values in its files."""

    def to_json(self) -> Json:
        """The file as JSON, for outcomes; has keys for sharing and partitions only if needed."""
        omitted = () if self.of else ("first", "of", "name")
        record = {key: value for key, value in vars(self).items() if key not in omitted}
        return record if self.partition else _without_partition(record)

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> StagedFile:
        """The reverse of `to_json`."""
        return StagedFile(**json)


@dataclass(frozen=True)
class Outcome:
    """The result of a task."""

    key: str
    """The key of its source; `number` is its number among the tasks of the source."""
    number: int
    files: tuple[StagedFile, ...] = ()
    rows: int = 0
    damage: tuple[Damage, ...] = ()
    verified: bool = False
    passed_over: Mapping[str, int] = field(default_factory=dict)
    """Counts of content that was readable but not requested, by kind."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """How many values were changed, by kind of change."""
    digest: str | None = None
    """The digest by which a later run recognises the source, if this task had to compute it."""
    seconds: float = 0.0
    failure: Failure | None = None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome itself; a merge has several."""
        return (self,)

    def to_json(self) -> Json:
        """The outcome as JSON, for the driver and the journal."""
        record: Json = {key: value for key, value in vars(self).items() if key not in ("digest", "failure")}
        record |= {"files": [file.to_json() for file in self.files], "damage": list(self.damage)}
        if self.digest is not None:
            record["digest"] = self.digest
        return {**record, **({} if self.failure is None else self.failure.to_json())}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> Outcome:
        """The reverse of `to_json`."""
        return Outcome(
            str(json["key"]),
            int(json["number"]),
            tuple(StagedFile.from_json(file) for file in json["files"]),
            json["rows"],
            tuple(json["damage"]),
            json["verified"],
            json["passed_over"],
            json["losses"],
            json.get("digest"),
            json["seconds"],
            Failure.from_json(json),
        )


@dataclass(frozen=True)
class MergeOutcome:
    """The result of sources that were to become one file."""

    outcomes: tuple[Outcome, ...]

    def to_json(self) -> Json:
        """The JSON form of each source's outcome."""
        return {"sources": [outcome.to_json() for outcome in self.outcomes]}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> MergeOutcome:
        """The reverse of `to_json`."""
        return MergeOutcome(tuple(Outcome.from_json(outcome) for outcome in json["sources"]))


# ---- of the target


@dataclass(frozen=True)
class Part:
    """A file of the target, or the part of such a file that has a source's rows: see `StagedFile`."""

    staged: str
    final: str
    rows: int
    bytes: int
    checks: Checks = field(default_factory=lambda: Checks())
    verified: bool = False
    sha256: str | None = None
    first: int = 0
    of: int = 0
    partition: PartitionValues = field(default_factory=dict)
    stored: str = ""
    """What distinguished the published file from others: see `StoredFile.mark`. Empty if unknown."""

    def to_json(self) -> Json:
        """The form in the journal; has the keys `partition` and `stored` only if there are values."""
        record = dict(vars(self)) if self.partition else _without_partition(vars(self))
        if not self.stored:
            del record["stored"]
        return record

    @property
    def share(self) -> int:
        """The source's part of the file's bytes, in proportion to the source's rows."""
        return self.bytes * self.rows // self.of if self.of else self.bytes


@dataclass(frozen=True)
class Details:
    """Details of a converted source."""

    identity: str = ""
    digest: str = ""
    """The source's digest when it was converted: see `identity`. Empty if the digest could not be taken."""
    passed_over: Mapping[str, int] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    """Bytes of the source."""
    rows: int = 0
    damage: tuple[Damage, ...] = ()
    verified: bool = False
    seconds: float = 0.0
    """The total time of the source's tasks."""
    schema: str = ""
    """The id of the columns as the source has them: see `schema_id`."""
    written: str = ""
    """The id of the columns as the target has them: see `schema_id`."""
    quarantine: str | None = None
    """The path of its copy, relative to the target's root."""
    by_spark: bool = False
    """Whether Spark, and not coldframe, has read the source."""

    def to_json(self) -> Json:
        """The details as JSON, for the journal."""
        omitted = () if self.by_spark else ("by_spark",)
        record = {key: value for key, value in vars(self).items() if value is not None and key not in omitted}
        return {**record, "damage": list(self.damage)}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> Details:
        """The reverse of `to_json`. Ignores fields of later versions."""
        known = {key: value for key, value in json.items() if key in Details.__dataclass_fields__}
        return Details(**{**known, "damage": tuple(known["damage"])})


@dataclass(frozen=True)
class Receipt:
    """What `coldframe delete` did with a source."""

    source: str
    """Its name as a source, relative to the source's root."""
    path: str
    size: int
    digest: str
    at: float
    by: str
    """User and host."""
    to: str | None = None
    """Where it was moved to; None if it was deleted."""
    fate: str = ""
    """`"deleted"`, `"moved"`, or `"gone"`: it was not there any more. Empty while that is unknown."""


@dataclass(frozen=True)
class Committed:
    """A source file that has been converted; all paths are relative to the target's root."""

    key: str
    source: str
    table: str
    parts: tuple[Part, ...]
    replaces: tuple[str, ...] = ()
    details: Details = field(default_factory=Details)
    generation: int = 0
    """How often `--fresh` was used on the target."""
    listed: bool = False
    """Whether a run has listed the source as safe to delete."""
    traces: tuple[str, ...] = ()
    """Of a directory that was listed: see `identity`."""
    receipt: Receipt | None = None
    """If the source was deleted: the receipt. `source` is then a name that no new file has."""

    @property
    def name(self) -> str:
        """The source's own name, also after it was deleted."""
        return self.source if self.receipt is None else self.receipt.source

    @property
    def shared_file(self) -> str:
        """The target file that it shares with other sources; empty if it shares no file."""
        return next((part.final for part in self.parts if part.of), "")

    def to_json(self) -> Json:
        """The form in the journal."""
        record = {
            **vars(self),
            "parts": [part.to_json() for part in self.parts],
            "replaces": list(self.replaces),
            "details": self.details.to_json(),
        }
        if self.receipt is not None:
            record["receipt"] = vars(self.receipt)
        optional = ("listed", "traces", "receipt")
        return {key: value for key, value in record.items() if value or key not in optional}

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> Committed:
        """The reverse of `to_json`."""
        given = json.get("receipt")
        made = {
            "parts": tuple(Part(**part) for part in json["parts"]),
            "replaces": tuple(json["replaces"]),
            "details": Details.from_json(json["details"]),
            "traces": tuple(json.get("traces", ())),
            "receipt": None if given is None else Receipt(**given),
        }
        return Committed(**{**json, **made})


# ---- between processes


class Record(Protocol):
    """A record that an executor returns."""

    def to_json(self) -> Json: ...


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Record]] = {
    kind.__name__: kind.from_json for kind in (Listing, Opened, Outcome, MergeOutcome)
}


def dumps(record: Record) -> str:
    """Serialises a record that an executor returns."""
    return json.dumps([type(record).__name__, record.to_json()], default=str)


def loads(text: str) -> Record:
    """The reverse of `dumps`."""
    name, body = json.loads(text)
    return _READERS[name](body)
