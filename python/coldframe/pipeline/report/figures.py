"""Sizes, durations and small charts of the report: as text, and as HTML without scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, TypeAlias

from coldframe.byte_size import size_text
from coldframe.html_page import json_for_html
from coldframe.pipeline.report.model import STATUSES
from coldframe.pipeline.report.verdict import Verdict

Cell: TypeAlias = str | tuple[str, str, str]
"""A text; or a text, its link and its class, of which either may be empty."""
DRAWN_ROWS = 500
"""Lines of a table that are drawn before the reader asks for more."""
MAX_MARKS = 200
"""Maximum number of damaged places on the map of a file."""


def duration_text(seconds: float) -> str:
    """A duration, for people: 0.8 s, 42 s, 3 min 12 s, 2 h 5 min, 3 d 4 h."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, lower, size, of_lower in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            rest = whole % size // of_lower
            return f"{whole // size:,} {unit} {rest} {lower}" if rest else f"{whole // size:,} {unit}"
    return f"{whole} s"


def number_text(value: object) -> str:
    """A number, or `unknown`."""
    return f"{value:,}" if isinstance(value, int) else "unknown"


def rows_lost_text(lost: Iterable[int | None]) -> str:
    """A sum of possibly unknown parts: `5`, `5 or more`, `unknown`."""
    known, unknown = 0, False
    for rows in lost:
        known, unknown = known + (rows or 0), unknown or rows is None
    return f"{known:,}" if not unknown else f"\u2265 {known:,}" if known else "unknown"


def section(title: str, content: str, *, is_wrong: bool = False) -> str:
    """A part of a page."""
    return f"""<section class="card{" wrong" if is_wrong else ""}"><h2>{escape(title)}</h2>
{content}</section>"""


def headline(verdict: Verdict, figures: Iterable[tuple[str, str, str]], content: str) -> str:
    """The first part of a page: the verdict, its main figures, and more."""
    return f"""<section class="card{" wrong" if verdict.exit_code else ""}">
<p class="headline {verdict.colour}">{verdict.mark} {escape(verdict.text)}</p>
{large_figures(figures)}
{content}
</section>"""


def large_figures(figures: Iterable[tuple[str, str, str]]) -> str:
    """Figures with their names: name, value and class, which may be empty."""
    cells = "".join(
        f'<div><b class="{colour}">{value}</b><span class="soft">{name}</span></div>'
        for name, value, colour in figures
    )
    return f'<div class="figures">{cells}</div>'


def rest_of(count: int, shown: int, where: str) -> str:
    """How many of `count` lines a page leaves out, and where they are; empty if there are none."""
    return f'<p class="soft">{count - shown:,} more {where}</p>' if count > shown else ""


def status_bar(counts: Mapping[str, int]) -> str:
    """A bar with the number of files by status."""
    total = max(1, sum(counts.values()))
    shown = [(status, counts[status]) for status in STATUSES if counts.get(status)]
    parts = "".join(
        f'<i class="{status}" style="width:{100 * count / total:.2f}%"></i>' for status, count in shown
    )
    named = "".join(f'<span><i class="{status}"></i>{count:,} {status}</span>' for status, count in shown)
    return f'<div class="bar" aria-hidden="true">{parts}</div><div class="legend">{named or "no files"}</div>'


def size_bars(before: int, after: int) -> str:
    """The sizes of source and target, one below another."""
    return _bars((("before", before, ""), ("after", after, "")), ("before", "after"), "sizes")


def share_bars(title: str, shares: Sequence[tuple[str, int, str]]) -> str:
    """Sizes with their names, and a text behind each size."""
    return f"<h3>{escape(title)}</h3>{_bars(shares, ['share'] * len(shares), 'sizes named')}"


def _bars(sizes: Sequence[tuple[str, int, str]], colours: Sequence[str], classes: str) -> str:
    largest = max(1, *(size for _, size, _ in sizes))
    rows = "".join(
        f'<span>{escape(name)}</span><i class="{colour}" style="width:{100 * size / largest:.2f}%"></i>'
        f"<span>{escape(size_text(size) + text)}</span>"
        for (name, size, text), colour in zip(sizes, colours, strict=True)
    )
    return f'<div class="{classes}">{rows}</div>'


