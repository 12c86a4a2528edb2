"""The command line and the shell: patterns, standard input, completion, pager, colours."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe.cli import main, parser_of_all
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


def test_commands_expand_patterns(folder: Path) -> None:
    assert json.loads(coldframe("meta", "*.orc", "--json", cwd=folder).stdout)["a.orc"]["rows"] == 100
    assert coldframe("meta", "*.orc", cwd=folder).stdout.count("format: orc") == 2
    assert coldframe("verify", "*.orc", cwd=folder).stdout.count("no damage found, 100 rows") == 2
    assert coldframe("detect", "*.orc", cwd=folder).stdout == "a.orc: orc\nb.orc: orc\n"
    assert coldframe("count", "*.orc", cwd=folder).stdout == "200\n"
    assert json.loads(coldframe("sizes", "*.orc", "--json", cwd=folder).stdout)[0]["column"] == "id"
    missing = coldframe("meta", "*.nothing", cwd=folder)
    assert missing.returncode == 2
    assert "no file matches" in missing.stderr


@pytest.mark.parametrize("command", ["cat", "head", "count", "schema", "meta", "verify", "detect", "sizes"])
def test_a_file_is_read_from_standard_input(command: str, folder: Path) -> None:
    with (folder / "a.orc").open("rb") as source:
        done = coldframe(command, "-", cwd=folder, stdin=source)
    assert done.returncode == 0, done.stderr
    assert {"count": "100\n", "detect": "-: orc\n"}.get(command, done.stdout) == done.stdout
    assert done.stdout


def test_every_command_takes_patterns_urls_and_standard_input(tmp_path: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    pairs = pa.table({"key": [f"row-{i:03}" for i in range(100)], "value": [b"x"] * 100})
    for name, table, format, options in (
        ("a.orc", ROWS, "orc", {}),
        ("b.orc", ROWS, "orc", {}),
        ("a.hfile", pairs, "hfile", {"view": "kv"}),
        ("b.hfile", pairs.slice(50), "hfile", {"view": "kv"}),
    ):
        cf.write(table, tmp_path / name, format=format, **options)
        cf.write(table, f"memory://cli/{name}", format=format, **options)
    commands: list[tuple[str, list[str], int]] = [
        *(
            (name, [name, "{orc}"], 0)
            for name in ("detect", "schema", "meta", "stats", "splits", "head", "cat")
        ),
        *((name, [name, "{orc}"], 0) for name in ("count", "sizes", "index", "inspect", "verify")),
        ("convert", ["convert", "{orc}", str(tmp_path / "out.parquet"), "--overwrite"], 0),
        ("salvage", ["salvage", "{orc}", str(tmp_path / "out.parquet"), "--overwrite"], 0),
        ("layout", ["layout", "{orc}", "-o", "-"], 0),
        ("summarize", ["summarize", "{orc}"], 0),
        ("bloom", ["bloom", "{orc}", "-c", "id", "--test", "7"], 0),
        ("get", ["get", "{hfile}", "row-060"], 0),
        ("scan", ["scan", "{hfile}", "--prefix", "row-06"], 0),
        ("keys", ["keys", "{hfile}"], 0),
        ("dictionary", ["dictionary", "{orc}", "-c", "name"], 0),
        ("get", ["get", "{hfile}", "row-999"], 1),
    ]
    seen = set()
    for name, arguments, code in commands:
        outputs = []
        for place in (str(tmp_path), "memory://cli"):
            given = [word.format(orc=f"{place}/?.orc", hfile=f"{place}/*.hfile") for word in arguments]
            outputs.append(in_process(given, code))
        # The outputs differ only in the names.
        plain = [text.replace(str(tmp_path), "").replace("memory://cli", "") for text in outputs]
        if name not in ("layout", "inspect", "convert", "salvage", "summarize"):  # whose numbers vary
            assert plain[0] == plain[1], arguments
        for kind in ("orc", "hfile"):
            if f"{{{kind}}}" in arguments:
                given = [word.format(orc="-", hfile="-") for word in arguments]
                with (tmp_path / f"a.{kind}").open("rb") as source:
                    done = subprocess.run(
                        [sys.executable, "-m", "coldframe", *given],
                        stdin=source,
                        capture_output=True,
                        check=False,
                    )
                assert done.returncode == code, (arguments, done.stderr)
        seen.add(name)
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 100  # standard input was converted last
    assert (
        in_process(["get", str(tmp_path / "*.hfile"), "row-060", "--format", "jsonl"], 0).count("row-060")
        == 2
    )
    cells = in_process(["scan", str(tmp_path / "*.hfile"), "-n", "120", "--format", "jsonl"], 0).splitlines()
    assert [json.loads(line)["key"] for line in (cells[0], cells[100], cells[-1])] == [
        "row-000",
        "row-050",
        "row-069",
    ]
    summaries = json.loads(in_process(["inspect", str(tmp_path / "?.orc"), "--json"], 0))
    assert len(summaries) == 2
    for arguments in (["layout", "{}/a.orc", "-o"], ["salvage", "{}/?.orc"], ["convert", "{}/?.orc"]):
        target = "memory://cli/new.parquet"
        in_process([word.format("memory://cli") for word in arguments] + [target], 0)
        assert memory.exists("/cli/new.parquet"), arguments
        memory.rm("/cli/new.parquet")
    # Other tests cover most of these commands.
    others = {
        "diff",
        "migrate",
        "audit",
        "delete",
        "completion",
        "version",
        "sql",
        "tables",
        "options",
        "unswitch",
        "help",
        "sample",
        "status",
    }
    assert seen | others == set(commands_of(parser_of_all()))


def in_process(arguments: list[str], code: int) -> str:
    """The standard output of a command, which must end with this exit code."""
    out, err = io.BytesIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
        contextlib.redirect_stderr(err),
    ):
        assert main(arguments) == code, (arguments, err.getvalue())
        sys.stdout.flush()
        return out.getvalue().decode()


def test_rows_are_printed_in_every_form(folder: Path) -> None:
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

    def completed(*arguments: str) -> set[str]:
        typed = " ".join(f"'{word}'" for word in arguments)
        program = (
            f"source {path}; COMP_WORDS=(coldframe {typed}); COMP_CWORD={len(arguments)}; _coldframe; "
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
    # Options of formats: their names and choices, also where bash splits at the equals sign.
    assert completed("head", "x", "--option", "timestamp_u") == {"timestamp_unit=ns", "timestamp_unit=us"}
    assert completed("head", "x", "--option", "timestamp_unit", "=", "u") == {"us"}
    assert completed("head", "x", "--option", "timestamp_unit", "=") == {"ns", "us"}
    assert completed("convert", "x", "y", "--write-option", "stripe_s") == {"stripe_size="}


def test_options_of_formats_are_listed() -> None:
    text = in_process(["options", "orc"], 0)
    assert 'timestamp_unit  (ns|us, default "ns")' in text
    known = json.loads(in_process(["options", "--write", "--json"], 0))
    assert known["orc"]["codec"]["choices"][:2] == ["zstd", "zlib"]
    assert known["orc"]["codec"]["aliases"] == ["compression"]
    assert known["orc"]["stripe_size"]["default"] == 64 << 20
    assert "kudu" not in known


COMPLETED = [
    ("coldframe comp", {"completion"}),
    ("coldframe sc", {"scan", "schema"}),
    ("coldframe count --whe", {"--where"}),
    ("coldframe cat x --format j", {"jsonl"}),
    ("coldframe migrate --on-error q", {"quarantine"}),
    ("coldframe completion f", {"fish"}),
    ("coldframe head a.o", {"a.orc"}),
]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed: its script was not run")
def test_fish_completes_commands(tmp_path: Path) -> None:
    path = tmp_path / "coldframe.fish"
    path.write_text(script(parser_of_all(), "fish"))
    (tmp_path / "a.orc").touch()
    for typed, wanted in COMPLETED:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {path}; complete -C '{typed}'"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        assert {line.split("\t")[0] for line in done.stdout.splitlines()} == wanted, typed
        assert done.stderr == ""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed: its script was not run")
@pytest.mark.parametrize("loaded", ["autoload", "source"])
def test_zsh_completes_commands(loaded: str, tmp_path: Path) -> None:
    """Loaded from a folder in fpath, as the help recommends, or sourced in .zshrc."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_coldframe").write_text(script(parser_of_all(), "zsh"))
    (tmp_path / "a.orc").touch()
    start = {
        "autoload": "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump",
        "source": "autoload -Uz compinit; compinit -u -d $PWD/dump; source functions/_coldframe",
    }[loaded]
    for typed, wanted in COMPLETED:
        shown = in_zsh(start, typed, tmp_path)
        if len(wanted) == 1:
            assert f"{typed.rpartition(' ')[0]} {min(wanted)} " in shown, shown
        else:
            assert all(f"{word} " in shown for word in wanted), shown
        assert "not found" not in shown


