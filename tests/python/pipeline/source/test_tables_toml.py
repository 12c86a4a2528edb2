"""A tables.toml that others have written: it describes tables of the source, and does nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from estates import Estate

from coldframe.errors import ColdframeError
from coldframe.pipeline.source.tables import load_tables


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    made.rc("t/000000_0", {"a": [1]})
    return made


@pytest.mark.parametrize("path", ["../elsewhere", "t/../../elsewhere", "..", "", "a/.."])
def test_paths_stay_below_the_source(estate: Estate, path: str) -> None:
    (estate.source / "tables.toml").write_text(f'[tables.x]\npath = "{path}"\nschema = "a bigint"\n')
    with pytest.raises(ColdframeError, match="below the source"):
        estate.migrate()
    assert not estate.target.exists() or not estate.files("x")


def test_an_absolute_path_is_one_below_the_source(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text('[tables.x]\npath = "/etc"\n')
    (spec,) = load_tables(str(tmp_path / "tables.toml"))
    assert spec.path == "etc"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tables.t]\nschema = "a bigint"\nserde = "binary"\nrun = "rm -rf"\n', "run"),
        ('[tables.t]\nschema = "a bigint"\nserde = "os.system"\n', "serde"),
        ("[tables]\nt = 1\n", "tables.t"),
        ("[other]\n", "tables.NAME"),
        ("[tables.t", "tables.toml"),
    ],
)
def test_unknown_settings_are_refused(estate: Estate, text: str, message: str) -> None:
    (estate.source / "tables.toml").write_text(text)
    try:
        report = estate.migrate()
    except ColdframeError as error:
        assert message in str(error)
    else:
        assert report.exit_code != 0
        errors = [file.error for table in report.tables for file in table.files]
        assert all(error is not None and message in error for error in errors), errors


def test_bytes_that_are_no_text(estate: Estate) -> None:
    (estate.source / "tables.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ColdframeError, match=r"tables\.toml"):
        estate.migrate()
