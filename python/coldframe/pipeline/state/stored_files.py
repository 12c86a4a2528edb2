"""The files of a target folder with their sizes, from one listing: calls for each file would take hours."""

from __future__ import annotations

from collections.abc import Iterator

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.file_access import sha256
from coldframe.pipeline.records import Part
from coldframe.pipeline.sink.destination import Destination, StoredFile
from coldframe.pipeline.state.scratch import Rows, Scratch


class StoredFiles:
    """The contents of a folder as of the first query."""

    def __init__(self, destination: Destination, folder: str, *, without: tuple[str, ...] = ()) -> None:
        """`without`: subfolders to ignore."""
        self._destination, self._folder = destination, folder
        self._without = tuple(f"{folder}/{name}/" for name in without)
        self._listed: Rows[StoredFile] | None = None

    def get(self, name: str) -> StoredFile | None:
        """A file; None if it does not exist."""
        return self._files().get(name)

    def is_whole(self, name: str, size: int) -> bool:
        """Whether a file exists with its size; a file outside the folder is queried individually."""
        inside = name.startswith(f"{self._folder}/")
        file = self.get(name) if inside else self._destination.stat(name)
        return file is not None and file.size == size

    def is_intact(self, part: Part) -> bool:
        """Whether a published file has the bytes that were written. Reads the file if it was touched since
        then.
        """
        if not self.is_whole(part.final, part.bytes):
            return False
        file = self.get(part.final) if part.final.startswith(f"{self._folder}/") else None
        if file is None or part.stored in ("", file.mark):
            return True
        destination = self._destination
        try:
            actual = sha256(destination.path(part.final), destination.storage_options)
        except (ColdframeError, OSError):
            return False
        return actual == part.sha256

    def __iter__(self) -> Iterator[StoredFile]:
        return iter(self._files())

    def __bool__(self) -> bool:
        return bool(self._files())

    def _files(self) -> Rows[StoredFile]:
        if self._listed is None:
            self._listed = Rows(
                Scratch(),
                lambda file: file.name,
                lambda file: (file.name, file.size, file.modified, file.etag),
                lambda row: StoredFile(*row),
            )
            for file in self._destination.list(self._folder):
                if not file.name.startswith(self._without):
                    self._listed.append(file)
        return self._listed
