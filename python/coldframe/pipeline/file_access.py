"""Access to files by path or URL, for tasks: local files, or files of a store.

Local files are passed to pyarrow by path; files of a store are read by ranges.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from coldframe._coldframe import NotFoundError, StoreFile, local_path, shown
from coldframe.errors import unsupported
from coldframe.sources import canonical_scheme, is_remote, open_store, scheme_of
from coldframe.store_file import RangedFile

StorageOptions = Mapping[str, Any] | None
PIECE = 16 << 20
"""Bytes per request if a whole file is read."""


def reading(path: str, storage_options: StorageOptions = None) -> Any:
    """A file in a form that pyarrow can read."""
    return RangedFile(open_store(path, storage_options)) if is_remote(path) else path


def pieces(path: str, storage_options: StorageOptions = None) -> Iterator[bytes]:
    """The whole content, in pieces that fit into memory."""
    if not is_remote(path):
        with opened(path) as file:
            while block := file.read(1 << 20):
                yield block
        return
    yield from pieces_of(open_store(path, storage_options).open())


def opened(path: str) -> BinaryIO:
    """A local file for reading. Pipes and devices are refused, and never waited for."""
    if stat.S_ISREG(os.stat(path).st_mode):
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - the caller closes it
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
    raise unsupported(f"{path}: expected a file, found a directory, pipe or device")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def pieces_of(file: StoreFile) -> Iterator[bytes]:
    """The whole content of an open file, in pieces that fit into memory."""
    for start in range(0, file.size, PIECE):
        yield file.read(start, start + PIECE)


def sha256(path: str, storage_options: StorageOptions = None) -> str:
    """The SHA-256 of a file, by which it can be recognised later."""
    return digest_of(pieces(path, storage_options))


def digest_of(content: Iterable[bytes]) -> str:
    """The SHA-256 of bytes in pieces."""
    digest = hashlib.sha256()
    for piece in content:
        digest.update(piece)
    return digest.hexdigest()


def discard(path: str, storage_options: StorageOptions = None) -> None:
    """Deletes a file if it exists."""
    if not is_remote(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    with contextlib.suppress(NotFoundError):
        open_store(path, storage_options).delete("")


def below(path: str, storage_options: StorageOptions = None) -> Iterator[str]:
    """The files of a folder, by paths relative to it; a file has the path `""`."""
    store = open_store(path, storage_options)
    entry = store.stat()
    if entry is None:
        raise FileNotFoundError(path)
    if not entry.is_folder:
        yield ""
        return
    for entries in store.list("", recursive=True):
        for file in entries:
            yield file.path


def exists(path: str, storage_options: StorageOptions = None) -> bool:
    """Whether the file exists."""
    if not is_remote(path):
        return os.path.isfile(path)
    entry = open_store(path, storage_options).stat()
    return entry is not None and not entry.is_folder


def root_of(given: str | os.PathLike[str]) -> str:
    """A root as an absolute path, or as a URL without a trailing slash."""
    text = os.fspath(given)
    local = local_path(text)
    if local is not None:
        return os.path.realpath(local)
    if shown(text) != text:
        raise ValueError(
            f"{shown(text)}: expected a URL without a password or signature, since a migration records its "
            "URLs; give them as storage options"
        )
    bare = text.rstrip("/")
    return text if bare.endswith(":") else bare


def canonical_root(root: str) -> str:
    """A root in canonical form, so that all names of a place are equal."""
    scheme = scheme_of(root)
    if scheme is None:
        return root
    return f"{canonical_scheme(scheme)}{root[len(scheme) :]}"
