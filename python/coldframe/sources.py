"""Converts what `open` accepts (paths, URLs, stores, bytes, file objects) to what the core reads."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coldframe import _coldframe
from coldframe._coldframe import shown, shown_in
from coldframe.errors import unsupported
from coldframe.logs import step

_log = logging.getLogger(__name__)

# The identity of a file from a listing: size, milliseconds since 1970, etag.
Known = tuple[int, "int | None", "str | None"]

# Schemes that the core supports; all others go through fsspec.
CORE_SCHEMES = frozenset(_coldframe.store_schemes())

# At least two letters, so that a Windows drive is not taken for a scheme.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://")

# obstore and other libraries group some options under these names.
_GROUPS = ("client_options", "retry_config")


def scheme_of(path: str) -> str | None:
    """The scheme of a URL in lower case; None for a plain path."""
    match = _SCHEME.match(path)
    return match.group(1).lower() if match else None


# The storage option that carries a Python file system along with a path, also to other processes.
_FILESYSTEM = "filesystem"


def with_filesystem(
    storage_options: Mapping[str, Any] | None, filesystem: Any | None
) -> Mapping[str, Any] | None:
    """Storage options that select a file system of fsspec or pyarrow, if one is given."""
    if filesystem is None:
        return storage_options
    if storage_options:
        raise ValueError("filesystem and storage_options: a file system has options of its own")
    return {_FILESYSTEM: filesystem}


def _filesystem_of(storage_options: Mapping[str, Any] | None) -> Any | None:
    return (storage_options or {}).get(_FILESYSTEM)


def _path_in(filesystem: Any, path: str) -> str:
    """A path or URL as a path of the file system."""
    if hasattr(filesystem, "_strip_protocol"):
        return str(filesystem._strip_protocol(path))
    match = _SCHEME.match(path)
    return path if match is None else path[match.end() :]


def open_store(url: str, storage_options: Mapping[str, Any] | None = None) -> _coldframe.Store:
    """The files at and below a path or URL of any scheme."""
    if (given := _filesystem_of(storage_options)) is not None:
        from coldframe.filesystems import files_of

        return _coldframe.Store.of(files_of(given), url, _path_in(given, url))
    if is_of_core(url):
        return _coldframe.Store(url, text_options(storage_options))
    from coldframe.filesystems import files_of

    filesystem, path = fsspec_filesystem(url, storage_options)
    return _coldframe.Store.of(files_of(filesystem), url, path)


def is_of_core(path: str) -> bool:
    """Whether the core can open a path or URL by itself."""
    scheme = scheme_of(path)
    return scheme in (None, "file") or scheme in CORE_SCHEMES


def is_remote(source: object) -> bool:
    """Whether the source is a URL of a remote store."""
    return isinstance(source, str) and scheme_of(source) not in (None, "file")


def as_list(sources: object) -> list[Any]:
    """The sources as a list; a single source becomes a list of length 1."""
    if isinstance(sources, (str, os.PathLike, bytes, bytearray, memoryview)) or not isinstance(
        sources, Iterable
    ):
        return [sources]
    if hasattr(sources, "read"):  # file objects are iterable, too
        return [sources]
    return list(sources)


def is_flat(url: str) -> bool:
    """Whether the URL's store has no real folders, so that one listing returns all files below a prefix."""
    return scheme_of(url) in _FLAT


_FLAT = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss", "wasb", "wasbs"))


def is_local_path(path: str, storage_options: Mapping[str, Any] | None) -> bool:
    """Whether a path belongs to the operating system and not to a given file system."""
    return _filesystem_of(storage_options) is None and _coldframe.local_path(path) is not None


