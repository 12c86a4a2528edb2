"""Libraries read our Arrow streams and datasets, and push their projections and filters down."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from samples import ROWS
from truth import same

import coldframe as cf


class Spy:
    """Forwards scans to a File and records their arguments."""

    def __init__(self, rows: cf.File) -> None:
        self.rows = rows
        self.scans: list[tuple[Any, Any]] = []

    @property
    def schema(self) -> Any:
        return self.rows.schema

    def to_batches(
        self, columns: Any = None, *, filter: Any = None, batch_size: int = 4096, limit: Any = None
    ) -> Any:
        self.scans.append((columns, filter))
        return self.rows.to_batches(columns, filter=filter, batch_size=batch_size, limit=limit)

    def count(self, filter: Any = None) -> int:
        self.scans.append(("count", filter))
        return self.rows.count(filter)


@pytest.fixture
def spy(file: cf.File) -> Spy:
    return Spy(file)


@pytest.fixture
def dataset(spy: Spy) -> cf.ArrowDataset:
    return cf.ArrowDataset(spy)


def test_pyarrow_reads_a_file(file: cf.File, table: pa.Table) -> None:
    assert same(pa.table(file), table)
    assert pa.record_batch(pa.table(file).to_batches()[0]).num_rows


def test_pandas_reads_a_file(file: cf.File, table: pa.Table) -> None:
    pandas = pytest.importorskip("pandas")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("pandas takes streams from version 3 on")
    frame = pandas.DataFrame.from_arrow(file)
    assert frame.shape == (ROWS, len(table.schema))
    assert frame["id"].tolist() == table["id"].to_pylist()


def test_polars_reads_a_file(file: cf.File, table: pa.Table) -> None:
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(file).equals(polars.DataFrame(table))


def test_nanoarrow_reads_a_file(file: cf.File) -> None:
    nanoarrow = pytest.importorskip("nanoarrow")
    assert sum(len(batch) for batch in nanoarrow.ArrayStream(file)) == ROWS


def test_duckdb_reads_a_file(file: cf.File, table: pa.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("select count(*), sum(id) from file").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]
    assert duckdb.sql("select count(*) from file").fetchall() == [(ROWS,)]


def test_duckdb_pushes_into_the_dataset(dataset: cf.ArrowDataset, spy: Spy, table: pa.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    got = duckdb.sql("select s from dataset where x > 10 and id between 100 and 200").fetchall()
    want = table.filter((pc.field("x") > 10) & (pc.field("id") >= 100) & (pc.field("id") <= 200))
    assert [row[0] for row in got] == want["s"].to_pylist()
    columns, filter = spy.scans[-1]
    assert "tags" not in columns
    assert isinstance(filter, pc.Expression)
    assert "x" in str(filter)
    for sql, expected in [
        ("select count(*) from dataset", ROWS),
        ("select count(*) from dataset where s in ('name 1', 'name 2')", None),
        ("select count(*) from dataset where s is null or b", None),
        ("select count(*) from dataset where not (x > 3) and day < date '2014-06-01'", None),
        ("select count(*) from dataset where f > 100.5", None),
        ("select count(*) from dataset where d = 1.25 or \"at\" > timestamp '1970-01-01 00:10:00'", None),
        ("select count(*) from dataset where s like 'name 3%'", None),
    ]:
        count = duckdb.sql(sql).fetchall()[0][0]
        assert count == (expected or duckdb.sql(sql.replace("dataset", '"table"')).fetchall()[0][0]), sql


def test_polars_pushes_into_the_dataset(dataset: cf.ArrowDataset, spy: Spy, table: pa.Table) -> None:
    pl = pytest.importorskip("polars")
    lazy = pl.scan_pyarrow_dataset(dataset).filter(pl.col("x") > 10).select("s")
    assert lazy.collect().equals(pl.DataFrame(table).filter(pl.col("x") > 10).select("s"))
    columns, filter = spy.scans[-1]
    assert set(columns) == {"x", "s"}
    assert filter is not None


def polars_predicates() -> list[Any]:
    pl = pytest.importorskip("polars")
    x, s, f, b = pl.col("x"), pl.col("s"), pl.col("f"), pl.col("b")
    return [
        x > 10,
        (x > 10) & s.is_in(["name 1", "name 2"]),
        (x > 10) | s.is_null(),
        x.is_between(1, 5) & s.is_not_null(),
        x.is_between(1, 5, closed="none"),
        s.str.starts_with("name 1"),
        s.str.contains("1") & (x < 0),
        f > 100.0,
        f.is_nan(),
        f.is_null() | (x == 3),
        b,
        ~b,
        ~(x > 3),
        x < 5,
        pl.col("day") < dt.date(2014, 3, 1),
        pl.col("at") > dt.datetime(1970, 1, 1, 0, 5),
        x.eq_missing(3),
        (x * 2 > 30) & (pl.col("id") < 500),
        s.is_in(["name 1", None]),
        pl.col("st").struct.field("a") > 900,
        pl.col("d") > 1.25,
        pl.col("id").cast(pl.Int32) == 7,
    ]


def test_lazy_frame_matches_polars(spy: Spy, table: pa.Table) -> None:
    pl = pytest.importorskip("polars")
    from coldframe.polars_source import lazy_frame

    frame = pl.DataFrame(table)
    lazy = lazy_frame(spy)
    for predicate in polars_predicates():
        got = lazy.filter(predicate).select("id").collect()
        assert got.equals(frame.filter(predicate).select("id")), predicate
        assert lazy.filter(predicate).head(3).collect().equals(frame.filter(predicate).head(3)), predicate
    assert lazy.select(pl.len()).collect().item() == ROWS
    assert lazy.head(5).collect().equals(frame.head(5))
    assert lazy.group_by("b").agg(pl.len()).collect().height == 3


def test_lazy_frame_pushes_supported_predicates(spy: Spy) -> None:
    pl = pytest.importorskip("polars")
    from coldframe.polars_source import lazy_frame

    lazy = lazy_frame(spy)
    lazy.filter((pl.col("x") > 10) & (pl.col("s").str.contains("a"))).select("id").collect()
    columns, filter = spy.scans[-1]
    assert set(columns) == {"id", "x", "s"}
    assert filter is not None
    assert filter.columns() == {"x"}


def test_files_and_datasets_make_lazy_frames(file: cf.File) -> None:
    pl = pytest.importorskip("polars")
    assert file.to_polars().filter(pl.col("id") < 3).select("id").collect()["id"].to_list() == [0, 1, 2]


def test_dataset_is_a_pyarrow_dataset(dataset: cf.ArrowDataset, table: pa.Table) -> None:
    assert isinstance(dataset, pads.Dataset)
    assert dataset.schema.equals(table.schema)
    assert dataset.count_rows() == ROWS
    assert dataset.count_rows(filter=pc.field("id") < 10) == 10
    assert dataset.head(5, columns=["id"]).equals(table.slice(0, 5).select(["id"]))
    assert dataset.to_table(columns=["s"], filter=pc.field("id") < 5).equals(table.slice(0, 5).select(["s"]))
    assert sum(batch.num_rows for batch in dataset.to_batches(batch_size=100)) == ROWS
    assert dataset.take([3, 1], columns=["id"])["id"].to_pylist() == [3, 1]
    narrow = dataset.filter(pc.field("id") > 5).filter(pc.field("id") < 8)
    assert narrow.to_table(columns=["id"])["id"].to_pylist() == [6, 7]
    assert narrow.count_rows() == 2
    computed = dataset.scanner(
        columns={"twice": pc.field("id") * 2, "s": pc.field("s")}, filter=pc.field("id") < 3
    )
    assert computed.to_table().to_pydict() == {"twice": [0, 2, 4], "s": [None, "name 1", "name 2"]}
    assert computed.projected_schema.names == ["twice", "s"]
    assert dataset.sort_by([("id", "descending")]).head(1)["id"].to_pylist() == [ROWS - 1]
    flat = cf.open(dataset._rows.rows.path, schema="id bigint", serde="binary").to_dataset()
    joined = flat.filter(pc.field("id") < 2).join(pads.dataset(pa.table({"id": [1], "y": ["z"]})), "id")
    assert sorted(joined.to_table()["y"].to_pylist(), key=str) == [None, "z"]
    assert same(pa.table(dataset), table)


def test_some_methods_of_pyarrow_datasets_are_unsupported(dataset: cf.ArrowDataset) -> None:
    for call in (
        lambda: dataset.replace_schema(pa.schema([])),
        lambda: dataset.children,
    ):
        with pytest.raises(cf.UnsupportedError):
            call()


def test_pyarrows_own_scan_ends_in_an_error_not_in_wrong_rows(dataset: cf.ArrowDataset) -> None:
    for call in (
        lambda: pads.Scanner.from_dataset(dataset).to_table(),
        lambda: pads.Dataset.count_rows(pads.UnionDataset(dataset.schema, [dataset])),
    ):
        with pytest.raises((cf.UnsupportedError, pa.ArrowInvalid), match="scanner"):
            call()


def test_pyarrow_writes_the_dataset(dataset: cf.ArrowDataset, tmp_path: Any, table: pa.Table) -> None:
    for at, data in enumerate((dataset, dataset.scanner(columns=["id"]), dataset.scanner().to_reader())):
        pads.write_dataset(data, tmp_path / str(at), format="parquet")
        written = pads.dataset(tmp_path / str(at)).to_table(columns=["id"]).sort_by("id")
        assert written.equals(table.select(["id"]))
