"""The files of a target folder with their sizes, from one listing: a call per file would take hours."""

from __future__ import annotations

from collections.abc import Iterator

from coldframe.pipeline.sink.destination import Destination, Found
from coldframe.pipeline.state.scratch import Rows, Scratch


class StoredFiles:
    """The contents of a folder as of the first query."""

    def __init__(self, destination: Destination, folder: str, *, without: tuple[str, ...] = ()) -> None:
        """`without`: subfolders to ignore."""
        self._destination, self._folder = destination, folder
        self._without = tuple(f"{folder}/{name}/" for name in without)
        self._listed: Rows[Found] | None = None

    def get(self, name: str) -> Found | None:
        """A file; None if it does not exist."""
        return self._files().get(name)

    def is_whole(self, name: str, size: int) -> bool:
        """Whether a file exists with its size; a file outside the folder is queried individually."""
        inside = name.startswith(f"{self._folder}/")
        found = self.get(name) if inside else self._destination.stat(name)
        return found is not None and found.size == size

    def __iter__(self) -> Iterator[Found]:
        return iter(self._files())

    def __bool__(self) -> bool:
        return bool(self._files())

    def _files(self) -> Rows[Found]:
        if self._listed is None:
            self._listed = Rows(
                Scratch(),
                lambda found: found.name,
                lambda found: (found.name, found.size, found.modified),
                lambda row: Found(*row),
            )
            for found in self._destination.list(self._folder):
                if not found.name.startswith(self._without):
                    self._listed.append(found)
        return self._listed
