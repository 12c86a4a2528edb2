"""Commands never overwrite their source, and overwrite other files only on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main

TABLE = pa.table({"n": pa.array(range(100), pa.int64())})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.orc"
    cf.write(TABLE, path, format="orc")
    return path


def run(*arguments: Any) -> int:
    return main([str(word) for word in arguments])


def commands(source: Path, dest: Any) -> dict[str, list[Any]]:
    return {
        "salvage": ["salvage", source, dest],
        "convert": ["convert", source, dest, "--to", "orc"],
        "layout": ["layout", source, "-o", dest],
        "report": ["salvage", source, source.parent / "rescued.parquet", "--report", dest],
    }


@pytest.mark.parametrize("command", ["salvage", "convert", "layout", "report"])
@pytest.mark.parametrize("name", ["itself", "link", "hard link", "another name", "URL"])
def test_a_source_is_never_replaced(
    source: Path, tmp_path: Path, command: str, name: str, capsys: Any
) -> None:
    before = source.read_bytes()
    dest: Any = tmp_path / "dest.orc"
    if name == "link":
        dest.symlink_to(source)
    elif name == "hard link":
        os.link(source, dest)
    else:
        dest = {"itself": source, "another name": f"{tmp_path}/./a.orc", "URL": source.as_uri()}[name]
    assert run(*commands(source, dest)[command], "--overwrite") == 2
    assert "is a source" in capsys.readouterr().err
    assert source.read_bytes() == before


@pytest.mark.parametrize("command", ["salvage", "convert", "layout", "report"])
def test_other_files_are_replaced_on_request(source: Path, tmp_path: Path, command: str, capsys: Any) -> None:
    dest = tmp_path / "other.orc"
    dest.write_bytes(b"something")
    assert run(*commands(source, dest)[command]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert dest.read_bytes() == b"something"
    (tmp_path / "rescued.parquet").unlink(missing_ok=True)
    assert run(*commands(source, dest)[command], "--overwrite") == 0
    assert dest.read_bytes() != b"something"


def test_the_last_name_of_a_pattern_is_no_destination(source: Path, tmp_path: Path) -> None:
    """`convert *.orc` as the shell expands it, and with a folder of the source."""
    other = tmp_path / "b.orc"
    cf.write(TABLE, other, format="orc")
    before = other.read_bytes()
    assert run("convert", source, other) == 2
    assert run("convert", tmp_path, other, "--overwrite") == 2
    assert run("convert", f"{tmp_path}/*.orc", other, "--overwrite") == 2
    assert other.read_bytes() == before
