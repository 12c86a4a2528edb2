"""A store as what a migration writes to: the steps that a directory has, by what stores promise.

    create      put-if-absent: of two drivers that want one number in the journal, one gets it
    publish     HDFS: rename without overwriting; object stores: conditional copy on the server, then delete
    lock        none: the journal's numbers fence. A driver that another one has replaced stops at its next
                segment, before it touches a table

A store that takes the condition of a put and does not keep to it is refused before anything is written.
"""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import IO, Any

from coldframe._coldframe import ColdframeError, NotFoundError
from coldframe.errors import unsupported
from coldframe.pipeline.file_access import pieces
from coldframe.pipeline.scheduling import SIDE_BY_SIDE
from coldframe.pipeline.target.destination import Destination, Found
from coldframe.sources import is_of_core, is_remote, open_store, scheme_of

_WITH_FOLDERS = ("hdfs", "viewfs")
_TEMPORARY = ".coldframe-"
"""How the names begin under which HDFS has what is not whole yet."""


def open_destination(root: str, storage_options: Mapping[str, Any] | None = None) -> Destination:
    """The destination at a path or URL."""
    return StoreDestination(root, storage_options) if is_remote(root) else Destination(root)


class StoreDestination(Destination):
    """HDFS or an object store."""

    at_once = SIDE_BY_SIDE

    def __init__(self, root: str, storage_options: Mapping[str, Any] | None = None) -> None:
        scheme = scheme_of(root)
        if not is_of_core(root) or scheme in ("http", "https"):
            raise unsupported(
                f"migrating into {root}: its store cannot create a file only where there is none, which is "
                "what keeps two runs apart; expected a directory, HDFS, S3, Google or Azure"
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

    def list(self, folder: str = "") -> Iterator[Found]:
        """All files below a folder; none where there is no such folder."""
        try:
            for some in self._store.list(folder, recursive=True):
                for one in some:
                    yield Found(one.path, one.size, one.modified or 0)
        except NotFoundError:
            return

    def stat(self, name: str) -> Found | None:
        """A file; None where there is none."""
        found = self._store.stat(name)
        if found is None or found.is_folder:
            return None
        return Found(name, found.size, found.modified or 0)

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
        """Whether this call made the file. Of two that try at once exactly one does."""
        try:
            self._store.put(name, content)
        except FileExistsError:
            # A request whose answer was lost is sent again, and finds what it has made itself. No two drivers
            # write the same to one name: whoever takes over begins with a line of its own.
            return self.read(name) == content
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

    def publish(self, staged: str, name: str) -> None:
        """Gives a staged file its final name; FileExistsError where another file has that name."""
        with _as_missing():
            try:
                self._store.publish(staged, name)
            except FileExistsError:
                # A kill came between the copy and the deletion, or an answer was lost.
                if not self._are_same(staged, name):
                    raise
                self._store.delete(staged)

    def delete(self, name: str) -> bool:
        """Whether there was such a file, where the store says so."""
        try:
            self._store.delete(name)
        except NotFoundError:
            return False
        return True

    def lock(self, name: str) -> IO[str] | None:
        """Makes sure that the journal can fence; what is to be closed is nothing."""
        self._store.check_exclusive(f"{name}.{uuid.uuid4().hex[:8]}.new")
        return io.StringIO()

    def settle(self, names: Iterable[str]) -> None:
        """What a store has said to be done is done."""

    def sweep(self, folder: str) -> None:
        """Deletes temporary files that a kill has left."""
        for found in list(self.list(folder)):
            last = found.name.rpartition("/")[2]
            if last.endswith(".new") or last.startswith(_TEMPORARY):
                self.delete(found.name)

    def prune(self, folder: str) -> None:
        """Deletes the empty directories below a folder, and itself; object stores have none."""
        if not self._has_folders:
            return
        with contextlib.suppress(ColdframeError, OSError):
            for one in [one for some in self._store.list(folder) for one in some if one.is_folder]:
                self.prune(one.path)
            self._store.delete(folder)

    def _are_same(self, one: str, other: str) -> bool:
        """Whether two files have the same bytes."""
        first, second = self.stat(one), self.stat(other)
        if first is None:
            raise FileNotFoundError(self.path(one))
        if second is None or first.size != second.size:
            return False
        ours = (pieces(self.path(name), self.storage_options) for name in (one, other))
        return all(a == b for a, b in zip_longest(*ours))


@contextlib.contextmanager
def _as_missing() -> Iterator[None]:
    """What is not there, in the words of Python."""
    try:
        yield
    except NotFoundError as gone:
        raise FileNotFoundError(str(gone)) from gone
