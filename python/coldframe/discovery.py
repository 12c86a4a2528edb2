"""Which files a dataset has: paths, globs, directories; Hive's `key=value` directories become columns."""

from __future__ import annotations

import datetime as dt
import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe import _coldframe
from coldframe.errors import ColdframeError, NotFoundError, SchemaError, unsupported
from coldframe.listing import Listed, is_flat
from coldframe.publishing import is_unfinished
from coldframe.sources import Known, Source, is_on_this_machine, open_store, scheme_of, shown

__all__ = ["Found", "discover", "partition_fields", "typed_values"]

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = re.compile(r"[*?\[]")
_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://[^/]*/?")


@dataclass(frozen=True)
class Found:
    """A source, and the `key=value` pairs of the directories between it and the root that was given.

    `known` is what the listing that found it told of it.
    """

    source: object
    keys: tuple[tuple[str, str], ...] = ()
    known: Known | None = None


def discover(
    sources: object, storage_options: Mapping[str, Any] | None, *, partitioned: bool, whole_directories: bool
) -> list[Found]:
    """The files of a dataset, in a stable order: as given, and by path within a directory or a glob.

    Files and directories whose names start with `.` or `_` are left out, as Hive and Spark do; so are empty
    files (a bucket or partition without rows, an object that stands for a folder), which hold no rows.
    `whole_directories`: a directory is one table of its format, whatever it looks like.
    """
    found: list[Found] = []
    for source in _listed(sources):
        if not isinstance(source, (str, os.PathLike)):
            found.append(Found(source))
            continue
        found += _of_path(os.fsdecode(source), storage_options, whole_directories)
    if not partitioned:
        found = [Found(one.source, (), one.known) for one in found]
    if found and not (found := [one for one in found if one.known is None or one.known[0] > 0]):
        raise NotFoundError(f"no files to scan: all that {_shown(sources)} names are empty")
    if not found:
        raise NotFoundError(f"no files to scan in {_shown(sources)}")
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


def _shown(sources: object) -> str:
    return ", ".join(shown(str(source)) for source in _listed(sources)[:3])


def _listed(sources: object) -> list[Any]:
    if isinstance(sources, (str, os.PathLike, bytes, bytearray, memoryview)) or not isinstance(
        sources, Iterable
    ):
        return [sources]
    if hasattr(sources, "read"):  # files are iterable too
        return [sources]
    return list(sources)


def _of_path(path: str, storage_options: Mapping[str, Any] | None, whole: bool) -> Iterator[Found]:
    """The files that a path, URL or glob names."""
    if scheme_of(path) in ("http", "https"):
        yield Found(path)  # which cannot be listed
        return
    local = _coldframe.local_path(path)
    path = path if local is None else local
    tree = _Tree(path, storage_options, whole)
    entry = tree.store.stat()
    if entry is not None and entry.is_folder:
        yield from tree.folder("", ())
    elif entry is not None:
        yield Found(path, (), entry.identity)
    elif _MAGIC.search(path):
        yield from _glob(path, storage_options, whole)
    else:
        raise NotFoundError(f"{shown(path)}: no such file or directory")


def _glob(path: str, storage_options: Mapping[str, Any] | None, whole: bool) -> Iterator[Found]:
    root = _fixed_part(path)
    parts = [part for part in path[len(root) :].split("/") if part]
    tree = _Tree(root, storage_options, whole)
    matches = sorted(tree.matches("", parts), key=lambda one: one.path)
    if not matches:
        raise NotFoundError(f"{shown(path)}: no file matches")
    for match in matches:
        keys = _keys(match.path)
        if not match.is_folder:
            yield Found(tree.url_of(match.path), keys, match.identity)
        elif "**" not in parts:  # which has found the files below already
            yield from tree.folder(match.path, _keys(match.path + "/x"))


