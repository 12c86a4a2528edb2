"""The source tree. Files are recognised by their first and last bytes, never by name.

Skipped, as in Hive and Spark, but counted: names that begin with `_` or `.` (staging folders, `_SUCCESS`,
`.crc`; not partitions such as `_day=1`), and remains of interrupted copies (`x._COPYING_`). Every other file
is listed, including files of unknown formats. The inventory also lists, with the reason, whatever cannot be
listed or read, links that lead nowhere or to directories, and anything that is neither file nor directory:
rows that were not examined are never skipped silently.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import coldframe
from coldframe._coldframe import ColdframeError, NotFoundError, formats, managed_by
from coldframe.iceberg.places import FOLDER, NOT_LISTED, has_metadata
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.records import MAX_HIDDEN, Listing, SourceFile, Unread
from coldframe.pipeline.scheduling import Scheduler, Threads
from coldframe.pipeline.source.identity import identity_of, identity_of_file
from coldframe.pipeline.source.selection import Selecting, Selection
from coldframe.pipeline.state.scratch import Rows, Scratch, names
from coldframe.sources import options_for

TABLES_FILE = "tables.toml"
ROOT = "."
"""The relative path of the root itself, if it holds the data of one or several servers."""
LEFTOVERS = ("._COPYING_", ".inprogress", ".tmp")
THREADS = 8
DRIVER_FOLDERS = 1000
"""The driver lists up to this many directories of a level itself; if there are more, the scheduler lists
them.
"""
FOLDERS_A_TASK = 50
"""Directories in a task of the scheduler."""
SEVERAL = frozenset(name for name, about in formats().items() if about["capabilities"]["tables"])
_SIDE_BY_SIDE = frozenset(name for name, about in formats().items() if about["capabilities"]["side_by_side"])

Files = Rows[SourceFile] | list[SourceFile]


@dataclass
class Inventory:
    """The source tree, sorted by path."""

    root: str
    files: Files = field(default_factory=list)
    """Files of the five formats."""
    empty: Files = field(default_factory=list)
    """Files of zero bytes, as Hive leaves for empty buckets: they hold no rows."""
    unknown: Files = field(default_factory=list)
    """Files of another format, or too damaged to be recognised."""
    unread: list[Unread] = field(default_factory=list)
    """Places that could not be read."""
    left_out: Rows[str] = field(default_factory=lambda: names(Scratch()))
    """Files and directories that were excluded as requested, by their relative paths."""
    hidden: int = 0
    """The number of skipped names; Hive and Spark skip them, too."""
    hidden_names: list[str] = field(default_factory=list)
    """The first skipped names."""
    stray: list[str] = field(default_factory=list)
    """Unknown files outside of every table."""
    unmatched: list[str] = field(default_factory=list)
    """Paths of entries of tables.toml without a file."""
    not_meant: frozenset[str] = frozenset()
    """For a metastore as the source: the places of tables that this run does not take."""

    @property
    def excluded(self) -> int:
        """How many files and directories were excluded as requested."""
        return len(self.left_out)

    def leaves_out(self, source: str) -> bool:
        """Whether an unlisted source may still exist: it was excluded, or could not be read."""
        if lies_below(source, self._unread_places) or lies_below(source, self.not_meant):
            return True
        return len(self.left_out) > 0 and any(
            self.left_out.get(place) is not None for place in _above(source)
        )

    @functools.cached_property
    def _unread_places(self) -> set[str]:
        """Cached, since this is queried for each vanished source."""
        return {place.relative for place in self.unread}

    def new_files(self) -> Files:
        """An empty list of the same kind as the inventory's, which may be on disk."""
        return self.files.another() if isinstance(self.files, Rows) else []

    def hide(self, names: Sequence[str], count: int | None = None) -> None:
        """Adds skipped names; keeps only the first names."""
        self.hidden += len(names) if count is None else count
        self.hidden_names += names[: MAX_HIDDEN - len(self.hidden_names)]

    def take(self, listing: Listing) -> None:
        """Adds the contents of some directories."""
        for file in listing.files:
            self.add(file)
        self.unread += listing.unread
        self.hide(listing.hidden_names, listing.hidden)
        for place in listing.left_out:
            self.left_out.append(place)

    def add(self, file: SourceFile | Unread) -> None:
        """Adds an item that was examined."""
        if isinstance(file, Unread):
            self.unread.append(file)
            return
        kind = self.files if file.format else self.unknown if file.size else self.empty
        kind.append(file)


def lies_below(source: str, places: Set[str]) -> bool:
    """Whether a path is one of the places or lies below one; "." is the root."""
    return bool(places) and ("." in places or any(path in places for path in _above(source)))


def _above(source: str) -> Iterator[str]:
    """A path, and its parent directories."""
    names = source.split("/")
    return ("/".join(names[:depth]) for depth in range(1, len(names) + 1))


