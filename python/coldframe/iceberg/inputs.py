"""Gives PyIceberg the files of a table through coldframe's stores."""

from __future__ import annotations

import io

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

from coldframe.errors import ColdframeError, NotFoundError, unsupported
from coldframe.iceberg.avro import check_frame
from coldframe.iceberg.store import TableFiles


class Inputs(FileIO):
    """Reads a table's files at their current location; writes nothing."""

    def __init__(self, files: TableFiles) -> None:
        super().__init__()
        self._files = files

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return _Input(location, self._files)

    def new_output(self, location: str) -> OutputFile:
        """Unsupported."""
        raise unsupported("writing to an Iceberg table through a read")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Unsupported."""
        raise unsupported("deleting from an Iceberg table through a read")


class _Input(InputFile):
    def __init__(self, location: str, files: TableFiles) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return self._files.ranged(self.location).size

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except (ColdframeError, OSError):
            return False

    def open(self, seekable: bool = True) -> InputStream:
        try:
            stream = self._files.ranged(self.location)
        except NotFoundError as gone:
            raise FileNotFoundError(self.location) from gone
        if self.location.endswith((".json", ".gz")):
            return stream
        # A manifest or a list of manifests: PyIceberg, too, reads these files whole.
        content = stream.read()
        check_frame(content)
        return io.BytesIO(content)
