"""The colours of a layout, and of the text on them: light or dark, whichever is easier to read."""

from __future__ import annotations

from collections.abc import Iterator

from coldframe.layout.model import Spot, leaves

# Colours that people with colour vision deficiencies can distinguish; `_OTHERS` is for the many small kinds.
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
_LIGHT, _DARK = "#ffffff", "#1a2027"
_SHARE = 0.5
"""A node with parts is drawn with this opacity, so that the parts are more visible."""

Channels = tuple[int, int, int]


class Colours:
    """A colour for each kind of leaf; the kinds with the most bytes have colours of their own."""

    def __init__(self, root: Spot) -> None:
        self._bytes: dict[str, int] = {}
        for _, length, spot in leaves(root):
            self._bytes[spot.kind] = self._bytes.get(spot.kind, 0) + length
        largest = sorted(self._bytes, key=lambda kind: -self._bytes[kind])
        self._of_groups: dict[int, int] = {}  # by identity: the tree outlives its colours
        self._numbers = {kind: at for at, kind in enumerate(largest[: len(_PALETTE)])}

    def number(self, spot: Spot) -> int:
        """A node's index in `values`: the index of its kind or, if the node has parts, of its
        largest kind.
        """
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

    def legend(self) -> Iterator[tuple[str, int, int]]:
        """Kinds with their bytes and indexes in `values`, the largest kind first; the small kinds are
        combined.
        """
        for kind, at in self._numbers.items():
            yield kind, self._bytes[kind], at
        rest = sum(length for kind, length in self._bytes.items() if kind not in self._numbers)
        if rest:
            yield "others", rest, len(_PALETTE)

    @classmethod
    def style(cls) -> str:
        """The colours as CSS: fills and the text on them, for light and for dark pages."""
        values = list(enumerate(cls.values()))
        plain = "".join(_rule(f".c{at}", colour) for at, colour in values)
        light = "".join(_rule(f".c{at}.group", _mixed(colour, _LIGHT)) for at, colour in values)
        dark = "".join(_rule(f".c{at}.group", _mixed(colour, _DARK)) for at, colour in values)
        return f"{plain}{light}@media (prefers-color-scheme: dark) {{{dark}}}"


def _rule(selector: str, fill: str) -> str:
    ink = max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, fill))
    return f"{selector}{{--fill:{fill};--on:{ink}}}"


def _mixed(colour: str, ground: str) -> str:
    pairs = zip(_channels(colour), _channels(ground), strict=True)
    return "#" + "".join(f"{round(a * _SHARE + b * (1 - _SHARE)):02x}" for a, b in pairs)


def _channels(colour: str) -> Channels:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def contrast(colour: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21."""
    lighter, darker = sorted((_luminance(colour), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    def linear(channel: int) -> float:
        share = channel / 255
        return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)

    red, green, blue = map(linear, _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
