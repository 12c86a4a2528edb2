"""Rows of sources that were listed as safe to delete stay; a replaced file of the target is seen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe.pipeline.sink.destination import open_destination
from coldframe.pipeline.state.journal import read_state


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    estate = Estate(tmp_path)
    for number in range(4):
        estate.orc(f"t/k={number}/000000_0", {"a": [number]})
    return estate


def delete_as_listed(estate: Estate, count: int) -> None:
    for path in sorted(estate.safe())[:count]:
        os.unlink(path)


def test_rows_of_deleted_sources_stay(estate: Estate) -> None:
    assert estate.migrate().safe_to_delete == 4
    delete_as_listed(estate, 2)
    report = estate.migrate(on_vanished="remove", archived_rows="ask")
    assert (report.exit_code, estate.values()) == (1, [0, 1, 2, 3])
    assert "listed as safe to delete" in str(report.tables[0].error)
    # New files are taken once the user has decided.
    estate.orc("t/k=9/000000_0", {"a": [9]})
    assert estate.migrate(on_vanished="remove", archived_rows="ask").exit_code == 1
    assert estate.values() == [0, 1, 2, 3]
    report = estate.migrate(on_vanished="remove", archived_rows="keep")
    assert (report.exit_code, estate.values()) == (0, [0, 1, 2, 3, 9])
    report = estate.migrate(on_vanished="remove", archived_rows="drop")
    assert (report.exit_code, estate.values()) == (0, [2, 3, 9])


@pytest.mark.parametrize("on_vanished", ["fail", "keep", "remove"])
def test_another_file_under_the_name_of_a_deleted_source(estate: Estate, on_vanished: str) -> None:
    estate.migrate()
    delete_as_listed(estate, 1)
    estate.orc("t/k=0/000000_0", {"a": [100]})
    report = estate.migrate(on_vanished=on_vanished, archived_rows="ask")
    assert (report.exit_code, estate.values()) == (1, [0, 1, 2, 3])
    assert str(estate.source / "t/k=0/000000_0") not in estate.safe()
    report = estate.migrate(on_vanished=on_vanished, archived_rows="drop")
    assert (report.exit_code, estate.values()) == (0, [1, 2, 3, 100])


@pytest.mark.parametrize(
    "again", [("t/k=0/000000_0",), ("t/k=0/000000_0", "t/k=3/000000_0"), ("t/000000_0",)]
)
@pytest.mark.parametrize("on_vanished", ["fail", "keep", "remove"])
def test_a_table_that_was_removed_and_made_again(
    estate: Estate, on_vanished: str, again: tuple[str, ...]
) -> None:
    assert estate.migrate().safe_to_delete == 4
    shutil.rmtree(estate.source / "t")
    for name in again:
        estate.orc(name, {"a": [100]})
    report = estate.migrate(on_vanished=on_vanished, archived_rows="ask")
    assert report.exit_code == 1
    assert set(estate.values()) >= {0, 1, 2, 3}
    assert not set(estate.safe()) & {str(estate.source / name) for name in again[:1]}


def write_delta(folder: Path, write: int, values: list[int], suffix: str = "") -> None:
    """Rows that a write has inserted into a transactional table."""
    count = len(values)
    columns = {
        "operation": pa.array([0] * count, pa.int32()),
        "originalTransaction": pa.array([write] * count, pa.int64()),
        "bucket": pa.array([1 << 29] * count, pa.int32()),
        "rowId": pa.array(range(count), pa.int64()),
        "currentTransaction": pa.array([write] * count, pa.int64()),
        "row": pa.array([{"a": value} for value in values], pa.struct({"a": pa.int64()})),
    }
    path = folder / f"delta_{write:07}_{write:07}{suffix or '_0000'}" / "bucket_00000"
    path.parent.mkdir(parents=True)
    cf.write(pa.table(columns), path, format="orc")


@pytest.mark.parametrize("on_vanished", ["fail", "keep", "remove"])
def test_a_transactional_table_that_was_removed_and_made_again(tmp_path: Path, on_vanished: str) -> None:
    estate = Estate(tmp_path)
    table = estate.source / "t"
    write_delta(table, 1, [1, 2])
    assert estate.migrate().safe_to_delete == 1
    # Another write into the directory that was listed is no reason to stop.
    write_delta(table, 2, [3])
    assert estate.migrate(on_vanished=on_vanished, archived_rows="ask").exit_code == 0
    assert (estate.values(), len(estate.safe())) == ([1, 2, 3], 1)
    shutil.rmtree(table)
    write_delta(table, 3, [4])
    report = estate.migrate(on_vanished=on_vanished, archived_rows="ask")
    assert (report.exit_code, estate.values(), estate.safe()) == (1, [1, 2, 3], [])
    report = estate.migrate(on_vanished=on_vanished, archived_rows="drop")
    assert (report.exit_code, estate.values()) == (0, [4])


def test_a_compaction_replaces_the_files_of_a_listed_table(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    table = estate.source / "t"
    write_delta(table, 1, [1, 2])
    estate.migrate()
    shutil.rmtree(table)
    write_delta(table, 1, [1, 2], "_v0000009")
    assert estate.migrate(archived_rows="ask").exit_code == 0
    assert (estate.values(), len(estate.safe())) == ([1, 2], 1)


def test_a_touched_source_is_the_same(estate: Estate) -> None:
    estate.migrate()
    os.utime(estate.source / "t/k=0/000000_0", (1, 1))
    assert estate.migrate(archived_rows="ask").exit_code == 0
    assert estate.migrate(archived_rows="ask", fresh=True).exit_code == 0
    assert estate.values() == [0, 1, 2, 3]


def test_a_source_that_was_never_listed_may_change(estate: Estate) -> None:
    estate.migrate(verify=False)
    estate.orc("t/k=0/000000_0", {"a": [100]})
    estate.migrate(archived_rows="ask")
    assert estate.values() == [1, 2, 3, 100]


def test_the_journal_knows_what_was_listed(estate: Estate) -> None:
    estate.migrate()
    for _ in range(2):
        state, _ = read_state(open_destination(str(estate.target)))
        assert all(entry.listed for entry in state.done.each())
        assert all(part.stored for entry in state.done.each() for part in entry.parts)
        estate.migrate()


@pytest.mark.parametrize("to", ["parquet", "orc"])
def test_a_replaced_file_of_the_target_is_seen(estate: Estate, to: str) -> None:
    estate.migrate(to=to)
    path = min((estate.target / "t").rglob(f"*.{to}"))
    content = path.read_bytes()
    path.write_bytes(os.urandom(len(content)))
    report = estate.migrate(to=to)
    assert (report.exit_code, estate.safe()) == (1, [])
    assert "not as" in report.verdict.text
    # The file was made again.
    assert estate.migrate(to=to).exit_code == 0
    assert len(estate.safe()) == 4


def test_a_replaced_file_whose_source_is_gone_is_a_failure(estate: Estate) -> None:
    estate.migrate(target_file_bytes=0)
    path = min((estate.target / "t").rglob("*.parquet"))
    delete_as_listed(estate, 4)
    path.write_bytes(os.urandom(path.stat().st_size))
    report = estate.migrate(on_vanished="keep", target_file_bytes=0)
    assert report.exit_code == 1
    assert path.name in str(report.tables[0].missing)


def test_a_touched_file_of_the_target_is_read_and_believed(estate: Estate) -> None:
    estate.migrate()
    for path in (estate.target / "t").rglob("*.parquet"):
        os.utime(path, (1, 1))
    report = estate.migrate()
    assert (report.exit_code, len(estate.safe())) == (0, 4)
