"""Many files as one table."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import coldframe as cf

OPTIONS = {"format": "rcfile", "schema": "x bigint, s string", "serde": "binary"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three partitions: one with an escaped value, one null."""
    for at, (day, city) in enumerate(
        [("2014-01-01", "a%20b"), ("2014-01-02", "__HIVE_DEFAULT_PARTITION__"), ("2014-02-01", "z")]
    ):
        folder = tmp_path / f"dt={day}" / f"city={city}"
        folder.mkdir(parents=True)
        rows = pa.table({"x": [at * 10, at * 10 + 1, None], "s": ["a", "b", None]})
        cf.write(rows, folder / "000000_0", format="rcfile", serde="binary")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".staging").mkdir()
    (tmp_path / ".staging" / "000000_0").write_bytes(b"half a file")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "000000_0").write_bytes(b"half a file")
    return tmp_path


def test_partitions_become_columns(tree: Path) -> None:
    dataset = cf.scan(tree, **OPTIONS)
    assert dataset.schema.names == ["x", "s", "dt", "city"]
    assert dataset.schema.types == [pa.int64(), pa.string(), pa.date32(), pa.string()]
    assert dataset.partition_columns == ["dt", "city"]
    assert len(dataset.files) == 3
    assert dataset.to_table().to_pydict() == {
        "x": [0, 1, None, 10, 11, None, 20, 21, None],
        "s": ["a", "b", None] * 3,
        "dt": [dt.date(2014, 1, 1)] * 3 + [dt.date(2014, 1, 2)] * 3 + [dt.date(2014, 2, 1)] * 3,
        "city": ["a b"] * 3 + [None] * 3 + ["z"] * 3,
    }
    assert dataset.count_rows() == 9
    assert dataset.head(4, ["city", "x"]).to_pydict() == {"city": ["a b"] * 3 + [None], "x": [0, 1, None, 10]}
    assert dataset.to_table([]).num_rows == 9
    assert "3 files" in repr(dataset)
    assert pa.table(dataset).equals(dataset.to_table())
    assert pa.schema(dataset).equals(dataset.schema)


def test_partitioning_is_typed_or_left_alone(tree: Path) -> None:
    typed = cf.scan(tree, partitioning=pa.schema([("dt", pa.string())]), **OPTIONS)
    assert typed.schema.field("dt").type == pa.string()
    assert cf.scan(tree, partitioning=None, **OPTIONS).schema.names == ["x", "s"]
    with pytest.raises(cf.SchemaError, match="dt=2014-01-01"):
        cf.scan(tree, partitioning=pa.schema([("dt", pa.int32())]), **OPTIONS)
    with pytest.raises(ValueError, match="partitioning"):
        cf.scan(tree, partitioning="spark", **OPTIONS)


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["1", "02", "-3"], pa.int64()),
        (["1", "x"], pa.string()),
        (["2014-01-01", "1"], pa.string()),
        (["2014-13-01"], pa.string()),
    ],
)
def test_types_of_partitions_fit_all_values(values: list[str], type: pa.DataType, tmp_path: Path) -> None:
    for value in values:
        (tmp_path / f"p={value}").mkdir()
        cf.write(pa.table({"x": [1]}), tmp_path / f"p={value}" / "f", format="rcfile")
    assert cf.scan(tmp_path, format="rcfile").schema.field("p").type == type


FILTERS = [
    ("dt = '2014-01-01'", 1),
    ([("dt", ">=", dt.date(2014, 1, 2)), ("x", ">", 10)], 2),
    (pc.field("city") == "z", 1),
    ((pc.field("dt") > pa.scalar(dt.date(2014, 1, 1))) & (pc.field("x") > 10), 2),
    (pc.field("x") > 10, 3),
    ("city is null", 1),
    ("city = 'a b' and s = 'a'", 1),
    ("city = 'a b' or s = 'a'", 3),
    ("not city = 'z'", 1),
    ("dt > '2020-01-01'", 0),
    ([("city", "not in", ["z"])], 2),
    (~pc.field("city").isin(["z"]), 2),
]


@pytest.mark.parametrize(("filter", "files"), FILTERS, ids=lambda value: str(value))
def test_filters_prune_files_and_keep_the_right_rows(filter: object, files: int, tree: Path) -> None:
    dataset = cf.scan(tree, **OPTIONS)
    whole = dataset.to_table()
    from coldframe.filters import bind, keep, parse

    test = bind(parse(filter), whole.schema).test
    want = pa.Table.from_batches([keep(b, test) for b in whole.combine_chunks().to_batches()], whole.schema)
    assert dataset.to_table(filter=filter).equals(want)
    assert dataset.to_table(["city"], filter=filter).equals(want.select(["city"]))
    assert dataset.to_table(["s"], filter=filter, limit=1).num_rows == min(1, want.num_rows)
    assert dataset.count_rows(filter) == want.num_rows
    assert len({split.path for split in dataset.splits(filter=filter)}) == files
    parts = [split.to_batches(filter=filter).read_all() for split in dataset.splits(filter=filter)]
    assert sum(part.num_rows for part in parts) == want.num_rows


