"""Filters have the semantics of pyarrow and SQL, whether the reader or pyarrow evaluates them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe import SchemaError, UnsupportedError
from coldframe._coldframe import Predicate
from coldframe.filters import Condition, bind, keep, parse

parse_sql = Condition.parse

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
    """The numbers of the passing rows."""
    test = bind(parse(filter), TABLE.schema).test
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows))).combine_chunks()
    return [row for batch in numbered.to_batches() for row in keep(batch, test).column("row").to_pylist()]


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
        ("f = 0.1", []),  # no float32 equals the double 0.1
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
def test_sql_selects_the_expected_rows(sql: str, expected: list[int]) -> None:
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
def test_unsupported_sql_is_refused(unsupported: str) -> None:
    with pytest.raises(UnsupportedError):
        parse_sql(unsupported)


@pytest.mark.parametrize(
    "bad", ["zz = 1", "x = 'a'", "s > 5", "st = 1", "x like 'a'", "st.zz = 1", "b = 1", "ts < true"]
)
def test_filters_that_do_not_fit_the_columns(bad: str) -> None:
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
def test_lists_match_pyarrow(filter: Any) -> None:
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    assert rows(filter) == numbered.filter(pq.filters_to_expression(filter)).column("row").to_pylist()


def test_lists_test_for_null() -> None:
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
def test_malformed_lists_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="malformed filter"):
        parse(bad)


def test_expressions_that_do_not_fit_are_refused() -> None:
    for bad in (pc.field("nope") > 1, pc.field("x") + 1):
        with pytest.raises(SchemaError):
            bind(bad, TABLE.schema)


SETS = [
    ~pc.field("x").isin([1]),
    pc.field("x").isin([1, None]),
    ~pc.field("x").isin([1, None]),
    pc.field("x").isin([*range(3, 100), None]),
    ~(pc.field("x").isin([1]) | pc.field("s").isin(["b"])),
    pc.field("f").isin([float("nan")]),
    ~pc.field("f").isin([float("nan"), 1.5]),
    pc.is_in(pc.field("x"), options=pc.SetLookupOptions(pa.array([1, None], pa.int32()), skip_nulls=True)),
]


@pytest.mark.parametrize("filter", SETS, ids=str)
def test_is_in_is_never_null(filter: Any) -> None:
    """As in pyarrow, the reader's `isin` gives true or false for null, never null."""
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    assert rows(filter) == numbered.filter(filter).column("row").to_pylist()


def test_sets_of_floats_match_as_in_pyarrow() -> None:
    """In pyarrow's sets NaN equals itself, and 0.0 differs from -0.0. In SQL the zeros are equal."""
    table = pa.table({"f": [0.0, -0.0, float("nan"), 1.0]})
    batch = table.to_batches()[0]
    for values in ([0.0], [-0.0], [float("nan")], [1.0, 0.0, None]):
        want = str(table.filter(pc.field("f").isin(values)).to_pydict())
        for filter in (pc.field("f").isin(values), [("f", "in", values)]):
            bound = bind(parse(filter), table.schema)
            assert bound.exact
            assert str(keep(batch, bound.test).to_pydict()) == want
    sql = bind(parse("f in (0.0, 5)"), table.schema)
    assert str(keep(batch, sql.test).to_pydict()) == "{'f': [0.0, -0.0]}"


def test_large_sets_are_looked_up(tmp_path: Path) -> None:
    """Each kind of value, by lists and expressions, with values inside and outside the file."""
    table = pa.table(
        {
            "i": pa.array([*range(0, 3000, 3), None], pa.int64()),
            "s": [*(f"v{n}" for n in range(0, 3000, 3)), None],
            "d": pa.array([*range(0, 3000, 3), None], pa.int64()).cast(pa.decimal128(19, 0)),
        }
    )
    cf.write(table, tmp_path / "x.orc", format="orc")
    file = cf.open(tmp_path / "x.orc")
    for name, values in {
        "i": list(range(2000)),
        "s": [f"v{n}" for n in range(2000)],
        "d": [decimal.Decimal(n) for n in range(2000)],
    }.items():
        within = pc.field(name).isin(pa.array(values, table.schema.field(name).type))
        for filter, meaning in (
            ([(name, "in", values)], within),
            ([(name, "not in", [*values, None])], ~within & pc.field(name).is_valid()),
            (within, within),
            (~within, ~within),
        ):
            assert file.read(filter=filter).equals(table.filter(meaning))


NESTED = pa.table(
    {
        "id": [1, 2, 3],
        "s": pa.array(
            [
                {"a.b": 1, "a": {"b": 2}, "c": "x"},
                {"a.b": 2, "a": {"b": 1}, "c": "y"},
                {"a.b": None, "a": None, "c": None},
            ],
            pa.struct([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())])), ("c", pa.string())]),
        ),
        "t.u": pa.array([{"v.w": 7}, {"v.w": 8}, None], pa.struct([("v.w", pa.int64())])),
    }
)


