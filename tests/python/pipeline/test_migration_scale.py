"""Many files: the driver keeps little of them in memory, and distributes the work."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from estates import Estate

from coldframe._coldframe import Store
from coldframe.pipeline import migrate
from coldframe.pipeline.plan import plan_files
from coldframe.pipeline.records import Committed, Part, SourceFile, dumps, loads
from coldframe.pipeline.scheduling import InProcess, Threads
from coldframe.pipeline.source import inventory
from coldframe.pipeline.source.inventory import source_rows
from coldframe.pipeline.source.store_listing import _list_flat
from coldframe.pipeline.source.store_tree import FolderFiles, Kept, Shelf
from coldframe.pipeline.state import scratch as scratch_module
from coldframe.pipeline.state.ledger import Ledger
from coldframe.pipeline.state.scratch import Rows, Scratch, names


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


class Serialising(InProcess):
    """Serialises tasks and outcomes as Spark does."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def run(self, works: Iterator[Any]) -> Iterator[Any]:
        for work in works:
            self.kinds.append(type(work).__name__)
            yield loads(dumps(pickle.loads(pickle.dumps(work)).run()))


def test_workers_list_many_folders_and_read_many_footers(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        estate.orc(f"t/p={number % 4}/{number}", {"a": [number]})
    estate.orc("u/1", {"x": ["y"]})
    (estate.source / "u/2").write_bytes(b"ORC, or what is left of it" * 10)
    (estate.source / "t/p=1/0").symlink_to("nowhere")
    (estate.source / "t/p=1/empty").touch()
    alone = estate.migrate()
    monkeypatch.setattr(inventory, "DRIVER_FOLDERS", 0)
    monkeypatch.setattr(inventory, "FOLDERS_A_TASK", 2)
    monkeypatch.setattr(plan_files, "DRIVER_FILES", 0)
    travelling = Serialising()
    report = migrate(travelling, estate.source, estate.target.with_name("other"))
    # Folder tasks: the root; t and u; four partitions. Then the files of each table are planned and merged.
    assert travelling.kinds[:6] == ["FolderTask"] * 4 + ["PlanTask"] * 2
    assert travelling.kinds[6:] == ["MergeTask"] * 4 + ["Task"]
    assert report.unread == alone.unread
    assert [file.to_json()["status"] for table in report.tables for file in table.files] == [
        file.to_json()["status"] for table in alone.tables for file in table.files
    ]
    assert (report.rows, report.exit_code) == (alone.rows, 1) == (13, 1)


def test_a_folder_whose_worker_died_is_reported(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    monkey = pytest.MonkeyPatch()

    class Deadly(InProcess):
        def run(self, works: Iterator[Any]) -> Iterator[Any]:
            for work in works:
                yield work.given_up("the worker process failed")

    monkey.setattr(inventory, "DRIVER_FOLDERS", 0)
    report = migrate(Deadly(), estate.source, estate.target)
    monkey.undo()
    assert report.exit_code == 1
    assert [file.reason for file in report.unread] == ["the worker process failed"]
    monkey.setattr(plan_files, "DRIVER_FILES", 0)
    report = migrate(Deadly(), estate.source, estate.target)
    monkey.undo()
    assert [file.error for file in report.failures] == ["the worker process failed"]


def test_threads_take_only_as_much_work_as_they_can_do() -> None:
    taken: list[int] = []

    class Number:
        bytes = 1

        def __init__(self, value: int) -> None:
            self.value = value

        def run(self) -> dict[str, Any]:
            return {"value": self.value}

    def works() -> Iterator[Number]:
        for value in range(100):
            taken.append(value)
            yield Number(value)

    outcomes = Threads(3).run(works())
    assert next(outcomes) == {"value": 0}
    assert len(taken) <= 6
    assert [outcome["value"] for outcome in outcomes] == list(range(1, 100))


def test_rows_can_be_looked_up_replaced_and_removed_during_a_read() -> None:
    scratch = Scratch()
    rows: Rows[tuple[str, int]] = Rows(scratch, lambda row: row[0], lambda row: row, tuple)
    other = rows.another()
    assert (len(rows), bool(rows), list(rows)) == (0, False, [])
    for number in reversed(range(2000)):
        rows.append((f"{number:05d}", number))
        other.append((f"{number:05d}", -number))
    rows.append(("00007", 70))
    assert len(rows) == 2000
    assert rows.get("00007") == ("00007", 70)
    assert rows.get("x") is None
    assert rows[7] == ("00007", 70)
    assert [number for _, number in rows[1:4]] == [1, 2, 3]
    with pytest.raises(IndexError):
        rows[2000]
    seen = []
    for key, number in rows:
        seen.append(number)
        if number % 2:
            rows.discard(key)
    assert seen == [70 if number == 7 else number for number in range(2000)]
    assert [number for _, number in rows][:5] == [0, 2, 4, 6, 70]
    rows.clear()
    assert (list(rows), len(other)) == ([], 2000)


def test_a_ledger_knows_tables_and_their_files() -> None:
    ledger = Ledger(Scratch())

    def entry(source: str, table: str, *finals: str) -> Committed:
        return Committed("k", source, table, tuple(Part("s", final, 1, 2) for final in finals))

    for number in range(1500):
        ledger.put(entry(f"t/{number:04d}", "t", f"t/{number}.parquet"))
    ledger.put(entry("t2/1", "t2"))
    assert (len(ledger), ledger.has_final("t/7.parquet")) == (1501, True)
    ledger.put(entry("t/0007", "t", "t/7-again.parquet"))
    assert (len(ledger), ledger.has_final("t/7.parquet")) == (1501, False)
    assert ledger["t/0007"].parts[0].final == "t/7-again.parquet"
    assert len(list(ledger.of_table("t"))) == 1500
    assert [file.source for file in ledger.of_table("t2")] == ["t2/1"]
    gone = ledger.pop("t2/1")
    assert gone is not None
    assert (gone.table, ledger.pop("t2/1"), list(ledger.of_table("t2"))) == ("t2", None, [])
    assert list(ledger) == [file.source for file in ledger.each()]


def test_memory_does_not_grow_with_the_files() -> None:
    files = source_rows(Scratch(), "/src")
    tracemalloc.start()
    for number in range(50_000):
        name = f"warehouse/table/dt=2014-01-01/region=eu/{number:06d}_0"
        files.append(SourceFile(f"/src/{name}", name, 1000, 1, "orc", "1000:1:1:1"))
    count = sum(file.path.endswith("_0") for file in files)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 50_000
    assert most < 2 << 20


def test_file_names_that_are_not_text_are_kept(estate: Estate) -> None:
    path = estate.orc("t/1", {"a": [1]})
    odd = os.path.join(os.fsencode(estate.source), b"t", b"\xff\xe9 odd")
    os.rename(path, odd)
    for earlier in (False, True):
        report = estate.migrate()
        (file,) = report.tables[0].files
        assert (file.source, file.earlier) == (os.fsdecode(b"t/\xff\xe9 odd"), earlier)
        assert (report.exit_code, report.safe_to_delete) == (0, 1)
    listed = names(Scratch())
    listed.append(file.source)
    assert list(listed) == [file.source]


class Objects:
    """An object store of very many small files."""

    url = "s3://warehouse/hive"

    def __init__(self, folders: int, files: int) -> None:
        self._names = (f"t/p={folder:04}/{file:05}" for folder in range(folders) for file in range(files))

    def list(self, folder: str, *, recursive: bool) -> Iterator[list[Kept]]:
        assert (folder, recursive) == ("", True)
        while page := list(itertools.islice(self._names, 1000)):
            yield [Kept(name, 7, 1_700_000_000_000, None) for name in page]


def test_the_listing_of_a_store_does_not_grow_in_memory() -> None:
    tree: Any = None
    tracemalloc.start()
    try:
        tree = _list_flat(cast(Store, Objects(20, 5000)))
        first, peak = tracemalloc.get_traced_memory()
        size = sum(entry.size for _, entry in tree.below("t"))
        _, later = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 7 * 100_000
    assert max(first, peak, later) < 5 << 20
    files = tree.folders["t/p=0003"].files
    assert files.get("00007") == Kept("t/p=0003/00007", 7, 1_700_000_000_000, None)
    assert files.get("t/p=0003/00007") is None
    assert tree.folders["t"].files.get("p=0003") is None
    assert list(files) == [f"{number:05}" for number in range(5000)]
    assert tree.stat("t/p=0003/00007") == ("t/p=0003/00007", 7, False, 1_700_000_000_000, None)


def test_listed_files_with_prefix_names_and_names_that_are_not_text() -> None:
    shelf = Shelf()
    names = {"a": ["z", "a", "a b", "\udcff"], "a/b": ["c"], "ab": ["d"], "": ["x"]}
    folders = {folder: FolderFiles(shelf, folder) for folder in names}
    for folder, inside in names.items():
        for name in inside:
            folders[folder][name] = Kept(f"{folder}/{name}" if folder else name, 1, None, "tag")
    paths = {folder: [entry.path for entry in files.values()] for folder, files in folders.items()}
    assert paths == {"a": ["a/a", "a/a b", "a/z", "a/\udcff"], "a/b": ["a/b/c"], "ab": ["ab/d"], "": ["x"]}


@pytest.mark.parametrize("limit", [0, 40, 1 << 20])
def test_short_lists_in_memory_are_as_those_on_disk(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_module, "FEW", 3)
    monkeypatch.setattr(scratch_module, "FEW_BYTES", limit)
    monkeypatch.setattr(scratch_module, "PAGE", 2)
    draw = random.Random(7)
    scratch = Scratch()
    lists = [scratch.new_list() for _ in range(4)]
    expected: dict[int, dict[bytes, bytes]] = {number: {} for number in lists}
    keys = [b"a", b"a\0b", b"a\0c", b"a\xff", b"a\xff\xffd", b"b", b"\xff", b"\xff\0"]
    for _ in range(600):
        number, key = draw.choice(lists), draw.choice(keys)
        action = draw.choice(["put", "put", "delete", "clear" if draw.random() < 0.1 else "put"])
        if action == "put":
            body = bytes([draw.randrange(256)]) * draw.randrange(4)
            scratch.put(number, key, body)
            expected[number][key] = body
        elif action == "delete":
            scratch.delete(number, key)
            expected[number].pop(key, None)
        else:
            scratch.clear(number)
            expected[number].clear()
        rows = sorted(expected[number].items())
        assert list(scratch.rows(number)) == rows
        assert scratch.count(number) == len(rows)
        assert [scratch.get(number, key) for key in keys] == [expected[number].get(key) for key in keys]
        for prefix in (b"a", b"a\0", b"a\xff", b"\xff"):
            below = [(key, body) for key, body in rows if key.startswith(prefix) and key != prefix]
            assert list(scratch.rows(number, prefix)) == below
        assert scratch.page(number, b"a", 2) == [(key, body) for key, body in rows if key > b"a"][:2]
