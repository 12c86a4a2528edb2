"""Finds the entry of tables.toml for a file: names and types, which formats such as RCFile do not store.

`coldframe migrate` takes the same file. `--tables` names the tables.toml; otherwise the nearest one in the
folders above the source is used, since `migrate` expects it in the root of its source.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from coldframe import writing
from coldframe._coldframe import formats
from coldframe.cli import output
from coldframe.sources import is_local_path

_NAME = "tables.toml"
_GIVEN = ("schema", "serde")


def add_tables_option(parser: argparse.ArgumentParser) -> None:
    """`--tables`."""
    parser.add_argument(
        "--tables",
        metavar="FILE",
        help=f"the {_NAME} with the names and types of the columns (default: the nearest one above the file)",
    )


def declared_options(
    source: str, tables: str | None, given: Mapping[str, Any], storage_options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The options of the entry for a source; empty if the command line has them."""
    if any(name in given for name in _GIVEN) or not is_local_path(source, storage_options):
        return {}
    path = tables if tables is not None else _nearest(source)
    if path is None or (tables is None and not _needs_schema(source, given)):
        return {}
    from coldframe.pipeline.source.tables import load_tables

    root = os.path.dirname(os.path.abspath(path))
    place = os.path.relpath(os.path.abspath(source), root).replace(os.sep, "/")
    fitting = [spec for spec in load_tables(path) if f"{place}/".startswith(f"{spec.path}/")]
    if not fitting:
        if tables is not None:
            raise ValueError(
                f"{path}: no entry has the path of {source}, which is {place} relative to that file"
            )
        return {}
    spec = max(fitting, key=lambda candidate: len(candidate.path))
    output.complain(f"{output.name_of(source)}: with the options of [tables.{spec.name}] in {path}")
    return dict(spec.options)


def _nearest(source: str) -> str | None:
    folder = os.path.abspath(source)
    while True:
        path = os.path.join(folder, _NAME)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _needs_schema(source: str, given: Mapping[str, Any]) -> bool:
    """Whether the format of the first file of a source stores no types."""
    path = source
    if os.path.isdir(source):
        files = (
            os.path.join(folder, name)
            for folder, _, names in os.walk(source)
            for name in sorted(names)
            if name[0] not in "._" and name != _NAME
        )
        path = next(files, source)
    if not os.path.isfile(path):
        return False
    format = given.get("format") or writing.detect(path)
    return format is not None and bool(formats()[format]["capabilities"]["needs_schema"])
