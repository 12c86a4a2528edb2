"""Comparing two tables of any formats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.comparison import Side, compare

pytest.importorskip("numpy")

SCHEMA = "id bigint, s string, x double"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(1000), pa.int64()),
            "s": [None if i % 7 == 0 else f"name {i % 50}" for i in range(1000)],
            "x": [None if i % 5 == 0 else i / 4 for i in range(1000)],
        }
    )


def files(table: pa.Table, folder: Path, name: str) -> dict[str, Path]:
    """The same rows in several formats."""
    paths = {ending: folder / f"{name}.{ending}" for ending in ("orc", "rc", "parquet")}
    cf.write(table, paths["orc"], format="orc")
    cf.write(table, paths["rc"], format="rcfile", serde="binary")
    pq.write_table(table, paths["parquet"])
    return paths


def test_the_same_rows_in_another_order_and_format_are_no_difference(
    run: Any, table: pa.Table, tmp_path: Path
) -> None:
    first = files(table, tmp_path, "one")
    other = files(table.take(list(reversed(range(1000)))), tmp_path, "other")
    for a in first.values():
        for b in other.values():
            code, out, _ = run("diff", a, b, "--schema", SCHEMA, "--serde", "binary")
            assert (code, out) == (0, "the same 1000 rows\n"), (a, b)
            code, out, _ = run("diff", a, b, "--schema", SCHEMA, "--serde", "binary", "--by", "id", "--json")
            assert code == 0
            assert json.loads(out)["same"]


def test_differences_are_reported_by_key(run: Any, table: pa.Table, tmp_path: Path) -> None:
    ids = table["id"].to_pylist()
    changed = table.set_column(
        2, "x", pa.array([99.0 if i == 3 else x for i, x in zip(ids, table["x"].to_pylist(), strict=True)])
    )
    a = files(table.filter(pa.array([i != 10 for i in ids])), tmp_path, "a")["orc"]
    b = files(changed.filter(pa.array([i not in (20, 21) for i in ids])), tmp_path, "b")["parquet"]
    code, out, _ = run("diff", a, b, "--by", "id", "--json")
    result = json.loads(out)
    assert code == 1
    assert result["rows"] == {"a": 999, "b": 998}
    assert result["only"] == {"a": 2, "b": 1}
    assert result["changed"] == 1
    shown = {(example["side"], example["row"]["id"]) for example in result["examples"]}
    assert shown == {("a", 3), ("b", 3), ("a", 20), ("a", 21), ("b", 10)}
    text = run("diff", a, b, "--by", "id")[1].splitlines()
    assert text[0] == "999 rows in A, 998 in B: 2 only in A, 1 only in B, 1 changed"
    assert text[1] == "\tid\ts\tx"
    assert text[2:4] == ["A\t3\tname 3\t0.75", "B\t3\tname 3\t99.0"]
    assert run("diff", a, b, "-c", "id,s", "--where", "id < 5", "--by", "id")[0] == 0


def test_rows_that_occur_several_times_are_counted(run: Any, tmp_path: Path) -> None:
    a = files(pa.table({"id": [1, 1, 1, 2]}), tmp_path, "a")["orc"]
    b = files(pa.table({"id": [1, 2, 2, 3]}), tmp_path, "b")["parquet"]
    result = json.loads(run("diff", a, b, "--json")[1])
    assert result["only"] == {"a": 2, "b": 2}
    assert result["changed"] == 0
    assert [e["row"]["id"] for e in result["examples"] if e["side"] == "a"] == [1]
    assert [e["row"]["id"] for e in result["examples"] if e["side"] == "b"] == [2, 3]


def test_other_columns_are_a_difference_and_wider_types_are_no_difference(run: Any, tmp_path: Path) -> None:
    wide = pa.table({"id": pa.array([1, 2], pa.int64()), "d": pa.array([1.5, None]), "more": ["x", "y"]})
    narrow = pa.table({"id": pa.array([2, 1], pa.int32()), "d": pa.array([None, 1.5], pa.float32())})
    a, b = files(wide, tmp_path, "a"), files(narrow, tmp_path, "b")
    code, out, _ = run("diff", a["orc"], b["orc"])
    assert code == 1
    assert out.splitlines() == [f"columns only in A ({a['orc']}): more", "2 rows in A, 2 in B: the same rows"]
    assert run("diff", a["orc"], b["parquet"], "-c", "id,d")[0] == 0
    text = files(pa.table({"id": ["1", "2"]}), tmp_path, "c")["parquet"]
    code, _, err = run("diff", a["orc"], text, "-c", "id")
    assert code == 2
    assert "no type holds the values of both" in err
    assert run("diff", a["orc"], b["orc"], "--by", "more")[0] == 2
    assert run("diff", a["orc"], tmp_path / "missing.orc")[0] == 2


def test_partitioned_parquet_is_compared(run: Any, tmp_path: Path) -> None:
    table = pa.table({"x": range(10), "dt": ["2014-01-01"] * 5 + ["2014-01-02"] * 5})
    cf.write(table, tmp_path / "ours", format="orc", partitioning=["dt"])
    pq.write_to_dataset(table, tmp_path / "theirs", partition_cols=["dt"])
    assert run("diff", tmp_path / "ours", tmp_path / "theirs", "-c", "x")[0] == 0


def test_parquet_is_read_from_every_kind_of_source(run: Any, tmp_path: Path) -> None:
    """By URL, pattern and standard input; several files have the columns of all, matched by name."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    table = pa.table(
        {"id": range(1000), "s": [f"name {i}" for i in range(1000)], "dt": [i % 3 for i in range(1000)]}
    )
    cf.write(table, tmp_path / "ours", format="orc", partitioning=["dt"])
    pq.write_to_dataset(table, "/diff", partition_cols=["dt"], filesystem=memory, row_group_size=100)
    urls = ["memory://diff", "memory://diff/dt=*/*.parquet"]
    for url in urls:
        assert run("diff", tmp_path / "ours", url, "--by", "id") == (0, "the same 1000 rows\n", "")
    assert (
        run("diff", tmp_path / "ours", urls[0], "--where", "dt = 1 and id < 400 and s like 'name 1%'")[0] == 0
    )
    result = json.loads(run("diff", tmp_path / "ours", urls[0], "--where", "id <> 7 or dt <> 1", "--json")[1])
    assert (result["same"], result["rows"]["b"]) == (True, 999)

    for at, part in enumerate((table.slice(0, 500).drop(["dt"]), table.slice(500).select(["s", "id"]))):
        ids = part["id"].cast(pa.int32()) if at else part["id"]
        pq.write_table(part.set_column(part.column_names.index("id"), "id", ids), tmp_path / f"{at}.parquet")
    assert run("diff", tmp_path / "ours", tmp_path / "*.parquet", "-c", "id,s")[1] == "the same 1000 rows\n"
    command = [sys.executable, "-m", "coldframe", "diff", "-", str(tmp_path / "ours"), "-c", "id,s"]
    command += ["--where", "id >= 500"]
    with (tmp_path / "1.parquet").open("rb") as rows:
        done = subprocess.run(command, stdin=rows, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "the same 500 rows\n"), done.stderr
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:-9])
    code, _, err = run("diff", tmp_path / "cut.parquet", tmp_path / "ours")
    assert code == 2
    assert "cut.parquet: " in err


def test_many_rows_spill_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coldframe.comparison._HELD_BYTES", 1 << 12)
    rows = pa.table({"id": range(5000), "x": [i % 13 for i in range(5000)]})
    other = rows.slice(1).take(list(reversed(range(4999))))

    def side(name: str, table: pa.Table) -> Side:
        return Side(
            name, table.schema, lambda names: iter(table.select(list(names)).to_batches(max_chunksize=300))
        )

    assert compare(side("a", rows), side("b", rows), key=["id"]).same
    result = compare(side("a", rows), side("b", other))
    assert (result.only, result.changed, result.rows) == ((1, 0), 0, (5000, 4999))
    assert [batch.to_pydict() for _, batch in result.examples] == [{"id": [0], "x": [0]}]
