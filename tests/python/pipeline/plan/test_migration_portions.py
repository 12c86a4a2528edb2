"""Runs over a part of the source keep whole tables correct, also when files come and go."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.pipeline import dry_run
from coldframe.pipeline.options import Options


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def rows(estate: Estate, target: str, table: str = "t", column: str = "a") -> list[Any]:
    """The values that the target's own engine reads."""
    if target == "delta":
        delta = pytest.importorskip("deltalake")
        if not (estate.target / table / "_delta_log").exists():
            return []
        content = pa.table(delta.DeltaTable(estate.target / table).to_pyarrow_table())
    elif target == "iceberg":
        pytest.importorskip("pyiceberg")
        from coldframe.pipeline.sink.iceberg import open_catalog

        catalog = open_catalog(str(estate.target))
        if not catalog.table_exists(("migrated", table)):
            return []
        content = catalog.load_table(("migrated", table)).scan().to_arrow()
    else:
        content = estate.read(table) if estate.files(table) else pa.table({column: []})
    return sorted(content[column].to_pylist(), key=lambda value: (value is None, value))


TARGETS = ["parquet", "delta", "iceberg"]


# Columns.


@pytest.mark.parametrize("target", TARGETS)
def test_a_partial_run_that_needs_wider_types_is_refused(estate: Estate, target: str) -> None:
    """Spark takes the types from one file, and read 4464 for 70000."""
    estate.orc("t/p=1/1", {"a": pa.array([1], pa.int16())})
    estate.orc("t/p=2/2", {"a": pa.array([70000], pa.int32())})
    assert estate.migrate(to=target, include=["t/p=1"]).exit_code == 0
    report = estate.migrate(to=target, include=["t/p=2"])
    assert report.exit_code == 1
    (refused,) = report.failures
    assert "t/p=1/1, whose source this run leaves out" in str(refused.error)
    assert rows(estate, target) == [1]
    # The whole table at once: the run converts the earlier files again.
    assert estate.migrate(to=target, include=["t"]).exit_code == 0
    assert rows(estate, target) == [1, 70000]
    if target == "parquet":
        assert {str(pq_type(path)) for path in estate.files("t")} == {"int32"}


def pq_type(path: Path) -> pa.DataType:
    import pyarrow.parquet as pq

    return pq.read_schema(path).field("a").type


def test_a_partial_run_keeps_the_columns_of_the_other_files(estate: Estate) -> None:
    estate.orc("t/p=1/1", {"a": [1], "b": ["x"]})
    estate.orc("t/p=2/2", {"a": [2]})
    assert estate.migrate(include=["t/p=1"]).exit_code == 0
    assert estate.migrate(include=["t/p=2"]).exit_code == 0
    # Each file has both columns: a reader may take them from any file.
    import pyarrow.parquet as pq

    assert [pq.read_schema(path).names for path in estate.files("t")] == [["a", "b"]] * 2
    assert estate.values(column="a") == [1, 2]


@pytest.mark.parametrize("target", TARGETS)
def test_a_partial_run_without_new_files_changes_nothing(estate: Estate, target: str) -> None:
    estate.orc("t/p=1/1", {"a": [1], "b": ["x"]})
    estate.orc("t/p=2/2", {"a": [2]})
    assert estate.migrate(to=target).exit_code == 0
    assert estate.migrate(to=target, include=["t/p=2"]).exit_code == 0
    assert rows(estate, target) == [1, 2]
    assert rows(estate, target, column="b") == ["x", None]


def test_a_partial_run_with_a_new_column_is_refused_beside_files_without_it(estate: Estate) -> None:
    estate.orc("t/p=1/1", {"a": [1]})
    estate.orc("t/p=2/2", {"a": [2], "b": ["x"]})
    assert estate.migrate(include=["t/p=1"]).exit_code == 0
    assert estate.migrate(include=["t/p=2"]).exit_code == 1
    assert estate.values() == [1]
    assert estate.migrate().exit_code == 0
    assert estate.read("t").sort_by("a")["b"].to_pylist() == [None, "x"]


def test_a_dry_run_reports_the_same_refusal(estate: Estate) -> None:
    from coldframe.pipeline.source.selection import select

    estate.orc("t/p=1/1", {"a": pa.array([1], pa.int16())})
    estate.orc("t/p=2/2", {"a": pa.array([70000], pa.int32())})
    assert estate.migrate(include=["t/p=1"]).exit_code == 0
    preview = dry_run(estate.source, estate.target, Options(selection=select(["t/p=2"], [])))
    assert preview.exit_code == 1
    ((place, reason),) = preview.tables[0].refused
    assert place == "t/p=2/2"
    assert "needs other types" in reason


# Files that sources share.


@pytest.mark.parametrize("target", TARGETS)
def test_a_pattern_that_selects_part_of_a_shared_file_doubles_no_row(estate: Estate, target: str) -> None:
    for number in range(4):
        estate.orc(f"t/p=1/{number}", {"a": [number * 10, number * 10 + 1]})
    assert estate.migrate(to=target).exit_code == 0
    before = rows(estate, target)
    estate.orc("t/p=1/0", {"a": [5]})
    report = estate.migrate(to=target, include=["t/p=1/0", "t/p=1/1"])
    assert report.exit_code == 1
    (refused,) = report.failures
    assert "a run that takes all of the table converts both" in str(refused.error)
    assert rows(estate, target) == before
    assert estate.migrate(to=target).exit_code == 0
    assert rows(estate, target) == sorted([5, *(value for value in before if value > 1)])


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_gone_source_stay_in_a_file_shared_with_excluded_sources(
    estate: Estate, target: str
) -> None:
    for number in range(4):
        estate.orc(f"t/p=1/{number}", {"a": [number * 10, number * 10 + 1]})
    assert estate.migrate(to=target).exit_code == 0
    before = rows(estate, target)
    (estate.source / "t/p=1/0").unlink()
    report = estate.migrate(to=target, on_vanished="remove", include=["t/p=1/0", "t/p=1/1"])
    assert report.exit_code == 1
    assert "select all of the table" in str(report.tables[0].error)
    assert rows(estate, target) == before
    assert estate.migrate(to=target, on_vanished="remove").exit_code == 0
    assert rows(estate, target) == before[2:]


