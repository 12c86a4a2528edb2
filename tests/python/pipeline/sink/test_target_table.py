"""The current state of a target table, by its own log: see pipeline/report/target_table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deleting import adds, delete_by_vector, delete_equal, delete_positions
from estates import Estate

from coldframe.pipeline.report.target_table import Difference, TargetTable, differences, foreign, look
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.live import TableName
from coldframe.pipeline.state.journal import read_state


class Migrated:
    """Two sources of ten rows each, migrated; small sources share no file."""

    def __init__(self, root: Path, to: str) -> None:
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}.get(to, "pyarrow"))
        self.estate, self.to = Estate(root), to
        for number in range(2):
            self.estate.orc(f"t/p=a b{number}/1", {"a": list(range(number * 10, number * 10 + 10))})
        assert self.estate.migrate(to=to, target_file_bytes=0).exit_code == 0
        self.table = self.estate.target / "t"

    def look(self) -> TargetTable:
        return look(Destination(str(self.estate.target)), self.to, TableName("t", "t"))

    def differences(self) -> list[Difference]:
        state, _ = read_state(Destination(str(self.estate.target)))
        return list(differences(self.look(), state))

    def summary(self) -> list[tuple[str, str, int]]:
        return [(difference.kind, difference.source, difference.rows) for difference in self.differences()]

    def foreign(self) -> int:
        state, _ = read_state(Destination(str(self.estate.target)))
        return sum(1 for _ in foreign(self.look(), state))

    def delta(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.table)

    def iceberg(self) -> Any:
        from coldframe.pipeline.sink.iceberg import open_catalog

        return open_catalog(str(self.estate.target)).load_table(("migrated", "t"))

    def delete(self, condition: str) -> None:
        """Deletes as a user does, with the library: it rewrites or removes files."""
        if self.to == "delta":
            self.delta().delete(condition)
        else:
            self.iceberg().delete(condition)


@pytest.fixture(params=["delta", "iceberg"])
def migrated(request: pytest.FixtureRequest, tmp_path: Path) -> Migrated:
    return Migrated(tmp_path, request.param)


@pytest.mark.parametrize("to", ["parquet", "orc", "delta", "iceberg"])
def test_a_table_that_nobody_changed_has_no_differences(tmp_path: Path, to: str) -> None:
    migrated = Migrated(tmp_path, to)
    known = migrated.look()
    assert (known.state, len(known.files)) == ("there", 2)
    assert migrated.differences() == []
    assert migrated.foreign() == 0
    if known.has_log:
        assert sorted(known.columns or ()) == ["a", "p"]
        assert [(file.rows, file.hidden) for file in known.files] == [(10, 0), (10, 0)]


def test_a_file_that_another_writer_rewrote_is_unlisted_and_the_new_file_is_foreign(
    migrated: Migrated,
) -> None:
    migrated.delete("a = 3")
    assert migrated.summary() == [("unlisted", "t/p=a b0/1", 10)]
    assert migrated.foreign() == 1


def test_files_whose_rows_another_writer_deleted_are_unlisted(migrated: Migrated) -> None:
    migrated.delete("a >= 0")
    assert [kind for kind, _, _ in migrated.summary()] == ["unlisted", "unlisted"]
    assert migrated.foreign() == 0


def test_rows_that_a_deletion_vector_hides_are_deleted_rows(tmp_path: Path) -> None:
    migrated = Migrated(tmp_path, "delta")
    path = next(add["path"] for add in adds(migrated.table) if "b1/" in add["path"])
    delete_by_vector(migrated.table, path, [2, 5])
    assert migrated.summary() == [("deleted", "t/p=a b1/1", 10)]
    assert sorted(file.rows or 0 for file in migrated.look().files) == [8, 10]


def unpartitioned(root: Path) -> Migrated:
    migrated = object.__new__(Migrated)
    pytest.importorskip("pyiceberg")
    migrated.estate, migrated.to = Estate(root), "iceberg"
    for number in range(2):
        migrated.estate.orc(f"t/{number}", {"a": list(range(number * 10, number * 10 + 10))})
    assert migrated.estate.migrate(to="iceberg", target_file_bytes=0).exit_code == 0
    migrated.table = migrated.estate.target / "t"
    return migrated


def test_rows_that_positional_deletes_hide_are_deleted_rows(tmp_path: Path) -> None:
    migrated = unpartitioned(tmp_path)
    path = next(task.file.file_path for task in migrated.iceberg().scan().plan_files())
    # A row that is deleted twice is counted once.
    delete_positions(migrated.iceberg(), path, [1, 2])
    delete_positions(migrated.iceberg(), path, [2, 7])
    assert migrated.iceberg().scan().to_arrow().num_rows == 17
    assert sorted(file.rows or 0 for file in migrated.look().files) == [7, 10]
    assert [kind for kind, _, _ in migrated.summary()] == ["deleted"]


def test_equality_deletes_hide_an_unknown_number_of_rows(tmp_path: Path) -> None:
    migrated = unpartitioned(tmp_path)
    delete_equal(migrated.iceberg(), "a", [4])
    assert [kind for kind, _, _ in migrated.summary()] == ["unknown", "unknown"]
    # Equality deletes do not apply to later files.
    migrated.iceberg().append(pa.table({"a": [4]}))
    assert [file.rows for file in migrated.look().files if "/data/" in file.path] == [1]


def test_a_log_that_is_gone_is_a_difference_of_the_table(migrated: Migrated) -> None:
    if migrated.to == "delta":
        shutil.rmtree(migrated.table / "_delta_log")
    else:
        (migrated.estate.target / "_coldframe" / "iceberg.db").unlink()
    assert migrated.look().state == "gone"
    assert migrated.summary() == [("log gone", "", 20)]


def test_a_log_that_cannot_be_read_is_a_difference_of_the_table(migrated: Migrated) -> None:
    if migrated.to == "delta":
        (migrated.table / "_delta_log" / f"{0:020d}.json").write_text("{")
    else:
        for file in (migrated.table / "metadata").glob("*.json"):
            file.write_text("{")
    assert migrated.look().state == "unreadable"
    assert migrated.summary() == [("log unreadable", "", 20)]


def test_a_column_that_another_writer_dropped_is_a_difference_of_the_table(tmp_path: Path) -> None:
    migrated = unpartitioned(tmp_path)
    with migrated.iceberg().update_schema() as update:
        update.rename_column("a", "b")
    assert [
        (difference.kind, difference.source, difference.reason) for difference in migrated.differences()
    ] == [("columns", "", "the table no longer has the columns a")]


@pytest.mark.parametrize("to", ["parquet", "delta", "iceberg"])
def test_files_that_are_missing_or_have_another_length_are_differences(tmp_path: Path, to: str) -> None:
    migrated = Migrated(tmp_path, to)
    first, second = migrated.estate.files("t")
    first.unlink()
    second.write_bytes(second.read_bytes() + b" ")
    assert [kind for kind, _, _ in migrated.summary()] == ["gone", "resized"]


def test_rows_of_another_writer_are_foreign(migrated: Migrated) -> None:
    rows = pa.table({"a": pa.array([7], pa.int64()), "p": ["x"]})
    if migrated.to == "delta":
        from deltalake import write_deltalake

        write_deltalake(migrated.table, rows, mode="append")
    else:
        migrated.iceberg().append(rows)
    assert migrated.summary() == []
    assert migrated.foreign() == 1


def test_a_table_whose_log_cannot_be_read_does_not_end_the_run(migrated: Migrated) -> None:
    """The other tables are migrated; this table is not verified."""
    test_a_log_that_cannot_be_read_is_a_difference_of_the_table(migrated)
    migrated.estate.orc("u/1", {"a": [1]})
    report = migrated.estate.migrate(to=migrated.to, target_file_bytes=0)
    assert report.exit_code == 1
    verdicts = {table.name: table.verdict for table in report.tables}
    assert "no_log" in {reason.kind for reason in verdicts["t"].reasons}
    assert verdicts["u"].is_verified
    assert report.safe_to_delete == 1
