"""Iceberg's deletes beyond Spark's tables: damage, evolution after a delete, other stores."""

import importlib.util
import json
import pickle
import struct
import tarfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf

pytest.importorskip("pyiceberg")

from coldframe._coldframe import RawPositions
from coldframe.iceberg.equality import DeletedValues

DATA = Path(__file__).parents[1] / "data" / "iceberg"
TRUTH = json.loads((DATA / "truth.json").read_text())


@pytest.fixture
def tables(tmp_path):
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "warehouse" / "t"


def newest(table):
    files = (table / "metadata").glob("v*.metadata.json")
    return max(files, key=lambda path: int(path.name[1:].split(".")[0]))


def changed(table, change):
    """Edits the metadata of a table."""
    path = newest(table)
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def current_schema(metadata):
    return next(
        schema for schema in metadata["schemas"] if schema["schema-id"] == metadata["current-schema-id"]
    )


def framed(body):
    body = b"\xd1\xd3\x39\x64" + body
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def bitmaps(*parts):
    return framed(struct.pack("<Q", len(parts)) + b"".join(struct.pack("<I", key) + of for key, of in parts))


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [1, 5, 65535, 65536, 1 << 20],
        list(range(100, 60000)),  # a run or a bitmap container
        [*range(0, 200000, 3), 4000000000],
        [at << 16 for at in range(10)] + list(range(5 << 16, (5 << 16) + 5000)),
    ],
)
def test_a_deletion_vector_has_all_numbers(numbers, optimized):
    pyroaring = pytest.importorskip("pyroaring")
    bitmap = pyroaring.BitMap(numbers)
    if optimized:
        bitmap.run_optimize()
    positions = RawPositions()
    positions.add_vector(bitmaps((0, bitmap.serialize()), (3, bitmap.serialize())), "dv", 0)
    deleted = {*numbers, *((3 << 32) + number for number in numbers)}
    rows = sorted(deleted | {number + 1 for number in deleted} | {0, 1 << 40})
    assert remaining(positions, rows) == [number for number in rows if number not in deleted]


def remaining(positions, numbers):
    batch = pa.record_batch({"x": pa.array(numbers, pa.int64())})
    left = positions.remaining(batch, "x")
    return numbers if left is None else pa.record_batch(left)["x"].to_pylist()


def test_damaged_deletion_vector_is_refused():
    pyroaring = pytest.importorskip("pyroaring")
    whole = bitmaps((0, pyroaring.BitMap([1, 2, 3]).serialize()))
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        with pytest.raises(cf.CorruptFileError, match="deletion vector") as raised:
            RawPositions().add_vector(bytes(damaged), "file.puffin", 100)
        assert raised.value.path == "file.puffin"
        assert 100 <= raised.value.offset < 100 + len(whole)
        with pytest.raises(cf.CorruptFileError):
            RawPositions().add_vector(whole[:at], "file.puffin", 0)
    runs = struct.pack("<IBHHIHHH", 12347, 1, 0, 0, 0, 1, 65535, 9)  # beyond the last value of a container
    for body in (runs, struct.pack("<II", 12346, 1 << 30), struct.pack("<I", 7), b""):
        with pytest.raises(cf.CorruptFileError, match="Roaring"):
            RawPositions().add_vector(bitmaps((0, body)), "file.puffin", 0)
    with pytest.raises(cf.CorruptFileError, match="Roaring"):
        RawPositions().add_vector(framed(struct.pack("<Q", 1 << 60)), "file.puffin", 0)


def test_positions_leave_the_other_rows():
    positions = RawPositions()
    positions.add(pa.array([7, 3, 3, 100]), "deletes.orc")
    positions.add(pa.array([0, 8]), "deletes.orc")
    parts = [list(range(at, at + 4)) for at in range(0, 12, 4)]
    assert [remaining(positions, part) for part in parts] == [[1, 2], [4, 5, 6], [9, 10, 11]]
    # From row groups that pass a filter.
    assert remaining(positions, [2, 3, 99, 100, 101]) == [2, 99, 101]
    assert remaining(positions, []) == []
    batch = pa.record_batch({"x": [1, 2]})
    assert positions.remaining(batch, "x") is None
    with pytest.raises(cf.CorruptFileError, match="position deletes"):
        positions.add(pa.array([-1]), "deletes.orc")
    with pytest.raises(cf.SchemaError):
        positions.remaining(batch, "y")


