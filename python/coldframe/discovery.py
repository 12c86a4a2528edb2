"""Finds the files of a dataset: paths, globs, directories. Hive's `key=value` directories become columns.

`coldframe::dataset::discovery` in Rust does the search.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from coldframe import _coldframe
from coldframe._coldframe import HIVE_NULL
from coldframe.sources import Known

__all__ = ["HIVE_NULL", "DiscoveredFile", "as_list", "discover"]


class DiscoveredFile(NamedTuple):
    """A file, and the `key=value` pairs of the directories between the given root and the file.

    `known` is the identity of the file in the listing.
    """

    source: str
    keys: tuple[tuple[str, str], ...] = ()
    known: Known | None = None


def discover(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    storage_options: Mapping[str, Any] | None,
    *,
    partitioned: bool,
    whole_directories: bool,
) -> list[DiscoveredFile]:
    """The files of a dataset, in a stable order: as given, and by path within a directory or a glob.

    Leaves out files and directories whose names start with `.` or `_`, as Hive and Spark do, except
    partitions such as `_day=1`; and empty files (a bucket or partition without rows, a folder marker of an
    object store), which hold no rows.
    `whole_directories`: take each directory as one table of its format, whatever it contains.
    """
    paths = [os.fsdecode(path) for path in as_list(sources)]
    files = _coldframe.find_files(paths, storage_options=storage_options, whole=whole_directories)
    return [DiscoveredFile(path, tuple(keys) if partitioned else (), known) for path, keys, known in files]


def as_list(sources: object) -> list[Any]:
    """The sources as a list; a single source becomes a list of length 1."""
    if isinstance(sources, (str, os.PathLike, bytes, bytearray, memoryview)) or not isinstance(
        sources, Iterable
    ):
        return [sources]
    if hasattr(sources, "read"):  # file objects are iterable, too
        return [sources]
    return list(sources)
