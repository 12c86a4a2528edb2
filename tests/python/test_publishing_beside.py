"""Where publishing is a call to a server, the run hands out work meanwhile, and a kill loses nothing."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.pipeline import run
from coldframe.pipeline.convert import Task
from coldframe.pipeline.destination import Destination
from coldframe.pipeline.journal import STAGING, Entry, Journal, Part

FILES = 6


def estate_of(root: Path) -> Estate:
    estate = Estate(root)
    for number in range(FILES):
        estate.orc(f"t/p={number}/f", {"a": pa.array([number])})
    return estate


class Slow(Destination):
    publishes_slowly = True


class Waiting(Slow):
    """Publishes nothing before the last task has begun."""

    begun = threading.Event()

    def publish(self, staged: str, name: str) -> None:
        assert self.begun.wait(timeout=60), "work was not handed out while a file was published"
        super().publish(staged, name)


def test_work_is_handed_out_while_files_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate, tasks, convert = estate_of(tmp_path), 0, Task.run

    def counted(self: Task) -> Any:
        nonlocal tasks
        tasks += 1
        if tasks == 4:
            Waiting.begun.set()
        return convert(self)

    Waiting.begun.clear()
    monkeypatch.setattr(Task, "run", counted)
    monkeypatch.setattr(run, "open_destination", lambda root, _: Waiting(root))
    monkeypatch.setattr("coldframe.pipeline.committing.BATCH", 1)
    report = estate.migrate(target_file_bytes=0)
    assert (report.exit_code, report.safe_to_delete) == (0, FILES)
    assert estate.values() == list(range(FILES))


def test_a_second_commit_of_a_source_replaces_the_first(tmp_path: Path) -> None:
    place = Slow(str(tmp_path / "dst"))
    with Journal(place) as journal:
        for name in ("a", "b"):
            part = Part(f"{STAGING}/000001/{name}", f"t/{name}", 1, 1)
            place.write(part.staged, b"x")
            journal.commit([Entry(name, "t/0", "t", (part,))], in_background=True)
    assert [found.name for found in place.list("t")] == ["t/b"]


def test_an_error_of_a_store_ends_the_run_and_the_next_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = estate_of(tmp_path)

    class Failing(Slow):
        def publish(self, staged: str, name: str) -> None:
            raise OSError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(run, "open_destination", lambda root, _: Failing(root))
        with pytest.raises(OSError, match="the store is away"):
            estate.migrate(target_file_bytes=0)
    assert estate.files("t") == []
    assert estate.migrate(target_file_bytes=0).exit_code == 0
    assert estate.values() == list(range(FILES))


class Killed(BaseException):
    """The driver is gone."""


class Mortal(Slow):
    """Every write fails after some: before it is made, or after."""

    left = 0
    guard = threading.Lock()

    def _live(self) -> None:
        with self.guard:
            Mortal.left -= 1
            if Mortal.left < 0:
                raise Killed

    def create(self, name: str, content: bytes) -> bool:
        self._live()
        made = super().create(name, content)
        self._live()
        return made

    def publish(self, staged: str, name: str) -> None:
        self._live()
        super().publish(staged, name)
        self._live()

    def delete(self, name: str) -> bool:
        self._live()
        return super().delete(name)


def test_killed_while_files_are_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coldframe.pipeline.committing.BATCH", 1)
    killed = 0
    for step in random.Random(29).sample(range(2, 32), 12):
        estate = estate_of(tmp_path / str(step))
        with monkeypatch.context() as patch:
            patch.setattr(run, "open_destination", lambda root, _: Mortal(root))
            Mortal.left = step
            try:
                estate.migrate(target_file_bytes=0)
            except Killed:
                killed += 1
        seen = estate.values() if (estate.target / "t").exists() else []
        assert len(seen) == len(set(seen)), f"step {step}"
        report = estate.migrate(target_file_bytes=0)
        assert (report.exit_code, estate.values()) == (0, list(range(FILES))), f"step {step}"
        assert not (estate.target / "_coldframe" / "staging").exists()
    assert killed >= 8
