"""Proposed entries for files without types: the SerDe is guessed from their cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import SchemaError


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def rc(estate: Estate, name: str, serde: str, rows: dict[str, Any]) -> None:
    path = estate.source / name
    path.parent.mkdir(parents=True, exist_ok=True)
    cf.write(pa.table(rows), path, format="rcfile", serde=serde)


def proposed(estate: Estate) -> str:
    with pytest.raises(SchemaError) as refused:
        estate.migrate()
    return str(refused.value)


ROWS = {"a": [1000, 5, None], "b": ["x", None, "y"]}


@pytest.mark.parametrize(
    ("serde", "other", "shown"),
    [
        ("text", "binary", ["# row 2 as text: ('5', None)", "# row 2 as binary: ('5', '\\\\N')"]),
        ("binary", "text", ["# row 2 as text: ('\\x05', '')", "# row 2 as binary: ('\\x05', None)"]),
    ],
)
def test_the_serde_is_guessed_and_both_readings_are_shown(
    estate: Estate, serde: str, other: str, shown: list[str]
) -> None:
    rc(estate, "db/t/p=1/1", serde, ROWS)
    text = proposed(estate)
    assert f'serde = "{serde}"   # by the first rows; or "{other}"' in text
    assert [line for line in text.splitlines() if line.startswith("# row")] == shown
    # The proposed entry works.
    start, end = text.index("[tables"), text.index("\n\nor migrate")
    (estate.source / "tables.toml").write_text(text[start:end])
    assert estate.migrate().exit_code == 0
    assert sorted(map(str, estate.read("db/t")["_c1"].to_pylist())) == ["None", "x", "y"]


def test_the_user_is_asked_where_the_cells_fit_both_serdes(estate: Estate) -> None:
    rc(estate, "t/1", "text", {"a": ["x", "y"]})
    text = proposed(estate)
    assert 'serde = "?"' in text
    (estate.source / "tables.toml").write_text('[tables.t]\nschema = "_c0 string"\nserde = "?"\n')
    report = estate.migrate()
    assert report.exit_code == 1
    assert 'expected "text" or "binary"' in str(report.failures[0].error)


def test_an_entry_for_a_directory_of_two_formats_names_its_format(estate: Estate) -> None:
    rc(estate, "t/1", "text", ROWS)
    estate.orc("t/2", {"a": [1]})
    assert 'format = "rcfile"' in proposed(estate)


def test_a_file_proposes_its_serde(estate: Estate) -> None:
    rc(estate, "t/1", "text", ROWS)
    file = cf.open(estate.source / "t/1")
    assert file.proposal() == {"schema": "_c0 string, _c1 string", "serde": "text"}


GUESSED = pa.table(
    {
        "whole": ["1", "-25", None],
        "code": ["007", "12", "3"],
        "real": ["1.5", "2", "1e3"],
        "flag": ["true", "false", ""],
        "day": ["2014-01-01", None, "2014-02-03"],
        "at": ["2014-01-01 10:00:00", "2014-01-01 00:00:00", "2014-01-02 00:00:01.5"],
        "long": ["12345678901234567890", "1", "2"],
        "list": ["1\x022", "3", "4"],
        "nothing": pa.array([None] * 3, pa.string()),
    }
)


def test_types_are_guessed_if_all_values_fit(estate: Estate) -> None:
    rc(estate, "t/1", "text", dict(zip(GUESSED.column_names, GUESSED.columns, strict=True)))
    kinds = ["bigint", "string", "double", "boolean", "date", "timestamp", "string", "string", "string"]
    schema = ", ".join(f"_c{at} {kind}" for at, kind in enumerate(kinds))
    assert f'\nschema = "{schema}"\n' in proposed(estate)
    (table,) = cf.tables(estate.source)
    assert table.to_toml().splitlines()[2:] == [
        f'# schema = "{schema}"   # the files do not store their columns',
        '# serde = "text"',
        "# types: guessed from the first 3 rows",
    ]


def test_the_types_of_a_single_file_are_guessed(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    rc(estate, "t/1", "text", {"a": [1, None], "b": ["x", "y"]})
    path = estate.source / "t/1"
    assert main(["schema", str(path), "--as", "tables"]) == 0
    expected = [
        'schema = "_c0 bigint, _c1 string"',
        'serde = "text"',
        "# types: guessed from the first 2 rows",
    ]
    assert capsys.readouterr().out.splitlines()[2:] == expected


def test_types_that_nearly_fit_are_named(estate: Estate) -> None:
    rc(estate, "t/1", "text", {"a": [*map(str, range(39)), "n/a"], "b": ["x", "1"] * 20})
    text = proposed(estate)
    assert '\nschema = "_c0 string, _c1 string"\n' in text
    assert "\n# _c0: 97.5% of the values fit bigint\n" in text
    assert "# _c1" not in text


def test_a_damaged_file_has_an_entry_without_types(estate: Estate) -> None:
    rc(estate, "t/1", "text", {"a": ["1"] * 3000})
    path = estate.source / "t/1"
    path.write_bytes(path.read_bytes()[:-40])
    (table,) = cf.tables(estate.source)
    assert "the files do not store their columns" in table.to_toml()


def test_the_types_of_partition_keys_are_guessed(estate: Estate) -> None:
    for day, hour in (("2014-01-01", "7"), ("2014-02-30", "-1"), ("__HIVE_DEFAULT_PARTITION__", "12")):
        rc(estate, f"t/day={day}/hour={hour}/1", "text", {"a": ["1"]})
    (table,) = cf.tables(estate.source)
    entry = '# partitions = "`day` {}, `hour` bigint"   # by the names of all folders'
    assert entry.format("string") in table.to_toml().splitlines()
    (estate.source / "t/day=2014-02-30").rename(estate.source / "t/day=2014-02-28")
    (table,) = cf.tables(estate.source)
    assert entry.format("date") in table.to_toml().splitlines()
