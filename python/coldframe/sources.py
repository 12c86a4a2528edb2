"""What `open` takes, brought to the three things that the core reads: a path or URL, bytes, a file object."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from coldframe.errors import unsupported

__all__ = ["Source"]

# Schemes that the core's own object stores answer to; every other one goes through fsspec.
CORE_SCHEMES = frozenset({"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https"})

# At least two letters, so that a Windows drive is not taken for a scheme.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")


def scheme_of(path: str) -> str | None:
    """The scheme of a URL in lower case, None for a plain path."""
    match = _SCHEME.match(path)
    return match.group(1).lower() if match else None


def fsspec_filesystem(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as missing:
        raise unsupported(
            f"{url}: scheme {scheme_of(url)!r} needs the package fsspec, which is not installed"
        ) from missing
    try:
        filesystem, path = url_to_fs(url, **dict(storage_options or {}))
    except (ImportError, OSError, ValueError) as reason:
        why = str(reason).partition("\n")[0]
        raise unsupported(f"{url}: no file system for scheme {scheme_of(url)!r}: {why}") from reason
    return filesystem, path


class Source:
    """One source as the caller gave it; `handle()` is what the core reads from."""

    __slots__ = ("_given", "path", "storage_options")

    def __init__(self, given: object, storage_options: Mapping[str, Any] | None = None) -> None:
        self.storage_options = dict(storage_options) if storage_options else None
        self.path: str | None = None
        if isinstance(given, (str, os.PathLike)):
            self.path = os.fsdecode(given)
            given = self.path
        elif not _is_bytes_like(given) and not _is_file(given):
            if not (hasattr(given, "open") and hasattr(given, "fs") and hasattr(given, "path")):
                raise TypeError(
                    f"cannot open {type(given).__name__}: expected a path, a URL, bytes or a seekable file"
                )
            given = given.open()  # fsspec's OpenFile: a promise of a file
        self._given = given

    @property
    def travels(self) -> bool:
        """Whether another process can open the same source."""
        return self.path is not None

    @property
    def is_core(self) -> bool:
        """Whether the core reads it by itself: a path, a URL of its own stores, or bytes."""
        if self.path is None:
            return not _is_file(self._given)
        scheme = scheme_of(self.path)
        return scheme in (None, "file") or scheme in CORE_SCHEMES

    def handle(self) -> object:
        """What the core takes. For a scheme that only fsspec knows, a newly opened file."""
        if self.path is None:
            return self._given
        if self.is_core:
            return self._given
        filesystem, path = fsspec_filesystem(self.path, self.storage_options)
        try:
            return filesystem.open(path, "rb")
        except FileNotFoundError as missing:
            from coldframe.errors import NotFoundError

            raise NotFoundError(f"{self.path}: no such file") from missing

    def core_options(self) -> dict[str, str] | None:
        """The storage options for the core's own stores, which know strings only."""
        if not self.storage_options or self.path is None or scheme_of(self.path) not in CORE_SCHEMES:
            return None
        return {key: str(value) for key, value in self.storage_options.items()}

    def __repr__(self) -> str:
        return self.path if self.path is not None else f"<{type(self._given).__name__}>"


def _is_bytes_like(given: object) -> bool:
    try:
        memoryview(given)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _is_file(given: object) -> bool:
    return all(callable(getattr(given, name, None)) for name in ("read", "seek", "tell"))
