"""The page of `coldframe tables --html`: where the bytes of an estate are, and its tables."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from coldframe._coldframe import formats, shown
from coldframe.byte_size import counted, size_text
from coldframe.pipeline.report.figures import Cell, large_figures, long_table, rest_of, section, share_bars
from coldframe.pipeline.report.pages import document
from coldframe.table_listing import ICEBERG, FoundTable, Survey

MAX_BARS = 15
"""Maximum number of bars of a picture."""
MAX_NAMED = 100


def inventory_page(source: str, estate: Survey) -> str:
    """The page of an estate."""
    tables = sorted([*estate.tables, *estate.others], key=lambda table: (-table.bytes, table.name))
    foreign = {id(table) for table in estate.others}
    twins = Counter(table.likeness for table in estate.tables if table.likeness)
    lines = ((table.is_wrong, *_cells(table, id(table) in foreign, twins)) for table in tables)
    headers = ["table", "format", "#size", "#files", "#rows", "#partitions", "last change", "owner"]
    headers += ["written by", "seen", "migrate"]
    drawn = long_table(
        headers,
        lines,
        "Tables",
        rest="the output of coldframe tables --json",
        filter_by="filter tables",
    )
    other = [
        f"{group.place}: {group.kind}, {counted(group.files, 'file')}, {size_text(group.bytes)}"
        for group in estate.stray
    ]
    body = f"""<header><h1>Inventory</h1>
<p class="soft"><code>{escape(shown(source))}</code></p></header>
{_headline(tables, estate)}
{section("Where the bytes are", _pictures(tables))}
{section("Tables", drawn)}
{_remarks("Not examined", estate.unread)}
{_remarks("Other files", other)}"""
    return document(f"Inventory of {shown(source)}", body)


def _headline(tables: Sequence[FoundTable], estate: Survey) -> str:
    wrong = sum(table.is_wrong for table in tables)
    figures = [
        ("tables", f"{len(tables):,}", ""),
        ("size", size_text(sum(table.bytes for table in tables)), ""),
        ("files", f"{sum(table.files for table in tables):,}", ""),
        ("of other formats", f"{len(estate.others):,}", "part" if estate.others else ""),
        ("with problems", f"{wrong:,}", "bad" if wrong else ""),
        ("places not examined", f"{len(estate.unread):,}", "bad" if estate.unread else ""),
    ]
    return f'<section class="card">{large_figures(figures)}</section>'


def _pictures(tables: Sequence[FoundTable]) -> str:
    by_format = _summed((table.format, table) for table in tables)
    by_age = _summed((_date(table)[:4] or "unknown", table) for table in tables)
    largest = [(table.name, table.bytes, "") for table in tables[:MAX_BARS]]
    return (
        share_bars("by format", sorted(by_format, key=lambda share: -share[1])[:MAX_BARS])
        + share_bars("by year of the last change", sorted(by_age)[-MAX_BARS:])
        + share_bars("the largest tables", largest)
    )


def _summed(named: Iterable[tuple[str, FoundTable]]) -> list[tuple[str, int, str]]:
    sizes, counts = Counter[str](), Counter[str]()
    for name, table in named:
        sizes[name] += table.bytes
        counts[name] += 1
    return [(name, size, f", {counted(counts[name], 'table')}") for name, size in sizes.items()]


def _cells(table: FoundTable, is_foreign: bool, twins: Counter[str]) -> list[Cell]:
    seen = [table.problem] if table.problem is not None else []
    if table.damaged:
        seen.append(f"{counted(table.damaged, 'file')} of no known format")
    seen += [*table.missing, *table.damage]
    if twins[table.likeness] > 1:
        seen.append(f"{twins[table.likeness]:,} tables have equal names and sizes of files: copies?")
    return [
        table.name,
        table.format,
        size_text(table.bytes),
        f"{table.files:,}",
        "" if table.rows is None else f"{table.rows:,}",
        f"{table.partitions:,}" if table.partitions else "",
        _date(table),
        table.owner,
        table.writer,
        ("; ".join(seen), "", "bad" if table.is_wrong else ""),
        _fate(table, is_foreign),
    ]


def _fate(table: FoundTable, is_foreign: bool) -> str:
    """What `migrate` would do with a table."""
    if is_foreign or table.format == ICEBERG:
        return "left out"
    if formats()[table.format]["capabilities"]["needs_schema"] and "schema" not in table.options:
        return "needs its columns in tables.toml"
    return "damaged files fail, the rest is converted" if table.is_wrong else "converted"


def _date(table: FoundTable) -> str:
    """The day of the last change, in UTC."""
    if not table.newest:
        return ""
    seconds = table.newest // 1_000_000_000
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%d")


def _remarks(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines[:MAX_NAMED])
    return section(title, f"<ul>{items}</ul>{rest_of(len(lines), MAX_NAMED, 'in the source')}")
