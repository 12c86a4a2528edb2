"""Idioms of pyarrow and pandas users."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from samples import SCHEMA

import coldframe as cf

ROWS = pa.table({"id": range(3000), "s": [f"name {i % 50}" for i in range(3000)]})


@pytest.fixture
def orc(tmp_path: Path) -> Path:
    path = tmp_path / "rows.orc"
    cf.write(ROWS, path, format="orc")
    return path


def test_rows_are_read_by_the_methods_of_pyarrow_and_pandas(
    written: Path, file: cf.File, table: pa.Table
) -> None:
    assert cf.read_schema(written, schema=SCHEMA, serde="binary").equals(file.schema)
    assert file.to_table(["id", "x"]).equals(table.select(["id", "x"]))
    assert file.head(3).equals(table.slice(0, 3))
    assert file.head(2, ["x"], filter="id > 100")["x"].to_pylist() == table["x"].to_pylist()[101:103]
    for rows in (file, cf.scan(written, schema=SCHEMA, serde="binary")):
        pytest.importorskip("pandas")
        frame = rows.to_pandas(["id", "s"], filter="id < 5", types_mapper={pa.int64(): None}.get)
        assert list(frame.columns) == ["id", "s"]
        assert frame["id"].tolist() == [0, 1, 2, 3, 4]


def test_splits_take_their_size_by_both_names(orc: Path) -> None:
    file = cf.open(orc)
    assert file.splits(split_bytes=1) == file.splits(1)
    for rows in (file, cf.scan(orc)):
        assert len(rows.splits(target_bytes=1)) == len(rows.splits(1))


def test_files_and_datasets_pickle(orc: Path, tmp_path: Path) -> None:
    file = cf.open(orc, threads=1)
    (tmp_path / "pickled").write_bytes(pickle.dumps([file, cf.scan([orc, orc]), file.to_dataset()]))
    program = (
        "import pickle, sys; f, d, a = pickle.load(open(sys.argv[1], 'rb')); "
        "print(f.num_rows, f.format, d.count(), d.schema.names, a.count_rows())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "pickled")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "3000 orc 6000 ['id', 's'] 3000\n"
    again = pickle.loads(pickle.dumps(file))
    assert again.read().equals(ROWS)
    assert again._raw.threads == 1
    with pytest.raises(cf.UnsupportedError, match="object of this process"):
        pickle.dumps(cf.open(orc.read_bytes()))


def test_table_has_the_columns_of_all_files(tmp_path: Path) -> None:
    parts = {
        "a": pa.table({"id": pa.array([1], pa.int32()), "name": ["x"]}),
        "b": pa.table({"ID": pa.array([1 << 40], pa.int64()), "at": pa.array([1.5])}),
        "c": pa.table({"name": ["y"]}),
    }
    for name, table in parts.items():
        cf.write(table, tmp_path / f"{name}.orc", format="orc")
    dataset = cf.scan(tmp_path)
    assert dataset.schema.equals(pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.float64())]))
    want = {"id": [1, 1 << 40, None], "name": ["x", None, "y"], "at": [None, 1.5, None]}
    assert dataset.to_table().to_pydict() == want
    assert dataset.to_table(on_error="skip").to_pydict() == want
    assert dataset.count("at > 1") == 1
    assert dataset.to_table(["at"], filter=pc.field("id") > 5).to_pydict() == {"at": [1.5]}
    parts = [split.to_batches().read_all() for split in dataset.splits()]
    assert pa.concat_tables(parts).to_pydict() == want

    narrow = cf.scan(tmp_path, unify=False)
    assert narrow.schema.names == ["id", "name"]
    with pytest.raises(cf.SchemaError, match=r"b\.orc: columns \['at'\]"):
        narrow.to_table()

    cf.write(pa.table({"id": ["text"]}), tmp_path / "d.orc", format="orc")
    with pytest.raises(
        cf.SchemaError, match=r"column id is int64 in .*b\.orc and string in .*d\.orc: no type"
    ):
        cf.scan(tmp_path).schema  # noqa: B018


def test_nested_columns_widen_or_raise(tmp_path: Path) -> None:
    """As in `migrate`: both use coldframe.widening."""

    def scan(*columns: pa.Array) -> cf.Dataset:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for at, column in enumerate(columns):
            cf.write(pa.table({"v": column}), folder / f"{at}.orc", format="orc")
        return cf.scan(folder)

    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    wide = pa.struct([("Y", pa.string()), ("x", pa.int64()), ("z", pa.float64())])
    dataset = scan(
        pa.array([{"x": 1, "y": "a"}, None], point), pa.array([{"Y": "b", "x": 2, "z": 0.5}], wide)
    )
    expected = [{"x": 1, "y": "a", "z": None}, None, {"x": 2, "y": "b", "z": 0.5}]
    assert dataset.to_table()["v"].to_pylist() == expected
    lists = scan(pa.array([[1], [], None], pa.list_(pa.int8())), pa.array([[1 << 40]], pa.list_(pa.int64())))
    assert lists.to_table()["v"].to_pylist() == [[1], [], None, [1 << 40]]
    price = [pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.array([7], pa.int32())]
    assert scan(*price).schema.field("v").type == pa.decimal128(12, 2)
    assert scan(*price).to_table()["v"].to_pylist() == [Decimal("1.50"), Decimal("7.00")]

    # No double equals 2^53 + 1: an error names the file instead of rounding.
    lossy = scan(pa.array([0.5]), pa.array([(1 << 53) + 1]))
    assert lossy.schema.field("v").type == pa.float64()
    with pytest.raises(cf.SchemaError, match=r"1\.orc: column 'v' is int64 in this file, and not every"):
        lossy.to_table()
    with pytest.raises(cf.SchemaError, match=r"is double in .*0\.orc and decimal128\(5, 2\) in .*1\.orc"):
        scan(pa.array([0.5]), price[0]).schema  # noqa: B018


def test_unreadable_file_fails_when_rows_are_read(tmp_path: Path) -> None:
    cf.write(ROWS, tmp_path / "a.orc", format="orc")
    (tmp_path / "b.orc").write_bytes((tmp_path / "a.orc").read_bytes()[:-20])
    dataset = cf.scan(tmp_path)
    assert dataset.schema.names == ["id", "s"]
    with pytest.raises(cf.CorruptFileError, match=r"b\.orc"):
        dataset.to_table()


def test_partitioned_write_round_trips(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "x": range(600),
            "city": [[f"a b/{i % 3}", None, "z=%"][i % 3] for i in range(600)],
            "day": pa.array([i % 4 for i in range(600)], pa.int32()).cast(pa.date32()),
        }
    )
    summary = cf.write(rows, tmp_path / "t", format="orc", partitioning=["day", "city"])
    assert summary["rows"] == 600
    assert len(summary["files"]) == 12
    assert summary["files"][0] == "day=1970-01-01/city=__HIVE_DEFAULT_PARTITION__/part-0.orc"
    assert "day=1970-01-01/city=a b%2F0/part-0.orc" in summary["files"]
    assert summary["bytes"] == sum(path.stat().st_size for path in (tmp_path / "t").rglob("*.orc"))
    back = cf.scan(tmp_path / "t").to_table(["x", "city", "day"])
    assert back.sort_by("x").equals(rows)
    assert cf.open(tmp_path / "t" / summary["files"][0]).schema.names == ["x"]
    with pytest.raises(FileExistsError, match="an empty one"):
        cf.write(rows, tmp_path / "t", format="orc", partitioning=["day"])


def test_more_partitions_than_files_may_be_open(tmp_path: Path) -> None:
    rows = pa.table({"x": range(4000), "p": [i % 40 for i in range(4000)]})
    batches = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=400))
    seen: list[int] = []
    summary = cf.write(batches, tmp_path / "t", format="rcfile", partitioning=["p"], progress=seen.append)
    assert len(summary["files"]) == 40
    assert seen[-1] == 4000
    back = cf.scan(tmp_path / "t", schema="x bigint", serde="binary").to_table(["x", "p"])
    assert back.sort_by("x").equals(rows)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2], "p": ["a", ""]})
    for partitioning, error in (
        (["p"], cf.SchemaError),
        (["no"], cf.SchemaError),
        (["x", "p"], cf.SchemaError),
    ):
        with pytest.raises(error, match="partitioning"):
            cf.write(rows, tmp_path / "t", format="orc", partitioning=partitioning)
        assert not (tmp_path / "t").exists()
    with pytest.raises(ValueError, match="codec"):
        cf.write(rows.slice(0, 1), tmp_path / "t", format="orc", partitioning=["p"], codec="no such")
    assert not (tmp_path / "t").exists()
    with pytest.raises(TypeError):
        cf.write(rows, tmp_path / "t", format="orc", partitioning="p")
    with pytest.raises(cf.UnsupportedError):
        cf.write(pa.table({"x": [1], "f": [1.5]}), tmp_path / "t", format="orc", partitioning=["f"])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.slice(0, 1).to_batches()
        raise RuntimeError("the source is gone")

    failing = pa.RecordBatchReader.from_batches(rows.schema, batches())
    with pytest.raises(RuntimeError, match="the source is gone"):
        cf.write(failing, tmp_path / "t", format="orc", partitioning=["p"])
    assert not (tmp_path / "t").exists()


def test_streams_are_decoded_by_several_threads_in_order(tmp_path: Path) -> None:
    path = tmp_path / "big.orc"
    rows = pa.table({"id": range(400_000), "noise": [hash((i, "x")) for i in range(400_000)]})
    cf.write(rows, path, format="orc", codec="none", stripe_size=1 << 20)
    file = cf.open(path, threads=4)
    assert len(file.splits(8 << 20)) > 0
    for stream in (
        file.to_batches(),
        pa.RecordBatchReader.from_stream(file),
        file.to_batches(use_threads=False),
    ):
        assert pa.Table.from_batches(list(stream)).equals(rows)
    dataset = cf.scan([path, path, path], threads=3)
    assert dataset.to_table().equals(pa.concat_tables([rows] * 3))
    assert pa.table(dataset).num_rows == 1_200_000
    before = threading.active_count()
    taken = iter(dataset.to_batches(batch_size=1000))
    assert next(taken)["id"][0].as_py() == 0
    del taken
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_files_side_by_side_come_in_order_and_raise_in_place(tmp_path: Path) -> None:
    for number in range(7):
        part = pa.table({"n": range(100 * number, 100 * number + 100)})
        cf.write(part, tmp_path / f"{number}.orc", format="orc")
    for threads in (1, 2, 5):
        got = [row for b in cf.scan(tmp_path, threads=threads).to_batches(batch_size=7) for row in b["n"]]
        assert [row.as_py() for row in got] == list(range(700))
    (tmp_path / "3.orc").write_bytes(b"ORC, once")
    for threads in (1, 2, 5):
        failing = cf.scan(tmp_path, threads=threads).to_batches()
        seen: list[int] = []
        with pytest.raises(cf.CorruptFileError, match=r"3\.orc"):
            seen.extend(row.as_py() for batch in failing for row in batch["n"])
        assert seen == list(range(300))


def test_pickled_splits_and_plans_show_no_secrets(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    cf.write(ROWS, tmp_path / "p=1" / "a.orc", format="orc")
    dataset = cf.scan(tmp_path, keys={"k": b"hush"}, storage_options={"secret_access_key": "hush"})
    (split,) = dataset.splits()
    assert "hush" not in repr(split)
    again = pickle.loads(pickle.dumps(split))
    assert again == split
    assert hash(again) == hash(split)
    assert again.partition == {"p": 1}
    assert (again.arguments.keys, again.arguments.format) == ({"k": b"hush"}, "orc")
    assert again.open().read().equals(ROWS)
    assert again.to_batches(["p", "id"], filter="id < 2").read_all().to_pydict() == {
        "p": [1, 1],
        "id": [0, 1],
    }
    (shared,) = dataset.planned(1 << 30)
    assert shared.to_batches(["p"]).read_all().num_rows == 3000


def test_a_program_may_end_in_the_middle_of_a_stream(orc: Path) -> None:
    program = (
        "import sys, coldframe as cf; d = cf.scan([sys.argv[1]] * 50, threads=4); "
        "r = d.to_batches(batch_size=10); r.read_next_batch(); print('seen', flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(orc)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "seen\n"
    assert done.stderr == ""


def test_forked_process_starts_new_threads(orc: Path) -> None:
    """Spark's workers are forked: the child lacks the reader threads of its parent."""
    program = (
        "import os, sys, coldframe as cf; d = cf.scan([sys.argv[1]] * 20, threads=4); "
        "r = d.to_batches(batch_size=10); r.read_next_batch(); pid = os.fork(); n = d.to_table().num_rows; "
        "os._exit(n != 60_000) if pid == 0 else print(os.waitpid(pid, 0)[1], n)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(orc)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("0 60000\n", "")


def test_import_loads_no_optional_library() -> None:
    heavy = ("pandas", "pyarrow.compute", "pyarrow.dataset", "pyspark")
    code = (
        "import sys, coldframe, coldframe.cli; "
        f"print([name for name in {heavy} if name in sys.modules]); print(coldframe.ArrowDataset.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "ArrowDataset"]


def test_read_loads_no_optional_library(orc: Path) -> None:
    heavy = ("pandas", "pyarrow.compute", "pyarrow.dataset", "rich")
    code = (
        "import sys, coldframe as cf; f = cf.open(sys.argv[1]); name = f.schema.names[0]; "
        "f.read([name], limit=5); f.count(f'{name} is not null'); f.statistics(); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(orc)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_version_prints_before_arrow_is_imported() -> None:
    for argument in ("--version", "version"):
        code = (
            f"import sys, time; sys.argv[1:] = ['{argument}']; from coldframe.entry import main; main(); "
            "print('pyarrow' in sys.modules, time.process_time() < 0.15)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [f"coldframe {cf.__version__}", "False True"]


@pytest.mark.parametrize("module", ["argparse", "coldframe.file"])
def test_interrupt_during_import_prints_one_line(module: str) -> None:
    code = (
        "import builtins, sys; sys.argv[1:] = ['detect', 'x']; real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        f"    if name == {module!r}: raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "from coldframe.entry import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "coldframe: interrupted\n")
