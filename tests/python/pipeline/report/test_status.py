"""`coldframe status`: how far a migration is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from estates import Estate

from coldframe.byte_size import size_text
from coldframe.cli import main
from coldframe.errors import NotFoundError
from coldframe.pipeline import status
from coldframe.pipeline.state.journal import Journal


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    for number in range(3):
        made.orc(f"t/p={number}/f", {"a": [number, number + 10]})
    made.orc("u/1", {"x": ["y"]})
    return made


def test_an_ended_run_has_the_verdicts_of_its_report(
    estate: Estate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate.migrate()
    now = status(estate.target)
    assert (now.runs, now.is_open, now.parts) == (1, False, 0)
    assert [(t.path, t.state, t.sources, t.waiting, t.rows) for t in now.tables] == [
        ("t", "done", 3, 0, 6),
        ("u", "done", 1, 0, 1),
    ]
    for table in now.tables:
        files = [path for path in (estate.source / table.path).rglob("*") if path.is_file()]
        assert table.bytes_in == sum(path.stat().st_size for path in files)
        assert table.bytes_out == sum(path.stat().st_size for path in estate.files(table.path))
    metrics = tmp_path / "coldframe.prom"
    assert main(["status", str(estate.target), "--json", "--metrics", str(metrics)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(now.to_json()))
    lines = metrics.read_text().splitlines()
    assert "coldframe_run_open 0" in lines
    assert 'coldframe_table_rows{table="t"} 6' in lines
    assert 'coldframe_table_state{table="u",state="done"} 1' in lines
    assert all(line.startswith(("# HELP coldframe_", "# TYPE coldframe_", "coldframe_")) for line in lines)
    assert main(["status", str(estate.target)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1].split("\t")[:5] == ["t", "done", "3", "0", "0"]
    assert out[-1].endswith("; run 1 ended")


def test_a_run_that_holds_the_lock_can_be_asked(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    estate.migrate()
    with Journal(str(estate.target)):
        now = status(estate.target)
        assert (now.runs, now.is_open) == (2, True)
        assert [(t.path, t.state, t.sources) for t in now.tables] == [
            ("t", "converted", 3),
            ("u", "converted", 1),
        ]
        assert main(["status", str(estate.target)]) == 0
    assert "; run 2 goes on, or was stopped: its journal was last written " in capsys.readouterr().out


def test_a_failed_table_gives_exit_code_1(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    path = estate.orc("v/1", {"x": [1]})
    path.write_bytes(path.read_bytes()[:-10])
    estate.migrate()
    assert main(["status", str(estate.target), "--json"]) == 1
    tables = {table["path"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert {path: table["state"] for path, table in tables.items()}["t"] == "done"
    assert any(table["state"] == "failed" and table["text"] for table in tables.values())


def test_a_folder_without_a_migration_is_refused(estate: Estate) -> None:
    with pytest.raises(NotFoundError, match="no migration has been here"):
        status(estate.source)


def test_a_summary_has_what_changed_since_the_last_run(estate: Estate, tmp_path: Path) -> None:
    file = tmp_path / "summary.txt"

    def summary(code: int) -> list[str]:
        command = ["migrate", str(estate.source), str(estate.target), "--master", "in-process"]
        assert main([*command, "--summary", str(file)]) == code
        lines = file.read_text().splitlines()[1:]
        # The time that a run takes is not the same twice.
        return [line.rpartition(", ")[0] if line.startswith("tables read") else line for line in lines]

    assert summary(0) == [
        "verdict: verified",
        "rows in the target: 7",
        "sources in safe-to-delete.txt: 4",
        f"tables read in this run: 2, {size_of(estate)}",
        "new tables: 2",
        "  t: verified",
        "  u: verified",
    ]
    assert summary(0)[:4] == [
        "verdict: verified (as before)",
        "rows in the target: 7 (as before)",
        "sources in safe-to-delete.txt: 4 (as before)",
        "tables read in this run: 0, 0 B",
    ]
    estate.orc("v/1", {"x": ["z"]})
    (estate.source / "u/1").unlink()
    text = "\n".join(summary(1))
    assert "verdict: verified -> FAILED: 1 source is gone since an earlier run" in text
    assert "new tables: 1\n  v: verified" in text
    assert "worse: 1\n  u: verified -> FAILED: 1 source is gone since an earlier run" in text
    assert "not verified, as before: 1\n  u: FAILED" in "\n".join(summary(1))
    estate.orc("u/1", {"x": ["y"]})
    assert "better: 1\n  u: FAILED" in "\n".join(summary(0))


def size_of(estate: Estate) -> str:
    return size_text(sum(path.stat().st_size for path in estate.source.rglob("*") if path.is_file()))
