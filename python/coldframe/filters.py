"""Filters: which rows to read.

A filter is given as pyarrow.parquet's lists, as a line of SQL, or as a `pyarrow.compute.Expression`. The core
parses lists and SQL, evaluates them and prunes with them. Expressions go to the core as the bytes into which
pyarrow pickles them; the core reads all calls and values from these bytes in linear time. pyarrow applies
what the core does not support to the decoded batches. The result has the same rows either way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import Calls, Condition, Predicate, without_views
from coldframe.arrow import pa
from coldframe.errors import SchemaError, unsupported

__all__ = ["Bound", "Condition", "Filter", "bind", "both", "keep", "mentioned", "needed", "parse"]


# The name of a column of row numbers; no file has a column of this name.
_ROW = "\0row"


@dataclass(frozen=True)
class Bound:
    """A filter for one schema: the part that the core evaluates, and the rest, which pyarrow evaluates."""

    predicate: Predicate | None
    residual: Any = None  # pc.Expression

    @property
    def exact(self) -> bool:
        """Whether the core evaluates the whole filter."""
        return self.residual is None

    @property
    def strings(self) -> str | None:
        """The layout of strings: plain if pyarrow filters, since pyarrow cannot filter views; None for the
        requested layout.
        """
        return None if self.exact else "plain"

    @property
    def test(self) -> Any:
        """The whole filter, in a form that `keep` takes."""
        return self.predicate if self.exact else self.residual


# pyarrow evaluates expressions by recursion; a deeper expression could overflow the stack.
_MAX_DEPTH = 5000

# The forms of a filter that the public functions take. Expression is pyarrow's own class, which has no type
# information.
Filter = str | Sequence[Any] | Condition | Any


def parse(filter: Filter | None) -> Any:
    """A Condition (from lists or SQL), or the `pyarrow.compute.Expression` as it is; None for no filter."""
    if filter is None or isinstance(filter, Condition) or _is_expression(filter):
        return filter
    if isinstance(filter, str):
        return Condition.parse(filter)
    return Condition.from_lists(filter)


def _is_expression(filter: Any) -> bool:
    # An expression exists only if pyarrow.compute is loaded, whose import costs more than all of coldframe.
    compute = sys.modules.get("pyarrow.compute")
    return compute is not None and isinstance(filter, compute.Expression)


def bind(filter: Any, schema: Any) -> Bound:
    """Binds a parsed filter to the rows of `schema`; views are filtered as plain values.

    pyarrow cannot compare views: if there is a residual, batches must be read without views.
    """
    schema = without_views(schema)
    if isinstance(filter, Condition):
        return Bound(filter.bind(schema))
    calls = _calls(filter)
    if calls is not None:
        predicate = calls.predicate(schema)
        if predicate is not None:
            return Bound(predicate)
        if calls.depth > _MAX_DEPTH:
            raise unsupported(
                f"a filter that pyarrow has to evaluate, nested {calls.depth} deep (at most {_MAX_DEPTH})"
            )
    _check(filter, schema)
    return Bound(None, filter)


def _calls(expression: Any) -> Calls | None:
    """What an expression contains; None if pyarrow cannot pickle it, for example if it names columns by
    number.
    """
    try:
        _, (message,) = expression.__reduce__()
    except pa.ArrowNotImplementedError:
        return None
    return Calls(message.to_pybytes())


def both(first: Any, second: Any) -> Any:
    """Two parsed filters as one; None means all rows."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, Condition) and isinstance(second, Condition):
        return Condition.all_of([first, second])
    if isinstance(first, Condition) or isinstance(second, Condition):
        raise unsupported("a filter of lists or SQL together with a pyarrow expression")
    return first & second


