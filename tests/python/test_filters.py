"""Filters mean what pyarrow and SQL mean, whether the reader evaluates them or pyarrow does."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from coldframe import SchemaError, UnsupportedError
from coldframe.filters import And, Compare, Constant, In, IsNull, Not, Or, bind, parse, prefix_range
from coldframe.sql_filter import parse_sql

TABLE = pa.table(
    {
        "x": pa.array([1, None, 3, 4], pa.int32()),
        "s": ["abc", "b", None, "Ü"],
        "f": pa.array([1.5, float("nan"), None, 0.1], pa.float32()),
        "d": pa.array(
            [decimal.Decimal("1.23"), None, decimal.Decimal("-5"), decimal.Decimal("99.99")],
            pa.decimal128(4, 2),
        ),
        "ts": pa.array([0, 10**9 + 1, None, 5], pa.timestamp("ns")),
        "ms": pa.array([0, 1001, None, 5], pa.timestamp("ms")),
        "utc": pa.array([0, 1001, None, 5], pa.timestamp("ms", "UTC")),
        "day": [dt.date(2014, 1, 1), dt.date(2015, 1, 1), None, dt.date(1960, 1, 1)],
        "b": [True, False, None, True],
        "bin": [b"a", b"\xff", None, b""],
        "st": [{"a": 1}, {"a": None}, None, {"a": 3}],
        "u": pa.array([0, 1, None, 2**64 - 1], pa.uint64()),
        "dict": pa.array(["p", "q", None, "p"]).dictionary_encode(),
    }
)


def rows(filter: Any) -> list[int]:
    """The numbers of the rows that pass, by the filter's exact expression."""
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    bound = bind(parse(filter), TABLE.schema)
    return list(numbered.filter(bound.expression).column("row").to_pylist())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x > 1", [2, 3]),
        ("X > 1", [2, 3]),
        ("1 < x", [2, 3]),
        ("x >= 1.5", [2, 3]),
        ("x < 3.5", [0, 2]),
        ("x = 3.5", []),
        ("x <> 3.5", [0, 2, 3]),
        ("not x = 3.5", [0, 2, 3]),
        ("not (x > 1)", [0]),
        ("x > 9999999999", []),
        ("x < 9999999999", [0, 2, 3]),
        ("not x > 9999999999", [0, 2, 3]),
        ("x > -9999999999", [0, 2, 3]),
        ("x between 1 and 3", [0, 2]),
        ("x not between 1 and 3", [3]),
        ("x in (1, 3, 2.5)", [0, 2]),
        ("x not in (1)", [2, 3]),
        ("x in (1, null)", [0]),
        ("x not in (1, null)", []),
        ("x = null", []),
        ("not (x = null)", []),
        ("x is null", [1]),
        ("x is not null and s is null", [2]),
        ("s is null or 4 = x", [2, 3]),
        ("s = 'Ü'", [3]),
        ("s like 'a%'", [0]),
        ("s not like 'a%'", [1, 3]),
        ("s like '%b%'", [0, 1]),
        ("s like '_'", [1, 3]),
        ("s like 'abc'", [0]),
        (r"s like 'a\%'", []),
        ("f = 0.1", []),  # the double 0.1 is no float32
        ("f = 1.5", [0]),
        ("f > 1", [0]),
        ("d = 1.23", [0]),
        ("d = 1.231", []),
        ("d > 1.225", [0, 3]),
        ("d >= 99.989", [3]),
        ("d < 1e10", [0, 2, 3]),
        ("d <= -5", [2]),
        ("ts >= '1970-01-01'", [0, 1, 3]),
        ("ts = timestamp '1970-01-01 00:00:01.000000001'", [1]),
        ("ts > timestamp '1970-01-01 00:00:01'", [1]),
        ("ms > timestamp '1970-01-01 00:00:01.0009'", [1]),
        ("ms >= timestamp '1970-01-01 00:00:01.0011'", []),
        ("ms < timestamp '3000-01-01 00:00:00'", [0, 1, 3]),
        ("utc > timestamp '1970-01-01 01:00:01+01:00'", [1]),
        ("day = date '2014-01-01'", [0]),
        ("day >= '2014-01-01'", [0, 1]),
        ("day < timestamp '2014-01-01 00:00:01'", [0, 3]),
        ("day > timestamp '2014-01-01 00:00:01'", [1]),
        ("b", [0, 3]),
        ("not b", [1]),
        ("b is true", [0, 3]),
        ("b is not true", [1, 2]),
        ("b = false", [1]),
        ("bin = X'ff'", [1]),
        ("bin = 'a'", [0]),
        ("st.a = 1", [0]),
        ("st.a is null", [1, 2]),
        ("`st`.`a` >= 3", [3]),
        ("u > 18446744073709551614", [3]),
        ("u >= -1", [0, 1, 3]),
        ("dict = 'p'", [0, 3]),
        ("true", [0, 1, 2, 3]),
        ("null", []),
        ("x = 1 or false", [0]),
        ("(((x = 1)))", [0]),
        ("x=1 AND s='abc' OR NOT x<4", [0, 3]),
    ],
)
def test_sql(sql: str, expected: list[int]) -> None:
    assert rows(sql) == expected


@pytest.mark.parametrize(
    "bad",
    ["", "x >",
     "x ==== 1", "(x = 1", "x = 1)", "x in ()", "x is 5", "a b", "x = 1 1", "1", "€", "x not 5",
     "x like 5", "x = 12abc", "x between 1 or 2", "date 'x' < x",
     "x = date '2014-13-01'", "(" * 500 + "x" + ")" * 500],
)  # fmt: skip
def test_sql_mistakes_are_explained(bad: str) -> None:
    with pytest.raises(ValueError, match=r"position|nested|date"):
        parse_sql(bad)


