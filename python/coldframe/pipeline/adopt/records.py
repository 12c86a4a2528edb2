"""The records of an adoption: a file, its columns, the verdict on it, and the outcome of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from coldframe.hive.definition import Definition
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.records import Json
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.verdict import (
    Reason,
    RunSummary,
    TableSummary,
    judge_preview,
    judge_run,
    judge_table,
)
from coldframe.pipeline.report.verdict import Verdict as Judgement

STAYS, CONVERTED = "in place", "converted"
READS_SOURCE = "reads the source"
"""In the metadata of a table: whether it, or a snapshot of it, reads files of the source."""


@dataclass(frozen=True, slots=True)
class FileField:
    """A column of a file, or a part of one, as the file has it."""

    name: str
    kind: pa.DataType
    declared: str = ""
    """The type in the file's own words, if it has more than Arrow's: `char`, `INT96`."""
    parts: tuple[FileField, ...] = ()
    """The fields of a struct, the element of a list, or the key and the value of a map."""
    id: int | None = None
    """Iceberg's, if the file states one."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The layout of a file, from its metadata."""

    fields: tuple[FileField, ...]
    splits: tuple[int, ...] = ()
    """The offsets at which readers may begin."""
    has_short_lists: bool = False
    """Whether it has lists of two levels (Parquet)."""
    knows_calendar: bool = True
    """Whether it is known how its days before 1582-10-15 are counted."""
    is_by_position: bool = False
    """Whether its columns have placeholders for names."""
    has_java_times: bool = False
    """Whether it stores fractions of a second before 1970 as ORC's library for Java does."""
    zone: str = ""
    """The zone of its timestamps of type INT96, if it names one other than UTC (Parquet)."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a table; or, if `is_whole`, a directory whose files only together have the rows."""

    path: str
    bytes: int
    format: str
    folder: str
    """The directories of its partition: `dt=2014-01-01`; empty for a table without partitions."""
    keys: Mapping[str, pa.Scalar]
    """The values of the partition columns."""
    rows: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)
    """Decodes the file: its rows as the table has them, with the partition columns."""
    is_whole: bool = False
    identity: str = ""
    """Size and times, where the listing has them."""
    storage_options: StorageOptions = field(default=None, repr=False)
    own: str = ""
    """How the columns of its partition differ from the table's; empty if they do not."""


