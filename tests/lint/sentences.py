"""Draws sentences at random, for a reader who marks the sentences that need a second reading.

    python tests/lint/sentences.py [--seed N] [--count N] [ROOT]    prints `number path:line sentence`

The sentences come from comments, docstrings, names of tests (as words) and texts for users in the Python,
Rust and Java files that git tracks. The same seed draws the same sentences from the same files.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scanner import CODE, Piece, pieces, prose, tracked

SHORTEST = 3
"""The minimum number of words in a sentence."""
PATTERNS = tuple(f"*{suffix}" for suffix in CODE)

TESTS = {
    ".py": re.compile(r"^ *(?:async )?def test_(\w+)", re.MULTILINE),
    ".rs": re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub )?fn (\w+)"),
    ".java": re.compile(r"@Test\s+(?:@\w+(?:\([^)]*\))?\s+)*(?:public )?void (\w+)"),
}
TEST_CODE = re.compile(r"^#\[cfg\(test\)\]\s*mod \w+ \{", re.MULTILINE)
"""Where the tests of a Rust file begin: their strings are no texts for users."""
IS_TEST = re.compile(r"(?:^|/)(?:tests?|benches|fuzz|examples)(?:/|\.)|coldframe-testing/")
TOOLS = re.compile(r"\s*(?:noqa|type: ignore|fmt: |pragma|SPDX|!|=+|-+)")
"""Comments for tools."""
IS_TEXT = re.compile(r"[A-Za-z]?[a-z']+,? [a-z']+,? [a-z']+")
IS_SQL = re.compile(r"\s*(?:select|insert|create|alter|drop|with|show|update|delete) ", re.IGNORECASE)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"'(\[])|\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)")
"""Where a sentence ends: at a full stop, an empty line or an item of a list."""


class Sentence(NamedTuple):
    """A sentence and its place."""

    path: str
    line: int
    text: str


def sentences(path: Path, name: str) -> Iterator[Sentence]:
    """The sentences of a source file."""
    source = path.read_text()
    read = list(pieces(path))
    for piece in prose(read):
        if not TOOLS.match(piece.text):
            yield from split(name, piece)
    if not IS_TEST.search(name):
        tests = TEST_CODE.search(source)
        last = source.count("\n", 0, tests.start()) if tests else source.count("\n") + 1
        for piece in read:
            is_text = IS_TEXT.search(piece.text) and not IS_SQL.match(piece.text)
            if piece.kind == "string" and piece.line <= last and is_text:
                yield from split(name, piece)
    for match in TESTS[path.suffix].finditer(source):
        line = source.count("\n", 0, match.start(1)) + 1
        yield Sentence(name, line, words_of(match[1]))


def words_of(test: str) -> str:
    """The name of a test as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", test).lower()


def split(name: str, piece: Piece) -> Iterator[Sentence]:
    """The sentences of a text, without fenced code."""
    text = FENCE.sub(lambda match: "\n" * (match[0].count("\n") + 1), piece.text)
    start = 0
    for end in [*(match.end() for match in END.finditer(text)), len(text)]:
        part = text[start:end]
        line = piece.line + text.count("\n", 0, start + len(part) - len(part.lstrip()))
        sentence = " ".join(part.split())
        start = end
        if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= SHORTEST:
            yield Sentence(name, line, sentence)


def drawn(root: Path, seed: int, count: int) -> list[Sentence]:
    """Sentences drawn at random, in the order of their places; equal sentences count once."""
    known: dict[str, Sentence] = {}
    for path in tracked(root, *PATTERNS):
        for sentence in sentences(path, path.relative_to(root).as_posix()):
            known.setdefault(sentence.text, sentence)
    candidates = list(known.values())
    return sorted(random.Random(seed).sample(candidates, min(count, len(candidates))))


def main() -> None:
    """Prints the sentences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    for number, sentence in enumerate(drawn(given.root, given.seed, given.count), 1):
        print(f"{number} {sentence.path}:{sentence.line} {sentence.text}")


if __name__ == "__main__":
    main()
