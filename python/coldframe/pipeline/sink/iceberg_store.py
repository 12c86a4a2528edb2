"""Iceberg on a store: files through our own stores, and a catalog next to the tables.

    DST/_coldframe/iceberg.db ──▶ a local copy ──▶ pyiceberg's SQL catalog ──▶ put back

The catalog defines the tables, so putting it back is the commit: with an etag, it replaces only the catalog
that was read. A run that is killed before that leaves unreferenced metadata files.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from coldframe._coldframe import ColdframeError, NotFoundError, Store, StoreEntry
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.sources import open_store, options_for
from coldframe.store_file import RangedFile

CATALOG = f"{HOME}/iceberg.db"
ROOT = "coldframe.root"
_OPTIONS: dict[str, StorageOptions] = {}
"""Storage options by root. The options are not in pyiceberg's properties, which are shown in some places."""


class CatalogCopy:
    """The catalog of a destination on a store, as a local file."""

    def __init__(self, destination: Destination, path: str) -> None:
        self._store = open_store(destination.root, destination.storage_options)
        self._path = path
        self._entry: StoreEntry | None = self._store.stat(CATALOG)
        if self._entry is not None:
            with open(path, "wb") as copy:
                copy.write(self._store.read(CATALOG))

    @property
    def exists(self) -> bool:
        """Whether the destination has a catalog."""
        return self._entry is not None

    def put_back(self) -> None:
        """Publishes the copy to the destination."""
        with open(self._path, "rb") as copy:
            content = copy.read()
        if self._entry is None:
            self._entry = self._store.put(CATALOG, content)
        else:
            self._entry = self._store.put(CATALOG, content, mode="over", etag=self._entry.etag)


@contextlib.contextmanager
def catalog_copy(destination: Destination) -> Iterator[tuple[str, CatalogCopy]]:
    """The path of a local copy of the catalog, and the copy, for the duration of the block."""
    with tempfile.TemporaryDirectory(prefix="coldframe-") as folder:
        path = os.path.join(folder, "iceberg.db")
        yield path, CatalogCopy(destination, path)


def io_properties(destination: Destination) -> dict[str, str]:
    """Makes pyiceberg read and write the destination's files through `StoreIO`."""
    _OPTIONS[destination.root] = destination.storage_options
    return {"py-io-impl": f"{__name__}.StoreIO", ROOT: destination.root}


class StoreIO(FileIO):
    """The files of a destination, for pyiceberg."""

    elsewhere: StorageOptions = None
    """The options for files outside of the destination."""

    def _store(self, location: str) -> Store:
        root = str(self.properties.get(ROOT))
        if self.elsewhere is not None and not location.removeprefix("file://").startswith(f"{root}/"):
            return open_store(location, options_for(location, self.elsewhere))
        return open_store(location, _OPTIONS.get(root))

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return _Input(location, self._store(location))

    def new_output(self, location: str) -> OutputFile:
        """A file to write."""
        return _Output(location, self._store(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Deletes a file."""
        place = location if isinstance(location, str) else location.location
        try:
            self._store(place).delete("")
        except NotFoundError as gone:
            raise FileNotFoundError(place) from gone


class _Input(InputFile):
    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        self._store = store

    def __len__(self) -> int:
        return _size(self._store, self.location)

    def exists(self) -> bool:
        return _is_file(self._store)

    def open(self, seekable: bool = True) -> InputStream:
        try:
            return RangedFile(self._store)
        except NotFoundError as gone:
            raise FileNotFoundError(self.location) from gone


class _Output(OutputFile):
    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        self._store = store

    def __len__(self) -> int:
        return _size(self._store, self.location)

    def exists(self) -> bool:
        return _is_file(self._store)

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._store)

    def create(self, overwrite: bool = False) -> OutputStream:
        if not overwrite and self.exists():
            raise FileExistsError(self.location)
        return _Stream(self._store.create("", mode="over" if overwrite else "new"))


class _Stream:
    """An upload for pyiceberg, which closes it even after an error."""

    def __init__(self, upload: Any) -> None:
        self._upload = upload
        self.closed = False

    def write(self, b: bytes) -> int:
        written: int = self._upload.write(b)
        return written

    def tell(self) -> int:
        at: int = self._upload.tell()
        return at

    def flush(self) -> None:
        """Does nothing: closing sends everything."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._upload.finish()

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.closed = True
            self._upload.abandon()


def _is_file(store: Store) -> bool:
    entry = store.stat()
    return entry is not None and not entry.is_folder


def _size(store: Store, location: str) -> int:
    entry = store.stat()
    if entry is None or entry.is_folder:
        raise ColdframeError(f"{location}: no such file")
    return entry.size
