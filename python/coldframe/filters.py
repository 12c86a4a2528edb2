"""Filters: which rows to read.

A filter is given as pyarrow.parquet's lists, as a `pyarrow.compute.Expression`, or as a line of SQL. Lists
and SQL become the small tree of this module, whose logic has SQL's three values. Bound to a schema it gives
two things: a predicate that the core evaluates (and prunes with), and, for what the core cannot say, a
pyarrow expression that is applied to the batches that come back. The rows are the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import Predicate
from coldframe.errors import SchemaError
from coldframe.literals import compare

__all__ = [
    "And",
    "Bound",
    "Compare",
    "Constant",
    "Filter",
    "In",
    "IsNull",
    "Like",
    "Node",
    "Not",
    "Or",
    "bind",
    "never_true",
    "parse",
]

OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Node:
    """A part of a filter."""

    def columns(self) -> set[str]:
        """The names that it mentions, as the caller wrote them."""
        raise NotImplementedError

    def bind(self, schema: Any) -> Bound:
        """Its meaning for the rows of `schema`."""
        raise NotImplementedError

    def given(self, schema: Any, known: Mapping[str, Any]) -> Node:
        """What is left of it where some columns of `schema` have one known value, an Arrow scalar."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bound:
    """A filter for one schema.

    `expression` is exact. `predicate` lets through at least the rows wanted, and no others where `exact`.
    """

    expression: Any  # pc.Expression
    predicate: Predicate | None
    exact: bool

    @property
    def residual(self) -> Any:
        """What is still to be applied to batches that the predicate lets through; None where nothing is."""
        return None if self.exact else self.expression


@dataclass(frozen=True)
class Constant(Node):
    """Known without looking at a row."""

    value: bool | None

    def columns(self) -> set[str]:
        return set()

    def bind(self, schema: Any) -> Bound:
        return Bound(pc.scalar(pa.scalar(self.value, type=pa.bool_())), None, False)

    def given(self, schema: Any, known: Mapping[str, Any]) -> Node:
        return self


@dataclass(frozen=True)
class _Leaf(Node):
    column: str

    def columns(self) -> set[str]:
        return {self.column}

    def given(self, schema: Any, known: Mapping[str, Any]) -> Node:
        path, _ = resolve(schema, self.column)
        value = known.get(path[0])
        if value is None:
            return self
        for name in path[1:]:
            value = value[name]
        return Constant(self.test(value))

    def test(self, value: Any) -> bool | None:
        """Its answer for one value of the column, an Arrow scalar."""
        raise NotImplementedError


@dataclass(frozen=True)
class Compare(_Leaf):
    """`column op value`; op is one of = != < <= > >=."""

    op: str
    value: Any

    def bind(self, schema: Any) -> Bound:
        path, type = resolve(schema, self.column)
        comparison = compare(self.op, self.value, type, self.column)
        expression = _COMPARE[comparison.op](_field(path), pc.scalar(comparison.value))
        if not comparison.same_type:
            return Bound(expression, None, False)
        literal = pa.array([comparison.value], comparison.value.type)
        return Bound(expression, Predicate.compare(".".join(path), comparison.op, literal), True)

    def test(self, value: Any) -> bool | None:
        comparison = compare(self.op, self.value, value.type, self.column)
        answer: bool | None = _COMPARE_SCALARS[comparison.op](value, comparison.value).as_py()
        return answer


@dataclass(frozen=True)
class In(_Leaf):
    """The column's value is one of `values`, among which is no null."""

    values: tuple[Any, ...]

    def bind(self, schema: Any) -> Bound:
        path, type = resolve(schema, self.column)
        field = _field(path)
        comparisons = [compare("=", value, type, self.column) for value in self.values]
        if any(c.value.is_valid is False for c in comparisons):
            raise ValueError(f"null among the values of {self.column!r}: use 'is null'")
        wanted = [c for c in comparisons if c.op == "="]  # the others match no row: see literals
        if not all(c.same_type for c in wanted):
            parts = [field == pc.scalar(c.value) for c in wanted]
            return Bound(_fold(parts, "or"), None, False)
        value_type = type.value_type if pa.types.is_dictionary(type) else type
        values = pa.array([c.value for c in wanted], value_type)
        # is_in answers false for a null; a comparison answers null, which matters under `not`
        unknown = pc.scalar(pa.scalar(None, type=pa.bool_()))
        expression = pc.if_else(field.is_valid(), field.isin(values), unknown)
        return Bound(expression, Predicate.is_in(".".join(path), values), True)

    def test(self, value: Any) -> bool | None:
        if not value.is_valid:
            return None
        return any(Compare(self.column, "=", wanted).test(value) for wanted in self.values)


