"""Which files a dataset has: paths, globs, directories; Hive's `key=value` directories become columns."""

from __future__ import annotations

import datetime as dt
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe import _coldframe
from coldframe.errors import ColdframeError, NotFoundError, SchemaError
from coldframe.sources import fsspec_filesystem, scheme_of

__all__ = ["Found", "discover", "partition_fields", "typed_values"]

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Found:
    """A source, and the `key=value` pairs of the directories between it and the root that was given."""

    source: object
    keys: tuple[tuple[str, str], ...] = ()


def discover(
    sources: object, storage_options: Mapping[str, Any] | None, *, partitioned: bool, whole_directories: bool
) -> list[Found]:
    """The files of a dataset, in a stable order: as given, and by path within a directory or a glob.

    Files and directories whose names start with `.` or `_` are left out, as Hive and Spark do.
    `whole_directories`: a directory is one table of its format, whatever it looks like.
    """
    found: list[Found] = []
    for source in _listed(sources):
        if not isinstance(source, (str, os.PathLike)):
            found.append(Found(source))
            continue
        path = os.fsdecode(source)
        local = _coldframe.local_path(path)
        if local is not None:
            found += _local(local, whole_directories)
        else:
            found += _remote(path, storage_options)
    if not partitioned:
        found = [Found(one.source) for one in found]
    if not found:
        raise NotFoundError("no files to scan")
    if len({tuple(key for key, _ in one.keys) for one in found}) > 1:
        example = {tuple(key for key, _ in one.keys): one.source for one in found}
        raise SchemaError(
            "the files do not lie in the same partition columns: "
            + "; ".join(f"{list(keys)} ({source})" for keys, source in list(example.items())[:3])
        )
    return found


def partition_fields(found: list[Found], wanted: Any) -> list[Any]:
    """The partition columns as pyarrow fields: as the schema given has them, else int64, date or string."""
    names = [key for key, _ in found[0].keys]
    fields = []
    for at, name in enumerate(names):
        if wanted is not None and name in wanted.names:
            fields.append(wanted.field(name))
            continue
        values = {one.keys[at][1] for one in found} - {HIVE_NULL}
        fields.append(pa.field(name, _inferred(values)))
    return fields


def typed_values(one: Found, fields: list[Any]) -> tuple[tuple[str, Any], ...]:
    """The partition's values as Arrow scalars of the fields' types."""
    return tuple(
        (field.name, _typed(text, field, one.source))
        for (_, text), field in zip(one.keys, fields, strict=True)
    )


def _listed(sources: object) -> list[Any]:
    if isinstance(sources, (str, os.PathLike, bytes, bytearray, memoryview)) or not isinstance(
        sources, Iterable
    ):
        return [sources]
    if hasattr(sources, "read"):  # files are iterable too
        return [sources]
    return list(sources)


def _local(path: str, whole_directories: bool) -> Iterator[Found]:
    if os.path.isdir(path):
        yield from _directory(path, path, whole_directories)
    elif os.path.exists(path):
        yield Found(path)
    elif _MAGIC.search(path):
        root = _fixed_part(path)
        matches = sorted(glob.glob(path, recursive=True))
        shown = [match for match in matches if not _hidden(os.path.relpath(match, root or "."))]
        if not shown:
            raise NotFoundError(f"{path}: no file matches")
        for match in shown:
            if os.path.isdir(match):
                if "**" not in path:  # which has visited it already
                    yield from _directory(match, root, whole_directories)
            else:
                yield Found(match, _keys(os.path.relpath(match, root or ".")))
    else:
        raise NotFoundError(f"{path}: no such file or directory")


def _directory(path: str, root: str, whole: bool) -> Iterator[Found]:
    if whole or _is_one_table(path):
        yield Found(path, _keys(os.path.join(os.path.relpath(path, root), "x")) if path != root else ())
        return
    files = []
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name[0] not in "._"]
        files += [os.path.join(folder, name) for name in names if name[0] not in "._"]
    if not files:
        raise NotFoundError(f"{path}: no files in it")
    for file in sorted(files):
        yield Found(file, _keys(os.path.relpath(file, root or ".")))


def _is_one_table(path: str) -> bool:
    """Whether a format takes the whole directory for one table, as Kudu's does."""
    try:
        return _coldframe.detect(path) is not None
    except ColdframeError:
        return False


def _remote(url: str, storage_options: Mapping[str, Any] | None) -> Iterator[Found]:
    if not _MAGIC.search(url) and scheme_of(url) in ("http", "https"):
        yield Found(url)  # which cannot be listed
        return
    filesystem, path = fsspec_filesystem(url, storage_options)
    root = path.rstrip("/")
    if _MAGIC.search(path):
        root = _fixed_part(path)
        files = [match for match in filesystem.glob(path) if not filesystem.isdir(match)]
    elif filesystem.isdir(path):
        files = filesystem.find(path)
    elif filesystem.exists(path):
        yield Found(url)
        return
    else:
        raise NotFoundError(f"{url}: no such file or directory")
    shown = [file for file in sorted(files) if not _hidden(file[len(root) :].lstrip("/"))]
    if not shown:
        raise NotFoundError(f"{url}: no files")
    prefix = url[: url.index("://") + 3]
    for file in shown:
        yield Found(
            prefix + file.lstrip("/") if prefix != "file://" else prefix + file,
            _keys(file[len(root) :].lstrip("/")),
        )


def _fixed_part(pattern: str) -> str:
    """The directories of a glob before its first wildcard."""
    match = _MAGIC.search(pattern)
    return os.path.dirname(pattern[: match.start()]) if match else os.path.dirname(pattern)


def _hidden(relative: str) -> bool:
    return any(part[0] in "._" and part not in (".", "..") for part in re.split(r"[/\\]", relative) if part)


def _keys(relative: str) -> tuple[tuple[str, str], ...]:
    folders = re.split(r"[/\\]", relative)[:-1]
    pairs = [folder.split("=", 1) for folder in folders if "=" in folder]
    return tuple((unquote(key), unquote(value)) for key, value in pairs if key)


def _inferred(values: set[str]) -> Any:
    if values and all(re.fullmatch(r"-?\d{1,18}", value) for value in values):
        return pa.int64()
    if values and all(_is_date(value) for value in values):
        return pa.date32()
    return pa.string()


def _is_date(value: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        return False
    try:
        dt.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _typed(text: str, field: Any, source: object) -> Any:
    if text == HIVE_NULL:
        return pa.scalar(None, type=field.type)
    try:
        return pa.scalar(text).cast(field.type)
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "surrogateescape")
        raise SchemaError(f"{source!r}: partition value {field.name}={shown!r} is not UTF-8") from None
    except pa.ArrowException as reason:
        raise SchemaError(
            f"{source}: partition value {field.name}={text} is not a {field.type}: {reason}"
        ) from reason
