"""The inventory of a source in a store: listed once, then examined from the driver's own disk.

    object stores     one listing of all objects, 1,000 per request
    HDFS and others   folder by folder, several at once; unlistable folders are reported

Whether a folder is one table (Kudu, HBase) is determined from the listing, so it costs requests only if its
files must be read for that. Memory holds the names of folders, but not of files. The rules for skipped and
reported files are the rules of `inventory`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TypeVar

from coldframe import _coldframe
from coldframe._coldframe import ColdframeError, NotFoundError, Store, StoreEntry
from coldframe.iceberg.places import FOLDER, has_metadata
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.records import Listing, SourceFile, Unread
from coldframe.pipeline.scheduling import Scheduler, Threads
from coldframe.pipeline.source.identity import of_entries, of_entry
from coldframe.pipeline.source.inventory import (
    ROOT,
    TABLES_FILE,
    THREADS,
    Inventory,
    is_entered,
    is_hidden,
    is_of_others,
    is_taken,
    new_inventory,
    side_by_side,
)
from coldframe.pipeline.source.selection import Selecting, Selection
from coldframe.pipeline.source.store_tree import FileEntry, Tree, joined
from coldframe.sources import Source, is_flat, open_store

_T = TypeVar("_T")

DRIVER_FILES = 2000
"""The driver itself examines up to this many files; if there are more, the scheduler examines them."""
FILES_A_TASK = 200
"""Files in a task of the scheduler."""


@dataclass(frozen=True)
class LookTask:
    """Files of a store to examine. The outcome is like the outcome of a `FolderTask`."""

    files: tuple[tuple[str, FileEntry], ...]
    """Pairs of URL and entry."""
    storage_options: StorageOptions = field(repr=False)
    bytes: int = 16 << 20

    def run(self) -> Listing:
        """Examines each file."""
        listing = Listing()
        for url, entry in self.files:
            listing.add(_look(url, entry, self.storage_options))
        return listing

    def given_up(self, reason: str) -> Listing:
        """The outcome if no worker came back."""
        return Listing(unread=[Unread(entry.path, reason) for _, entry in self.files])


def take_listed(
    root: str,
    named: Iterable[str],
    selection: Selection,
    storage_options: StorageOptions,
    *,
    scheduler: Scheduler | None = None,
) -> Inventory:
    """Lists the tree and examines each selected file; see `take_inventory`.

    If there are many files, `scheduler` examines them.
    """
    store = open_store(root, storage_options)
    about = store.stat()
    if about is None or not about.is_folder:
        raise NotFoundError(f"{root}: no such directory")
    tree = _list_flat(store) if is_flat(root) else _list_folders(store, selection)
    inventory = new_inventory(root, storage_options)
    inventory.unread = tree.unread
    format = None if any(path in tree.folders for path in named if path != ".") else _source_format(tree)
    if format is not None:
        folder = _look_at_folder(tree, "", storage_options)
        inventory.files.append(replace(folder, relative=".", format=format))
        return inventory

    for examined in _examined(tree, selection, storage_options, scheduler):
        inventory.take(examined)
    inventory.unread.sort(key=lambda format: format.relative)
    return inventory


def walked_in_store(
    root: str,
    selection: Selecting,
    storage_options: StorageOptions,
    scheduler: Scheduler | None = None,
    *,
    is_whole: bool = False,
) -> Iterator[Listing]:
    """The files at and below a folder of a store.

    `is_whole`: if the folder is one table by itself, returns it as one source, with the relative path `.`.

    Raises NotFoundError if the folder does not exist: in an object store, also if it is empty.
    """
    store = open_store(root, storage_options)
    if is_flat(root):
        tree = _list_flat(store)
    else:
        about = store.stat()
        if about is None or not about.is_folder:
            raise NotFoundError(f"{root}: no such directory")
        tree = _list_folders(store, selection)
    yield Listing(unread=tree.unread)
    if is_whole and tree.detect("") is not None:
        yield Listing([replace(_look_at_folder(tree, "", storage_options), relative=".")])
        return
    yield from _examined(tree, selection, storage_options, scheduler)


def _examined(
    tree: Tree, selection: Selecting, storage_options: StorageOptions, scheduler: Scheduler | None
) -> Iterator[Listing]:
    """The contents of a tree, each selected file examined."""
    doer: Scheduler = Threads(THREADS)
    size = 1
    if scheduler is not None and tree.count > DRIVER_FILES:
        doer, size = scheduler, FILES_A_TASK
    passed = Listing()

    def files() -> Iterator[tuple[str, FileEntry]]:
        for path, entry in _walk(tree, passed, selection):
            if entry is None:
                passed.add(_look_at_folder(tree, path, storage_options))
            else:
                yield tree.store.url_of(path), entry

    walked = files()
    for outcome in doer.run(LookTask(some, storage_options) for some in _together(walked, size)):
        # Executors return files without storage options, which hold secrets.
        files_of_it = [replace(file, storage_options=storage_options) for file in outcome.files]
        yield Listing(files_of_it, unread=outcome.unread)
        yield passed.drained()
    yield passed.drained()


def _together(files: Iterator[_T], size: int) -> Iterator[tuple[_T, ...]]:
    while some := tuple(itertools.islice(files, size)):
        yield some


def _list_flat(store: Store) -> Tree:
    tree = Tree(store)
    for some in store.list("", recursive=True):
        for entry in some:
            tree.add(entry)
    return tree


def _list_folders(store: Store, selection: Selecting) -> Tree:
    tree = Tree(store)

    def listed(path: str) -> list[StoreEntry]:
        return [entry for some in store.list(path) for entry in some]

    with ThreadPoolExecutor(THREADS) as threads:
        flying: dict[Future[list[StoreEntry]], str] = {threads.submit(listed, ""): ""}
        while flying:
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                path = flying.pop(future)
                try:
                    entries = future.result()
                except (ColdframeError, OSError) as error:
                    if not path:
                        raise
                    tree.unread.append(Unread(path, str(error)))
                    continue
                for entry in entries:
                    tree.add(entry)
                    if entry.is_folder and selection.enters(entry.path):
                        flying[threads.submit(listed, entry.path)] = entry.path
    return tree


def _source_format(tree: Tree) -> str | None:
    """The format of a root that is a table, or has the data of servers side by side; None for other roots."""
    if (format := tree.detect("")) is not None:
        return format
    root = tree.folders[""]
    files = [name for name in root.files if not is_hidden(name) and name != TABLES_FILE]
    folders = [name for name in root.folders if not is_hidden(name)]
    if files or not folders:
        return None
    return side_by_side({tree.detect(name) for name in folders})


def _walk(tree: Tree, passed: Listing, selection: Selecting) -> Iterator[tuple[str, FileEntry | None]]:
    """Files, and folders that are one table (without an entry), by their relative paths."""
    waiting = [""]
    while waiting:
        at = waiting.pop()
        if at and tree.detect(at) is not None:
            if is_taken(at, selection, passed):
                yield at, None
            continue
        folder = tree.folders[at]
        inner = tree.folders.get(joined(at, FOLDER))
        is_iceberg = inner is not None and has_metadata(inner.files)
        if is_of_others(
            at or ROOT, (*folder.folders, *folder.files), selection, passed, is_iceberg=is_iceberg
        ):
            continue
        names = [name for name in sorted(folder.folders) if is_entered(at, name, True, selection, passed)]
        waiting.extend(joined(at, name) for name in reversed(names))
        for name, entry in folder.files.items():
            if is_entered(at, name, False, selection, passed):
                yield entry.path, entry


def _look(url: str, entry: FileEntry, storage_options: StorageOptions) -> SourceFile | Unread:
    try:
        kind = _detect(url, entry, storage_options) if entry.size else None
    except NotFoundError:
        return Unread(entry.path, "gone since it was listed")
    except OSError as error:
        return Unread(entry.path, str(error))
    return SourceFile(
        url,
        entry.path,
        entry.size,
        (entry.modified or 0) * 1_000_000,
        kind,
        of_entry(entry),
        etag=entry.etag,
        storage_options=storage_options,
    )


def _look_at_folder(tree: Tree, path: str, storage_options: StorageOptions) -> SourceFile:
    entries = list(tree.below(path))
    return SourceFile(
        tree.store.url_of(path),
        path,
        sum(entry.size for _, entry in entries),
        max((entry.modified or 0 for _, entry in entries), default=0) * 1_000_000,
        tree.detect(path),
        of_entries(entries),
        is_folder=True,
        storage_options=storage_options,
    )


def _detect(url: str, entry: FileEntry, storage_options: StorageOptions) -> str | None:
    """The format; None if the bytes have no known format. Raises OSError if the bytes cannot be
    read.
    """
    source = Source(url, storage_options, entry.identity)
    try:
        return _coldframe.detect(source.handle(), source.core_options(), source.known)
    except NotFoundError:
        raise
    except ColdframeError:
        return None