def keep(batch: Any, test: Any) -> Any:
    """The rows of a batch that pass a bound Predicate or an expression."""
    if isinstance(test, Predicate):
        return batch.filter(pa.record_batch(test.evaluate(batch)).column(0))
    plain = [(at, field) for at, field in enumerate(batch.schema) if not _holds_union(field.type)]
    if len(plain) == batch.num_columns and not any(_holds_char(field) for _, field in plain):
        return batch.filter(test)
    # pyarrow makes no empty array of a union, and compares the padding of a char, which does not count. So
    # filter other columns in their place, and take the rows that pass.
    numbers = pa.array(range(batch.num_rows), pa.int64())
    schema = pa.schema([*(field for _, field in plain), pa.field(_ROW, numbers.type)])
    columns = [_trimmed(batch.column(at), field) for at, field in plain]
    numbered = pa.RecordBatch.from_arrays([*columns, numbers], schema=schema)
    passing = numbered.filter(test).column(_ROW)
    return batch.take(passing) if len(passing) else batch.slice(0, 0)


def _holds_char(field: Any) -> bool:
    if pa.types.is_struct(field.type):
        return any(_holds_char(inner) for inner in field.type)
    return ((field.metadata or {}).get(b"hive.type") or b"").startswith(b"char(")


def _trimmed(array: Any, field: Any) -> Any:
    """The values of a char column without trailing blanks, also inside of structs."""
    if not _holds_char(field):
        return array
    if pa.types.is_struct(field.type):
        inner = [_trimmed(array.field(at), of) for at, of in enumerate(field.type)]
        return pa.StructArray.from_arrays(inner, fields=list(field.type), mask=array.is_null())
    if pa.types.is_dictionary(field.type):
        return pa.DictionaryArray.from_arrays(array.indices, _without_blanks(array.dictionary))
    return _without_blanks(array)


def _without_blanks(texts: Any) -> Any:
    import pyarrow.compute as pc  # loaded already, since the filter is an expression

    return pc.utf8_rtrim(texts, characters=" ")


def mentioned(test: Any, schema: Any) -> list[str]:
    """The columns that a Predicate or an expression names; all if it may refer to columns by number."""
    if isinstance(test, Predicate):
        whole = set(schema.names)
        columns: dict[str, None] = {}
        for path in test.columns():
            # A column's own name may contain dots.
            within = (
                [path] if path in whole else [name for name in schema.names if path.startswith(f"{name}.")]
            )
            columns.update(dict.fromkeys(within))
        return list(columns)
    calls = _calls(test)
    if calls is None:
        return list(schema.names)
    named = set(calls.columns())
    return [name for name in schema.names if name in named]


def needed(names: Iterable[str], test: Any, schema: Any) -> list[str]:
    """These columns and the filter's columns; all columns if the filter may refer to columns by number."""
    asked = mentioned(test, schema)
    return asked if len(asked) == len(schema) else list(dict.fromkeys([*names, *asked]))


def _check(expression: Any, schema: Any) -> None:
    """Raises SchemaError if the expression gives no truth value for rows of the schema."""
    fields = _without_unions(schema, pa.null())
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in fields], schema=fields)
    try:
        empty.filter(expression)
    except (pa.ArrowException, TypeError) as reason:
        raise SchemaError(f"the filter {_shown(expression)} does not fit the columns: {reason}") from reason


def _shown(expression: Any) -> str:
    """The beginning of an expression, for people."""
    try:
        text = str(expression)
    except UnicodeDecodeError:  # pyarrow cuts long texts inside of characters
        return "with long texts"
    return text if len(text) <= 200 else f"{text[:200]} .."


def _without_unions(schema: Any, stand_in: Any) -> Any:
    """The schema with another type for unions, which pyarrow can neither make, compare nor describe."""
    return pa.schema([field.with_type(stand_in) if _holds_union(field.type) else field for field in schema])


def _holds_union(data_type: Any) -> bool:
    if pa.types.is_union(data_type):
        return True
    return any(_holds_union(data_type.field(i).type) for i in range(data_type.num_fields))
