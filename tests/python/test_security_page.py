"""SECURITY.md: each row of its table has a test, and each test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows() -> list[list[str]]:
    text = (ROOT / "SECURITY.md").read_text().partition("## Threat model")[2]
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table[0].count("|") == 6
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[2:]]


def test_each_row_names_tests_that_exist() -> None:
    assert len(rows()) >= 13
    for who, *_, tests in rows():
        assert "no test" not in tests, who
        paths = [name for name in re.findall(r"`([^`]+)`", tests) if "/" in name or name.endswith(".toml")]
        assert paths, who
        for name in paths:
            assert list(ROOT.glob(name.rstrip("/"))), f"{who}: {name}"


def test_functions_that_it_names_exist() -> None:
    for who, *_, tests in rows():
        for function, path in re.findall(r"`(\w+)`(?: and `\w+`)? in `([^`]+\.(?:rs|py))`", tests):
            assert f"fn {function}(" in (ROOT / path).read_text(), f"{who}: {function}"