def in_zsh(start: str, typed: str, folder: Path) -> str:
    """The command line after a tab, and the list below it."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        settings = {"TERM": "dumb", "HOME": str(folder), "COLUMNS": "200", "LINES": "100"}
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, **settings})

    def read_until(mark: str) -> str:
        seen = ""
        while mark not in seen:
            assert select.select([terminal], [], [], 60)[0], seen
            seen += os.read(terminal, 65536).decode(errors="replace")
        return seen

    try:
        # The shell assembles the marks, so that the echo of the input contains no marks. Ctrl-X prints the
        # second mark after the line with its tab was processed.
        mark = "taken() { zle -I; print -r -- \"[$BUFFER] co\"mplete }; zle -N taken; bindkey '^X' taken"
        os.write(terminal, f"PS1=; {start}; setopt noautomenu; {mark}; print rea''dy\n".encode())
        read_until("ready")
        os.write(terminal, f"{typed}\t\x18".encode())
        return read_until("] complete")
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(child, 0)


def on_terminal(*arguments: object, cwd: Path, **environment: str) -> str:
    """The output of a command on a terminal."""
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
        except OSError:  # the other end is closed
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
    # Quitting the pager early ends the command without an error.
    assert "Traceback" not in on_terminal("cat", *["a.orc"] * 200, cwd=folder, COLDFRAME_PAGER="head -n 2")
