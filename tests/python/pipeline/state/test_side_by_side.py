"""The driver's calls to the target are in bulk or in parallel: a call to a store takes 10 ms."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.pipeline.records import Committed, Part
from coldframe.pipeline.sink import delta
from coldframe.pipeline.sink.destination import Destination, StoredFile
from coldframe.pipeline.state.journal import STAGING, Journal

AT_ONCE = 8


class ParallelDestination(Destination):
    """Calls wait until `AT_ONCE` of them have arrived: sequential calls would wait for ever."""

    at_once = AT_ONCE

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.barrier = threading.Barrier(AT_ONCE, timeout=60)
        self.asked: list[str] = []

    def publish(self, staged: str, name: str) -> None:
        self.barrier.wait()
        super().publish(staged, name)

    def delete(self, name: str) -> bool:
        if name.startswith("t/"):
            self.barrier.wait()
        return super().delete(name)

    def stat(self, name: str) -> StoredFile | None:
        self.asked.append(name)
        return super().stat(name)


def entries(place: ParallelDestination, run: str) -> list[Committed]:
    made = []
    for number in range(AT_ONCE):
        part = Part(f"{STAGING}/000001/{run}-{number}", f"t/{run}-{number}", 1, 1)
        place.write(part.staged, b"x")
        made.append(Committed(run, f"t/{number}", "t", (part,)))
    return made


def test_files_are_published_and_deleted_in_parallel(tmp_path: Path) -> None:
    place = ParallelDestination(str(tmp_path / "dst"))
    with Journal(place) as journal:
        journal.commit(entries(place, "a"))
        # Publishes replacements of the files, and deletes the files.
        journal.commit(entries(place, "b"))
    assert sorted(file.name for file in place.list("t")) == [f"t/b-{number}" for number in range(AT_ONCE)]


def test_held_files_are_checked_with_a_single_listing(tmp_path: Path) -> None:
    place = ParallelDestination(str(tmp_path / "dst"))
    with Journal(place) as journal:
        held = entries(place, "a")
        journal.hold(held)
    place.asked.clear()
    # As after a kill between two runs: a held file is lost.
    Destination.delete(place, held[3].parts[0].staged)
    with Journal(place) as journal:
        assert sorted(journal.held) == sorted({entry.source for entry in held} - {"t/3"})
    assert place.asked == []


@pytest.mark.parametrize("to", ["parquet", "delta", "iceberg"])
def test_a_run_without_work_reads_no_single_file(
    tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run reads no file's size, no footer and no row of the target."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}.get(to, "pyarrow"))
    estate = Estate(tmp_path)
    for number in range(4):
        estate.orc(f"t/p={number % 2}/{number}", {"a": pa.array([number])})
    assert estate.migrate(to=to, target_file_bytes=0).exit_code == 0

    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("a file of the target was asked for")

    monkeypatch.setattr(Destination, "stat", asked)
    monkeypatch.setattr(delta.pq, "read_metadata", asked)
    if to == "iceberg":
        import pyiceberg.io.pyarrow

        monkeypatch.setattr(pyiceberg.io.pyarrow, "ArrowScan", asked)
    report = estate.migrate(to=to, target_file_bytes=0)
    assert (report.exit_code, report.safe_to_delete) == (0, 4)
