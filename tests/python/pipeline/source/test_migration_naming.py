"""Paths and names of tables in the target stay as they were first given."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from estates import Estate

from coldframe.pipeline import dry_run
from coldframe.pipeline.options import Options


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def test_an_older_partition_in_another_format_does_not_swap_names(estate: Estate) -> None:
    for number in range(3):
        estate.orc(f"sales/dt=2/{number}", {"a": [number]})
    assert estate.migrate().exit_code == 0
    assert estate.values("sales") == [0, 1, 2]
    # This partition sorts before the other partitions.
    estate.rc("sales/dt=1/old", {"a": [b"x"]})
    preview = dry_run(estate.source, estate.target, Options(untyped=True))
    assert {table.path: table.format for table in preview.tables} == {
        "sales": "orc",
        "sales__rcfile": "rcfile",
    }
    report = estate.migrate(untyped=True)
    assert report.exit_code == 0
    assert estate.values("sales") == [0, 1, 2]
    assert estate.values("sales__rcfile", "_c0") == [b"x"]
    assert sorted(table.name for table in report.tables) == ["sales", "sales__rcfile"]
    # A run over a single format does not swap them either.
    assert estate.migrate(untyped=True, include=["sales/dt=1"]).exit_code == 0
    estate.rc("sales/dt=3/new", {"a": [b"y"]})
    report = estate.migrate(untyped=True, include=["sales/dt=3"])
    assert [table.path for table in report.tables] == ["sales__rcfile"]
    assert estate.values("sales__rcfile", "_c0") == [b"x", b"y"]


def test_the_first_migrated_format_keeps_the_name(estate: Estate) -> None:
    estate.orc("sales/dt=2/1", {"a": [1]})
    estate.rc("sales/dt=1/1", {"a": [b"x"]})
    assert estate.migrate(include=["sales/dt=2"]).exit_code == 0
    report = estate.migrate(untyped=True, include=["sales/dt=1"])
    assert [table.path for table in report.tables] == ["sales__rcfile"]
    assert estate.values("sales") == [1]


def test_a_table_rewritten_in_another_format_is_the_same_table(estate: Estate) -> None:
    """ALTER TABLE .. SET FILEFORMAT, INSERT OVERWRITE: rows are not doubled under another name."""
    estate.rc("t/1", {"a": [b"x"]})
    assert estate.migrate(untyped=True).exit_code == 0
    shutil.rmtree(estate.source / "t")
    estate.orc("t/2", {"_c0": [b"x"]})
    assert estate.migrate().exit_code == 1
    assert estate.values("t", "_c0") == [b"x"]
    assert estate.migrate(on_vanished="remove", most_vanished=1).exit_code == 0
    assert estate.values("t", "_c0") == [b"x"]
    assert len(estate.files("t")) == 1


def test_a_used_name_is_not_given_to_another_table(estate: Estate) -> None:
    estate.orc("a/b/1", {"a": [1]})
    first = estate.migrate()
    estate.orc("a.b/1", {"a": [2]})
    second = estate.migrate()
    assert [(table.name, table.path) for table in first.tables] == [("a.b", "a/b")]
    names = {table.path: table.name for table in second.tables}
    assert names["a/b"] == "a.b"
    assert len(set(names.values())) == 2
    assert (estate.values("a/b"), estate.values("a.b")) == ([1], [2])
    # An entry may rename the table: its path stays.
    (estate.source / "tables.toml").write_text('[tables.mine]\npath = "a/b"\n')
    third = {table.path: table.name for table in estate.migrate().tables}
    assert third["a/b"] == "mine"
    assert estate.values("a/b") == [1]