@pytest.mark.parametrize("format", ["orc", "rcfile"])
def test_names_with_dots_are_paths(format: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    cf.write(NESTED, path, format=format)
    options = {} if format == "orc" else {"schema": NESTED.schema, "serde": "binary"}
    file = cf.open(path, **options)
    for filter, ids in [
        ([("s.a.b", "=", 1)], [1]),
        ("s.a.b = 2", [2]),
        (pc.field("s", "a.b") == 1, [1]),
        (pc.field("s", "a", "b") == 1, [2]),
        ([("t.u.v.w", ">", 7)], [2]),
        (pc.field("t.u", "v.w") < 8, [1]),
        ("s.a.b is null and t.u.v.w is null", [3]),
    ]:
        assert file.read(["id"], filter=filter)["id"].to_pylist() == ids, filter


@pytest.mark.parametrize(
    "columns",
    [["s.c", "s.a"], ["id", "id"], ["s.c"], ["s"], ["id"], [], ["s.c", "id", "s.c"], None],
    ids=str,
)
def test_pyarrow_filter_keeps_the_columns(columns: Any, tmp_path: Path) -> None:
    """The columns are the same as without a filter, whether the reader or pyarrow evaluates it."""
    path = tmp_path / "x.orc"
    cf.write(NESTED, path, format="orc")
    file = cf.open(path)
    residual = pc.if_else(pc.field("s", "c").is_null(), False, pc.field("id") > 1)
    assert not bind(residual, file.schema).exact
    got, want = file.read(columns, filter=residual), file.read(columns).slice(1, 1)
    assert got.schema.equals(want.schema)
    assert got.num_rows == 1
    assert got.num_columns == 0 or got.equals(want)


def test_core_evaluates_predicates_and_pyarrow_other_expressions() -> None:
    for filter in ("x > 1 and s like '%b%'", "not s like '%b%'", "f = 0.1 or true", [("x", "in", [1, None])]):
        bound = bind(parse(filter), TABLE.schema)
        assert bound.exact
        assert isinstance(bound.test, Predicate)
    for expression in (
        pc.field("x") > 1,
        pc.field("d") < decimal.Decimal("2"),
        pc.field("ts") == TABLE["ts"][1],
    ):
        assert isinstance(bind(expression, TABLE.schema).test, Predicate), expression
    bound = bind(parse("x > 1 and s like '%b%'"), TABLE.schema)
    assert bound.predicate is not None
    assert bound.predicate.columns() == ["s", "x"]
    expression = pc.starts_with(pc.field("s"), "a")
    assert bind(expression, TABLE.schema).test is expression


VALUES = [
    (1, "x", [0]),
    (2**70, "x", []),
    (numpy.int8(3), "x", [2]),
    (numpy.float64(1.5), "f", [0]),
    (numpy.bool_(True), "b", [0, 3]),
    (numpy.datetime64("1970-01-01T00:00:01.000000001"), "ts", [1]),
    (pa.scalar(1, pa.uint8()), "x", [0]),
    (pa.scalar(None, pa.int32()), "x", []),
    (pa.scalar("p").cast(pa.dictionary(pa.int8(), pa.string())), "dict", [0, 3]),
    (pa.scalar(10**9 + 1, pa.timestamp("ns")), "ts", [1]),
    (decimal.Decimal("1.230"), "d", [0]),
    (decimal.Decimal("NaN"), "d", []),
    (decimal.Decimal("1e999"), "d", []),
    (dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "utc", [0]),
    (dt.datetime(2014, 1, 1), "day", [0]),
    (bytearray(b"a"), "bin", [0]),
    (memoryview(b"a"), "bin", [0]),
    ("a", "bin", [0]),
]


@pytest.mark.parametrize(
    ("value", "column", "expected"), VALUES, ids=lambda v: repr(v).partition(" at 0x")[0][:40]
)
def test_values_may_be_of_any_class(value: Any, column: str, expected: list[int]) -> None:
    assert rows([(column, "=", value)]) == expected
    if expected:
        assert rows([(column, "in", [value])]) == expected


def test_values_may_be_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert rows([("ts", "=", pandas.Timestamp(1_000_000_001))]) == [1]
    assert rows([("utc", "=", pandas.Timestamp(5_000_000, tz="UTC"))]) == [3]
    assert rows([("ts", "=", pandas.NaT)]) == []


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, dt.timedelta(1), 1 + 2j, float])
def test_values_that_cannot_be_compared_are_refused(value: Any) -> None:
    with pytest.raises(SchemaError, match="`x`"):
        rows([("x", "=", value)])


def test_an_instant_needs_a_column_with_a_time_zone() -> None:
    with pytest.raises(SchemaError, match="time zone"):
        rows([("ts", "=", dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc))])


def test_the_core_treats_null_rows_of_sets_as_sql_or_pyarrow_do(tmp_path: Path) -> None:
    """`not in` drops null rows in SQL and keeps them in pyarrow's lists, for any file."""
    path = tmp_path / "x.orc"
    cf.write(TABLE.select(["x", "s"]), path, format="orc")
    file = cf.open(path)
    assert file.read(filter="x not in (1)")["x"].to_pylist() == [3, 4]
    assert file.count("not (x in (1) or s like 'Ü%')") == 0
    assert file.read(filter=[("x", "not in", [1])])["x"].to_pylist() == [None, 3, 4]
    assert file.count(~pc.field("x").isin([1])) == 3


def test_union_column_does_not_block_filters() -> None:
    """Pyarrow can neither compare nor filter unions; a filter on another column needs no comparison of
    unions.
    """
    union = pa.sparse_union([pa.field("f0", pa.int32()), pa.field("f1", pa.string())])
    schema = pa.schema([("x", pa.int32()), ("u", union), ("deep", pa.list_(union))])
    assert bind(Condition.compare("x", ">", 1), schema).predicate is not None
    assert bind(pc.field("x") > 1, schema).predicate is not None
