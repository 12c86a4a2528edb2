"""Pictures of a layout as SVG: the whole file as lines of bytes, and what is in what."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from coldframe.cli.output import size_text
from coldframe.layout.model import Spot

__all__ = ["Colours", "icicle", "strip"]

WIDTH = 1200
_ROWS, _ROW, _GAP = 12, 22, 4
_LEVELS, _LEVEL = 4, 34
_NARROW = 1.0
"""What is narrower on the picture is drawn together with its neighbours."""

# Told apart by people who see colours differently too; the last is for the many kinds that take little.
_PALETTE = [
    "#4477aa",
    "#ccbb44",
    "#228833",
    "#ee6677",
    "#66ccee",
    "#aa3377",
    "#997700",
    "#44bb99",
    "#7b6fb5",
    "#bb7744",
]
_OTHERS = "#9aa5b1"


class Colours:
    """A colour for each kind of leaf; those that take most bytes have one of their own."""

    def __init__(self, root: Spot) -> None:
        self._bytes: dict[str, int] = {}
        for _, length, spot in leaves(root):
            self._bytes[spot.kind] = self._bytes.get(spot.kind, 0) + length
        largest = sorted(self._bytes, key=lambda kind: -self._bytes[kind])
        self._of_groups: dict[int, int] = {}  # by identity: the tree outlives its colours
        self._numbers = {kind: at for at, kind in enumerate(largest[: len(_PALETTE)])}

    def number(self, spot: Spot) -> int:
        """A node's place in `values`: its own kind's, or that which most of it is."""
        if not spot.children:
            return self._numbers.get(spot.kind, len(_PALETTE))
        known = self._of_groups.get(id(spot))
        if known is None:
            tally: dict[int, int] = {}
            for child in spot.children:
                at = self.number(child)
                tally[at] = tally.get(at, 0) + child.length
            known = self._of_groups[id(spot)] = max(tally, key=lambda at: tally[at])
        return known

    def of(self, spot: Spot) -> str:
        """A node's colour."""
        return self.values()[self.number(spot)]

    @staticmethod
    def values() -> list[str]:
        """All colours."""
        return [*_PALETTE, _OTHERS]

    def legend(self) -> Iterator[tuple[str, int, str]]:
        """Kinds, their bytes and colours, the largest first; what has no colour of its own as one."""
        for kind, at in self._numbers.items():
            yield kind, self._bytes[kind], _PALETTE[at]
        rest = sum(length for kind, length in self._bytes.items() if kind not in self._numbers)
        if rest:
            yield "others", rest, _OTHERS


def leaves(root: Spot) -> Iterator[tuple[int, int, Spot]]:
    """The bytes in their order, each by the smallest node drawn that has it: offset, length, node."""
    at = root.offset
    for child in root.children:
        if child.offset > at:
            yield at, child.offset - at, root
        yield from leaves(child)
        at = max(at, child.end)
    if root.end > at:
        yield at, root.end - at, root


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
        for x, y, width in _lines(*share):
            shapes.append(
                f'<rect class="broken" x="{x:.1f}" y="{y}" width="{max(width, 3):.1f}" height="{_ROW}">'
                f"<title>{escape(spot.name)}: {escape('; '.join(spot.damage))}</title></rect>"
            )
    return _svg(height, "".join(shapes), "The bytes of the file by what they are")


def _lines(start: float, stop: float) -> Iterator[tuple[float, int, float]]:
    """Where a stretch of the file, as shares of it, lies on the lines: x, y, width."""
    first, last = start * _ROWS, stop * _ROWS
    row = int(first)
    while row < last and row < _ROWS:
        begin, end = max(first, row), min(last, row + 1)
        if end > begin:
            yield (begin - row) * WIDTH, row * (_ROW + _GAP), (end - begin) * WIDTH
        row += 1


def _runs(root: Spot, colours: Colours) -> Iterator[tuple[int, int, str, str]]:
    """Stretches of one colour: start, end, colour, title. None is narrower than can be seen."""
    least = root.length * _NARROW / (WIDTH * _ROWS)
    at = root.offset
    pending: dict[str, float] = {}
    name = ""
    for offset, length, spot in leaves(root):
        end = offset + length
        colour = colours.of(spot)
        if not pending and length >= least:
            yield offset, end, colour, _title(spot)
            at = end
            continue
        pending[colour] = pending.get(colour, 0) + length
        name = name or spot.name
        if end - at >= least:
            most = max(pending, key=lambda key: pending[key])
            yield at, end, most, f"<title>from {escape(name)} to {escape(spot.name)}</title>"
            at, pending, name = end, {}, ""
    if pending:
        yield at, root.end, max(pending, key=lambda key: pending[key]), ""


def icicle(root: Spot, colours: Colours) -> str:
    """The levels of the tree below each other, as the page is before its script zooms."""
    shapes: list[str] = []
    level, depth = [root], 0
    while level and depth < _LEVELS:
        shapes += _level(level, root, depth, colours)
        level = [child for spot in level for child in spot.children]
        depth += 1
    return _svg(depth * _LEVEL, "".join(shapes), "The structures of the file and their parts")


def _level(spots: list[Spot], root: Spot, depth: int, colours: Colours) -> Iterator[str]:
    scale = WIDTH / max(1, root.length)
    drawn = -1.0
    y = depth * _LEVEL
    for spot in spots:
        x, width = (spot.offset - root.offset) * scale, spot.length * scale
        if x + width < drawn + _NARROW:  # too narrow to be seen beside the last one
            continue
        drawn = x + max(width, _NARROW)
        fill = colours.of(spot)
        yield (
            f'<g><rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" height="{_LEVEL - 3}" '
            f'fill="{fill}" opacity="{1 if not spot.children else 0.55}">{_title(spot)}</rect>'
        )
        if spot.hurt:
            across = max(width - 0.5, 3)
            mark = "broken" if spot.damage else "hurt"
            yield f'<rect class="{mark}" x="{x:.1f}" y="{y}" width="{across:.1f}" height="{_LEVEL - 3}"/>'
        if width > 60:
            most = int(width / 7)
            yield f'<text x="{x + 6:.1f}" y="{y + 20}">{escape(_cut(spot.label, most))}</text>'
        yield "</g>"


def _cut(label: str, most: int) -> str:
    """So much of a label as there is room for. Paths begin alike and end apart."""
    if len(label) <= most:
        return label
    return "…" + label[1 - most :] if "/" in label else label[: most - 1] + "…"


def _title(spot: Spot) -> str:
    said = [spot.label, f"{size_text(spot.length)} from byte {spot.offset:,}"]
    said += [
        f"{key}: {value}"[:160] for key, value in spot.detail.items() if isinstance(value, (str, int, float))
    ]
    return f"<title>{escape(chr(10).join(said))}</title>"


def _svg(height: int, shapes: str, label: str) -> str:
    pattern = (
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6"/></pattern></defs>'
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}" '
        f'preserveAspectRatio="none" height="{height}">{pattern}{shapes}</svg>'
    )