def test_pruned_files_are_not_opened(tree: Path) -> None:
    dataset = cf.scan(tree, **OPTIONS)
    assert dataset.schema.names
    broken = tree / "dt=2014-02-01" / "city=z" / "000000_0"
    broken.write_bytes(b"no RCFile")
    assert dataset.to_table(filter="dt < '2014-02-01'").num_rows == 6
    assert dataset.to_table(filter=pc.field("city") == "a b").num_rows == 3
    with pytest.raises(OSError, match=r"city=z.*was changed since it was listed"):
        dataset.to_table()
    with pytest.raises(cf.CorruptFileError, match="city=z"):
        cf.scan(tree, **OPTIONS).to_table()


def test_splits_carry_partitions(tree: Path) -> None:
    dataset = cf.scan(tree, **OPTIONS)
    splits = pickle.loads(pickle.dumps(dataset.splits()))
    assert splits[-1].partition == {"dt": dt.date(2014, 2, 1), "city": "z"}
    assert splits[0].schema.equals(dataset.schema)
    assert pa.concat_tables(split.to_batches().read_all() for split in splits).equals(dataset.to_table())
    narrow = pa.concat_tables(split.to_batches(["city", "x"], filter="x > 0").read_all() for split in splits)
    assert narrow.to_pydict() == {"city": ["a b", None, None, "z", "z"], "x": [1, 10, 11, 20, 21]}


def test_globs_and_lists_select_files(tree: Path) -> None:
    everything = cf.scan(tree, **OPTIONS).to_table()
    for pattern in ("dt=*/city=*/*", "**/0*", "dt=*"):
        assert cf.scan(str(tree / pattern), **OPTIONS).to_table().equals(everything), pattern
    january = cf.scan(str(tree / "dt=2014-01-*" / "*" / "*"), **OPTIONS)
    assert january.schema.names == ["x", "s", "dt", "city"]
    assert january.count_rows() == 6
    files = cf.scan(tree, **OPTIONS).files
    listed = cf.scan(files, **OPTIONS)
    assert listed.schema.names == ["x", "s"]
    assert listed.count_rows() == 9
    assert cf.scan([Path(files[0]).read_bytes(), cf.open(files[1], **OPTIONS)], **OPTIONS).count_rows() == 6
    assert cf.scan(tree / "dt=2014-01-01", **OPTIONS).schema.names == ["x", "s", "city"]


def test_nothing_to_scan_is_an_error(tmp_path: Path) -> None:
    for nothing in ([], tmp_path, tmp_path / "missing", str(tmp_path / "*.rc")):
        with pytest.raises(cf.NotFoundError):
            cf.scan(nothing)


def test_partitions_must_agree(tree: Path) -> None:
    (tree / "dt=2014-03-01").mkdir()
    cf.write(pa.table({"x": [1], "s": ["a"]}), tree / "dt=2014-03-01" / "f", format="rcfile", serde="binary")
    with pytest.raises(cf.SchemaError, match="partition columns"):
        cf.scan(tree, **OPTIONS)


def test_schemas_are_cast_to_the_first_schema(tmp_path: Path) -> None:
    """Files that name their columns, each opened with another schema."""
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        cf.write(pa.table({"x": [1, 2], "y": [3, 4]}), path, format="rcfile", serde="binary")
    first = cf.open(paths[0], schema="x bigint, y bigint", serde="binary")
    second = cf.open(paths[1], schema="X bigint", serde="binary")
    third = cf.open(paths[2], schema="z bigint, y bigint, x string", serde="binary")
    dataset = cf.scan([first, second])
    assert dataset.to_table().to_pydict() == {"x": [1, 2, 1, 2], "y": [3, 4, None, None]}
    assert dataset.to_table(filter="y is null")["x"].to_pylist() == [1, 2]
    assert dataset.to_table(filter=pc.field("y").is_null())["x"].to_pylist() == [1, 2]
    assert dataset.count_rows("y > 3") == 1
    with pytest.raises(
        cf.SchemaError, match=r"column x is int64 in .* and string in .*: no type holds the values"
    ):
        cf.scan([first, third]).to_table()
    with pytest.raises(cf.SchemaError, match=r"columns \['z'\] are not among those of the first file"):
        cf.scan([first, third], unify=False).to_table()


