"""Filters by every door: nested columns, `char`, long and deep expressions, large sets."""

from __future__ import annotations

import functools
import itertools
import operator
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import coldframe as cf
from coldframe import SchemaError, UnsupportedError
from coldframe.filters import bind, keep, mentioned, parse

Kind = Literal["orc", "rcfile"]

TABLE = pa.table({"x": pa.array([1, None, 3, 4], pa.int32()), "s": ["abc", "b", None, "Ü"]})


def rows(filter: Any) -> list[int]:
    """The numbers of the passing rows."""
    test = bind(parse(filter), TABLE.schema).test
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows))).combine_chunks()
    return [row for batch in numbered.to_batches() for row in keep(batch, test).column("row").to_pylist()]


NULLS = pa.table(
    {
        "l": pa.array([[1], [], None, [None]]),
        "m": pa.array([[("k", 1)], None, [], None], pa.map_(pa.string(), pa.int64())),
        "s": pa.array([{"a": 1, "l": [1]}, None, {"a": None, "l": None}, {"a": 2, "l": []}]),
    }
)


def file_of(table: Any, path: Path, format: Kind = "orc", **options: Any) -> cf.File:
    cf.write(table, path, format=format, **options)
    return cf.open(path, **({"schema": table.schema, "serde": "binary"} if format == "rcfile" else {}))


@pytest.mark.parametrize("format", ["orc", "rcfile"])
@pytest.mark.parametrize(
    ("column", "missing"), [("l", [2]), ("m", [1, 3]), ("s", [1]), ("s.a", [1, 2]), ("s.l", [1, 2])]
)
def test_nested_columns_are_tested_for_null(
    format: Kind, column: str, missing: list[int], tmp_path: Path
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


def test_deep_predicates_of_polars(tmp_path: Path) -> None:
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
    """A printed expression may have text that looks like a column, and texts that are cut inside of
    characters.
    """
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
def test_sets_of_200_000_members(type: Any, values: Any, tmp_path: Path) -> None:
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
            for field in (pc.field("c"), pc.field("s", "c")):
                # pyarrow evaluates these.
                assert file.count(pc.utf8_upper(field) == "AB") == 3000
                assert file.read(filter=(field == "ab") | (pc.utf8_length(field) == 1)).num_rows == 9000
    written = tmp_path / "again.orc"
    cf.write(cf.open(tmp_path / "plain.orc"), written, format="orc")
    assert cf.open(written).schema.field("c").metadata is None


def test_char_keys_of_partitions(tmp_path: Path) -> None:
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
