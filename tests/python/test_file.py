"""`open` and the methods of a File."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from samples import ROWS, SCHEMA
from truth import RCFILES, Case, same

import coldframe as cf

OPTIONS = {"schema": SCHEMA, "serde": "binary"}


def test_a_file_has_attributes(file: cf.File, written: Path, table: pa.Table) -> None:
    assert file.format == "rcfile"
    assert file.path == str(written)
    assert file.schema.names == table.schema.names
    assert file.schema.types == table.schema.types
    assert file.num_rows in (None, ROWS)
    assert file.count() == ROWS
    assert isinstance(file.metadata, dict)
    assert str(written) in repr(file)
    assert "10 columns" in repr(file)
    with file as same:
        assert same is file
    assert file.damage == []


def test_read_returns_the_selected_rows_and_columns(file: cf.File, table: pa.Table) -> None:
    assert same(file.read(), table)
    assert file.read(["s", "id"]).equals(table.select(["s", "id"]))
    assert same(file.read(limit=150), table.slice(0, 150))
    assert file.read(limit=0).num_rows == 0
    assert file.read(["x"], filter=[("id", ">=", 990)]).equals(table.slice(990).select(["x"]))
    assert file.read([]).num_rows == ROWS
    assert cf.read_table(file.path, ["id"], filter="id < 5", **OPTIONS)["id"].to_pylist() == [0, 1, 2, 3, 4]


def test_mistakes_in_arguments_are_errors(file: cf.File) -> None:
    with pytest.raises(cf.SchemaError, match="nope"):
        file.read(["nope"])
    with pytest.raises(TypeError, match="list of names"):
        file.read("id")
    with pytest.raises(ValueError, match="on_error"):
        file.read(on_error="sometimes")
    with pytest.raises(ValueError, match="batch_size"):
        file.to_batches(batch_size=0)
    with pytest.raises(ValueError, match="limit"):
        file.read(limit=-1)
    with pytest.raises(ValueError, match="split"):
        file.to_batches(split=(-1, 5))
    with pytest.raises(ValueError, match="no_such_option"):
        cf.open(file.path, no_such_option=1)
    with pytest.raises(TypeError, match="cannot open int"):
        cf.open(5)


def test_batches_are_no_larger_than_asked(file: cf.File, table: pa.Table) -> None:
    reader = file.to_batches(["id"], batch_size=33)
    assert isinstance(reader, pa.RecordBatchReader)
    batches = list(reader)
    assert max(batch.num_rows for batch in batches) <= 33
    assert pa.Table.from_batches(batches).equals(table.select(["id"]))


FILTERS: list[Any] = [
    [("x", ">", 5)],
    [("x", "not in", [1, 2])],
    [("s", "in", ["name 3", None])],
    [[("id", "<", 10)], [("s", "=", "name 49"), ("b", "=", True)]],
    pc.field("x") > 1,
    (pc.field("x") > 1) & pc.field("s").is_null(),
    ~pc.field("x").isin([1, 2]),
    pc.field("x").isin([1, None]),
    ~(pc.field("x") > 3) | pc.field("b"),
    pc.field("s").isin(["name 4", "name 7"]) | pc.field("x").is_null(),
    pc.match_like(pc.field("s"), "%1%"),
    pc.starts_with(pc.field("s"), "name 1"),
    pc.field("st", "a") < 30,
    pc.field("st", "a").is_null(),
    pc.if_else(pc.field("x").is_valid(), pc.field("x").isin([3, 4]), pa.scalar(None, pa.bool_())),
    pc.field("f") >= 100.0,
    ~(pc.field("f") > 100.0),
    pc.field("f") != 100.25,
    pc.is_nan(pc.field("f")),
    pc.field("d") <= pa.scalar("-1.25").cast(pa.decimal128(9, 2)),
    pc.field("at") > pa.scalar(500 * 10**9, pa.int64()).cast(pa.timestamp("ns")),
    pc.field("day") < pa.scalar("2014-03-01").cast(pa.date32()),
    pc.add(pc.field("id"), 1) == 8,
    pc.field(0) < 3,
    pc.field("x") == pa.scalar(None, pa.int32()),
    pc.field("b") == False,  # noqa: E712
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_filters_keep_the_rows_that_pyarrow_keeps(filter: Any, file: cf.File, table: pa.Table) -> None:
    expression = filter if isinstance(filter, pc.Expression) else pq.filters_to_expression(filter)
    want = table.filter(expression)
    assert file.read(["id"], filter=filter)["id"].equals(want["id"])
    assert file.read(["tags", "id"], filter=filter, limit=7)["id"].to_pylist() == want["id"].to_pylist()[:7]
    assert file.count(filter) == want.num_rows
    assert file.read([], filter=filter).num_rows == want.num_rows
    batches = [file.to_batches(["id"], filter=filter, split=split) for split in file.splits(4000)]
    assert pa.concat_tables(batch.read_all() for batch in batches)["id"].equals(want["id"])


@pytest.mark.parametrize(
    ("sql", "equal"),
    [
        ("x > 5 and s is not null", (pc.field("x") > 5) & pc.field("s").is_valid()),
        ("not (x > 5 or b)", ~((pc.field("x") > 5) | pc.field("b"))),
        ("s like 'name 1%'", pc.starts_with(pc.field("s"), "name 1")),
        ("s like '%7' or x in (1, 2)", pc.ends_with(pc.field("s"), "7") | pc.field("x").isin([1, 2])),
        ("st.a between 10 and 20", (pc.field("st", "a") >= 10) & (pc.field("st", "a") <= 20)),
        ("day >= date '2016-01-01'", pc.field("day") >= pa.scalar("2016-01-01").cast(pa.date32())),
        (
            "at < timestamp '1970-01-01 00:00:30.5'",
            pc.field("at") < pa.scalar(30_500_000_000).cast(pa.timestamp("ns")),
        ),
        ("d > 1.234", pc.field("d") > pa.scalar("1.23").cast(pa.decimal128(9, 2))),
    ],
)
def test_sql_filters_keep_the_same_rows_as_pyarrow(
    sql: str, equal: pc.Expression, file: cf.File, table: pa.Table
) -> None:
    assert file.read(["id"], filter=sql)["id"].equals(table.filter(equal)["id"])
    assert file.count(sql) == table.filter(equal).num_rows


# ---- sources


def test_every_kind_of_source_is_read(written: Path, table: pa.Table) -> None:
    data = written.read_bytes()
    for source in (
        str(written),
        written,
        f"file://{written}",
        data,
        bytearray(data),
        memoryview(data),
        pa.py_buffer(data),
        io.BytesIO(data),
    ):
        assert same(cf.open(source, **OPTIONS).read(), table), type(source)
    with written.open("rb") as handle:
        assert cf.open(handle, **OPTIONS).read(["id"]).equals(table.select(["id"]))
    assert cf.detect(written) == "rcfile"
    assert cf.detect(data) == "rcfile"
    assert cf.detect(io.BytesIO(data)) == "rcfile"
    assert cf.detect(io.BytesIO(b"not one of ours")) is None
    assert cf.detect(b"") is None


def test_sources_of_fsspec_are_read(written: Path, table: pa.Table) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/coldframe/table.rc", written.read_bytes())
    url = "memory://coldframe/table.rc"
    file = cf.open(url, **OPTIONS)
    assert file.path == url
    assert same(file.read(), table)
    assert file.splits()[0].to_batches().read_all().num_rows
    assert cf.detect(url) == "rcfile"
    for source in (fsspec.open(url), memory.open("/coldframe/table.rc")):
        assert cf.open(source, **OPTIONS).read(["id"]).equals(table.select(["id"]))
    with pytest.raises(cf.NotFoundError, match="memory://"):
        cf.open("memory://coldframe/nope.rc")
    with pytest.raises(cf.UnsupportedError, match="nosuch"):
        cf.open("nosuch://host/path")


def test_errors_have_classes_and_attributes(tmp_path: Path) -> None:
    missing = tmp_path / "missing.rc"
    with pytest.raises(cf.NotFoundError, match=r"missing\.rc"):
        cf.open(missing)
    with pytest.raises(cf.CorruptFileError) as raised:
        cf.open(io.BytesIO(b"not one of ours at all"))
    assert raised.value.reason
    other = tmp_path / "other"
    other.write_bytes(b"PAR1" * 10)
    with pytest.raises(cf.ColdframeError, match="other"):
        cf.open(other)
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(cf.CorruptFileError):
        cf.open(empty)


def test_error_of_the_callers_file_propagates(written: Path) -> None:
    class Broken(io.BytesIO):
        broken = False

        def read(self, size: int | None = -1, /) -> bytes:
            if self.broken:
                raise ZeroDivisionError("the disk is gone")
            return super().read(size)

    source = Broken(written.read_bytes())
    file = cf.open(source, **OPTIONS)
    source.broken = True
    with pytest.raises(ZeroDivisionError, match="the disk is gone"):
        file.read()


# ---- streams and splits


def test_streams_are_fresh_and_lazy(file: cf.File, table: pa.Table) -> None:
    assert same(pa.table(file), table)
    assert same(pa.table(file), table)
    assert pa.schema(file).equals(file.schema)
    assert same(pa.RecordBatchReader.from_stream(file).read_all(), table)


def test_splits_give_each_row_once(groups: Case) -> None:
    file = cf.open(groups.path, **groups.options)
    whole = file.read()
    for target in (500, 1000, 5000, 1 << 30):
        splits = file.splits(target)
        parts = [file.to_batches(split=split).read_all() for split in splits]
        assert pa.concat_tables(parts).equals(whole), target
    assert len(file.splits(1000)) > 1
    assert len(file.splits(1 << 30)) == 1


def test_byte_ranges_that_tile_the_file_give_each_row_once(groups: Case) -> None:
    file = cf.open(groups.path, **groups.options)
    size = groups.path.stat().st_size
    for length in (97, 2000, size // 2 + 1, size):
        parts = [file.to_batches(split=(start, length)).read_all() for start in range(0, size, length)]
        assert pa.concat_tables(parts).equals(file.read()), length


def test_splits_pickle(written: Path, table: pa.Table) -> None:
    file = cf.open(written, **OPTIONS, keys={"k": "00ff"})
    splits = pickle.loads(pickle.dumps(file.splits(4000)))
    assert splits == file.splits(4000)
    assert "00ff" not in repr(splits[0])
    assert splits[0].path == str(written)
    assert splits[0].format == "rcfile"
    assert splits[0].options["serde"] == "binary"
    assert splits[0].partition == {}
    parts = [split.to_batches(["id", "s"], filter="id > 10").read_all() for split in splits]
    assert pa.concat_tables(parts).equals(table.slice(11).select(["id", "s"]))
    assert splits[0].schema.equals(file.schema)


def test_splits_pickle_to_another_process(written: Path, tmp_path: Path) -> None:
    (tmp_path / "splits").write_bytes(pickle.dumps(cf.open(written, **OPTIONS).splits(4000)))
    program = (
        "import pickle, sys\n"
        "splits = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(sum(split.open().to_batches(split=split).read_all().num_rows for split in splits))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "splits")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(ROWS)


def test_opening_a_split_reads_nothing_again(written: Path) -> None:
    class Counted(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            return super().read(size)

    source = Counted(written.read_bytes())
    split = cf.open(source, **OPTIONS).splits()[0]
    source.reads = 0
    again = split.open()
    assert again.schema.names
    assert source.reads == 0


def test_split_of_bytes_does_not_pickle(written: Path, table: pa.Table) -> None:
    (split,) = cf.open(written.read_bytes(), **OPTIONS).splits()
    assert same(split.to_batches().read_all(), table)
    with pytest.raises(cf.UnsupportedError, match="cannot be pickled"):
        pickle.dumps(split)


# ---- the physical side


def test_every_byte_has_a_name(groups: Case) -> None:
    tree = cf.open(groups.path, **groups.options).inspect()
    assert (tree["offset"], tree["length"]) == (0, groups.path.stat().st_size)

    def check(node: dict[str, Any]) -> None:
        assert node["name"]
        assert isinstance(node["detail"], dict)
        end = node["offset"] + node["length"]
        at = node["offset"]
        for child in sorted(node["children"], key=lambda c: int(c["offset"])):
            assert child["offset"] >= at, (node["name"], child)
            at = child["offset"] + child["length"]
            assert at <= end, (node["name"], child)
            check(child)

    check(tree)
    covered = sum(child["length"] for child in tree["children"])
    assert covered == tree["length"]


def test_verify(file: cf.File) -> None:
    seen: list[int] = []
    report = file.verify(seen.append)
    assert report["rows"] == ROWS
    assert report["damage"] == []
    assert report["units"] == 10
    assert seen == sorted(seen)
    assert seen[-1] == ROWS


def test_damage_is_reported_when_the_stream_ends(written: Path) -> None:
    data = bytearray(written.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    file = cf.open(bytes(data), **OPTIONS)
    reported: list[Any] = []
    reader = file.to_batches(on_error="skip", on_damage=reported.append)
    assert reported == []
    rows = sum(batch.num_rows for batch in reader)
    assert 700 <= rows < ROWS
    assert reported == [file.damage]
    assert file.damage[0]["reason"]
    file.damage.clear()
    assert file.damage


def test_every_option_has_a_description() -> None:
    from coldframe import _coldframe

    for format, options in _coldframe.formats().items():
        assert format
        assert all(options[group][name] for group in ("open", "write") for name in options[group])


def test_without_a_schema_cells_are_binary() -> None:
    file = cf.open(RCFILES / "text_groups.rc")
    assert file.schema.names[:2] == ["_c0", "_c1"]
    assert set(file.schema.types) == {pa.binary()}
    assert file.read(["_c1"], limit=3).num_rows == 3


def test_arrow_schema_is_accepted(written: Path, table: pa.Table) -> None:
    assert same(cf.open(written, schema=table.schema, serde="binary").read(), table)


def test_redfile_reports_a_guessed_dialect() -> None:
    """Fixed-width columns have the same layout in every dialect except for byte order."""
    path = Path(__file__).parent.parent / "data" / "redfile" / "files" / "flat_a.redfile"
    with pytest.warns(cf.AmbiguousDialectWarning, match="dialect"):
        file = cf.open(path)
    assert file.metadata["ambiguous"] is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cf.open(path, dialect="redelm-a").metadata["ambiguous"] is False
