"""The report as pages: no script, font or picture from elsewhere; light or dark as the screen is."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from coldframe.pipeline.report.model import FileReport, Report, TableReport
from coldframe.pipeline.report.verdict import COMPARED
from coldframe.pipeline.source.findings import Findings
from coldframe.pipeline.state.scratch import Rows

MAX_DAMAGE_MAPS = 200
"""Damaged files drawn on a table's page; files.jsonl has them all."""
MAX_CARDS = 40
"""Tables that the first page shows as cards;"""
MAPS_ON_CARD = 10
"""and damaged files on each of them."""
MAX_ROWS = 10_000
"""Tables on the first page."""
MAX_FILES = 10_000
"""Files listed on a table's page."""
MAX_FINDINGS = 100
"""Differences to a metastore, of a table."""
MAP_WIDTH = 600

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2129; --soft: #5d6875; --paper: #fbfcfd; --card: #ffffff;
  --line: #dde3ea; --good: #1a7f4b; --part: #b26a00; --bad: #c2302e; --cold: #2f6fb3; --pale: #d7e4f2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --soft: #97a3b0; --paper: #12161b; --card:
  #1a2027; --line: #2d3640; --good: #4cc38a; --part: #e5a445; --bad: #f0716d; --cold: #6ea8e0; --pale:
  #263a50; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color:
  var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 0; }
h3 { font-size: .95rem; margin: 1rem 0 .25rem; }
p { margin: .25rem 0; }
.soft { color: var(--soft); }
code { font: .86em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.25rem;
  margin: 1rem 0; }
.head { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; justify-content:
  space-between; }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .75rem 0; }
.figures b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.good { color: var(--good); }
.part { color: var(--part); }
.bad { color: var(--bad); }
svg { display: block; width: 100%; height: auto; margin: .35rem 0; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-top: 1px solid var(--line); vertical-align:
  top; }
