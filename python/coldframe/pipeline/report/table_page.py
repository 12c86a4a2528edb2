"""A table's page of the report: the outcomes of its files, problems first, similar damage grouped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from coldframe.byte_size import size_text
from coldframe.pipeline.report.figures import (
    byte_map,
    duration_text,
    grouped,
    long_table,
    number_text,
    rest_of,
    rows_lost_text,
    section,
    size_bars,
    status_bar,
    table,
)
from coldframe.pipeline.report.model import FINE, STATUSES, FileReport, Report, TableReport
from coldframe.pipeline.report.pages import check, document, findings_list, lost_text

MAX_PROBLEMS = 200
"""Maximum number of files with problems that are listed; files.jsonl has them all."""
MAX_KINDS = 50
"""Maximum number of kinds of damage of a table, and of a file."""
MAX_PLACES = 10
"""Maximum number of damaged places of a file that are listed with their offsets."""
MAX_FILES = 10_000
"""Maximum number of listed files."""
_HEADERS = ("file", "outcome", "#rows", "#before", "#after")


def table_page(report: Report, outcome: TableReport) -> str:
    """The page of one table."""
    body = f"""<header><p><a href="../report.html">Migration to {escape(report.to)}</a></p>
<h1>{escape(outcome.name)}</h1></header>
{_parts(outcome)}"""
    return document(f"{outcome.name}: migration of {report.source}", body)


def shared_page(report: Report, outcomes: Sequence[tuple[str, TableReport]]) -> str:
    """The page of several tables, each with its anchor. A link to an anchor shows that table only."""
    sections = "\n".join(
        f'<section class="one" id="{anchor}"><h2>{escape(outcome.name)}</h2>\n{_brief(outcome)}</section>'
        for anchor, outcome in outcomes
    )
    body = f"""<header><p><a href="../report.html">Migration to {escape(report.to)}</a></p>
<h1>Tables without problems</h1></header>
{sections}"""
    return document(f"Tables: migration of {report.source}", body)


def _brief(outcome: TableReport) -> str:
    """A table without problems: its figures, and a line for each of its files."""
    sizes = f"{size_text(outcome.bytes_in)} &#8594; {size_text(outcome.bytes_out)}"
    rows = (
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _file_cells(file)[1:])}</tr>"
        for file in outcome.files
    )
    return f"""<div class="card"><p>{check(outcome)}
<span class="soft">{_figures(outcome)}, {sizes}</span></p>
{_notes(outcome)}
{table(_HEADERS, rows, f"Files of {outcome.name}", classes="files")}</div>"""


def _parts(outcome: TableReport) -> str:
    return f"{_summary(outcome)}\n{_damage(outcome)}\n{_problems(outcome)}\n{_files(outcome)}"


def _figures(outcome: TableReport) -> str:
    text = f"{escape(outcome.format)}, {len(outcome.files):,} files, {outcome.rows:,} rows"
    if outcome.seconds:
        done = outcome.totals.bytes_now
        text += (
            f", {duration_text(outcome.seconds)} of work, {size_text(int(done / outcome.seconds))}/s a core"
        )
    return text


def _summary(outcome: TableReport) -> str:
    counts = {status: outcome.count(status) for status in STATUSES}
    return f"""<section class="card{" wrong" if outcome.verdict.exit_code else ""}">
