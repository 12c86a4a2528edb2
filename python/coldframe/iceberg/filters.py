"""Translates filters to PyIceberg's filters, which prune manifests and files.

The result may let more rows pass, never fewer: a part without an exact equivalent becomes "always true".
"""

from __future__ import annotations

import math
from typing import Any

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNull,
    Or,
    StartsWith,
)
from pyiceberg.expressions.visitors import bind
from pyiceberg.schema import Schema

from coldframe._coldframe import Predicate
from coldframe.arrow import pa

# mypy confuses the arguments of these classes with those of pydantic's models.
_is_null: Any = IsNull
_not_null: Any = NotNull
_starts_with: Any = StartsWith
_in: Any = In
_COMPARISONS: dict[str, Any] = {
    "=": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def translated(predicate: Predicate | None, schema: Schema, columns: pa.Schema) -> BooleanExpression:
    """An expression that is true for all rows that pass; `columns`: the columns of `schema` in Arrow."""
    if predicate is None:
        return AlwaysTrue()
    return _node(predicate.tree(), schema, columns)


_MAX_DEPTH = 50
"""Prunes nothing below this depth, since PyIceberg works by recursion."""


def _node(node: tuple[Any, ...], schema: Schema, columns: pa.Schema, depth: int = 0) -> BooleanExpression:
    kind = node[0]
    if kind in ("and", "or"):
        if depth == _MAX_DEPTH:
            return AlwaysTrue()
        parts = [_node(part, schema, columns, depth + 1) for part in node[1]]
        if len(parts) < 2:
            return parts[0] if parts else AlwaysTrue()
        return And(*parts) if kind == "and" else Or(*parts)
    try:
        made = _leaf(node, columns)
        if made is None:
            return AlwaysTrue()
        bind(schema, made, case_sensitive=True)
    except Exception:  # PyIceberg has no common class of errors for unsupported values
        return AlwaysTrue()
    return made


def _leaf(node: tuple[Any, ...], columns: pa.Schema) -> BooleanExpression | None:
    kind, column, operand, negated = node
    if kind == "null":
        return _expression(_not_null(column) if negated else _is_null(column))
    if kind == "like":
        prefix = _prefix(operand)
        return _expression(_starts_with(column, prefix)) if prefix and not negated else None
    values = pa.record_batch(operand).column(0)
    if column not in columns.names or values.type != columns.field(column).type:
        return None
    if pa.types.is_floating(values.type) and (negated or any(map(_is_odd, values.to_pylist()))):
        return None  # PyIceberg compares NaN and zeros in other ways than coldframe
    if kind == "in":
        operands = [value for value in values.to_pylist() if value is not None]
        return _expression(_in(column, operands)) if operands and not negated else None
    value = values[0].as_py()
    if value is None:
        return None
    return _expression(_COMPARISONS[_OPPOSITE[kind] if negated else kind](column, value))


def _expression(made: Any) -> BooleanExpression:
    assert isinstance(made, BooleanExpression)
    return made


def _is_odd(value: float | None) -> bool:
    return value is not None and (math.isnan(value) or value == 0)


def _prefix(pattern: str) -> str:
    """The prefix of all matches of a pattern."""
    ends = [at for at in map(pattern.find, "%_\\") if at >= 0]
    return pattern[: min(ends, default=len(pattern))]