def test_equality_follows_iceberg():
    floats = pa.chunked_array([[1.0, float("nan"), None]])
    texts = pa.chunked_array([["a", "b", None]])
    batch = pa.record_batch({"f": [1.0, float("nan"), None, 1.0, None], "t": ["a", "b", None, "b", "a"]})
    left = DeletedValues([floats, texts]).kept(batch, batch.columns)
    assert left.to_pylist() == [{"f": 1.0, "t": "b"}, {"f": None, "t": "a"}]
    assert DeletedValues([floats]).kept(batch, [batch["f"]]).num_rows == 0
    zeros = pa.record_batch({"f": [0.0, -0.0]})
    assert DeletedValues([pa.chunked_array([[0.0]])]).kept(zeros, zeros.columns).num_rows == 1


def test_equality_deletes_apply_to_a_widened_or_dropped_column(tables):
    """Iceberg's Java library fails on both columns."""

    def widen(metadata):
        current_schema(metadata)["fields"][0]["type"] = "long"

    def drop(metadata):
        schema = current_schema(metadata)
        schema["fields"] = [field for field in schema["fields"] if field["name"] != "value"]
        before = dict(schema, **{"schema-id": 99})
        before["fields"] = [*schema["fields"], {"id": 3, "name": "v", "required": False, "type": "double"}]
        metadata["schemas"].append(before)

    expected = sorted(row["id"] for row in TRUTH["equality"]["current"])
    changed(tables / "equality", widen)
    dataset = cf.scan(tables / "equality")
    assert dataset.schema.field("id").type == pa.int64()
    assert sorted(dataset.to_table()["id"].to_pylist()) == expected
    changed(tables / "equality", drop)
    dataset = cf.scan(tables / "equality")
    assert dataset.schema.names == ["id", "k"]
    assert sorted(dataset.to_table()["id"].to_pylist()) == expected
    assert dataset.count() == len(expected)


