"""The report in its two files: report.json for programs, report.html for people."""

from __future__ import annotations

import json
import os

from coldframe.pipeline.journal import replacing
from coldframe.pipeline.report import Report
from coldframe.pipeline.report_html import page


def write_report(report: Report, folder: str) -> None:
    """Writes report.json and report.html."""
    with replacing(os.path.join(folder, "report.json")) as out:
        json.dump(report.to_json(), out, indent=1, default=str)
    with replacing(os.path.join(folder, "report.html")) as out:
        out.write(page(report))