<p class="headline">{check(outcome)}</p>
<p class="soft">{_figures(outcome)}</p>
{status_bar(counts)}
{size_bars(outcome.bytes_in, outcome.bytes_out)}
{_notes(outcome)}
</section>"""


def _notes(outcome: TableReport) -> str:
    earlier = outcome.totals.earlier
    notes = f'<p class="soft">{earlier:,} of the files were done by an earlier run.</p>' if earlier else ""
    if outcome.metadata:
        text = ", ".join(
            f"{escape(str(key))} {escape(str(value))}" for key, value in outcome.metadata.items()
        )
        notes += f'<p class="soft">{text}</p>'
    if outcome.error is not None:
        notes += f'<p class="bad">{escape(outcome.error)}</p>'
    for what, names in (
        ("Missing", outcome.missing),
        ("In its directory, but not written by the migration", outcome.foreign),
        ("Gone from the source since an earlier run", outcome.vanished),
        ("A part of the table only", outcome.partial),
    ):
        notes += _some(what, names)
    return notes + findings_list(outcome.metastore)


def _some(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(f"<code>{escape(name)}</code>" for name in names[:20])
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return f'<p class="bad">{what}: {shown}{more}</p>'


def _damage(outcome: TableReport) -> str:
    """All damage of the table, one line per kind."""
    places: Iterator[Mapping[str, Any]] = (lost for file in outcome.problems for lost in file.damage)
    kinds = grouped(places)
    if not kinds:
        return ""
    rows = (
        f'<tr><td class="n">{count:,}</td><td class="n">{rows_lost_text(lost)}</td>'
        f"<td>{escape(structure)}</td><td>{escape(reason)}</td></tr>"
        for structure, reason, count, lost in kinds[:MAX_KINDS]
    )
    drawn = table(["#places", "#rows lost", "structure", "reason"], rows, "Kinds of damage")
    tail = rest_of(len(kinds), MAX_KINDS, "kinds in files.jsonl")
    return section(f"Damage: {lost_text(outcome)} rows lost", drawn + tail)


def _problems(outcome: TableReport) -> str:
    """The files that were not simply converted."""
    files = outcome.problems
    if not files:
        return ""
    items = "\n".join(_problem(file) for file in islice(files, MAX_PROBLEMS))
    tail = rest_of(len(files), MAX_PROBLEMS, "in the list below and in files.jsonl")
    return section(f"Files with problems: {len(files):,}", f"{items}\n{tail}")


def _problem(file: FileReport) -> str:
    lost = number_text(file.rows_lost)
    kept = f"{file.rows:,} rows saved, {lost} lost" if file.status == "salvaged" else escape(file.status)
    kept += f", copy in <code>{escape(file.quarantine)}</code>" if file.quarantine else ""
    error = f'<p class="bad">{escape(file.error)}</p>' if file.error else ""
    text = f"{size_text(file.bytes_in)}, {kept}"
    return f"""<div><p><code>{escape(file.source)}</code> <span class="soft">{text}</span></p>
{byte_map(file.damage, file.bytes_in)}{error}{_places(file)}</div>"""


def _places(file: FileReport) -> str:
    """The damage of a file: by place if there are few places, else by kind."""
    if not file.damage:
        return ""
    if len(file.damage) <= MAX_PLACES:
        places = (
            f'<tr><td class="n">{number_text(lost.get("offset"))}</td>'
            f'<td class="n">{number_text(lost.get("length"))}</td>'
            f'<td class="n">{number_text(lost.get("rows_lost"))}</td><td>{escape(str(lost.get("structure")))}'
            f"</td><td>{escape(str(lost.get('reason')))}</td></tr>"
            for lost in file.damage
        )
        headers = ["#offset", "#bytes", "#rows lost", "structure", "reason"]
        return table(headers, places, f"Damage of {file.source}")
    kinds = grouped(file.damage)
    items = "".join(
        f"<li>{count:,} places, {rows_lost_text(lost)} rows lost: {escape(structure)}: {escape(reason)}</li>"
        for structure, reason, count, lost in kinds[:MAX_KINDS]
    )
    more = len(kinds) - MAX_KINDS
    return f"<ul>{items}{f'<li>{more:,} more kinds in files.jsonl</li>' if more > 0 else ''}</ul>"


def _files(outcome: TableReport) -> str:
    """A line per file."""
    lines = (_file_cells(file) for file in islice(outcome.files, MAX_FILES))
    about = {"classes": "files", "filter_by": "filter files", "rest": "files.jsonl"}
    drawn = long_table(_HEADERS, lines, "Files", **about)
    return section("Files", drawn + rest_of(len(outcome.files), MAX_FILES, "in files.jsonl"))


def _file_cells(file: FileReport) -> tuple[Any, ...]:
    sizes = size_text(file.bytes_in), size_text(file.bytes_out)
    return file.status not in FINE, file.source, file.status, f"{file.rows:,}", *sizes