th { color: var(--soft); font-weight: 500; border: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
a { color: var(--cold); }
"""

_COLOURS = {
    "converted": "var(--good)",
    "salvaged": "var(--part)",
    "quarantined": "var(--cold)",
    "failed": "var(--bad)",
    "changed": "var(--bad)",
    "withheld": "var(--bad)",
    "held": "var(--part)",
    "empty": "var(--line)",
}


def page(report: Report) -> str:
    """The first page: all tables, each with a page of its own in `report/`."""
    started = datetime.datetime.fromtimestamp(report.started, datetime.timezone.utc).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )
    body = f"""<h1>Migration to {escape(report.to)}</h1>
<p class="soft"><code>{escape(report.source)}</code> &#8594; <code>{escape(report.target)}</code></p>
<p class="soft">{started}, {report.seconds:.1f} s, damage: {escape(report.on_error)}</p>
<section class="card">
<p>{_verdict(report)}</p>
{_figures(report)}
{timeline_chart(report.timeline)}
</section>
{_metastore(report)}
{_unread(report)}
{_tables(report)}
{_left_out(report)}
{_unknown(report)}"""
    return _document(f"Migration of {report.source}", body)


def table_page(report: Report, table: TableReport) -> str:
    """One table: what became of its files, damage first."""
    body = f"""<p class="soft"><a href="../report.html">Migration to {escape(report.to)}</a></p>
{_table(table, maps=MAX_DAMAGE_MAPS)}
{_files(table)}"""
    return _document(f"{table.name}: migration of {report.source}", body)


def _document(title: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _tables(report: Report) -> str:
    """A card for each table; where there are many, a line for each, those with problems first."""
    numbered = list(enumerate(report.tables, 1))
    if len(numbered) <= MAX_CARDS:
        return "\n".join(_table(table, maps=MAPS_ON_CARD, number=number) for number, table in numbered)
    numbered.sort(key=lambda one: not (one[1].problems or one[1].verdict.exit_code))
    rows = "\n".join(
        f'<tr><td><a href="report/{number}.html">{escape(table.name)}</a></td>'
        f"<td>{escape(table.format)}</td>"
        f'<td class="n">{len(table.files):,}</td><td class="n">{len(table.problems):,}</td>'
        f'<td class="n">{table.rows:,}</td><td class="n">{size_text(table.bytes_in)}</td>'
        f'<td class="n">{size_text(table.bytes_out)}</td><td>{_check(table)}</td></tr>'
        for number, table in numbered[:MAX_ROWS]
    )
    more = len(numbered) - MAX_ROWS
    tail = f'<p class="soft">{more:,} more tables in report.json</p>' if more > 0 else ""
    return f"""<section class="card wide"><table><tr><th>table</th><th>format</th><th class="n">files</th>
<th class="n">not simply converted</th><th class="n">rows</th><th class="n">before</th><th
class="n">after</th> <th></th></tr>
{rows}</table>{tail}</section>"""


def _files(table: TableReport) -> str:
    rows = "\n".join(
        f"<tr><td><code>{escape(file.source)}</code></td><td>{escape(file.status)}</td>"
        f'<td class="n">{file.rows:,}</td><td class="n">{size_text(file.bytes_in)}</td>'
        f'<td class="n">{size_text(file.bytes_out)}</td></tr>'
        for file in table.files[:MAX_FILES]
    )
    more = len(table.files) - MAX_FILES
    tail = f'<p class="soft">{more:,} more in files.jsonl</p>' if more > 0 else ""
    return f"""<section class="card wide"><table><tr><th>file</th><th></th><th class="n">rows</th>
<th class="n">before</th><th class="n">after</th></tr>
{rows}</table>{tail}</section>"""


def timeline_chart(timeline: Mapping[str, Any]) -> str:
    """Bytes of the source a second, over time; nothing where nothing was done."""
    sizes = [int(size) for size in timeline.get("bytes", ())]
    if not any(sizes):
        return ""
    step = float(timeline["step_seconds"])
    most = max(sizes)
    width = MAP_WIDTH / len(sizes)
    bars = "".join(
        f'<rect x="{place * width:.2f}" y="{40 - 40 * size / most:.2f}" width="{max(0.5, width - 0.5):.2f}" '
        f'height="{40 * size / most:.2f}" fill="var(--cold)"/>'
        for place, size in enumerate(sizes)
        if size
    )
    label = f"at most {size_text(int(most / step))}/s, over {len(sizes) * step:.1f} s"
    return f"""<svg viewBox="0 0 {MAP_WIDTH} 58" role="img" aria-label="Throughput: {label}">
{bars}
<text x="0" y="54">{label}</text>
</svg>"""


def _verdict(report: Report) -> str:
    verdict = report.verdict
    notes = "".join(f'<p class="soft">{escape(note.text)}</p>' for note in verdict.notes)
    compared = f'<p class="soft">{escape(_sentence(COMPARED))}</p>' if verdict.is_verified else ""
    listed = f"{report.safe_to_delete:,} sources are listed in safe-to-delete.txt"
    return (
        f'<b class="{verdict.colour}">{verdict.mark} {escape(verdict.text)}</b>{compared}{notes}'
        f'<p class="soft">{listed}</p>'
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _figures(report: Report) -> str:
    figures = [
        ("tables", f"{len(report.tables):,}"),
        ("files", f"{sum(len(table.files) for table in report.tables):,}"),
        ("rows", f"{report.rows:,}"),
        ("read", size_text(sum(table.bytes_in for table in report.tables))),
        ("written", size_text(sum(table.bytes_out for table in report.tables))),
    ]
    cells = "".join(f'<div><b>{value}</b><span class="soft">{name}</span></div>' for name, value in figures)
    return f'<div class="figures">{cells}</div>'


def _table(table: TableReport, *, maps: int, number: int | None = None) -> str:
    earlier = table.totals.earlier
    notes = f'<p class="soft">{earlier} of the files were done by an earlier run.</p>' if earlier else ""
    if table.metadata:
        facts = ", ".join(f"{escape(str(key))} {escape(str(value))}" for key, value in table.metadata.items())
        notes += f'<p class="soft">{facts}</p>'
    if table.error is not None:
        notes += f'<p class="bad">{escape(table.error)}</p>'
    for what, names in (
        ("Missing", table.missing),
        ("In its directory, but none of the migration's", table.foreign),
        ("Gone from the source since an earlier run", table.vanished),
        ("A part of the table only", table.partial),
    ):
        notes += _some(what, names)
    notes += _findings(table.metastore)
    facts = f"{escape(table.format)}, {len(table.files):,} files, {table.rows:,} rows"
    if table.seconds:
        done = table.totals.bytes_now
        facts += f", {size_text(int(done / table.seconds))}/s a core"
    title = escape(table.name)
    if number is not None:
        title = f'<a href="report/{number}.html">{title}</a>'
    return f"""<section class="card">
<div class="head"><h2>{title}</h2><span>{_check(table)}</span></div>
<p class="soft">{facts}</p>
{_status_bar(table)}
{_size_bars(table)}
{notes}
{_damaged(table.problems, maps)}
</section>"""


def _some(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(f"<code>{escape(name)}</code>" for name in names[:20])
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return f'<p class="bad">{what}: {shown}{more}</p>'


def _findings(findings: Findings) -> str:
    if not len(findings):
        return ""
    rows = "".join(
        f'<li class="{"bad" if one.is_wrong else "part"}">{escape(str(one))}</li>'
        for one in findings.shown[:MAX_FINDINGS]
    )
    more = len(findings) - MAX_FINDINGS
    tail = f'<p class="soft">{more:,} more in report.json</p>' if more > 0 else ""
    return f"<h3>Not as the metastore has it</h3><ul>{rows}</ul>{tail}"


def _metastore(report: Report) -> str:
    if report.metastore is None:
        return ""
    found = report.metastore
    return f"""<section class="card"><h2>Hive metastore</h2>
<p class="soft">{escape(found.summary)}</p>
{_findings(found.findings)}</section>"""


def _check(table: TableReport) -> str:
    verdict = table.verdict
    return f'<span class="{verdict.colour}">{verdict.mark} {escape(verdict.text)}</span>'


def _status_bar(table: TableReport) -> str:
    total = max(1, len(table.files))
    x = 0.0
    shapes: list[str] = []
    legend: list[str] = []
    for status, colour in _COLOURS.items():
        count = table.count(status)
        if not count:
            continue
        width = MAP_WIDTH * count / total
        shapes.append(f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="14" fill="{colour}"/>')
        legend.append(f"{count:,} {status}")
        x += width
    label = escape(", ".join(legend)) or "no files"
    return f"""<svg viewBox="0 0 {MAP_WIDTH} 34" role="img" aria-label="Files: {label}">
{"".join(shapes)}
<text x="0" y="30">{label}</text>
</svg>"""


def _size_bars(table: TableReport) -> str:
    most = max(1, table.bytes_in, table.bytes_out)
    rows: list[str] = []
    for y, name, size, colour in (
        (0, "before", table.bytes_in, "var(--pale)"),
        (18, "after", table.bytes_out, "var(--cold)"),
    ):
        width = 420 * size / most
        rows.append(
            f'<text x="0" y="{y + 11}">{name}</text>'
            f'<rect x="52" y="{y}" width="{width:.2f}" height="14" rx="2" fill="{colour}"/>'
            f'<text x="{58 + width:.2f}" y="{y + 11}">{size_text(size)}</text>'
        )
    label = f"{size_text(table.bytes_in)} before, {size_text(table.bytes_out)} after"
    return f'<svg viewBox="0 0 {MAP_WIDTH} 34" role="img" aria-label="{label}">{"".join(rows)}</svg>'


def _damaged(files: Rows[FileReport] | list[FileReport], most: int) -> str:
    if not files:
        return ""
    maps = "\n".join(_damaged_file(file) for file in files[:most])
    more = len(files) - most
    where = "on the table's page and in files.jsonl" if most < MAX_DAMAGE_MAPS else "in files.jsonl"
    tail = f'<p class="soft">{more:,} more {where}</p>' if more > 0 else ""
    return f"<h3>Damage</h3>\n{maps}\n{tail}"


def _damaged_file(file: FileReport) -> str:
    lost = "unknown" if file.rows_lost is None else f"{file.rows_lost:,}"
    kept = f"{file.rows:,} rows saved, {lost} lost" if file.status == "salvaged" else escape(file.status)
    kept += f", copy in <code>{escape(file.quarantine)}</code>" if file.quarantine else ""
    error = f'<p class="bad">{escape(file.error)}</p>' if file.error else ""
    facts = f"{size_text(file.bytes_in)}, {kept}"
    return f"""<div><p><code>{escape(file.source)}</code> <span class="soft">{facts}</span></p>
{_byte_map(file)}{error}{_damage_rows(file)}</div>"""


def _byte_map(file: FileReport) -> str:
    """The file from its first byte to its last, the lost stretches marked, each wide enough to be seen."""
    if not file.damage or not file.bytes_in:
        return ""
    marks: list[str] = []
    for lost in file.damage:
        start = MAP_WIDTH * min(1.0, int(lost.get("offset") or 0) / file.bytes_in)
        width = max(2.0, MAP_WIDTH * int(lost.get("length") or 0) / file.bytes_in)
        x = min(start, MAP_WIDTH - 2.0)
        width = min(width, MAP_WIDTH - x)
        title = escape(f"{lost.get('structure')}: {lost.get('reason')}")
        marks.append(
            f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="12" fill="var(--bad)">'
            f"<title>{title}</title></rect>"
        )
    return (
        f'<svg viewBox="0 0 {MAP_WIDTH} 12" role="img" aria-label="Where the file is damaged">'
        f'<rect x="0" y="0" width="{MAP_WIDTH}" height="12" fill="var(--pale)"/>{"".join(marks)}</svg>'
    )


def _damage_rows(file: FileReport) -> str:
    if not file.damage:
        return ""
    rows = "".join(
        f'<tr><td class="n">{_number(lost.get("offset"))}</td>'
        f'<td class="n">{_number(lost.get("length"))}</td>'
        f'<td class="n">{_number(lost.get("rows_lost"))}</td><td>{escape(str(lost.get("structure")))}</td>'
        f"<td>{escape(str(lost.get('reason')))}</td></tr>"
        for lost in file.damage[:50]
    )
    more = (
        f'<p class="soft">{len(file.damage) - 50:,} more in files.jsonl</p>' if len(file.damage) > 50 else ""
    )
    return (
        '<div class="wide"><table><tr><th class="n">offset</th><th class="n">bytes</th>'
        '<th class="n">rows lost</th>'
        f"<th>structure</th><th>reason</th></tr>{rows}</table></div>{more}"
    )


def _unknown(report: Report) -> str:
    return _names("Left alone", "of other formats", report.unknown)


def _left_out(report: Report) -> str:
    """What could be read, and was not asked for, or passed over."""
    kept = [f"{one.source}: {one}" for one in report.left_out if one.blocks]
    named = [f"{one.source}: {one}" for one in report.left_out if one.visible and one.named]
    unseen = [f"{one.source}: {one}" for one in report.left_out if not one.visible]
    hidden = f"of {report.hidden:,} hidden names"
    return "\n".join(
        (
            _names("Not asked for", "parts of directories, which are not on the list for that", kept),
            _names("Left behind", "parts of directories, as you said", named),
            _names("In files alone", "parts of directories that readers are not shown", unseen),
            _names("Passed over", hidden, report.hidden_names),
        )
    )


def _unread(report: Report) -> str:
    places = [f"{one.relative}: {one.reason}" for one in report.unread]
    return _names("Not read", "places that could not be looked at: their rows are not in the target", places)


def _names(title: str, what: str, names: Sequence[str]) -> str:
    """A section of names; nothing where there are none."""
    if not names:
        return ""
    items = "".join(f"<li><code>{escape(name)}</code></li>" for name in names[:100])
    more = f'<p class="soft">{len(names) - 100:,} more in report.json</p>' if len(names) > 100 else ""
    return f"""<section class="card"><h2>{title}</h2>
<p class="soft">{len(names):,} {what}</p><ul>{items}</ul>{more}</section>"""


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "unknown"


def size_text(size: int) -> str:
    """Bytes as people read them."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{size:,} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"
