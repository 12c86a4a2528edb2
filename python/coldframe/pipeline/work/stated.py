"""Compares a file's own statistics with what was decoded, so that the reader is checked, too.

    all types but unions                  how many values are not null
    integers                              smallest, largest, sum
    floating point numbers, dates         smallest, largest
    decimals                              that none is beyond the smallest and the largest
    booleans                              how many are true
    text, bytes                           total length in bytes

Only top-level columns are compared. Statistics that writers define differently are not: instants (in whose
zone?), the extremes of texts (cut off, or in another order), sums of floating point numbers (order of
addition), extremes that are NaN, dates before the Gregorian calendar. Java's ORC writer states nothing
without indexes, but marks that by zeros; its sums of decimals wrap at 64 bits, and one version has 0 among
their extremes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypedDict

GREGORIAN = -141_427
"""The day 1582-10-15, counted from 1970."""


class StatedColumn(TypedDict, total=False):
    """What a file states of a column in one unit; each format states some of it."""

    path: str
    number_of_values: int | None
    true_count: int | None
    total_length: int | None
    total_children: int | None
    sum: Any
    min: Any
    max: Any
    min_days: int | None
    max_days: int | None


class ObservedColumn(TypedDict):
    """What a column was like as it was decoded: see `RawObserved`."""

    values: int
    smallest: Any
    largest: Any
    has_nan: bool
    sum: Any
    bytes: int | None
    trues: int | None


Stated = Sequence[Sequence[StatedColumn]]


class Witness:
    """A file's statistics of its columns, and where the decoded values differ."""

    def __init__(self, stated: Stated) -> None:
        """`stated`: for a part, as `Split.stated` returns it."""
        if not all(_says_something(unit) for unit in stated):
            stated = []
        self._stated: dict[str, list[StatedColumn]] = {}
        for unit in stated:
            for column in unit:
                self._stated.setdefault(column["path"], []).append(column)
        # A column with statistics in only some units is not compared.
        self._stated = {path: said for path, said in self._stated.items() if len(said) == len(stated)}

    @property
    def names(self) -> list[str]:
        """The columns with statistics."""
        # A name with a dot may be the path of a field.
        return [name for name in self._stated if name and "." not in name]

    def differences(self, observed: Mapping[str, ObservedColumn]) -> list[str]:
        """Where the decoded values differ from the file's statistics; empty if all agree.

        `observed`: the statistics of the decoded columns with these names, as `RawObserved` returns them.
        """
        found: list[str] = []
        for name, seen in observed.items():
            for what, said, was in _compared(self._stated[name], seen):
                found.append(f"column {name}: {what} {said} by the file, {was} decoded")
        return found


def _says_something(unit: Sequence[StatedColumn]) -> bool:
    """Whether the row as a whole was counted, and is a row of columns."""
    rows = next((column for column in unit if column["path"] == ""), StatedColumn())
    return bool(rows.get("number_of_values")) and "total_children" not in rows


def _compared(said: list[StatedColumn], seen: ObservedColumn) -> list[tuple[str, Any, Any]]:
    """The differences: name, stated value, decoded value."""
    found: list[tuple[str, Any, Any]] = []

    def demand(what: str, stated: Any, decoded: Any) -> None:
        if stated is not None and decoded is not None and stated != decoded:
            found.append((what, stated, decoded))

    demand("values", _total(said, "number_of_values"), seen["values"])
    demand("true", _total(said, "true_count"), seen["trues"])
    demand("bytes of text", _total(said, "total_length"), seen["bytes"])
    if seen["smallest"] is None or seen["has_nan"]:
        return found
    demand("sum", _total(said, "sum"), seen["sum"])
    ends: list[tuple[str, Any, str, Callable[..., Any]]] = [
        ("smallest", seen["smallest"], "min", min),
        ("largest", seen["largest"], "max", max),
    ]
    for what, decoded, key, choose in ends:
        stated = _end(said, key, choose)
        if stated is None:
            stated = _end(said, f"{key}_days", choose)
            if stated is not None and min(stated, seen["smallest"]) < GREGORIAN:
                continue
        value = Decimal(decoded) if isinstance(decoded, str) else decoded
        # For decimals it suffices that none is beyond the stated extremes.
        if isinstance(value, Decimal) and stated is not None and choose(stated, value) == stated:
            continue
        demand(what, stated, value)
    return found


def _numbers(said: list[StatedColumn], key: str) -> list[Any] | None:
    """The statement of each unit with values; None if one of them states no number."""
    found: list[Any] = []
    for unit in said:
        if unit.get("number_of_values") == 0:
            continue
        value = unit.get(key)
        if isinstance(value, str):
            try:
                value = Decimal(value)
            except InvalidOperation:
                return None
        if value is None or isinstance(value, bytes) or value != value:
            return None
        found.append(value)
    return found


def _total(said: list[StatedColumn], key: str) -> Any:
    found = [unit.get(key) for unit in said] if key == "number_of_values" else _numbers(said, key)
    return None if found is None or None in found else sum(found)


def _end(said: list[StatedColumn], key: str, choose: Any) -> Any:
    found = _numbers(said, key)
    return choose(found) if found else None
