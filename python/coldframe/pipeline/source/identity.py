"""Whether a source is unchanged since it was planned, and since an earlier run converted it.

    file        size : mtime_ns : ctime_ns : inode
    of a store  size : etag, or size : time of change if the store has none
    directory   sha256 over `relative name, <one of the above>` of every file below it, also behind links

The inventory records this identity; the task compares it before reading its first and after its last byte. An
edit of equal size, even one whose time was set back, changes the identity; reading does not.

Across runs, a digest of the content proves more. The digest is taken between the two checks of the identity:

    whole:..    sha256 of a file of up to 1 MiB
    ends:..     sha256 of the first 64 KiB and the last 256 KiB of a larger one
    etag:..     the store's name of the content
    tree:..     of a directory: its identity, as above

Of a directory that is listed as safe to delete, the journal also keeps traces: hashes over `relative name,
size, time of the last change or etag` of some of its files. If a directory of that name has none of these
files, it may have been made anew.

A source with another identity is unchanged if `whole` is equal, or if `ends` and the time of its last change
(ctime) are equal: an edit in the middle changes the ctime.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.file_access import StorageOptions, opened
from coldframe.pipeline.source.store_tree import FileEntry
from coldframe.sources import is_remote, open_store

WHOLE = 1 << 20
HEAD, TAIL = 64 << 10, 256 << 10
TRACES = 32
"""The maximum number of traces of a directory."""
CHANGED = "changed while it was read: a later run converts it"


def identity_of(path: str, storage_options: StorageOptions = None) -> str:
    """The current identity of `path`; raises OSError if it cannot be determined."""
    if is_remote(path):
        return _stored(path, storage_options)
    status = os.stat(path)
    if not os.path.isdir(path):
        return identity_of_file(status)
    digest = hashlib.sha256()
    for relative, entry in _files_below(path):
        digest.update(f"{relative}\0{entry}\n".encode(errors="replace"))
    return digest.hexdigest()


def traces_of(path: str, storage_options: StorageOptions = None) -> tuple[str, ...]:
    """The traces of a directory: always the same of the same files. No traces if it is gone."""
    return tuple(sorted(_traces(path, storage_options))[:TRACES])


def has_a_trace(path: str, traces: Iterable[str], storage_options: StorageOptions = None) -> bool:
    """Whether a directory still has one of the files of earlier traces."""
    return not _traces(path, storage_options).isdisjoint(traces)


def _traces(path: str, storage_options: StorageOptions) -> set[str]:
    try:
        if is_remote(path):
            store = open_store(path, storage_options)
            files = [(file.path, of_entry(file)) for some in store.list("", recursive=True) for file in some]
        else:
            # Copies have other inodes.
            files = [(relative, ":".join(entry.split(":")[:2])) for relative, entry in _files_below(path)]
    except (OSError, ColdframeError):
        return set()
    lines = (f"{relative}\0{entry}".encode(errors="replace") for relative, entry in files)
    return {hashlib.sha256(line).hexdigest()[:16] for line in lines}


def _files_below(path: str) -> Iterator[tuple[str, str]]:
    """The files of a directory with their identities, by their relative names."""
    for folder, names in _folders(path):
        for name in names:
            file = os.path.join(folder, name)
            yield os.path.relpath(file, path), identity_of_file(os.stat(file))


def _folders(path: str) -> Iterator[tuple[str, list[str]]]:
    """The directories at and below a path, with the names of their files, in order.

    Links to directories are followed, as the readers of such a directory follow them, except links that lead
    back.
    """
    waiting: list[tuple[str, str, tuple[str, ...]]] = [(path, os.path.realpath(path), ())]
    while waiting:
        folder, real, ways = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except PermissionError:  # nobody here reads what is in it
            continue
        yield folder, [entry.name for entry in entries if not entry.is_dir()]
        below = []
        for entry in entries:
            if not entry.is_dir():
                continue
            if not entry.is_symlink():
                below.append((entry.path, os.path.join(real, entry.name), ways))
                continue
            target = os.path.realpath(entry.path)
            if not any(f"{way}/".startswith(f"{target}/") for way in (*ways, real)):
                below.append((entry.path, target, (*ways, real)))
        waiting += reversed(below)


def is_unchanged(path: str, identity: str, storage_options: StorageOptions = None) -> bool:
    """Whether `path` still has an earlier identity; False if it is gone."""
    try:
        return identity_of(path, storage_options) == identity
    except (OSError, ColdframeError):
        return False


def content_digest(path: str, storage_options: StorageOptions = None) -> str:
    """The digest of a file without an etag: see above. Fails if the file cannot be read."""
    digest = hashlib.sha256()
    if is_remote(path):
        stored = open_store(path, storage_options).open()
        size = stored.size
        for start, stop in _looked_at(size):
            digest.update(stored.read(start, stop))
    else:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            for start, stop in _looked_at(size):
                file.seek(start)
                digest.update(file.read(stop - start))
    return f"{'whole' if size <= WHOLE else 'ends'}:{digest.hexdigest()}"


def _looked_at(size: int) -> tuple[tuple[int, int], ...]:
    return ((0, size),) if size <= WHOLE else ((0, HEAD), (size - TAIL, size))


def digest_now(path: str, identity: str, digest: str, storage_options: StorageOptions = None) -> str | None:
    """The current digest of `path`, of the kind of `digest`; None if it cannot be taken."""
    kind = digest.partition(":")[0]
    if kind == "tree":
        return f"tree:{identity}"
    if kind == "etag":
        return f"etag:{identity.partition(':')[2]}"
    try:
        return content_digest(path, storage_options)
    except (OSError, ColdframeError):
        return None


def is_same_source(
    path: str,
    identity: str,
    known_identity: str,
    known_digest: str,
    storage_options: StorageOptions = None,
) -> bool:
    """Whether a source is unchanged since an earlier run converted it, given the run's record.

    Size and time of change are already known to be equal.
    """
    if identity == known_identity:
        return True
    if not is_proof(known_digest, identity, known_identity):
        return False
    return known_digest == digest_now(path, identity, known_digest, storage_options)


def is_proof(digest: str, identity: str, known_identity: str | None) -> bool:
    """Whether an equal digest proves that two identities belong to the same source."""
    if known_identity is None or identity == known_identity:
        return True
    kind = digest.partition(":")[0]
    return kind == "whole" or (kind == "ends" and _changed_at(identity) == _changed_at(known_identity))


def _changed_at(identity: str) -> str:
    """The time of the last change of data or metadata."""
    return identity.split(":")[2] if identity.count(":") == 3 else ""


def of_entry(entry: FileEntry) -> str:
    """The identity of a file that a store has listed."""
    # The time's unit differs between listings and single requests; the etag does not.
    return f"{entry.size}:{entry.etag}" if entry.etag else f"{entry.size}:{entry.modified}"


def of_entries(entries: Iterable[tuple[str, FileEntry]]) -> str:
    """The identity of a folder: of the files below it and their relative paths."""
    digest = hashlib.sha256()
    for relative, entry in sorted(entries, key=lambda item: item[0]):
        digest.update(f"{relative}\0{of_entry(entry)}\n".encode(errors="replace"))
    return digest.hexdigest()


def _stored(path: str, storage_options: StorageOptions) -> str:
    store = open_store(path, storage_options)
    entry = store.stat()
    if entry is None:
        raise FileNotFoundError(path)
    if not entry.is_folder:
        return of_entry(entry)
    below = store.list("", recursive=True)
    return of_entries((file.path, file) for some in below for file in some)


def identity_of_file(status: os.stat_result) -> str:
    """The identity of a file with this status."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
