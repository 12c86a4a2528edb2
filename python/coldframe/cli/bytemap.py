"""Prints the layout of a file: a bar of its bytes, coloured by structure, and the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from coldframe.byte_size import size_text
from coldframe.cli.output import cell_text, console

_COLOURS = [
    "cyan",
    "magenta",
    "green",
    "yellow",
    "blue",
    "red",
    "bright_cyan",
    "bright_magenta",
    "bright_green",
    "bright_yellow",
]
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ROWS = 4

Tree = dict[str, Any]


def kind(name: str) -> str:
    """The kind of a node: its name without numbers, so that all stripes share a colour."""
    return " ".join(re.sub(r"[\d#]+", "", name.split(":")[0]).split()) or name


def regions(tree: Tree) -> Iterator[tuple[int, int, str]]:
    """The leaves, and the bytes of parents between them, in file order: offset, length, kind."""
    at = tree["offset"]
    children = sorted(
        (c for c in tree.get("children", []) if c["length"]), key=lambda child: int(child["offset"])
    )
    for child in children:
        if child["offset"] > at:
            yield at, child["offset"] - at, kind(tree["name"])
        yield from regions(child)
        at = max(at, child["offset"] + child["length"])
    end = tree["offset"] + tree["length"]
    if end > at:
        yield at, end - at, kind(tree["name"])


def shares(tree: Tree, cells: int) -> list[str]:
    """For each of `cells` equal parts of the file, the kind with the most bytes."""
    total = max(1, tree["length"])
    tally: list[dict[str, float]] = [{} for _ in range(cells)]
    for offset, length, name in regions(tree):
        start = (offset - tree["offset"]) * cells / total
        stop = start + length * cells / total
        for cell in range(int(start), min(cells, int(stop) + 1)):
            part = min(stop, cell + 1) - max(start, cell)
            if part > 0:
                tally[cell][name] = tally[cell].get(name, 0.0) + part
    return [max(cell, key=lambda name: cell[name]) if cell else "" for cell in tally]


def print_layout(tree: Tree, depth: int, children: int) -> None:
    """Prints the bar (on a terminal) and the tree: `depth` levels, at most `children` nodes on each level."""
    out = console()
    if out is None:
        for line in _lines(tree, depth, children, 0):
            print(line)
        return
    from rich.text import Text
    from rich.tree import Tree as RichTree

    width = max(20, min(out.width, 120))
    cells = shares(tree, width * _ROWS)
    totals: dict[str, int] = {}
    for _, length, name in regions(tree):
        totals[name] = totals.get(name, 0) + length
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(totals)}
    # Without colours, letters distinguish the structures.
    marks = {name: _LETTERS[i % len(_LETTERS)] if out.no_color else "█" for i, name in enumerate(totals)}
    for row in range(_ROWS):
        bar = Text()
        for name in cells[row * width : (row + 1) * width]:
            bar.append(marks.get(name, " "), style=colours.get(name, ""))
        out.print(bar)
    legend = Text()
    for name, length in sorted(totals.items(), key=lambda item: -item[1]):
        legend.append(f"{marks[name] if out.no_color else '■'} ", style=colours[name])
        legend.append(f"{name} {size_text(length)} ({length / max(1, tree['length']):.1%})   ")
    out.print(legend)
    root = RichTree(Text(_label(tree), style="bold"))
    _grow(root, tree, depth, children, colours)
    out.print(root)


def _label(node: Tree) -> str:
    detail = node.get("detail") or {}
    shown = ", ".join(
        f"{key}={cell_text(value)}" for key, value in detail.items() if not isinstance(value, (dict, list))
    )
    return f"{node['name']}  [{node['offset']} +{node['length']}]" + (f"  {shown}" if shown else "")


def _lines(node: Tree, depth: int, children: int, level: int) -> Iterator[str]:
    yield "  " * level + _label(node)
    if level >= depth:
        return
    inner = node.get("children", [])
    for child in inner[:children]:
        yield from _lines(child, depth, children, level + 1)
    if len(inner) > children:
        yield "  " * (level + 1) + f"... and {len(inner) - children} more"


def _grow(tree: Any, node: Tree, depth: int, children: int, colours: dict[str, str]) -> None:
    from rich.text import Text

    if depth <= 0:
        return
    inner = node.get("children", [])
    for child in inner[:children]:
        branch = tree.add(Text(_label(child), style=colours.get(kind(child["name"]), "")))
        _grow(branch, child, depth - 1, children, colours)
    if len(inner) > children:
        tree.add(f"... and {len(inner) - children} more")
