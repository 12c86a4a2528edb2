"""Finds words of the old private vocabulary in names and in prose.

    python tests/lint/words.py [ROOT]            prints each place; exit 1 if there are any
    python tests/lint/words.py --count [ROOT]    prints the number of places by word and by file

- Names: of variables, functions, fields, types and modules in Python, Rust and Java. A banned word may not be
  a part of a name between underscores; a few words are banned only as whole names.
- Prose: comments, docstrings and Markdown may not contain the banned phrases.

`EXCEPTIONS` and `EXCEPTED_PLACES` list what is allowed, each with its reason.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scanner import CODE, pieces, prose, tracked

ROOMS = ("python", "tests", "benches", "packaging", "docs/site", "crates", "fuzz", "jvm")
PAGES = ("README.md", "docs/*.md", "crates/*.md")

PARTS = {
    "found": "the thing's own name: rows, value, file, entry; in errors `actual`",
    "told": "message, report, output, findings",
    "said": "message, text, output",
    "toll": "cost",
    "glance": "preview, summary",
    "sift": "filter, select",
    "demand": "check, need",
    "stands": "is_valid, exists, holds",
}
"""Words that may not be a part of a name between underscores, with better words."""

WHOLE = {
    "one": "the thing's own name: table, file, column, item",
    "Stand": "Position, Cursor",
    "Toll": "Cost, Budget",
    "Sight": "Visible, View",
    "Heads": "Heap, Cursors",
    "Due": "Pending",
    "Underway": "Pending, Running",
}
"""Words that may not be a whole name."""

MODULES = {
    "glance": "preview, summary",
    "choices": "options, selection",
    "ranged": "ranges, reads",
    "prunable": "pruning",
    "facts": "statistics, metadata",
    "handled": "handlers",
    "claims": "statistics, checks",
    "others": "foreign, unrelated",
    "sift": "filter",
    "words": "tokens, text",
    "stated": "statistics",
}
"""Words that may not be the name of a file or module."""

PHRASES = {
    r"(?:is|are|was|were) told": "is reported, gets",
    r"and told": "and reported",
    r"(?:tells?|says?) whether": "returns whether, is true if",
    r"stands? for": "means, represents",
    r"what is left of": "the rest of, the remaining",
    r"such as has": "for example one with",
    r"keeps two runs apart": "serves as the lock",
    r"only where there is none": "if it does not exist",
}
"""Phrases (regular expressions; a space is any white space) that prose may not contain."""

EXCEPTIONS = {
    r"(?i:\w*not_found\w*)": "the error's name in the standard library, in object stores and in HTTP",
    r"SEEK_TO_FOUND": "a constant of HBase",
    r"(?<!self\.)(?<=\.)found\b": "a use; the field or method is reported where it is defined",
    r"(?<=def )found(?=\(self\))|(?<=fn )found(?=\(&self\))": "the public `Dataset.found`",
}
"""Names that are allowed (regular expressions, which see the whole line), with the reasons."""

EXCEPTED_PLACES = {
    ("tests/lint/words.py", "words"): "this file",
}
"""A file and a word that is allowed there, with the reason."""

PATTERNS = {
    phrase: re.compile(r"\b" + phrase.replace(" ", r"\s+") + r"\b", re.IGNORECASE) for phrase in PHRASES
}
NAMES = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(PARTS)})(?![A-Za-z])|\b(?:{'|'.join(WHOLE)})\b|\bMOST_", re.IGNORECASE
)
"""A file in which this pattern does not match has no banned name."""
ALLOWED = re.compile("|".join(EXCEPTIONS))


class Problem(NamedTuple):
    """A banned word or phrase in a file."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word} -> {self.instead}"


def banned_in(name: str) -> tuple[str, str] | None:
    """The banned word in a name, with what to use instead."""
    if name in WHOLE:
        return name, WHOLE[name]
    if name.startswith("MOST_"):
        return name, "MAX_"
    word = next((part for part in name.lower().split("_") if part in PARTS), None)
    return (name, PARTS[word]) if word else None


def is_allowed(line: str, column: int) -> bool:
    """Whether the name at `column` is an exception."""
    return any(match.start() <= column < match.end() for match in ALLOWED.finditer(line))


def module_of(path: Path) -> str:
    """The name of the module in a file."""
    return path.parent.name if path.stem in ("mod", "__init__") else path.stem


def code_problems(path: Path, name: str) -> Iterator[Problem]:
    """Names and prose of a source file."""
    module = module_of(path)
    if module in MODULES:
        yield Problem(name, 1, module, MODULES[module])
    source = path.read_text()
    if not NAMES.search(source) and not any(pattern.search(source) for pattern in PATTERNS.values()):
        return
    lines = source.splitlines()
    read = list(pieces(path))
    for piece in read:
        banned = banned_in(piece.text) if piece.kind == "name" else None
        if banned and not is_allowed(lines[piece.line - 1], piece.column):
            yield Problem(name, piece.line, *banned)
    for piece in prose(read):
        yield from prose_problems(name, piece.text, piece.line)


def prose_problems(name: str, text: str, line: int) -> Iterator[Problem]:
    """Banned phrases of a text that begins at `line`."""
    for phrase, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            at = line + text.count("\n", 0, match.start())
            yield Problem(name, at, " ".join(match[0].split()).lower(), PHRASES[phrase])


def problems(root: Path) -> Iterator[Problem]:
    """All problems below `root`."""
    for path in tracked(root, *ROOMS, *PAGES):
        name = path.relative_to(root).as_posix()
        if path.suffix in CODE:
            places = code_problems(path, name)
        elif path.suffix == ".md" and (name == "README.md" or name.startswith(("docs/", "crates/"))):
            places = prose_problems(name, path.read_text(), 1)
        else:
            continue
        yield from (place for place in places if (name, place.word) not in EXCEPTED_PLACES)


def main(root: Path, *, is_count: bool) -> int:
    """Prints the problems, or their numbers; returns how many there are."""
    places = list(problems(root))
    if is_count:
        for counts in (Counter(place.word for place in places), Counter(place.path for place in places)):
            for key, number in counts.most_common():
                print(f"{number:6} {key}")
            print()
    else:
        for place in places:
            print(place)
    return len(places)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    top = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    sys.exit(1 if main(top, is_count="--count" in sys.argv) else 0)
