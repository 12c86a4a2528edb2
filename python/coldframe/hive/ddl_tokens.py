"""Splits Hive's statements into tokens.

CREATE      a word         `id`      a quoted name        'it\\'s'     a text
-- ..       a comment      | .. |    a line of beeline's frame
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from coldframe.errors import SchemaError


@dataclass(frozen=True)
class Token:
    """A part of a statement."""

    text: str
    line: int
    is_text: bool = False
    is_quoted: bool = False


_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<word>[\w$]+|[(),;.<>:=*+-])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)", re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_FRAME = re.compile(r"^\|(.*)\|\s*$")
_NOISE = re.compile(r"^(\+[-+]*\+|\|?\s*createtab_stmt\s*\|?|OK|Time taken: .*|\d+ rows selected.*)\s*$")
"""Lines that hive and beeline print around statements."""


def tokens(text: str, path: str) -> Iterator[Token]:
    """The tokens; raises SchemaError with the line for anything else."""
    text = "\n".join(map(_unframed, text.split("\n")))
    if (match := re.search("[\udc80-\udcff]", text)) is not None:
        line = text.count("\n", 0, match.start()) + 1
        raise SchemaError(f"{path}: line {line}: not UTF-8")
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            shown = text[at : at + 30].split("\n")[0]
            raise SchemaError(f"{path}: line {line}: expected a Hive statement, found {shown!r}")
        if match["text"] is not None:
            yield Token(_ESCAPE.sub(_letter, match[0][1:-1]), line, is_text=True)
        elif match["name"] is not None:
            yield Token(match[0][1:-1].replace("``", "`"), line, is_quoted=True)
        elif match["word"] is not None:
            yield Token(match[0], line)
        line += match[0].count("\n")
        at = match.end()


def _unframed(line: str) -> str:
    if _NOISE.match(line):
        return ""
    framed = _FRAME.match(line)
    return line if framed is None else framed[1]


def _letter(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if len(escape) == 3:
        return chr(int(escape, 8))
    # Hive keeps these backslashes for LIKE.
    return f"\\{escape}" if escape in "%_" else _LETTERS.get(escape, escape)
