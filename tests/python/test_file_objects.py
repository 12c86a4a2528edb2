"""Python files as sources: one position, which several threads share."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from truth import same

import coldframe as cf

THREADS = 4
READS = 6
ROWS = 2_400_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """A file that `read` divides among threads: 19 MB of numbers, uncompressed."""
    table = pa.table({"n": pa.array(range(ROWS), pa.int64())})
    path = tmp_path_factory.mktemp("objects") / "numbers.red"
    cf.write(table, path, format="redfile", codec="none")
    return path, table


class Switching(io.BytesIO):
    """A file whose `seek` lets other threads run before the `read` that follows it.

    The first calls of `seek` wait for another thread's `seek`, which never comes if threads take turns.
    `mixed` counts the calls that came in between.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.patience = 8
        self.mixed = 0
        self._by: int | None = None
        self._other = threading.Event()

    def seek(self, offset: int, whence: int = 0) -> int:
        if self._by not in (None, threading.get_ident()):
            self.mixed += 1
            self._other.set()
        self._by = threading.get_ident()
        at = super().seek(offset, whence)
        if self.patience:
            self.patience -= 1
            self._other.wait(0.1)
        return at

    def read(self, size: int | None = -1) -> bytes:
        if self._by != threading.get_ident():
            self.mixed += 1
            self._other.set()
        data = super().read(size)
        self._by = None
        return data


def many(files: list[cf.File]) -> list[pa.Table]:
    """The tables that several threads read from the files, each many times."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda at: files[at % len(files)].read(), range(READS)))


def test_threads_take_turns(large: tuple[Path, pa.Table]) -> None:
    path, table = large
    file = Switching(path.read_bytes())
    opened = cf.open(file)
    file._by = None
    for rows in many([opened]):
        assert same(rows, table)
    assert file.mixed == 0


def test_an_object_opened_twice_has_one_position(large: tuple[Path, pa.Table]) -> None:
    path, table = large
    file = Switching(path.read_bytes())
    opened = [cf.open(file) for _ in range(2)]
    file._by = None
    for rows in many(opened):
        assert same(rows, table)
    assert file.mixed == 0


def test_several_threads_of_one_read_share_a_file_object(large: tuple[Path, pa.Table]) -> None:
    path, table = large
    before = pa.cpu_count()
    pa.set_cpu_count(THREADS)
    try:
        with open(path, "rb") as file:
            for _ in range(READS):
                assert same(cf.open(file).read(), table)
    finally:
        pa.set_cpu_count(before)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_fsspec_files_are_read_by_several_threads(large: tuple[Path, pa.Table], scheme: str) -> None:
    path, table = large
    files = fsspec.filesystem(scheme)
    if scheme == "memory":
        files.pipe(str(path), path.read_bytes())
    with files.open(str(path), "rb") as file:
        for rows in many([cf.open(file), cf.open(file)]):
            assert same(rows, table)
