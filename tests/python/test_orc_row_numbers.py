"""ORC: row numbers as a column, also in scans that skip rows."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from truth import ROOT

import coldframe as cf

FILES = ROOT / "tests" / "data" / "orc" / "files"
KEYS = {"pii": "000102030405060708090a0b0c0d0e0f"}
ROWS = 60_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several stripes of several row groups; `id` is the number of the row."""
    path = tmp_path_factory.mktemp("orc") / "many.orc"
    numbers = pa.array(range(ROWS), pa.int64())
    inner = pa.StructArray.from_arrays([numbers], ["n"])
    texts = pa.array([f"row {at % 97}" for at in range(ROWS)])
    rows = pa.table({"id": numbers, "text": texts, "s": inner})
    cf.write(rows, path, format="orc", codec="zlib", stripe_size=64 << 10, row_index_stride=1000)
    assert len(cf.open(path).metadata["stripes"]) > 3
    return path


@pytest.mark.parametrize("path", sorted(FILES.glob("*.orc")), ids=lambda path: path.name)
def test_each_row_has_its_number(path: Path) -> None:
    whole = cf.open(path, keys=KEYS).read()
    numbered = cf.open(path, keys=KEYS, row_numbers="\1row")
    assert numbered.schema.names == [*whole.schema.names, "\1row"]
    rows = numbered.read()
    assert repr(rows.select(whole.column_names).to_pylist()) == repr(whole.to_pylist())  # NaN is not NaN
    assert rows["\1row"].to_pylist() == list(range(whole.num_rows))
    assert numbered.read(["\1row"])["\1row"].to_pylist() == list(range(whole.num_rows))
    assert numbered.count() == whole.num_rows


@pytest.mark.parametrize(
    "filter",
    [
        "id = 31337",
        "id in (5, 5999, 6000, 59999)",
        "id between 12345 and 23456 and text = 'row 7'",
        "s.n > 59990 or id < 3",
        "text = 'row 96'",
        "id < 0",
        "{row} >= 40000 and {row} < 40003",
        "{row} > 100 and text = 'row 1'",
    ],
)
def test_filtered_rows_keep_their_numbers(many: Path, filter: str) -> None:
    file = cf.open(many, row_numbers="row")
    expected = cf.open(many).read(["id"], filter=filter.format(row="id"))["id"].to_pylist()
    for batch_size in (65536, 777):
        rows = file.to_batches(
            ["row", "id"], filter=filter.format(row="row"), batch_size=batch_size
        ).read_all()
        assert rows["row"].to_pylist() == rows["id"].to_pylist() == expected
    assert file.count(filter.format(row="row")) == len(expected)


def test_splits_and_limits_keep_row_numbers(many: Path) -> None:
    file = cf.open(many, row_numbers="row")
    splits = pickle.loads(pickle.dumps(file.splits(1)))
    assert len(splits) > 3
    parts = [split.to_batches(["row"]).read_all()["row"].to_pylist() for split in splits]
    assert [number for part in parts for number in part] == list(range(ROWS))
    assert file.read(["row"], limit=7, filter="id > 30000")["row"].to_pylist() == list(range(30001, 30008))
    assert file.read(limit=1500).column("row").to_pylist() == list(range(1500))
    assert cf.scan(many, row_numbers="row").to_table(["row"], filter="id = 9")["row"].to_pylist() == [9]


@pytest.mark.parametrize("on_error", ["skip", "null"])
def test_damage_shifts_no_numbers(many: Path, tmp_path: Path, on_error: str) -> None:
    data = bytearray(many.read_bytes())
    damaged = cf.open(many).metadata["stripes"][2]
    start = damaged["offset"] + damaged["index_length"]
    data[start + 200 : start + damaged["data_length"]] = bytes([0xFF]) * (damaged["data_length"] - 200)
    path = tmp_path / "damaged.orc"
    path.write_bytes(data)
    file = cf.open(path, row_numbers="row")
    rows = file.read(["row", "id", "text"], on_error=on_error)
    assert file.damage
    assert rows["row"].to_pylist()[-1] == ROWS - 1
    pairs = zip(rows["row"].to_pylist(), rows["id"].to_pylist(), strict=True)
    assert all(number == value for number, value in pairs if value is not None)
    assert rows["row"].null_count == 0


def test_names_that_are_taken_and_transactional_tables_are_refused(many: Path) -> None:
    with pytest.raises(cf.SchemaError, match="the file has a column `id`"):
        cf.open(many, row_numbers="id")
    with pytest.raises(cf.UnsupportedError, match="transactional"):
        cf.open(FILES / "acid_table", row_numbers="row")
