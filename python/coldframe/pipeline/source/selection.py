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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """The patterns of a run."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    within: frozenset[str] = frozenset()
    """The only directories to examine; all where it is empty."""

    @property
    def has_patterns(self) -> bool:
        """Whether the user's patterns may leave out files of a table."""
        return bool(self.include or self.exclude)

    @functools.cached_property
    def _above(self) -> frozenset[str]:
        """The directories that hold one of `within`."""
        return frozenset(above for place in self.within for above in _prefixes(place))

    def _is_within(self, relative: str) -> bool:
        return not self.within or any(place in self.within for place in _prefixes(relative))

    def takes(self, relative: str) -> bool:
        """Whether a file is selected, by its path relative to the source's root."""
        if not self._is_within(relative):
            return False
        if self.include and not any(_matches(pattern, relative) for pattern in self.include):
            return False
        return not any(_matches(pattern, relative) for pattern in self.exclude)

    def enters(self, relative: str) -> bool:
        """Whether a directory must be examined."""
        if not relative:
            return True
        if not (self._is_within(relative) or relative in self._above):
            return False
        return not any(_matches(pattern, relative) for pattern in self.exclude)


def select(include: Sequence[str], exclude: Sequence[str]) -> Selection:
    """Builds the selection."""
    return Selection(tuple(one.strip("/") for one in include), tuple(one.strip("/") for one in exclude))


def _prefixes(relative: str) -> Iterator[str]:
    """A path, and its parent directories."""
    names = relative.split("/")
    return ("/".join(names[:depth]) for depth in range(1, len(names) + 1))


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
