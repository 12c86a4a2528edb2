"""All access of the driver to its destination: a directory, HDFS, or an object store.

    list, stat, read, lines look at files
    create                  makes a new file, whole or not at all; False if the file exists
    write                   makes or replaces a file, whole or not at all
    publish                 renames a staged file to its final name; never over another file
    delete                  deletes a file, if it exists
    copy_in                 copies a file or directory from elsewhere
    lock                    one holder at a time

Names are relative to the root and have slashes. Whole files are on disk when a call returns. The core's
stores do the work; their guarantees differ:

    directory        create and publish: rename without overwriting; lock: of the file system, on one host
    HDFS             the same renames; no lock
    object stores    create: put-if-absent; publish: conditional copy on the server, then delete; no lock

Without a lock, the numbers of the journal's segments fence: a driver that another one has replaced stops at
its next segment, before it touches a table. A store that ignores the condition of a put is refused before
anything is written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import IO, Any

from coldframe._coldframe import ColdframeError, NotFoundError
from coldframe.errors import unsupported
from coldframe.pipeline.file_access import StorageOptions, below, pieces, pieces_of
from coldframe.pipeline.scheduling import SIDE_BY_SIDE
from coldframe.sources import is_of_core, is_remote, open_store, scheme_of

HOME = "_coldframe"
"""The migration's own folder in the destination."""
_TEMPORARY = ".coldframe-"
"""The prefix of the names of unfinished files."""
_WITH_FOLDERS = ("hdfs", "viewfs")


@dataclass(frozen=True)
class StoredFile:
    """A file of the destination."""

    name: str
    size: int
    modified: int = 0
    """Milliseconds since 1970."""
    etag: str | None = None

    @property
    def mark(self) -> str:
        """Distinguishes its content from others of equal size without reading it: the store's name of the
        content, or the time of the last change. Empty if the store has no etag and no time.
        """
        return f"etag:{self.etag}" if self.etag else f"time:{self.modified}" if self.modified else ""


def open_destination(root: str, storage_options: Mapping[str, Any] | None = None) -> Destination:
    """The destination at a path or URL."""
    return StoreDestination(root, storage_options) if is_remote(root) else Destination(root)