def timeline_chart(timeline: Mapping[str, Any]) -> str:
    """Source bytes per second over time; empty if nothing was done."""
    sizes = [int(size) for size in timeline.get("bytes", ())]
    if not any(sizes):
        return ""
    step = float(timeline["step_seconds"])
    largest = max(sizes)
    bars = "".join(f'<i style="height:{100 * size / largest:.1f}%"></i>' for size in sizes)
    label = f"at most {size_text(int(largest / step))}/s, over {duration_text(len(sizes) * step)}"
    return f'<div class="times" aria-hidden="true">{bars}</div><p class="soft">Read {label}</p>'


def byte_map(damage: Sequence[Mapping[str, Any]], size: int) -> str:
    """The whole file as a bar, with the lost ranges marked, each wide enough to be visible."""
    if not damage or not size:
        return ""
    marks = []
    for lost in damage[:MAX_MARKS]:
        left = 100 * min(1.0, int(lost.get("offset") or 0) / size)
        width = min(100 - left, 100 * int(lost.get("length") or 0) / size)
        marks.append(f'<i style="left:min({left:.3f}%,100% - 2px);width:{width:.3f}%"></i>')
    return f'<div class="map" role="img" aria-label="Where the file is damaged">{"".join(marks)}</div>'


def grouped(damage: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, int, list[int | None]]]:
    """Groups similar damage: structure and reason without numbers, count, rows lost.

    Unique damage keeps its numbers. The most frequent comes first.
    """
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], tuple[str, str]] = {}
    lost: dict[tuple[str, str], list[int | None]] = {}
    for entry in damage:
        texts = str(entry.get("structure")), str(entry.get("reason"))
        key = _without_numbers(texts[0]), _without_numbers(texts[1])
        counts[key] += 1
        first.setdefault(key, texts)
        lost.setdefault(key, []).append(entry.get("rows_lost"))
    return [(*(first[key] if count == 1 else key), count, lost[key]) for key, count in counts.most_common()]


_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\b\d[\d,]*\b")


def _without_numbers(text: str) -> str:
    return _NUMBER.sub("\u2026", text)


def table(
    headers: Sequence[str], rows: Iterable[str], name: str, *, classes: str = "", filter_by: str = ""
) -> str:
    """A table that scrolls if it is too wide. Headers of numeric columns begin with #."""
    heads = "".join(
        f'<th scope="col" class="n">{escape(head[1:])}</th>'
        if head[:1] == "#"
        else f'<th scope="col">{escape(head)}</th>'
        for head in headers
    )
    kind = f' class="{classes}"' if classes else ""
    data = f' data-filter="{escape(filter_by)}"' if filter_by else ""
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}"><table{kind}{data}><thead>'
        f"<tr>{heads}</tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def long_table(
    headers: Sequence[str],
    lines: Iterable[tuple[Any, ...]],
    name: str,
    *,
    rest: str,
    classes: str = "",
    filter_by: str = "",
) -> str:
    """A table that the page's script sorts and filters.

    A line begins with whether something is wrong with it; its cells follow. The first lines are HTML;
    the others are data, which the script draws on request. `rest` names what has all lines, for readers
    without scripts.
    """
    waiting = iter(lines)
    numeric = [head.startswith("#") for head in headers]
    rows = [
        f"<tr{' data-wrong' if wrong else ''}>"
        + "".join(
            _cell(cell, "n" if is_number else "") for cell, is_number in zip(cells, numeric, strict=True)
        )
        + "</tr>"
        for wrong, *cells in islice(waiting, DRAWN_ROWS)
    ]
    text = table(headers, rows, name, classes=f"sorted {classes}".rstrip(), filter_by=filter_by)
    if others := [[int(wrong), *cells] for wrong, *cells in waiting]:
        text += f'<script type="application/json">{json_for_html(others)}</script>'
        text += f'<noscript><p class="soft">{len(others):,} more in {escape(rest)}</p></noscript>'
    return text


def _cell(cell: Cell, kind: str) -> str:
    text, link, colour = (cell, "", "") if isinstance(cell, str) else cell
    content = escape(text)
    if link:
        content = f'<a href="{escape(link)}">{content}</a>'
    if colour:
        content = f'<span class="{escape(colour)}">{content}</span>'
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"
