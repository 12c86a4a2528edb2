"""What a migration says is safe to delete, and what it may not say so of."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate, scanning

from coldframe.cli import main
from coldframe.pipeline import convert, sinks
from coldframe.pipeline.audit import audit
from coldframe.pipeline.verdict import Partial


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def torn(path: Path) -> None:
    """Damage that no row survives."""
    content = bytearray(path.read_bytes())
    content[3:-20] = bytes(len(content) - 23)
    path.write_bytes(bytes(content))


# Quarantine is for damage of the source.


def quarantined(estate: Estate) -> bool:
    return (estate.target / "_coldframe/quarantine").exists()


def test_types_that_do_not_go_together_are_not_quarantined(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.orc("t/2", {"a": ["x"]})
    report = estate.migrate(on_error="quarantine")
    assert {file.status for file in report.tables[0].files} == {"failed"}
    assert (report.exit_code, report.safe_to_delete, quarantined(estate)) == (1, 0, False)


def test_a_healthy_file_that_is_decoded_wrong_is_not_quarantined(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.orc("t/1", {"a": [1, 2, 3]})
    monkeypatch.setattr(convert, "raw_scan", scanning(lambda _, batches: [one.slice(1) for one in batches]))
    report = estate.migrate(on_error="quarantine")
    assert (report.exit_code, report.statuses, quarantined(estate)) == (1, {"failed": 1}, False)


def test_a_full_disk_is_not_quarantined(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.orc("t/1", {"a": [1]})

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sinks.ParquetSink, "convert", full)
    report = estate.migrate(on_error="quarantine")
    assert (report.exit_code, report.statuses, quarantined(estate)) == (1, {"failed": 1}, False)


def test_a_written_file_that_cannot_be_read_back_is_not_quarantined(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.orc("t/1", {"a": [1]})
    write = sinks.ColdframeSink.convert

    def damaging(sink: Any, rows: Any, shape: Any, path: str, *given: Any) -> dict[str, Any]:
        found = write(sink, rows, shape, path, *given)
        torn(Path(path))
        return found

    monkeypatch.setattr(sinks.ColdframeSink, "convert", damaging)
    report = estate.migrate(to="orc", on_error="quarantine")
    assert (report.exit_code, report.statuses, quarantined(estate)) == (1, {"failed": 1}, False)
    assert "what was written" in str(report.failures[0].error)


def test_damage_is_quarantined_and_never_called_verified(estate: Estate) -> None:
    kept = estate.orc("t/1", {"a": [1]})
    torn(estate.orc("t/2", {"a": pa.array(range(1000))}))
    report = estate.migrate(on_error="quarantine")
    assert (report.exit_code, report.statuses) == (0, {"converted": 1, "quarantined": 1})
    assert isinstance(report.verdict, Partial)
    assert report.verdict.text == "PARTIAL: 1 damaged file gave no rows"
    assert (estate.target / "_coldframe/quarantine/t/2").exists()
    assert report.safe_to_delete == 1
    assert str(kept) in (estate.target / "_coldframe/safe-to-delete.txt").read_text()
    page = (estate.target / "_coldframe/report.html").read_text()
    assert 'class="good"' not in page
    assert "verified" not in page.lower()


# A target is what its own log says now.


def safe(estate: Estate) -> list[str]:
    """The sources that the last run listed."""
    return safe_lines((estate.target / "_coldframe/safe-to-delete.txt").read_text())


def safe_lines(text: str) -> list[str]:
    return [line.split("\t")[-1] for line in text.splitlines() if not line.startswith("#")]


def delete(estate: Estate, to: str, condition: str) -> None:
    if to == "delta":
        from deltalake import DeltaTable

        DeltaTable(estate.target / "t").delete(condition)
    else:
        from coldframe.pipeline.iceberg import open_catalog

        open_catalog(str(estate.target)).load_table(("migrated", "t")).delete(condition)


@pytest.mark.parametrize("to", ["delta", "iceberg"])
@pytest.mark.parametrize(("condition", "left"), [("a = 3", 19), ("a < 10", 10), ("a >= 0", 0)])
def test_rows_that_others_deleted_are_not_safe(estate: Estate, to: str, condition: str, left: int) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    for number in range(2):
        estate.orc(f"t/{number}", {"a": list(range(number * 10, number * 10 + 10))})
    assert estate.migrate(to=to, target_file_bytes=0).safe_to_delete == 2
    delete(estate, to, condition)
    found = audit(estate.target, deep=True)
    assert (found.exit_code, found.tables[0]["rows_now"], found.tables[0]["rows_verified"]) == (1, left, 20)
    report = estate.migrate(to=to, target_file_bytes=0)
    assert (report.exit_code, report.verified, report.tables[0].rows_now, safe(estate)) == (
        1,
        False,
        left,
        [],
    )
    assert f"{20 - left} row" in report.verdict.text
    # Who says that others write to it is told, and no more.
    known = estate.migrate(to=to, target_file_bytes=0, on_foreign_changes="append")
    assert (known.exit_code, known.verified, safe(estate)) == (0, False, [])


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_a_table_without_its_log_is_no_table(estate: Estate, to: str, capsys: Any) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    estate.orc("t/1", {"a": [1, 2]})
    assert estate.migrate(to=to).exit_code == 0
    assert main(["audit", str(estate.target)]) == 0
    if to == "delta":
        shutil.rmtree(estate.target / "t/_delta_log")
    else:
        (estate.target / "_coldframe/iceberg.db").unlink()
    assert main(["audit", str(estate.target)]) == 1
    assert "own log or metadata is gone" in capsys.readouterr().out


def test_an_audit_without_a_journal_has_nothing_to_compare_with(estate: Estate, capsys: Any) -> None:
    estate.orc("t/1", {"a": [1, 2]})
    assert estate.migrate().exit_code == 0
    shutil.rmtree(estate.target / "_coldframe/state")
    assert main(["audit", str(estate.target)]) == 1
    assert "FAILED: 1 journal is gone" in capsys.readouterr().out