class _Tree:
    """What lies below a path or URL."""

    def __init__(self, root: str, storage_options: Mapping[str, Any] | None, whole: bool) -> None:
        self.store = open_store(root or ".", storage_options)
        self._root = root
        self._options = storage_options
        self._whole = whole

    def url_of(self, path: str) -> str:
        """The path or URL of what lies at a path below, in the caller's words."""
        return self.store.url_of(path) if self._root else path

    def folder(self, path: str, keys: tuple[tuple[str, str], ...]) -> Iterator[Found]:
        """The files in a folder, or the folder itself where that is one table."""
        url = self.url_of(path)
        if self._whole or (not is_flat(url) and self._is_one_table(url)):
            yield Found(url, keys)
            return
        listed = list(self._below(path))
        names = [one.path[len(path) :].lstrip("/") for one in listed]
        if is_unfinished(self.store.below(path) if path else self.store, names):
            raise OSError(
                f"{shown(url)}: a write is publishing its files, or was cut off while it did; writing there "
                "once more finishes it"
            )
        if is_flat(url) and self._lists_one_table(path, listed):
            yield Found(url, keys)
            return
        files = [one for one in listed if not _hidden(one.path[len(path) :].lstrip("/"))]
        for file in sorted(files, key=lambda one: one.path):
            yield Found(self.url_of(file.path), _keys(file.path), file.identity)

    def matches(self, folder: str, parts: list[str]) -> Iterator[_coldframe.StoreEntry]:
        """The entries below a folder whose paths match, part by part; none with a hidden part."""
        part, rest = parts[0], parts[1:]
        prefix = f"{folder}/" if folder else ""
        if part == "**":
            for one in self._listed(folder, recursive=True):
                names = one.path[len(prefix) :].split("/")
                if _fits(names, parts) and not any(name[0] in "._" for name in names):
                    yield one
        elif not _MAGIC.search(part):
            if rest:
                yield from self.matches(prefix + part, rest)
            elif (found := self.store.stat(prefix + part)) is not None:
                yield found
        else:
            for one in self._listed(folder, recursive=False):
                name = one.path[len(prefix) :]
                if name[0] in "._" or not fnmatch.fnmatchcase(name, part):
                    continue
                if not rest:
                    yield one
                elif one.is_folder:
                    yield from self.matches(one.path, rest)

    def _listed(self, folder: str, *, recursive: bool) -> Iterator[_coldframe.StoreEntry]:
        try:
            if recursive:
                yield from self._below(folder)
                return
            for some in self.store.list(folder):
                yield from some
        except (NotFoundError, NotADirectoryError):
            return

    def _below(self, folder: str) -> Iterator[_coldframe.StoreEntry]:
        """All files below a folder, through links to folders too, as Hive and pyarrow have it."""
        for some in self.store.list(folder, recursive=True):
            yield from some
        if is_on_this_machine(self._root or ".", self._options):
            for linked in _linked_folders(self._root or ".", folder, ()):
                for some in self.store.list(linked, recursive=True):
                    yield from some

    def _lists_one_table(self, path: str, files: list[_coldframe.StoreEntry]) -> bool:
        """The same by what a listing says: folders of such a store are asked for as often as files."""
        listed = Listed(self.store)
        for file in files:
            listed.add(file)
        return listed.detect(path) is not None

    def _is_one_table(self, url: str) -> bool:
        """Whether a format takes the whole directory for one table, as Kudu's does."""
        try:
            source = Source(url, self._options)
            return _coldframe.detect(source.handle(), source.core_options()) is not None
        except ColdframeError:
            return False


def _linked_folders(root: str, folder: str, way: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """The links to folders below a folder, and below those.

    One that leads back to a folder on the way to it has nothing new, and no end. `way` has where each link
    before came out, and where the next one was found.
    """
    top = os.path.join(root, *folder.split("/")) if folder else root
    start = os.path.realpath(top)
    for above, folders, _ in os.walk(top):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        here = (*way, (start, os.path.realpath(above)))
        for name in folders:
            path = os.path.join(above, name)
            if not os.path.islink(path):
                continue
            target = os.path.realpath(path)
            if any(_is_within(target, first) and _is_within(last, target) for first, last in here):
                continue
            relative = os.path.relpath(path, root).replace(os.sep, "/")
            yield relative
            yield from _linked_folders(root, relative, here)


def _is_within(path: str, folder: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(folder, ""))


def _fits(names: list[str], parts: list[str]) -> bool:
    """Whether a path fits a pattern; `**` stands for any number of folders."""
    if not parts:
        return not names
    if parts[0] == "**":
        return any(_fits(names[at:], parts[1:]) for at in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])


def _fixed_part(pattern: str) -> str:
    """The directories of a glob before its first wildcard."""
    store = _STORE.match(pattern)
    if store is None:
        match = _MAGIC.search(pattern)
        return os.path.dirname(pattern[: match.start()]) if match else os.path.dirname(pattern)
    if re.search(r"[*?]", store[0]):
        raise unsupported(f"{shown(pattern)}: a pattern in the name of the store")
    # The store's own name, also where that is empty, ends with a slash, which belongs to it.
    path = pattern[store.end() :]
    match = _MAGIC.search(path)
    folders = path[: match.start() if match else None].rpartition("/")[0]
    return store[0] + folders


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
