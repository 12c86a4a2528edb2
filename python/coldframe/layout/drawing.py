"""Pictures of a layout: the whole file as lines of bytes (SVG), and the nesting of its parts (HTML)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from coldframe.byte_size import size_text
from coldframe.layout.colours import Colours
from coldframe.layout.model import Spot, leaves

WIDTH = 1200
_ROWS, _ROW, _GAP = 12, 22, 4
_LEVELS = 4
_NARROW = 1.0
"""Narrower parts of the picture are drawn together with their neighbours."""
_NAMED = 3.0
"""Minimum width of a part with a visible name, in per cent."""


def strip(root: Spot, colours: Colours) -> str:
    """The file as lines of equal numbers of bytes, coloured by kind; damage hatched."""
    total = max(1, root.length)
    height = _ROWS * (_ROW + _GAP) - _GAP
    shapes = []
    for start, stop, colour, what in _runs(root, colours):
        for x, y, width in _lines((start - root.offset) / total, (stop - root.offset) / total):
            shapes.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW}" fill="{colour}">{what}</rect>'
            )
    for spot in root.walk():
        if not spot.damage:
            continue
        share = [(at - root.offset) / total for at in (spot.offset, spot.end)]
        reasons = escape("; ".join(place.reason for place in spot.damage))
        for x, y, width in _lines(*share):
            shapes.append(
                f'<rect class="broken" x="{x:.1f}" y="{y}" width="{max(width, 3):.1f}" height="{_ROW}">'
                f"<title>{escape(spot.name)}: {reasons}</title></rect>"
            )
    pattern = (
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6"/></pattern></defs>'
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="The bytes of the file by what they are" '
        f'preserveAspectRatio="none" height="{height}" data-rows="{_ROWS}" data-row="{_ROW}" '
        f'data-gap="{_GAP}">'
        f'{pattern}{"".join(shapes)}<g id="position"></g></svg>'
    )


def _lines(start: float, stop: float) -> Iterator[tuple[float, int, float]]:
    """The position of a range, given as shares of the file, on the lines: x, y, width."""
    first, last = start * _ROWS, stop * _ROWS
    row = int(first)
    while row < last and row < _ROWS:
        begin, end = max(first, row), min(last, row + 1)
        if end > begin:
            yield (begin - row) * WIDTH, row * (_ROW + _GAP), (end - begin) * WIDTH
        row += 1


def _runs(root: Spot, colours: Colours) -> Iterator[tuple[int, int, str, str]]:
    """Ranges of one colour: start, end, colour, title. All ranges are wide enough to be visible."""
    least = root.length * _NARROW / (WIDTH * _ROWS)
    at = root.offset
    pending: dict[str, float] = {}
    name = ""
    for offset, length, spot in leaves(root):
        end = offset + length
        colour = colours.of(spot)
        if not pending and length >= least:
            yield offset, end, colour, f"<title>{_title(spot)}</title>"
            at = end
            continue
        pending[colour] = pending.get(colour, 0) + length
        name = name or spot.name
        if end - at >= least:
            main = max(pending, key=lambda key: pending[key])
            yield at, end, main, f"<title>from {escape(name)} to {escape(spot.name)}</title>"
            at, pending, name = end, {}, ""
    if pending:
        yield at, root.end, max(pending, key=lambda key: pending[key]), ""


def icicle(root: Spot, colours: Colours) -> str:
    """The levels of the tree below each other, before the script zooms."""
    tiles: list[str] = []
    level, depth = [root], 0
    while level and depth < _LEVELS:
        tiles += _level(level, root, depth, colours)
        level = [child for spot in level for child in spot.children]
        depth += 1
    return f'<div class="tiles" style="--levels:{depth}">{"".join(tiles)}</div>'


def _level(spots: list[Spot], root: Spot, depth: int, colours: Colours) -> Iterator[str]:
    scale = 100 / max(1, root.length)
    drawn = -1.0
    for spot in spots:
        left, width = (spot.offset - root.offset) * scale, spot.length * scale
        if (left + width - drawn) * WIDTH / 100 < _NARROW:  # too narrow to be seen beside the last part
            continue
        drawn = left + width
        kinds = ["tile", f"c{colours.number(spot)}"]
        kinds += ["group"] if spot.children else []
        kinds += ["broken"] if spot.damage else ["hurt"] if spot.hurt else []
        # Paths differ at their ends, so their beginning is cut.
        path = ' class="path"' if "/" in spot.label else ""
        name = f'<span{path}><bdi dir="ltr">{escape(spot.label)}</bdi></span>' if width > _NAMED else ""
        yield (
            f'<div class="{" ".join(kinds)}" style="--depth:{depth};left:{left:.3f}%;width:{width:.3f}%" '
            f'title="{_title(spot)}">{name}</div>'
        )


def _title(spot: Spot) -> str:
    lines = [spot.label, f"{size_text(spot.length)} from byte {spot.offset - spot.base:,}"]
    lines += [
        f"{key}: {value}"[:160] for key, value in spot.detail.items() if isinstance(value, (str, int, float))
    ]
    return escape("\n".join(lines))
