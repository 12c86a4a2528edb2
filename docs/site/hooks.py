"""Generates the pages of the site that come from the code, and adapts the links of the other pages."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Pages of the site that lie at the root of the checkout, where hosts of repositories look for them."""


def on_files(files: Any, config: Any) -> Any:
    """Adds the reference of the command line, and the pages at the root of the checkout."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "cli.md", content=command_line()))
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Directs links to pages of the site. Replaces links to other files of the checkout with their text."""
    uri = page.file.src_uri
    folder = "." if uri in OUTSIDE.values() else str(Path("docs", uri).parent)
    own = str(Path(uri).parent)

    def adapted(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return link[0]
        target = os.path.normpath(os.path.join(folder, path))
        inside = OUTSIDE.get(target, target.removeprefix("docs/"))
        if inside == target:
            return link[1]
        return f"[{link[1]}]({os.path.relpath(inside, own)}{mark}{anchor})"

    return _LINK.sub(adapted, markdown)


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
