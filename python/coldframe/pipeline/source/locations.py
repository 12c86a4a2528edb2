"""Maps a metastore's locations to paths relative to the source's root.

    /wh/t    file:/wh/t    file:///wh/t             one local directory
    hdfs://nn/t    hdfs://nn:8020/t    hdfs:///t    one directory, unless hosts or ports differ
    s3://b/t    s3a://b/t    s3n://b/t              one prefix

Hadoop writes names into locations unescaped: `%2F` is three characters of a directory's name, in the location
and on disk, so nothing is unescaped for comparing them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from coldframe.pipeline.file_access import canonical_root

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?://([^/]*))?(?=/|\Z)")
_HOSTS = frozenset(("hdfs", "viewfs"))
"""Schemes whose authority is a host; without a host, the default file system's host applies."""


@dataclass(frozen=True)
class Location:
    """A location in a file system: scheme, authority, and path components."""

    scheme: str
    """Empty if the location has none; `file` is local."""
    authority: str
    names: tuple[str, ...]

    @staticmethod
    def of(text: str) -> Location:
        """Parses a path or URL."""
        text = canonical_root(text)
        match = _URL.match(text)
        if match is None:
            return Location("", "", _names(text))
        return Location(match.group(1).lower(), match.group(2) or "", _names(text[match.end() :]))

    @property
    def is_local(self) -> bool:
        """Whether the location is on this machine."""
        return self.scheme in ("", "file")

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for all ways to write a location. Excludes hosts, which `is_on` compares."""
        if self.is_local:
            return ("file", "", *self.names)
        return (self.scheme, "" if self.scheme in _HOSTS else self.authority, *self.names)

    def is_on(self, other: Location) -> bool:
        """Whether the two locations may be on the same file system."""
        scheme, another = self.scheme or other.scheme, other.scheme or self.scheme
        if scheme != another:
            return False
        if scheme in _HOSTS:
            return _same_host(self.authority, other.authority)
        # A location without a scheme is on Hive's own file system, which is not an object store.
        return scheme in ("", "file") or (bool(self.scheme) and self.authority == other.authority)


class Root:
    """The root of the source."""

    def __init__(self, root: str) -> None:
        """`root`: as `file_access.root_of` returns it."""
        location = Location.of(root)
        self._root = location if location.scheme else Location("file", "", location.names)

    def relative(self, location: str | None) -> str | None:
        """The path below the root, "" for the root itself; None for a location elsewhere."""
        if not location:
            return None
        place = Location.of(location)
        if not place.is_on(self._root):
            return None
        below = self._below(place.names)
        if below is None and self._root.scheme == "file":
            # The root is known by its real path; Hive may use a link to it.
            below = self._below(_names(os.path.realpath("/" + "/".join(place.names))))
        return below

    def _below(self, names: tuple[str, ...]) -> str | None:
        root = self._root.names
        return "/".join(names[len(root) :]) if names[: len(root)] == root else None


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


def _same_host(authority: str, other: str) -> bool:
    """Whether two authorities may be the same NameNode or name service."""
    host, _, port = authority.lower().partition(":")
    another, _, its_port = other.lower().partition(":")
    return not (host and another) or (host == another and (not (port and its_port) or port == its_port))
