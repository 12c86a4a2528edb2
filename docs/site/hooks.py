"""Generates the pages of the site that come from the code, and adapts the links of the others."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    """Adds the reference of the command line."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "cli.md", content=command_line()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replaces links to files of the checkout that are not pages with their text."""
    folder = Path(page.file.src_uri).parent

    def keep(link: re.Match[str]) -> str:
        target = os.path.normpath(folder / link[2].partition("#")[0])
        is_page = re.match(r"[a-z]+:", link[2]) or not target.startswith("..")
        return link[0] if is_page else link[1]

    return _LINK.sub(keep, markdown)


def command_line() -> str:
    """Every command with its help, from the parser."""
    os.environ["COLUMNS"] = "100"
    from coldframe.cli import parser_of_all
    from coldframe.cli.completion import commands_of

    parser = parser_of_all()
    parts = ["# Command line\n", _block(parser)]
    for name, (_, command) in commands_of(parser).items():
        parts.append(f"## {name}\n\n{_block(command)}")
    return "\n".join(parts)


def _block(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```\n"
