"""Deletes a source, or moves it away. A kill at any point leaves the source, or its new place, complete.

file               unlinked; or renamed within its store; or copied, compared, and unlinked
directory          local, HDFS: renamed, so that nobody reads a part of it, then deleted
                   object store: its objects one by one, those in the deepest folders first; `Remainder`
                   finds out if what is left after a kill is the rest of the same directory
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coldframe._coldframe import ColdframeError, NotFoundError
from coldframe.pipeline.file_access import StorageOptions, exists, pieces, sha256
from coldframe.sources import canonical_scheme, is_remote, open_store, options_for, scheme_of

MAX_RENAMED = 5 << 30
"""Object stores copy no larger objects in one request."""


@dataclass(frozen=True)
class Remainder:
    """The files of a directory: how many files there are, and when the newest file was changed."""

    files: int
    newest: int

    @staticmethod
    def of(path: str, storage_options: StorageOptions) -> Remainder:
        """The directory's current files."""
        entries = [entry for entry in _below(path, storage_options) if not entry.is_folder]
        return Remainder(len(entries), max((entry.modified or 0 for entry in entries), default=0))

    def is_rest_of(self, whole: Remainder) -> bool:
        """Whether these may be files of `whole` only: nobody has written since then."""
        return self.files <= whole.files and self.newest <= whole.newest


@dataclass(frozen=True)
class Removal:
    """A source that is to be deleted or moved."""

    path: str
    is_folder: bool
    mark: str
    """A part of temporary names that is unique to the source, made from its digest."""
    to: str | None = None
    """Where to move the source; None deletes it."""
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)

    def run(self) -> str:
        """Deletes or moves the source. Returns its new place; empty if it was deleted."""
        options = options_for(self.path, self.storage_options)
        place = ""
        if self.to is not None:
            place = self._free_place(self.to)
            if self._rename(place, options):
                return place
            self._copy(place, options)
        if self.is_folder:
            self._delete_folder(options)
        elif is_remote(self.path):
            open_store(self.path, options).delete("")
        else:
            os.unlink(self.path)
        return place

    def clear(self) -> None:
        """Deletes what an interrupted deletion has left of the directory under another name."""
        if self.is_folder:
            _delete_tree(self._grave, options_for(self.path, self.storage_options))

    @property
    def _grave(self) -> str:
        """The name of the directory while it is deleted: hidden, and beside the old name."""
        above, _, name = self.path.rstrip("/").rpartition("/")
        return f"{above}/.{name}.deleted-{self.mark}"

    def _free_place(self, to: str) -> str:
        """`to`, except if something else is there."""
        options = options_for(to, self.storage_options)
        if not _is_there(to, options) or (not self.is_folder and self._has_copy(to)):
            return to
        return f"{to}-{self.mark}"

    def _has_copy(self, place: str) -> bool:
        options = options_for(place, self.storage_options)
        own = options_for(self.path, self.storage_options)
        return exists(place, options) and sha256(place, options) == sha256(self.path, own)

    def _rename(self, place: str, options: StorageOptions) -> bool:
        """Renames the source; False if that is impossible, as to another store."""
        if not is_remote(self.path) and not is_remote(place):
            if _is_there(place, None):
                return False
            os.makedirs(os.path.dirname(place), exist_ok=True)
            try:
                os.rename(self.path, place)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                return False
            return True
        root = _authority(self.path)
        if root is None or root != _authority(place):
            return False
        store = open_store(root, options)
        old, new = _key(self.path), _key(place)
        if self.is_folder:
            if not store.renames_folders:
                return False
            _make_parent(store, new)
            store.publish_folder(old, new)
            return True
        entry = store.stat(old)
        if entry is None:
            raise FileNotFoundError(self.path)
        if store.stat(new) is not None or (entry.size > MAX_RENAMED and not store.renames_folders):
            return False
        store.publish(old, new)
        return True

    def _copy(self, place: str, options: StorageOptions) -> None:
        """Copies the source, and compares the copy."""
        there = options_for(place, self.storage_options)
        files = [entry.path for entry in _below(self.path, options)] if self.is_folder else [""]
        for file in files:
            source, copy = (f"{path}/{file}" if file else path for path in (self.path, place))
            digest = sha256(source, options)
            if exists(copy, there) and sha256(copy, there) == digest:
                continue
            if not is_remote(copy):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
            upload = open_store(copy, there).create("", mode="over")
            try:
                for piece in pieces(source, options):
                    upload.write(piece)
                upload.finish()
            finally:
                upload.abandon()
            if sha256(copy, there) != digest:
                raise ColdframeError(f"{copy}: it differs from {source}, of which it is a copy")
            if not is_remote(source) and not is_remote(copy):
                shutil.copystat(source, copy)

    def _delete_folder(self, options: StorageOptions) -> None:
        if not is_remote(self.path):
            if os.path.islink(self.path):
                os.unlink(self.path)
                return
            os.rename(self.path, self._grave)
            _delete_tree(self._grave, options)
            return
        root = _authority(self.path)
        store = None if root is None else open_store(root, options)
        if store is not None and store.renames_folders:
            store.publish_folder(_key(self.path), _key(self._grave))
            _delete_tree(self._grave, options)
            return
        store = open_store(self.path, options)
        names = [entry.path for entry in _below(self.path, options) if not entry.is_folder]
        for name in sorted(names, key=lambda name: -name.count("/")):
            with contextlib.suppress(NotFoundError):
                store.delete(name)
        # Markers of folders are no files.
        store.delete("", recursive=True)


def _below(path: str, options: StorageOptions) -> list[Any]:
    return [entry for some in open_store(path, options).list("", recursive=True) for entry in some]


def _is_there(path: str, options: StorageOptions) -> bool:
    return open_store(path, options).stat() is not None if is_remote(path) else os.path.lexists(path)


def _delete_tree(path: str, options: StorageOptions) -> None:
    if not is_remote(path):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)
    elif _is_there(path, options):
        open_store(path, options).delete("", recursive=True)


def _authority(url: str) -> str | None:
    """The root of a URL's store."""
    scheme = scheme_of(url)
    if scheme is None:
        return None
    return f"{canonical_scheme(scheme)}://{url.partition('://')[2].partition('/')[0]}"


def _key(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


def _make_parent(store: Any, key: str) -> None:
    """Makes the folder of a new name, by a file in it: stores create a folder together with its
    first file.
    """
    above = key.rpartition("/")[0]
    if above and store.stat(above) is None:
        store.put(f"{above}/.coldframe-trash", b"", mode="over")
