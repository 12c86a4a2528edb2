"""A target among other people's files: links, modes, and a journal that others may have written."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from estates import Estate

import coldframe as cf
from coldframe.errors import UnsupportedError
from coldframe.pipeline import audit
from coldframe.pipeline.sink.destination import Destination, permissions_within


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    made.orc("t/p=1/a", {"a": [1]})
    return made


def test_a_linked_lock_is_not_followed(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me\n")
    (estate.target / "_coldframe").mkdir(parents=True)
    (estate.target / "_coldframe/lock").symlink_to(tmp_path / "precious")
    with pytest.raises(UnsupportedError, match="found a link"):
        estate.migrate()
    assert (tmp_path / "precious").read_text() == "keep me\n"


def test_a_lock_keeps_its_content(estate: Estate) -> None:
    estate.migrate()
    (estate.target / "_coldframe/lock").write_text("a note\n")
    assert estate.migrate().exit_code == 0
    assert (estate.target / "_coldframe/lock").read_text() == "a note\n"


@pytest.mark.parametrize(
    "link",
    [
        "_coldframe",
        "_coldframe/state",
        "_coldframe/staging",
        "_coldframe/quarantine",
        "_coldframe/report",
        "t",
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_linked_folders_are_refused(estate: Estate, tmp_path: Path, link: str, again: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    if again:
        estate.migrate()
        estate.orc("t/p=1/b", {"a": [2]})
    place = estate.target / link
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(elsewhere)
    else:
        (elsewhere / "state").mkdir(parents=True)
    place.symlink_to(elsewhere)
    if link == "t":
        (estate.target / "_coldframe/state").mkdir(parents=True, exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in sorted(elsewhere.rglob("*"))}
    with pytest.raises(UnsupportedError, match="found a link"):
        estate.migrate()
    assert {path: path.stat().st_mtime_ns for path in sorted(elsewhere.rglob("*"))} == before


def test_a_linked_partition_is_refused(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (estate.target / "_coldframe/state").mkdir(parents=True)
    (estate.target / "t").mkdir()
    (estate.target / "t/p=1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsupportedError, match="found a link"):
        estate.migrate()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_target_itself_may_be_a_link(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    estate.target.symlink_to(tmp_path / "disk")
    assert estate.migrate().exit_code == 0
    assert estate.values() == [1]


CODE = """
import os, subprocess, sys
os.umask(0o077)
os.chdir(sys.argv[1])
import pyarrow as pa, coldframe as cf
cf.write(pa.table({"secret": ["x"] * 5000}), "a.orc")
cf.write(pa.table({"p": [1], "a": [1]}), "parts", format="orc", partitioning=["p"])
run = lambda *words: subprocess.run([sys.executable, "-m", "coldframe", *words], capture_output=True)
run("convert", "a.orc", "b.rc", "--to", "rcfile")
for name in ("b.parquet", "b.csv", "b.jsonl", "b.arrow", "b.orc"):
    run("convert", "a.orc", name)
run("salvage", "a.orc", "c.parquet", "--report", "c.json")
run("layout", "a.orc", "-o", "l.html")
run("tables", "src", "--write-tables", "tables.toml")
for to in ("parquet", "orc", "delta", "iceberg"):
    run("migrate", "src", to, "--to", to, "--on-error", "quarantine", "--master", "in-process")
"""


def test_files_respect_the_umask(tmp_path: Path) -> None:
    cf.write(cf.open(Path(__file__).parents[3] / "data/orc/files/ints.orc"), tmp_path / "s.orc")
    content = (tmp_path / "s.orc").read_bytes()
    (tmp_path / "src/t").mkdir(parents=True)
    for name, data in (("ok.orc", content), ("bad.orc", content[:-20])):
        (tmp_path / "src/t" / name).write_bytes(data)
        (tmp_path / "src/t" / name).chmod(0o600)
    mine = set(tmp_path.rglob("*"))
    subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], check=True, capture_output=True)
    made = [path for path in tmp_path.rglob("*") if path not in mine]
    assert {"b.rc", "b.parquet", "c.parquet", "l.html", "report.html", "runs.jsonl"} <= {
        path.name for path in made
    }
    assert any("quarantine" in path.parts for path in made)
    wide = {
        str(path.relative_to(tmp_path)): oct(path.stat().st_mode)
        for path in made
        if path.stat().st_mode & 0o077
    }
    assert wide == {}


def test_quarantine_has_the_mode_of_the_source(estate: Estate) -> None:
    bad = estate.orc("t/p=1/b", {"a": list(range(5000))})
    bad.write_bytes(bad.read_bytes()[:-20])
    bad.chmod(0o600)
    estate.migrate(on_error="quarantine")
    copy = estate.target / "_coldframe/quarantine/t/p=1/b"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert copy.read_bytes() == bad.read_bytes()


def test_copies_of_directories_keep_their_permissions(tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/f").write_bytes(b"x")
    for mode, inner, outer, expected in (
        (0o644, 0o755, 0o755, 0o644),
        (0o644, 0o700, 0o755, 0o600),
        (0o644, 0o755, 0o750, 0o640),
        (0o400, 0o755, 0o755, 0o400),
        (0o755, 0o755, 0o755, 0o644),
    ):
        (tmp_path / "d/e/f").chmod(mode)
        (tmp_path / "d/e").chmod(inner)
        (tmp_path / "d").chmod(outer)
        assert permissions_within(str(tmp_path / "d"), "e/f") == expected
    assert permissions_within(str(tmp_path / "d/e/f"), "") == 0o644
    (tmp_path / "dst").mkdir()
    (tmp_path / "d/e/f").chmod(0o640)
    Destination(str(tmp_path / "dst")).copy_in(str(tmp_path / "d"), "copy")
    assert stat.S_IMODE((tmp_path / "dst/copy/e/f").stat().st_mode) == 0o640 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_journal_without_the_tables_of_its_sources(estate: Estate) -> None:
    estate.migrate()
    estate.unchain()
    for path in (estate.target / "_coldframe/state").glob("*.jsonl"):
        lines = [line for line in path.read_text().splitlines() if json.loads(line)["event"] != "table"]
        path.write_text("".join(f"{line}\n" for line in lines))
    result = audit(estate.target)
    assert result.exit_code == 1
    assert not result.verdict.is_verified
    assert any("the journal has sources of this table" in str(reason.detail) for reason in result.reasons)
