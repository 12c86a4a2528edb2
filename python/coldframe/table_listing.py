"""Finds the tables below a directory: of HBase, Kudu, Hudi and Hive (ACID tables, too), and those of other
formats.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from coldframe._coldframe import formats, print_columns, shown
from coldframe.arrow import pa
from coldframe.errors import ColdframeError, LeftOutWarning, PartialTableWarning
from coldframe.file import File
from coldframe.guessing import Guess, guess_of
from coldframe.iceberg.places import NOT_LISTED
from coldframe.opening import open
from coldframe.other_formats import OtherFiles, other_files
from coldframe.scanning import Dataset
from coldframe.scans import scan
from coldframe.tables_file import entry_lines

if TYPE_CHECKING:
    from coldframe.pipeline.source.tables import Table

_NAMED = 8
"""The maximum number of places that a warning names."""
ICEBERG = "iceberg"
"""The `format` of an Iceberg table, whose files may have several formats."""


@dataclass(frozen=True)
class FoundTable:
    """A table that `tables` found."""

    name: str
    format: str
    path: str
    """The directory or file to open. If several tables lie in one directory, `options` select this table."""
    files: int
    """The number of files; 1 for a directory that is one table or holds several."""
    bytes: int
    """The size; if a directory holds several tables, each table gets an equal part of the directory's size.
    """
    rows: int | None
    """The row count that the files state; None if they state none, or if it was not requested."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `open` or `scan` needs besides the path."""
    problem: str | None = None
    """Why the table could not be opened to count its rows."""
    place: str = ""
    """The table's path relative to the searched directory."""
    is_whole: bool = False
    """Whether the table is one file, or a directory that is one table of its format."""
    newest: int = 0
    """The time of the last change of any file, in ns since 1970; 0 if it is unknown."""
    partitions: int = 0
    """The number of its folders `key=value`."""
    owner: str = ""
    """The user who owns the first file; empty if it is not local."""
    writer: str = ""
    """The program that wrote the first file, with its version; empty if it does not say so, or if rows were
    not requested."""
    damaged: int = 0
    """Files in its folders whose bytes have no known format."""
    missing: tuple[str, ...] = ()
    """What the table must have and its directory lacks, as far as opening the table shows it."""
    damage: tuple[str, ...] = ()
    """What `verify` found: the first places, with reasons."""
    likeness: str = ""
    """Equal for tables of equally many files with equal names and sizes."""

    @property
    def is_wrong(self) -> bool:
        """Whether anything of the table is known to be damaged, missing or unreadable."""
        return bool(self.problem is not None or self.damaged or self.missing or self.damage)

    def open(self, *, storage_options: Mapping[str, Any] | None = None) -> File | Dataset:
        """Opens the table: a File if `is_whole`, else a Dataset."""
        if self.is_whole:
            return open(self.path, storage_options=storage_options, **self.options)
        return scan(self.path, storage_options=storage_options, **self.options)

    def to_toml(self, *, storage_options: Mapping[str, Any] | None = None) -> str:
        """The table's entry of tables.toml; a comment for an Iceberg table, which is not migrated.

        If the files store no types, comments have types that are guessed from the first file.
        """
        if self.format == ICEBERG:
            return f"# {self.place or '.'}: {NOT_LISTED}"
        comments = self._guessed_keys(storage_options)
        if formats()[self.format]["capabilities"]["needs_schema"] and "schema" not in self.options:
            schema, remarks = self._guessed(storage_options) or ("id bigint, name string", [])
            comments.append(f'# schema = "{schema}"   # the files do not store their columns')
            if remarks:
                comments += ['# serde = "text"', *(f"# {remark}" for remark in remarks)]
        return "\n".join(entry_lines(self.name, self.place or ".", self.options, *comments))

    def _guessed_keys(self, storage_options: Mapping[str, Any] | None) -> list[str]:
        with contextlib.suppress(ColdframeError, OSError, ValueError):
            opened = self.open(storage_options=storage_options) if self.partitions else None
            if isinstance(opened, Dataset) and opened.partition_columns:
                keys = pa.schema([opened.schema.field(name) for name in opened.partition_columns])
                return [f"# partitions = {json.dumps(print_columns(keys))}   # by the names of all folders"]
        return []

    def _guessed(self, storage_options: Mapping[str, Any] | None) -> Guess | None:
        # A damaged first file does not suppress the rest of the entry.
        with contextlib.suppress(ColdframeError, OSError, ValueError):
            opened = self.open(storage_options=storage_options)
            first = opened.files[0] if isinstance(opened, Dataset) else self.path
            return guess_of(first, storage_options)
        return None


