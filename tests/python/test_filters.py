"""Filters have the semantics of pyarrow and SQL, whether the reader or pyarrow evaluates them."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import itertools
import operator
import time
from collections.abc import Iterator
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
from coldframe.filters import Condition, bind, given, keep, mentioned, parse

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


def test_sets_of_floats_are_those_of_pyarrow() -> None:
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
def test_names_with_dots_are_reached(format: str, tmp_path: Path) -> None:
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
    """The columns are those of a read without a filter, whether the reader or pyarrow evaluates it."""
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


def test_known_columns_settle_a_filter() -> None:
    schema = pa.schema([("p", pa.int64()), ("q", pa.string()), ("x", pa.int64())])
    known = {"p": pa.scalar(5, pa.int64()), "q": pa.scalar(None, pa.string())}

    def left(sql: str) -> Condition:
        return given(parse_sql(sql), schema, known)

    assert left("p = 5 and x > 1") == parse_sql("x > 1")
    assert left("p = 4 and x > 1") == parse_sql("false")
    assert left("p = 5 or x > 1") == parse_sql("true")
    assert left("P = 4 or x > 1") == parse_sql("x > 1")
    assert left("q = 'a' and x > 1") == parse_sql("x > 1 and null")
    assert left("q = 'a' or x > 1") == parse_sql("x > 1 or null")
    assert left("not q = 'a'") == parse_sql("null")
    assert left("q is null and not (p in (1, 2))") == parse_sql("true")
    assert left("not x is null") == parse_sql("not x is null")
    assert left("q like 'a%' or p in (5)") == parse_sql("true")
    assert left("x in (1)") == parse_sql("x in (1)")
    assert left("p = 5 or x > 1").always_true
    assert left("q = 'a'").never_true


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
    """Pyarrow can neither compare nor filter unions; a filter on another column needs neither."""
    union = pa.sparse_union([pa.field("f0", pa.int32()), pa.field("f1", pa.string())])
    schema = pa.schema([("x", pa.int32()), ("u", union), ("deep", pa.list_(union))])
    assert bind(Condition.compare("x", ">", 1), schema).predicate is not None
    assert bind(pc.field("x") > 1, schema).predicate is not None


NULLS = pa.table(
    {
        "l": pa.array([[1], [], None, [None]]),
        "m": pa.array([[("k", 1)], None, [], None], pa.map_(pa.string(), pa.int64())),
        "s": pa.array([{"a": 1, "l": [1]}, None, {"a": None, "l": None}, {"a": 2, "l": []}]),
    }
)


def file_of(table: Any, path: Path, format: str = "orc", **options: Any) -> cf.File:
    cf.write(table, path, format=format, **options)
    return cf.open(path, **({"schema": table.schema, "serde": "binary"} if format == "rcfile" else {}))


@pytest.mark.parametrize("format", ["orc", "rcfile"])
@pytest.mark.parametrize(
    ("column", "missing"), [("l", [2]), ("m", [1, 3]), ("s", [1]), ("s.a", [1, 2]), ("s.l", [1, 2])]
)
def test_nested_columns_are_tested_for_null(
    format: str, column: str, missing: list[int], tmp_path: Path
) -> None:
    table = NULLS.append_column("row", pa.array(range(4)))
    file = file_of(table, tmp_path / "x", format)
    field = pc.field(*column.split("."))
    present = [row for row in range(4) if row not in missing]
    for filter, rows in [
        (f"{column} is null", missing),
        (f"{column} is not null", present),
        (f"not ({column} is null or row < 0)", present),
        ([(column, "is null")], missing),
        ([(column, "is not", None)], present),
        (field.is_null(), missing),
        (field.is_valid(), present),
        (~field.is_null() & (pc.field("row") >= 0), present),
    ]:
        assert file.read(["row"], filter=filter)["row"].to_pylist() == rows, filter
        assert file.count(filter) == len(rows)
    for filter in (f"{column} = 1", pc.field("l") == pc.scalar([1])):
        if column != "s.a":
            with pytest.raises((UnsupportedError, SchemaError)):
                file.count(filter)


def test_engines_test_nested_columns_for_null(tmp_path: Path) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    file = file_of(NULLS, tmp_path / "x.orc")
    dataset = file.to_dataset()
    assert dataset.schema == file.schema
    for column, count in (("l", 3), ("m", 2), ("s", 3)):
        assert duckdb.sql(f"select count(*) from dataset where {column} is not null").fetchall() == [(count,)]
        assert duckdb.sql(f"select count(*) from dataset where {column} is null").fetchall() == [(4 - count,)]
        assert file.to_polars().filter(polars.col(column).is_not_null()).collect().height == count
    assert duckdb.sql("select count(*) from dataset where s.l is null").fetchall() == [(2,)]


def test_unions_are_tested_for_null() -> None:
    kinds, of = (
        pa.array([0, 1, 0, 1], pa.int8()),
        [pa.array([1, 2, None, 4]), pa.array(["a", "b", "c", None])],
    )
    union = pa.UnionArray.from_sparse(kinds, of)
    batch = pa.record_batch(
        {
            "u": union,
            "s": pa.StructArray.from_arrays([union], ["u"], mask=pa.array([True, False, False, False])),
        }
    )
    for text, passing in [
        ("u is null", [False, False, True, True]),
        ("s.u is null", [True, False, True, True]),
        ("s is not null", [False, True, True, True]),
    ]:
        test = bind(parse(text), batch.schema).predicate
        assert test is not None
        assert pa.record_batch(test.evaluate(batch)).column(0).to_pylist() == passing, text
    for expression in (pc.field("u").is_null(), pc.field("s", "u").is_null()):
        assert bind(expression, batch.schema).exact


def chain(terms: int) -> Any:
    """`or` and `and` of many terms, 500 levels of them nested."""
    made = pc.field("x") == 1
    for term in range(terms):
        other = pc.field("x") != -term - 1
        if term % (terms // 500) == 0:
            made = ~(made & other) if term % 2 else made | ~other
        else:
            made = made | (pc.field("x") == term)
    return made


@pytest.mark.parametrize("shape", ["left", "right", "even", "deep"])
def test_thousands_of_terms_take_linear_time(shape: str, tmp_path: Path) -> None:
    terms = [pc.field("x") == term for term in range(5000)]
    if shape == "left":
        whole = functools.reduce(operator.or_, terms)
    elif shape == "right":
        whole = functools.reduce(lambda behind, term: term | behind, reversed(terms))
    elif shape == "even":
        while len(terms) > 1:
            pairs = itertools.zip_longest(terms[::2], terms[1::2])
            terms = [a if b is None else a | b for a, b in pairs]
        (whole,) = terms
    else:
        whole = chain(5000)
    table = pa.table({"x": pa.array([*range(3, 200_000, 999), None])})
    file = file_of(table, tmp_path / "x.orc")
    before = time.process_time()
    assert bind(whole, file.schema).exact
    assert file.count(whole) == table.filter(whole).num_rows
    assert time.process_time() - before < 20


def test_deep_nesting_ends_with_an_error() -> None:
    """Not with a RecursionError, nor with the end of the process."""
    deep, negated = pc.field("x") == 1, pc.field("x") == 1
    for level in range(3000):
        deep = deep | (pc.field("x") == level) if level % 2 else deep & (pc.field("x") != -level)
        negated = ~negated
    assert bind(negated, TABLE.schema).exact
    with pytest.raises(ValueError, match="nested deeper than 600"):
        bind(deep, TABLE.schema)
    many = functools.reduce(operator.or_, (pc.starts_with(pc.field("s"), str(n)) for n in range(6000)))
    with pytest.raises(UnsupportedError, match=r"nested 6\d* deep"):
        bind(many, TABLE.schema)
    for text in ("not " * 5000 + "x = 1", "(" * 5000 + "x = 1" + ")" * 5000):
        with pytest.raises(ValueError, match="nested deeper than 100"):
            parse(text)
    assert parse(" or ".join(f"x = {n}" for n in range(20_000))).bind(TABLE.schema)
    assert rows(" and ".join(f"x <> {n + 10}" for n in range(20_000))) == [0, 2, 3]


def test_deep_predicates_of_polars_are_pushed_or_left_to_polars(tmp_path: Path) -> None:
    """The stack of polars itself ends at some hundred levels more."""
    polars = pytest.importorskip("polars")
    file = file_of(pa.table({"x": range(100)}), tmp_path / "x.orc")
    deep, flat = polars.col("x") == 1, polars.col("x") == 1
    for level in range(200):
        flat = flat | (polars.col("x") == level % 7)
        deep = deep | (polars.col("x") == level % 7) if level % 2 else deep & (polars.col("x") >= 0)
    assert file.to_polars().filter(flat).collect().height == 7
    assert file.to_polars().filter(deep).collect().height == 7


def test_meaning_is_not_taken_from_the_printed_form(tmp_path: Path) -> None:
    """A printed expression may hold what looks like a column, and texts cut inside of characters."""
    long = "x" + "é" * 60
    words = ["null_matching_behavior=SKIP", "FieldPath(0)", long, None, "b\n", "é" * 200]
    table = pa.table({"s": words, "x": range(6), "b c": range(6), long: range(6)})
    file = file_of(table, tmp_path / "x.orc")
    for filter in (
        pc.field("s").isin(words[:1]),
        pc.field("s").isin([words[0], None]),
        pc.field("s").isin([long, words[5]]),
        ~pc.field("s").isin([long] * 3),
        pc.field("s") == words[1],
        pc.field("s") >= long,
        pc.field(long) > 3,
        pc.if_else(pc.field("s").isin([long, "b\n"]), pc.field("x") > 2, pc.field("b c") > 4),
        pc.starts_with(pc.field("s"), long) & (pc.field(1) < 5),
    ):
        assert file.read(filter=filter).equals(table.filter(filter))
        assert (
            file.to_dataset()
            .to_table(filter=filter, columns={"n": pc.field("x")})["n"]
            .equals(table.filter(filter)["x"])
        )
    with pytest.raises(SchemaError, match="long texts"):
        bind(pc.field("nope").isin([long, "b"]), table.schema)
    assert mentioned(pc.field("x") + pc.field("b c"), table.schema) == ["x", "b c"]
    assert mentioned(pc.struct_field(pc.field("x"), 0) == pc.field(2), table.schema) == table.column_names


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.int64(), range(0, 400_000, 2)),
        (pa.string(), [f"né {n}" for n in range(0, 400_000, 2)]),
        (pa.binary(), [b"\xff%d" % n for n in range(0, 400_000, 2)]),
        (pa.timestamp("us"), range(0, 400_000, 2)),
    ],
    ids=["integers", "texts", "bytes", "times"],
)
def test_sets_of_200_000_members_are_looked_up(type: Any, values: Any, tmp_path: Path) -> None:
    members = pa.array(values, type)
    table = pa.table({"v": pa.concat_arrays([members.slice(7, 50), pa.nulls(1, type)])})
    table = pa.concat_tables([table, pa.table({"v": pa.array([values[1]], type)})])
    file = file_of(table, tmp_path / "x.orc")
    for filter in (
        pc.field("v").isin(members),
        ~pc.field("v").isin(members),
        [("v", "in", members.to_pylist())],
    ):
        want = table.filter(pc.field("v").isin(members) if isinstance(filter, list) else filter)
        assert bind(parse(filter), file.schema).exact
        assert file.count(filter) == want.num_rows


CHARS = pa.table(
    {
        "c": ["ab", "abc", "b", None, "", "é"] * 3000,
        "s": pa.array([{"c": text} for text in ["ab", "abc", "b", None, "", "é"]] * 3000),
        "row": range(18000),
    }
)


def char_files(folder: Path) -> Iterator[tuple[str, cf.File]]:
    types = {"c": "char(4)", "s.c": "char(4)"}
    cf.write(CHARS, folder / "plain.orc", format="orc", types=types)
    cf.write(CHARS, folder / "bloom.orc", format="orc", types=types, bloom_filter_columns=["c", "s.c"])
    yield "orc", cf.open(folder / "plain.orc")
    yield "orc with blooms", cf.open(folder / "bloom.orc")
    yield "orc with dictionaries", cf.open(folder / "plain.orc", dictionary=True)
    yield "orc with views", cf.open(folder / "plain.orc", strings="view")
    schema = "c char(4), s struct<c: char(4)>, row bigint"
    valid = CHARS.filter(pc.field("c").is_valid())  # text has no null alone in a struct
    for serde in ("text", "binary"):
        cf.write(valid, folder / serde, format="rcfile", serde=serde, schema=schema)
        yield f"rcfile of {serde}", cf.open(folder / serde, schema=schema, serde=serde)


def test_char_compares_without_its_padding(tmp_path: Path) -> None:
    for what, file in char_files(tmp_path):
        assert file.read(limit=1)["c"].to_pylist() == ["ab  "]
        for column in ("c", "s.c"):
            field = pc.field(*column.split("."))
            for filter, texts in [
                (f"{column} = 'ab'", {"ab"}),
                (f"{column} = 'ab   '", {"ab"}),
                (f"{column} <> 'ab'", {"abc", "b", "", "é"}),
                (f"{column} in ('é', 'abc ')", {"é", "abc"}),
                (f"not {column} in ('é', 'abc')", {"ab", "b", ""}),
                (f"{column} > 'ab' and {column} <= 'b'", {"abc", "b"}),
                (f"{column} = ''", {""}),
                (f"{column} = 'zz'", set()),
                ([(column, "=", "ab")], {"ab"}),
                ([(column, "in", ["b", "x"])], {"b"}),
                (field == "ab", {"ab"}),
                (field.isin(["é", "b"]), {"é", "b"}),
                (~(field < "b"), {"b", "é"}),
            ]:
                got = file.read(["c"], filter=filter)["c"].to_pylist()
                assert {text.rstrip(" ") for text in got} == texts, (what, filter)
                assert len(got) == 3000 * len(texts), (what, filter)
                assert file.count(filter) == len(got)
        if "dictionaries" not in what:
            assert file.count("c like '_b'") == 3000
    written = tmp_path / "again.orc"
    cf.write(cf.open(tmp_path / "plain.orc"), written, format="orc")
    assert cf.open(written).schema.field("c").metadata is None


def test_char_keys_of_partitions_compare_without_their_padding(tmp_path: Path) -> None:
    for key in ("ab", "abc"):
        (tmp_path / f"p={key}").mkdir()
        cf.write(pa.table({"x": [1]}), tmp_path / f"p={key}" / "f", format="orc")
    script = tmp_path / "s.hql"
    script.write_text(
        "CREATE EXTERNAL TABLE t (x bigint) PARTITIONED BY (p char(4)) STORED AS ORC "
        f"LOCATION 'file:{tmp_path}';\n"
        + "".join(
            f"ALTER TABLE t ADD PARTITION (p='{p:4}') LOCATION 'file:{tmp_path}/p={p}';\n"
            for p in ("ab", "abc")
        )
    )
    table = cf.hive_table(f"{script}/default.t")
    for filter in ("p = 'ab'", "p = 'ab  '", [("p", "in", ["ab"])], pc.field("p") == "ab", "not p > 'ab'"):
        assert table.count(filter) == 1, filter
        assert len(table.partitions(filter)) == 1, filter
