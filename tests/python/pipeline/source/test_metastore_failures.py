"""Hive's own metastore fails while it is the source: errors come in time, and a later run goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hive_estate import HiveEstate, mixed
from relays import How, Relay
from servers import HiveMetastore

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import ColdframeError
from coldframe.hive import connection
from coldframe.pipeline import dry_run, migrate
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.scheduling import InProcess

pytest.importorskip("thrift")


@pytest.fixture
def answers(hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path) -> int:
    """The number of answers that reading the whole estate takes."""
    mixed(hive_estate)
    with Relay(hive_server.port) as relay:
        dry_run(relay.url, tmp_path / "nowhere")
        return relay.answers


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_failure_in_the_middle_writes_nothing(
    hive_server: HiveMetastore, answers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: How
) -> None:
    assert answers > 4
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.5)
    message = "it closed the connection" if how == "dies" else "no answer for 0 s"
    for at in range(answers):
        began = time.monotonic()
        with (
            Relay(hive_server.port, how, at) as relay,
            pytest.raises(ColdframeError, match=f"metastore {relay.url}: get_.*: {message}"),
        ):
            migrate(InProcess(), relay.url, tmp_path / "dst")
        assert time.monotonic() - began < 30
        # No file is written before all definitions are known.
        assert not (tmp_path / "dst").exists()
    report = migrate(InProcess(), hive_server.url, tmp_path / "dst")
    assert (report.exit_code, report.rows) == (0, 6), summary(report)
    with Relay(hive_server.port, how, answers - 1) as relay, pytest.raises(ColdframeError, match=message):
        migrate(InProcess(), relay.url, tmp_path / "dst")
    # The metastore's address may differ; the tables are the same.
    with Relay(hive_server.port) as relay:
        again = migrate(InProcess(), relay.url, tmp_path / "dst")
    assert (again.exit_code, again.rows) == (0, 6), summary(again)


def test_the_next_address_continues(hive_server: HiveMetastore, answers: int, tmp_path: Path) -> None:
    for at in range(answers):
        with Relay(hive_server.port, "dies", at) as relay:
            report = migrate(InProcess(), f"{relay.url},{hive_server.url}", tmp_path / str(at))
        assert (report.exit_code, report.rows) == (0, 6), summary(report)


def test_answers_of_a_slow_metastore_are_awaited(
    hive_server: HiveMetastore, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 5)
    with Relay(hive_server.port, "trickles") as relay:
        table = cf.hive_table(f"{hive_server.url}/cold.sales")
        # The relay serves a single client: only the definition passes through it.
        assert cf.hive_table(f"{relay.url}/cold.sales").schema == table.schema


def test_commands_report_the_failure(
    hive_server: HiveMetastore, answers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("tables", "migrate", "count"):
        with Relay(hive_server.port, "dies", 0) as relay:
            source = f"{relay.url}/cold.sales" if command == "count" else relay.url
            more = [str(tmp_path / "dst"), "--master", "in-process"] if command == "migrate" else []
            assert main([command, source, *more]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), err
        assert f"metastore {relay.url}: " in err
