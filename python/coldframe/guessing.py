"""Guesses the types of columns in files that store none, from the first values.

A type fits a value if Hive would not read it as null, and if no digit is lost: `007` and `2014-01-01 10:00`
are no number and no date. Empty values fit every type. Only a type that all values fit is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from coldframe.opening import open

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = ("bigint", "double", "boolean", "date", "timestamp")
"""The guessed types; the first that fits is taken."""
ROWS = 1000
"""The number of rows that are looked at."""
NEAR = 0.9
"""The share of values from which a type is named that not all values fit."""
_DIGITS = 15
"""The number of digits that every double keeps."""


class Guess(NamedTuple):
    """The guessed columns of a table."""

    schema: str
    """A list of columns for Hive."""
    remarks: list[str]
    """How many rows were looked at, and types that nearly fit."""


def guess_of(path: str, storage_options: Mapping[str, Any] | None = None) -> Guess | None:
    """The columns of a file without types; None if its values are no texts."""
    file = open(path, storage_options=storage_options)
    serde = (file.proposal() or {}).get("serde")
    if serde != "text":
        return None

    def read(schema: str) -> pa.Table:
        return open(path, storage_options=storage_options, schema=schema, serde=serde).head(ROWS)

    return guessed(file.schema.names, read)


def guessed(names: list[str], read: Callable[[str], pa.Table]) -> Guess:
    """The types of columns. `read` returns the first rows with the columns of a schema."""
    texts = _as("string", names, read)
    shares: dict[str, dict[str, float]] = {name: {} for name in names}
    for kind in TYPES:
        for name, text, values in zip(names, texts, _as(kind, names, read), strict=True):
            given = [(of, value) for of, value in zip(text, values, strict=True) if of]
            fits = sum(_fits(kind, str(of), value) for of, value in given)
            shares[name][kind] = fits / len(given) if given else 0.0
    columns, near = [], []
    for name, of_name in shares.items():
        best = max(of_name, key=lambda kind: of_name[kind])
        share = of_name[best]
        columns.append(f"{name} {best if share == 1.0 else 'string'}")
        if NEAR <= share < 1.0:
            near.append(f"{name}: {share:.1%} of the values fit {best}")
    rows = len(texts[0]) if texts else 0
    return Guess(", ".join(columns), [f"types: guessed from the first {rows:,} rows", *near])


def _as(kind: str, names: list[str], read: Callable[[str], pa.Table]) -> list[list[object]]:
    table = read(", ".join(f"{name} {kind}" for name in names))
    return [column.to_pylist() for column in table.columns]


def _fits(kind: str, text: str, value: object) -> bool:
    if value is None:
        return False
    if kind == "double":
        return not re.match(r"[+-]?0\d", text) and sum(map(str.isdigit, text)) <= _DIGITS
    return kind not in ("bigint", "date") or str(value) == text
