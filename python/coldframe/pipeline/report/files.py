"""The files of the report: report.json, files.jsonl and runs.jsonl for programs, pages for people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from coldframe.json_input import parse_json
from coldframe.pipeline.file_access import StorageOptions, root_of
from coldframe.pipeline.records import Json
from coldframe.pipeline.report.figures import rows_lost_text
from coldframe.pipeline.report.model import Report, TableReport
from coldframe.pipeline.report.pages import page, places
from coldframe.pipeline.report.table_page import shared_page, table_page
from coldframe.pipeline.sink.destination import HOME, Destination, open_destination

PAGES = f"{HOME}/report"
REPORT = f"{HOME}/report.json"
RUNS = f"{HOME}/runs.jsonl"
MAX_RUNS = 1000
"""Maximum number of runs in runs.jsonl."""


def write_report(report: Report, destination: Destination) -> None:
    """Writes all files, and deletes the pages of tables that no longer exist."""
    report.runs = [*_earlier_runs(destination), _run(report)][-MAX_RUNS:]
    destination.write(RUNS, "".join(json.dumps(run) + "\n" for run in report.runs).encode())
    destination.write(REPORT, (text.encode() for text in report_json(report)))
    lines = (
        (json.dumps({"table": table.path, **file.to_json()}, default=str) + "\n").encode()
        for table in report.tables
        for file in table.files
    )
    destination.write(f"{HOME}/files.jsonl", lines)
    pages: dict[str, list[tuple[str, TableReport]]] = {}
    for place, table in zip(places(report.tables), report.tables, strict=True):
        name, _, anchor = place.partition("#")
        pages.setdefault(f"{HOME}/{name}", []).append((anchor, table))
    for name, some in pages.items():
        (anchor, table), *_ = some
        text = shared_page(report, some) if anchor else table_page(report, table)
        destination.write(name, text.encode(errors="replace"))
    destination.write(f"{HOME}/report.html", page(report).encode(errors="replace"))
    for stored in list(destination.list(PAGES)):
        if stored.name not in pages:
            destination.delete(stored.name)


def report_json(report: Report) -> Iterator[str]:
    """report.json in pieces: what is known of the run, then a line for each table."""
    yield json.dumps(report.about(), indent=1, default=str).removesuffix("\n}") + ',\n "tables": ['
    separator = "\n  "
    for table in report.tables:
        yield separator + json.dumps(table.to_json(), default=str)
        separator = ",\n  "
    yield "\n ]\n}"


def write_definitions(tables: Sequence[Json], destination: Destination) -> None:
    """Writes the definitions that a run took from a metastore: one line of JSON for each table."""
    destination.write(
        f"{HOME}/definitions.jsonl", "".join(f"{json.dumps(table)}\n" for table in tables).encode()
    )


def last_report(dst: str | os.PathLike[str], storage_options: StorageOptions = None) -> Json | None:
    """The report.json of the last run into `dst` that ended; None if there is none."""
    try:
        report: Json = parse_json(open_destination(root_of(dst), storage_options).read(REPORT))
    except FileNotFoundError:
        return None
    return report


def last_run(destination: Destination) -> Json | None:
    """The line of the last run that ended; None if there is none."""
    return next(iter(_earlier_runs(destination)[-1:]), None)


def _earlier_runs(destination: Destination) -> list[Json]:
    """The earlier runs; skips lines that a power cut has torn."""
    try:
        lines = list(destination.lines(RUNS))
    except FileNotFoundError:
        return []
    runs = []
    for line in lines:
        try:
            run = parse_json(line)
        except ValueError:
            continue
        if isinstance(run, dict) and run.keys() >= _run(Report("", "", "", "", [])).keys():
            runs.append(run)
    return runs


def _run(report: Report) -> Json:
    """A line of runs.jsonl."""
    verdict = report.verdict
    problems = [file for table in report.tables for file in table.problems]
    return {
        "started": report.started,
        "seconds": report.seconds,
        "files": sum(len(table.files) for table in report.tables),
        "problems": len(problems),
        "rows": report.rows,
        "rows_lost": rows_lost_text([file.rows_lost for file in problems if file.damage]),
        "safe_to_delete": report.safe_to_delete,
        "verdict": verdict.text,
        "colour": verdict.colour,
    }
