"""Runs the code of pages and compares its output with the output that they show.

<!-- setup                      hidden Python: the files and names that the code uses
    ...
    -->
    ```python                       statement by statement, all blocks of a page in one namespace
    f.num_rows
    #> 550                          the value or output of the statement, or the error that it raises
    ```
    ```sh                           bash, which must not fail
    ```console
    $ coldframe count a.orc         each command, and what it prints on both streams; a last line [exit 1]
    1000
    ```
    <!-- not run: why --> before a block that is shown only; `text` is no code

Expected output may leave out text with `...`, also across lines; runs of blanks match a single blank. The
code runs in an empty directory, in which `tests` links to the tests.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(
    r"(?P<not_run><!-- not run: (?P<why>.*?) -->\s*)?"
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^ *```\s*?$"
    r"|<!-- setup\n(?P<setup>.*?)-->",
    re.DOTALL | re.MULTILINE,
)
NO_CODE = frozenset({"text", "mermaid"})
RUNNABLE = frozenset({"python", "sh", "console", "toml"})


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str | None = None
    is_setup: bool = False

    @property
    def place(self) -> str:
        """The block's page and line, for messages."""
        return f"{self.page.name}:{self.line}"


def needs_spark(page: Path) -> bool:
    """Whether a page's code uses a session named `spark`."""
    return "<!-- needs spark -->" in page.read_text(encoding="utf-8")


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, with its setup blocks."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("setup" if match["setup"] is not None else "language")) + 1
        if match["setup"] is not None:
            yield Block(page, line, "python", match["setup"], is_setup=True)
        elif match["language"] not in NO_CODE:
            code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
            yield Block(page, line, match["language"], code, match["why"])


def run_page(page: Path, folder: Path, **names: Any) -> int:
    """Runs a page in `folder`. Returns the number of blocks that ran."""
    namespace: dict[str, Any] = {"__name__": "page", "ROOT": ROOT, "DATA": ROOT / "tests" / "data", **names}
    (folder / "tests").symlink_to(ROOT / "tests")
    ran = 0
    with _inside(folder):
        for block in blocks(page):
            if block.not_run is not None:
                assert block.not_run.strip(), f"{block.place}: the reason why it is not run is missing"
                continue
            assert block.language in RUNNABLE, f"{block.place}: {block.language} blocks need a reason"
            _RUN[block.language](block, namespace)
            ran += 1
    return ran


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run_python(block: Block, namespace: dict[str, Any]) -> None:
    lines = block.code.splitlines()
    try:
        tree = ast.parse(block.code)
    except SyntaxError as error:
        raise AssertionError(f"{block.place}: {error}") from error
    for statement in tree.body:
        place = f"{block.place}, line {statement.lineno}: {lines[statement.lineno - 1].strip()}"
        end = statement.end_lineno or statement.lineno
        shown = _shown(lines[end:])
        actual = _outcome(statement, namespace, place, shown)
        if shown is not None:
            assert alike(shown, actual), f"{place}\nshown:\n{shown}\nactual:\n{actual}"


def _shown(following: list[str]) -> str | None:
    expected = []
    for line in following:
        stripped = line.strip()
        if not stripped.startswith("#>"):
            break
        expected.append(stripped[2:].removeprefix(" "))
    return "\n".join(expected) if expected else None


def _outcome(statement: ast.stmt, namespace: dict[str, Any], place: str, shown: str | None) -> str:
    printed = io.StringIO()
    value: Any = None
    try:
        with contextlib.redirect_stdout(printed):
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), place, "eval"), namespace)
            else:
                exec(compile(ast.Module([statement], []), place, "exec"), namespace)
    except Exception as error:
        name = type(error).__name__
        if shown is None or not shown.startswith(name):
            raise AssertionError(f"{place}\n{name}: {error}") from error
        return f"{name}: {error}"
    text = printed.getvalue()
    if value is not None:
        text += value if isinstance(value, str) and "\n" in value else _shown_value(value)
    return text


def _shown_value(value: Any) -> str:
    return str(value) if hasattr(value, "schema") or hasattr(value, "field") else repr(value)


def _environment() -> dict[str, str]:
    """An environment in which `coldframe` is the command of the package under test."""
    tools = Path.cwd() / ".bin"
    tools.mkdir(exist_ok=True)
    script = tools / "coldframe"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coldframe "$@"\n')
    script.chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}


def _bash(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=_environment(),
    )


def _run_sh(block: Block, _: dict[str, Any]) -> None:
    done = _bash(f"set -e\n{block.code}")
    assert done.returncode == 0, f"{block.place}: exit code {done.returncode}\n{done.stdout}"


def _run_console(block: Block, _: dict[str, Any]) -> None:
    parts = re.split(r"^\$ ", block.code, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.place}: output without a command"
    for part in parts[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command}\n{more}"
        done = _bash(command)
        actual = done.stdout + (f"[exit {done.returncode}]" if done.returncode else "")
        assert alike(shown, actual), f"{block.place}: {command}\nshown:\n{shown}\nactual:\n{actual}"


def _run_toml(block: Block, _: dict[str, Any]) -> None:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tomllib.loads(block.code)
    except ValueError as error:
        raise AssertionError(f"{block.place}: {error}") from error


def alike(shown: str, actual: str) -> bool:
    """Whether the actual output matches the shown output."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split("...")]
    pattern = r"\s*.*?\s*".join(part.replace(r"\ ", r"\s+") for part in parts)
    return re.fullmatch(pattern, " ".join(actual.split()), re.DOTALL) is not None


_RUN = {"python": _run_python, "sh": _run_sh, "console": _run_console, "toml": _run_toml}
