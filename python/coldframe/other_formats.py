"""The files of an estate that other programs read, by folder: Parquet, Avro, text and others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coldframe.errors import ColdframeError
from coldframe.sources import open_store

if TYPE_CHECKING:
    from coldframe.pipeline.records import SourceFile

ROOT = "."
_MAGIC = {
    b"PAR1": "parquet",
    b"Obj\x01": "avro",
    b"SEQ": "sequencefile",
    b"ARROW1": "arrow",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
}
_OF_TABLES = ("parquet", "avro", "sequencefile", "arrow", "delta")
"""Kinds that are tables wherever they lie; a text may also be a README."""
_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_HEAD = 512
# Hive's text may have the delimiters 1 to 3.
_NOT_IN_TEXT = re.compile(rb"[\x00\x04-\x08\x0e-\x1f\x7f]")


@dataclass
class OtherFiles:
    """The files of one kind at and below a folder; `key=value` folders below it are partitions."""

    place: str
    kind: str
    files: int = 0
    bytes: int = 0
    newest: int = 0
    """The time of the last change of any file, in ns since 1970."""


def other_files(
    root: str,
    files: Iterable[SourceFile],
    ours: Set[str],
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[list[OtherFiles], list[OtherFiles]]:
    """The files as tables; and those that are probably no table: texts beside the tables at `ours`, or at the
    root.

    Of the files of one folder with the same extension, one is read.
    """
    kinds: dict[tuple[str, str], str] = {}
    groups: dict[tuple[str, str], OtherFiles] = {}
    for file in files:
        folder, _, name = file.relative.rpartition("/")
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        if (kind := kinds.get((folder, ending))) is None:
            kind = kinds[folder, ending] = _kind(file, ending)
        place = _table_of(folder)
        group = groups.setdefault((place, kind), OtherFiles(place, kind))
        group.files += 1
        group.bytes += file.size
        group.newest = max(group.newest, file.mtime_ns)
    listed = list(groups.values())
    for group in listed:
        if group.kind == "parquet" and _has_delta_log(root, group.place, storage_options):
            group.kind = "delta"
    tables = [group for group in listed if _is_table(group, listed, ours)]
    return tables, [group for group in listed if group not in tables]


def _table_of(folder: str) -> str:
    """The folder of a table, by the folder of a file."""
    names: Sequence[str] = folder.split("/") if folder else ()
    partitions = (at for at, name in enumerate(names) if "=" in name)
    return "/".join(names[: next(partitions, len(names))]) or ROOT


def _is_table(group: OtherFiles, listed: Sequence[OtherFiles], ours: Set[str]) -> bool:
    if group.kind in _OF_TABLES:
        return True
    return group.place not in ours and (group.place != ROOT or (len(listed) == 1 and not ours))


def _kind(file: SourceFile, ending: str) -> str:
    try:
        head = open_store(file.path, file.storage_options).read("", 0, _HEAD)
    except (ColdframeError, OSError):
        return "unreadable"
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if _NOT_IN_TEXT.search(head):
        return "unknown"
    return _ENDINGS.get(ending, "json" if head.lstrip()[:1] == b"{" else "text")


def _has_delta_log(root: str, place: str, storage_options: Mapping[str, Any] | None) -> bool:
    log = "_delta_log" if place == ROOT else f"{place}/_delta_log"
    try:
        return open_store(root, storage_options).stat(log) is not None
    except (ColdframeError, OSError):
        return False
