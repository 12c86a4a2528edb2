"""The state survives killed runs, vanished sources, and changes to the target."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate, torn

from coldframe.errors import ColdframeError
from coldframe.pipeline.records import Committed, Details, Part
from coldframe.pipeline.sink import destination
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.state import journal
from coldframe.pipeline.state.journal import Journal, read_state
from coldframe.pipeline.work import convert


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


# Sources that vanish.


def compacted(estate: Estate) -> None:
    """Two files, which Hive's compaction then merges."""
    estate.orc("t/p=1/000000_0", {"a": [1, 2]})
    estate.orc("t/p=1/000001_0", {"a": [3]})
    estate.orc("u/1", {"a": [9]})
    assert estate.migrate().exit_code == 0
    shutil.rmtree(estate.source / "t/p=1")
    estate.orc("t/p=1/compacted", {"a": [1, 2, 3]})


def test_a_compaction_between_two_runs_doubles_no_row(estate: Estate) -> None:
    compacted(estate)
    report = estate.migrate()
    assert report.exit_code == 1
    (table,) = (table for table in report.tables if table.name == "t")
    assert table.vanished == ["t/p=1/000000_0", "t/p=1/000001_0"]
    (refused,) = report.failures
    assert refused.source == "t/p=1/compacted"
    assert "on_vanished" in str(refused.error)
    assert estate.values() == [1, 2, 3]
    report = estate.migrate(on_vanished="remove")
    assert report.exit_code == 0
    assert estate.values() == [1, 2, 3]
    assert len(estate.files("t")) == 1
    report = estate.migrate()
    assert (report.exit_code, report.rows) == (0, 4)


def test_on_vanished_keep_keeps_rows_of_vanished_sources(estate: Estate) -> None:
    compacted(estate)
    report = estate.migrate(on_vanished="keep")
    assert report.exit_code == 0
    assert estate.values() == [1, 1, 2, 2, 3, 3]
    assert [len(table.vanished) for table in report.tables] == [2, 0]