def tables(
    source: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    rows: bool = True,
    verify: bool = False,
) -> list[FoundTable]:
    """The tables below a directory, by name: the tables that `migrate` would convert, and Iceberg tables. A
    LeftOutWarning names the places of other files: those of other formats, and those that cannot be read; a
    PartialTableWarning names what a table lacks.

    Args:
        source: a path or URL. Its tables.toml, if it has one, names tables and their options.
        storage_options: as for `open`.
        rows: open each table to get its number of rows, and what it lacks.
        verify: decode every value of each table, to find damage and files that are gone.
    """
    estate = survey(source, storage_options=storage_options, rows=rows, verify=verify)
    for text in _left_out(estate):
        warnings.warn(f"{shown(os.fspath(source))}: {text}", LeftOutWarning, stacklevel=2)
    for text in (text for table in estate.tables for text in table.missing):
        warnings.warn(text, PartialTableWarning, stacklevel=2)
    return estate.tables


class Survey(NamedTuple):
    """Everything below a directory."""

    tables: list[FoundTable]
    others: list[FoundTable]
    """Tables of formats that other programs read; `open` does not read them."""
    stray: list[OtherFiles]
    """Files that are probably no tables."""
    unread: list[str]
    """Places that could not be examined, with reasons."""


def survey(
    source: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None,
    rows: bool,
    verify: bool = False,
) -> Survey:
    """The tables of all formats below a directory: see `tables`."""
    from coldframe.pipeline.file_access import root_of
    from coldframe.pipeline.options import Options
    from coldframe.pipeline.source.survey import look

    root = root_of(source)
    options = Options(untyped=True, source_storage_options=storage_options)
    inventory, migrated = look(root, None, options)
    ours = [_described(root, table, storage_options) for table in migrated if len(table.files)]
    if rows or verify:
        ours = [_opened(table, storage_options, verify) for table in ours]
    places = [file.relative for file in inventory.unread if file.reason == NOT_LISTED]
    iceberg = [_iceberg(root, place, storage_options, rows, verify) for place in places]
    listed = sorted([*ours, *iceberg], key=lambda table: table.name) if iceberg else ours
    taken = {table.place for table in migrated}
    others, stray = other_files(root, inventory.unknown, taken, storage_options)
    names = {table.name for table in listed}
    unread = [f"{file.relative}: {file.reason}" for file in inventory.unread if file.reason != NOT_LISTED]
    return Survey(listed, [_other(root, group, names) for group in others], stray, unread)


def _other(root: str, group: OtherFiles, names: set[str]) -> FoundTable:
    path = f"{root}/{group.place}".removesuffix("/.")
    name = _name_of(path, group.place)
    name = f"{name}__{group.kind}" if name in names else name
    names.add(name)
    about = name, group.kind, path, group.files, group.bytes, None
    return FoundTable(*about, place=group.place, newest=group.newest)


def _name_of(path: str, place: str) -> str:
    return place.replace("/", ".") if place != "." else path.rstrip("/").rpartition("/")[2]


def _left_out(estate: Survey) -> Iterator[str]:
    """What is below the directory besides tables."""
    others = sorted({table.place for table in estate.others} | {files.place for files in estate.stray})
    if others:
        yield f"not listed, since its files have other formats or are damaged: {_some(others)}"
    if estate.unread:
        yield f"not read: {_some(estate.unread)}"


