"""Partitioned writes are atomic, also if two meet or one is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf

ROWS = pa.table({"id": range(100), "dt": [f"2014-01-0{1 + i // 25}" for i in range(100)]})
OTHER = pa.table({"id": range(1000, 1100), "dt": [f"2014-01-0{3 + i // 25}" for i in range(100)]})


@pytest.fixture(params=["rename", "by file", "empty folder"])
def place(request: Any, tmp_path: Path) -> dict[str, Any]:
    """A destination: published by one rename, file by file, or into an existing folder."""
    if request.param == "by file":
        local = pytest.importorskip("fsspec").filesystem("file")
        return {"dest": str(tmp_path / "t"), "filesystem": local}
    if request.param == "empty folder":
        (tmp_path / "t").mkdir(mode=0o750)
    return {"dest": tmp_path / "t"}


def written(place: dict[str, Any], table: Any) -> Any:
    return cf.write(table, **place, format="orc", partitioning=["dt"])


def ids(tmp_path: Path) -> list[int]:
    numbers: list[int] = sorted(cf.scan(tmp_path / "t").to_table()["id"].to_pylist())
    return numbers


def test_loser_of_a_race_deletes_nothing(place: dict[str, Any], tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield from ROWS.to_batches()
        written(place, OTHER)  # this write ends first, after all rows of the other were sent

    with pytest.raises(FileExistsError):
        written(place, pa.RecordBatchReader.from_batches(ROWS.schema, batches()))
    assert ids(tmp_path) == list(range(1000, 1100))
    left = {path.name for path in tmp_path.rglob("*") if "coldframe" in path.name}
    assert left <= {"_coldframe-written.json"}


def test_a_failed_write_leaves_nothing(place: dict[str, Any], tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield from ROWS.to_batches()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        written(place, pa.RecordBatchReader.from_batches(ROWS.schema, batches()))
    assert [path for path in tmp_path.rglob("*") if path.name != "t"] == []
    assert len(written(place, ROWS)["files"]) == 4
    assert ids(tmp_path) == list(range(100))


def test_existing_folder_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir(mode=0o750)
    (tmp_path / "t").chmod(0o750)
    written({"dest": tmp_path / "t"}, ROWS)
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o750


KILLED = """
import os, sys
import fsspec, pyarrow as pa
import coldframe as cf
from coldframe import filesystems
rows = pa.table({"id": range(100), "dt": [f"2014-01-0{1 + i // 25}" for i in range(100)]})
calls = 0
publish = filesystems.FsspecFiles.publish
def killed(self, source, path, new):
    global calls
    if "/_coldframe-" in source and "/_coldframe-" not in path:
        calls += 1
        if calls > int(sys.argv[2]):
            os._exit(9)
    publish(self, source, path, new)
filesystems.FsspecFiles.publish = killed
cf.write(rows, sys.argv[1], format="orc", partitioning=["dt"], filesystem=fsspec.filesystem("file"))
"""


@pytest.mark.parametrize("published", [0, 2])
def test_write_finishes_a_killed_publication(tmp_path: Path, published: int) -> None:
    pytest.importorskip("fsspec")
    dest = tmp_path / "t"
    done = subprocess.run([sys.executable, "-c", KILLED, str(dest), str(published)], check=False)
    assert done.returncode == 9
    assert len(list(dest.glob("dt=*/*.orc"))) == published
    with pytest.raises(OSError, match="was interrupted"):
        cf.scan(dest)
    local = pytest.importorskip("fsspec").filesystem("file")
    with pytest.raises(FileExistsError, match="has been completed now, with 4 files"):
        written({"dest": str(dest), "filesystem": local}, OTHER)
    assert ids(tmp_path) == list(range(100))
    assert [path.name for path in dest.glob("_*")] == ["_coldframe-written.json"]
    with pytest.raises(FileExistsError, match="it was written before"):
        written({"dest": str(dest), "filesystem": local}, OTHER)


def test_write_ignores_files_staged_by_a_killed_write(tmp_path: Path) -> None:
    """Readers ignore its leftover staged files."""
    (tmp_path / "t" / "_coldframe-0123" / "dt=x").mkdir(parents=True)
    (tmp_path / "t" / "_coldframe-0123" / "dt=x" / "part-0.orc").write_bytes(b"half")
    written({"dest": tmp_path / "t"}, ROWS)
    assert ids(tmp_path) == list(range(100))
