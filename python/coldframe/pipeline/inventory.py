"""Stage 1: what lies in the source tree. Files are told by their first and last bytes, never by their names.

Left out, as Hive and Spark do: names that begin with `_` or `.` (staging folders, `_SUCCESS`, `.crc`), and
what an interrupted copy leaves (`x._COPYING_`). Every other file is listed, those of an unknown format too.
What cannot be listed or read, links that lead nowhere or to directories, and what is neither file nor
directory is listed as well, with why: rows that nobody looked at are never passed over in silence.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import coldframe
from coldframe._coldframe import ColdframeError, NotFoundError, formats
from coldframe.pipeline.identity import identity_of
from coldframe.pipeline.places import StorageOptions
from coldframe.pipeline.selection import Selection
from coldframe.sources import is_remote

TABLES_FILE = "tables.toml"
ROOT = "."
"""The relative path of the source's root itself, where that is the data of one server or of several."""
LEFTOVERS = ("._COPYING_", ".inprogress", ".tmp")
THREADS = 8
SEVERAL = frozenset(name for name, about in formats().items() if about["capabilities"]["tables"])


@dataclass(frozen=True)
class SourceFile:
    """A file of the source tree, or a directory that a format takes as a whole (of Kudu, HBase)."""

    path: str
    relative: str
    size: int
    mtime_ns: int
    format: str | None
    identity: str = ""
    """What it is compared with while it is read: see `identity`."""
    is_folder: bool = False
    etag: str | None = None
    """What its store calls this content, where it does."""
    storage_options: StorageOptions = field(default=None, repr=False, compare=False)
    """How its store is reached."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the directories between the source's root and the file."""
        return tuple(self.relative.split("/")[:-1])

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Hive's partition: the `key=value` directories, undone of their escapes."""
        return tuple((unquote(key), unquote(value)) for key, value in map(_split_key, self.folders) if key)


@dataclass(frozen=True)
class Unread:
    """A place of the source tree whose rows, if it has any, nobody has seen."""

    relative: str
    reason: str


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
    unread: list[Unread] = field(default_factory=list)
    """What could not be looked at."""
    excluded: int = 0
    """Files and directories that were left out as asked."""


def take_inventory(
    root: str,
    named: Iterable[str] = (),
    selection: Selection | None = None,
    storage_options: StorageOptions = None,
) -> Inventory:
    """Walks the tree and looks at each file that is meant.

    A root that holds nothing but the data of one server or of several is one source, unless `named` has paths
    of directories below it.
    """
    if is_remote(root):
        from coldframe.pipeline.listed import take_listed

        return take_listed(root, named, selection or Selection(), storage_options)
    root = os.path.abspath(root)
    if not os.path.isdir(root):
        raise NotFoundError(f"{root}: no such directory")
    inventory = Inventory(root)
    below = any(path != ROOT and os.path.isdir(os.path.join(root, path)) for path in named)
    several = None if below else _several_tables(root)
    if several is not None:
        whole = _look(root, root, True)
        if isinstance(whole, Unread):
            inventory.unread.append(whole)
        else:
            inventory.files.append(replace(whole, format=several))
        return inventory
    with ThreadPoolExecutor(THREADS) as threads:
        for file in threads.map(
            lambda found: _look(root, *found), _walk(inventory, selection or Selection())
        ):
            if isinstance(file, Unread):
                inventory.unread.append(file)
                continue
            kind = inventory.files if file.format else inventory.unknown if file.size else inventory.empty
            kind.append(file)
    inventory.unread.sort(key=lambda one: one.relative)
    return inventory


def _several_tables(root: str) -> str | None:
    """The format of a folder that is several tables and holds nothing else but a tables.toml; also where each
    folder in it is such (Kudu's servers by themselves would give the rows of their replicas more than once).
    """
    if _is_table(root) and (found := _detect(root)) in SEVERAL:
        return found
    with os.scandir(root) as entries:
        shown = [one for one in entries if not one.name.startswith(("_", ".")) and one.name != TABLES_FILE]
    if not all(one.is_dir() and _is_table(one.path) for one in shown):
        return None
    kinds = {_detect(one.path) for one in shown}
    return "kudu" if kinds == {"kudu"} else None


def is_partition(folder: str) -> bool:
    """Whether a directory's name is `key=value`."""
    return bool(_split_key(folder)[0])


def _split_key(folder: str) -> tuple[str, str]:
    key, equals, value = folder.partition("=")
    return (key, value) if equals else ("", "")


def _walk(inventory: Inventory, selection: Selection) -> Iterator[tuple[str, bool]]:
    """The paths of files, and of directories that are one table (True); the rest goes to the inventory."""
    root, unread = inventory.root, inventory.unread

    def not_listed(error: OSError) -> None:
        unread.append(Unread(_relative(root, error.filename or root), _reason(error)))

    def is_meant(path: str, takes: Callable[[str], bool]) -> bool:
        meant = takes(_relative(root, path))
        inventory.excluded += not meant
        return meant

    for folder, folders, names in os.walk(root, onerror=not_listed):
        shown = sorted(name for name in folders if not name.startswith(("_", ".")))
        folders[:] = [name for name in shown if is_meant(os.path.join(folder, name), selection.enters)]
        if folder != root and _is_table(folder):
            folders.clear()
            if is_meant(folder, selection.takes):
                yield folder, True
            continue
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                target = os.readlink(os.path.join(folder, name))
                reason = f"a link to the directory {target}, which is not followed: migrate that by itself"
                unread.append(Unread(_relative(root, os.path.join(folder, name)), reason))
        for name in sorted(names):
            path = os.path.join(folder, name)
            leftover = name.startswith(("_", ".")) or name.endswith(LEFTOVERS)
            if leftover or (folder == root and name == TABLES_FILE):
                continue
            if is_meant(path, selection.takes):
                yield path, False


def _look(root: str, path: str, directory: bool) -> SourceFile | Unread:
    relative = _relative(root, path)
    try:
        if directory:
            parts = [os.stat(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names]
            size = sum(part.st_size for part in parts)
            newest = max((part.st_mtime_ns for part in parts), default=0)
            kind, identity = _detect(path), identity_of(path)
            return SourceFile(path, relative, size, newest, kind, identity, is_folder=True)
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return Unread(relative, "neither a file nor a directory")
        # The identity first: what replaces the file from here on is seen.
        identity = identity_of(path)
        kind = _detect(path) if found.st_size else None
        return SourceFile(path, relative, found.st_size, found.st_mtime_ns, kind, identity)
    except FileNotFoundError:
        lost = os.path.islink(path)
        return Unread(relative, "a link that leads nowhere" if lost else "gone since it was listed")
    except OSError as error:
        return Unread(relative, _reason(error))


def _relative(root: str, path: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _is_table(folder: str) -> bool:
    """Whether a directory is one table of a format; one that cannot be read is none, and the walk says so."""
    try:
        return _detect(folder) is not None
    except OSError:
        return False


def _detect(path: str) -> str | None:
    """The format; None for bytes that are of none. An OSError where they cannot be read."""
    try:
        return coldframe.detect(path)
    except NotFoundError as gone:
        raise FileNotFoundError(path) from gone
    except ColdframeError:
        return None
