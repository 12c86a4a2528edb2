"""ORC: values that are returned are proved, in every way to read in Python, and in files of pyarrow's
writer.
"""

from __future__ import annotations

import json
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

import coldframe as cf
from coldframe.cli import main

INNER = pa.struct([("x", pa.int64()), ("y", pa.string()), ("l", pa.list_(pa.int32()))])
OUTER = pa.struct([("a", pa.int32()), ("c", INNER)])


def inner(i: int) -> dict[str, Any]:
    return {"x": i * 7, "y": f"y{i}", "l": [i] * (i % 3)}


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": i, "c": None} for i in range(10)],
        [{"a": i, "c": inner(i) if i % 3 else None} for i in range(5000)],
        [None if i % 4 == 0 else {"a": i, "c": inner(i) if i % 3 else None} for i in range(40)],
        [{"a": i, "c": inner(i)} for i in range(40)],
    ],
    ids=["all null", "some null", "null outer structs", "no null"],
)
@pytest.mark.parametrize("codec", ["uncompressed", "zlib"])
def test_null_structs_in_structs_of_pyarrow_are_read_as_written(
    tmp_path: pathlib.Path, rows: list[Any], codec: str
) -> None:
    table = pa.table({"id": range(len(rows)), "st": pa.array(rows, OUTER)})
    orc.write_table(table, tmp_path / "a.orc", compression=codec, row_index_stride=1000)
    for on_error in ("raise", "skip", "null"):
        f = cf.open(tmp_path / "a.orc")
        assert f.read(on_error=on_error)["st"].to_pylist() == rows
        assert not f.damage
    assert cf.open(tmp_path / "a.orc").read(filter="id = 7")["st"].to_pylist() == rows[7:8]
    assert not cf.open(tmp_path / "a.orc").verify()["damage"]


def test_null_fields_beside_null_inner_structs_are_not_guessed(tmp_path: pathlib.Path) -> None:
    rows = [{"a": i, "c": {**inner(i), "x": None if i % 2 else i} if i % 5 else None} for i in range(40)]
    orc.write_table(pa.table({"st": pa.array(rows, OUTER)}), tmp_path / "a.orc")
    try:
        assert cf.open(tmp_path / "a.orc").read()["st"].to_pylist() == rows
    except cf.CorruptFileError:
        f = cf.open(tmp_path / "a.orc")
        assert f.read(on_error="skip").num_rows == 0
        assert [lost["rows_lost"] for lost in f.damage] == [40]


def flips(whole: bytes, step: int) -> Iterator[bytes]:
    for at in range(1000, len(whole) - 2000, step):
        yield whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]


@pytest.mark.parametrize("codec", ["zlib", "snappy", "uncompressed"])
def test_skip_keeps_only_right_rows_in_batches_of_any_size(tmp_path: pathlib.Path, codec: str) -> None:
    n = 30_000
    table = pa.table(
        {
            "id": range(n),
            "s": [f"{i * 7919 % 10007}" + "x" * (i * i % 13) for i in range(n)],
            "l": [[i] * (i % 4) if i % 7 else None for i in range(n)],
        }
    )
    truth = table.to_pylist()
    orc.write_table(table, tmp_path / "w.orc", compression=codec)
    whole = (tmp_path / "w.orc").read_bytes()
    reported = 0
    for copy in flips(whole, len(whole) // 20):
        f = cf.open(copy)
        saved = f.read(on_error="skip").to_pylist()
        if not f.damage:
            continue
        reported += 1
        assert all(row == truth[row["id"]] for row in saved)
        assert len(saved) + sum(lost["rows_lost"] for lost in f.damage) == n
        small = cf.open(copy)
        batches = small.to_batches(batch_size=300, on_error="skip")
        assert [row for batch in batches for row in batch.to_pylist()] == saved
        assert small.damage == f.damage
    assert reported


def test_a_wrong_index_is_warned_of_and_not_believed(tmp_path: pathlib.Path) -> None:
    n = 5000
    table = pa.table({"id": range(n), "s": [f"v{i}" for i in range(n)]})
    orc.write_table(table, tmp_path / "w.orc", compression="uncompressed", row_index_stride=1000)
    whole = (tmp_path / "w.orc").read_bytes()
    index = next(node for node in leaves(cf.open(whole).inspect()) if is_index(node, 2))
    at = index["offset"]
    stored = whole[at : at + index["length"]]
    # The second row group begins after the 3890 bytes of the first row group: as a varint b2 1e.
    wrong = stored.replace(bytes([0xB2, 0x1E]), bytes([0xB3, 0x1E]), 1)
    assert wrong != stored
    copy = whole[:at] + wrong + whole[at + len(stored) :]
    with pytest.warns(cf.WrongIndexWarning, match="its index is wrong"):
        assert cf.open(copy).read(filter="id = 1500").to_pylist() == table.slice(1500, 1).to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cf.open(copy).read().equals(table)
        assert cf.open(whole).read(filter="id = 1500").to_pylist() == table.slice(1500, 1).to_pylist()
    (entry,) = cf.open(copy).verify()["damage"]
    assert (entry["rows_lost"], entry["offset"]) == (0, at)
    assert "row index" in entry["structure"]


def leaves(node: Any) -> Iterator[Any]:
    if not node.get("children"):
        yield node
    for child in node.get("children") or ():
        yield from leaves(child)


def is_index(node: Any, column: int) -> bool:
    return bool(node["name"] == "ROW_INDEX" and node["detail"]["column"] == column)


def test_salvage_refuses_what_parquet_cannot_hold_in_one_line(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    union = pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    )
    orc.write_table(pa.table({"id": [1, 2, 3], "u": union}), tmp_path / "u.orc")
    source, target = str(tmp_path / "u.orc"), tmp_path / "u.parquet"
    assert main(["salvage", source, str(target)]) == 2
    message = capsys.readouterr().err
    assert "Parquet has no type for the column `u`" in message
    assert "Traceback" not in message
    assert not target.exists()
    assert main(["salvage", source, str(target), "-c", "id", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 3
