"""Splits of an HBase root: tasks do not reopen the whole table, and do not read logs twice."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate
from hbase_roots import OTHER_LOG, ROOT, add_table

import coldframe as cf
from coldframe.pipeline.plan.plan_files import PlanTask
from coldframe.pipeline.source import directory_logs, identity
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.work.convert import Task

AS_OF = 1_700_000_000_000
CELL = ("row", "family", "qualifier", "timestamp", "value")
TABLES = """
[tables.shop]
path = "hbase"
table = "shop:orders"
view = "versions"
as_of = 1700000000000

[tables.others]
path = "hbase"
table = "shop:others"
view = "versions"
as_of = 1700000000000
"""


class Killed(BaseException):
    """Kills the driver at a point that a test chooses."""


def estate_of(folder: Path) -> Estate:
    """An HBase root with two tables."""
    estate = Estate(folder)
    shutil.copytree(ROOT, estate.source / "hbase")
    add_table(estate.source / "hbase")
    (estate.source / "tables.toml").write_text(TABLES)
    return estate


def assert_has_all(estate: Estate) -> None:
    for name, table in [("shop", "shop:orders"), ("others", "shop:others")]:
        options: dict[str, Any] = {"table": table, "view": "versions", "as_of": AS_OF}
        expected = cf.open(estate.source / "hbase", format="hbase", **options).read(columns=list(CELL))
        written = estate.read(f"hbase/{name}").select(CELL).cast(expected.schema)
        assert written.sort_by([(column, "ascending") for column in CELL[:4]]) == expected.sort_by(
            [(column, "ascending") for column in CELL[:4]]
        )


def test_pickled_scan_splits_are_read() -> None:
    scan = cf.scan(ROOT, table="shop:orders")
    sent = [pickle.loads(pickle.dumps(split)) for split in scan.splits(1)]
    assert len(sent) > 1
    read = pa.concat_tables(split.to_batches().read_all() for split in sent)
    assert read == scan.to_table()


def test_pickled_split_reads_only_its_region(tmp_path: Path) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    file = cf.open(root, table="shop:orders", as_of=AS_OF)
    splits = file.splits(1)
    assert len(splits) > 1
    sent = [pickle.dumps(split) for split in splits]
    # A reader that lists regions would now find no regions.
    for info in root.rglob(".regioninfo"):
        info.unlink()
    batches = [batch for pickled in sent for batch in pickle.loads(pickled).to_batches()]
    assert pa.Table.from_batches(batches) == file.read()
    with pytest.raises(cf.ColdframeError):
        cf.open(root, table="shop:orders", as_of=AS_OF).read()


def test_split_opens_its_whole_source() -> None:
    split = cf.open(ROOT, table="shop:orders", as_of=AS_OF).splits(1)[0]
    assert split.open().read().num_rows > sum(batch.num_rows for batch in split.to_batches())
    with pytest.raises(ValueError, match="opened for one of its splits"):
        split.open_for_this().read()


def test_a_run_reads_the_logs_once_for_all_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estate = estate_of(tmp_path)
    asked: list[str] = []
    given: list[int] = []
    read, run = directory_logs.shared_of_tables, PlanTask.run

    def counting(path: str, **options: Any) -> Any:
        asked.append(path)
        return read(path, **options)

    def planning(self: PlanTask) -> Any:
        given.append(sum(len(piece) for _, piece in self.recorded))
        return run(self)

    monkeypatch.setattr(directory_logs, "shared_of_tables", counting)
    monkeypatch.setattr(PlanTask, "run", planning)
    report = estate.migrate(split_bytes=1, leave_behind=["snapshots"])
    assert (report.exit_code, report.verified) == (0, True)
    assert len(asked) == 1
    assert len(given) == 2
    assert all(given)
    assert_has_all(estate)


def test_directory_is_checked_after_its_last_part_not_per_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = estate_of(tmp_path)
    after: list[int] = []
    done: list[int] = []
    real, run = identity.identity_of, Task.run

    def looking(*given: Any) -> str:
        after.append(len(done))
        return real(*given)

    def counting(self: Task) -> Any:
        outcome = run(self)
        done.append(self.number)
        return outcome

    monkeypatch.setattr(identity, "identity_of", looking)
    monkeypatch.setattr(Task, "run", counting)
    assert estate.migrate(split_bytes=1, leave_behind=["snapshots"]).exit_code == 0
    assert len(done) > 4
    # Once per table, and at the end for the safe list.
    assert len(after) <= 3
    assert after[-1] == len(done)


@pytest.mark.parametrize("when", ["first", "last"])
def test_directory_that_changes_during_the_read_is_not_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    estate = estate_of(tmp_path)
    log = estate.source / "hbase" / OTHER_LOG
    run, done = Task.run, []

    def changing(self: Task) -> Any:
        outcome = run(self)
        done.append(self.number)
        if len(done) == (1 if when == "first" else 6):
            log.write_bytes(log.read_bytes())
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(Task, "run", changing)
        report = estate.migrate(split_bytes=1, leave_behind=["snapshots"])
    assert len(done) == 6
    changed = {table.name for table in report.tables if [file.status for file in table.files] == ["changed"]}
    assert "shop" in changed
    # If the last part changes, the other table may have been checked already.
    assert when == "last" or "others" in changed
    assert report.exit_code == 1
    assert estate.safe() == []
    assert not (estate.target / "_coldframe/staging").exists()
    report = estate.migrate(split_bytes=1, leave_behind=["snapshots"])
    assert (report.exit_code, report.verified) == (0, True)
    assert_has_all(estate)


def test_parts_of_a_changed_directory_are_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estate = estate_of(tmp_path)
    converted = kill_after_two_parts(estate, monkeypatch)
    log = estate.source / "hbase" / OTHER_LOG
    log.write_bytes(log.read_bytes())
    report = estate.migrate(split_bytes=1, leave_behind=["snapshots"])
    assert (report.exit_code, report.verified) == (0, True)
    assert len(converted) == 2 + 6
    assert_has_all(estate)


def test_killed_run_resumes_the_parts_of_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estate = estate_of(tmp_path)
    converted = kill_after_two_parts(estate, monkeypatch)
    report = estate.migrate(split_bytes=1, leave_behind=["snapshots"])
    assert (report.exit_code, report.verified) == (0, True)
    assert len(converted) == 6
    assert_has_all(estate)


def kill_after_two_parts(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kills a run after two parts. Returns the numbers of the parts converted so far and later, in order."""
    converted: list[int] = []
    real, keep = Task.run, Journal.keep_units

    def counting(self: Task) -> Any:
        converted.append(self.number)
        return real(self)

    def killing(self: Journal, units: Any) -> None:
        keep(self, units)
        if len(converted) == 2:
            raise Killed

    monkeypatch.setattr("coldframe.pipeline.work.committing.BATCH_SECONDS", -1.0)
    monkeypatch.setattr(Task, "run", counting)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep_units", killing)
        with pytest.raises(Killed):
            estate.migrate(split_bytes=1, leave_behind=["snapshots"])
    assert len(converted) == 2
    return converted


@pytest.mark.parametrize("view", ["latest", "raw"])
def test_splits_of_a_snapshot_read_only_what_it_lists(tmp_path: Path, view: str) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    manifest = root / ".hbase-snapshot" / "kept" / "data.manifest"
    data = manifest.read_bytes()
    # The folder of the region has newer files, too.
    for name in (b"21cdcebf6552463b8737ce25c64084fc", b"5ee7852af3a74beb83ff7317d274434e"):
        manifest.write_bytes(data.replace(name, b"x" + name[1:]))
        file = cf.open(root, snapshot="kept", as_of=AS_OF, view=view)
        salvaged = file.read(on_error="skip")
        assert file.damage
        for size in (1, 1 << 20):
            splits = [pickle.loads(pickle.dumps(split)) for split in file.splits(size)]
            parts = [split.to_batches(on_error="skip").read_all() for split in splits]
            assert pa.concat_tables(parts).equals(salvaged)