def test_a_file_whose_deletes_cannot_be_read_is_lost(tables):
    paths = [str(path) for path in (tables / "positions").rglob("*-deletes.orc")]
    whole = cf.scan(tables / "positions").to_table()
    for path in paths:
        data = bytearray(Path(path).read_bytes())
        data[3 : len(data) // 2] = bytes(len(data) // 2 - 3)
        Path(path).write_bytes(data)
    dataset = cf.scan(tables / "positions")
    with pytest.raises(cf.CorruptFileError, match="deletes"):
        dataset.to_table()
    kept = dataset.to_table(on_error="skip")
    assert 0 < kept.num_rows < whole.num_rows
    assert set(kept["id"].to_pylist()) <= set(whole["id"].to_pylist())
    assert {lost["path"] for lost in dataset.damage} < set(dataset.files)


def test_a_missing_delete_file_is_an_error(tables):
    for path in (tables / "positions").rglob("*-deletes.orc"):
        path.unlink()
    with pytest.raises(cf.NotFoundError):
        cf.scan(tables / "positions").to_table()


def test_other_types_are_refused(tables):
    def geometry(metadata):
        current_schema(metadata)["fields"][0]["type"] = "geometry"

    changed(tables / "defaults_orc", geometry)
    with pytest.raises(cf.UnsupportedError, match="column id of Iceberg's type"):
        cf.scan(tables / "defaults_orc")


def test_tables_on_another_file_system_are_read(tables):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(f"{tables}/", "/lake/db/", recursive=True)
    try:
        for name in ("positions", "equality", "vectors", "mixed", "evolved"):
            dataset = cf.scan(f"memory://lake/db/{name}")
            assert dataset.count() == cf.scan(tables / name).count()
            assert dataset.files[0].startswith("memory://lake/db/")
        dataset = cf.iceberg_table("/lake/db/mixed", filesystem=memory)
        assert sorted(dataset.to_table()["w"].to_pylist()) == ["a", "d"]
        assert {table.name for table in cf.tables("memory://lake/db")} == {
            table.name for table in cf.tables(tables)
        }
    finally:
        memory.rm("/lake", recursive=True)


def test_tables_lists_iceberg_tables_not_their_files(tables):
    (tables / "plain").mkdir()
    cf.write(pa.table({"x": [1, 2]}), tables / "plain" / "a.orc", format="orc")
    listed = {table.name: table for table in cf.tables(tables)}
    assert listed["plain"].rows == 2
    assert {name for name, table in listed.items() if table.format == "iceberg"} == {*TRUTH, "defaults_orc"}
    assert listed["positions"].rows == 2226
    assert listed["positions"].files == len(cf.scan(tables / "positions").files)
    assert listed["positions"].open().count() == 2226
    assert listed["positions"].to_toml().startswith("# positions: an Iceberg table")
    (table,) = cf.tables(tables / "positions", rows=False)
    assert (table.name, table.rows) == ("positions", None)
    newest(tables / "mixed").write_text("{}")
    assert "not the metadata" in {table.name: table for table in cf.tables(tables)}["mixed"].problem


def test_without_pyiceberg_the_extra_is_named(tables, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyiceberg" else find(name))
    with pytest.raises(cf.UnsupportedError, match="the extra `iceberg` of coldframe"):
        cf.scan(tables / "mixed")


@pytest.mark.parametrize("options", [{"file_path": "p"}, {"row_index": "i"}, {"partitioning": None}])
def test_tables_refuse_options_of_file_scans(tables, options):
    with pytest.raises(cf.UnsupportedError):
        cf.scan(tables / "mixed", **options)
    with pytest.raises(cf.UnsupportedError, match="fragments"):
        next(cf.scan(tables / "mixed").parts())


def test_a_directory_of_tables_is_not_scanned_as_files(tables):
    for pattern in (str(tables), f"{tables}/mixed/*/*", f"{tables}/**"):
        with pytest.raises(cf.UnsupportedError, match="Iceberg table among the files"):
            cf.scan(pattern)
    assert cf.scan(tables / "evolved" / "data", unify=False).count() == 4  # the files themselves


def test_damage_in_parquet_ends_that_file(tables):
    dataset = cf.scan(tables / "mixed")
    path = next(Path(path) for path in dataset.files if path.endswith(".parquet"))
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(cf.CorruptFileError, match=path.name) as raised:
        cf.scan(tables / "mixed").to_table()
    assert raised.value.path == str(path)
    damaged = cf.scan(tables / "mixed")
    assert damaged.to_table(on_error="skip")["w"].to_pylist() == ["a"]
    assert [entry["path"] for entry in damaged.damage] == [str(path)]


@pytest.mark.parametrize("store", ["hdfs://nn:8020", "file://", ""])
def test_deletes_that_spell_a_location_in_another_way(tables, store):
    table = tables / "positions"
    expected = cf.iceberg_table(table).count()
    for path in table.glob("data/*/*-deletes.orc"):
        rows = cf.open(path).read()
        at = rows.schema.get_field_index("file_path")
        below = [value.partition(":")[2] or value for value in rows["file_path"].to_pylist()]
        named = pa.array([f"{store}/{name.lstrip('/')}" for name in below])
        rows = rows.set_column(at, rows.schema.field(at), named)
        cf.write(rows, path.with_suffix(".new"), format="orc", metadata={"delete-type": "position"})
        path.with_suffix(".new").replace(path)
    read = cf.iceberg_table(table)
    assert (read.count(), read.to_table().num_rows) == (expected, expected)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("equality", "data/k=a/*.orc"),
        ("equality", "data/equal-1.orc"),
        ("positions", "data/*/*-deletes.orc"),
        ("mixed", "data/*-0-00001.parquet"),
    ],
    ids=["data", "equality deletes", "position deletes", "parquet"],
)
def test_a_file_with_fewer_rows_than_the_manifest_states_is_damage(tables, name, pattern):
    table = tables / name
    where = {f"/tmp/coldframe-iceberg/warehouse/t/{name}": str(table)}
    for file in table.glob(pattern):
        if file.suffix == ".parquet":
            pq.write_table(pq.read_table(file).slice(1), file)
        else:
            file.write_bytes(b"")
    dataset = cf.iceberg_table(table, location=where)
    stated = r"as the table's metadata states, found \d"
    with pytest.raises(cf.CorruptFileError, match=stated):
        dataset.read()
    splits = dataset.planned(1 << 20)
    with pytest.raises(cf.CorruptFileError, match=stated):
        [split.to_batches().read_all() for split in pickle.loads(pickle.dumps(splits))]
    dataset.to_batches(on_error="skip").read_all()
    assert any(stated[:20] in lost["reason"] for lost in dataset.damage)
