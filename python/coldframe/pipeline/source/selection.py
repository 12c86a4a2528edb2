"""Which files of the source are selected: `--include` and `--exclude`.

    *.bak             a pattern without a slash: any file or directory of that name, at any depth
    sales/dt=2014*    with one: the path from the source's root; * and ? do not match a slash
    **/old            ** does

A directory that matches is selected with everything below it. If there are include patterns, a file must
match one of them; what matches an exclude pattern is left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Selecting(Protocol):
    """Decides which files a walk takes and which directories it enters."""

    def takes(self, relative: str) -> bool:
        """Whether a file is selected, by its path relative to the root of the walk."""

    def enters(self, relative: str) -> bool:
        """Whether a directory must be examined."""


@dataclass(frozen=True)
class Selection:
    """The patterns of a run."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def has_patterns(self) -> bool:
        """Whether the user's patterns may leave out files of a table."""
        return bool(self.include or self.exclude)

    def takes(self, relative: str) -> bool:
        """Whether a file is selected, by its path relative to the source's root."""
        if self.include and not any(_matches(pattern, relative) for pattern in self.include):
            return False
        return not any(_matches(pattern, relative) for pattern in self.exclude)

    def enters(self, relative: str) -> bool:
        """Whether a directory must be examined."""
        return not relative or not any(_matches(pattern, relative) for pattern in self.exclude)


def select(include: Sequence[str], exclude: Sequence[str]) -> Selection:
    """Builds the selection."""
    return Selection(
        tuple(pattern.strip("/") for pattern in include), tuple(pattern.strip("/") for pattern in exclude)
    )


def _matches(pattern: str, relative: str) -> bool:
    compiled = _compiled(pattern)
    names = relative.split("/")
    if "/" not in pattern and pattern != "**":
        return any(compiled.fullmatch(name) for name in names)
    return any(compiled.fullmatch("/".join(names[:depth])) for depth in range(1, len(names) + 1))


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            letter = pattern[at]
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter)))
            at += 1
    return re.compile("".join(parts), re.DOTALL)