def _some(places: Sequence[str]) -> str:
    """The first places, and how many others there are."""
    more = len(places) - _NAMED
    return ", ".join(map(shown, places[:_NAMED])) + (f" and {more} others" if more > 0 else "")


def _iceberg(
    root: str, place: str, storage_options: Mapping[str, Any] | None, rows: bool, verify: bool
) -> FoundTable:
    path = f"{root}/{place}".removesuffix("/.")
    whole = FoundTable(_name_of(path, place), ICEBERG, path, 0, 0, None, place=place)
    try:
        table: Any = whole.open(storage_options=storage_options)
        whole = replace(whole, files=len(table.files), bytes=table.size)
        for _ in table.to_batches() if verify else ():
            pass
        return replace(whole, rows=table.count()) if rows else whole
    except (ColdframeError, OSError, ValueError) as error:
        return replace(whole, problem=str(error))


def _described(root: str, table: Table, storage_options: Mapping[str, Any] | None) -> FoundTable:
    first = table.files[0]
    number = len(table.files)
    is_whole = number == 1 and ((first.is_folder and not first.is_partition) or not table.partition_fields)
    path = first.path if is_whole else f"{root}/{table.place}".removesuffix("/.")
    if number > 1 and not os.path.isdir(path) and "://" not in path:
        path = root
    size, newest, folders, likeness = 0, 0, set(), hashlib.sha256()
    for file in table.files:
        size, newest = size + file.share, max(newest, file.mtime_ns)
        folders.add(file.keys)
        name = file.relative.removeprefix(f"{table.place}/")
        likeness.update(f"{name}\0{file.size}\n".encode(errors="replace"))
    return FoundTable(
        table.name,
        table.format,
        path,
        number,
        size,
        None,
        dict(table.options),
        place=_below(root, first.path) if first.is_folder and is_whole else table.place,
        is_whole=is_whole,
        newest=newest,
        partitions=len(folders - {()}),
        owner=_owner(first.path),
        damaged=len(table.damaged),
        likeness=likeness.hexdigest(),
    )


def _opened(table: FoundTable, storage_options: Mapping[str, Any] | None, verify: bool) -> FoundTable:
    """A table with what opening it shows, and with its damage if `verify`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            opened = table.open(storage_options=storage_options)
            table = replace(table, writer=_writer(opened))
            table = replace(table, rows=opened.num_rows)
            met = opened._raw.notices_by_reading() if isinstance(opened, File) else []
            missing = [f"{shown(table.path)}: {text}" for kind, text in met if kind == "partial_table"]
            table = replace(table, missing=tuple(missing))
            if verify:
                table = replace(table, damage=tuple(islice(_damage(opened), _NAMED)))
        except (ColdframeError, OSError, ValueError) as error:
            table = replace(table, problem=str(error))
    for warning in caught:
        if issubclass(warning.category, PartialTableWarning):
            table = replace(table, missing=(*table.missing, str(warning.message)))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return replace(table, missing=tuple(dict.fromkeys(table.missing)))


def _damage(table: File | Dataset) -> Iterator[str]:
    """The damage of all files of a table, which are read to the end."""
    for number in range(1 if isinstance(table, File) else len(table.files)):
        place = "" if isinstance(table, File) else f"{shown(table.files[number])}: "
        try:
            damage = (table if isinstance(table, File) else table.open_file(number)).verify()["damage"]
            yield from (f"{place}{lost['structure']}: {lost['reason']}" for lost in damage)
        except (ColdframeError, OSError, ValueError) as error:
            yield str(error)


def _writer(table: File | Dataset) -> str:
    try:
        about = (table if isinstance(table, File) else table.open_file(0)).metadata
    except (ColdframeError, OSError, ValueError):
        # The table tells what is wrong with it.
        return ""
    return " ".join(str(about[name]) for name in ("writer", "software_version", "dialect") if about.get(name))


def _owner(path: str) -> str:
    if "://" in path:
        return ""
    try:
        number = os.stat(path).st_uid
    except OSError:
        return ""
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def _below(root: str, path: str) -> str:
    return path[len(root) :].strip("/") if "://" in path else os.path.relpath(path, root)
