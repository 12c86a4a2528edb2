"""The start of the command line: what it loads, its help, and its answers to mistyped words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.cli.commands import _MODULES, nearest, parser_for, parser_of_all
from coldframe.cli.completion import commands_of

HEAVY = ("pyarrow", "numpy", "rich", "duckdb", "pandas", "polars", "pyspark", "coldframe.pipeline")


@pytest.fixture
def orc(tmp_path: Path) -> Path:
    path = tmp_path / "rows.orc"
    cf.write(pa.table({"id": range(10), "name": [f"name {i}" for i in range(10)]}), path)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as end:  # raised by argparse
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    "words",
    [
        "--version",
        "--help",
        "help",
        "help head",
        "head --help",
        "options orc",
        "detect FILE",
        "count FILE",
        "count FILE --json",
        "meta FILE",
        "meta FILE --json",
        "stats FILE",
        "schema FILE",
        "schema FILE --json",
        "head FILE",
        "head FILE -c name --vertical",
        "verify FILE",
        "inspect FILE",
        "detect FILE/nothing",
        "hed FILE",
    ],
)
def test_commands_without_rows_load_no_arrow(words: str, orc: Path) -> None:
    code = (
        "import sys; from coldframe.entry import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    arguments = words.replace("FILE", str(orc)).split()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sql", "select max(id) m, min(name) n from 'FILE' where id > 7"], "m\tn\n9\tname 8\n"),
        (["head", "FILE", "--json", "-n", "1", "--where", "id = 3"], '{"id": 3, "name": "name 3"}\n'),
        (["cat", "FILE", "--limit", "1"], '"id","name"\n0,"name 0"\n'),
        (["schema", "FILE", "--as", "hive"], "`id` bigint, `name` string\n"),
    ],
)
def test_rows_are_printed_without_numpy_and_pandas(words: list[str], expected: str, orc: Path) -> None:
    code = (
        "import sys; from coldframe.entry import main; main()\n"
        "print(*[name for name in ('numpy', 'pandas') if sys.modules.get(name)], file=sys.stderr)"
    )
    arguments = [word.replace("FILE", str(orc)) for word in words]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (expected, "\n")


def test_only_a_process_of_our_own_does_without_numpy() -> None:
    code = (
        "import sys; from coldframe.arrow import own_process, without_numpy; without_numpy()\n"
        "print('numpy' in sys.modules); own_process(); without_numpy(); print('numpy' in sys.modules)\n"
        "import pyarrow as pa; print(pa.array([1]).to_pylist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue\n[1]\n"


def test_a_command_loads_its_own_module_alone(orc: Path) -> None:
    code = (
        "import sys; from coldframe.entry import main; main()\n"
        "print(*[name for name in sys.modules if name.startswith('coldframe.cli.')], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "count", str(orc)], capture_output=True, text=True, check=True
    )
    loaded = {name.rpartition(".")[2] for name in done.stderr.split()}
    assert loaded & set(_MODULES) == {"reading"}


def test_the_list_of_modules_names_every_command() -> None:
    listed = [name for names in _MODULES.values() for name in names]
    assert sorted([*listed, "help", "version"]) == sorted(commands_of(parser_of_all()))
    for module, names in _MODULES.items():
        added = commands_of(parser_for([names[0]]))
        assert set(added) == {*names, "help", "version"}, module


def test_pyarrow_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, coldframe as cf; from coldframe.arrow import pa; cf.scan; cf.open; cf.write\n"
        "print('pyarrow' in sys.modules, pa.int64() == __import__('pyarrow').int64())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


def test_help_of_a_command(run: Any) -> None:
    for words in (("help", "head"), ("help", "migrate"), ("help", "audit")):
        code, out, _ = run(*words)
        assert code == 0
        assert out.startswith(f"usage: coldframe {words[1]} ")
        assert "-h, --help" in out
    assert "--on-error" in run("help", "migrate")[1]
    code, out, _ = run("help")
    assert code == 0
    assert "first steps:" in out
    for name in commands_of(parser_of_all()):
        assert f"\n    {name} " in out or f"\n    {name}\n" in out


@pytest.mark.parametrize(
    ("words", "message", "step"),
    [
        (["verfy", "head"], "no command 'verfy'", "verify"),
        (["haed", "x"], "no command 'haed': one of detect, ", "head"),
        (["help", "migrte"], "no command 'migrte': one of detect, ", "migrate"),
        (["head", "x", "--colums", "a"], "unrecognized arguments: --colums a", "--columns"),
        (["head", "x", "--shcema=a"], "unrecognized arguments: --shcema=a", "--schema"),
        (["migrate", "a", "b", "--on-eror", "skip"], "unrecognized arguments: --on-eror skip", "--on-error"),
        (["head", "x", "--on-error", "skp"], "argument --on-error: no value 'skp': one of raise,", "skip"),
        (["options", "rcfiel"], "argument format: no value 'rcfiel': one of ", "rcfile"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(
    words: list[str], message: str, step: str, run: Any
) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert message in err
    assert err.endswith(f"  next: did you mean {step!r}?\n")


def test_a_word_like_no_other_gets_the_list_alone(run: Any) -> None:
    _, _, err = run("xyzzy")
    assert "no command 'xyzzy': one of detect, " in err
    assert "next:" not in err


def test_nearest() -> None:
    assert nearest("Amuont", ["id", "amount", "account"]) == "amount"
    assert nearest("ID", ["id"]) == "id"
    assert nearest("q", ["id", "amount"]) is None