def test_no_file_is_removed_before_its_replacement_is_published(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    compacted(estate)
    (estate.source / "t/p=1/compacted").write_bytes(b"ORC, or what is left of it")
    report = estate.migrate(on_vanished="remove", most_vanished=1)
    assert report.exit_code == 1
    assert "earlier result stays" in str(report.tables[0].error)
    assert estate.values() == [1, 2, 3]


@pytest.mark.parametrize("how", ["of no format", "cut short"])
def test_a_rewrite_with_a_failed_file_is_not_published_in_part(estate: Estate, how: str) -> None:
    """Rows moved from a changed file to a new file: publishing only the new file would double them."""
    estate.orc("t/p=3/f", {"a": [7, 8]})
    assert estate.migrate().exit_code == 0
    before = estate.values()
    changed = estate.orc("t/p=3/f", {"a": [7]})
    whole = changed.read_bytes()
    changed.write_bytes(b"of no format" if how == "of no format" else whole[: len(whole) // 2])
    estate.orc("t/p=3/g", {"a": [8]})
    report = estate.migrate()
    assert (report.exit_code, estate.values()) == (1, before)
    assert "new files may have rows that it had" in str(report.tables[0].error)
    changed.write_bytes(whole)
    assert estate.migrate().exit_code == 0
    assert estate.values() == before


def test_a_dropped_table_is_reported(estate: Estate) -> None:
    compacted(estate)
    shutil.rmtree(estate.source / "t")
    report = estate.migrate()
    assert report.exit_code == 1
    assert {table.path: table.vanished for table in report.tables}["t"] == [
        "t/p=1/000000_0",
        "t/p=1/000001_0",
    ]
    assert estate.values() == [1, 2, 3]
    assert estate.migrate(on_vanished="keep").exit_code == 0
    assert estate.migrate(on_vanished="remove", dropped=["t"]).exit_code == 0
    assert estate.files("t") == []
    assert estate.values("u") == [9]
    assert [table.path for table in estate.migrate().tables] == ["u"]


@pytest.mark.parametrize("target", ["delta", "iceberg"])
def test_vanished_sources_are_removed_from_delta_and_iceberg(estate: Estate, target: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])

    def values(table: str) -> list[int]:
        if target == "delta":
            from deltalake import DeltaTable

            rows = pa.table(DeltaTable(estate.target / table).to_pyarrow_table())
        else:
            from coldframe.pipeline.sink.iceberg import open_catalog

            rows = open_catalog(str(estate.target)).load_table(("migrated", table)).scan().to_arrow()
        return sorted(rows["a"].to_pylist())

    estate.orc("t/p=1/a", {"a": [1, 2]})
    estate.orc("t/p=1/b", {"a": [3]})
    estate.orc("u/1", {"a": [9]})
    assert estate.migrate(to=target).exit_code == 0
    shutil.rmtree(estate.source)
    estate.orc("t/p=1/c", {"a": [1, 2, 3]})
    assert estate.migrate(to=target).exit_code == 1
    assert values("t") == [1, 2, 3]
    report = estate.migrate(to=target, on_vanished="remove", dropped=["u"])
    assert [table.error for table in report.tables] == [None, None]
    assert (values("t"), values("u")) == ([1, 2, 3], [])
    assert estate.migrate(to=target).exit_code == 0


def test_an_unreadable_directory_has_not_vanished(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted(estate)
    scandir = os.scandir

    def refuses(path: Any = ".") -> Any:
        if str(path) == str(estate.source / "t" / "p=1"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    report = estate.migrate(on_vanished="remove")
    assert [file.relative for file in report.unread] == ["t/p=1"]
    assert estate.values() == [1, 2, 3]
    assert all(not table.vanished for table in report.tables)


def test_an_excluded_table_has_not_vanished(estate: Estate) -> None:
    compacted(estate)
    report = estate.migrate(exclude=["t"], on_vanished="remove")
    assert (report.exit_code, report.excluded) == (0, 1)
    assert [table.path for table in report.tables] == ["u"]
    assert estate.values() == [1, 2, 3]


@pytest.mark.parametrize("target", ["delta", "iceberg"])
@pytest.mark.parametrize("made", [False, True])
def test_a_run_killed_while_it_registers_a_table_is_completed(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, target: str, made: bool
) -> None:
    """The journal does not know whether the commit was made; the table does."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    estate.orc("t/1", {"a": [1]})
    estate.migrate(to=target)
    estate.orc("t/2", {"a": [2]})
    real = {"announce": Journal.announce, "settle": Journal.settle}

    def killed(self: Journal, *given: Any, **named: Any) -> None:
        if not made:
            real["announce"](self, *given, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "settle" if made else "announce", killed)
        with pytest.raises(Killed):
            estate.migrate(to=target)
    assert estate.migrate(to=target).exit_code == 0
    state, _ = read_state(Destination(str(estate.target)))
    assert not state.registering
    assert {name.partition("-")[0] for name in state.registered["t"]} == {"t/1", "t/2"}


# Targets that other programs change.


def test_missing_or_truncated_target_files_are_rebuilt(estate: Estate) -> None:
    for number in range(3):
        estate.orc(f"t/{number}", {"a": [number]})
    estate.migrate(target_file_bytes=0)
    first, second, _ = estate.files("t")
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    report = estate.migrate()
    assert report.exit_code == 0
    assert estate.values() == [0, 1, 2]
    assert sum(file.earlier for file in report.tables[0].files) == 1
    assert estate.migrate().verified


def test_a_foreign_file_in_a_table_is_reported(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.migrate()
    pq.write_table(pa.table({"a": [666]}), estate.target / "t" / "part-0.parquet")
    (estate.target / "t" / "_SUCCESS").touch()
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (1, False)
    assert report.tables[0].foreign == ["t/part-0.parquet"]


# Option fresh.


def test_fresh_keeps_the_old_result_until_the_new_result_is_complete(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        estate.orc(f"t/{number}", {"a": range(number * 100, number * 100 + 100)})
    estate.migrate()
    before = estate.tree()
    hold, calls = Journal.hold, 0

    def killing(self: Journal, entries: Any) -> None:
        nonlocal calls
        hold(self, entries)
        calls += 1
        if calls == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("coldframe.pipeline.work.committing.BATCH", 1)
        patch.setattr(Journal, "hold", killing)
        with pytest.raises(Killed):
            estate.migrate(fresh=True, split_bytes=300, target_file_bytes=0)
    assert estate.tree() == before
    # The next run continues, with or without the option.
    report = estate.migrate(split_bytes=300, target_file_bytes=0)
    assert report.exit_code == 0
    assert sum(file.earlier for file in report.tables[0].files) == 2
    assert not estate.tree().keys() & before.keys()
    assert estate.values() == list(range(400))
    after = estate.tree()
    assert estate.migrate().exit_code == 0
    assert estate.tree() == after


def test_a_file_that_fails_with_fresh_keeps_its_earlier_result(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        estate.orc(f"t/{number}", {"a": [number]})
    estate.migrate()
    monkeypatch.setattr(convert, "raw_scan", torn("/1"))
    report = estate.migrate(fresh=True)
    assert [file.source for file in report.failures] == ["t/1"]
    assert estate.values() == [0, 1]


def test_changed_types_are_published_together_or_not_at_all(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.orc("t/1", {"a": pa.array([1], pa.int16())})
    estate.migrate()
    before = estate.tree()
    estate.orc("t/2", {"a": pa.array([70000], pa.int64())})
    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", torn("/1"))
        report = estate.migrate()
    assert report.exit_code == 1
    assert {file.source: file.status for file in report.tables[0].files} == {"t/1": "failed", "t/2": "held"}
    assert estate.tree() == before
    report = estate.migrate()
    assert report.exit_code == 0
    assert {file.source: file.earlier for file in report.tables[0].files} == {"t/1": False, "t/2": True}
    assert estate.values() == [1, 70000]


def test_a_file_that_never_succeeded_does_not_block_the_others(estate: Estate) -> None:
    estate.orc("t/1", {"a": pa.array([1], pa.int16())})
    (estate.source / "t/torn").write_bytes(b"ORC, or what is left of it")
    estate.migrate()
    estate.orc("t/2", {"a": pa.array([70000], pa.int64())})
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/torn"]
    assert report.tables[0].error is None
    assert estate.values() == [1, 70000]


def test_rows_of_vanished_sources_do_not_stay_in_another_type(estate: Estate) -> None:
    estate.orc("t/1", {"a": pa.array([1], pa.int16())})
    estate.migrate()
    (estate.source / "t/1").unlink()
    estate.orc("t/2", {"a": pa.array([70000], pa.int64())})
    report = estate.migrate(on_vanished="keep")
    assert report.exit_code == 1
    assert "such as that of t/1, whose source is gone" in str(report.failures[0].error)
    assert estate.values() == [1]
    assert estate.migrate(on_vanished="remove").exit_code == 0
    assert estate.values() == [70000]


@pytest.mark.parametrize("target", ["delta", "iceberg"])
@pytest.mark.parametrize("wide", [pa.array([70000], pa.int64()), pa.array([0.5])])
def test_delta_and_iceberg_get_the_type_that_newer_files_need(
    estate: Estate, target: str, wide: pa.Array
) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    estate.orc("t/p=1/1", {"a": pa.array([1], pa.int16()), "b": ["x"]})
    estate.migrate(to=target)
    estate.orc("t/p=2/2", {"b": ["y"], "a": wide})
    for _ in range(2):
        report = estate.migrate(to=target)
        assert (report.exit_code, report.tables[0].error, report.verified) == (0, None, True)
        if target == "delta":
            from deltalake import DeltaTable

            rows = pa.table(DeltaTable(estate.target / "t").to_pyarrow_table())
        else:
            from coldframe.pipeline.sink.iceberg import open_catalog

            rows = open_catalog(str(estate.target)).load_table("migrated.t").scan().to_arrow()
        assert rows.schema.field("a").type == wide.type
        assert sorted(rows["a"].to_pylist()) == sorted([1, wide[0].as_py()])
        assert sorted(rows["b"].to_pylist()) == ["x", "y"]


# Kills.


class Killed(BaseException):
    """A kill, raised inside the process."""


class Mortal(Destination):
    """Fails like a killed driver, before or after one of its operations."""

    left = 1 << 60
    OPERATIONS = (
        "list",
        "stat",
        "read",
        "create",
        "write",
        "publish",
        "delete",
        "settle",
        "sweep",
        "prune",
        "_temporary",
    )

    def __getattribute__(self, name: str) -> Any:
        attribute = object.__getattribute__(self, name)
        if name not in Mortal.OPERATIONS:
            return attribute

        def call(*given: Any) -> Any:
            Mortal.tick()
            answer = attribute(*given)
            Mortal.tick()
            return answer

        return call

    @staticmethod
    def tick() -> None:
        Mortal.left -= 1
        if Mortal.left < 0:
            raise Killed


def before_and_after(root: Path) -> tuple[Estate, Callable[[Estate], Any], list[int], list[int]]:
    """A target, and a source that changed since: new, changed, vanished and widened files."""
    estate = Estate(root)
    for number in range(3):
        estate.orc(f"t/p={number}/f", {"a": pa.array([number * 10 + 1, number * 10 + 2], pa.int16())})
    # Three sources share a target file: the first changes, the second vanishes, the third stays.
    for number in range(41, 44):
        estate.orc(f"t/p=4/{number}", {"a": pa.array([number], pa.int16())})
    estate.migrate()
    estate.orc("t/p=4/41", {"a": pa.array([44], pa.int16())})
    (estate.source / "t/p=4/42").unlink()
    estate.orc("t/p=0/f", {"a": pa.array([7], pa.int16())})
    (estate.source / "t/p=1/f").unlink()
    estate.orc("t/p=3/f", {"a": pa.array([70000], pa.int64())})
    old = [1, 2, 11, 12, 21, 22, 41, 42, 43]
    return estate, lambda estate: estate.migrate(on_vanished="remove"), old, [7, 21, 22, 43, 44, 70000]


def kill_and_restart(root: Path, monkeypatch: pytest.MonkeyPatch, steps: Any) -> int:
    """Kills a second run after each number of operations, always on a copy, and restarts it."""
    template, go, old, new = before_and_after(root / "template")
    assert template.values() == old
    survived = 0
    for step in steps:
        place = root / f"step-{step}"
        shutil.copytree(root / "template", place, copy_function=shutil.copy2)
        estate = Estate(place)
        Mortal.left = step
        killed = False
        with monkeypatch.context() as patch:
            patch.setattr("coldframe.pipeline.open_destination", lambda root, _: Mortal(root))
            patch.setattr("coldframe.pipeline.work.committing.BATCH", 2)
            try:
                go(estate)
            except Killed:
                killed = True
        Mortal.left = 1 << 60
        # A reader of the table now sees each row of both states at least once.
        seen = {row for path in estate.files("t") for row in pq.read_table(path)["a"].to_pylist()}
        assert seen >= set(new) or seen >= set(old), f"step {step}"
        report = go(estate)
        assert report.exit_code == 0, f"step {step}: {report.failures}"
        assert estate.values() == new, f"step {step}"
        left = [path.name for path in (estate.target / "_coldframe").rglob("*") if path.suffix == ".new"]
        assert left == [], f"step {step}"
        assert not (estate.target / "_coldframe" / "staging").exists()
        shutil.rmtree(place)
        if not killed:
            return survived
        survived += 1
    return survived


def test_a_reader_sees_all_rows_after_random_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(13)
    assert kill_and_restart(tmp_path, monkeypatch, sorted(chance.sample(range(90), 12))) == 12


def test_killed_before_and_after_every_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kill_and_restart(tmp_path, monkeypatch, range(2000)) > 80


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "t").rglob("*") if path.is_file())


def staged(book: Journal, version: str, number: int = 3) -> Committed:
    parts = []
    for at in range(number):
        path = Path(book.staging) / f"{version}-{at}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{version} {at}\n")
        size = path.stat().st_size
        parts.append(Part(book.destination.name_of(str(path)), f"t/p={at}/{version}", 1, size))
    return Committed(version, "source", "t", tuple(parts), (), Details(rows=number))


def test_a_commit_that_loses_a_file_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(str(tmp_path / "x")) as book:
        book.commit([staged(book, "old")])
    publish, calls = Destination.publish, 0

    def failing(self: Destination, temporary: str, final: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            os.unlink(self.path(temporary))
            raise Killed
        publish(self, temporary, final)

    with Journal(str(tmp_path / "x")) as book:
        entry = staged(book, "new")
        with monkeypatch.context() as patch:
            patch.setattr(Destination, "publish", failing)
            with pytest.raises(Killed):
                book.commit([entry])
    with Journal(str(tmp_path / "x")) as book:
        assert names(tmp_path / "x") == ["old"] * 3
        assert book.done["source"].key == "old"
        book.commit([staged(book, "new")])
    assert names(tmp_path / "x") == ["new"] * 3


def test_a_driver_presumed_dead_is_fenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(tmp_path / "x")
    with Journal(root) as book:
        with pytest.raises(ColdframeError, match="another migration"), Journal(root):
            pass
        # The first driver's lock is lost, as on a file system that forgets locks; another driver does the
        # work.
        monkeypatch.setattr(destination.fcntl, "flock", lambda *_: None)
        late = staged(book, "late")
        monkeypatch.setattr(journal, "COMPACT", 3)
        for number in range(3):
            with Journal(root) as other:
                other.commit([staged(other, f"other{number}")])
                assert Path(other.destination.path(late.parts[0].staged)).exists() is False
                other.end()
                other.compact()
        with pytest.raises(ColdframeError, match="taken this migration over"):
            book.commit([late])
    state, _ = read_state(Destination(root))
    assert state.done["source"].key == "other2"
    assert set(names(tmp_path / "x")) == {"other2"}


def test_no_file_is_renamed_over_another(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    place = Destination(str(tmp_path))
    with pytest.raises(FileExistsError):
        place.publish("a", "b")
    assert (tmp_path / "b").read_text() == "b"
    place.publish("a", "c")
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "c").read_text() == "a"
    with pytest.raises(FileNotFoundError):
        place.publish("a", "d")
    with pytest.raises(FileNotFoundError):
        place.publish("a", "b")
    # A file with the same bytes is still another file.
    (tmp_path / "e").write_text("a")
    with pytest.raises(FileExistsError):
        place.publish("c", "e")
    assert (tmp_path / "c").exists()
    # On a file system without atomic rename, a kill came between link and unlink.
    os.link(tmp_path / "c", tmp_path / "f")
    place.publish("c", "f")
    assert not (tmp_path / "c").exists()
    assert (tmp_path / "f").read_text() == "a"
    place = Destination(str(tmp_path / "d"))
    assert place.create("x/1", b"one") is True
    assert place.create("x/1", b"two") is False
    assert place.read("x/1") == b"one"
    assert [file.name for file in place.list()] == ["x/1"]
    # A file has nothing below it.
    assert list(place.list("x/1")) == []
    assert place.stat("x/1/2") is None
    assert place.delete("x/1/2") is False


def test_a_compacted_journal_has_the_same_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "COMPACT", 5)
    root = str(tmp_path / "x")
    with Journal(root) as book:
        book.keep_schema("s", "abc")
        for number in range(5):
            entry = staged(book, f"v{number}", 1)
            book.commit([Committed(**{**vars(entry), "source": f"source{number}"})])
        book.hold([Committed(**{**vars(staged(book, "w", 1)), "source": "waiting"})])
        book.begin_fresh()
        book.end()
        before = list(book.state.events())
        book.compact()
    assert (
        len(list((tmp_path / "x/_coldframe/state").iterdir())) == 2
    )  # the compacted segment, and the run's first
    state, number = read_state(Destination(root))
    assert list(state.events()) == before
    with Journal(root) as book:
        assert book.state.epoch == 2
        assert set(book.held) == {"waiting"}
    segments = sorted((tmp_path / "x/_coldframe/state").iterdir())
    assert len(segments) == 3
    for text in segments[-1].read_text().splitlines():
        assert json.loads(text)["event"] == "run"
    segments[-1].rename(segments[-1].with_name(f"{number + 5:012d}.jsonl"))
    with pytest.raises(ColdframeError, match="is missing"):
        read_state(Destination(root))


def test_only_safe_sources_are_listed(estate: Estate) -> None:
    kept = [estate.orc("u/1", {"a": [2]}), estate.orc("v/1", {"a": [1]})]
    kept.append(estate.orc("u/2", {"a": pa.array([], pa.int64())}))
    estate.orc("w/1", {"a": ["x"]})
    estate.orc("w/2", {"a": [1]})
    # A file of this table failed: no file of the table is listed.
    estate.orc("t/1", {"a": [1]})
    (estate.source / "t/3").write_bytes(b"ORC? " * 100)
    report = estate.migrate()
    assert estate.safe() == sorted(map(str, kept))
    assert report.safe_to_delete == 3
    # Files that were not read back, or have changed since, are not listed.
    assert estate.migrate(fresh=True, verify=False).safe_to_delete == 0