class Destination:
    """A directory on a file system that the driver and all executors mount."""

    storage_options: StorageOptions = None
    """Options of the store. These options hold secrets, and must not get into files or messages."""
    at_once = 4
    """How many calls to make at once."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._store = open_store(self.root, None)

    def path(self, name: str) -> str:
        """The path or URL of a file, for other readers and writers."""
        return os.path.join(self.root, *name.split("/"))

    def name_of(self, path: str) -> str:
        """The reverse of `path`."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def list(self, folder: str = "") -> Iterator[StoredFile]:
        """All files below a folder; none if the folder does not exist."""
        try:
            for entries in self._store.list(folder, recursive=True):
                for entry in entries:
                    yield StoredFile(entry.path, entry.size, entry.modified or 0, entry.etag)
        except NotFoundError:
            return
        except OSError:
            # If the folder is a file, there is nothing below it.
            if self.stat(folder) is None:
                raise

    def stat(self, name: str) -> StoredFile | None:
        """A file; None if it does not exist."""
        entry = self._store.stat(name)
        if entry is None or entry.is_folder:
            return None
        return StoredFile(name, entry.size, entry.modified or 0, entry.etag)

    def has(self, folder: str) -> bool:
        """Whether there is a file in a folder."""
        return next(self.list(folder), None) is not None

    def is_empty(self) -> bool:
        """Whether there is no file. There may be directories: a run that is killed at once leaves them
        behind.
        """
        return not self.has("")

    def read(self, name: str) -> bytes:
        """The whole content."""
        with _as_missing():
            return self._store.read(name)

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a text file."""
        with _as_missing():
            rest = b""
            for piece in pieces_of(self._store.open(name)):
                *whole, rest = (rest + piece).split(b"\n")
                yield from whole
            if rest:
                yield rest

    def create(self, name: str, content: bytes) -> bool:
        """Whether this call created the file. Of two simultaneous calls, exactly one creates the file."""
        try:
            self._store.put(name, content)
        except FileExistsError:
            # A request that is repeated after a lost answer finds its own file. Two drivers never write the
            # same content to one name: a driver that takes over begins with a unique line.
            return self.read(name) == content
        self.settle([name])
        return True

    def write(self, name: str, content: bytes | Iterable[bytes], *, permissions: int | None = None) -> None:
        """Makes or replaces a file; an iterable is written piece by piece.

        `permissions`: bits that the umask may take away; stores without permissions ignore them.
        """
        upload = self._store.create(name, mode="over", permissions=permissions)
        try:
            for piece in (content,) if isinstance(content, bytes) else content:
                upload.write(piece)
            upload.finish()
        finally:
            upload.abandon()
        self.settle([name])

    def publish(self, staged: str, name: str) -> None:
        """Gives a staged file its final name; FileExistsError if another file has that name."""
        with _as_missing():
            try:
                self._store.publish(staged, name)
            except FileExistsError:
                # The existing file may be the staged file: after a kill between two steps, or a lost answer.
                if not self._are_same(staged, name):
                    raise
                self._store.delete(staged)

    def delete(self, name: str) -> bool:
        """Deletes a file. Returns whether the file existed, if the store reports that."""
        try:
            self._store.delete(name)
        except NotFoundError:
            return False
        except OSError:
            # If a parent of the name is a file, there is nothing below it.
            if self.stat(name) is not None:
                raise
            return False
        return True

    def copy_in(self, path: str, name: str, storage_options: StorageOptions = None) -> None:
        """Copies a file, or a directory with its contents, from elsewhere; replaces existing files.

        Only those who could read the original may read a copy.
        """
        for file in below(path, storage_options):
            source = path if not file else f"{path}/{file}"
            permissions = None if is_remote(path) else permissions_within(path, file)
            copy = f"{name}/{file}" if file else name
            self.write(copy, pieces(source, storage_options), permissions=permissions)

    def sweep(self, folder: str) -> None:
        """Deletes temporary files that a kill has left."""
        for file in list(self.list(folder)):
            last = file.name.rpartition("/")[2]
            if last.endswith(".new") or last.startswith(_TEMPORARY):
                self.delete(file.name)

    def lock(self, name: str) -> IO[str] | None:
        """Holds a lock until the returned file is closed; None if another process holds it."""
        self.expect_no_links([name.rpartition("/")[0]])
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Links are not followed, pipes are not waited for, and nothing is emptied.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):
                raise
            raise unsupported(f"{path}: expected a migration's lock, found a link or a socket") from error
        held = os.fdopen(descriptor, "r+", encoding="utf-8") if _is_file(descriptor) else None
        if held is None:
            os.close(descriptor)
            raise unsupported(f"{path}: expected a migration's lock, found something that is no file")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.close()
            return None
        return held

    def expect_no_links(self, folders: Iterable[str]) -> None:
        """Raises if a folder, or a folder between the root and that folder, is a link: its files would lie
        elsewhere.
        """
        for folder in folders:
            parts = [part for part in folder.split("/") if part]
            for at in range(1, len(parts) + 1):
                path = self.path("/".join(parts[:at]))
                if os.path.islink(path):
                    raise unsupported(
                        f"{path}: expected a directory, found a link: a migration writes below "
                        f"{self.root} only. Replace the link by a directory, or mount a disk there"
                    )

    def settle(self, names: Iterable[str]) -> None:
        """Makes the publication and deletion of these names survive a power cut."""
        for folder in {os.path.dirname(self.path(name)) for name in names}:
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def prune(self, folder: str) -> None:
        """Deletes the empty directories at and below a folder."""
        for at, _, _ in os.walk(self.path(folder), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(at)

    def _are_same(self, staged: str, name: str) -> bool:
        """Whether both names are links to one file, as after a kill between link and unlink."""
        return os.path.samefile(self.path(staged), self.path(name))


class StoreDestination(Destination):
    """HDFS or an object store."""

    at_once = SIDE_BY_SIDE

    def __init__(self, root: str, storage_options: Mapping[str, Any] | None = None) -> None:
        scheme = scheme_of(root)
        if not is_of_core(root) or scheme in ("http", "https"):
            raise unsupported(
                f"migrating into {root}: its store has no conditional put, which serves as the lock; "
                "expected a directory, HDFS, S3, Google or Azure"
            )
        self.root = root.rstrip("/")
        self.storage_options = dict(storage_options) if storage_options else None
        self._store = open_store(self.root, self.storage_options)
        self._has_folders = scheme in _WITH_FOLDERS

    def path(self, name: str) -> str:
        """The URL of a file."""
        return self._store.url_of(name) if name else f"{self._store.url}/"

    def name_of(self, path: str) -> str:
        """The reverse of `path`."""
        return path.removeprefix(self.path(""))

    def lock(self, name: str) -> IO[str] | None:
        """Checks that the journal can fence: there is no lock to hold."""
        self._store.check_exclusive(f"{name}.{uuid.uuid4().hex[:8]}.new")
        return io.StringIO()

    def expect_no_links(self, folders: Iterable[str]) -> None:
        """Does nothing: stores have no links that lead out of them."""

    def settle(self, names: Iterable[str]) -> None:
        """Does nothing: a store's answers are final."""

    def prune(self, folder: str) -> None:
        """Deletes the empty directories at and below a folder; object stores have no directories."""
        if not self._has_folders:
            return
        with contextlib.suppress(ColdframeError, OSError):
            for entry in [
                entry for entries in self._store.list(folder) for entry in entries if entry.is_folder
            ]:
                self.prune(entry.path)
            self._store.delete(folder)

    def _are_same(self, staged: str, name: str) -> bool:
        """Whether two files have the same bytes, as after a kill between the copy and the deletion."""
        first, second = self.stat(staged), self.stat(name)
        if first is None:
            raise FileNotFoundError(self.path(staged))
        if second is None or first.size != second.size:
            return False
        ours = (pieces(self.path(file), self.storage_options) for file in (staged, name))
        return all(a == b for a, b in zip_longest(*ours))


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def permissions_within(path: str, file: str) -> int:
    """The permissions of a file below a local directory, without permissions for users who may not enter
    every directory on the way to the file.

    `file` is relative to `path`; empty if `path` is the file.
    """
    permissions = 0o666 & os.stat(os.path.join(path, file) if file else path).st_mode
    at = os.path.dirname(file)
    folders = [path] if file else []
    while at:
        folders.append(os.path.join(path, at))
        at = os.path.dirname(at)
    for folder in folders:
        entered = os.stat(folder).st_mode
        for search, everything in ((0o010, 0o070), (0o001, 0o007)):
            if not entered & search:
                permissions &= ~everything
    return permissions


@contextlib.contextmanager
def _as_missing() -> Iterator[None]:
    """Raises Python's error for a file that does not exist."""
    try:
        yield
    except NotFoundError as gone:
        raise FileNotFoundError(str(gone)) from gone