def options_for(url: str, storage_options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The options for a URL's store. A scheme before a name limits an option to stores of that scheme:
    `s3.region`, `hdfs.user`, or `{"s3": {"region": ..}}`. Options without a scheme apply to all stores.
    """
    if not storage_options or _filesystem_of(storage_options) is not None:
        return storage_options
    own = canonical_scheme(scheme_of(url) or "file")
    options: dict[str, Any] = {}
    for name, value in storage_options.items():
        scheme, dot, rest = name.partition(".")
        if scheme not in CORE_SCHEMES or not (dot or isinstance(value, Mapping)):
            options[name] = value
        elif canonical_scheme(scheme) == own:
            options.update({rest: value} if dot else value)
    return options


def canonical_scheme(scheme: str) -> str:
    """One name for all schemes of the same store: `s3` for `s3a`."""
    return _SAME.get(scheme, scheme)


_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


def text_options(storage_options: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Storage options as the core takes them: texts by name; nested names are joined with dots."""
    return dict(_texts("", storage_options)) if storage_options else None


def _texts(prefix: str, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _texts("" if name in _GROUPS else f"{prefix}{name}.", value)
        elif isinstance(value, bool):
            yield prefix + name, "true" if value else "false"
        elif value is not None:
            yield prefix + name, str(value)


def fsspec_filesystem(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as missing:
        raise unsupported(
            f"{shown(url)}: scheme {scheme_of(url)!r} needs the package fsspec, which is not installed"
        ) from missing
    try:
        with step(_log, logging.DEBUG, "opening the fsspec file system of %s", url):
            filesystem, path = url_to_fs(url, **dict(storage_options or {}))
    except (ImportError, OSError, ValueError) as reason:
        why = shown_in(str(reason).partition("\n")[0].replace(url, shown(url)))
        raise unsupported(f"{shown(url)}: no file system for scheme {scheme_of(url)!r}: {why}") from reason
    return filesystem, path


class Source:
    """A source as the caller gave it; the core reads from `handle()`.

    `known` is the file's identity from a listing, which saves a look-up. Reading fails if the file has
    changed since then.
    """

    __slots__ = ("_given", "known", "path", "storage_options")

    def __init__(
        self, given: object, storage_options: Mapping[str, Any] | None = None, known: Known | None = None
    ) -> None:
        self.known = known
        self.storage_options = dict(storage_options) if storage_options else None
        self.path: str | None = None
        if (path := path_of(given)) is not None:
            self.path = given = path
        elif not _is_bytes_like(given) and not _is_file(given):
            if not (hasattr(given, "open") and hasattr(given, "fs") and hasattr(given, "path")):
                raise TypeError(
                    f"cannot open {type(given).__name__}: expected a path, a URL, bytes or a seekable file"
                )
            given = given.open()  # fsspec's OpenFile is not open yet
        self._given = given

    @property
    def travels(self) -> bool:
        """Whether another process can open the same source."""
        return self.path is not None

    @property
    def is_core(self) -> bool:
        """Whether the core reads the source by itself: a path, a URL of its own stores, or bytes."""
        if self.path is None:
            return not _is_file(self._given)
        return _filesystem_of(self.storage_options) is None and is_of_core(self.path)

    def handle(self) -> object:
        """The object that the core reads from; a store for a scheme that only fsspec supports."""
        if self.path is None or self.is_core:
            return self._given
        return open_store(self.path, self.storage_options)

    def core_options(self) -> dict[str, str] | None:
        """The storage options for the core's own stores, which take texts only."""
        if self.path is None or not self.is_core or scheme_of(self.path) not in CORE_SCHEMES:
            return None
        return text_options(self.storage_options)

    def __repr__(self) -> str:
        return shown(self.path) if self.path is not None else f"<{type(self._given).__name__}>"


# The longest path that Linux takes.
_MAX_PATH = 4096


def path_of(given: object) -> str | None:
    """The source's path or URL; None if the source is content, or an object to read from.

    `bytes` are a path, as `os.fsencode` returns it, except if a format recognises them or they cannot be a
    path. Bytes with control characters are a path only if the file exists.
    """
    if isinstance(given, (str, os.PathLike)):
        return os.fsdecode(given)
    if not isinstance(given, bytes) or not 0 < len(given) <= _MAX_PATH or b"\0" in given:
        return None
    if any(byte < 0x20 for byte in given) and not os.path.lexists(given):
        return None
    return os.fsdecode(given) if _coldframe.detect(given) is None else None


def _is_bytes_like(given: object) -> bool:
    try:
        memoryview(given)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _is_file(given: object) -> bool:
    return all(callable(getattr(given, name, None)) for name in ("read", "seek", "tell"))
