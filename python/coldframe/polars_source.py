"""A polars LazyFrame over the rows of a file or of many.

polars gives a plugin the query's columns, its predicate and its limit. The parts of the predicate that this
module understands go to the reader. polars evaluates the whole predicate again on the result, so a part that
this module does not understand costs time, but no rows. Comparisons of floats are left to polars: its NaN is
the greatest number; Arrow's is unequal to everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from coldframe.arrow import pa
from coldframe.dataset import DATASET_BATCH_SIZE, Rows
from coldframe.errors import SchemaError, unsupported
from coldframe.filters import Condition

if TYPE_CHECKING:
    import polars as pl


def lazy_frame(rows: Rows, read: Callable[..., Any] | None = None) -> pl.LazyFrame:
    """A LazyFrame that reads `rows` when it is collected, through `read` or else `rows.to_batches`."""
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as missing:
        raise unsupported("to_polars: polars is not installed, or is older than its IO plugins") from missing

    schema = rows.schema
    frame_schema = pl.DataFrame(schema.empty_table()).schema

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        reader = (read or rows.to_batches)(
            _with_predicate(schema, with_columns, predicate),
            filter=None if predicate is None else pushed(predicate, schema),
            batch_size=batch_size or DATASET_BATCH_SIZE,
            limit=n_rows if predicate is None else None,
        )
        left = n_rows
        for batch in reader:
            frame = pl.DataFrame(pa.table(batch))
            if predicate is not None:
                frame = frame.filter(predicate)
            if with_columns is not None:
                frame = frame.select(with_columns)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                return

    return register_io_source(source, schema=frame_schema)


def _with_predicate(schema: Any, columns: list[str] | None, predicate: pl.Expr | None) -> list[str] | None:
    if columns is None or predicate is None:
        return columns
    return columns + [name for name in predicate.meta.root_names() if name not in columns]


def pushed(predicate: pl.Expr, schema: Any) -> Condition | None:
    """A filter that keeps the rows that pass the predicate, and perhaps others; None keeps all rows."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:
        return None
    node = _superset(tree, schema)
    if node is None:
        return None
    try:
        node.bind(schema)
    except SchemaError:
        return None
    return node


_ALL, _ANY = ("And", "LogicalAnd"), ("Or", "LogicalOr")

_MAX_DEPTH = 50
"""polars itself evaluates predicates that are nested deeper."""


def _superset(tree: Any, schema: Any, depth: int = 0) -> Condition | None:
    """The supported parts of the predicate: parts of an `and` may be dropped."""
    for ops, join in ((_ALL, Condition.all_of), (_ANY, Condition.any_of)):
        if _op(tree) in ops:
            if depth == _MAX_DEPTH:
                return None
            parts = [_superset(part, schema, depth + 1) for part in _operands(tree, ops)]
            known = [part for part in parts if part is not None]
            return join(known) if known and (ops is _ALL or len(known) == len(parts)) else None
    try:
        return _leaf(tree, schema)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, pa.ArrowException):
        return None  # another version of polars has another form


def _op(tree: Any) -> str | None:
    binary = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    return binary.get("op") if isinstance(binary, dict) else None


def _operands(tree: Any, ops: tuple[str, str]) -> list[Any]:
    """The operands of a chain of `and` or of `or`, from left to right."""
    operands, open = [], [tree]
    while open:
        part = open.pop()
        if _op(part) in ops:
            open += [part["BinaryExpr"]["right"], part["BinaryExpr"]["left"]]
        else:
            operands.append(part)
    return operands


_OPS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _leaf(tree: Any, schema: Any) -> Condition | None:
    if "Column" in tree:
        column = _column(tree, schema)
        return (
            Condition.compare(column, "=", True)
            if column and pa.types.is_boolean(schema.field(column).type)
            else None
        )
    if "BinaryExpr" in tree:
        binary = tree["BinaryExpr"]
        op = _OPS.get(binary["op"])
        left, right = binary["left"], binary["right"]
        if op and "Column" in left and "Literal" in right:
            return _comparison(_column(left, schema), op, right)
        if op and "Literal" in left and "Column" in right:
            return _comparison(_column(right, schema), _FLIPPED[op], left)
        return None
    if "Function" in tree:
        return _function(tree["Function"], schema)
    return None


def _comparison(column: str | None, op: str, literal: Any) -> Condition | None:
    known, value = _value(literal)
    return Condition.compare(column, op, value) if column and known and value is not None else None


def _function(call: Any, schema: Any) -> Condition | None:
    inputs, name = call["input"], call["function"]
    column = _column(
        inputs[0], schema, floats="Boolean" in name and name["Boolean"] in ("IsNull", "IsNotNull")
    )
    if column is None:
        return None
    kind = name.get("Boolean")
    if kind == "IsNull":
        return Condition.is_null(column)
    if kind == "IsNotNull":
        return Condition.is_null(column).negate()
    if isinstance(kind, dict) and "IsIn" in kind and not kind["IsIn"].get("nulls_equal"):
        values = pa.ipc.open_stream(bytes(inputs[1]["Literal"]["Scalar"]["List"])).read_all().column(0)
        return Condition.is_in(column, [v for v in values.to_pylist() if v is not None])
    if isinstance(kind, dict) and "IsBetween" in kind:
        closed = kind["IsBetween"]["closed"]
        low = _comparison(column, ">=" if closed in ("Both", "Left") else ">", inputs[1])
        high = _comparison(column, "<=" if closed in ("Both", "Right") else "<", inputs[2])
        return Condition.all_of([low, high]) if low and high else None
    if name.get("StringExpr") == "StartsWith":
        known, prefix = _value(inputs[1])
        if known and isinstance(prefix, str) and prefix:
            return Condition.starts_with(column, prefix)
    return None


def _column(tree: Any, schema: Any, floats: bool = False) -> str | None:
    name = tree.get("Column")
    if not isinstance(name, str) or schema.names.count(name) != 1:
        return None
    return None if pa.types.is_floating(schema.field(name).type) and not floats else name


def _value(tree: Any) -> tuple[bool, Any]:
    """Whether the literal is supported, and its value."""
    literal = tree["Literal"]
    ((kind, value),) = literal.items()
    if kind == "Scalar":
        if not isinstance(value, dict):
            return False, None
        ((kind, value),) = value.items()
    if kind == "Dyn":  # a literal whose type polars has not settled
        ((kind, value),) = value.items()
    if kind in _PLAIN:
        return True, value
    if kind == "Date":
        return True, pa.scalar(value, type=pa.int32()).cast(pa.date32())
    if kind == "Datetime":
        count, unit, zone = value
        unit = {"Nanoseconds": "ns", "Microseconds": "us", "Milliseconds": "ms"}[unit]
        return zone is None, pa.scalar(count, type=pa.int64()).cast(pa.timestamp(unit))
    return False, None


_PLAIN = frozenset(
    {"Boolean", "String", "Int", "Str"}
    | {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64, 128)}
)
