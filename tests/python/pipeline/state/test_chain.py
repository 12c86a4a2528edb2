"""The journal as a chain: lost tails, restored backups, other targets' journals, hostile paths."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.cli import main
from coldframe.errors import ColdframeError, UnsupportedError
from coldframe.pipeline import Options, audit, delete, dry_run
from coldframe.pipeline.sink.destination import Destination, open_destination
from coldframe.pipeline.state.events import from_json
from coldframe.pipeline.state.journal import Journal, State, read_state


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """A target of two runs, with the state of the first run kept in `backup`."""
    estate = Estate(tmp_path)
    for number in range(3):
        estate.orc(f"t/k=1/{number}", {"a": [number]})
    estate.migrate()
    shutil.copytree(estate.target / "_coldframe", tmp_path / "backup")
    for number in range(3, 5):
        estate.orc(f"t/k=1/{number}", {"a": [number]})
    estate.migrate(target_file_bytes=0)
    return estate


def restore(estate: Estate, *, whole: bool = False) -> None:
    """Brings back the state of the first run; `whole`: with everything beside it."""
    home = estate.target / "_coldframe"
    backup = estate.target.parent / "backup"
    place, source = (home, backup) if whole else (home / "state", backup / "state")
    shutil.rmtree(place)
    shutil.copytree(source, place)


def segments(estate: Estate) -> list[Path]:
    return sorted((estate.target / "_coldframe/state").iterdir())


def state_of(estate: Estate) -> State:
    return read_state(open_destination(str(estate.target)))[0]


def notes(report: Any) -> str:
    return " ".join(note.text for note in [*report.verdict.notes, *report.tables[0].verdict.notes])


def test_each_segment_names_its_predecessor(estate: Estate) -> None:
    first = [json.loads(path.read_text().split("\n")[0]) for path in segments(estate)]
    assert first[0]["after"] == ""
    assert len({line["after"] for line in first}) == len(first)
    state = state_of(estate)
    assert (state.chain.lost, state.chain.unchained) == ("", 0)
    assert audit(estate.target).exit_code == 0


@pytest.mark.parametrize("whole", [False, True])
def test_a_restored_backup_is_reported_and_doubles_no_row(estate: Estate, whole: bool) -> None:
    restore(estate, whole=whole)
    if not whole:
        assert "part of the journal is lost" in audit(estate.target).verdict.text
    before = segments(estate)
    dry_run(estate.source, estate.target, Options())
    assert segments(estate) == before
    report = estate.migrate(archived_rows="ask", target_file_bytes=0)
    assert (report.exit_code, estate.values()) == (0, [0, 1, 2, 3, 4])
    assert "entered again" in notes(report)
    assert ("was lost" in notes(report)) != whole
    report = estate.migrate(archived_rows="ask")
    assert (report.exit_code, report.verdict.notes, len(estate.safe())) == (0, (), 5)
    assert audit(estate.target).exit_code == 0


@pytest.mark.parametrize("whole", [False, True])
def test_deleting_does_not_hide_that_a_backup_was_restored(estate: Estate, whole: bool) -> None:
    restore(estate, whole=whole)
    listed = estate.target / "_coldframe/safe-to-delete.txt"
    if whole:
        assert delete(listed).exit_code == 0
    else:
        with pytest.raises(UnsupportedError, match="a part is lost"):
            delete(listed)
    report = estate.migrate(archived_rows="ask", target_file_bytes=0)
    assert (report.exit_code, estate.values()) == (0, [0, 1, 2, 3, 4])
    assert "entered again" in notes(report)


def test_another_migration_and_a_full_disk_are_not_wrong_usage(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["migrate", str(estate.source), str(estate.target), "--master", "in-process"]
    with Journal(str(estate.target)):
        assert main(command) == 3

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Destination, "write", full)
        assert main(command) == 3
    assert main([*command, "--schema", str(estate.source / "missing.toml")]) == 2
    assert main(command) == 0


def test_a_lost_tail_keeps_rows_whose_sources_are_gone(estate: Estate) -> None:
    restore(estate)
    (estate.source / "t/k=1/4").unlink()
    (estate.source / "t/k=1/0").unlink()
    report = estate.migrate(archived_rows="ask", on_vanished="remove")
    assert (report.exit_code, estate.values()) == (1, [0, 1, 2, 3, 4])
    assert sorted(report.tables[0].vanished) == ["t/k=1/0", "t/k=1/4"]
    report = estate.migrate(archived_rows="keep", on_vanished="remove")
    assert estate.values() == [0, 1, 2, 3, 4]
    assert estate.migrate(archived_rows="drop", on_vanished="remove").exit_code == 0
    assert estate.values() == [1, 2, 3]


def test_files_of_unknown_sources_stay_until_the_user_decides(estate: Estate) -> None:
    restore(estate)
    (estate.target / "_coldframe/manifest.jsonl").unlink()
    estate.orc("t/k=1/3", {"a": [30]})
    report = estate.migrate(archived_rows="ask")
    assert (report.exit_code, estate.values()) == (1, [0, 1, 2, 3, 4])
    assert "(of a lost run)" in str(report.tables[0].vanished)
    report = estate.migrate(archived_rows="drop", on_vanished="remove")
    assert (report.exit_code, estate.values()) == (0, [0, 1, 2, 4, 30])


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_a_lost_tail_of_a_table_with_a_log_doubles_no_row(tmp_path: Path, to: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    estate = Estate(tmp_path)
    estate.orc("t/1", {"a": [1]})
    estate.migrate(to=to)
    shutil.copytree(estate.target / "_coldframe", tmp_path / "backup")
    estate.orc("t/2", {"a": [2]})
    estate.migrate(to=to)
    restore(estate)
    report = estate.migrate(to=to, on_foreign_changes="append")
    assert (report.exit_code, report.tables[0].rows_now) == (0, 2)
    assert "changed by others" not in report.tables[0].metadata
    assert audit(estate.target).exit_code == 0


def test_a_changed_or_missing_segment_is_refused_with_the_way_out(estate: Estate) -> None:
    middle = segments(estate)[2]
    middle.write_bytes(middle.read_bytes() + b'{"event": "end", "at": 1}\n')
    with pytest.raises(ColdframeError, match="does not follow the segment before it; restore it or"):
        estate.migrate()
    middle.unlink()
    with pytest.raises(ColdframeError, match="segment 3 is missing; restore it or"):
        estate.migrate()
    # The way out.
    for path in segments(estate)[2:]:
        path.rename(estate.target.parent / path.name)
    report = estate.migrate()
    assert (report.exit_code, estate.values()) == (0, [0, 1, 2, 3, 4])


def test_the_journal_of_another_target_is_refused(estate: Estate, tmp_path: Path) -> None:
    other = Estate(tmp_path / "other")
    other.orc("t/1", {"a": [1]})
    other.migrate()
    shutil.rmtree(estate.target / "_coldframe/state")
    shutil.copytree(other.target / "_coldframe/state", estate.target / "_coldframe/state")
    with pytest.raises(UnsupportedError, match="is the journal of another target"):
        estate.migrate()
    assert "journal of another target" in audit(estate.target).verdict.text


def test_a_journal_without_a_chain_is_continued(estate: Estate) -> None:
    estate.unchain()
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (0, True)
    assert "older than its chain" in notes(report)
    # A segment without a digest may not follow one with a digest.
    last = segments(estate)[-1]
    last.with_name(f"{int(last.name[:12]) + 1:012d}.jsonl").write_text('{"event": "end", "at": 1}\n')
    with pytest.raises(ColdframeError, match="does not follow"):
        estate.migrate()


def test_the_chain_goes_on_after_a_compaction(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("coldframe.pipeline.state.journal.COMPACT", 1)
        estate.migrate()
    assert [path.name for path in segments(estate) if ".base." in path.name]
    estate.orc("t/k=1/9", {"a": [9]})
    assert (estate.migrate().exit_code, audit(estate.target).exit_code) == (0, 0)
    assert state_of(estate).chain.unchained == 0


@pytest.mark.parametrize(
    "entry",
    [
        {"final": "../elsewhere"},
        {"final": "/etc/passwd"},
        {"final": "_coldframe/state/000000000001.jsonl"},
        {"staged": "t/file"},
        {"staged": "_coldframe/staging/../../x"},
        {"table": "t/../.."},
        {"replaces": ["a/../../b"]},
    ],
)
def test_paths_that_leave_the_target_are_refused(entry: dict[str, Any]) -> None:
    part = {"staged": "_coldframe/staging/1/x", "final": "t/x", "rows": 1, "bytes": 1}
    given = {"key": "k", "source": "s", "table": "t", "replaces": [], "details": {"damage": []}}
    good = {**given, "parts": [part]}
    assert from_json({"event": "begin", "entry": good})
    for name in entry.keys() & part.keys():
        good["parts"] = [{**part, name: entry[name]}]
    with pytest.raises(ValueError, match="expected a path below"):
        from_json({"event": "begin", "entry": {**good, **{k: v for k, v in entry.items() if k in given}}})


def test_a_link_in_a_table_is_not_followed_after_a_kill(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    lines = (json.loads(line) for path in segments(estate) for line in path.read_text().splitlines())
    begun = next(line for line in lines if line["event"] == "begin")
    begun["entry"]["source"], begun["after"] = "t/k=2/x", state_of(estate).chain.digest
    begun["entry"]["parts"][0].update(staged="_coldframe/staging/none", final="t/k=2/precious", bytes=1)
    number = int(segments(estate)[-1].name[:12]) + 1
    place = estate.target / f"_coldframe/state/{number:012d}.jsonl"
    place.write_text(json.dumps(begun) + "\n")
    os.symlink(tmp_path / "outside", estate.target / "t/k=2")
    (tmp_path / "outside/precious").write_text("keep me")
    with pytest.raises(UnsupportedError, match="found a link"):
        estate.migrate()
    assert (tmp_path / "outside/precious").exists()


def test_a_journal_keeps_its_schemas(estate: Estate) -> None:
    """Entries of lost files have the columns of the files."""
    restore(estate)
    estate.orc("t/k=1/7", {"a": pa.array([7.5])})
    assert (estate.migrate().exit_code, estate.values()) == (0, [0, 1, 2, 3, 4, 7.5])
