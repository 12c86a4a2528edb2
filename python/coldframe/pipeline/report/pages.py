"""The report's first page: verdict, problems, all tables; each table has its own page.

The pages load no scripts, fonts or pictures. They follow the system's light or dark mode, and are complete
without scripts, which only sort and filter.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from coldframe.byte_size import size_text
from coldframe.html_page import html_page
from coldframe.pipeline.report.figures import (
    Cell,
    duration_text,
    headline,
    long_table,
    rest_of,
    rows_lost_text,
    section,
    size_bars,
    status_bar,
    table,
    timeline_chart,
)
from coldframe.pipeline.report.model import Report, TableReport
from coldframe.pipeline.report.verdict import COMPARED
from coldframe.pipeline.source.findings import Findings

MAX_PROBLEMS = 100
"""Maximum number of tables with problems that are listed above the list of all tables."""
MAX_ROWS = 100_000
"""Maximum number of tables on the first page."""
OWN_PAGES = 100
"""Of more tables than these, those with few files and no problem share pages."""
SHARED = 100
"""Maximum number of tables on a shared page."""
SHARED_FILES = 20
"""Maximum number of files of a table on a shared page."""
MAX_FINDINGS = 100
"""Maximum number of findings on a table."""
MAX_RUNS = 30
"""Maximum number of runs in the trend."""


def page(report: Report) -> str:
    """The first page. Each table has its own page in `report/`."""
    started, links = _time(report.started), places(report.tables)
    body = f"""<header><h1>Migration to {escape(report.to)}</h1>
<p class="soft"><code>{escape(report.source)}</code> &#8594; <code>{escape(report.target)}</code></p>
<p class="soft">{started}, {duration_text(report.seconds)}, damage: {escape(report.on_error)}</p></header>
{_headline(report)}
{_problems(report, links)}
{_metastore(report)}
{_unread(report)}
{_tables(report, links)}
{_left_out(report)}
{_trend(report)}"""
    return document(f"Migration of {report.source}", body)


def places(tables: Sequence[TableReport]) -> list[str]:
    """The link to each table's page; on shared pages with an anchor."""
    links: list[str] = []
    shared = 0
    for number, outcome in enumerate(tables, 1):
        if len(tables) <= OWN_PAGES or _is_wrong(outcome) or len(outcome.files) > SHARED_FILES:
            links.append(f"report/{number}.html")
        else:
            links.append(f"report/tables-{shared // SHARED + 1}.html#t{number}")
            shared += 1
    return links


@cache
def _asset(name: str) -> str:
    return (files("coldframe.pipeline.report") / name).read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """A page around its content."""
    return html_page(
        title, f"<main>\n{body}\n</main>", style=_asset("report.css"), script=_asset("report.js")
    )


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def check(outcome: TableReport) -> str:
    """The verdict on a table."""
    verdict = outcome.verdict
    return f'<span class="{verdict.colour}">{verdict.mark} {escape(verdict.text)}</span>'


def lost_text(outcome: TableReport) -> str:
    """How many rows a table lost to damage."""
    return rows_lost_text([file.rows_lost for file in outcome.problems if file.damage])


def _is_wrong(outcome: TableReport) -> bool:
    return bool(outcome.problems) or not outcome.verified


def _headline(report: Report) -> str:
    """The verdict and the main figures."""
    verdict = report.verdict
    tables = report.tables
    sources = sum(len(outcome.files) for outcome in tables)
    wrong = sum(_is_wrong(outcome) for outcome in tables)
    lost = [file.rows_lost for outcome in tables for file in outcome.problems if file.damage]
    kept_off = sum(outcome.blocks for outcome in report.left_out)
    figures = [
        ("rows in the target", f"{report.rows:,}", ""),
        ("rows lost to damage", rows_lost_text(lost), "bad" if lost else ""),
        (
            "tables without problems",
            f"{len(tables) - wrong:,} of {len(tables):,}",
            "bad" if wrong else "",
        ),
        ("sources safe to delete", f"{report.safe_to_delete:,} of {sources:,}", ""),
        ("parts not requested", f"{kept_off:,}", "part" if kept_off else ""),
        ("read", size_text(report.bytes_in), ""),
        ("written", size_text(sum(outcome.bytes_out for outcome in tables)), ""),
    ]
    notes = "".join(f'<p class="soft">{escape(note.text)}</p>' for note in verdict.notes)
    compared = f'<p class="soft">{escape(_sentence(COMPARED))}</p>' if verdict.is_verified else ""
    content = f"""{compared}{notes}
<p class="soft">{report.safe_to_delete:,} sources are listed in <code>safe-to-delete.txt</code></p>
{status_bar(report.statuses)}
{size_bars(report.bytes_in, sum(outcome.bytes_out for outcome in tables))}
{timeline_chart(report.timeline)}"""
    return headline(verdict, figures, content)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _problems(report: Report, links: Sequence[str]) -> str:
    """Links to tables with problems; failed tables come first."""
    wrong = [(at, broken) for at, broken in zip(links, report.tables, strict=True) if _is_wrong(broken)]
    if not wrong:
        return ""
    wrong.sort(key=lambda linked: -linked[1].verdict.exit_code)
    items = "".join(
        f'<li><a href="{at}">{escape(broken.name)}</a>: {check(broken)}{_first_error(broken)}</li>'
        for at, broken in wrong[:MAX_PROBLEMS]
    )
    tail = rest_of(len(wrong), MAX_PROBLEMS, "in the table below")
    title = f"Problems in {len(wrong):,} of {len(report.tables):,} tables"
    return section(title, f"<ul>{items}</ul>{tail}", is_wrong=True)