@pytest.mark.parametrize("unsupported", ["upper(s) = 'A'", "x = y", "1 = 1"])
def test_sql_that_is_not_done(unsupported: str) -> None:
    with pytest.raises(UnsupportedError):
        parse_sql(unsupported)


@pytest.mark.parametrize(
    "bad", ["zz = 1", "x = 'a'", "s > 5", "st = 1", "x like 'a'", "st.zz = 1", "b = 1", "ts < true"]
)
def test_what_does_not_fit_the_columns(bad: str) -> None:
    with pytest.raises(SchemaError):
        rows(bad)


@pytest.mark.parametrize(
    "filter",
    [
        [("x", ">", 1)],
        [("x", "==", 1), ("s", "=", "abc")],
        [[("x", "=", 1)], [("x", "=", 4)]],
        [("x", "in", [1, None])],
        [("x", "in", {1, 3})],
        [("x", "not in", [1])],
        [("x", "not in", [1, None])],
        [("x", "!=", 3)],
        [("f", ">=", 1.0)],
        [("f", "!=", 1.5)],
        [("f", "in", [1.5])],
        [("d", "<", decimal.Decimal("2"))],
        [("ts", "<", dt.datetime(2001, 1, 1))],
        [("day", ">", dt.date(2000, 1, 1))],
        [("bin", "=", b"\xff")],
        [("b", "=", True)],
    ],
)
def test_lists_mean_what_they_mean_to_pyarrow(filter: Any) -> None:
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    assert rows(filter) == numbered.filter(pq.filters_to_expression(filter)).column("row").to_pylist()


def test_lists_know_null() -> None:
    assert rows([("x", "is null")]) == [1]
    assert rows([("x", "is not null", None), ("s", "is", None)]) == [2]


@pytest.mark.parametrize(
    "bad",
    [
        [],
        5,
        ("x", ">", 1),
        [("x", ">")],
        [("x", "~", 1)],
        [("x", "in", "abc")],
        [[("x", ">", 1)], ("x", ">", 1)],
        [[]],
        [("x",)],
    ],
)
def test_malformed_lists(bad: Any) -> None:
    with pytest.raises(ValueError, match="malformed filter"):
        parse(bad)


def test_expressions_that_do_not_fit() -> None:
    for bad in (pc.field("nope") > 1, pc.field("x") + 1):
        with pytest.raises(SchemaError):
            bind(bad, TABLE.schema)


def test_a_negated_is_in_is_left_to_pyarrow() -> None:
    """Substrait would lose that `is_in` of a null is false."""
    assert not bind(~pc.field("x").isin([1]), TABLE.schema).exact
    assert not bind(pc.field("x").isin([1, None]), TABLE.schema).exact


def test_parts_that_cannot_be_pushed_leave_a_superset() -> None:
    bound = bind(parse("x > 1 and s like '%b%'"), TABLE.schema)
    assert bound.predicate is not None
    assert bound.predicate.columns() == ["x"]
    assert not bound.exact
    assert bind(parse("x > 1 or s like '%b%'"), TABLE.schema).predicate is None
    assert bind(parse("not s like '%b%'"), TABLE.schema).predicate is None
    assert bind(parse("s like 'ab%'"), TABLE.schema).exact


def test_known_columns_settle_a_filter() -> None:
    schema = pa.schema([("p", pa.int64()), ("q", pa.string()), ("x", pa.int64())])
    known = {"p": pa.scalar(5, pa.int64()), "q": pa.scalar(None, pa.string())}

    def given(sql: str) -> object:
        return parse_sql(sql).given(schema, known)

    assert given("p = 5 and x > 1") == Compare("x", ">", 1)
    assert given("p = 4 and x > 1") == Constant(False)
    assert given("p = 5 or x > 1") == Constant(True)
    assert given("p = 4 or x > 1") == Compare("x", ">", 1)
    assert given("q = 'a' and x > 1") == And((Compare("x", ">", 1), Constant(None)))
    assert given("q = 'a' or x > 1") == Or((Compare("x", ">", 1), Constant(None)))
    assert given("not q = 'a'") == Constant(None)
    assert given("q is null and not (p in (1, 2))") == Constant(True)
    assert given("not x is null") == Not(IsNull("x"))
    assert given("q like 'a%' or p in (5)") == Constant(True)
    assert given("x in (1)") == In("x", (1,))


def test_prefixes_as_ranges() -> None:
    assert prefix_range("ab") == [(">=", "ab"), ("<", "ac")]
    assert prefix_range("a\U0010ffff") == [(">=", "a\U0010ffff"), ("<", "b")]
    assert prefix_range("\ud7ff") == [(">=", "\ud7ff"), ("<", "\ue000")]
    assert prefix_range("\U0010ffff") == [(">=", "\U0010ffff")]
    assert prefix_range("") == []


def test_a_union_column_does_not_stand_in_the_way() -> None:
    """Unions can neither be compared nor filtered by pyarrow; a filter on another column has no need to."""
    union = pa.sparse_union([pa.field("f0", pa.int32()), pa.field("f1", pa.string())])
    schema = pa.schema([("x", pa.int32()), ("u", union), ("deep", pa.list_(union))])
    assert bind(Compare("x", ">", 1), schema).predicate is not None
    assert bind(pc.field("x") > 1, schema).predicate is not None
