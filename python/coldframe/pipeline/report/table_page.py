"""A table's page of the report: what became of its files, problems first, damage that is alike together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from coldframe.byte_size import size_text
from coldframe.pipeline.report.figures import (
    byte_map,
    duration_text,
    grouped,
    number_text,
    rows_lost_text,
    size_bars,
    status_bar,
    table,
)
from coldframe.pipeline.report.model import FINE, STATUSES, FileReport, Report, TableReport
from coldframe.pipeline.report.pages import check, document, findings_list, lost_text

__all__ = ["table_page"]

MAX_PROBLEMS = 200
"""Maximum number of files with problems that are listed; files.jsonl has them all."""
MAX_KINDS = 50
"""Kinds of damage of a table, and of a file."""
MAX_PLACES = 10
"""Maximum number of damaged places of a file that are listed with their offsets."""
MAX_FILES = 10_000
"""Files listed, """
DRAWN_FILES = 500
"""and those of them that are drawn before anybody asks for more."""


def table_page(report: Report, one: TableReport) -> str:
    """The page of one table."""
    body = f"""<header><p><a href="../report.html">Migration to {escape(report.to)}</a></p>
<h1>{escape(one.name)}</h1></header>
{_summary(one)}
{_damage(one)}
{_problems(one)}
{_files(one)}"""
    return document(f"{one.name}: migration of {report.source}", body)


def _summary(one: TableReport) -> str:
    facts = f"{escape(one.format)}, {len(one.files):,} files, {one.rows:,} rows"
    if one.seconds:
        done = one.totals.bytes_now
        facts += f", {duration_text(one.seconds)} of work, {size_text(int(done / one.seconds))}/s a core"
    counts = {status: one.count(status) for status in STATUSES}
    return f"""<section class="card{" wrong" if one.verdict.exit_code else ""}">
<p class="headline">{check(one)}</p>
<p class="soft">{facts}</p>
{status_bar(counts)}
{size_bars(one.bytes_in, one.bytes_out)}
{_notes(one)}
</section>"""


def _notes(one: TableReport) -> str:
    earlier = one.totals.earlier
    notes = f'<p class="soft">{earlier:,} of the files were done by an earlier run.</p>' if earlier else ""
    if one.metadata:
        facts = ", ".join(f"{escape(str(key))} {escape(str(value))}" for key, value in one.metadata.items())
        notes += f'<p class="soft">{facts}</p>'
    if one.error is not None:
        notes += f'<p class="bad">{escape(one.error)}</p>'
    for what, names in (
        ("Missing", one.missing),
        ("In its directory, but none of the migration's", one.foreign),
        ("Gone from the source since an earlier run", one.vanished),
        ("A part of the table only", one.partial),
    ):
        notes += _some(what, names)
    return notes + findings_list(one.metastore)


def _some(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(f"<code>{escape(name)}</code>" for name in names[:20])
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return f'<p class="bad">{what}: {shown}{more}</p>'


def _damage(one: TableReport) -> str:
    """All its damage, what is alike as one line."""
    found: Iterator[Mapping[str, Any]] = (lost for file in one.problems for lost in file.damage)
    kinds = grouped(found)
    if not kinds:
        return ""
    rows = (
        f'<tr><td class="n">{count:,}</td><td class="n">{rows_lost_text(lost)}</td>'
        f"<td>{escape(structure)}</td><td>{escape(reason)}</td></tr>"
        for structure, reason, count, lost in kinds[:MAX_KINDS]
    )
    more = len(kinds) - MAX_KINDS
    tail = f'<p class="soft">{more:,} more kinds in files.jsonl</p>' if more > 0 else ""
    headers = ["#places", "#rows lost", "structure", "reason"]
    return f"""<section class="card"><h2>Damage: {lost_text(one)} rows lost</h2>
{table(headers, rows, "Kinds of damage")}{tail}</section>"""


def _problems(one: TableReport) -> str:
    """The files that were not simply converted."""
    files = one.problems
    if not files:
        return ""
    told = "\n".join(_problem(file) for file in islice(files, MAX_PROBLEMS))
    more = len(files) - MAX_PROBLEMS
    tail = f'<p class="soft">{more:,} more in the list below and in files.jsonl</p>' if more > 0 else ""
    return f"""<section class="card"><h2>Files with problems: {len(files):,}</h2>
{told}
{tail}</section>"""


def _problem(file: FileReport) -> str:
    lost = number_text(file.rows_lost)
    kept = f"{file.rows:,} rows saved, {lost} lost" if file.status == "salvaged" else escape(file.status)
    kept += f", copy in <code>{escape(file.quarantine)}</code>" if file.quarantine else ""
    error = f'<p class="bad">{escape(file.error)}</p>' if file.error else ""
    facts = f"{size_text(file.bytes_in)}, {kept}"
    return f"""<div><p><code>{escape(file.source)}</code> <span class="soft">{facts}</span></p>
{byte_map(file.damage, file.bytes_in)}{error}{_places(file)}</div>"""


def _places(file: FileReport) -> str:
    """Its damage: place by place where there are few, else kind by kind."""
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


def _files(one: TableReport) -> str:
    """A line a file. A browser draws the first of very many at once, the others when they are asked for."""
    lines = [_file_cells(file) for file in islice(one.files, MAX_FILES)]
    rows = (
        f"<tr{' data-wrong' if wrong else ''}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for wrong, *cells in lines[:DRAWN_FILES]
    )
    more = len(one.files) - MAX_FILES
    tail = f'<p class="soft">{more:,} more in files.jsonl</p>' if more > 0 else ""
    if rest := lines[DRAWN_FILES:]:
        data = json.dumps(rest, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
        tail += f'<script type="application/json">{data}</script>'
        tail += f'<noscript><p class="soft">{len(rest):,} more in files.jsonl</p></noscript>'
    headers = ["file", "outcome", "#rows", "#before", "#after"]
    return f"""<section class="card"><h2>Files</h2>
{table(headers, rows, "Files", classes="sorted files", filter_by="filter files")}{tail}</section>"""


def _file_cells(file: FileReport) -> list[Any]:
    wrong = 0 if file.status in FINE else 1
    sizes = size_text(file.bytes_in), size_text(file.bytes_out)
    return [wrong, file.source, file.status, f"{file.rows:,}", *sizes]
