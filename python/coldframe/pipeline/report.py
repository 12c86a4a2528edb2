"""Stage 7: what was found, converted, verified, damaged and quarantined. `report_files` writes it down."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from coldframe.pipeline.inventory import Unread
from coldframe.pipeline.journal import Entry

STATUSES = ("converted", "salvaged", "quarantined", "failed", "changed", "held", "empty")


MOST_NAMED = 1000
"""Of a list in report.json; files.jsonl has all files."""


def _few(name: str, items: list[Any]) -> dict[str, Any]:
    """A list for report.json, and how many there are where it is cut."""
    more = {f"{name}_count": len(items)} if len(items) > MOST_NAMED else {}
    return {name: items[:MOST_NAMED], **more}


@dataclass
class FileReport:
    """What became of one source file."""

    source: str
    status: str
    """converted; salvaged: converted but for its damage; quarantined: nothing could be saved, a copy is kept;
    failed; changed: while it was read, so that a later run has to convert it; held: converted, but its table
    cannot be published yet; empty: no bytes, no rows."""
    bytes_in: int
    rows: int = 0
    bytes_out: int = 0
    outputs: list[str] = field(default_factory=list)
    verified: bool = False
    damage: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    quarantine: str | None = None
    """Where a copy of it lies, relative to the target's root."""
    earlier: bool = False
    """Done by an earlier run."""
    seconds: float = 0.0
    """That its tasks took, together."""

    @staticmethod
    def of_entry(entry: Entry, size: int, *, earlier: bool = False) -> FileReport:
        """The report of a committed file."""
        details = entry.details
        return FileReport(
            entry.source,
            "salvaged" if details["damage"] else "converted",
            size,
            details["rows"],
            sum(part.bytes for part in entry.parts),
            [part.final for part in entry.parts],
            details["verified"],
            details["damage"],
            None,
            details.get("quarantine"),
            earlier,
            details.get("seconds", 0.0),
        )

    def to_json(self) -> dict[str, Any]:
        """A line of files.jsonl."""
        return {**vars(self), "rows_lost": self.rows_lost}

    @property
    def rows_lost(self) -> int | None:
        """How many rows its damage cost; None where that cannot be known."""
        lost = [item.get("rows_lost") for item in self.damage]
        return None if None in lost else sum(int(rows) for rows in lost if rows is not None)


@dataclass
class TableReport:
    """What became of one table."""

    name: str
    path: str
    format: str
    files: list[FileReport] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Files of the target that are not there any more, or not with their size."""
    foreign: list[str] = field(default_factory=list)
    """Files in its directory that are none of the migration's: readers take them for a part of the table."""
    vanished: list[str] = field(default_factory=list)
    """Sources that an earlier run converted, and that are gone."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Of Delta or Iceberg: version or snapshot."""
    error: str | None = None
    """Why the files could not be made a Delta or Iceberg table."""

    def count(self, *statuses: str) -> int:
        """How many files have one of the statuses."""
        return sum(file.status in statuses for file in self.files)

    @property
    def rows(self) -> int:
        """Rows in the target; what is held is not there yet."""
        return sum(file.rows for file in self.files if file.status != "held")

    @property
    def bytes_in(self) -> int:
        """Bytes of the source."""
        return sum(file.bytes_in for file in self.files)

    @property
    def problems(self) -> list[FileReport]:
        """Its files that were not simply converted."""
        return [file for file in self.files if file.status not in ("converted", "empty")]

    @property
    def seconds(self) -> float:
        """That the tasks of this run took, together."""
        return sum(file.seconds for file in self.files if not file.earlier)

    @property
    def bytes_out(self) -> int:
        """Bytes of the target."""
        return sum(file.bytes_out for file in self.files)

    @property
    def verified(self) -> bool:
        """Whether something was written, and all of it was read back, found equal, and is still there."""
        written = [file for file in self.files if file.outputs]
        whole = not self.missing and not self.foreign and self.error is None
        return bool(written) and whole and all(file.verified for file in written)

    def to_json(self) -> dict[str, Any]:
        """Its part of report.json."""
        return {
            "name": self.name,
            "path": self.path,
            "format": self.format,
            "rows": self.rows,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "verified": self.verified,
            "counts": {"found": len(self.files), **{status: self.count(status) for status in STATUSES}},
            "seconds": round(self.seconds, 3),
            **_few("missing", self.missing),
            **_few("foreign", self.foreign),
            **_few("vanished", self.vanished),
            "metadata": self.metadata,
            "error": self.error,
            **_few("problems", [file.to_json() for file in self.problems]),
        }


@dataclass
class Report:
    """The outcome of a migration."""

    source: str
    target: str
    to: str
    on_error: str
    tables: list[TableReport]
    unknown: list[str] = field(default_factory=list)
    """Files outside of every table whose format is not one of ours; they were left alone."""
    unread: list[Unread] = field(default_factory=list)
    """Places of the source that could not be looked at: unreadable, links, neither file nor directory."""
    excluded: int = 0
    """Files and directories that the patterns leave out."""
    on_vanished: str = "fail"
    timeline: dict[str, Any] = field(default_factory=dict)
    """Bytes of the source and rows by time: see `progress.Timeline`."""
    safe_to_delete: int = 0
    """How many sources `safe-to-delete.txt` lists."""
    started: float = 0.0
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Rows in the target, those of earlier runs included."""
        return sum(table.rows for table in self.tables)

    @property
    def verified(self) -> bool:
        """Whether something was written, and all of it was read back and found equal."""
        written = [table for table in self.tables if any(file.outputs for file in table.files)]
        return bool(written) and all(table.verified for table in written)

    @property
    def failures(self) -> list[FileReport]:
        """The files that were not converted although they should have been."""
        return [file for table in self.tables for file in table.files if file.status in ("failed", "changed")]

    @property
    def exit_code(self) -> int:
        """0: all that was asked for was done; 1: something failed or could not be read, files of the target
        are missing or foreign, or sources are gone and nobody has said what to do about it.
        """
        wrong = self.failures or self.unread or any(self.is_wrong(table) for table in self.tables)
        return 1 if wrong else 0

    def is_wrong(self, table: TableReport) -> bool:
        """Whether something of the table as a whole is not as it was asked for."""
        gone = bool(table.vanished) and self.on_vanished == "fail"
        return bool(table.missing or table.foreign or table.error or gone)

    @property
    def statuses(self) -> dict[str, int]:
        """How many files there are of each status."""
        counts = Counter(file.status for table in self.tables for file in table.files)
        return {status: counts[status] for status in STATUSES if counts[status]}

    def to_json(self) -> dict[str, Any]:
        """report.json."""
        return {
            "source": self.source,
            "target": self.target,
            "to": self.to,
            "on_error": self.on_error,
            "on_vanished": self.on_vanished,
            "excluded": self.excluded,
            "safe_to_delete": self.safe_to_delete,
            "started": self.started,
            "seconds": self.seconds,
            "rows": self.rows,
            "verified": self.verified,
            "exit_code": self.exit_code,
            "counts": self.statuses,
            "timeline": self.timeline,
            **_few("unknown", self.unknown),
            **_few("unread", [vars(one) for one in self.unread]),
            "tables": [table.to_json() for table in self.tables],
        }
