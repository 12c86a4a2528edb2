"""Adapts Python file systems (fsspec's and pyarrow's) to stores, for schemes that the core does not support.

The core calls an object with this interface, using paths of the file system:

    list(folder, deep) -> iterator of Info     the direct entries, or all files below
    stat(path) -> Info | None
    read(path, start, end) -> bytes            by ranges, since threads would share a file's position
    create(path, new) -> writer                write(bytes), finish(), abandon(); new: fails if it exists
    publish(source, path, new)                 renames a file
    delete(path), delete_folder(path)

Few of these file systems have an atomic "create if absent". This module checks the path first instead, so two
processes that create it at the same time may both believe that they were first.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterator
from typing import Any

from coldframe.errors import unsupported
from coldframe.logs import step

_log = logging.getLogger(__name__)

# Path, size, whether it is a folder, milliseconds since 1970, etag.
Info = tuple[str, int, bool, "int | None", "str | None"]


class FsspecFiles:
    """A file system of fsspec."""

    def __init__(self, filesystem: Any) -> None:
        self._files = filesystem

    def list(self, folder: str, deep: bool) -> Iterator[Info]:
        with _call(self._files, "list", folder):
            if deep:
                infos = self._files.find(folder, detail=True).values()
            else:
                infos = self._files.ls(folder, detail=True)
        return (self._info_of(info) for info in infos if info["name"].rstrip("/") != folder.rstrip("/"))

    def stat(self, path: str) -> Info | None:
        try:
            # A file system may cache listings, but a new file must be visible.
            self._files.invalidate_cache(_above(path))
            with _call(self._files, "info", path):
                return self._info_of(self._files.info(path))
        except FileNotFoundError:
            return None

    def read(self, path: str, start: int, end: int) -> bytes:
        with _call(self._files, "read", path, start, end):
            return bytes(self._files.cat_file(path, start=start, end=end))

    def create(self, path: str, new: bool) -> _Writer:
        if new and self._files.exists(path):
            raise FileExistsError(path)
        self._files.makedirs(_above(path), exist_ok=True)
        temporary = _beside(path)
        return _Writer(
            self._files.open(temporary, "wb"),
            lambda: self.publish(temporary, path, new),
            lambda: self._files.rm_file(temporary),
        )

    def publish(self, source: str, path: str, new: bool) -> None:
        if new and self._files.exists(path):
            raise FileExistsError(path)
        self._files.makedirs(_above(path), exist_ok=True)
        with _call(self._files, "publish", path):
            self._files.mv(source, path)

    def delete(self, path: str) -> None:
        self._files.rm_file(path)

    def delete_folder(self, path: str) -> None:
        if self._files.exists(path):
            self._files.rm(path, recursive=True)

    @staticmethod
    def _info_of(info: dict[str, Any]) -> Info:
        is_folder = info["type"] == "directory"
        modified = next(
            (
                info[key]
                for key in ("mtime", "LastModified", "last_modified", "modified", "created")
                if key in info
            ),
            None,
        )
        etag = info.get("ETag") or info.get("etag")
        size = 0 if is_folder else int(info.get("size") or 0)
        return info["name"].rstrip("/"), size, is_folder, _milliseconds(modified), etag


class ArrowFiles:
    """A `pyarrow.fs.FileSystem`."""

    def __init__(self, filesystem: Any) -> None:
        self._files = filesystem

    def list(self, folder: str, deep: bool) -> Iterator[Info]:
        from pyarrow.fs import FileSelector

        with _call(self._files, "list", folder):
            infos = self._files.get_file_info(FileSelector(folder, recursive=deep))
        return (self._info_of(info) for info in infos if not deep or info.is_file)

    def stat(self, path: str) -> Info | None:
        from pyarrow.fs import FileType

        with _call(self._files, "info", path):
            info = self._files.get_file_info(path)
        return None if info.type == FileType.NotFound else self._info_of(info)

    def read(self, path: str, start: int, end: int) -> bytes:
        with _call(self._files, "read", path, start, end), self._files.open_input_file(path) as file:
            return bytes(file.read_at(end - start, start))

    def create(self, path: str, new: bool) -> _Writer:
        if new and self.stat(path) is not None:
            raise FileExistsError(path)
        self._files.create_dir(_above(path), recursive=True)
        temporary = _beside(path)
        return _Writer(
            self._files.open_output_stream(temporary),
            lambda: self.publish(temporary, path, new),
            lambda: self._files.delete_file(temporary),
        )

    def publish(self, source: str, path: str, new: bool) -> None:
        if new and self.stat(path) is not None:
            raise FileExistsError(path)
        self._files.create_dir(_above(path), recursive=True)
        with _call(self._files, "publish", path):
            self._files.move(source, path)

    def delete(self, path: str) -> None:
        self._files.delete_file(path)

    def delete_folder(self, path: str) -> None:
        if self.stat(path) is not None:
            self._files.delete_dir(path)

    @staticmethod
    def _info_of(info: Any) -> Info:
        return info.path.rstrip("/"), info.size or 0, not info.is_file, _milliseconds(info.mtime), None


class _Writer:
    """A file written under a temporary name."""

    def __init__(self, file: Any, publish: Any, forget: Any) -> None:
        self._file = file
        self._publish = publish
        self._forget = forget

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def finish(self) -> None:
        self._file.close()
        self._publish()

    def abandon(self) -> None:
        self._file.close()
        self._forget()


def files_of(filesystem: Any) -> FsspecFiles | ArrowFiles:
    """An object with the interface above, for a file system."""
    if hasattr(filesystem, "get_file_info") and hasattr(filesystem, "open_input_file"):
        return ArrowFiles(filesystem)
    if hasattr(filesystem, "cat_file") and hasattr(filesystem, "find"):
        return FsspecFiles(filesystem)
    raise unsupported(f"{type(filesystem).__name__} as a file system: expected one of fsspec or pyarrow.fs")


def _call(filesystem: Any, name: str, path: str, *span: int) -> Any:
    """Logs a call of a file system; `span`: the range of the file that the call reads, if any."""
    what = "%s: %s %s, %d to %d" if span else "%s: %s %s"
    return step(_log, logging.DEBUG, what, type(filesystem).__name__, name, path, *span)


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _beside(path: str) -> str:
    """A unique name that readers of folders ignore."""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}.coldframe-{uuid.uuid4().hex}"


def _milliseconds(moment: Any) -> int | None:
    if isinstance(moment, dt.datetime):
        return round(moment.timestamp() * 1000)
    return round(moment * 1000) if isinstance(moment, (int, float)) else None