@dataclass(frozen=True)
class IsNull(_Leaf):
    """The column has no value."""

    def bind(self, schema: Any) -> Bound:
        path, _ = resolve(schema, self.column)
        return Bound(_field(path).is_null(), Predicate.is_null(".".join(path)), True)

    def test(self, value: Any) -> bool | None:
        return not value.is_valid


@dataclass(frozen=True)
class Like(_Leaf):
    r"""SQL's pattern: `%` is any text, `_` any character, `\` makes the next one plain."""

    pattern: str

    def bind(self, schema: Any) -> Bound:
        path, type = resolve(schema, self.column)
        if not (pa.types.is_string(type) or pa.types.is_large_string(type)):
            raise SchemaError(f"'like' needs a string column, {self.column!r} is {type}")
        prefix, rest = _literal_prefix(self.pattern)
        if not rest:
            return Compare(self.column, "=", prefix).bind(schema)
        expression = pc.match_like(_field(path), self.pattern)
        bounds = prefix_range(prefix)
        if not bounds:
            return Bound(expression, None, False)
        ranges = And(tuple(Compare(self.column, op, value) for op, value in bounds)).bind(schema)
        return Bound(expression, ranges.predicate, ranges.exact and rest == "%")

    def test(self, value: Any) -> bool | None:
        answer: bool | None = pc.match_like(value, self.pattern).as_py()
        return answer


@dataclass(frozen=True)
class Not(Node):
    """The contrary; unknown stays unknown."""

    part: Node

    def columns(self) -> set[str]:
        return self.part.columns()

    def bind(self, schema: Any) -> Bound:
        part = self.part.bind(schema)
        if part.exact and part.predicate is not None:
            return Bound(~part.expression, part.predicate.negate(), True)
        return Bound(~part.expression, None, False)

    def given(self, schema: Any, known: Mapping[str, Any]) -> Node:
        part = self.part.given(schema, known)
        if isinstance(part, Constant):
            return Constant(None if part.value is None else not part.value)
        return Not(part)


@dataclass(frozen=True)
class _Several(Node):
    parts: tuple[Node, ...]

    def columns(self) -> set[str]:
        return set().union(*(part.columns() for part in self.parts))


@dataclass(frozen=True)
class And(_Several):
    """All parts hold."""

    def bind(self, schema: Any) -> Bound:
        parts = [part.bind(schema) for part in self.parts]
        pushed = [part.predicate for part in parts if part.predicate is not None]
        predicate = Predicate.all_of(pushed) if len(pushed) > 1 else pushed[0] if pushed else None
        return Bound(_fold([p.expression for p in parts], "and"), predicate, all(p.exact for p in parts))

    def given(self, schema: Any, known: Mapping[str, Any]) -> Node:
        return _settle([part.given(schema, known) for part in self.parts], And, False)


@dataclass(frozen=True)
class Or(_Several):
    """At least one part holds."""

    def bind(self, schema: Any) -> Bound:
        parts = [part.bind(schema) for part in self.parts]
        pushed = [part.predicate for part in parts if part.predicate is not None]
        predicate = Predicate.any_of(pushed) if len(pushed) == len(parts) else None
        exact = predicate is not None and all(p.exact for p in parts)
        return Bound(_fold([p.expression for p in parts], "or"), predicate, exact)

    def given(self, schema: Any, known: Mapping[str, Any]) -> Node:
        return _settle([part.given(schema, known) for part in self.parts], Or, True)


# What the public functions take. Expression is pyarrow's own class, which has no type information.
Filter = str | Sequence[Any] | Node | Any


