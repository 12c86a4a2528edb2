"""The one place through which the driver touches what it writes to: a directory, HDFS, or an object store.

    list, stat, read, lines what lies there
    create                  a file that is not there yet, whole or not at all; False where there is one
    write                   a file, whole or not at all, in place of what there was
    publish                 a staged file under its final name; never over another file
    delete                  a file, if it is there
    copy_in                 a file or directory of elsewhere
    lock                    one holder at a time

Names are relative to the root and have slashes. What is whole on return is on disk, too. The core's stores do
the work; they differ in what they promise:

    directory        create and publish: rename without overwriting; lock: of the file system, on one host
    HDFS             the same renames; no lock
    object stores    create: put-if-absent; publish: conditional copy on the server, then delete; no lock

Where there is no lock, the journal's numbers fence: a driver that another one has replaced stops at its next
segment, before it touches a table. A store that takes the condition of a put and does not keep to it is
refused before anything is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import IO, Any

from coldframe._coldframe import ColdframeError, NotFoundError
from coldframe.errors import unsupported
from coldframe.pipeline.file_access import StorageOptions, below, pieces
from coldframe.pipeline.scheduling import SIDE_BY_SIDE
from coldframe.sources import is_of_core, is_remote, open_store, scheme_of

HOME = "_coldframe"
"""The folder of the migration's own in what it writes to."""
_TEMPORARY = ".coldframe-"
"""How the names begin under which stores have what is not whole yet."""
_WITH_FOLDERS = ("hdfs", "viewfs")


@dataclass(frozen=True)
class StoredFile:
    """A file of the destination."""

    name: str
    size: int
    modified: int = 0
    """In milliseconds since 1970."""


def open_destination(root: str, storage_options: Mapping[str, Any] | None = None) -> Destination:
    """The destination at a path or URL."""
    return StoreDestination(root, storage_options) if is_remote(root) else Destination(root)


class Destination:
    """A directory on a file system that the driver and all executors mount."""

    storage_options: StorageOptions = None
    """How a store is reached. They hold secrets: into no file and no message."""
    at_once = 4
    """How many calls are worth making side by side."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._store = open_store(self.root, None)

    def path(self, name: str) -> str:
        """Where a file lies, for those who read and write it themselves."""
        return os.path.join(self.root, *name.split("/"))

    def name_of(self, path: str) -> str:
        """The reverse of `path`."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def list(self, folder: str = "") -> Iterator[StoredFile]:
        """All files below a folder; none where there is no such folder."""
        try:
            for entries in self._store.list(folder, recursive=True):
                for entry in entries:
                    yield StoredFile(entry.path, entry.size, entry.modified or 0)
        except NotFoundError:
            return
        except OSError:
            # A file of that name has nothing below it.
            if self.stat(folder) is None:
                raise

    def stat(self, name: str) -> StoredFile | None:
        """A file; None where there is none."""
        entry = self._store.stat(name)
        if entry is None or entry.is_folder:
            return None
        return StoredFile(name, entry.size, entry.modified or 0)

    def has(self, folder: str) -> bool:
        """Whether there is a file in a folder."""
        return next(self.list(folder), None) is not None

    def is_empty(self) -> bool:
        """Whether there is no file: a run that was killed at once has left directories, and nothing else."""
        return not self.has("")

    def read(self, name: str) -> bytes:
        """The whole content."""
        with _as_missing():
            return self._store.read(name)

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a text, one after the other."""
        with _as_missing():
            rest = b""
            for piece in pieces(self.path(name), self.storage_options):
                *whole, rest = (rest + piece).split(b"\n")
                yield from whole
            if rest:
                yield rest

    def create(self, name: str, content: bytes) -> bool:
        """Whether this call created the file. Of two simultaneous calls exactly one does."""
        try:
            self._store.put(name, content)
        except FileExistsError:
            # If an answer was lost, the request is repeated and finds its own file. Two drivers never write
            # the same content to one name: a driver that takes over begins with a line of its own.
            return self.read(name) == content
        self.settle([name])
        return True

    def write(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Puts a file in place of what there was; long ones in pieces."""
        upload = self._store.create(name, mode="over")
        try:
            for piece in (content,) if isinstance(content, bytes) else content:
                upload.write(piece)
            upload.finish()
        finally:
            upload.abandon()
        self.settle([name])

    def publish(self, staged: str, name: str) -> None:
        """Gives a staged file its final name; FileExistsError where another file has that name."""
        with _as_missing():
            try:
                self._store.publish(staged, name)
            except FileExistsError:
                # A kill came between two steps, or an answer was lost.
                if not self._are_same(staged, name):
                    raise
                self._store.delete(staged)

    def delete(self, name: str) -> bool:
        """Whether there was such a file, where the store says so."""
        try:
            self._store.delete(name)
        except NotFoundError:
            return False
        except OSError:
            # Below a file there is none.
            if self.stat(name) is not None:
                raise
            return False
        return True

    def copy_in(self, path: str, name: str, storage_options: StorageOptions = None) -> None:
        """Copies a file or directory of elsewhere, with all that is in it, in place of what there was."""
        for file in below(path, storage_options):
            source = path if not file else f"{path}/{file}"
            self.write(f"{name}/{file}" if file else name, pieces(source, storage_options))

    def sweep(self, folder: str) -> None:
        """Deletes temporary files that a kill has left."""
        for file in list(self.list(folder)):
            last = file.name.rpartition("/")[2]
            if last.endswith(".new") or last.startswith(_TEMPORARY):
                self.delete(file.name)

    def lock(self, name: str) -> IO[str] | None:
        """Holds a lock until the answer is closed; None where another one holds it."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        held = open(path, "w", encoding="utf-8")  # noqa: SIM115 - the caller closes it
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.close()
            return None
        return held

    def settle(self, names: Iterable[str]) -> None:
        """What was published and deleted among these names survives a power cut from here on."""
        for folder in {os.path.dirname(self.path(name)) for name in names}:
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def prune(self, folder: str) -> None:
        """Deletes the empty directories below a folder, and itself."""
        for at, _, _ in os.walk(self.path(folder), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(at)

    def _are_same(self, staged: str, name: str) -> bool:
        """Whether both names are of one file: a file system without the one step has a link and an unlink."""
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
        """Makes sure that the journal can fence; what is to be closed is nothing."""
        self._store.check_exclusive(f"{name}.{uuid.uuid4().hex[:8]}.new")
        return io.StringIO()

    def settle(self, names: Iterable[str]) -> None:
        """What a store has said to be done is done."""

    def prune(self, folder: str) -> None:
        """Deletes the empty directories below a folder, and itself; object stores have none."""
        if not self._has_folders:
            return
        with contextlib.suppress(ColdframeError, OSError):
            for entry in [
                entry for entries in self._store.list(folder) for entry in entries if entry.is_folder
            ]:
                self.prune(entry.path)
            self._store.delete(folder)

    def _are_same(self, staged: str, name: str) -> bool:
        """Whether two files have the same bytes: a kill came between the copy and the deletion."""
        first, second = self.stat(staged), self.stat(name)
        if first is None:
            raise FileNotFoundError(self.path(staged))
        if second is None or first.size != second.size:
            return False
        ours = (pieces(self.path(file), self.storage_options) for file in (staged, name))
        return all(a == b for a, b in zip_longest(*ours))


@contextlib.contextmanager
def _as_missing() -> Iterator[None]:
    """Raises Python's error for a file that does not exist."""
    try:
        yield
    except NotFoundError as gone:
        raise FileNotFoundError(str(gone)) from gone
