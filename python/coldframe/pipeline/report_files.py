"""The report in its two files: report.json for programs, report.html for people."""

from __future__ import annotations

import json

from coldframe.pipeline.destination import Destination
from coldframe.pipeline.journal import HOME
from coldframe.pipeline.report import Report
from coldframe.pipeline.report_html import page


def write_report(report: Report, destination: Destination) -> None:
    """Writes report.json and report.html."""
    destination.write(f"{HOME}/report.json", json.dumps(report.to_json(), indent=1, default=str).encode())
    destination.write(f"{HOME}/report.html", page(report).encode(errors="replace"))
