"""The report in its files: report.json and files.jsonl for programs, report.html and its pages for people."""

from __future__ import annotations

import json

from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.pages import page, table_page
from coldframe.pipeline.state.journal import HOME
from coldframe.pipeline.target.destination import Destination

PAGES = f"{HOME}/report"


def write_report(report: Report, destination: Destination) -> None:
    """Writes them all; pages of tables that are no more are deleted."""
    destination.write(f"{HOME}/report.json", json.dumps(report.to_json(), indent=1, default=str).encode())
    lines = (
        (json.dumps({"table": table.path, **file.to_json()}, default=str) + "\n").encode()
        for table in report.tables
        for file in table.files
    )
    destination.write(f"{HOME}/files.jsonl", lines)
    pages = {f"{PAGES}/{number}.html": table for number, table in enumerate(report.tables, 1)}
    for name, table in pages.items():
        destination.write(name, table_page(report, table).encode(errors="replace"))
    destination.write(f"{HOME}/report.html", page(report).encode(errors="replace"))
    for found in list(destination.list(PAGES)):
        if found.name not in pages:
            destination.delete(found.name)
