"""No command sends a control character of a name or value to a terminal, and JSON stays JSON."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.terminal import Printed, PrintedBytes, console_of, printable

# ESC ] 0 sets a title; C1 has the same in one character; U+202E turns the direction of the text.
EVIL = "\x1b]0;owned\x07\x9b2J\u202e"
ORDERS = ("\x1b]0;owned", "\x07", "\x9b", "\u202e")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 👩\u200d💻", "plain é 日本 👩\u200d💻"),
        ("a\tb\n", "a\tb\n"),
        ("\x1b[31m", "\\u001b[31m"),
        ("over\rwritten\x08", "over\\u000dwritten\\u0008"),
        ("\x7f\x85\x9b", "\\u007f\\u0085\\u009b"),
        ("\u061c\u200e\u200f\u202a\u202e\u2066\u2069", "\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        (os.fsdecode(b"\x9b\xff"), "\\udc9b\udcff"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_is_printed(text: str, shown: str) -> None:
    assert printable(text, lines=True) == shown
    assert "\n" not in printable(text)
    assert "\t" not in printable(text)


def test_json_stays_the_same_json() -> None:
    value = {EVIL: [EVIL, "\x7f\u2028"]}
    out = io.StringIO()
    print(json.dumps(value, ensure_ascii=False), file=Printed(out))
    assert json.loads(out.getvalue()) == value
    assert not any(order in out.getvalue() for order in ORDERS)


def test_bytes_for_a_terminal_are_text() -> None:
    out = io.StringIO()
    sink = PrintedBytes(out)
    for byte in f"é{EVIL}\n".encode() + b"\xff\n":
        sink.write(bytes([byte]))
    assert out.getvalue() == "é\\u001b]0;owned\\u0007\\u009b2J\\u202e\n\\xff\n"


def test_a_console_keeps_its_colours() -> None:
    from rich.table import Table

    out = io.StringIO()
    table = Table(title=EVIL)
    table.add_column(EVIL, style="red")
    table.add_row(EVIL)
    console_of(Printed(out), force_terminal=True, width=200, color_system="standard").print(table)
    assert "\x1b[31m" in out.getvalue()
    assert not any(order in out.getvalue() for order in ORDERS)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    cf.write(pa.table({f"{EVIL}c": [1, 2], "s": [f"{EVIL}v"] * 2}), tmp_path / "x.orc")
    cf.write(pa.table({f"{EVIL}c": [1, 3], "s": [f"{EVIL}v"] * 2}), tmp_path / "y.orc")
    cells = pa.table({"key": [f"k{EVIL}".encode()], "value": [b"v"]})
    cf.write(cells, tmp_path / "h.hfile", metadata={f"M{EVIL}": f"m{EVIL}"})
    content = (tmp_path / "x.orc").read_bytes()
    folder = tmp_path / "src" / f"t{EVIL}" / "p=1"
    folder.mkdir(parents=True)
    (folder / f"f{EVIL}.orc").write_bytes(content)
    (folder / f"g{EVIL}.orc").write_bytes(content[:-30])
    (tmp_path / f"bad{EVIL}.orc").write_bytes(content[:-30])
    (tmp_path / "t.sql").write_text(f"create table `a{EVIL}b` (x int) stored as orc location '/x';\n")
    return tmp_path


COMMANDS = [
    ["detect", "BAD"],
    ["schema", "x.orc"],
    ["meta", "x.orc"],
    ["meta", "h.hfile"],
    ["stats", "x.orc"],
    ["splits", "GOOD"],
    ["head", "x.orc"],
    ["head", "x.orc", "--vertical"],
    ["cat", "x.orc"],
    ["cat", "x.orc", "--to", "csv"],
    ["cat", "x.orc", "--to", "jsonl"],
    ["count", "BAD"],
    ["keys", "h.hfile"],
    ["get", "h.hfile", EVIL],
    ["sizes", "x.orc"],
    ["index", "x.orc"],
    ["diff", "x.orc", "y.orc"],
    ["sql", "select * from 'x.orc'"],
    ["sql", f"select '{EVIL}' from nowhere"],
    ["summarize", "x.orc"],
    ["tables", "src"],
    ["tables", "src", "--format", "tables"],
    ["tables", "t.sql"],
    ["inspect", "x.orc"],
    ["dictionary", "-c", "s", "x.orc"],
    ["verify", "BAD"],
    ["verify", "src"],
    ["layout", "x.orc", "-o", "-"],
    ["convert", "BAD", "out.orc"],
    ["head", "x.orc", "-c", EVIL],
    ["head", f"no{EVIL}"],
    [f"no{EVIL}"],
    ["-vv", "count", "GOOD"],
    ["migrate", "src", "dst", "--master", "in-process", "--on-error", "quarantine"],
    ["migrate", "src", "dst2", "--master", "in-process", "--dry-run"],
    ["audit", "dst"],
]


def on_terminal(arguments: list[str], place: Path) -> bytes:
    """What a command sends to its terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLDFRAME_PAGER": "", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "coldframe", *arguments]
    process = subprocess.Popen(
        command, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    seen = b""
    try:
        while got := os.read(ours, 65536):
            seen += got
    except OSError:  # the other end is closed
        pass
    process.wait()
    os.close(ours)
    return seen


def named(arguments: list[str]) -> list[str]:
    good = f"src/t{EVIL}/p=1/f{EVIL}.orc"
    return [{"BAD": f"bad{EVIL}.orc", "GOOD": good}.get(word, word) for word in arguments]


def test_no_command_obeys_a_file(files: Path) -> None:
    raw = []
    for arguments in COMMANDS:
        seen = on_terminal(named(arguments), files)
        assert seen, arguments
        text = seen.decode("utf-8", "surrogateescape")
        if any(order in text for order in ORDERS):
            raw.append(arguments[:2])
    assert raw == []


@pytest.mark.parametrize("arguments", [words for words in COMMANDS if words[0] not in ("migrate", "audit")])
def test_nor_where_it_goes_to_a_pipe(
    files: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if arguments[0] in ("cat", "layout"):
        pytest.skip("a pipe gets the bytes as they are")
    monkeypatch.chdir(files)
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with contextlib.suppress(SystemExit):  # argparse
        main(named(arguments))
    out, err = capfd.readouterr()
    assert not any(order in out + err for order in ORDERS)


@pytest.mark.parametrize("command", ["schema", "meta", "stats", "sizes", "inspect", "verify", "detect"])
def test_json_of_commands(
    files: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    main([command, "--json", "x.orc"])
    out = capsys.readouterr().out
    assert not any(order in out for order in ORDERS)
    parsed = json.loads(out)
    if command == "schema":
        assert EVIL in parsed[0]["name"]


@pytest.fixture(autouse=True)
def streams() -> Iterator[Any]:
    before = sys.stdout, sys.stderr
    yield
    assert (sys.stdout, sys.stderr) == before or not isinstance(sys.stdout, Printed)
