"""Which files a dataset has: paths, globs, directories; Hive's `key=value` directories become columns.

`coldframe::dataset::discovery` in Rust looks for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from coldframe import _coldframe
from coldframe._coldframe import HIVE_NULL
from coldframe.sources import Known

__all__ = ["HIVE_NULL", "Found", "discover", "each_of"]


class Found(NamedTuple):
    """A file, and the `key=value` pairs of the directories between it and the root that was given.

    `known` is what the listing that found it told of it.
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
) -> list[Found]:
    """The files of a dataset, in a stable order: as given, and by path within a directory or a glob.

    Files and directories whose names start with `.` or `_` are left out, as Hive and Spark do; so are empty
    files (a bucket or partition without rows, an object that stands for a folder), which hold no rows.
    `whole_directories`: a directory is one table of its format, whatever it looks like.
    """
    paths = [os.fsdecode(path) for path in each_of(sources)]
    found = _coldframe.find_files(paths, storage_options=storage_options, whole=whole_directories)
    return [Found(path, tuple(keys) if partitioned else (), known) for path, keys, known in found]


def each_of(sources: object) -> list[Any]:
    """The sources, of which one need not be in a list."""
    if isinstance(sources, (str, os.PathLike, bytes, bytearray, memoryview)) or not isinstance(
        sources, Iterable
    ):
        return [sources]
    if hasattr(sources, "read"):  # files are iterable too
        return [sources]
    return list(sources)
