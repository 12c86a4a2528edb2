"""What a file states of its columns, held against what was decoded of it: so that the reader is checked, too.

    all types but unions                  how many values are not null
    integers                              smallest, largest, sum
    floating point numbers, dates         smallest, largest
    decimals                              that none is beyond the smallest and the largest
    truth values                          how many are true
    text, bytes                           bytes of all together

Only what stands at the top of a row is looked at. What writers state in ways of their own is not compared:
instants (in whose zone?), the ends of texts (cut, or in another order), sums of floating point numbers (the
order of adding), ends that are NaN, dates of before the Gregorian calendar. Java's writer of ORC states
nothing without indexes, but says so by zeros; its sums of decimals wrap at 64 bits, and one version has 0
among their ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

GREGORIAN = -141_427
"""The day 1582-10-15, counted from 1970."""

Stated = Sequence[Sequence[dict[str, Any]]]


class Witness:
    """Sees each batch as it was decoded, and knows in the end what the file has stated otherwise."""

    def __init__(self, stated: Stated) -> None:
        """`stated`: of a part, as `Split.stated` gives it."""
        if not all(_says_something(unit) for unit in stated):
            stated = []
        self._stated: dict[str, list[dict[str, Any]]] = {}
        for unit in stated:
            for column in unit:
                self._stated.setdefault(column["path"], []).append(column)
        # A column of which only some units say something is not compared.
        self._stated = {path: said for path, said in self._stated.items() if len(said) == len(stated)}
        self._seen: dict[str, _Seen] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """The next rows."""
        names = Counter(batch.schema.names)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            # Arrow's unions have no nulls of their own; with a dot it may be the path of a field.
            if (
                name in self._stated
                and names[name] == 1
                and "." not in name
                and not pa.types.is_union(column.type)
            ):
                self._seen.setdefault(name, _Seen()).add(column)

    def differences(self) -> list[str]:
        """What was decoded otherwise than the file states; empty where all agrees."""
        found: list[str] = []
        for name, seen in self._seen.items():
            for what, said, was in _compared(self._stated[name], seen):
                found.append(f"column {name}: {what} {said} by the file, {was} decoded")
        return found


def _says_something(unit: Sequence[dict[str, Any]]) -> bool:
    """Whether the row as a whole was counted, and is a row of columns."""
    rows = next((column for column in unit if column["path"] == ""), {})
    return bool(rows.get("number_of_values")) and "total_children" not in rows


class _Seen:
    """The sums over what was decoded of a column."""

    def __init__(self) -> None:
        self.values = 0
        self.ends: tuple[Any, Any] | None = None
        self.sum: Any = None
        self.length: int | None = None
        self.true: int | None = None
        self.is_certain = True
        """False where a value has no place in an order."""
        self.is_decimal = False

    def add(self, column: Any) -> None:
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = column.type
        self.values += len(column) - column.null_count
        t = pa.types
        if len(column) == column.null_count:
            return
        if t.is_boolean(kind):
            self.true = (self.true or 0) + pc.sum(column).as_py()
        elif t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind):
            self.length = (self.length or 0) + pc.sum(pc.binary_length(column)).as_py()
        elif t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_date32(kind):
            if t.is_date32(kind):
                column = column.cast(pa.int32())
            if t.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
                self.is_certain = False
            ends = pc.min_max(column)
            low, high = ends["min"].as_py(), ends["max"].as_py()
            before = self.ends or (low, high)
            self.ends = (min(before[0], low), max(before[1], high))
            self.is_decimal = t.is_decimal(kind)
            if t.is_integer(kind):
                self.sum = (self.sum or 0) + _sum(column)


def _sum(column: Any) -> Any:
    """Of integers, of any size."""
    # Half by half, since a sum of 64 bits would wrap.
    wide = column.cast(pa.int64())
    return (pc.sum(pc.shift_right(wide, 32)).as_py() << 32) + pc.sum(
        pc.bit_wise_and(wide, 0xFFFFFFFF)
    ).as_py()


def _compared(said: list[dict[str, Any]], seen: _Seen) -> list[tuple[str, Any, Any]]:
    """What differs: its name, as it is stated, as it was decoded."""
    found: list[tuple[str, Any, Any]] = []

    def demand(what: str, stated: Any, decoded: Any) -> None:
        if stated is not None and decoded is not None and stated != decoded:
            found.append((what, stated, decoded))

    demand("values", _total(said, "number_of_values"), seen.values)
    demand("true", _total(said, "true_count"), seen.true)
    demand("bytes of text", _total(said, "total_length"), seen.length)
    if seen.ends is not None and seen.is_certain:
        demand("sum", _total(said, "sum"), seen.sum)
        for what, place, choose in (("smallest", 0, min), ("largest", 1, max)):
            key = "min" if what == "smallest" else "max"
            stated = _end(said, key, choose)
            if stated is None:
                stated = _end(said, f"{key}_days", choose)
                if stated is not None and min(stated, seen.ends[0]) < GREGORIAN:
                    continue
            inside = seen.is_decimal and stated is not None and choose(stated, seen.ends[place]) == stated
            if not inside:
                demand(what, stated, seen.ends[place])
    return found


def _numbers(said: list[dict[str, Any]], key: str) -> list[Any] | None:
    """What each unit that has values states; None where one of them states nothing that is a number."""
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


def _total(said: list[dict[str, Any]], key: str) -> Any:
    found = [unit.get(key) for unit in said] if key == "number_of_values" else _numbers(said, key)
    return None if found is None or None in found else sum(found)


def _end(said: list[dict[str, Any]], key: str, choose: Any) -> Any:
    found = _numbers(said, key)
    return choose(found) if found else None
