"""Rows as a table for people. Columns that do not fit are left out in the middle, as in DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coldframe.cli.output import cell_text, console, print_table

__all__ = ["print_grid", "print_records"]

_LEAST, _MOST = 4, 32
"""Characters of a column: at least, and at most where there is too little room for all."""
_FRAME = 3
"""Characters between two columns."""
_GAP = "\u2026"


def print_grid(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table. On a terminal it shows the columns that fit, and a line with the total."""
    out = console()
    if out is None:
        print_table(names, rows)
        return
    rows = list(rows)
    shown = fitting([_width(name, at, rows) for at, name in enumerate(names)], int(out.width))
    if len(shown) == len(names):
        print_table(names, rows)
        return
    left = sum(1 for before, at in enumerate(shown) if before == at)  # those before the gap
    print_table(
        [*(names[at] for at in shown[:left]), _GAP, *(names[at] for at in shown[left:])],
        [[*(row[at] for at in shown[:left]), _GAP, *(row[at] for at in shown[left:])] for row in rows],
    )
    out.print(
        f"{len(names)} columns ({len(shown)} shown): -c names others, --vertical shows all",
        style="dim",
        highlight=False,
    )


def fitting(widths: Sequence[int], room: int) -> list[int]:
    """The columns that fit: all of them, or from both ends towards the middle with a gap between."""
    if sum(widths) + _FRAME * len(widths) <= room:
        return list(range(len(widths)))
    # One long value must not displace all other columns; its cells are folded instead.
    widths = [max(_LEAST, min(width, _MOST)) for width in widths]
    if sum(widths) + _FRAME * len(widths) <= room:
        return list(range(len(widths)))
    room -= len(_GAP) + _FRAME
    first: list[int] = []
    last: list[int] = []
    low, high = 0, len(widths) - 1
    while low <= high:
        take_first = len(first) <= len(last)
        at = low if take_first else high
        room -= widths[at] + _FRAME
        if room < 0:
            break
        if take_first:
            first.append(at)
            low += 1
        else:
            last.insert(0, at)
            high -= 1
    return [*first, *last] or [0]


def _width(name: str, at: int, rows: Sequence[Sequence[Any]]) -> int:
    return max([len(name), *(len(cell_text(row[at])) if row[at] is not None else 4 for row in rows)])


def print_records(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints one row after the other, with a column per line."""
    width = max((len(name) for name in names), default=0)
    for number, row in enumerate(rows):
        print(f"-- row {number} " + "-" * max(0, width - len(str(number)) - 4))
        for name, value in zip(names, row, strict=True):
            print(f"{name:>{width}}: {'null' if value is None else cell_text(value)}")
