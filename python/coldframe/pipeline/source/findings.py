"""Discrepancies between a metastore and the files that were found, as entries of the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from coldframe.pipeline.records import Json

MAX_SHOWN = 1000
"""The number of findings that are kept; further findings are only counted."""
MAX_LINES = 20
"""The number of findings on one table that a terminal shows."""


@dataclass(frozen=True)
class Finding:
    """A discrepancy."""

    kind: str
    """rows: another number than was migrated; format: another one than that of the bytes; missing: the
    location does not exist; empty: no files; unregistered: files that belong to no partition; elsewhere: a
    partition outside of the source; unread: a place that could not be read; writes: open writes of a
    transactional table, later ones than the metastore knows, or unknown validity; refused: the metastore does
    not describe a table; left out: what is not migrated of a metastore's tables; nothing: none of its tables
    lies in the source."""
    table: str
    """The table's name in the metastore: `database.table`."""
    text: str
    partition: str = ""
    location: str = ""
    stated: int | None = None
    """The rows that the metastore states."""
    migrated: int | None = None
    """The rows that were migrated."""
    is_wrong: bool = True
    """Whether the finding makes the exit code 1; other findings are only reported."""

    def __str__(self) -> str:
        place = " ".join(part for part in (self.table, self.partition) if part)
        return f"{place}: {self.text}" if place else self.text

    def to_json(self) -> Json:
        """The finding as JSON, for report.json."""
        return {key: value for key, value in vars(self).items() if value not in ("", None)}


@dataclass
class Findings:
    """Any number of findings: keeps the first findings and the total."""

    shown: list[Finding] = field(default_factory=list)
    count: int = 0
    wrong: int = 0

    def add(self, finding: Finding) -> None:
        """Adds a finding."""
        self.count += 1
        self.wrong += finding.is_wrong
        if len(self.shown) < MAX_SHOWN:
            self.shown.append(finding)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.shown)

    def __len__(self) -> int:
        return self.count

    def to_json(self) -> list[Json]:
        """The form in report.json."""
        return [finding.to_json() for finding in self.shown]


def metastore_lines(findings: Findings, indent: str = "") -> list[str]:
    """The first findings as lines for a terminal."""
    lines = [
        f"{indent}{'not as the metastore has it' if finding.is_wrong else 'note'}: {finding}"
        for finding in findings
    ]
    more = len(findings) - MAX_LINES
    return lines[:MAX_LINES] + ([f"{indent}and {more:,} more in report.json"] if more > 0 else [])


@dataclass
class MetastoreReport:
    """The comparison of a migration with a metastore."""

    uri: str
    tables: int = 0
    """Tables that lie in the source."""
    partitions: int = 0
    """Partitions of these tables."""
    compared: int = 0
    """Tables and partitions whose number of rows was compared."""
    agreed: int = 0
    """Tables and partitions of `compared` whose numbers of rows are equal."""
    findings: Findings = field(default_factory=Findings)
    """Findings that belong to no table of the report."""

    @property
    def summary(self) -> str:
        """The result in a line."""
        return (
            f"metastore {self.uri}: {self.tables:,} tables and {self.partitions:,} partitions in the source; "
            f"{self.agreed:,} of {self.compared:,} numbers of rows agree"
        )

    def to_json(self) -> Json:
        """The metastore's part of report.json."""
        return {**vars(self), "findings": self.findings.to_json(), "findings_count": len(self.findings)}
