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
import functools
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import ColdframeError, CorruptFileError, formats
from coldframe.pipeline.file_access import StorageOptions

if TYPE_CHECKING:
    from typing_extensions import Self

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


# ---- JSON


class Record:
    """A dataclass with one form in JSON: its fields by name, with the records inside in their own forms."""

    optional: ClassVar[tuple[str, ...]] = ()
    """Fields that are left out of the JSON if they are empty."""
    needed: ClassVar[tuple[str, ...]] = ()
    """Fields with a default that the JSON must have."""

    def to_json(self) -> Json:
        """The form in JSON."""
        optional = self.optional
        return {
            name: _in_json(value) if isinstance(value, (tuple, Record)) else value
            for name, value in vars(self).items()
            if value or name not in optional
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`. Fields with a default may be missing, unless they are needed."""
        if missing := [name for name in cls.needed if name not in json]:
            raise KeyError(missing[0])
        made: Any = cls
        values = dict(json)
        for name, reader in _readers(made).items():
            if name in values:
                values[name] = reader(values[name])
        return cls(**values)


def _in_json(value: object) -> object:
    if isinstance(value, Record):
        return value.to_json()
    return list(map(_in_json, value)) if isinstance(value, tuple) else value


@functools.cache
def _readers(kind: type[Record]) -> Mapping[str, Callable[[Any], object]]:
    """How values are read that JSON has in another form, by the names of fields."""
    hints = get_type_hints(kind)
    return {name: reader for name, hint in hints.items() if (reader := _reader(hint)) is not None}


def _reader(kind: Any) -> Callable[[Any], object] | None:
    inner = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.from_json
    if get_origin(kind) is tuple:
        of_item = _reader(inner[0])
        return tuple if of_item is None else lambda values: tuple(map(of_item, values))
    if isinstance(kind, UnionType):
        of_value = next((reader for reader in map(_reader, inner) if reader is not None), None)
        return None if of_value is None else lambda value: None if value is None else of_value(value)
    return None


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
class Listing(Record):
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

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        files = [SourceFile(**dict(zip(_OF_FILE, row, strict=True))) for row in json["files"]]
        return cls(**{**json, "files": files, "unread": [Unread(*row) for row in json["unread"]]})


# ---- of the plan


@dataclass(frozen=True)
class Failure(Record):
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
class OpenedFile(Record):
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
        return {**super().to_json(), "parts": parts}

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        parts = [
            (part, start, stop, rows, tuple((at, base64.b64decode(some)) for at, some in own))
            for part, start, stop, rows, own in json["parts"]
        ]
        return super().from_json({**json, "parts": parts})


@dataclass(frozen=True)
class Opened(Record):
    """Opened files of a table, and their columns by name, as text."""

    files: tuple[OpenedFile, ...]
    schemas: Mapping[str, str] = field(default_factory=dict)


# ---- of the work


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
class StagedFile(Record):
    """A file that a task wrote, or the part of such a file that has a source's rows."""

    optional = ("first", "of", "name", "partition")

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


@dataclass(frozen=True)
class Outcome(Record):
    """The result of a task."""

    needed = ("files", "rows", "damage", "verified", "passed_over", "losses", "seconds")

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
        """The form for the driver and the journal. A failure has its message, and its cause as a key."""
        record = super().to_json()
        del record["failure"]
        if self.digest is None:
            del record["digest"]
        if self.failure is not None:
            record["error"] = self.failure.error
            if self.failure.cause != "failed":
                record[self.failure.cause] = True
        return record

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        own = {name: json[name] for name in json if name in cls.__dataclass_fields__}
        cause: Cause = "changed" if json.get("changed") else "damaged" if json.get("damaged") else "failed"
        failure = None if json.get("error") is None else Failure(str(json["error"]), cause)
        return replace(super().from_json(own), failure=failure)


@dataclass(frozen=True)
class MergeOutcome(Record):
    """The result of sources that were to become one file."""

    outcomes: tuple[Outcome, ...]


# ---- of the target


@dataclass(frozen=True)
class Part(Record):
    """A file of the target, or the part of such a file that has a source's rows: see `StagedFile`."""

    optional = ("partition", "stored")

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

    @property
    def share(self) -> int:
        """The source's part of the file's bytes, in proportion to the source's rows."""
        return self.bytes * self.rows // self.of if self.of else self.bytes


@dataclass(frozen=True)
class Details(Record):
    """Details of a converted source."""

    optional = ("quarantine", "by_spark")
    needed = ("damage",)

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

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`. Ignores fields of later versions."""
        return super().from_json({name: json[name] for name in json if name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Receipt(Record):
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
class Committed(Record):
    """A source file that has been converted; all paths are relative to the target's root."""

    optional = ("listed", "traces", "receipt")
    needed = ("replaces", "details")

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


# ---- between processes


_RETURNED: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (Listing, Opened, Outcome, MergeOutcome)
}


def dumps(record: Record) -> str:
    """Serialises a record that an executor returns."""
    return json.dumps([type(record).__name__, record.to_json()], default=str)


def loads(text: str) -> Record:
    """The reverse of `dumps`."""
    name, body = json.loads(text)
    return _RETURNED[name].from_json(body)
