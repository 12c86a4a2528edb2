"""The page: pictures that need no script, tables, and the data for the script's zoom."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from coldframe import __version__
from coldframe.byte_size import counted, size_text
from coldframe.cli.output import cell_text, to_json_value
from coldframe.file import File
from coldframe.html_page import html_page, json_for_html
from coldframe.layout.colours import Colours
from coldframe.layout.drawing import icicle, strip
from coldframe.layout.model import Place, Spot, shrunk
from coldframe.layout.sources import Bytes, Layout, layout_of
from coldframe.scanning import Dataset

MAX_DAMAGE = 1000
_SAMPLE = 512
"""Maximum number of bytes that the page includes from the beginning of a node."""
_SAMPLES = 2 << 20
"""Maximum number of included bytes of all nodes together."""
_TOP = 40
"""Rows of a table on the page."""


def page(source: File | Dataset, *, verify: bool = False) -> str:
    """The layout of a file, of a directory that is a table, or of the files of a Dataset, as one HTML page.

    Args:
        source: the file or Dataset to draw.
        verify: decode everything and mark all damage; otherwise, only damage that the layout itself shows is
            marked.
    """
    layout = layout_of(source, verify=verify)
    root = shrunk(layout.tree, layout.damage[:MAX_DAMAGE])
    colours = Colours(root)
    with layout.bytes as held:
        data = _data(root, colours, held)
    title = escape(layout.name)
    assets = files("coldframe.layout")
    style = (assets / "page.css").read_text(encoding="utf-8")
    script = (assets / "page.js").read_text(encoding="utf-8")
    body = f"""<main>
<header>
<h1>{title}</h1>
<p class="soft">{escape(layout.where)}</p>
{_figures(layout)}
</header>
{_damage(root, layout)}
<section>
<h2>Every byte, from the first to the last</h2>
<figure id="strip">{strip(root, colours)}</figure>
{_legend(root, colours)}
</section>
<section>
<h2>What is in what</h2>
<p class="soft hint">Each level shows the parts of the one above it.</p>
<nav id="crumbs" aria-label="What the chosen part is in"></nav>
<figure id="zoom">{icicle(root, colours)}</figure>
<div id="detail" aria-live="polite" hidden></div>
</section>
{_columns(root, layout)}
{_units(root)}
</main>
<script type="application/json" id="data">{data}</script>"""
    return html_page(
        f"Layout of {layout.name}",
        body,
        style=style + colours.style(),
        script=script,
        generator=f"coldframe {__version__}",
    )


def _figures(layout: Layout) -> str:
    figures = [
        ("format", layout.format),
        ("size", size_text(layout.tree["length"])),
        ("rows", "not stated" if layout.rows is None else f"{layout.rows:,}"),
        ("columns", f"{len(layout.columns):,}"),
        *layout.properties,
    ]
    cells = "".join(
        f"<div><b>{escape(str(value))}</b><span>{escape(name)}</span></div>" for name, value in figures
    )
    return f'<div class="figures">{cells}</div>'


def _damage(root: Spot, layout: Layout) -> str:
    broken = [(spot, place) for spot in root.walk() for place in spot.damage]
    if not broken:
        looked = "; ".join(layout.checked) if layout.verified else "by its structure alone"
        return f'<p class="good">No damage found (checked: {escape(looked)}).</p>'
    has_files = any(spot.within is not None for spot, _ in broken)
    rows = [_damage_row(spot, place, has_files) for spot, place in broken]
    places = counted(len(broken), "place")
    headers = ["file", *_OFFSETS] if has_files else _OFFSETS
    return _table(f"Damaged in {places}", [*headers, "what", "why"], rows, kind="bad", folded=True)


def _damage_row(spot: Spot, place: Place, has_files: bool) -> str:
    """A row with the damage's position in its file, as in `verify`, and a link to the damaged part."""
    file = "" if spot.within is None else spot.within.name
    cells = [f"<td>{escape(file)}</td>"] if has_files else []
    cells += [f"<td class=n>{place.offset - spot.base:,}</td><td class=n>{place.length:,}</td>"]
    where = f"#{spot.offset}+{spot.length}"
    return (
        "".join(cells) + f'<td><a href="{where}">{escape(spot.label)}</a></td><td>{escape(place.reason)}</td>'
    )


def _legend(root: Spot, colours: Colours) -> str:
    total = max(1, root.length)
    items = "".join(
        f'<li><i class="c{at}"></i>{escape(kind)} '
        f"<span>{size_text(length)}, {_share(length, total)}</span></li>"
        for kind, length, at in colours.legend()
    )
    return f'<ul class="legend">{items}</ul>'


def _share(part: int, whole: int) -> str:
    return "&lt;0.1%" if 0 < part / whole < 0.001 else f"{part / whole:.1%}"


