"""`strings="view"` changes the memory layout of strings, but no value, for any file, filter and consumer."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import generated_filters
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from truth import DATA, Case, cases

import coldframe as cf
from coldframe import _coldframe

FIXTURES = [case for manifest in sorted(DATA.glob("*/files/MANIFEST.json")) for case in cases(manifest)]
FILTERS = 6
# Comparing larger files as Python objects is too slow.
MAX_ROWS = 5000

VALUES = [
    "",
    "short",
    "twelve bytes",
    "thirteen byte",
    "a longer one, of more than a view holds",
    "ä" * 9,
    None,
]


def values(table: pa.Table) -> str:
    """The rows as text, so that NaN equals itself."""
    return repr([column.to_pylist() for column in table.columns])


def has_views(schema: pa.Schema) -> bool:
    return bool(_coldframe.without_views(schema) is not schema)


def assert_same(got: pa.Table, plain: pa.Table, what: str) -> None:
    got.validate(full=True)
    assert _coldframe.without_views(got.schema).equals(plain.schema, check_metadata=True), what
    assert values(got) == values(plain), what


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case.name)
def test_fixture(case: Case) -> None:
    for source in case.sources():
        try:
            plain = cf.open(source, **case.options)
            full = plain.read()
        except cf.ColdframeError:
            continue  # other tests cover files that cannot be read completely
        if not 0 < full.num_rows <= MAX_ROWS:
            continue
        views = cf.open(source, **case.options, strings="view")
        got = views.read()
        assert got.schema.equals(views.schema, check_metadata=True)
        assert_same(got, full, "whole")
        for test in generated_filters.tests(full, random.Random(1), FILTERS):
            want = plain.read(filter=test.filter)
            assert_same(views.read(filter=test.filter), want, f"{test}")


@pytest.fixture
def strings() -> pa.Table:
    """Direct and dictionary strings, binary, and nested strings."""
    rows = 3000
    column = pa.array(
        [None if word is None else f"{word} {i}" for i in range(rows) for word in [VALUES[i % 7]]]
    )
    few = pa.array([VALUES[i * i % 7] for i in range(rows)])
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "text": column,
            "few": few,
            "bytes": column.cast(pa.binary()),
            "tags": pa.array([[word] * (i % 3) for i, word in enumerate(few.to_pylist())]),
            "in": pa.StructArray.from_arrays([few, column], ["few", "text"]),
        }
    )


@pytest.fixture(params=["none", "zstd"])
def path(request: pytest.FixtureRequest, strings: pa.Table, tmp_path: Path) -> str:
    target = str(tmp_path / "words.orc")
    cf.write(strings, target, codec=request.param, stripe_rows=1000, row_index_stride=1000)
    return target


def test_columns_have_view_types(path: str, strings: pa.Table) -> None:
    schema = cf.open(path, strings="view").schema
    assert schema.field("text").type == schema.field("few").type == pa.string_view()
    assert schema.field("bytes").type == pa.binary_view()
    assert schema.field("tags").type.value_type == schema.field("in").type.field(0).type == pa.string_view()
    assert schema.field("id").type == pa.int64()
    assert_same(cf.read_table(path, strings="view"), strings, "whole")
    with pytest.raises(ValueError, match="option `strings`"):
        cf.open(path, strings="large")


@pytest.mark.parametrize("filter", [
    "id = 17",
    "text like 'short%'",
    [("few", "in", ["short", "twelve bytes"])],
    [("in.few", "=", "short")],
    pc.field("text") == "short 1",
    pc.utf8_length(pc.field("text")) > 20,
    pc.ends_with(pc.field("few"), "s"),
])  # fmt: skip
def test_filters(path: str, filter: Any) -> None:
    want = cf.read_table(path, filter=filter)
    assert want.num_rows
    assert_same(cf.open(path, strings="view").read(filter=filter), want, "file")
    assert_same(cf.scan(path, strings="view").to_table(filter=filter), want, "dataset")
    columns = ["few", "id"]
    got = cf.open(path, strings="view").read(columns, filter=filter, limit=5)
    assert_same(got, want.select(columns).slice(0, 5), "projected")
    located = cf.scan(path, strings="view", row_index="row")
    assert_same(located.to_table(filter=filter).drop_columns("row"), want, "with numbers of rows")


def test_few_rows_pin_no_blocks(path: str) -> None:
    (batch,) = cf.open(path, strings="view").to_batches(["id", "text", "bytes"], filter="id = 18")
    assert batch.num_rows == 1
    # The bytes of a null bit, a view and the value, without the bytes of the 3000 other values.
    assert batch.get_total_buffer_size() < 1000


def test_many_files_are_one_table(path: str, strings: pa.Table, tmp_path: Path) -> None:
    for part, rows in [("a", strings.slice(0, 100)), ("b", strings.slice(100, 100))]:
        (tmp_path / f"t/p={part}").mkdir(parents=True)
        cf.write(rows, str(tmp_path / f"t/p={part}/x.orc"))
    binary = strings.set_column(1, "text", strings["text"].cast(pa.binary())).slice(200, 100)
    (tmp_path / "t/p=c").mkdir()
    cf.write(binary, str(tmp_path / "t/p=c/x.orc"))
    folder = str(tmp_path / "t")
    plain, views = cf.scan(folder), cf.scan(folder, strings="view")
    assert views.schema.field("p").type == pa.string_view()
    assert views.schema.field("text").type == pa.binary_view()
    assert_same(views.to_table(), plain.to_table(), "whole")
    assert_same(pickle.loads(pickle.dumps(views)).to_table(), plain.to_table(), "pickled")
    for filter in ["p = 'b' and few = 'short'", pc.utf8_length(pc.field("few")) > 20]:
        assert_same(views.to_table(filter=filter), plain.to_table(filter=filter), f"{filter}")
    splits = [pickle.loads(pickle.dumps(split)) for split in views.splits(1)]
    parts = [split.to_batches(filter="id >= 0").read_all() for split in splits]
    assert_same(pa.concat_tables(parts), plain.to_table(), "splits")
    assert views.count("few = 'short'") == plain.count("few = 'short'")


@pytest.mark.parametrize("open_it", [cf.open, cf.scan], ids=["file", "dataset"])
def test_consumers_ask_for_views(path: str, strings: pa.Table, open_it: Any) -> None:
    views = cf.open(path, strings="view").schema
    for given in ["plain", "view"]:
        rows = open_it(path, strings=given)
        assert pa.RecordBatchReader.from_stream(rows).schema.equals(rows.schema)
        asked = pa.RecordBatchReader.from_stream(rows, schema=views)
        assert asked.schema.equals(views)
        assert_same(asked.read_all(), strings, "asked for views")
        asked = pa.RecordBatchReader.from_stream(rows, schema=strings.schema)
        assert asked.schema.equals(strings.schema)
        assert asked.read_all().equals(strings)


@pytest.mark.parametrize("ending", ["orc", "red"])
def test_views_are_written(path: str, strings: pa.Table, ending: str, tmp_path: Path) -> None:
    names = ["id", "text", "few", "bytes"]
    again = str(tmp_path / f"again.{ending}")
    cf.write(cf.open(path, strings="view").read(names), again)
    assert_same(cf.read_table(again, strings="view"), strings.select(names), "written")


def test_tolerant_reads_return_views(strings: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "words.orc"
    cf.write(strings, str(path), codec="zstd", stripe_rows=1000, row_index_stride=1000)
    stripe = next(node for node in cf.open(str(path)).inspect()["children"] if node["name"] == "stripe 1")
    damaged = bytearray(path.read_bytes())
    middle = stripe["offset"] + stripe["length"] // 2
    damaged[middle : middle + 100] = bytes(100)
    for on_error in ["skip", "null"]:
        plain, views = cf.open(bytes(damaged)), cf.open(bytes(damaged), strings="view")
        want = plain.read(on_error=on_error)
        assert_same(views.read(on_error=on_error), want, on_error)
        assert views.damage == plain.damage
        assert views.damage
    assert views.verify() == plain.verify()


def test_polars(path: str, strings: pa.Table) -> None:
    polars = pytest.importorskip("polars")
    want = polars.DataFrame(strings)
    assert polars.DataFrame(cf.open(path, strings="view")).equals(want)
    lazy = cf.open(path, strings="view").to_polars()
    assert (
        lazy.filter(polars.col("few") == "short").collect().equals(want.filter(polars.col("few") == "short"))
    )


def test_duckdb(path: str, strings: pa.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = cf.open(path, strings="view")
    views = duckdb.connect()
    query = "select few, count(*), max(text) from {} where few <> 'short' group by 1 order by 1"
    want = views.from_arrow(strings).query("plain", query.format("plain")).fetchall()
    for source in [file, file.to_dataset()]:
        views.register("source", source)
        assert views.sql(query.format("source")).fetchall() == want
