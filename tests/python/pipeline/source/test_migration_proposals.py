"""Proposed entries for files without types: the SerDe is guessed from their cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
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
