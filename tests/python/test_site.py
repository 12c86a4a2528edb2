"""The documentation site builds without a warning, and its links work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings_handlers")


def test_options_page_matches_the_code() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "site" / "options.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stderr


def test_a_format_has_a_page_with_bytes_options_damage_and_limits() -> None:
    from coldframe._coldframe import formats

    for name in formats():
        text = (ROOT / "docs" / "formats" / f"{name}.md").read_text(encoding="utf-8")
        assert re.search(r"^(    |```text)", text, re.MULTILINE), f"{name}: no byte diagram"
        for title in ("Damage", "Limits"):
            assert re.search(rf"^## {title}$", text, re.MULTILINE), f"{name}: no section {title}"
        assert f"options.md#{name}" in text, f"{name}: no link to its options"
        assert f"formats/{name}.md" in (ROOT / "mkdocs.yml").read_text()


def test_the_site_builds(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(tmp_path / "site"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "python")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    api = (tmp_path / "site" / "api" / "index.html").read_text()
    for name in (
        "coldframe.File.to_batches",
        "coldframe.Dataset.splits",
        "coldframe.write",
        "coldframe.File.get_many",
    ):
        assert f'id="{name}"' in api, name
    commands = (tmp_path / "site" / "cli" / "index.html").read_text()
    for command in ("get", "diff", "layout", "salvage"):
        assert f'<h2 id="{command}">' in commands
    assert "--on-error" in commands
    pages = list((tmp_path / "site").rglob("index.html"))
    assert len(pages) > 12
    for page in pages:
        for link in re.findall(r'<a [^>]*href="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            target = (page.parent / link).resolve()
            assert (target / "index.html").exists() or target.is_file(), f"{page}: {link}"