@dataclass(frozen=True)
class FoundTable:
    """A table of the source."""

    name: str
    identifier: tuple[str, ...]
    """Its name in the catalog."""
    place: str
    """The path of its metadata and new files below the target's root."""
    columns: pa.Schema
    """The columns without the partition columns; char and varchar have their length in `hive.type`."""
    keys: pa.Schema
    """The partition columns."""
    files: tuple[FoundFile, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    """The types of columns in Hive's words."""
    is_by_position: bool = False
    """Whether the table's columns are matched by position, also in files that have names."""
    comment: str | None = None
    definition: Definition | None = field(default=None, repr=False)
    """The metastore's."""
    partitions: frozenset[str] = frozenset()
    """The names of its partitions in the metastore when they were read."""


@dataclass
class Verdict:
    """Whether a file stays or is converted, and why."""

    path: str
    bytes: int
    rows: int = 0
    reason: str = ""
    """Why the file cannot stay; empty: it stays."""
    folder: str = ""
    """The directories of its partition."""
    identity: str = ""
    """Size and times when it was decoded."""
    digest: str = ""
    checksum: str = ""
    """Of its rows, as they were decoded."""
    entry: str = ""
    """The data file of the table that has its rows; empty if it has none."""
    written: int = 0
    """Bytes of the new file."""
    sha256: str = ""
    """Of the new file."""
    schema: int = 0
    """The id of the table's schema for which `checksum` was computed."""
    own: str = ""
    """How the columns of its partition differ from the table's."""
    by_spark: bool = False
    """Whether Spark, too, reads the decoded rows from the data file."""

    @property
    def word(self) -> str:
        """`in place` or `converted`."""
        return CONVERTED if self.reason else STAYS

    def to_json(self) -> Json:
        """The file's line in the report."""
        return {"verdict": self.word, **vars(self)}


@dataclass
class TableOutcome:
    """The outcome of a table."""

    name: str
    verdicts: list[Verdict] = field(default_factory=list)
    refused: str = ""
    """Why the table was not adopted, or not changed; empty: it was."""
    is_plan: bool = False
    is_proved: bool = False
    """Whether the catalog has the table, and PyIceberg reads the decoded rows from each of its files."""
    metadata: Json = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """The assumptions, a sentence each."""
    more: list[Reason] = field(default_factory=list)
    """Further reasons for the verdict."""
    new: int = 0
    """Files that were decoded in this run; the others are known from earlier ones."""
    vanished: list[str] = field(default_factory=list)
    """Sources of an earlier run that are gone."""
    on_vanished: str = "fail"

    @property
    def verdict(self) -> Judgement:
        """The verdict on all that is known of the table."""
        reasons = [*self.more, *([Reason("error", 1, self.refused)] if self.refused else [])]
        if self.is_plan:
            return judge_preview(reasons)
        return judge_table(
            TableSummary(
                # PyIceberg has also read a table without rows.
                written=max(len(self.verdicts), 1) if self.is_proved else 0,
                unverified=0,
                statuses={},
                vanished=len(self.vanished),
                on_vanished=self.on_vanished,
                reasons=tuple(reasons),
            )
        )

    @property
    def verified(self) -> bool:
        """Whether the verdict is `Verified`."""
        return self.verdict.is_verified

    @property
    def by_spark(self) -> bool:
        """Whether Spark, too, has read the decoded rows from each of its files."""
        return self.is_proved and all(verdict.by_spark for verdict in self.verdicts if verdict.entry)

    @property
    def rows(self) -> int:
        """The rows of the table."""
        return sum(verdict.rows for verdict in self.verdicts)

    def bytes_of(self, word: str) -> int:
        """Bytes of the source with a verdict."""
        return sum(verdict.bytes for verdict in self.verdicts if verdict.word == word)

    def count(self, word: str) -> int:
        """How many files have a verdict."""
        return sum(verdict.word == word for verdict in self.verdicts)

    @property
    def reasons(self) -> Counter[str]:
        """The reasons of conversions, and how many files have each."""
        return Counter(verdict.reason for verdict in self.verdicts if verdict.reason)

    def to_json(self) -> Json:
        """The table's part of the report."""
        return {
            "name": self.name,
            "rows": self.rows,
            "refused": self.refused,
            "by_spark": self.by_spark,
            **{
                word: {"files": self.count(word), "bytes": self.bytes_of(word)} for word in (STAYS, CONVERTED)
            },
            "new": self.new,
            "vanished": self.vanished,
            "conversions": dict(self.reasons),
            "notes": self.notes,
            "metadata": self.metadata,
            **self.verdict.to_json(),
            "files": [verdict.to_json() for verdict in self.verdicts],
        }


@dataclass
class Adoption(Report):
    """The outcome of an adoption. No source of it is ever safe to delete."""

    adopted: list[TableOutcome] = field(default_factory=list)
    left_out_tables: list[tuple[str, str]] = field(default_factory=list)
    """Parts of the source that cannot be adopted, with reasons."""
    is_plan: bool = False
    """Whether nothing was written."""

    @property
    def verdict(self) -> Judgement:
        """The verdict on all tables, and on what cannot be adopted."""
        reasons = [Reason("not_adopted", 1, f"{name}: {why}") for name, why in self.left_out_tables]
        if not self.adopted and not reasons:
            reasons.append(Reason("error", 1, "there is no table in the source"))
        tables = [table.verdict for table in self.adopted]
        if self.is_plan:
            return judge_preview(
                [reason for table in tables for reason in table.why if reason.fails] + reasons
            )
        return judge_run(tables, RunSummary(reasons=tuple(reasons)))

    @property
    def rows(self) -> int:
        """The rows of the adopted tables."""
        return sum(table.rows for table in self.adopted if not table.refused)

    def to_json(self) -> Json:
        """adoption.json."""
        return {
            "source": self.source,
            "target": self.target,
            "started": self.started,
            "seconds": self.seconds,
            "rows": self.rows,
            **self.verdict.to_json(),
            "left_out": [{"name": name, "reason": reason} for name, reason in self.left_out_tables],
            "tables": [table.to_json() for table in self.adopted],
        }