def parse(filter: Filter | None) -> Any:
    """A tree (from lists or SQL), or the `pyarrow.compute.Expression` as it is; None for no filter."""
    if filter is None or isinstance(filter, (Node, pc.Expression)):
        return filter
    if isinstance(filter, str):
        from coldframe.sql_filter import parse_sql

        return parse_sql(filter)
    if isinstance(filter, Sequence) and filter:
        if all(isinstance(part, tuple) for part in filter):
            return _all_of(filter)
        if all(isinstance(part, Sequence) and not isinstance(part, (tuple, str)) for part in filter):
            parts = tuple(_all_of(part) for part in filter)
            return parts[0] if len(parts) == 1 else Or(parts)
    raise ValueError(
        f"malformed filter {filter!r}: expected [(column, op, value), ...], a list of such lists, "
        "a pyarrow.compute.Expression, or SQL text"
    )


def bind(filter: Any, schema: Any) -> Bound:
    """What a parsed filter means for the rows of `schema`."""
    if isinstance(filter, Node):
        bound = filter.bind(schema)
        _check(bound.expression, schema)
        return bound
    _check(filter, schema)
    if _substrait_keeps_its_meaning(str(filter)):
        try:
            message = bytes(filter.to_substrait(_without_unions(schema, pa.bool_())))
        except pa.ArrowException:
            pass  # some functions have no name in Substrait: pyarrow evaluates those
        else:
            predicate = Predicate.from_substrait(message, schema)
            if predicate is not None:
                return Bound(filter, predicate, True)
    return Bound(filter, None, False)


def mentioned(expression: Any, schema: Any) -> list[str]:
    """The columns that must be decoded to evaluate an expression: those it names, or a few more.

    pyarrow does not list the columns of an expression, but prints each by its name.
    """
    text = str(expression)
    names = [name for name in schema.names if name in text]
    if "FieldPath(" in text or len(set(names)) < len(names):
        return list(schema.names)
    narrow = pa.schema([schema.field(name) for name in names])
    try:
        _check(expression, narrow)
    except SchemaError:
        return list(schema.names)
    return names


def resolve(schema: Any, name: str) -> tuple[tuple[str, ...], Any]:
    """The path and type of a column: a top-level name, in any case if that is clear, or a dotted path."""
    names = list(schema.names)
    if name not in names:
        alike = [other for other in names if other.lower() == name.lower()]
        if len(alike) == 1:
            name = alike[0]
        elif not alike and "." in name:
            return _resolve_nested(schema, name)
        else:
            raise SchemaError(
                f"the filter names column {name!r}; the columns are {', '.join(map(repr, names[:20]))}"
            )
    if names.count(name) > 1:
        raise SchemaError(f"the filter names column {name!r}, of which there are {names.count(name)}")
    return (name,), schema.field(name).type


def prefix_range(prefix: str) -> list[tuple[str, str]]:
    """The comparisons that hold for exactly the texts with this prefix, in the order of code points."""
    if not prefix:
        return []
    head = prefix.rstrip("\U0010ffff")
    bounds = [(">=", prefix)]
    if head:
        last = ord(head[-1]) + 1
        # no text holds a surrogate: the next code point after U+D7FF is U+E000
        bounds.append(("<", head[:-1] + chr(0xE000 if last == 0xD800 else last)))
    return bounds


