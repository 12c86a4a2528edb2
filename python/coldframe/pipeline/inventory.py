"""Stage 1: what lies in the source tree. Files are told by their first and last bytes, never by their names.

Left out, as Hive and Spark do: names that begin with `_` or `.` (staging folders, `_SUCCESS`, `.crc`), and
what an interrupted copy leaves (`x._COPYING_`). Every other file is listed, those of an unknown format too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import coldframe
from coldframe._coldframe import ColdframeError, NotFoundError

TABLES_FILE = "tables.toml"
ROOT = "."
"""The relative path of the source's root itself, where that is the data of one server or of several."""
_LEFTOVERS = ("._COPYING_", ".inprogress", ".tmp")
_THREADS = 8


@dataclass(frozen=True)
class SourceFile:
    """A file of the source tree, or a directory that a format takes as a whole (Kudu's)."""

    path: str
    relative: str
    size: int
    mtime_ns: int
    format: str | None

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the directories between the source's root and the file."""
        return tuple(self.relative.split("/")[:-1])

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Hive's partition: the `key=value` directories, undone of their escapes."""
        return tuple((unquote(key), unquote(value)) for key, value in map(_split_key, self.folders) if key)


@dataclass
class Inventory:
    """The source tree, sorted by path."""

    root: str
    files: list[SourceFile] = field(default_factory=list)
    """Files of the five formats."""
    empty: list[SourceFile] = field(default_factory=list)
    """Files of zero bytes, as Hive leaves for empty buckets: they hold no rows."""
    unknown: list[SourceFile] = field(default_factory=list)
    """Files of another format, or too damaged to tell."""


def take_inventory(root: str, named: Iterable[str] = ()) -> Inventory:
    """Walks the tree and looks at each file.

    A root that holds nothing but Kudu's data is one source, unless `named` has paths of directories below it.
    """
    root = os.path.abspath(root)
    if not os.path.isdir(root):
        raise NotFoundError(f"{root}: no such directory")
    inventory = Inventory(root)
    below = any(path != ROOT and os.path.isdir(os.path.join(root, path)) for path in named)
    if not below and _is_kudu(root):
        inventory.files.append(replace(_look(root, root, True), format="kudu"))
        return inventory
    with ThreadPoolExecutor(_THREADS) as threads:
        for file in threads.map(lambda found: _look(root, *found), _walk(root)):
            kind = inventory.files if file.format else inventory.unknown if file.size else inventory.empty
            kind.append(file)
    return inventory


def _is_kudu(root: str) -> bool:
    """Whether a folder holds Kudu's data and nothing else but a tables.toml: the servers by themselves would
    give the rows of their replicas more than once.
    """
    if _detect(root) == "kudu":
        return True
    with os.scandir(root) as entries:
        shown = [one for one in entries if not one.name.startswith(("_", ".")) and one.name != TABLES_FILE]
    return bool(shown) and all(one.is_dir() and _detect(one.path) == "kudu" for one in shown)


def is_partition(folder: str) -> bool:
    """Whether a directory's name is `key=value`."""
    return bool(_split_key(folder)[0])


def _split_key(folder: str) -> tuple[str, str]:
    key, equals, value = folder.partition("=")
    return (key, value) if equals else ("", "")


def _walk(root: str) -> Iterator[tuple[str, bool]]:
    """The paths of files, and of directories that are one table (True)."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        if folder != root and _detect(folder) is not None:
            folders.clear()
            yield folder, True
            continue
        for name in sorted(names):
            leftover = name.startswith(("_", ".")) or name.endswith(_LEFTOVERS)
            if not leftover and not (folder == root and name == TABLES_FILE):
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    yield path, False


def _look(root: str, path: str, directory: bool) -> SourceFile:
    relative = os.path.relpath(path, root).replace(os.sep, "/")
    if directory:
        stats = [os.stat(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names]
        size = sum(stat.st_size for stat in stats)
        newest = max((stat.st_mtime_ns for stat in stats), default=0)
        return SourceFile(path, relative, size, newest, _detect(path))
    stat = os.stat(path)
    return SourceFile(path, relative, stat.st_size, stat.st_mtime_ns, _detect(path) if stat.st_size else None)


def _detect(path: str) -> str | None:
    try:
        return coldframe.detect(path)
    except (ColdframeError, OSError):
        return None
