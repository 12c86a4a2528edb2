"""Expands the arguments of commands that handle one file after another.

A directory that is one table (Kudu's, HBase's, Hudi's metadata, Hive's ACID) is one source. Any other
directory expands to the files below it, and a pattern to its matches. As in a scan, files of other kinds,
such as a README or a list of checksums, are left out with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from coldframe._coldframe import find_files, foreign_files, shown
from coldframe.errors import LeftOutWarning, NotFoundError


def files_below(
    source: str, storage_options: Mapping[str, Any] | None, *, with_others: bool = False
) -> list[str]:
    """The files of a directory or a pattern; `with_others`: including files of other kinds."""
    if with_others:
        return [path for path, _, _ in find_files([source], storage_options=storage_options)]
    try:
        files, warning = _without_others(source, storage_options)
    except NotFoundError as error:
        raise NotFoundError(f"{shown(source)}: {error}") from None
    if warning is not None:
        warnings.warn(f"{shown(source)}: {warning}", LeftOutWarning, stacklevel=2)
    return files


def first_file(source: str, storage_options: Mapping[str, Any] | None) -> str:
    """The first file in one of coldframe's formats; if there is none, the first file."""
    try:
        return _without_others(source, storage_options)[0][0]
    except NotFoundError:
        return find_files([source], storage_options=storage_options)[0][0]


def _without_others(source: str, storage_options: Mapping[str, Any] | None) -> tuple[list[str], str | None]:
    entries = find_files([source], storage_options=storage_options)
    files: list[Any] = [(path, [], known) for path, _, known in entries]
    others, warning = foreign_files(files, storage_options=storage_options)
    excluded = set(others)
    return [path for at, (path, _, _) in enumerate(files) if at not in excluded], warning
