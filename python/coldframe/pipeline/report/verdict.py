"""The verdict: `Verified | Partial | Failed | NotVerified`, with reasons, from summaries of tables and runs.

Only this module decides what is "verified" and "safe", their colours, exit codes, and the sources in
`safe-to-delete.txt`. The report, its pages, the summary, the dry run and the audit print the verdict.

    grade       best verdict    exit code
    failed      Failed          1            requested, but missing, wrong or unexplained
    unproven    NotVerified     0            not compared
    partial     Partial         0            rows or digits are missing, which the user allowed
    note        Verified        0            reported, but the result is correct

How to add a reason:

1. Add a line to `KINDS`: its grade, whether it keeps all sources of its table off the list, and its texts.
2. Where the problem is detected, add it to the table: `work.report.add_reason("my_kind", count, "which, or
   why")`. Problems of no table go to `report.add_reason(..)` of the whole `Report`.

Nothing else must be changed: texts, colours, exit code, report.json and the list are derived from `KINDS`.
Properties of a single source (it was salvaged, its digits were cut) belong to `SourceSummary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from coldframe.pipeline.options import LOSSES, NOT_SHOWN
from coldframe.pipeline.records import Json

Grade = Literal["failed", "unproven", "partial", "note"]

COMPARED = (
    "each file was read back and compared with what was decoded: the number of rows, and 128-bit sums of the "
    "hashes of all rows"
)
"""The meaning of "verified" for a file."""


@dataclass(frozen=True)
class Kind:
    """A kind of reason for a verdict."""

    grade: Grade
    blocks: bool
    """Whether a verdict with such a reason keeps all sources of the table off the list of safe sources."""
    singular: str
    plural: str
    """The texts after the count."""


KINDS: Mapping[str, Kind] = {
    # Outcomes of sources.
    "failed": Kind("failed", True, "file failed", "files failed"),
    "changed": Kind("failed", True, "file changed while it was read", "files changed while they were read"),
    "withheld": Kind("failed", True, "new file was not taken", "new files were not taken"),
    "held": Kind("partial", True, "file waits to be published", "files wait to be published"),
    "salvaged": Kind("partial", False, "damaged file was salvaged", "damaged files were salvaged"),
    "quarantined": Kind("partial", False, "damaged file gave no rows", "damaged files gave no rows"),
    "no_copy": Kind("failed", True, "damaged file could not be copied", "damaged files could not be copied"),
    "unverified": Kind("unproven", True, "file was not read back", "files were not read back"),
    "nothing": Kind("unproven", False, "table without any compared rows", "tables without any compared rows"),
    "dry_run": Kind("unproven", True, "dry run: nothing was written", "dry runs: nothing was written"),
    "lossy": Kind("partial", False, "value was changed", "values were changed"),
    "named_loss": Kind("note", False, "value was changed, as allowed", "values were changed, as allowed"),
    # Properties of the source.
    "vanished": Kind(
        "failed", True, "source is gone since an earlier run", "sources are gone since an earlier run"
    ),
    "kept": Kind("note", False, "source is gone, its rows stay", "sources are gone, their rows stay"),
    "archived": Kind(
        "note",
        False,
        "source was deleted by coldframe delete, its rows stay",
        "sources were deleted by coldframe delete, their rows stay",
    ),
    "removed": Kind(
        "note",
        False,
        "source is gone, its rows were taken out",
        "sources are gone, their rows were taken out",
    ),
    "part": Kind(
        "failed", True, "source has a part of its table only", "sources have a part of their table only"
    ),
    "left_out": Kind(
        "note",
        False,
        "part of a source was not requested, so that source is not on the list",
        "parts of sources were not requested, so these sources are not on the list",
    ),
    "left_behind": Kind(
        "note",
        False,
        "part of a source is left behind, as requested",
        "parts of sources are left behind, as requested",
    ),
    "unmatched": Kind(
        "failed",
        False,
        "entry of tables.toml matches nothing",
        "entries of tables.toml match nothing",
    ),
    "unread": Kind("failed", True, "place could not be read", "places could not be read"),
    "excluded": Kind("note", False, "place is left out by patterns", "places are left out by patterns"),
    "hidden": Kind("note", False, "hidden name was skipped", "hidden names were skipped"),
    "stray": Kind("note", False, "file of another format was ignored", "files of other formats were ignored"),
    "in_use": Kind(
        "note",
        True,
        "table shares files with an Iceberg table, so none of its sources is on the list",
        "tables share files with Iceberg tables, so none of their sources is on the list",
    ),
    "unproved_source": Kind(
        "note",
        False,
        "source has no digest, so it is not on the list",
        "sources have no digest, so they are not on the list",
    ),
    "by_spark": Kind(
        "note",
        False,
        "source was read by Spark: only what Spark read was compared, so it is not on the list",
        "sources were read by Spark: only what Spark read was compared, so they are not on the list",
    ),
    "allowed_by_spark": Kind(
        "note",
        False,
        "source was read by Spark, as allowed: what Spark read was compared",
        "sources were read by Spark, as allowed: what Spark read was compared",
    ),
    # Properties of the target.
    "missing": Kind("failed", True, "file of the target is missing", "files of the target are missing"),
    "foreign": Kind(
        "failed", True, "file in the table was written by others", "files in the table were written by others"
    ),
    "rows_gone": Kind(
        "failed",
        True,
        "row is no longer in the table: others deleted it",
        "rows are no longer in the table: others deleted them",
    ),
    "rows_elsewhere": Kind(
        "failed",
        True,
        "file of the table was rewritten by others, and the new files were not compared",
        "files of the table were rewritten by others, and the new files were not compared",
    ),
    "columns_gone": Kind("failed", True, "table has lost columns", "tables have lost columns"),
    "known_gone": Kind(
        "partial",
        True,
        "row is no longer in the table: others deleted it",
        "rows are no longer in the table: others deleted them",
    ),
    "known_elsewhere": Kind(
        "unproven",
        True,
        "file of the table was rewritten by others, and the new files were not compared",
        "files of the table were rewritten by others, and the new files were not compared",
    ),
    "known_foreign": Kind(
        "note", False, "file in the table was written by others", "files in the table were written by others"
    ),
    "entered_again": Kind(
        "note",
        False,
        "file of the table was recorded only in the lost part of the journal, and was entered again",
        "files of the table were recorded only in the lost part of the journal, and were entered again",
    ),
    "old_journal": Kind(
        "note",
        False,
        "segment of the journal is older than its chain, and does not name its predecessor",
        "segments of the journal are older than its chain, and do not name their predecessors",
    ),
    "unread_by_engine": Kind(
        "note",
        False,
        "table was not read in full by a library of its format",
        "tables were not read in full by a library of their format",
    ),
    "lost_journal": Kind("note", False, "part of the journal was lost", "parts of the journal were lost"),
    "error": Kind("failed", True, "table is not as requested", "tables are not as requested"),
    "not_adopted": Kind("failed", True, "table cannot be adopted", "tables cannot be adopted"),
    # Comparison with a metastore.
    "metastore": Kind("failed", True, "difference to the metastore", "differences to the metastore"),
    # Only in audits.
    "altered": Kind("failed", True, "file is not as it was verified", "files are not as they were verified"),
    "line": Kind(
        "failed",
        True,
        "line of the list is no longer true",
        "lines of the list are no longer true",
    ),
    "cut_list": Kind("failed", True, "list was cut short", "lists were cut short"),
    "no_journal": Kind("failed", True, "journal is gone", "journals are gone"),
    "no_log": Kind(
        "failed", True, "table's own log or metadata is gone", "tables' own logs or metadata are gone"
    ),
    "cut_journal": Kind("failed", True, "part of the journal is lost", "parts of the journal are lost"),
    "failed_run": Kind("failed", True, "last run failed", "last runs failed"),
    "interrupted": Kind("unproven", True, "run was interrupted", "runs were interrupted"),
}


@dataclass(frozen=True)
class Reason:
    """Why the verdict is what it is."""

    kind: str
    count: int = 1
    detail: str = ""
    """The things that the reason is about, or the cause, as text for people."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there are no reasons of kind {self.kind!r}")

    @property
    def grade(self) -> Grade:
        """How bad the reason is."""
        return KINDS[self.kind].grade

    @property
    def fails(self) -> bool:
        """Whether the reason makes the exit code 1."""
        return self.grade == "failed"

    @property
    def blocks(self) -> bool:
        """Whether the reason keeps every source of its table off the list of safe sources."""
        return KINDS[self.kind].blocks

    @property
    def text(self) -> str:
        """The text with its count."""
        kind = KINDS[self.kind]
        text = f"{self.count:,} {kind.singular if self.count == 1 else kind.plural}"
        return f"{text}: {self.detail}" if self.detail else text

    def to_json(self) -> Json:
        """The reason's form in report.json."""
        return {"kind": self.kind, "count": self.count, "text": self.text, "grade": self.grade}


