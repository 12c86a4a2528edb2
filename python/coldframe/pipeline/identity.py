"""Whether a source is still the one that was planned.

    file        size : mtime_ns : ctime_ns : inode
    of a store  size : etag, or where the store has none size : time of change
    directory   sha256 over `relative name, <one of the above>` of every file below it

The inventory takes it, the task compares it before its first and after its last byte. An edit of equal size,
and one whose time was set back, change it too; reading does not. It says nothing across runs: a source that
was restored from a backup is the same by path, size and time, which is what the state goes by.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from coldframe._coldframe import ColdframeError
from coldframe.listing import FileEntry
from coldframe.pipeline.places import StorageOptions
from coldframe.sources import is_remote, open_store

CHANGED = "changed while it was read: a later run converts it"


def identity_of(path: str, storage_options: StorageOptions = None) -> str:
    """The identity of what lies at `path` now; an OSError where it cannot be looked at."""
    if is_remote(path):
        return _stored(path, storage_options)
    found = os.stat(path)
    if not os.path.isdir(path):
        return identity_of_file(found)
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            one = os.path.join(folder, name)
            digest.update(
                f"{os.path.relpath(one, path)}\0{identity_of_file(os.stat(one))}\n".encode(errors="replace")
            )
    return digest.hexdigest()


def is_unchanged(path: str, identity: str, storage_options: StorageOptions = None) -> bool:
    """Whether `path` still has an identity that was taken before; what is gone has not."""
    try:
        return identity_of(path, storage_options) == identity
    except (OSError, ColdframeError):
        return False


def of_entry(entry: FileEntry) -> str:
    """The identity of a file that a store has listed."""
    # Listings and single answers give times in different units; an etag is the same in both.
    return f"{entry.size}:{entry.etag}" if entry.etag else f"{entry.size}:{entry.modified}"


def of_entries(entries: Iterable[tuple[str, FileEntry]]) -> str:
    """The identity of a folder, by the files below it and their paths relative to it."""
    digest = hashlib.sha256()
    for relative, entry in sorted(entries, key=lambda one: one[0]):
        digest.update(f"{relative}\0{of_entry(entry)}\n".encode(errors="replace"))
    return digest.hexdigest()


def _stored(path: str, storage_options: StorageOptions) -> str:
    store = open_store(path, storage_options)
    found = store.stat()
    if found is None:
        raise FileNotFoundError(path)
    if not found.is_folder:
        return of_entry(found)
    below = store.list("", recursive=True)
    return of_entries((one.path, one) for some in below for one in some)


def identity_of_file(found: os.stat_result) -> str:
    """The identity of a file, of which this was found."""
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}"
