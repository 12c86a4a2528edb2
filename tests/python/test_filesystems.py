"""`filesystem=`: paths within a file system of fsspec or pyarrow, as in pyarrow's functions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs
import pytest

import coldframe as cf

TABLE = pa.table({"n": pa.array(range(100), pa.int64())})


@pytest.fixture(params=["fsspec memory", "fsspec local", "pyarrow local", "pyarrow subtree"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, str]:
    """A file system, and a folder in it."""
    match request.param:
        case "fsspec memory":
            return fsspec.filesystem("memory"), f"/{tmp_path.name}"
        case "fsspec local":
            return fsspec.filesystem("file"), str(tmp_path)
        case "pyarrow local":
            return pyarrow.fs.LocalFileSystem(), str(tmp_path)
        case _:
            return pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem()), "t"


def test_every_function_takes_a_filesystem(location: tuple[Any, str]) -> None:
    filesystem, folder = location
    for number in range(3):
        cf.write(TABLE, f"{folder}/t/p={number}/a.orc", format="orc", filesystem=filesystem)
    path = f"{folder}/t/p=1/a.orc"
    assert cf.detect(path, filesystem=filesystem) == "orc"
    assert cf.open(path, filesystem=filesystem).read() == TABLE
    assert cf.read_table(path, ["n"], filter="n < 3", filesystem=filesystem).num_rows == 3
    for given in (f"{folder}/t", f"{folder}/t/*/*.orc", [f"{folder}/t"]):
        dataset = cf.scan(given, filesystem=filesystem)
        assert dataset.count() == 300
    assert set(cf.scan(f"{folder}/t", filesystem=filesystem).to_table()["p"].to_pylist()) == {0, 1, 2}
    splits = [
        pickle.loads(pickle.dumps(split)) for split in cf.scan(f"{folder}/t", filesystem=filesystem).splits()
    ]
    assert sum(batch.num_rows for split in splits for batch in split.to_batches()) == 300
    with pytest.raises(cf.NotFoundError):
        cf.open(f"{folder}/nothing.orc", filesystem=filesystem)


def test_partitions_are_written_and_scanned_in_a_filesystem(location: tuple[Any, str]) -> None:
    filesystem, folder = location
    table = TABLE.append_column("k", pa.array([n % 3 for n in range(100)]))
    cf.write(table, f"{folder}/out", format="orc", partitioning=["k"], filesystem=filesystem)
    assert cf.scan(f"{folder}/out", filesystem=filesystem).count() == 100


def test_arguments_that_do_not_go_with_filesystem_are_refused(tmp_path: Path) -> None:
    filesystem = fsspec.filesystem("memory")
    with pytest.raises(ValueError, match="filesystem and storage_options"):
        cf.open("x", filesystem=filesystem, storage_options={"a": "b"})
    with pytest.raises(cf.UnsupportedError, match="as a file system"):
        cf.open("x", filesystem=object())
    # URLs name paths of the file system.
    cf.write(TABLE, f"memory://{tmp_path.name}/a.orc", format="orc", filesystem=filesystem)
    assert cf.open(f"/{tmp_path.name}/a.orc", filesystem=filesystem).read() == TABLE