@dataclass(frozen=True)
class _Verdict:
    reasons: tuple[Reason, ...] = ()

    name = ""
    word = ""
    """The verdict's first word in texts for people."""
    colour = ""
    mark = ""

    @property
    def is_verified(self) -> bool:
        """Whether the verdict is `Verified`."""
        return isinstance(self, Verified)

    @property
    def exit_code(self) -> int:
        """0: nothing that was requested is missing, wrong or unexplained; else 1."""
        return int(any(reason.fails for reason in self.reasons))

    @property
    def blocks(self) -> bool:
        """Whether no source of the table is safe to delete."""
        return any(reason.blocks for reason in self.reasons)

    @property
    def why(self) -> tuple[Reason, ...]:
        """The reasons why the verdict is not `Verified`; empty if it is."""
        return tuple(reason for reason in self.reasons if reason.grade != "note")

    @property
    def notes(self) -> tuple[Reason, ...]:
        """The reasons that are only notes."""
        return tuple(reason for reason in self.reasons if reason.grade == "note")

    @property
    def text(self) -> str:
        """The verdict and its reasons in a line."""
        why = "; ".join(reason.text for reason in self.why)
        return f"{self.word}: {why}" if why else self.word

    def to_json(self) -> Json:
        """For programs."""
        return {
            "verdict": self.name,
            "verified": self.is_verified,
            "text": self.text,
            "exit_code": self.exit_code,
            "reasons": [reason.to_json() for reason in self.reasons],
        }


