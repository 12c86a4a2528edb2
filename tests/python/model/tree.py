"""The source in the model: the rows of each file, and their origin.

A row has an `id` (which stays the same when files are compacted or rewritten), a `tag` (the version of the
file from which it was read), and the values `v` and, in some files, `w`. The tag of a row in a target gives
its origin; the id shows duplicates.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import coldframe as cf

Keys = tuple[tuple[str, str], ...]
TYPES = ("int8", "int16", "int32", "int64", "string")
LARGEST = {"int8": 100, "int16": 30_000, "int32": 2_000_000_000, "int64": 1 << 40, "string": 100}
STRIPE = 4
"""Rows of a stripe: some files have several."""


@dataclass(frozen=True)
class Row:
    """A row as it is written, and as every engine must read it."""

    id: int
    v: int
    w: str | None = None


@dataclass(frozen=True)
class Version:
    """The content of a source file at one time."""

    tag: str
    path: str
    rows: tuple[Row, ...]
    kind: str
    type: str = "int32"
    wide: bool = False
    """Whether the version has the column `w`."""
    health: str = "good"
    """damaged: some rows can be salvaged; lost: no row can be salvaged, or the format is unknown; empty: no
    bytes.
    """

    @property
    def keys(self) -> Keys:
        """The partition that its directories name; engines ignore the case of column names."""
        parts = (name.partition("=") for name in self.path.split("/")[:-1])
        return tuple((key.lower(), value) for key, equals, value in parts if equals)

    @property
    def table(self) -> str:
        """The directory of its table: the directories above the first partition."""
        plain = itertools.takewhile(lambda name: "=" not in name, self.path.split("/")[:-1])
        return "/".join(plain)


@dataclass
class Tree:
    """The files below a source's root. Each change is made on disk and in this object."""

    root: Path
    now: dict[str, Version] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    """All versions ever written, by tag."""
    damaged: set[str] = field(default_factory=set)
    """Tags of damaged versions: the target may have any of their rows."""
    _ids: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)
    _tags: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)

    def new_rows(self, count: int, type: str, wide: bool) -> tuple[Row, ...]:
        ids = [self._ids() for _ in range(count)]
        return tuple(Row(id, self._value(id, type), f"w{id}" if wide else None) for id in ids)

    @staticmethod
    def _value(id: int, type: str) -> int:
        # The first value needs the full width of its type.
        return LARGEST[type] if id % 3 == 1 else id % 50

    def put(self, path: str, rows: tuple[Row, ...], kind: str, type: str, wide: bool) -> Version:
        """Writes or replaces a file."""
        tag = f"tag-{self._tags():05d}"
        version = Version(tag, path, rows, kind, type, wide)
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        # As Hive does: writes the new file beside the old file, then renames it over the old file.
        beside = place.with_name(f".{place.name}.new")
        write(version, beside)
        os.replace(beside, place)
        self.now[path] = self.versions[tag] = version
        return version

    def same_size(self, path: str) -> bool:
        """Replaces a file, keeping its time. Returns whether the size stayed the same."""
        before = self.now[path]
        about = (self.root / path).stat()
        self.put(path, before.rows, before.kind, before.type, before.wide)
        os.utime(self.root / path, ns=(about.st_atime_ns, about.st_mtime_ns))
        return (self.root / path).stat().st_size == about.st_size

    def remove(self, path: str) -> None:
        (self.root / path).unlink()
        del self.now[path]

    def spoil(self, path: str, how: str) -> None:
        """Damages a file. The damaged version requires no row in the target."""
        before = self.now[path]
        place = self.root / path
        content = bytearray(place.read_bytes())
        health = "lost"
        if how == "cut":
            content = content[: len(content) // 2]
        elif how == "garbage":
            content = bytearray(b"not a file of ours. " * 8)
        elif how == "empty":
            content, health = bytearray(), "empty"
        else:
            # Damages the first stripe; the other stripes can still be salvaged.
            content[3:40] = b"\xff" * len(content[3:40])
            health = "damaged"
        place.write_bytes(bytes(content))
        self.damaged.add(before.tag)
        # The row's tag stays, since salvaged rows still carry it.
        self.now[path] = Version(before.tag, path, before.rows, before.kind, before.type, before.wide, health)


def write(version: Version, place: Path) -> None:
    """Writes the file of a version."""
    schema = pa.schema([("id", pa.int64()), ("tag", pa.string()), ("v", getattr(pa, version.type)())])
    columns: dict[str, list[Any]] = {
        "id": [row.id for row in version.rows],
        "tag": [version.tag for _ in version.rows],
        "v": [str(row.v) if version.type == "string" else row.v for row in version.rows],
    }
    if version.wide:
        schema = schema.append(pa.field("w", pa.string()))
        columns["w"] = [row.w for row in version.rows]
    table = pa.table(columns, schema=schema)
    if version.kind == "orc":
        cf.write(table, place, format="orc", codec="zlib", stripe_rows=STRIPE, dictionary_threshold=0)
    elif version.kind == "redfile":
        cf.write(table, place, format="redfile", row_group_rows=STRIPE)
    else:
        serde = {"rctext": "text", "rcbinary": "binary"}[version.kind]
        cf.write(table, place, format="rcfile", serde=serde, record_interval=STRIPE)