def packing(
    root: str, storage_options: StorageOptions = None
) -> tuple[Callable[[SourceFile], tuple[Any, ...]], Callable[[Sequence[Any]], SourceFile]]:
    """Packs files of a source tree as plain values, and back; most paths follow from their location."""

    def pack(file: SourceFile) -> tuple[Any, ...]:
        path = None if file.path == _path(root, file.relative) else file.path
        return (path, *_plain(file))

    def unpack(row: Sequence[Any]) -> SourceFile:
        path, *rest = row
        *rest, tables, reading = rest
        where = path if path is not None else _path(root, rest[0])
        # The tables of a metastore may lie in several stores.
        options = storage_options if path is None else options_for(path, storage_options)
        of_it: Any = (where, *rest, options, tables, reading)
        return SourceFile(*of_it)

    return pack, unpack


def _plain(file: SourceFile) -> tuple[Any, ...]:
    """Everything about a file except its path; the store's options, which may be secret, are shared."""
    return (
        file.relative,
        file.size,
        file.mtime_ns,
        file.format,
        file.identity,
        file.is_folder,
        file.etag,
        file.tables,
        file.reading,
    )


def source_rows(scratch: Scratch, root: str, storage_options: StorageOptions = None) -> Rows[SourceFile]:
    """Files of a source tree, by their relative paths."""
    return Rows(scratch, lambda file: file.relative, *packing(root, storage_options))


def new_inventory(root: str, storage_options: StorageOptions = None) -> Inventory:
    """An empty inventory, with room for any number of files."""
    scratch = Scratch()
    files, empty, unknown = (source_rows(scratch, root, storage_options) for _ in range(3))
    return Inventory(root, files, empty, unknown)


def take_inventory(
    root: str,
    named: Iterable[str] = (),
    selection: Selection | None = None,
    *,
    scheduler: Scheduler | None = None,
) -> Inventory:
    """Walks the tree of a file system and examines each selected file.

    A root that is a table itself, or holds nothing but the data of one or several servers, is one source,
    unless `named` has paths of directories below it. `scheduler` examines the directories if there are many.
    """
    root = os.path.abspath(root)
    if not os.path.isdir(root):
        raise NotFoundError(f"{root}: no such directory")
    inventory = new_inventory(root)
    below = any(path != ROOT and os.path.isdir(os.path.join(root, path)) for path in named)
    whole = None if below else whole_folder(root, of_several=True)
    if whole is not None:
        inventory.add(whole)
        return inventory
    for listing in walked(root, selection or Selection(), scheduler):
        inventory.take(listing)
    inventory.unread.sort(key=lambda place: place.relative)
    return inventory


def walked(root: str, selection: Selecting, scheduler: Scheduler | None = None) -> Iterator[Listing]:
    """The files at and below a directory, level by level. `scheduler` examines levels of many directories."""
    folders = [ROOT]
    while folders:
        size = 1
        doer: Scheduler = Threads(THREADS)
        if scheduler is not None and len(folders) > DRIVER_FOLDERS:
            size, doer = FOLDERS_A_TASK, scheduler
        starts = range(0, len(folders), size)
        tasks = (FolderTask(root, tuple(folders[at : at + size]), selection) for at in starts)
        below_them: list[str] = []
        for listing in doer.run(tasks):
            yield listing
            below_them += listing.folders
        folders = sorted(below_them)


def whole_folder(root: str, *, of_several: bool = False) -> SourceFile | Unread | None:
    """A directory that is one table by itself or, if `of_several`, several; None for a plain directory."""
    kind = _several_tables(root) if of_several else None
    if kind is None and not _is_table(root):
        return None
    whole = _look(root, ROOT, True)
    return whole if kind is None or isinstance(whole, Unread) else replace(whole, format=kind)


def _several_tables(root: str) -> str | None:
    """The format of a folder that holds several tables and nothing else except a tables.toml.

    A folder that holds only such folders is also one source: Kudu's servers, read separately, would return
    the rows of their replicas more than once.
    """
    if _is_table(root) and (format := _detect(root)) in SEVERAL:
        return format
    with os.scandir(root) as entries:
        shown = [entry for entry in entries if not is_hidden(entry.name) and entry.name != TABLES_FILE]
    if not all(entry.is_dir() and _is_table(entry.path) for entry in shown):
        return None
    kinds = {_detect(entry.path) for entry in shown}
    return side_by_side(kinds)


def side_by_side(kinds: set[str | None]) -> str | None:
    """The format of sibling folders that form one source; None if they do not."""
    return next((kind for kind in kinds if kind in _SIDE_BY_SIDE), None) if len(kinds) == 1 else None


