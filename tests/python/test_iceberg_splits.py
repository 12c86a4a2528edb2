"""Splits of Iceberg tables: together they give the table, and each needs only its file."""

import json
import pickle
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe._coldframe import RawDataset
from coldframe.arguments import OpenArguments

pytest.importorskip("pyiceberg")

DATA = Path(__file__).parents[1] / "data" / "iceberg"
TRUTH = json.loads((DATA / "truth.json").read_text())
WROTE = "/tmp/coldframe-iceberg"
"""The directory in which the tables were made."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iceberg")
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def table(made, name, **options):
    return cf.iceberg_table(made / "warehouse" / "t" / name, location={WROTE: str(made)}, **options)


def read(splits, columns=None, **how):
    return pa.concat_tables([split.to_batches(columns, **how).read_all() for split in splits])


@pytest.mark.parametrize("name", [*TRUTH, "defaults_orc"])
def test_splits_add_up_to_the_table(made, name):
    dataset = table(made, name)
    whole = dataset.to_table()
    for split_bytes in (1, 128 << 20):
        splits = dataset.splits(split_bytes)
        # Each share opens its file: shares of one byte would open it thousands of times.
        shares = pickle.loads(pickle.dumps(dataset.planned(max(100, split_bytes))))
        cut = [split for share in shares for split in share.expand()]
        ways = (pickle.loads(pickle.dumps(splits)), shares) if split_bytes == 1 else (splits, shares, cut)
        for all_of_them in ways:
            again = read(all_of_them)
            assert again.schema.equals(whole.schema)
            for name, column in zip(whole.column_names, whole.columns, strict=True):
                # NaN is not equal to itself.
                assert again[name].equals(column) or repr(again[name].to_pylist()) == repr(column.to_pylist())
    assert {split.path for split in splits} == set(dataset.files)
    assert all(split.schema == dataset.schema and split.size for split in splits)
    assert set(splits) == set(pickle.loads(pickle.dumps(splits)))


def test_share_expands_to_the_splits_of_its_file(made):
    first, _ = min(
        TRUTH["vectors"].items(), key=lambda item: item[1]["at"] if item[0] != "current" else 1 << 62
    )
    dataset = table(made, "vectors", snapshot_id=int(first))
    cut = dataset.splits(1)
    assert sum(split.rows for split in cut) == dataset.num_rows == 200000
    shares = dataset.planned(100)
    assert len(shares) > len(cut)
    places = [(split.start, split.stop) for share in shares for split in share.expand()]
    assert places == [(split.start, split.stop) for split in cut]


def test_splits_take_filters_and_columns(made):
    dataset = table(made, "positions", filter="id < 2500")
    splits = dataset.splits(filter="part = 'b'")
    assert len(splits) < len(dataset.splits())
    rows = read(splits, ["v", "id"], filter="id > 2400 and v > 0")
    assert rows.equals(dataset.to_table(["v", "id"], filter="part = 'b' and id > 2400 and v > 0"))
    assert rows.num_rows > 0
    assert rows.column_names == ["v", "id"]
    assert sum(split.to_batches([]).read_all().num_rows for split in dataset.splits()) == dataset.count()
    again = pickle.loads(pickle.dumps(splits))
    assert read(again).equals(dataset.to_table(filter="part = 'b'"))
    with pytest.raises(cf.SchemaError, match="no column 'nobody'"):
        splits[0].to_batches(["nobody"])
    assert splits[0].partition == {"part": "b"}
    assert dataset.splits(filter="id > 100000") == []


def test_equality_deletes_apply_without_their_column(made):
    dataset = table(made, "equality")
    splits = pickle.loads(pickle.dumps(dataset.splits()))
    assert read(splits, ["k"]).equals(dataset.to_table(["k"]))
    assert read(splits, filter="value = 0").equals(dataset.to_table(filter="value = 0"))


def test_other_processes_need_no_metadata_and_no_pyiceberg(made, tmp_path):
    copy = tmp_path / "positions"
    shutil.copytree(made / "warehouse" / "t" / "positions", copy)
    dataset = cf.scan(copy)
    expected = dataset.to_table().to_pylist()
    (tmp_path / "splits").write_bytes(pickle.dumps(dataset.planned(1000)))
    shutil.rmtree(copy / "metadata")
    code = (
        "import pickle, sys\n"
        "sys.modules['pyiceberg'] = None\n"
        "splits = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print([row for one in splits for row in one.to_batches().read_all().to_pylist()])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "splits")], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str(expected)


def test_a_file_of_another_size_is_an_error(made, tmp_path):
    copy = tmp_path / "evolved"
    shutil.copytree(made / "warehouse" / "t" / "evolved", copy)
    shares = cf.scan(copy).planned(1000)
    path = Path(shares[0].path)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(cf.CorruptFileError, match=path.name):
        read(shares)


def test_the_number_of_rows_decides_where_a_length_was_stated_wrong(tmp_path):
    path = tmp_path / "0.orc"
    table = pa.table({"id": range(5)})
    cf.write(table, path)
    none = pa.RecordBatch.from_pylist([{}])
    wrong = (path.stat().st_size + 1, None, None)

    def rows(stated):
        source = (str(path), [], wrong, none, stated)
        (split,) = RawDataset(OpenArguments("orc").raw, [source], schema=table.schema).plan(1 << 20)
        return sum(pa.record_batch(batch).num_rows for batch in split.scan())

    assert rows(5) == 5
    with pytest.raises(cf.CorruptFileError, match="expected 6 rows, as the table's metadata states"):
        rows(6)
    with pytest.raises(OSError, match="the file was changed"):
        rows(None)


def test_damage_is_recorded_for_its_split(made, tmp_path):
    copy = tmp_path / "equality"
    shutil.copytree(made / "warehouse" / "t" / "equality", copy)
    splits = cf.scan(copy).planned(1 << 20)
    path = Path(splits[0].path)
    data = bytearray(path.read_bytes())
    data[3 : len(data) // 3] = bytes(len(data) // 3 - 3)
    path.write_bytes(data)
    with pytest.raises(cf.CorruptFileError, match=path.name):
        read(splits[:1])
    lost = []
    read(splits[:1], on_error="skip", on_damage=lost.extend)
    assert lost
    assert "path" not in lost[0]
    lost.clear()
    read(splits[1:], on_error="skip", on_damage=lost.extend)
    assert lost == []


def test_split_refuses_to_open_its_file(made):
    (split, *_) = table(made, "evolved").splits()
    with pytest.raises(cf.UnsupportedError, match="opening the file"):
        split.open()
    assert split.stated() == []
    assert split.path in repr(split)
