"""`coldframe.spark.udfs`: functions for UDFs. docs/udfs.md shows and runs the recipes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark_data import DATA, damaged, survivors

import coldframe as cf
from coldframe.spark import udfs


def test_types_are_the_types_that_spark_accepts(spark: SparkSession, tmp_path: Path) -> None:
    instants = pa.array([0, 1_500_000_000_000_000_999], pa.timestamp("ns"))
    texts = pa.array(["x", "x"]).dictionary_encode()
    table = pa.table({"at": instants, "w": texts, "b": pa.array([b"a", b"b"], pa.large_binary())})
    path = str(tmp_path / "t.orc")
    cf.write(table, path, format="orc")
    columns = udfs.columns_of(path)
    paths = spark.createDataFrame([(path,)], "path string")

    def decode(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            for path in batch["path"].to_pylist():
                yield from udfs.batches(path, batch_rows=1)

    rows = paths.mapInArrow(decode, columns)
    expected = spark.read.format("orc").load(path)
    assert [(row.w, bytes(row.b)) for row in rows.collect()] == [("x", b"a"), ("x", b"b")]
    assert [str(row.at) for row in rows.collect()] == [str(row.at) for row in expected.collect()]


def test_columns_come_in_the_chosen_order(tmp_path: Path) -> None:
    path = tmp_path / "t.orc"
    cf.write(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]}), path, format="orc")
    [batch] = udfs.batches(path, ["c", "a"], filter="b = 'y'")
    assert batch.to_pylist() == [{"c": 1.5, "a": 2}]
    assert udfs.columns_of(path, ["c", "a"]).simpleString() == "struct<c:double,a:bigint>"


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, pa.scalar], ids=lambda wrap: wrap.__name__)
def test_contents_are_not_paths(wrap: type, tmp_path: Path) -> None:
    path = tmp_path / "t.orc"
    cf.write(pa.table({"a": [1, 2]}), path, format="orc")
    rows = pa.Table.from_batches(udfs.batches(wrap(path.read_bytes())))
    assert rows["a"].to_pylist() == [1, 2]
    # The content is refused although it looks like the path of an existing file.
    with pytest.raises(cf.CorruptFileError, match="expected the magic of a known format"):
        list(udfs.batches(wrap(str(path).encode())))


def test_damage_is_reported() -> None:
    entry = next(item for item in damaged() if item["file"] == "flipped_byte_zlib.rc")
    path = DATA / "damaged" / entry["file"]
    options = {"schema": "id bigint, name string", "serde": "binary"}
    with pytest.raises(cf.CorruptFileError, match="flipped_byte_zlib"):
        list(udfs.batches(path, **options))
    damage: list[object] = []
    rows = sum(
        batch.num_rows for batch in udfs.batches(path, on_error="skip", on_damage=damage.extend, **options)
    )
    assert (rows, len(damage)) == (survivors(entry), 1)


def test_a_worker_opens_a_file_once(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t.hfile")
    cf.write(pa.table({"key": [b"a", b"b"], "value": [b"1", b"2"]}), path, format="hfile")

    def process_ids(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for batch in rows:
            file = udfs.opened(path, block_cache_bytes=1 << 20)
            value = file.get("a")["value"].to_pylist()
            yield pa.RecordBatch.from_pydict({"worker": [os.getpid()], "file": [id(file)], "value": value})
            del batch

    files: dict[int, set[int]] = defaultdict(set)
    for _ in range(2):
        for row in (
            spark.range(0, 40, 1, 8)
            .mapInArrow(process_ids, "worker bigint, file bigint, value binary")
            .collect()
        ):
            assert bytes(row.value) == b"1"
            files[row.worker].add(row.file)
    assert len(files) < 8
    assert all(len(processes) == 1 for processes in files.values())


def test_open_files_are_cached_by_options_and_closed_later(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.orc" for number in range(udfs.KEPT_OPEN + 1)]
    for path in paths:
        cf.write(pa.table({"a": [1]}), path, format="orc")
    first = udfs.opened(paths[0])
    assert udfs.opened(str(paths[0])) is first
    assert udfs.opened(paths[0], verify_checksums=False) is not first
    for path in paths[1:]:
        udfs.opened(path)
    assert udfs.opened(paths[0]) is not first
    again = udfs.opened(paths[1])
    again.close()
    assert udfs.opened(paths[1]).count() == 1
