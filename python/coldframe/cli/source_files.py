"""Expands the arguments of commands that handle one file after another.

A directory that is one table (Kudu's, HBase's, Hudi's metadata, Hive's ACID) is one source. Any other
directory expands to the files below it, and a pattern to its matches. As in a scan, files of other kinds,
such as a README or a list of checksums, are left out with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from coldframe._coldframe import foreign_files, shown
from coldframe.discovery import DiscoveredFile, discover
from coldframe.errors import LeftOutWarning, NotFoundError


def files_below(
    source: str, storage_options: Mapping[str, Any] | None, *, with_others: bool = False
) -> list[str]:
    """The files of a directory or a pattern; `with_others`: including files of other kinds."""
    if with_others:
        return [file.source for file in _listed(source, storage_options)]
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
        return _listed(source, storage_options)[0].source


def _listed(source: str, storage_options: Mapping[str, Any] | None) -> list[DiscoveredFile]:
    return discover(source, storage_options, partitioned=False, whole_directories=False)


def _without_others(source: str, storage_options: Mapping[str, Any] | None) -> tuple[list[str], str | None]:
    files = _listed(source, storage_options)
    others, warning = foreign_files(
        [(file.source, list(file.keys), file.known) for file in files], storage_options=storage_options
    )
    excluded = set(others)
    return [file.source for at, file in enumerate(files) if at not in excluded], warning
