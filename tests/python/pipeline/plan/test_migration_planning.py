"""A bad item fails alone, finished work stays, and entries that match nothing are reported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from estates import Estate

from coldframe.cli import main
from coldframe.pipeline import dry_run
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.progress import NoProgress


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def entry(estate: Estate, text: str) -> None:
    (estate.source / "tables.toml").write_text(text)


# One bad item.


def test_an_entry_over_two_formats_fails_only_the_files_it_does_not_fit(estate: Estate) -> None:
    estate.rc("t/1", {"a": [b"x"]})
    estate.orc("t/2", {"a": [1]})
    estate.orc("u/1", {"a": [2]})
    entry(estate, '[tables.t]\nschema = "a string"\nserde = "binary"\n')
    assert dry_run(estate.source, estate.target, Options()).exit_code == 1
    report = estate.migrate()
    assert report.exit_code == 1
    assert [file.source for file in report.failures] == ["t/2"]
    assert "'format' in the entry" in str(report.failures[0].error)
    assert (estate.values("t"), estate.values("u")) == (["x"], [2])
    entry(estate, '[tables.t]\nformat = "rcfile"\nschema = "a string"\nserde = "binary"\n')
    assert estate.migrate().exit_code == 0


@pytest.mark.parametrize("folder", [b"p=\xff", b"p=%FF"])
def test_a_partition_name_that_is_not_text_fails_only_that_partition(
    estate: Estate, folder: bytes, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    estate.orc("t/p=1/1", {"a": [1]})
    path = estate.orc("u/1", {"a": [2]})
    place = os.fsencode(estate.source / "t") + b"/" + folder
    os.mkdir(place)
    with open(place + b"/1", "wb") as file:
        file.write(path.read_bytes())
    command = ["migrate", str(estate.source), str(estate.target), "--master", "in-process"]
    assert main([*command, "--dry-run"]) == 1
    assert main(command) == 1
    assert b"is not UTF-8" in capsysbinary.readouterr().out
    assert (estate.values("t"), estate.values("u")) == ([1], [2])


def test_a_table_directory_that_is_not_text_fails_only_that_table(estate: Estate) -> None:
    path = estate.orc("u/1", {"a": [2]})
    os.mkdir(os.fsencode(estate.source) + b"/\xff")
    with open(os.fsencode(estate.source) + b"/\xff/1", "wb") as file:
        file.write(path.read_bytes())
    report = estate.migrate()
    assert (report.exit_code, len(report.failures)) == (1, 1)
    assert estate.values("u") == [2]


def test_a_partition_value_of_the_wrong_type_fails_only_its_files(estate: Estate) -> None:
    estate.orc("t/dt=2014-01-01/1", {"a": [1]})
    estate.orc("t/dt=never/1", {"a": [2]})
    entry(estate, '[tables.t]\npartitions = "dt date"\n')
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/dt=never/1"]
    assert estate.values() == [1]


def test_partition_columns_of_tables_toml_match_in_any_case(estate: Estate) -> None:
    estate.orc("t/dt=2014-01-01/1", {"a": [1]})
    entry(estate, '[tables.t]\npartitions = "DT date"\n')
    deltalake = pytest.importorskip("deltalake")
    assert estate.migrate(to="delta").exit_code == 0
    types = {field.name: field.type for field in deltalake.DeltaTable(estate.target / "t").schema().fields}
    assert "date" in str(types["dt"])


def test_a_partition_column_that_no_folder_has_is_reported(estate: Estate) -> None:
    estate.orc("t/dt=2014-01-01/1", {"a": [1]})
    entry(estate, '[tables.t]\npartitions = "day date"\n')
    report = estate.migrate()
    assert report.exit_code == 1
    assert [(why.kind, why.detail) for why in report.reasons] == [("unmatched", "t: partition column day")]
    assert estate.values() == [1]


# A second run.


@pytest.mark.parametrize("target", ["parquet", "delta", "iceberg"])
def test_another_codec_converts_no_file_again(estate: Estate, target: str) -> None:
    if target != "parquet":
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    estate.orc("t/1", {"a": [1]})
    assert estate.migrate(to=target).exit_code == 0
    before = estate.tree()
    estate.orc("t/2", {"a": [2]})
    report = estate.migrate(to=target, codec="snappy", target_file_bytes=1 << 20, split_bytes=1 << 20)
    assert report.exit_code == 0
    assert {file.source: file.earlier for file in report.tables[0].files} == {"t/1": True, "t/2": False}
    assert estate.tree().items() > before.items()


# Entries that match nothing.


def test_an_entry_that_matches_nothing_is_reported(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    estate.orc("sales/1", {"a": [1]})
    (estate.source / "empty").mkdir()
    old = '[tables.old]\npath = "sales"\nformat = "rcfile"\n'
    entry(estate, f"[tables.sales]\n[tables.salse]\n[tables.empty]\n{old}")
    preview = dry_run(estate.source, estate.target, Options())
    assert (preview.exit_code, preview.unmatched) == (1, ["salse", "sales"])
    command = ["migrate", str(estate.source), str(estate.target), "--master", "in-process"]
    assert main(command) == 1
    assert "salse" in capsys.readouterr().out
    # An entry also matches if a pattern excludes its files.
    entry(estate, "[tables.sales]\n")
    estate.orc("u/1", {"a": [1]})
    assert estate.migrate(include=["u"]).exit_code == 0
    # An entry also matches if its source is gone: the report calls the source gone.
    (estate.source / "sales/1").unlink()
    (estate.source / "sales").rmdir()
    assert estate.migrate(on_vanished="keep").exit_code == 0


# Killed right after the start.


def test_a_kill_before_the_lock_leaves_a_target_that_can_be_used(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    (estate.target / "_coldframe").mkdir(parents=True)
    assert estate.migrate().exit_code == 0
    assert estate.values() == [1]


# The order of tables.


class Order(NoProgress):
    """Records the tables in the order in which their tasks end."""

    def __init__(self) -> None:
        self.tables: list[str] = []

    def advance(self, table: str, size: int, rows: int) -> None:
        self.tables.append(table)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["a", "b", "c", "d"]),
        ({"order": "size"}, ["c", "d", "a", "b"]),
        ({"order": "age"}, ["d", "b", "c", "a"]),
        ({"order": "name", "waves": ("d", "[bc]")}, ["d", "b", "c", "a"]),
        ({"order": "size", "waves": ("b*", "a")}, ["b", "a", "c", "d"]),
    ],
)
def test_tables_are_converted_in_the_order_asked_for(
    estate: Estate, options: dict[str, Any], expected: list[str]
) -> None:
    rows = {"a": 200, "b": 100, "c": 400, "d": 300}
    for age, name in enumerate("acbd"):
        path = estate.orc(f"{name}/1", {"x": [number**3 % 7919 for number in range(rows[name])]})
        os.utime(path, (1_000_000_000 - age,) * 2)
    order = Order()
    report = estate.migrate(progress=order, max_bytes_per_second=1 << 40, **options)
    assert order.tables == expected
    assert [table.name for table in report.tables] == ["a", "b", "c", "d"]


def test_a_wave_that_matches_nothing_is_reported(
    estate: Estate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estate.orc("t/1", {"a": [1]})
    waves = tmp_path / "waves"
    waves.write_text("# first\n\nt\nnone\n")
    command = ["migrate", str(estate.source), str(estate.target), "--master", "in-process"]
    assert main([*command, "--waves", str(waves)]) == 0
    assert "waves: no table matches none" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [{"window": "22-6"}, {"window": "24:00-06:00"}, {"window": "6:00-06:00"}, {"max_bytes_per_second": 0}],
)
def test_a_pace_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Options(**wrong)
    with pytest.raises(ValueError, match="are for conversions"):
        Options(to="iceberg", adopt=True, window="22:00-06:00")
