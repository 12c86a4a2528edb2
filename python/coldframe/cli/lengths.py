"""Prints `stats --lengths`: figures and histograms of the lengths of keys, values and rows."""

from __future__ import annotations

from typing import Any

from coldframe.cli import output

_BAR = 40
"""Characters of the longest bar."""
_MEASURES = {
    "key_bytes": "key bytes",
    "value_bytes": "value bytes",
    "row_bytes": "row bytes",
    "row_cells": "cells in a row",
}
_FIGURES = ("count", "min", "max", "mean", "stddev", "median", "p75", "p95", "p98", "p99", "p999")


def print_lengths(lengths: dict[str, Any], name: str) -> None:
    """A table of the figures, and a histogram for each measure."""
    if output.is_terminal():
        print(f"{name}:")
    output.print_table(
        ["", *_FIGURES],
        [
            [label, *(_rounded(lengths[measure][figure]) for figure in _FIGURES)]
            for measure, label in _MEASURES.items()
        ],
    )
    for measure, label in _MEASURES.items():
        bars = lengths[measure]["histogram"]
        highest = max((bar["count"] for bar in bars), default=0)
        print(f"\n{label}:")
        for bar in bars:
            width = -(-bar["count"] * _BAR // highest)
            between = str(bar["from"]) if bar["from"] == bar["to"] else f"{bar['from']}..{bar['to']}"
            print(f"{between:>24} {bar['count']:>12} {'#' * width}")
    print(f"\nbiggest row: {output.cell_text(lengths['biggest_row'])}")


def _rounded(figure: float | None) -> float | None:
    return round(figure, 2) if isinstance(figure, float) else figure
