"""The page of an adoption: where the bytes of the new tables lie, and why files were converted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape

from coldframe.byte_size import size_text
from coldframe.pipeline.adopt.records import CONVERTED, READS_SOURCE, STAYS, Adoption, TableOutcome
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.figures import (
    Cell,
    duration_text,
    headline,
    long_table,
    rest_of,
    section,
    share_bars,
)
from coldframe.pipeline.report.pages import document
from coldframe.pipeline.sink.destination import HOME, open_destination

PAGE = f"{HOME}/adoption.html"
MAX_FILES = 100_000
"""Maximum number of converted files that are listed."""
_REST = "adoption.json"


def write_page(adoption: Adoption, options: Options) -> None:
    """Writes the page of a finished adoption into its target."""
    destination = open_destination(adoption.target, options.target_storage_options)
    destination.write(PAGE, adoption_page(adoption).encode(errors="replace"))


def adoption_page(adoption: Adoption) -> str:
    """The page of a finished adoption."""
    body = f"""<header><h1>Iceberg tables over files in place</h1>
<p class="soft"><code>{escape(adoption.source)}</code> &#8594; <code>{escape(adoption.target)}</code></p>
<p class="soft">{duration_text(adoption.seconds)}</p></header>
{_headline(adoption)}
{_tables(adoption)}
{_converted(adoption)}
{_left_out(adoption)}"""
    return document(f"Adoption of {adoption.source}", body)


def _headline(adoption: Adoption) -> str:
    verdict = adoption.verdict
    done = [table for table in adoption.adopted if not table.refused]
    refused = len(adoption.adopted) - len(done)
    stays, converted = (sum(table.bytes_of(word) for table in done) for word in (STAYS, CONVERTED))
    figures = [
        ("rows", f"{adoption.rows:,}", ""),
        ("tables", f"{len(done):,}", ""),
        ("tables refused", f"{refused:,}", "bad" if refused else ""),
        ("in place", size_text(stays), ""),
        ("converted", size_text(converted), ""),
    ]
    reads = (
        "The new tables read the files of the source: do not change, move or delete them."
        if any(table.metadata.get(READS_SOURCE, True) for table in adoption.adopted)
        else "The new tables read no file of the source."
    )
    sizes, counts = Counter[str](), Counter[str]()
    for table in done:
        counts += table.reasons
        for file in table.verdicts:
            if file.reason:
                sizes[file.reason] += file.bytes
    shares = [(STAYS, stays, ""), (CONVERTED, converted, "")]
    why = [(reason, size, f", {counts[reason]:,} files") for reason, size in sizes.most_common()]
    content = f"""<p class="soft">{reads}</p>
{share_bars("the files of the source", shares)}
{share_bars("why files were converted", why) if why else ""}"""
    return headline(verdict, figures, content)


def _tables(adoption: Adoption) -> str:
    headers = ["table", "#rows", "#in place", "#bytes in place", "#converted", "#bytes converted", "verdict"]
    tables = sorted(adoption.adopted, key=lambda table: table.verified)
    drawn = long_table(
        [*headers, "remarks"],
        ((not table.verified, *_cells(table)) for table in tables),
        "Tables",
        rest=_REST,
        filter_by="filter tables",
    )
    return section("Tables", drawn)


def _cells(table: TableOutcome) -> Iterator[Cell]:
    verdict = table.verdict
    yield table.name
    yield f"{table.rows:,}"
    for word in (STAYS, CONVERTED):
        yield f"{table.count(word):,}"
        yield size_text(table.bytes_of(word))
    yield (f"{verdict.mark} {verdict.text}", "", verdict.colour)
    yield "; ".join(filter(None, (table.refused, *table.notes)))


def _converted(adoption: Adoption) -> str:
    files = [
        (False, table.name, verdict.path, size_text(verdict.bytes), f"{verdict.rows:,}", verdict.reason)
        for table in adoption.adopted
        for verdict in table.verdicts
        if verdict.reason
    ]
    if not files:
        return ""
    drawn = long_table(
        ["table", "file", "#bytes", "#rows", "why"],
        files[:MAX_FILES],
        "Converted files",
        rest=_REST,
        filter_by="filter files",
    )
    return section("Converted files", drawn + rest_of(len(files), MAX_FILES, f"in {_REST}"))


def _left_out(adoption: Adoption) -> str:
    if not adoption.left_out_tables:
        return ""
    items = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in adoption.left_out_tables)
    return section("Left out", f"<ul>{items}</ul>", is_wrong=True)
