"""The data of a page: the tree of one file, or of the files of a directory, and their bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from coldframe import _coldframe
from coldframe._coldframe import shown
from coldframe.cli.sizes import leaves_of
from coldframe.errors import ColdframeError
from coldframe.file import File
from coldframe.layout.model import Place
from coldframe.scanning import Dataset

_WHOLE_FILES = 1000
"""Maximum number of files of a directory whose parts are drawn; further files are drawn as a whole."""

# Metadata of a file with short values.
_PROPERTY_NAMES = ("codec", "compression", "version", "writer", "writer_version", "encoding", "dialect")


@dataclass
class Layout:
    """Everything that the page shows."""

    name: str
    where: str
    format: str
    rows: int | None
    columns: list[str]
    tree: dict[str, Any]
    bytes: Bytes
    properties: list[tuple[str, str]] = field(default_factory=list)
    column_sizes: dict[str, int] = field(default_factory=dict)
    damage: list[Place] = field(default_factory=list)
    verified: bool = False
    checked: list[str] = field(default_factory=list)
    """What `verify` checked, for each kind of file."""


class Bytes:
    """The bytes of a layout, if they are in local files."""

    def __init__(self, root: str | None, starts: Mapping[str, int]) -> None:
        self._root = root
        self._starts = starts  # of files in the layout, by their paths
        self._open: dict[str, Any] = {}

    def read(self, file: str | None, offset: int, length: int) -> bytes:
        """Bytes of the layout; empty if they are not available."""
        path = file if file is not None else self._root
        if path is None:
            return b""
        try:
            handle = self._open.get(path)
            if handle is None:
                for other in self._open.values():  # files are read in sequence
                    other.close()
                handle = open(path, "rb")  # noqa: SIM115
                self._open = {path: handle}
            handle.seek(offset - self._starts.get(path, 0))
            data: bytes = handle.read(length)
        except OSError:
            return b""
        return data

    def __enter__(self) -> Bytes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._open.values():
            handle.close()
        self._open = {}


def layout_of(source: File | Dataset, *, verify: bool) -> Layout:
    """The files to draw."""
    return _of_file(source, verify) if isinstance(source, File) else _of_files(source, verify)


def _of_file(file: File, verify: bool) -> Layout:
    tree = file.inspect()
    _with_statistics(tree, file)
    path = _local(file.path)
    starts: dict[str, int] = {}
    if path is not None and os.path.isdir(path):
        starts = _name_files(tree, path)
        path = None
    known: dict[str, int] = {}
    if file._raw.identity is None:  # a folder
        for part in _files_of(tree):
            if "/" in part["name"]:
                known[part["name"]] = part["offset"]
                part["is_file"] = True
    where = shown(file.path)
    layout = Layout(
        os.path.basename(where.rstrip("/")) or where,
        where,
        file.format,
        file.num_rows,
        list(file.schema.names),
        tree,
        Bytes(path, starts),
        _properties(file.metadata),
        verified=verify,
    )
    layout.column_sizes = _column_sizes(tree, layout.columns)
    if verify:
        report = file.verify()
        layout.damage = [_place(lost, _start_of(lost, known)) for lost in report["damage"]]
        layout.checked = [report["checked"]]
    return layout


def _of_files(dataset: Dataset, verify: bool) -> Layout:
    """The files in a row, in reading order."""
    root = os.path.commonpath([os.path.dirname(shown(path)) or "." for path in dataset.files])
    children: list[dict[str, Any]] = []
    starts: dict[str, int] = {}
    layout = Layout(
        os.path.basename(root) or root, root, "", 0, list(dataset.schema.names), {}, Bytes(None, starts)
    )
    at = 0
    formats = set()
    for number, path in enumerate(dataset.files):
        node, file = _file_node(dataset, number, path, root, at)
        node["is_file"] = True
        if file is not None:
            formats.add(file.format)
            layout.rows = (
                None if layout.rows is None or file.num_rows is None else layout.rows + file.num_rows
            )
            if verify:
                report = file.verify()
                layout.damage += [_place(lost, at) for lost in report["damage"]]
                layout.checked = sorted({*layout.checked, report["checked"]})
        local = _local(path)
        if local is not None:
            node["file"], starts[local] = local, at
        children.append(node)
        at += node["length"]
    layout.format = ", ".join(sorted(formats)) or "unknown"
    layout.tree = {"name": layout.name, "offset": 0, "length": at, "detail": {}, "children": children}
    layout.properties = [("files", f"{len(children):,}")]
    layout.column_sizes = _column_sizes(layout.tree, layout.columns)
    layout.verified = verify
    return layout


def _file_node(
    dataset: Dataset, number: int, path: str, root: str, at: int
) -> tuple[dict[str, Any], File | None]:
    name = os.path.relpath(path, root) if _local(path) is not None else shown(path)
    try:
        file = dataset.open_file(number)
        tree = file.inspect()
    except ColdframeError as error:
        local = _local(path)
        size = os.path.getsize(local) if local is not None and os.path.isfile(local) else 0
        detail = {"damaged": str(error)}
        return {"name": name, "offset": at, "length": size, "detail": detail, "children": []}, None
    if number >= _WHOLE_FILES:
        tree["children"] = []
    else:
        _with_statistics(tree, file)
    _move(tree, at)
    tree["name"] = name
    return tree, file


def _move(node: dict[str, Any], by: int) -> None:
    node["offset"] += by
    for child in node["children"]:
        _move(child, by)


def _files_of(tree: dict[str, Any], levels: int = 2) -> Iterator[dict[str, Any]]:
    """Nodes that may be files of a table, named by their paths: parts of the tree, or of its groups."""
    for child in tree["children"]:
        yield child
        if "/" not in child["name"] and levels > 1:
            yield from _files_of(child, levels - 1)


def _name_files(tree: dict[str, Any], folder: str) -> dict[str, int]:
    """Sets the local file of each part of a directory, and returns where the files start.

    The parts' names are relative to the directory or one above it.
    """
    starts: dict[str, int] = {}
    parts = list(_files_of(tree))
    while True:
        files = [(child, os.path.join(folder, child["name"])) for child in parts]
        if any(os.path.isfile(path) for _, path in files) or folder == os.path.dirname(folder):
            break
        folder = os.path.dirname(folder)
    for child, path in files:
        if os.path.isfile(path):
            child["file"], starts[path] = path, child["offset"]
    return starts


def _start_of(lost: Mapping[str, Any], known: Mapping[str, int]) -> int:
    """The offset of the file with the damage; if there are several files, the damage's structure names the
    file.
    """
    named = [name for name in known if name in lost["structure"]]
    return known[max(named, key=len)] if named else 0


def _place(lost: Mapping[str, Any], at: int) -> Place:
    return Place(int(lost["offset"]) + at, int(lost["length"]), f"{lost['structure']}: {lost['reason']}")


def _local(path: str) -> str | None:
    local = _coldframe.local_path(path)
    return local if local is not None and os.path.exists(local) else None


def _properties(metadata: Any) -> list[tuple[str, str]]:
    if not isinstance(metadata, Mapping):
        return []
    return [
        (name.replace("_", " "), str(metadata[name]))
        for name in _PROPERTY_NAMES
        if isinstance(metadata.get(name), (str, int))
    ]


def _column_sizes(tree: dict[str, Any], names: list[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for column, _, length in leaves_of(tree, names):
        if column is not None:
            sizes[column] = sizes.get(column, 0) + length
    return sizes


def _with_statistics(tree: dict[str, Any], file: File) -> None:
    """Adds the statistics of each unit's columns to the nodes of these columns."""
    known = file.statistics()
    units = known.get("stripes") if isinstance(known, Mapping) else None
    if not isinstance(units, list):
        return
    nodes = [child for child in tree["children"] if "rows" in child["detail"]]
    for node, unit in zip(nodes, units, strict=False):
        columns = unit.get("columns") if isinstance(unit, Mapping) else unit
        if not isinstance(columns, (list, Mapping)):
            continue
        by_path = _by_path(columns)
        for part in node["children"]:
            values = by_path.get(part["detail"].get("path"))
            if values is not None:
                part["detail"].update(
                    {
                        key: value
                        for key, value in values.items()
                        if key not in part["detail"] and key != "column"
                    }
                )


def _by_path(columns: Any) -> dict[Any, Mapping[str, Any]]:
    if isinstance(columns, Mapping):
        return {path: values for path, values in columns.items() if isinstance(values, Mapping)}
    return {
        values.get("path") or values.get("column"): values
        for values in columns
        if isinstance(values, Mapping)
    }
