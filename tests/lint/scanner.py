"""Splits source files into names, comments and strings, for `words.py` and `sentences.py`.

Python is split by the module `tokenize`. Rust and Java share a small scanner, which knows comments (nested in
Rust), strings (raw strings, text blocks), characters and lifetimes.
"""

from __future__ import annotations

import io
import re
import subprocess
import token
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

CODE = (".py", ".rs", ".java")


class Piece(NamedTuple):
    """A part of a source file. `kind` is name, comment, docstring or string."""

    kind: str
    text: str
    line: int
    column: int = 0


RUST_OR_JAVA = re.compile(
    r"""
    (?P<line_comment> // [^\n]* )
  | (?P<block_comment> /\* )                                             # `nested` finds its end
  | [bc]? r (?P<hashes> \#* ) " (?P<raw> .*? ) " (?P=hashes)
  | \"{3} (?P<block> (?: \\. | (?!\"{3}) . )* ) \"{3}
  | [bc]? " (?P<string> (?: \\. | [^"\\] )* ) "
  | b? ' (?: \\u \{? [0-9a-fA-F]+ \}? | \\. [^']* | [^'\\\n] ) '         # characters
  | ' \w+                                                                # lifetimes
  | (?: r\# )? (?P<name> [A-Za-z_] \w* )
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_MARK = re.compile(r"\A\s*(?://[/!]?|/\*[*!]?|\*(?!/)|#+:?)[ \t]?|[ \t]*\*/\Z", re.MULTILINE)


def tracked(root: Path, *paths: str) -> list[Path]:
    """The files below `root` that git tracks, of these paths or patterns."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--", *paths]
    names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    return [root / name for name in names if name and (root / name).is_file()]


def pieces(path: Path) -> Iterator[Piece]:
    """The pieces of a file, in order."""
    source = path.read_text()
    return python_pieces(source) if path.suffix == ".py" else other_pieces(source, path.suffix == ".rs")


def python_pieces(source: str) -> Iterator[Piece]:
    tokens = [
        item
        for item in tokenize.generate_tokens(io.StringIO(source).readline)
        if item.type not in (token.INDENT, token.DEDENT, tokenize.NL)
    ]
    at_start = True
    for item, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        line, column = item.start
        if item.type == tokenize.COMMENT:
            yield Piece("comment", item.string, line, column)
            continue
        if item.type == token.NAME:
            yield Piece("name", item.string, line, column)
        elif item.type == token.STRING:
            quote = item.string.lstrip("rRbBuUfF")
            size = 3 if quote[:3] in ('"""', "'''") else 1
            is_alone = at_start and following.type in (token.NEWLINE, tokenize.COMMENT, token.ENDMARKER)
            yield Piece("docstring" if is_alone else "string", quote[size:-size], line, column)
        elif token.tok_name[item.type] == "FSTRING_MIDDLE":  # from Python 3.12 on
            yield Piece("string", item.string, line, column)
        at_start = item.type == token.NEWLINE


def other_pieces(source: str, is_rust: bool) -> Iterator[Piece]:
    """The pieces of a Rust or Java file."""
    at, line, counted = 0, 1, 0
    while match := RUST_OR_JAVA.search(source, at):
        start, at = match.start(), match.end()
        line += source.count("\n", counted, start)
        counted = start
        column = start - (source.rfind("\n", 0, start) + 1)
        kind = match.lastgroup
        if kind == "block_comment":
            at = end_of_comment(source, start, is_nested=is_rust)
            yield Piece("comment", source[start:at], line, column)
        elif kind == "line_comment":
            yield Piece("comment", match[kind], line, column)
        elif kind in ("raw", "block", "string"):
            yield Piece("string", match[kind], line, column)
        elif kind == "name":
            yield Piece("name", match[kind], line, column)


def end_of_comment(source: str, start: int, *, is_nested: bool) -> int:
    """The position after the block comment that begins at `start`."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", source[start:]):
        depth += 1 if mark[0] == "/*" and (is_nested or depth == 0) else -(mark[0] == "*/")
        if depth == 0:
            return start + mark.end()
    return len(source)


def prose(source: Iterable[Piece]) -> Iterator[Piece]:
    """Comments and docstrings without their marks; comments on adjacent lines are joined."""
    block: list[Piece] = []
    for piece in source:
        if piece.kind == "comment":
            is_next = block and (piece.line, piece.column) == (block[-1].line + 1, block[-1].column)
            if block and not (is_next and mark_of(piece) == mark_of(block[-1])):
                yield joined(block)
                block = []
            block.append(piece)
        elif piece.kind == "docstring":
            yield piece
    if block:
        yield joined(block)


def mark_of(piece: Piece) -> str:
    """The characters that begin a comment."""
    match = re.match(r"//[/!]?|/\*|#", piece.text)
    return match[0] if match else ""


def joined(block: list[Piece]) -> Piece:
    """A piece for a block of comment lines; line breaks stay, so that lines can be counted."""
    text = "\n".join(piece.text for piece in block)
    lines = (COMMENT_MARK.sub("", line) for line in text.split("\n"))
    return Piece("comment", "\n".join(lines), block[0].line, block[0].column)