def test_an_unrecognisable_source_keeps_its_rows_in_a_shared_file(estate: Estate) -> None:
    for number in range(3):
        estate.orc(f"t/p=1/{number}", {"a": [number * 10, number * 10 + 1]})
    assert estate.migrate().exit_code == 0
    (estate.source / "t/p=1/0").write_bytes(b"what is left of it")
    estate.orc("t/p=1/1", {"a": [5]})
    assert estate.migrate().exit_code == 1
    assert estate.values() == [0, 1, 10, 11, 20, 21]


# Tables that lose and gain files.


@pytest.mark.parametrize("target", TARGETS)
def test_changed_files_wait_while_new_files_are_withheld(estate: Estate, target: str) -> None:
    """ALTER TABLE .. CONCATENATE moves rows of deleted files into a changed file."""
    for number in range(4):
        estate.orc(f"t/p=1/{number}", {"a": [number]})
    assert estate.migrate(to=target, target_file_bytes=0).exit_code == 0
    (estate.source / "t/p=1/3").unlink()
    (estate.source / "t/p=1/2").unlink()
    estate.orc("t/p=1/0", {"a": [0, 2]})
    estate.orc("t/p=1/9", {"a": [3]})
    report = estate.migrate(to=target)
    assert report.exit_code == 1
    assert sorted(file.source for file in report.failures) == ["t/p=1/0", "t/p=1/9"]
    assert rows(estate, target) == [0, 1, 2, 3]
    assert estate.migrate(to=target, on_vanished="remove").exit_code == 0
    assert rows(estate, target) == [0, 1, 2, 3]


def test_lost_target_files_are_rebuilt_while_others_are_withheld(estate: Estate) -> None:
    for number in range(3):
        estate.orc(f"t/{number}", {"a": [number]})
    assert estate.migrate(target_file_bytes=0).exit_code == 0
    (estate.source / "t/2").unlink()
    estate.files("t")[0].unlink()
    assert estate.migrate(target_file_bytes=0).exit_code == 1
    assert estate.values() == [0, 1, 2]


def test_a_compaction_outside_the_selection_doubles_no_row(estate: Estate) -> None:
    estate.orc("t/p=1/000000_0", {"a": [1, 2]})
    estate.orc("t/p=1/000001_0", {"a": [3]})
    assert estate.migrate().exit_code == 0
    shutil.rmtree(estate.source / "t/p=1")
    estate.orc("t/p=1/compacted", {"a": [1, 2, 3]})
    for policy in ("fail", "remove"):
        assert estate.migrate(include=["compacted"], on_vanished=policy).exit_code == 1
        assert estate.values() == [1, 2, 3]
    # Excluded files are not gone.
    estate.orc("u/1", {"a": [1]})
    estate.orc("u/2", {"a": [2]})
    assert estate.migrate(include=["u/1"]).exit_code == 0
    assert estate.migrate(include=["u/2"]).exit_code == 0
    assert estate.values("u") == [1, 2]


def test_an_earlier_result_keeps_its_types(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that can no longer be read fixes its table to the types of its migrated rows."""
    estate.orc("t/p=1/1", {"a": pa.array([1], pa.int16())})
    assert estate.migrate().exit_code == 0
    with open(estate.source / "t/p=1/1", "r+b") as file:
        file.seek(-20, 2)
        file.write(b"\xff" * 16)
    estate.orc("t/p=2/2", {"a": pa.array([70000], pa.int64())})
    assert estate.migrate().exit_code == 1
    assert estate.values() == [1]


# The limit on removals.


def test_an_empty_mount_point_removes_nothing(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.orc("u/1", {"a": [2]})
    assert estate.migrate().exit_code == 0
    shutil.rmtree(estate.source)
    estate.source.mkdir()
    for options in ({}, {"most_vanished": 1}):
        report = estate.migrate(on_vanished="remove", **options)
        assert report.exit_code == 1
        assert "the source is empty" in str(report.tables[0].error)
        assert (estate.values("t"), estate.values("u")) == ([1], [2])
    assert dry_run(estate.source, estate.target, Options(on_vanished="remove")).exit_code == 1
    assert estate.migrate(on_vanished="remove", dropped=["t"]).exit_code == 1
    assert (estate.files("t"), estate.values("u")) == ([], [2])
    assert estate.migrate(on_vanished="remove", dropped=["*"]).exit_code == 0
    assert estate.files("u") == []


def test_removing_more_than_half_of_a_table_needs_an_option(estate: Estate) -> None:
    for number in range(4):
        estate.orc(f"t/{number}", {"a": [number]})
    assert estate.migrate().exit_code == 0
    for number in range(3):
        (estate.source / f"t/{number}").unlink()
    report = estate.migrate(on_vanished="remove")
    assert report.exit_code == 1
    assert "t/0 (75% of its bytes)" in str(report.tables[0].error)
    assert estate.values() == [0, 1, 2, 3]
    assert estate.migrate(on_vanished="remove", most_vanished=0.8).exit_code == 0
    assert estate.values() == [3]
    with pytest.raises(ValueError, match="most_vanished"):
        estate.migrate(most_vanished=2)
