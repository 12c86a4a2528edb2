"""Expands the arguments of commands that handle one file after the other.

A directory that is one table (Kudu's, HBase's, Hudi's metadata, Hive's ACID) is one source. Any other
directory stands for the files below it, as a pattern does for those that match. As in a scan, files of other
kinds beside those of a table, such as a README or a list of checksums, are left out, and named.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from coldframe._coldframe import foreign_files
from coldframe.discovery import Found, discover
from coldframe.errors import LeftOutWarning, NotFoundError
from coldframe.sources import shown

__all__ = ["files_below", "first_file"]


def files_below(
    source: str, storage_options: Mapping[str, Any] | None, *, with_others: bool = False
) -> list[str]:
    """The files that a directory or a pattern stands for; `with_others`: including those of other kinds."""
    if with_others:
        return [one.source for one in _listed(source, storage_options)]
    try:
        files, told = _without_others(source, storage_options)
    except NotFoundError as error:
        raise NotFoundError(f"{shown(source)}: {error}") from None
    if told is not None:
        warnings.warn(f"{shown(source)}: {told}", LeftOutWarning, stacklevel=2)
    return files


def first_file(source: str, storage_options: Mapping[str, Any] | None) -> str:
    """The first of these files, of which a directory may also hold none in our formats."""
    try:
        return _without_others(source, storage_options)[0][0]
    except NotFoundError:
        return _listed(source, storage_options)[0].source


def _listed(source: str, storage_options: Mapping[str, Any] | None) -> list[Found]:
    return discover(source, storage_options, partitioned=False, whole_directories=False)


def _without_others(source: str, storage_options: Mapping[str, Any] | None) -> tuple[list[str], str | None]:
    found = _listed(source, storage_options)
    others, told = foreign_files(
        [(one.source, list(one.keys), one.known) for one in found], storage_options=storage_options
    )
    gone = set(others)
    return [one.source for at, one in enumerate(found) if at not in gone], told