def _first_error(outcome: TableReport) -> str:
    """The first error, in a few words."""
    error = outcome.error or next((file.error for file in outcome.problems if file.error), None)
    if error is None:
        return ""
    return (
        f'<br><span class="soft">{escape(error if len(error) <= 300 else error[:299] + chr(0x2026))}</span>'
    )


def _tables(report: Report, links: Sequence[str]) -> str:
    """A line per table; tables with problems come first."""
    linked = [(at, outcome, _is_wrong(outcome)) for at, outcome in zip(links, report.tables, strict=True)]
    linked.sort(key=lambda some: not some[2])
    lines = ((wrong, *_table_cells(at, outcome)) for at, outcome, wrong in linked[:MAX_ROWS])
    headers = [
        "table",
        "format",
        "#files",
        "#with problems",
        "#rows",
        "#rows lost",
        "#before",
        "#after",
        "verdict",
    ]
    drawn = long_table(headers, lines, "Tables", filter_by="filter tables", rest="report.json")
    return section("Tables", drawn + rest_of(len(linked), MAX_ROWS, "tables in report.json"))


def _table_cells(link: str, outcome: TableReport) -> list[Cell]:
    verdict = outcome.verdict
    return [
        (outcome.name, link, ""),
        outcome.format,
        f"{len(outcome.files):,}",
        f"{len(outcome.problems):,}",
        f"{outcome.rows:,}",
        lost_text(outcome),
        size_text(outcome.bytes_in),
        size_text(outcome.bytes_out),
        (f"{verdict.mark} {verdict.text}", "", verdict.colour),
    ]


def findings_list(findings: Findings) -> str:
    """The discrepancies with a metastore."""
    if not len(findings):
        return ""
    rows = "".join(
        f'<li class="{"bad" if finding.is_wrong else "part"}">{escape(str(finding))}</li>'
        for finding in findings.shown[:MAX_FINDINGS]
    )
    tail = rest_of(len(findings), MAX_FINDINGS, "in report.json")
    return f"<h3>Differences from the metastore</h3><ul>{rows}</ul>{tail}"


def _metastore(report: Report) -> str:
    if report.metastore is None:
        return ""
    every = Findings()
    for findings in (report.metastore.findings, *(outcome.metastore for outcome in report.tables)):
        for outcome in findings:
            every.add(outcome)
    summary = f'<p class="soft">{escape(report.metastore.summary)}</p>'
    return section("Hive metastore", f"{summary}\n{findings_list(every)}")


def _left_out(report: Report) -> str:
    """Contents of the source that were not requested, or skipped."""
    kept = [f"{item.source}: {item}" for item in report.left_out if item.blocks]
    named = [f"{item.source}: {item}" for item in report.left_out if item.visible and item.named]
    unseen = [f"{item.source}: {item}" for item in report.left_out if not item.visible]
    hidden = f"of {report.hidden:,} hidden names"
    return "\n".join(
        (
            _names("Not requested", "parts of directories, which are therefore not on the list", kept),
            _names("Left behind", "parts of directories, as requested", named),
            _names("Not shown to readers", "parts of directories that the engine does not show", unseen),
            _names("Skipped", hidden, report.hidden_names),
            _names("Ignored", "files of other formats", report.unknown),
        )
    )


def _unread(report: Report) -> str:
    places = [f"{place.relative}: {place.reason}" for place in report.unread]
    return _names("Not read", "places that could not be read: their rows are not in the target", places)


def _names(title: str, what: str, names: Sequence[str]) -> str:
    """A section of names; empty if there are none."""
    if not names:
        return ""
    items = "".join(f"<li><code>{escape(name)}</code></li>" for name in names[:100])
    more = rest_of(len(names), 100, "in report.json")
    return section(title, f'<p class="soft">{len(names):,} {what}</p><ul>{items}</ul>{more}')


def _trend(report: Report) -> str:
    """The runs into this target, the latest first; empty if this is the only run."""
    runs = report.runs[-MAX_RUNS:]
    if len(runs) < 2:
        return ""
    rows = (_run_row(run) for run in reversed(runs))
    headers = [
        "run",
        "#took",
        "#files",
        "#with problems",
        "#rows",
        "#rows lost",
        "#safe to delete",
        "verdict",
    ]
    return section("Runs", table(headers, rows, "Runs into this target"))


def _run_row(run: Mapping[str, Any]) -> str:
    return (
        f'<tr><td>{_time(run["started"])}</td><td class="n">{duration_text(run["seconds"])}</td>'
        f'<td class="n">{run["files"]:,}</td><td class="n">{run["problems"]:,}</td>'
        f'<td class="n">{run["rows"]:,}</td><td class="n">{escape(run["rows_lost"])}</td>'
        f'<td class="n">{run["safe_to_delete"]:,}</td>'
        f'<td><span class="{escape(run["colour"])}">{escape(run["verdict"])}</span></td></tr>'
    )
