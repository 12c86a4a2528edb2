"""What a migration says is safe to delete, and what it may not say so of."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate, scanning

from coldframe.pipeline import convert, sinks
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
