"""The command line among others: patterns, standard input, completion, pager, colours."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import parser_of_all
from coldframe.cli.completion import SHELLS, commands_of, script

ROWS = pa.table({"id": range(100), "name": [f"name {i}" for i in range(100)]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        cf.write(ROWS, tmp_path / f"{name}.orc", format="orc")
    return tmp_path


def coldframe(*arguments: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "coldframe", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, **options)


def test_patterns_are_expanded_by_us_too(folder: Path) -> None:
    assert json.loads(coldframe("meta", "*.orc", "--json", cwd=folder).stdout)["a.orc"]["rows"] == 100
    assert coldframe("meta", "*.orc", cwd=folder).stdout.count("format: orc") == 2
    assert coldframe("verify", "*.orc", cwd=folder).stdout.count("intact, 100 rows") == 2
    assert coldframe("detect", "*.orc", cwd=folder).stdout == "a.orc: orc\nb.orc: orc\n"
    assert coldframe("count", "*.orc", cwd=folder).stdout == "200\n"
    assert json.loads(coldframe("sizes", "*.orc", "--json", cwd=folder).stdout)[0]["column"] == "id"
    missing = coldframe("meta", "*.nothing", cwd=folder)
    assert missing.returncode == 2
    assert "no file matches" in missing.stderr


@pytest.mark.parametrize("command", ["cat", "head", "count", "schema", "meta", "verify", "detect", "sizes"])
def test_a_file_may_come_by_standard_input(command: str, folder: Path) -> None:
    with (folder / "a.orc").open("rb") as source:
        done = coldframe(command, "-", cwd=folder, stdin=source)
    assert done.returncode == 0, done.stderr
    assert {"count": "100\n", "detect": "-: orc\n"}.get(command, done.stdout) == done.stdout
    assert done.stdout


def test_every_form_of_rows(folder: Path) -> None:
    def cat(form: str) -> str:
        return coldframe("cat", "a.orc", "-n", 2, "--format", form, cwd=folder).stdout

    assert cat("csv") == '"id","name"\n0,"name 0"\n1,"name 1"\n'
    assert cat("jsonl") == '{"id": 0, "name": "name 0"}\n{"id": 1, "name": "name 1"}\n'
    assert cat("table") == "id\tname\n0\tname 0\n1\tname 1\n"
    wrong = coldframe("cat", "a.orc", "--input-format", "rcfile", cwd=folder)
    assert wrong.returncode == 1
    assert "SEQ" in wrong.stderr or "magic" in wrong.stderr


def test_completion_knows_commands_options_and_values(tmp_path: Path) -> None:
    parser = parser_of_all()
    assert {"get", "scan", "diff", "layout", "migrate"} <= set(commands_of(parser))
    path = tmp_path / "completion.bash"
    path.write_text(script(parser, "bash"))

    def completed(*words: str) -> set[str]:
        typed = " ".join(f"'{word}'" for word in words)
        program = (
            f"source {path}; COMP_WORDS=(coldframe {typed}); COMP_CWORD={len(words)}; _coldframe; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    assert completed("sc") == {"scan", "schema"}
    assert {"--where", "--json", "--schema"} <= completed("count", "--")
    assert completed("cat", "x", "--format", "j") == {"jsonl"}
    assert completed("migrate", "--on-error", "") == {"raise", "skip", "quarantine"}
    assert completed("completion", "") >= set(SHELLS)
    assert completed("head", "comp") == {"completion.bash"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells_is_their_language(shell: str, tmp_path: Path) -> None:
    text = script(parser_of_all(), shell)
    assert "layout" in text
    assert "--on-error" in text or "-l on-error" in text
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script was made, not run")
    path = tmp_path / "script"
    path.write_text(text)
    subprocess.run([shell, "-n", str(path)], check=True)


def on_terminal(*arguments: object, cwd: Path, **environment: str) -> str:
    """What a person sees."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **environment}
    env.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    process = subprocess.Popen(
        [sys.executable, "-m", "coldframe", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=env,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait(timeout=60) == 0, seen
    return seen.decode()


def test_no_color_takes_colours_away(folder: Path) -> None:
    pytest.importorskip("rich")
    coloured = on_terminal("inspect", "a.orc", cwd=folder, COLDFRAME_PAGER="")
    assert "\x1b[3" in coloured
    assert "█" in coloured
    plain = on_terminal("inspect", "a.orc", cwd=folder, COLDFRAME_PAGER="", NO_COLOR="1")
    assert "\x1b[3" not in plain
    assert "█" not in plain
    assert "aaa" in plain


def test_long_output_goes_to_the_pager(folder: Path) -> None:
    seen = on_terminal("head", "a.orc", "-n", 3, cwd=folder, COLDFRAME_PAGER="sed s/name/paged/")
    assert "paged 2" in seen
    assert "paged" not in on_terminal(
        "--no-pager", "head", "a.orc", "-n", 3, cwd=folder, PAGER="sed s/name/paged/"
    )
    assert "name 2" in on_terminal("head", "a.orc", cwd=folder, COLDFRAME_PAGER="no-such-pager")
    # A pager that is left early ends the command without a complaint.
    assert "Traceback" not in on_terminal("cat", *["a.orc"] * 200, cwd=folder, COLDFRAME_PAGER="head -n 2")
