"""Expands the arguments of commands that handle one file after the other.

A directory that is one table (Kudu's, HBase's, Hudi's metadata, Hive's ACID) is one source. Any other
directory stands for the files below it, as a pattern does for those that match. A text file next to the files
of a table, such as a README or a list of checksums, is not a damaged file: it is left out, and named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from coldframe import writing
from coldframe.cli import output
from coldframe.discovery import discover
from coldframe.errors import NotFoundError
from coldframe.sources import open_store, shown

__all__ = ["files_below", "is_text"]

_HEAD = 4096
_NAMED = 3
"""So many of the files that are left out are named."""


def files_below(
    source: str, storage_options: Mapping[str, Any] | None, *, with_text: bool = False
) -> list[str]:
    """The files that a directory or a pattern stands for; with `with_text` including text files."""
    found = [
        str(one.source)
        for one in discover(source, storage_options, partitioned=False, whole_directories=False)
    ]
    if with_text:
        return found
    texts = [path for path in found if is_text(path, storage_options)]
    if texts:
        names = [os.path.basename(path.rstrip("/")) for path in texts[:_NAMED]]
        more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
        output.complain(f"left out, since it is text: {', '.join(names)}{more}")
    kept = [path for path in found if path not in set(texts)]
    if not kept:
        raise NotFoundError(f"{shown(source)}: no files of any of the formats, only text")
    return kept


def is_text(path: str, storage_options: Mapping[str, Any] | None) -> bool:
    """Whether a file begins with text and as none of the formats."""
    try:
        head = open_store(path, storage_options).read("", 0, _HEAD)
    except OSError:
        return False  # a folder that is one table, or something to complain about when it is opened
    if not head or any(byte < 0x20 and byte not in b"\t\n\r\f\x1b" for byte in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as broken:
        if broken.start < len(head) - 3:  # else it is a character that the piece ends in
            return False
    return writing.detect(path, storage_options=storage_options) is None