_COMPARE_SCALARS: Mapping[str, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_COMPARE: Mapping[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _field(path: tuple[str, ...]) -> Any:
    return pc.field(path[0]) if len(path) == 1 else pc.field(*path)


def _fold(parts: Sequence[Any], how: str) -> Any:
    if not parts:
        return pc.scalar(how == "and")
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part if how == "and" else whole | part
    return whole


def never_true(node: Node) -> bool:
    """Whether what is left of a filter lets no row through, whatever the row."""
    if isinstance(node, Constant):
        return not node.value
    if isinstance(node, And):
        return any(never_true(part) for part in node.parts)
    return isinstance(node, Or) and all(never_true(part) for part in node.parts)


def _settle(parts: list[Node], kind: type[And] | type[Or], decides: bool) -> Node:
    """`and`/`or` over parts of which some are known: `decides` is the value that settles the whole."""
    known = [part.value for part in parts if isinstance(part, Constant)]
    open_parts = tuple(part for part in parts if not isinstance(part, Constant))
    if decides in known:
        return Constant(decides)
    unknown = (Constant(None),) if None in known else ()
    if not open_parts:
        return Constant(None if unknown else not decides)
    return open_parts[0] if len(open_parts) == 1 and not unknown else kind(open_parts + unknown)


def _resolve_nested(schema: Any, name: str) -> tuple[tuple[str, ...], Any]:
    first, *rest = name.split(".")
    (top,), type = resolve(schema, first)
    path = [top]
    for step in rest:
        if not pa.types.is_struct(type) or type.get_field_index(step) < 0:
            raise SchemaError(
                f"the filter names column {name!r}, but {'.'.join(path)!r} ({type}) has no field {step!r}"
            )
        type = type.field(step).type
        path.append(step)
    return tuple(path), type


def _literal_prefix(pattern: str) -> tuple[str, str]:
    """The plain text that a pattern starts with, and what follows it."""
    plain: list[str] = []
    at = 0
    while at < len(pattern) and pattern[at] not in "%_":
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
        plain.append(pattern[at])
        at += 1
    return "".join(plain), pattern[at:]


def _all_of(parts: Iterable[Any]) -> Node:
    nodes = tuple(_leaf(part) for part in parts)
    if not nodes:
        raise ValueError("malformed filter: an empty list of conditions")
    return nodes[0] if len(nodes) == 1 else And(nodes)


def _leaf(part: Any) -> Node:
    if (
        not isinstance(part, tuple)
        or len(part) not in (2, 3)
        or not isinstance(part[0], str)
        or not isinstance(part[1], str)
    ):
        raise ValueError(f"malformed filter {part!r}: expected (column, op, value)")
    column, op = part[0], " ".join(part[1].lower().split())
    value = part[2] if len(part) == 3 else None
    if op in ("is null", "is not null") or (op in ("is", "is not") and len(part) == 3 and value is None):
        return Not(IsNull(column)) if op.startswith("is not") else IsNull(column)
    if len(part) == 3 and op in OPERATORS:
        return Compare(column, OPERATORS[op], value)
    if len(part) == 3 and op in ("in", "not in"):
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise ValueError(f"malformed filter {part!r}: {op!r} needs a collection of values")
        return _membership(column, list(value), op == "not in")
    raise ValueError(f"malformed filter {part!r}: unknown operator {part[1]!r}")


def _membership(column: str, values: list[Any], negated: bool) -> Node:
    """pyarrow.parquet's meaning: null is a value like others; `in [.., None]` and `not in [..]` match it."""
    present = tuple(v for v in values if not (v is None or (isinstance(v, pa.Scalar) and not v.is_valid)))
    with_null = len(present) < len(values)
    if negated:
        among = Not(In(column, present))
        return And((among, Not(IsNull(column)))) if with_null else Or((among, IsNull(column)))
    return Or((In(column, present), IsNull(column))) if with_null else In(column, present)


def _check(expression: Any, schema: Any) -> None:
    """Raises SchemaError unless the expression is a truth value for rows of the schema."""
    fields = _without_unions(schema, pa.null())
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in fields], schema=fields)
    try:
        empty.filter(expression)
    except (pa.ArrowException, TypeError) as reason:
        raise SchemaError(f"the filter {expression} does not fit the columns: {reason}") from reason


def _without_unions(schema: Any, stand_in: Any) -> Any:
    """The schema with another type for unions: pyarrow can neither make nor compare nor describe those."""
    return pa.schema([field.with_type(stand_in) if _holds_union(field.type) else field for field in schema])


def _holds_union(data_type: Any) -> bool:
    if pa.types.is_union(data_type):
        return True
    return any(_holds_union(data_type.field(i).type) for i in range(data_type.num_fields))


_FUNCTION = re.compile(r"\b([a-z_0-9]+)\(")


def _substrait_keeps_its_meaning(text: str) -> bool:
    """Substrait has no `is_in`: pyarrow writes a chain of equalities.

    For a null that chain is null where `is_in` is false (or true, with a null among the values). Both keep
    the row out at the top of a filter, but not under a negation or another test of the answer.
    """
    if "is_in(" not in text:
        return True
    if "null[" in text.replace("null[bool]", "") or re.search(r"^\s+null,?$", text, re.MULTILINE):
        return False
    functions = set(_FUNCTION.findall(text))
    if functions - {"is_in", "is_null", "is_valid", "if_else", "starts_with"}:
        return False
    if re.search(r"is_(null|valid)\((?![\w.]+[,)])", text):
        return False
    return not re.search(r"(==|!=|<|>)=?\s*\(*(is_in|if_else)|\}\)+\s*(==|!=|<|>)", text)
