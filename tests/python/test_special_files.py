"""Pipes, sockets, devices and links that lead to themselves are named and passed over, never waited for."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import LeftOutWarning, UnsupportedError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "t"
    place.mkdir()
    cf.write(pa.table({"a": [1]}), place / "a.orc")
    (place / "broken.orc").symlink_to("nowhere")
    (place / "loop.orc").symlink_to("loop.orc")
    os.mkfifo(place / "pipe.orc")
    held = socket.socket(socket.AF_UNIX)
    held.bind(str(place / "socket.orc"))
    yield place
    held.close()


@pytest.mark.parametrize("call", ["open", "detect", "read_table", "scan"])
def test_a_pipe_is_refused_at_once(folder: Path, call: str) -> None:
    path = str(folder / "pipe.orc")
    code = f"import coldframe as cf\nx = {path!r}\n"
    code += {
        "open": "cf.open(x)",
        "detect": "cf.detect(x)",
        "read_table": "cf.read_table(x)",
        "scan": "cf.scan([x]).to_table()",
    }[call]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert re.search(r"found a named pipe|only pipe\.orc \(named pipe\)", done.stderr), done.stderr


def test_devices_and_sockets_are_refused(folder: Path) -> None:
    for path, kind in (("/dev/null", "device"), (folder / "socket.orc", "socket")):
        with pytest.raises(UnsupportedError, match=f"found a {kind}"):
            cf.open(path)
    with pytest.raises(OSError, match=r"loop|links"):
        cf.open(folder / "loop.orc")


def test_a_scan_reads_what_lies_beside_them(folder: Path) -> None:
    with pytest.warns(LeftOutWarning) as warned:
        table = cf.scan(folder)
    assert table.count() == 1
    names = ("loop.orc (link that leads to itself)", "pipe.orc (named pipe)", "socket.orc (socket)")
    assert all(name in str(warned[0].message) for name in names), str(warned[0].message)
    assert {Path(item["path"]).name for item in table.left_out} == {"loop.orc", "pipe.orc", "socket.orc"}


def test_a_folder_of_special_files_alone_is_no_table(folder: Path) -> None:
    (folder / "a.orc").unlink()
    with pytest.raises(cf.NotFoundError, match=r"only loop\.orc"):
        cf.scan(folder)


def test_commands_go_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["verify", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "a.orc: no damage found" in out
    assert "pipe.orc (named pipe)" in err
    assert main(["detect", str(folder / "pipe.orc"), str(folder / "a.orc")]) == 2
    out, err = capsys.readouterr()
    assert "a.orc: orc" in out
    assert "found a named pipe" in err


def test_a_migration_lists_them(folder: Path, tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    folder.rename(estate.source / "t")
    report = estate.migrate()
    unread = {place.relative: place.reason for place in report.unread}
    assert {f"t/{name}.orc" for name in ("pipe", "loop", "broken", "socket")} <= set(unread), unread
    assert estate.values() == [1]
    assert report.exit_code == 1


@pytest.mark.parametrize("name", ["lock", "state/000000000002.jsonl", "runs.jsonl"])
def test_a_pipe_in_a_target_is_not_waited_for(tmp_path: Path, name: str) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/a", {"a": [1]})
    (estate.target / "_coldframe/state").mkdir(parents=True)
    os.mkfifo(estate.target / "_coldframe" / name)
    command = [sys.executable, "-m", "coldframe", "migrate", str(estate.source), str(estate.target)]
    done = subprocess.run(
        [*command, "--master", "in-process"], capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 2 or name == "runs.jsonl"


def test_a_pipe_in_place_of_a_list_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    for code in ("audit(before_delete=x)", "load_tables(x)"):
        imports = (
            "from coldframe.pipeline import audit\nfrom coldframe.pipeline.source.tables import load_tables"
        )
        program = f"{imports}\nx = {str(tmp_path / 'x')!r}\n{code}"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
        assert "expected a file, found a directory, pipe" in done.stderr, done.stderr
