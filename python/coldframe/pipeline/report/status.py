"""How far a migration is, from its journal: it can be asked from anywhere, also while a run holds the lock.

The journal has what is converted. What is still to do is known to the run alone, so no share is stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coldframe.json_input import parse_json
from coldframe.pipeline.records import Committed, Json
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.state.state import STATE, read_state

RUNNING, CONVERTED, DONE, FAILED = "running", "converted", "done", "failed"
"""States of a table: it has parts that wait for others; all that was begun is published, and the run goes on;
the last run ended with it verified; the last run ended without that.
"""


@dataclass
class TableStatus:
    """What the journal has of one table."""

    path: str
    name: str
    state: str = CONVERTED
    sources: int = 0
    """Converted source files that are published."""
    waiting: int = 0
    """Converted source files that wait for others of their table."""
    damaged: int = 0
    """Sources of which rows were lost."""
    rows: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    text: str = ""
    """The verdict of the last run that ended."""

    def add(self, entry: Committed) -> None:
        """Counts a published source."""
        self.sources += 1
        self.damaged += bool(entry.details.damage)
        self.rows += entry.details.rows
        self.bytes_in += entry.details.bytes
        self.bytes_out += sum(part.share for part in entry.parts)


@dataclass
class Status:
    """The state of a migration's target."""

    root: str
    runs: int
    is_open: bool
    """Whether a run has begun and not ended: it goes on, or was killed."""
    written: float
    """When the journal was last written, in seconds since 1970."""
    parts: int
    """Converted parts of large sources that are unfinished."""
    tables: list[TableStatus] = field(default_factory=list)

    def to_json(self) -> Json:
        """For programs."""
        return {**vars(self), "tables": [vars(table) for table in self.tables]}

    def metrics(self) -> str:
        """The same as text for Prometheus."""
        return "\n".join(self._metrics()) + "\n"

    def _metrics(self) -> Iterator[str]:
        yield from _metric("run_open", "Whether a run has begun and not ended.", [("", int(self.is_open))])
        yield from _metric(
            "journal_written_seconds", "When the journal was last written.", [("", self.written)]
        )
        for name, text in (
            ("sources", "Converted source files that are published."),
            ("waiting", "Converted source files that wait for others of their table."),
            ("damaged", "Source files of which rows were lost."),
            ("rows", "Rows of the converted source files."),
            ("bytes_in", "Bytes of the converted source files."),
            ("bytes_out", "Bytes of the target's files."),
        ):
            values = [(f'{{table="{_label(t.path)}"}}', getattr(t, name)) for t in self.tables]
            yield from _metric(f"table_{name}", text, values)
        states = [(f'{{table="{_label(t.path)}",state="{t.state}"}}', 1) for t in self.tables]
        yield from _metric("table_state", "The state of each table.", states)


def _metric(name: str, text: str, values: Sequence[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP coldframe_{name} {text}"
    yield f"# TYPE coldframe_{name} gauge"
    for labels, value in values:
        yield f"coldframe_{name}{labels} {value}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def status_of(destination: Destination) -> Status:
    """Reads the journal, and the report of the last run if that has ended. Changes nothing."""
    state, _ = read_state(destination)
    is_open = state.epoch != state.ended_epoch
    written = max((file.modified for file in destination.list(STATE)), default=0) / 1000
    parts = sum(len(units) for units in state.units.values())
    tables = {path: TableStatus(path, known.name) for path, known in state.tables.items()}
    for path, table in tables.items():
        for entry in state.done.of_table(path):
            table.add(entry)
        table.waiting = state.held.sources_of(path)
        if is_open and table.waiting:
            table.state = RUNNING
    if not is_open:
        _add_verdicts(tables, destination)
    listed = [tables[path] for path in sorted(tables)]
    return Status(destination.root, state.epoch, is_open, written, parts, listed)


def _add_verdicts(tables: dict[str, TableStatus], destination: Destination) -> None:
    """Adds the verdicts of the last run. A table of which nothing was converted is in its report alone."""
    try:
        report = parse_json(destination.read(f"{HOME}/report.json"))
    except FileNotFoundError:
        return
    for verdict in report["tables"]:
        path = str(verdict["path"])
        table = tables.setdefault(path, TableStatus(path, str(verdict["name"])))
        table.state = DONE if verdict["verified"] else FAILED
        table.text = str(verdict["text"])