def is_hidden(name: str) -> bool:
    """Whether readers of a table ignore a name, as Spark does; a partition is shown (`_dt=1`)."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


@dataclass(frozen=True)
class FolderTask:
    """Directories to examine, each on its own. The outcome has their direct contents."""

    root: str
    folders: tuple[str, ...]
    """The directories' paths, relative to the root."""
    selection: Selecting
    bytes: int = 16 << 20

    def run(self) -> Listing:
        """Lists the directories, and examines each file."""
        listing = Listing()
        for folder in self.folders:
            _list(self.root, folder, self.selection, listing)
        return listing

    def given_up(self, reason: str) -> Listing:
        """The outcome if no worker could examine the directories."""
        return Listing(unread=[Unread(folder, reason) for folder in self.folders])


def is_taken(relative: str, selection: Selecting, listing: Listing) -> bool:
    """Whether a table or file is selected; if not, the listing says so."""
    if selection.takes(relative):
        return True
    listing.left_out.append(relative)
    return False


def is_of_others(
    folder: str, names: Iterable[str], selection: Selecting, listing: Listing, *, is_iceberg: bool
) -> bool:
    """Whether the files of a folder with these names are no table by themselves; the listing says why.

    `is_iceberg`: whether it has the metadata of an Iceberg table.
    """
    reason = NOT_LISTED if is_iceberg else managed_by([name for name in names if name.isascii()])
    if reason is not None and (folder == ROOT or is_taken(folder, selection, listing)):
        listing.add(Unread(folder, reason))
    return reason is not None


def is_entered(folder: str, name: str, is_folder: bool, selection: Selecting, listing: Listing) -> bool:
    """Whether a walk examines an entry of a folder; if not, the listing says so."""
    at_root = folder in (ROOT, "")
    relative = name if at_root else f"{folder}/{name}"
    if is_folder:
        if is_hidden(name):
            listing.hide([f"{relative}/"])
        elif selection.enters(relative):
            return True
        else:
            listing.left_out.append(relative)
        return False
    if at_root and name == TABLES_FILE:
        return False
    if is_hidden(name) or name.endswith(LEFTOVERS):
        listing.hide([relative])
        return False
    return is_taken(relative, selection, listing)


def _list(root: str, folder: str, selection: Selecting, listing: Listing) -> None:
    path = _path(root, folder)
    if folder != ROOT and _is_table(path):
        if is_taken(folder, selection, listing):
            listing.add(_look(root, folder, True))
        return
    try:
        with os.scandir(path) as entries:
            there = sorted((entry.name, _is_folder(entry), entry.is_symlink()) for entry in entries)
    except OSError as error:
        listing.add(Unread(folder, _reason(error)))
        return
    is_iceberg = (FOLDER, True, False) in there and has_metadata(os.listdir(f"{path}/{FOLDER}"))
    if is_of_others(folder, [name for name, _, _ in there], selection, listing, is_iceberg=is_iceberg):
        return
    for name, is_folder, is_link in there:
        if not is_entered(folder, name, is_folder, selection, listing):
            continue
        relative = name if folder == ROOT else f"{folder}/{name}"
        if is_folder and is_link:
            reason = f"a link to the directory {os.readlink(_path(root, relative))}, which is not followed"
            listing.add(Unread(relative, f"{reason}: migrate that by itself"))
        elif is_folder:
            listing.folders.append(relative)
        else:
            listing.add(_look(root, relative, False))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _look(root: str, relative: str, directory: bool) -> SourceFile | Unread:
    path = _path(root, relative)
    try:
        if directory:
            parts = [os.stat(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names]
            size = sum(part.st_size for part in parts)
            newest = max((part.st_mtime_ns for part in parts), default=0)
            return SourceFile(path, relative, size, newest, _detect(path), identity_of(path), is_folder=True)
        # Take the identity first, so that a later replacement of the file is noticed.
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return Unread(relative, "neither a file nor a directory")
        kind = _detect(path) if status.st_size else None
        return SourceFile(path, relative, status.st_size, status.st_mtime_ns, kind, identity_of_file(status))
    except FileNotFoundError:
        lost = os.path.islink(path)
        return Unread(relative, "a link that leads nowhere" if lost else "gone since it was listed")
    except OSError as error:
        return Unread(relative, _reason(error))


def _path(root: str, relative: str) -> str:
    return root if relative == ROOT else f"{root.rstrip(os.sep)}/{relative}"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _is_table(folder: str) -> bool:
    """Whether a directory is one table of a format; False if unreadable, as the walk reports that."""
    try:
        return _detect(folder) is not None
    except OSError:
        return False


def _detect(path: str) -> str | None:
    """The format of a file's bytes; None if it is unknown. Raises OSError if the bytes cannot be
    read.
    """
    try:
        return coldframe.detect(path)
    except NotFoundError as gone:
        raise FileNotFoundError(path) from gone
    except ColdframeError:
        return None