@dataclass(frozen=True)
class Verified(_Verdict):
    """Everything that was requested is in the target, and was compared with the decoded rows."""

    name = "verified"
    word = "verified"
    colour = "good"
    mark = "\N{CHECK MARK}"


@dataclass(frozen=True)
class Partial(_Verdict):
    """The contents of the target were compared, and rows or digits are missing for reported reasons."""

    name = "partial"
    word = "PARTIAL"
    colour = "part"
    mark = "\N{WARNING SIGN}"


@dataclass(frozen=True)
class Failed(_Verdict):
    """Something that was requested is missing, wrong or unexplained."""

    name = "failed"
    word = "FAILED"
    colour = "bad"
    mark = "\N{BALLOT X}"


@dataclass(frozen=True)
class NotVerified(_Verdict):
    """The written files were not compared, or nothing was written."""

    name = "not_verified"
    word = "NOT VERIFIED"
    colour = "part"
    mark = "\N{WARNING SIGN}"


Verdict: TypeAlias = Verified | Partial | Failed | NotVerified


@dataclass(frozen=True)
class SourceSummary:
    """What decides whether a source may be listed as safe, besides the verdict on its table."""

    status: str
    verified: bool
    """Whether all of the source's target files were read back."""
    digested: bool
    """Whether there is a digest of the content that was read."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """Numbers of changed values, by kind of change."""
    by_spark: bool = False
    """Whether Spark has read the source; content that Spark does not show was not compared."""


@dataclass(frozen=True)
class TableSummary:
    """The state of a table at the end of a run."""

    written: int
    """Sources with results in the target."""
    unverified: int
    """Sources whose files were not read back."""
    statuses: Mapping[str, int]
    """The number of sources by status."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """Numbers of changed values, by kind of change."""
    undigested: int = 0
    """Converted sources without a digest."""
    by_spark: int = 0
    """Sources that Spark has read."""
    missing: int = 0
    foreign: int = 0
    partial: int = 0
    vanished: int = 0
    archived: int = 0
    on_vanished: str = "fail"
    metastore: int = 0
    error: bool = False
    reasons: tuple[Reason, ...] = ()
    """Reasons that other modules have added: see above."""


@dataclass(frozen=True)
class RunSummary:
    """The state of a run besides its tables."""

    unread: int = 0
    excluded: int = 0
    hidden: int = 0
    stray: int = 0
    left_out: int = 0
    """Parts of directories that were readable but not requested."""
    left_behind: int = 0
    """Such parts that the user allowed to leave behind."""
    metastore: int = 0
    reasons: tuple[Reason, ...] = ()


BY_SPARK = ("by_spark", "allowed_by_spark")
"""Reasons for sources that Spark has read."""
_VANISHED = {"fail": "vanished", "keep": "kept", "remove": "removed"}


def judge_table(summary: TableSummary, allowed: frozenset[str] = frozenset()) -> Verdict:
    """The verdict on a table. `allowed`: losses that the user named."""
    reasons = [
        Reason(status, count)
        for status in ("failed", "changed", "withheld", "held", "salvaged", "quarantined")
        if (count := summary.statuses.get(status, 0))
    ]
    if summary.error:
        reasons.append(Reason("error"))
    for kind, count in (
        ("missing", summary.missing),
        ("foreign", summary.foreign),
        ("part", summary.partial),
        (_VANISHED[summary.on_vanished], summary.vanished),
        ("archived", summary.archived),
        ("metastore", summary.metastore),
        ("unverified", summary.unverified),
        ("unproved_source", summary.undigested),
        (BY_SPARK[NOT_SHOWN in allowed], summary.by_spark),
    ):
        if count:
            reasons.append(Reason(kind, count))
    for how, count in summary.losses.items():
        kind = "named_loss" if how in allowed else "lossy"
        reasons.append(Reason(kind, count, LOSSES.get(how, how)))
    if not (summary.written or summary.archived):
        reasons.append(Reason("nothing"))
    return _verdict([*reasons, *summary.reasons])


def judge_run(tables: Iterable[Verdict], summary: RunSummary = RunSummary()) -> Verdict:
    """The verdict on a run: on all its tables, and on what belongs to no table."""
    summed: dict[str, Reason] = {}
    written = False
    for table in tables:
        written = written or all(reason.kind != "nothing" for reason in table.reasons)
        for reason in table.reasons:
            before = summed.get(reason.kind)
            count = reason.count + (before.count if before is not None else 0)
            # A reason of a single table keeps its details. The reasons of several tables are only counted,
            # since each table shows its own details.
            summed[reason.kind] = reason if before is None else Reason(reason.kind, count)
    if written:
        summed.pop("nothing", None)
    elif "nothing" not in summed:
        summed["nothing"] = Reason("nothing")
    for kind, count in (
        ("unread", summary.unread),
        ("metastore", summary.metastore),
        ("excluded", summary.excluded),
        ("hidden", summary.hidden),
        ("left_out", summary.left_out),
        ("left_behind", summary.left_behind),
        ("stray", summary.stray),
    ):
        if count:
            before = summed.get(kind)
            summed[kind] = Reason(kind, count + (before.count if before is not None else 0))
    return _verdict([*summed.values(), *summary.reasons])


def judge_preview(reasons: Iterable[Reason]) -> Verdict:
    """The verdict before a run: nothing has been compared yet."""
    return _verdict([*reasons, Reason("dry_run")])


def judge_audit(files: int, reasons: Iterable[Reason]) -> Verdict:
    """The verdict of an audit; `files`: the number of checked target files."""
    known = list(reasons)
    if not files and not any(reason.fails for reason in known):
        known.append(Reason("nothing"))
    return _verdict(known)


def _verdict(reasons: Iterable[Reason]) -> Verdict:
    ordered = tuple(sorted(reasons, key=lambda reason: _ORDER[reason.grade]))
    grades = {reason.grade for reason in ordered}
    if "failed" in grades:
        return Failed(ordered)
    if "unproven" in grades:
        return NotVerified(ordered)
    return Partial(ordered) if "partial" in grades else Verified(ordered)


_ORDER: Mapping[str, int] = {"failed": 0, "unproven": 1, "partial": 2, "note": 3}


def may_be_listed(table: Verdict, source: SourceSummary, allowed: frozenset[str] = frozenset()) -> bool:
    """Whether a source may be listed as safe to delete, provided that it is unchanged."""
    return (
        not table.blocks
        and source.status == "converted"
        and source.verified
        and source.digested
        and not source.losses.keys() - allowed
        and (NOT_SHOWN in allowed or not source.by_spark)
    )
