"""Prints rows as a table. Leaves out columns in the middle that do not fit, as DuckDB does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coldframe.cli.output import cell_text, console, print_table

_MIN_WIDTH, _MAX_WIDTH = 4, 32
"""The minimum width of a column, and its maximum if not all columns fit."""
_LONGEST = 500
"""The characters of a value that a terminal shows. `--json` and a pipe have all characters."""
_FRAME = 3
"""Characters between two columns."""
_GAP = "\u2026"


def print_grid(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table. On a terminal, the table has the columns that fit, and a line with the total."""
    out = console()
    if out is None:
        print_table(names, rows)
        return
    rows = [[shortened(value) for value in row] for row in rows]
    shown = fitting([_width(name, at, rows) for at, name in enumerate(names)], int(out.width))
    if len(shown) == len(names):
        print_table(names, rows)
        return
    left = sum(1 for before, at in enumerate(shown) if before == at)  # columns before the gap
    print_table(
        [*(names[at] for at in shown[:left]), _GAP, *(names[at] for at in shown[left:])],
        [[*(row[at] for at in shown[:left]), _GAP, *(row[at] for at in shown[left:])] for row in rows],
    )
    out.print(
        f"{len(names)} columns ({len(shown)} shown): -c names others, --vertical shows all",
        style="dim",
        highlight=False,
    )


def shortened(value: Any) -> str | None:
    """The beginning of a long value, and its length."""
    if value is None:
        return None
    text = cell_text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}{_GAP} ({len(text):,} characters)"


def fitting(widths: Sequence[int], room: int) -> list[int]:
    """The columns that fit: all of them, or some from both ends with a gap in the middle."""
    if sum(widths) + _FRAME * len(widths) <= room:
        return list(range(len(widths)))
    # One long value must not displace all other columns: limit the widths, and fold longer cells.
    widths = [max(_MIN_WIDTH, min(width, _MAX_WIDTH)) for width in widths]
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
    """Prints the rows one after another, with a line for each column."""
    width = max((len(name) for name in names), default=0)
    for number, row in enumerate(rows):
        print(f"-- row {number} " + "-" * max(0, width - len(str(number)) - 4))
        for name, value in zip(names, row, strict=True):
            print(f"{name:>{width}}: {'null' if value is None else cell_text(value)}")
