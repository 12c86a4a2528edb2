"""The one place through which the driver touches what it writes to: here a directory, in `stored` a store.

    list, stat, read, lines what lies there
    create                  a file that is not there yet, whole or not at all; False where there is one
    write                   a file, whole or not at all, in place of what there was
    publish                 a staged file under its final name; never over another file
    delete                  a file, if it is there
    copy_in                 a file or directory of elsewhere
    lock                    one holder at a time, on one host

Names are relative to the root and have slashes. What is whole on return is on disk, too. Temporary files end
in `.new`, and `sweep` deletes those that a kill has left.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from coldframe.pipeline.file_access import StorageOptions, below, pieces
from coldframe.sources import is_remote

HOME = "_coldframe"
"""The folder of the migration's own in what it writes to."""
_RENAME_NOREPLACE = 1
_AT_FDCWD = -100


@dataclass(frozen=True)
class Found:
    """A file of the destination."""

    name: str
    size: int
    modified: int = 0
    """In milliseconds since 1970."""


class Destination:
    """A directory on a file system that the driver and all executors mount."""

    storage_options: StorageOptions = None
    """How a store is reached. They hold secrets: into no file and no message."""
    at_once = 4
    """How many calls are worth making side by side."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)

    def path(self, name: str) -> str:
        """Where a file lies, for those who read and write it themselves."""
        return os.path.join(self.root, *name.split("/"))

    def name_of(self, path: str) -> str:
        """The reverse of `path`."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def list(self, folder: str = "") -> Iterator[Found]:
        """All files below a folder; none where there is no such folder."""
        top = self.path(folder) if folder else self.root
        for at, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(at, name)
                with contextlib.suppress(FileNotFoundError):
                    yield _found(self.name_of(path), os.lstat(path))

    def stat(self, name: str) -> Found | None:
        """A file; None where there is none."""
        try:
            found = os.stat(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None if stat.S_ISDIR(found.st_mode) else _found(name, found)

    def has(self, folder: str) -> bool:
        """Whether there is a file in a folder."""
        return next(self.list(folder), None) is not None

    def read(self, name: str) -> bytes:
        """The whole content."""
        with open(self.path(name), "rb") as file:
            return file.read()

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a text, one after the other."""
        with open(self.path(name), "rb") as file:
            yield from file

    def create(self, name: str, content: bytes) -> bool:
        """Whether this call made the file. Of two that try at once exactly one does."""
        temporary = self._temporary(name, content)
        try:
            rename_without_overwrite(temporary, self.path(name))
        except FileExistsError:
            os.unlink(temporary)
            return False
        self.settle([name])
        return True

    def write(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Puts a file in place of what there was; long ones in pieces."""
        os.replace(self._temporary(name, content), self.path(name))
        self.settle([name])

    def publish(self, staged: str, name: str) -> None:
        """Gives a staged file its final name; FileExistsError where a file has that name."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rename_without_overwrite(self.path(staged), path)

    def delete(self, name: str) -> bool:
        """Whether there was such a file."""
        try:
            os.unlink(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def copy_in(self, path: str, name: str, storage_options: StorageOptions = None) -> None:
        """Copies a file or directory of elsewhere, with all that is in it, in place of what there was."""
        for one in below(path, storage_options) if is_remote(path) else _below(path):
            source = path if not one else f"{path}/{one}"
            self.write(f"{name}/{one}" if one else name, pieces(source, storage_options))

    def is_empty(self) -> bool:
        """Whether there is no file: a run that was killed at once has left directories, and nothing else."""
        return not self.has("")

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

    def sweep(self, folder: str) -> None:
        """Deletes temporary files that a kill has left."""
        for found in list(self.list(folder)):
            if found.name.endswith(".new"):
                self.delete(found.name)

    def prune(self, folder: str) -> None:
        """Deletes the empty directories below a folder, and itself. A store has none."""
        for at, _, _ in os.walk(self.path(folder), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(at)

    def _temporary(self, name: str, content: bytes | Iterable[bytes]) -> str:
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{uuid.uuid4().hex[:8]}.new"
        with open(temporary, "xb") as out:
            for piece in (content,) if isinstance(content, bytes) else content:
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        return temporary


def _found(name: str, about: os.stat_result) -> Found:
    return Found(name, about.st_size, about.st_mtime_ns // 1_000_000)


def _below(path: str) -> Iterator[str]:
    """The files of a directory, by their paths relative to it; of a file `""`."""
    if not os.path.isdir(path):
        yield ""
        return
    for at, _, names in os.walk(path):
        for name in names:
            yield os.path.relpath(os.path.join(at, name), path).replace(os.sep, "/")


def rename_without_overwrite(old: str, new: str) -> None:
    """One atomic step, or FileExistsError. File systems that have none get a link and an unlink."""
    libc = ctypes.CDLL(None, use_errno=True)
    rename = getattr(libc, "renameat2", None)
    if rename is not None:
        if rename(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise OSError(code, os.strerror(code), new if code == errno.EEXIST else old)
    if os.path.exists(new) and os.path.samefile(old, new):
        # A kill came between the two steps below.
        os.unlink(old)
        return
    os.link(old, new, follow_symlinks=False)
    os.unlink(old)
