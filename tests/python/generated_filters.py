"""Filters made of a table's values, each with the pyarrow expression of the same meaning."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Column:
    """A column, or a child of structs, that can be compared."""

    steps: tuple[str, ...]
    type: Any
    values: Any  # pyarrow.Array
    is_char: bool = False
    """Whether it is a `char` of Hive: its values have no blanks at the end, which comparisons ignore."""

    @property
    def path(self) -> str:
        return ".".join(self.steps)

    @property
    def field(self) -> Any:
        return pc.field(*self.steps)


@dataclass(frozen=True)
class Test:
    """A filter, its first column, and a pyarrow expression with the same meaning."""

    __test__ = False
    filter: Any
    column: str
    meaning: Any

    def rows(self, full: Any) -> list[int]:
        """The numbers of the rows of the full read that pass, evaluated by pyarrow alone."""
        own = [name for name in full.column_names if not _holds_union(full.schema.field(name).type)]
        numbered = full.select(own).append_column("row number", pa.array(range(full.num_rows), pa.int64()))
        for at, field in enumerate(numbered.schema):
            if _is_char(field):
                numbered = numbered.set_column(at, field.name, pc.utf8_rtrim(numbered.column(at), " "))
        return list(numbered.filter(self.meaning).column("row number").to_pylist())

    def __str__(self) -> str:
        # Python cannot represent every date of a file.
        try:
            return f"{type(self.filter).__name__} {self.filter}"
        except (OverflowError, ValueError):
            return f"{type(self.filter).__name__} of `{self.column}`"


def columns(full: Any) -> list[Column]:
    """The columns of a table that can be compared."""
    comparable: list[Column] = []
    for name in full.column_names:
        if full.column_names.count(name) == 1 and not _holds_union(full.schema.field(name).type):
            column = full.column(name).combine_chunks()
            comparable += _below(
                (name,),
                column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column,
                full.schema.field(name),
            )
    paths = [column.path for column in comparable]
    return [column for column in comparable if paths.count(column.path) == 1]


def _below(steps: tuple[str, ...], values: Any, field: Any) -> Iterator[Column]:
    if _is_char(field):
        if len(steps) == 1:
            yield Column(steps, pa.string(), pc.utf8_rtrim(values.cast(pa.string()), " "), is_char=True)
    elif pa.types.is_struct(values.type):
        names = [values.type.field(i).name for i in range(values.type.num_fields)]
        for at, name in enumerate(names):
            if names.count(name) == 1:
                yield from _below((*steps, name), pc.struct_field(values, [at]), values.type.field(at))
    elif pa.types.is_dictionary(values.type):
        yield Column(steps, values.type, values.cast(values.type.value_type))
    elif not pa.types.is_nested(values.type) and not pa.types.is_null(values.type):
        yield Column(steps, values.type, values)


def _is_char(field: Any) -> bool:
    return (field.metadata or {}).get(b"hive.type", b"").lower().startswith(b"char")


def nested(full: Any) -> list[tuple[str, ...]]:
    """The columns and children of structs that can only be tested for null."""
    some: list[tuple[str, ...]] = []
    for field in full.schema:
        if full.column_names.count(field.name) == 1 and not _holds_union(field.type):
            some += _nested_below((field.name,), field.type)
    paths = [".".join(steps) for steps in some]
    return [steps for steps, path in zip(some, paths, strict=True) if paths.count(path) == 1]


def _nested_below(steps: tuple[str, ...], type: Any) -> Iterator[tuple[str, ...]]:
    if pa.types.is_nested(type):
        yield steps
    if pa.types.is_struct(type):
        for child in type:
            if sum(child.name == other.name for other in type) == 1:
                yield from _nested_below((*steps, child.name), child.type)


def _nested_null(steps: tuple[str, ...], dice: random.Random) -> Test:
    column, field = Column(steps, None, None), pc.field(*steps)
    filter, meaning = dice.choice(
        [
            ([(column.path, "is null")], field.is_null()),
            ([(column.path, "is not null")], field.is_valid()),
            (f"{_quoted(column)} is null", field.is_null()),
            (f"not ({_quoted(column)} is null)", field.is_valid()),
            (field.is_null(), field.is_null()),
            (~field.is_null(), field.is_valid()),
            (field.is_valid(), field.is_valid()),
        ]
    )
    return Test(filter, column.path, meaning)


def _tower(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    """A chain of tests, some of them negated, with many levels."""
    whole = None
    for level in range(dice.choice([3, 40, 120])):
        made = _compared(dice.choice([column, *others]), dice)
        if made is None:
            continue
        part = ~made[1] if dice.random() < 0.3 else made[1]
        if whole is None:
            whole = part
        elif level % 3 == 0:
            whole = ~(part & whole) if dice.random() < 0.5 else part & whole
        else:
            whole = whole | part
    return None if whole is None else Test(whole, column.path, whole)


def tests(full: Any, dice: random.Random, count: int) -> Iterator[Test]:
    """Random filters on a table."""
    candidates = columns(full)
    of_null = nested(full)
    for steps in dice.sample(of_null, min(len(of_null), 2)):
        yield _nested_null(steps, dice)
    if not candidates:
        return
    # Every column is used.
    dice.shuffle(candidates)
    for at in range(count):
        column = candidates[at % len(candidates)]
        made = dice.choice(_KINDS)(column, candidates, dice)
        if made is not None:
            yield made


def _literal(column: Column, dice: random.Random) -> Any:
    """A value of the column, or a value near such a value."""
    values = column.values.drop_null()
    if len(values) == 0 or dice.random() < 0.1:
        stranger = _stranger(column, dice)
        if stranger is not None:
            return stranger
    if len(values) == 0:
        return None
    if dice.random() < 0.3 and not pa.types.is_boolean(values.type):
        ordered = values.take(pc.sort_indices(values))
        return ordered[dice.choice([0, len(ordered) // 2, len(ordered) - 1])]
    return values[dice.randrange(len(values))]


def _stranger(column: Column, dice: random.Random) -> Any:
    """A value that perhaps no row has."""
    type = column.values.type
    if pa.types.is_integer(type):
        return pa.scalar(dice.choice([0, 1, 100]), type)
    if pa.types.is_floating(type):
        return pa.scalar(dice.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 0.5]), type)
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return pa.scalar(dice.choice(["", "a", "zz"])).cast(type)
    if pa.types.is_timestamp(type):
        return (
            pa.scalar(dt.datetime(2001, 2, 3), pa.timestamp("us"))
            .cast(pa.int64())
            .cast(pa.timestamp("us", type.tz))
            .cast(type)
        )
    return None


def _compared(column: Column, dice: random.Random) -> tuple[tuple[Any, ...], Any] | None:
    """A condition `(column, op, value)`, and the pyarrow expression of the same meaning."""
    value = _literal(column, dice)
    if value is None:
        return (column.path, "is null"), column.field.is_null()
    op = dice.choice(_COMPARISONS)
    return (column.path, op, value), _comparison(column.field, op, value)


def _comparison(field: Any, op: str, value: Any) -> Any:
    other = pc.scalar(value)
    return {
        "==": field == other,
        "!=": field != other,
        "<": field < other,
        "<=": field <= other,
        ">": field > other,
        ">=": field >= other,
    }[op]


def _list(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    made = _compared(column, dice)
    return None if made is None else Test([made[0]], column.path, made[1])


def _lists(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    """A disjunction of conjunctions."""
    whole, meaning = [], None
    for _ in range(dice.randrange(1, 4)):
        some, both = [], None
        for operand in (column, *dice.sample(others, min(len(others), dice.randrange(2)))):
            made = _compared(operand, dice)
            if made is not None:
                some.append(made[0])
                both = made[1] if both is None else both & made[1]
        if some:
            whole.append(some)
            meaning = both if meaning is None else meaning | both
    return Test(whole, column.path, meaning) if whole else None


def _set(column: Column, dice: random.Random) -> list[Any]:
    literals = [_literal(column, dice) for _ in range(dice.randrange(1, 6))]
    return [value for value in literals if value is not None]


def _among(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    values = _set(column, dice)
    if not values:
        return None
    if dice.random() < 0.3:
        values.append(pa.scalar(None, column.values.type))
    within = column.field.isin(_array(values, column))
    if dice.random() < 0.5:
        return Test([(column.path, "in", values)], column.path, within)
    return Test([(column.path, "not in", values)], column.path, ~within)


def _array(values: list[Any], column: Column) -> Any:
    return pa.concat_arrays([pa.repeat(value, 1) for value in values]).cast(column.values.type)


def _expression_set(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    values = _set(column, dice)
    if not values:
        return None
    within = column.field.isin(_array(values, column))
    if dice.random() < 0.3:
        within = ~within
    return Test(within, column.path, within)


def _null(column: Column, others: list[Column], dice: random.Random) -> Test:
    if dice.random() < 0.5:
        return Test([(column.path, "is null")], column.path, column.field.is_null())
    return Test(f"{_quoted(column)} is not null", column.path, column.field.is_valid())


def _expression(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    """A pyarrow expression that the core evaluates."""
    made = _compared(column, dice)
    if made is None:
        return None
    meaning = made[1]
    other = _compared(dice.choice(others), dice)
    if other is not None and dice.random() < 0.5:
        meaning = meaning & other[1] if dice.random() < 0.5 else meaning | ~other[1]
    return Test(meaning, column.path, meaning)


def _residual(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    """A pyarrow expression that pyarrow evaluates on the rows. It knows no char."""
    made = None if column.is_char else _compared(column, dice)
    if made is None:
        return None
    meaning = pc.if_else(made[1].is_null(), pc.scalar(dice.random() < 0.5), made[1])
    return Test(meaning, column.path, meaning)


def _negated(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    """A negated condition in SQL, if SQL can write its values."""
    value = _literal(column, dice)
    text = None if value is None else _sql(value)
    if text is None:
        return None
    op = dice.choice(_COMPARISONS)
    meaning = _comparison(column.field, op, value)
    sign = "=" if op == "==" else op
    if dice.random() < 0.5:
        return Test(f"{_quoted(column)} {sign} {text}", column.path, meaning)
    return Test(f"not ({_quoted(column)} {sign} {text})", column.path, ~meaning)


def _like(column: Column, others: list[Column], dice: random.Random) -> Test | None:
    # In the patterns of a char, blanks count.
    if not pa.types.is_string(column.values.type) or column.is_char:
        return None
    value = _literal(column, dice)
    if value is None:
        return None
    text = value.as_py()
    start = dice.randrange(len(text) + 1)
    piece = text[start : start + 3]
    if any(sign in piece for sign in "%_\\'"):
        return None
    before, behind = dice.choice(["", "%"]), dice.choice(["", "%"])
    if not before and behind:
        piece = text[:3] if not any(sign in text[:3] for sign in "%_\\'") else ""
    pattern = f"{before}{piece}{behind}"
    meaning = pc.match_like(column.field, pattern)
    if dice.random() < 0.5:
        return Test(f"{_quoted(column)} like '{pattern}'", column.path, meaning)
    return Test(f"{_quoted(column)} not like '{pattern}'", column.path, ~meaning)


_KINDS = (
    _list,
    _list,
    _lists,
    _among,
    _expression_set,
    _null,
    _expression,
    _tower,
    _residual,
    _negated,
    _like,
)


def _quoted(column: Column) -> str:
    return ".".join("`" + step.replace("`", "``") + "`" for step in column.steps)


def _sql(value: Any) -> str | None:
    plain = value.as_py() if not pa.types.is_timestamp(value.type) else None
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, int):
        return str(plain)
    if isinstance(plain, str) and "'" not in plain:
        return f"'{plain}'"
    if isinstance(plain, dt.date):
        return f"date '{plain.isoformat()}'" if plain.year >= 1000 else None
    return None


def _holds_union(data_type: Any) -> bool:
    if pa.types.is_union(data_type):
        return True
    return any(_holds_union(data_type.field(i).type) for i in range(data_type.num_fields))
