"""`coldframe delete`: what it deletes, what stops it, and that no row is lost by what follows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from estates import Estate

from coldframe._coldframe import tables
from coldframe.cli import main
from coldframe.errors import ColdframeError, SchemaError, UnsupportedError
from coldframe.pipeline import audit, delete
from coldframe.pipeline.sink.destination import open_destination
from coldframe.pipeline.source.removal import Removal
from coldframe.pipeline.state.journal import Journal, State, read_state

COUNT = 3


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return filled(tmp_path)


def filled(root: Path) -> Estate:
    estate = Estate(root)
    for number in range(COUNT):
        estate.orc(f"t/k={number}/000000_0", {"a": [number]})
    assert estate.migrate().safe_to_delete == COUNT
    return estate


def list_of(estate: Estate) -> str:
    return str(estate.target / "_coldframe/safe-to-delete.txt")


def sources(estate: Estate) -> list[str]:
    return sorted(str(path.relative_to(estate.source)) for path in estate.source.rglob("*") if path.is_file())


def state_of(estate: Estate) -> State:
    return read_state(open_destination(str(estate.target)))[0]


def run(estate: Estate, **options: Any) -> Any:
    return estate.migrate(**{"archived_rows": "ask", **options})


# What it does.


def test_the_sources_are_deleted_with_receipts(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delete", "--dry-run", list_of(estate)]) == 0
    assert f"would be deleted: {estate.source}/t/k=0/000000_0" in capsys.readouterr().out
    assert len(sources(estate)) == COUNT
    assert main(["delete", list_of(estate)]) == 0
    assert f"{COUNT} of {COUNT} sources deleted" in capsys.readouterr().out
    assert (sources(estate), estate.values()) == ([], list(range(COUNT)))
    entries = list(state_of(estate).done.each())
    receipts = [entry.receipt for entry in entries]
    assert sorted(entry.name for entry in entries) == [f"t/k={n}/000000_0" for n in range(COUNT)]
    assert {receipt.fate for receipt in receipts if receipt} == {"deleted"}
    assert all(r and r.digest.startswith("whole:") and "@" in r.by and r.at for r in receipts)
    # A second call finds nothing to do.
    assert main(["delete", "--json", list_of(estate)]) == 0
    done = json.loads(capsys.readouterr().out)
    assert [source["earlier"] for source in done["sources"]] == [True] * COUNT
    assert audit(estate.target, deep=True).exit_code == 0


def test_the_sources_are_moved(estate: Estate, tmp_path: Path) -> None:
    trash = tmp_path / "trash"
    (trash / "t/k=0").mkdir(parents=True)
    (trash / "t/k=0/000000_0").write_bytes(b"of an earlier year")
    result = delete(list_of(estate), to=trash)
    assert (result.exit_code, sources(estate)) == (0, [])
    assert (trash / "t/k=0/000000_0").read_bytes() == b"of an earlier year"
    assert len([path for path in trash.rglob("*") if path.is_file()]) == COUNT + 1
    for item in result.items:
        assert item.fate == "moved"
        os.makedirs(os.path.dirname(item.line.path), exist_ok=True)
        shutil.move(item.to, item.line.path)
    # If somebody brings the sources back, no row is converted twice.
    report = run(estate)
    assert (report.exit_code, report.safe_to_delete, estate.values()) == (0, COUNT, list(range(COUNT)))
    assert [entry.receipt for entry in state_of(estate).done.each()] == [None] * COUNT


def test_a_move_to_another_store_is_a_copy(estate: Estate, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(Removal, "_rename", lambda *_: False)
    content = (estate.source / "t/k=1/000000_0").read_bytes()
    assert delete(list_of(estate), to=tmp_path / "trash").exit_code == 0
    assert (sources(estate), (tmp_path / "trash/t/k=1/000000_0").read_bytes()) == ([], content)


@pytest.mark.parametrize("options", [{}, {"on_vanished": "keep"}, {"on_vanished": "remove"}, {"fresh": True}])
def test_rows_of_deleted_sources_stay(estate: Estate, options: dict[str, Any]) -> None:
    delete(list_of(estate))
    shutil.rmtree(estate.source / "t")
    (estate.source / "t").mkdir()
    for _ in range(2):
        report = run(estate, most_vanished=1, dropped=["*"], **options)
        assert (report.exit_code, estate.values()) == (0, list(range(COUNT)))
        assert "3 sources were deleted by coldframe delete" in str(
            [note.text for note in report.verdict.notes]
        )
    # Hive uses the name again.
    estate.orc("t/k=0/000000_0", {"a": [100]})
    report = run(estate, **options)
    assert (report.exit_code, estate.values()) == (0, [*range(COUNT), 100])
    assert estate.safe() == [str(estate.source / "t/k=0/000000_0")]
    # The new file is deleted as well, and a third file comes.
    assert delete(list_of(estate)).exit_code == 0
    estate.orc("t/k=0/000000_0", {"a": [101]})
    assert (run(estate, **options).exit_code, estate.values()) == (0, [*range(COUNT), 100, 101])


def test_a_changed_schema_takes_no_row_out(estate: Estate) -> None:
    delete(list_of(estate))
    estate.orc("t/k=7/f", {"a": ["text"]})
    assert (run(estate, on_vanished="remove", fresh=True).exit_code, estate.values()) == (
        1,
        list(range(COUNT)),
    )


def test_the_user_may_name_the_rows(estate: Estate) -> None:
    delete(list_of(estate))
    estate.orc("t/k=9/f", {"a": [9]})
    report = run(estate, on_vanished="remove", archived_rows="drop", dropped=["t"])
    assert (report.exit_code, estate.values()) == (0, [9])


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_rows_of_deleted_sources_stay_in_tables_with_a_log(tmp_path: Path, to: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    estate = Estate(tmp_path)
    for number in range(3):
        estate.orc(f"t/{number}", {"a": [number]})
    estate.migrate(to=to)
    assert delete(list_of(estate)).exit_code == 0
    estate.orc("t/0", {"a": [10]})
    report = run(estate, to=to, on_vanished="remove", fresh=True)
    assert (report.exit_code, report.tables[0].rows_now) == (0, 4)
    assert audit(estate.target).exit_code == 0


def test_receipts_survive_a_compacted_journal(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    delete(list_of(estate))
    monkeypatch.setattr("coldframe.pipeline.state.journal.COMPACT", 1)
    run(estate)
    assert list((estate.target / "_coldframe/state").glob("*.base.jsonl"))
    assert all(entry.receipt for entry in state_of(estate).done.each())
    assert audit(estate.target).exit_code == 0


# Directories.

KUDU = Path(__file__).resolve().parents[3] / "data" / "kudu" / "files"


def kudu(root: Path) -> Estate:
    estate = Estate(root)
    shutil.copytree(KUDU / "file_blocks", estate.source / "kudu")
    assert len(tables(str(estate.source / "kudu"), format="kudu")) > 1
    (estate.source / "tables.toml").write_text('[tables.all]\npath = "kudu"\nwal = false\n')
    assert estate.migrate(leave_behind=["unflushed-edits"]).safe_to_delete == 1
    return estate


def test_a_directory_of_several_tables_is_deleted_as_a_whole(tmp_path: Path) -> None:
    estate = kudu(tmp_path)
    rows = audit(estate.target).rows
    result = delete(list_of(estate))
    assert (result.exit_code, os.listdir(estate.source)) == (0, ["tables.toml"])
    assert all(entry.receipt for entry in state_of(estate).done.each())
    assert run(estate, on_vanished="remove").exit_code == 0
    assert audit(estate.target).rows == rows


def test_a_half_deleted_directory_is_not_converted_and_can_be_finished(tmp_path: Path) -> None:
    """On an object store, the files go one by one."""
    estate = kudu(tmp_path)
    rows = audit(estate.target).rows

    def killed(removal: Removal) -> str:
        files = sorted(Path(removal.path).rglob("*"), key=lambda path: -len(path.parts))
        next(path for path in files if path.is_file()).unlink()
        raise Killed

    with mock.patch.object(Removal, "run", killed), pytest.raises(Killed):
        delete(list_of(estate))
    report = run(estate, leave_behind=["unflushed-edits"])
    assert (report.exit_code, audit(estate.target).rows) == (1, rows)
    assert "its deletion was begun" in str([file.error for file in report.failures])


# What stops it.


def test_a_changed_source_stops_it(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    estate.orc("t/k=1/000000_0", {"a": [7]})
    assert main(["delete", list_of(estate)]) == 1
    assert "NOT DELETED" in capsys.readouterr().out
    assert len(sources(estate)) == COUNT


def test_a_source_that_changes_meanwhile_stays(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Journal.begin_deleting

    def changing(journal: Journal, some: Any) -> None:
        begin(journal, some)
        estate.orc("t/k=2/000000_0", {"a": [7]})

    monkeypatch.setattr(Journal, "begin_deleting", changing)
    assert delete(list_of(estate)).exit_code == 1
    assert sources(estate) == ["t/k=2/000000_0"]
    monkeypatch.undo()
    # Its earlier rows were listed: they stay until the user decides.
    assert (run(estate).exit_code, estate.values()) == (1, list(range(COUNT)))


@pytest.mark.parametrize("how", ["other bytes", "gone", "a row deleted"])
def test_a_target_that_is_not_as_it_was_verified_stops_it(tmp_path: Path, how: str) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/1", {"a": [1, 2]})
    to = "delta" if how == "a row deleted" else "parquet"
    if to == "delta":
        pytest.importorskip("deltalake")
    estate.migrate(to=to)
    (path,) = estate.files("t")
    if how == "gone":
        path.unlink()
    elif how == "other bytes":
        about, content = path.stat(), bytearray(path.read_bytes())
        content[20] ^= 1
        path.write_bytes(bytes(content))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    else:
        from deltalake import DeltaTable

        DeltaTable(estate.target / "t").delete("a = 1")
    result = delete(list_of(estate))
    assert (result.exit_code, len(result.faults), sources(estate)) == (1, 1, ["t/1"])


def test_a_list_of_another_target_stops_it(estate: Estate, tmp_path: Path) -> None:
    other = filled(tmp_path / "other")
    text = Path(list_of(other)).read_text().replace(str(other.target), str(estate.target))
    (tmp_path / "list").write_text(text)
    with pytest.raises(SchemaError, match="the list is of another target"):
        delete(tmp_path / "list")
    assert len(sources(other)) == COUNT


def test_a_truncated_list_stops_it(estate: Estate, tmp_path: Path) -> None:
    text = Path(list_of(estate)).read_text()
    (tmp_path / "list").write_text(text[: text.index("# end")])
    assert (delete(tmp_path / "list").exit_code, len(sources(estate))) == (1, COUNT)


def test_sources_that_are_not_mounted_stop_it(estate: Estate) -> None:
    os.rename(estate.source, estate.source.with_name("elsewhere"))
    result = delete(list_of(estate))
    assert result.exit_code == 1
    assert "is it mounted" in result.items[0].why
    os.rename(estate.source.with_name("elsewhere"), estate.source)
    os.unlink(estate.source / "t/k=0/000000_0")
    assert [item.fate for item in delete(list_of(estate)).items].count("gone") == 1


def test_a_trash_that_a_run_would_read_is_refused(estate: Estate) -> None:
    for place in (estate.source / "trash", estate.target / "trash"):
        with pytest.raises(UnsupportedError, match="which a run reads"):
            delete(list_of(estate), to=place)


def test_a_permission_stops_it_with_exit_code_3(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Any) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Removal, "run", refused)
        assert main(["delete", list_of(estate)]) == 3
    assert main(["delete", list_of(estate)]) == 0
    assert sources(estate) == []


# Kills.


class Killed(BaseException):
    """A kill, raised inside the process."""


def dying(call: Callable[..., Any], before: bool, left: list[int]) -> Callable[..., Any]:
    def wrapped(*given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0 and before:
            raise Killed
        answer = call(*given, **named)
        if left[0] < 0:
            raise Killed
        return answer

    return wrapped


@pytest.mark.parametrize(
    ("between", "to"), [("nothing", None), ("a run", "trash"), ("a name used again", None)]
)
def test_killed_anywhere_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str, to: str | None
) -> None:
    filled(tmp_path / "template")
    monkeypatch.setattr("coldframe.pipeline.report.deletion.BATCH", 2)
    for before in (False, True):
        for step in range(0, 40, 1 if before else 2):
            root = tmp_path / f"{before}-{step}"
            shutil.copytree(tmp_path / "template", root, copy_function=shutil.copy2)
            text = Path(root / "dst/_coldframe/safe-to-delete.txt").read_text()
            place = root / "dst/_coldframe/safe-to-delete.txt"
            place.write_text(text.replace(str(tmp_path / "template"), str(root)))
            estate, trash = Estate(root), None if to is None else root / to
            left = [step]
            killed = False
            with monkeypatch.context() as patch:
                patch.setattr(Removal, "run", dying(Removal.run, before, left))
                patch.setattr(Journal, "_append", dying(Journal._append, before, left))
                try:
                    delete(place, to=trash)
                except Killed:
                    killed = True
            shutil.copy(place, root / "list")
            again = 0
            if between != "nothing":
                name = "t/k=0/000000_0"
                again = int(between == "a name used again" and not (estate.source / name).exists())
                if again:
                    estate.orc(name, {"a": [100]})
                report = run(estate, on_vanished="keep")
                assert report.exit_code == 0, (step, report.verdict.text)
            result = delete(root / "list", to=trash)
            assert result.exit_code == 0, (step, result.to_json())
            assert len(sources(estate)) == again
            assert run(estate, on_vanished="remove").exit_code == 0, step
            assert estate.values() == [*range(COUNT), *([100] * again)], step
            if trash is not None:
                assert len([path for path in trash.rglob("*") if path.is_file()]) == COUNT
            shutil.rmtree(root)
            if not killed:
                assert step > 4
                break


def test_a_driver_that_was_replaced_deletes_nothing(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "_create", lambda *_: False)
    with pytest.raises(ColdframeError, match="another driver"):
        delete(list_of(estate))
    assert len(sources(estate)) == COUNT