def _columns(root: Spot, layout: Layout) -> str:
    """The size of each column that is drawn."""
    sizes = layout.column_sizes
    if not sizes:
        return ""
    total = max(1, root.length)
    largest = max(1, max(sizes.values()))
    shown = sorted(sizes.items(), key=lambda item: -item[1])
    rows = [
        f"<td>{escape(name)}</td><td class=n>{size_text(size)}</td><td class=n>{_share(size, total)}</td>"
        f'<td class="bar"><i style="width:{100 * size / largest:.1f}%"></i></td>'
        for name, size in shown
    ]
    return _table("Columns", ["column", "#stored", "#of the whole", "as a bar"], rows, "smaller ones")


def _units(root: Spot) -> str:
    """The parts of the file as a table, for readers who cannot use the picture."""
    parts = root.children
    are_files = all(spot.within is spot for spot in parts)  # all files begin at byte 0
    has_details = any(_details(spot) for spot in parts)
    headers = [*(_OFFSETS[1:] if are_files else _OFFSETS), "what", *(["details"] if has_details else [])]
    rows = [
        ("" if are_files else f"<td class=n>{spot.offset - spot.base:,}</td>")
        + f"<td class=n>{spot.length:,}</td><td>{escape(spot.name)}</td>"
        + (f"<td>{escape(_details(spot))}</td>" if has_details else "")
        for spot in parts
    ]
    return _table("Parts", headers, rows, "more")


_OFFSETS = ["#offset", "#bytes"]


def _table(
    title: str,
    headers: Sequence[str],
    rows: Sequence[str],
    rest: str = "",
    kind: str = "",
    folded: bool = False,
) -> str:
    """A section with a table of the first rows. Further rows are only counted or, if `folded`, collapsed.

    Headers of numeric columns begin with #.
    """
    heads = "".join(
        f"<th class=n scope=col>{escape(name[1:])}</th>"
        if name[0] == "#"
        else f"<th scope=col>{escape(name)}</th>"
        for name in headers
    )

    def table(rows: Sequence[str], name: str) -> str:
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}"><table>'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    more = ""
    left = len(rows) - _TOP
    if left > 0 and folded:
        others = table(rows[_TOP:], f"{title}, the others")
        more = f"<details><summary>and {left:,} more</summary>{others}</details>"
    elif left > 0:
        more = f"<p class=soft>and {left:,} {rest}</p>"
    return f'<section class="{kind}"><h2>{escape(title)}</h2>{table(rows[:_TOP], title)}{more}</section>'


def _details(spot: Spot) -> str:
    return ", ".join(
        f"{key} {cell_text(value)}"[:120]
        for key, value in list(spot.detail.items())[:6]
        if value is not None and not isinstance(value, (dict, list))
    )


def _data(root: Spot, colours: Colours, held: Bytes) -> str:
    """The tree as JSON: each text once, nodes as short lists.

    node: [name, offset, length, colour, detail, damage, parts not drawn, sample, children]; name, detail and
    damage are indexes of `texts` and `details`, -1 for none (damage: -2 if only a part is damaged). The node
    of a file in a directory has one more entry, 1: inside the file, offsets count from this node's offset.
    """
    texts: dict[str, int] = {}
    details: dict[str, int] = {}
    left = _SAMPLES

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    def detail(spot: Spot) -> int:
        item = {k: _short(v) for k, v in spot.detail.items() if v is not None}
        if spot.column:
            item.setdefault("path", spot.column)
        if not item:
            return -1
        return details.setdefault(json.dumps(item, ensure_ascii=False), len(details))

    def node(spot: Spot) -> list[Any]:
        nonlocal left
        sample = ""
        if left > 0 and not spot.children:
            raw = held.read(spot.file, spot.offset, min(_SAMPLE, spot.length))
            left -= len(raw)
            sample = base64.b64encode(raw).decode("ascii")
        return [
            text(spot.label),
            spot.offset,
            spot.length,
            colours.number(spot),
            detail(spot),
            text("; ".join(place.reason for place in spot.damage))
            if spot.damage
            else -2
            if spot.hurt
            else -1,
            spot.parts,
            sample,
            [node(child) for child in spot.children],
            *([1] if spot.within is spot else []),
        ]

    tree = node(root)
    whole = {
        "texts": list(texts),
        "details": [json.loads(item) for item in details],
        "tree": tree,
    }
    return json_for_html(whole)


def _short(value: Any) -> Any:
    plain = to_json_value(value)
    if isinstance(plain, str):
        return plain if len(plain) <= 400 else plain[:400] + " …"
    if isinstance(plain, (dict, list)):
        return _short(json.dumps(plain, ensure_ascii=False))
    return plain
