"""Checks destinations: a command never replaces its sources, and other files only on request."""

from __future__ import annotations

import argparse
import os
import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from coldframe._coldframe import local_path, shown
from coldframe.file import File
from coldframe.sources import open_store, scheme_of

STDOUT = "-"

# Schemes of the same store.
_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "viewfs": "hdfs", "https": "http"}
_SAME.update(dict.fromkeys(("adl", "azure", "abfs", "abfss", "wasb", "wasbs"), "az"))


def add_overwrite_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--overwrite`: without it, an existing file is kept."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the destination if it exists; a source is never replaced",
    )


def sources_of(rows: Any, given: Iterable[str]) -> list[str]:
    """Everything that a File or a Dataset reads: the arguments, and the files that they expand to."""
    files = [rows.path or ""] if isinstance(rows, File) else rows.files
    return [*given, *files]


def claim(
    dest: str, sources: Iterable[str], storage_options: Mapping[str, Any] | None, *, overwrite: bool
) -> None:
    """Refuses a destination that is a source, or that exists and must not be replaced."""
    if dest == STDOUT:
        return
    for source in sources:
        if source not in ("", STDOUT) and _is_in(dest, source):
            raise ValueError(
                f"{shown(dest)}: the destination is a source, or a part of one, and would be lost"
            )
    if not overwrite and open_store(dest, storage_options or None).stat() is not None:
        raise FileExistsError(f"{shown(dest)} exists; --overwrite replaces it")


def _is_in(dest: str, source: str) -> bool:
    """Whether a destination is a source, or a file inside a source folder: writing it would replace the
    source.
    """
    local, other = local_path(dest), local_path(source)
    if local is None or other is None:
        return local is None and other is None and _is_url_in(dest, source)
    if not os.path.exists(local):
        return False  # writing replaces a dangling link
    if os.path.samefile(local, other) if os.path.exists(other) else local == other:
        return True
    place, folder = os.path.realpath(local), os.path.realpath(other)
    return os.path.isdir(folder) and os.path.commonpath([place, folder]) == folder


def _is_url_in(dest: str, source: str) -> bool:
    (kind, host, path), (other_kind, other_host, other) = _parts(dest), _parts(source)
    if kind != other_kind:
        return False
    # hdfs:///x is on the configured cluster, which may also be the other URL's cluster.
    if host != other_host and kind != "hdfs":
        return False
    return path == other or path.startswith(other.rstrip("/") + "/")


def _parts(url: str) -> tuple[str, str, str]:
    scheme = scheme_of(url) or ""
    authority, _, path = url.partition("://")[2].partition("/")
    if scheme in ("http", "https"):
        path = path.partition("?")[0]
    return _SAME.get(scheme, scheme), authority, posixpath.normpath("/" + path)