def test_types_are_cast_where_the_values_fit(tmp_path: Path) -> None:
    cf.write(pa.table({"x": [1]}), tmp_path / "a", format="rcfile", serde="text")
    cf.write(pa.table({"x": [1 << 40]}), tmp_path / "b", format="rcfile", serde="text")
    narrow = cf.open(tmp_path / "a", schema="x int", serde="text")
    wide = cf.open(tmp_path / "b", schema="x bigint", serde="text")
    assert cf.scan([wide, narrow]).to_table()["x"].to_pylist() == [1 << 40, 1]
    assert cf.scan([wide, narrow]).to_table(filter="x = 1")["x"].to_pylist() == [1]
    assert cf.scan([narrow, wide]).schema.field("x").type == pa.int64()
    assert cf.scan([narrow, wide]).to_table()["x"].to_pylist() == [1, 1 << 40]
    with pytest.raises(cf.SchemaError, match="'x'"):
        cf.scan([narrow, wide], unify=False).to_table()


def test_damage_names_its_file(tree: Path) -> None:
    broken = tree / "dt=2014-01-02" / "city=__HIVE_DEFAULT_PARTITION__" / "000000_0"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-3])
    dataset = cf.scan(tree, **OPTIONS)
    with pytest.raises(cf.CorruptFileError):
        dataset.to_table()
    assert dataset.to_table(on_error="skip").num_rows == 6
    assert [lost["path"] for lost in dataset.damage] == [str(broken)]


@pytest.mark.parametrize("broken", [0, 1])
def test_unreadable_file_loses_only_its_rows(tmp_path: Path, broken: int) -> None:
    for number in range(3):
        cf.write(pa.table({"x": [number, number]}), tmp_path / f"{number}.orc", format="orc")
    path = tmp_path / f"{broken}.orc"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + bytes(20))
    dataset = cf.scan(tmp_path, format="orc")
    assert dataset.schema.names == ["x"]
    with pytest.raises(cf.CorruptFileError, match=path.name):
        dataset.to_table()
    for on_error in ("skip", "null"):
        table = dataset.to_table(on_error=on_error)
        assert sorted(table["x"].to_pylist()) == sorted(2 * [n for n in range(3) if n != broken])
        (lost,) = dataset.damage
        assert (lost["path"], lost["rows_lost"]) == (str(path), None)
    for other in tmp_path.iterdir():
        other.write_bytes(b"ORC, once")
    with pytest.raises(cf.CorruptFileError):
        cf.scan(tmp_path, format="orc").to_table(on_error="skip")


def test_queries_run_over_many_files(tree: Path) -> None:
    dataset = cf.scan(tree, **OPTIONS)
    duckdb = pytest.importorskip("duckdb")
    rows = dataset.to_dataset()
    assert len(rows.schema) == 4
    assert duckdb.sql("select x from rows where dt = date '2014-01-01' and x > 0").fetchall() == [(1,)]
    assert duckdb.sql(
        "select city, count(x) from dataset group by city order by city nulls last"
    ).fetchall() == [
        ("a b", 2),
        ("z", 2),
        (None, 2),
    ]
    pl = pytest.importorskip("polars")
    lazy = (
        dataset.to_polars()
        .filter((pl.col("dt") > dt.date(2014, 1, 1)) & (pl.col("x") > 10))
        .select("city", "x")
    )
    assert lazy.collect().rows() == [(None, 11), ("z", 20), ("z", 21)]


def test_remote_trees_are_scanned_like_local_trees(tree: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            memory.pipe(f"/scan/{path.relative_to(tree)}", path.read_bytes())
    local = cf.scan(tree, **OPTIONS).to_table()
    assert cf.scan("memory://scan", **OPTIONS).to_table().equals(local)
    assert cf.scan("memory://scan/dt=2014-01-*/*/*", **OPTIONS).count_rows() == 6
    splits = cf.scan("memory://scan", **OPTIONS).splits()
    assert splits[0].path.startswith("memory://")
    assert splits[0].to_batches().read_all().num_rows == 3
    with pytest.raises(cf.NotFoundError):
        cf.scan("memory://scan/nothing")


def test_fragments_have_the_columns_of_their_dataset(tmp_path: Path) -> None:
    for part in range(3):
        cf.write(pa.table({"id": [part * 2, part * 2 + 1]}), tmp_path / f"{part}.orc", format="orc")
    dataset = cf.scan(tmp_path, file_path="p", row_index="n").to_dataset()
    fragments = list(dataset.get_fragments())
    assert all(fragment.physical_schema == dataset.schema for fragment in fragments)
    rows = [row for fragment in fragments for row in fragment.to_table().to_pylist()]
    assert rows == dataset.to_table().to_pylist()
    assert fragments[2].to_table(columns=["n", "id"]).to_pylist() == [{"n": 4, "id": 4}, {"n": 5, "id": 5}]
    again = pickle.loads(pickle.dumps(fragments[1]))
    assert again.to_table(filter=pc.field("n") > 2).to_pylist() == rows[3:4]
