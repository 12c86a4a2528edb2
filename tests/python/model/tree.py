"""The source as the model has it: which rows each file holds, and how they came there.

A row is `id` (who it is: it stays the same when files are compacted or rewritten), `tag` (which version of
which file it was read from) and the values `v` and, in some files, `w`. By its tag each row of a target says
where it comes from, by its id whether it is there twice.
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
    """A row as it is written, and as every engine has to give it back."""

    id: int
    v: int
    w: str | None = None


@dataclass(frozen=True)
class Version:
    """What a source file held at one time."""

    tag: str
    path: str
    rows: tuple[Row, ...]
    kind: str
    type: str = "int32"
    wide: bool = False
    """Whether it has the column `w`."""
    health: str = "good"
    """damaged: some rows can be saved; lost: none can, or nobody knows what it is; empty: no bytes."""

    @property
    def keys(self) -> Keys:
        """The partition that its directories say; engines take names of columns in any case."""
        parts = (name.partition("=") for name in self.path.split("/")[:-1])
        return tuple((key.lower(), value) for key, equals, value in parts if equals)

    @property
    def table(self) -> str:
        """Where its table lies: the directories above the first partition."""
        plain = itertools.takewhile(lambda name: "=" not in name, self.path.split("/")[:-1])
        return "/".join(plain)


@dataclass
class Tree:
    """The files below a source's root. Each change is made on the disk and here."""

    root: Path
    now: dict[str, Version] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    """All there ever were, by tag."""
    damaged: set[str] = field(default_factory=set)
    """Tags of those that were spoilt: some of their rows may be there, or none."""
    _ids: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)
    _tags: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)

    def new_rows(self, count: int, type: str, wide: bool) -> tuple[Row, ...]:
        ids = [self._ids() for _ in range(count)]
        return tuple(Row(id, self._value(id, type), f"w{id}" if wide else None) for id in ids)

    @staticmethod
    def _value(id: int, type: str) -> int:
        # The first one needs the whole width of its type.
        return LARGEST[type] if id % 3 == 1 else id % 50

    def put(self, path: str, rows: tuple[Row, ...], kind: str, type: str, wide: bool) -> Version:
        """Writes a file, in place of what there was."""
        tag = f"tag-{self._tags():05d}"
        version = Version(tag, path, rows, kind, type, wide)
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        # As Hive does: written beside, renamed over.
        beside = place.with_name(f".{place.name}.new")
        write(version, beside)
        os.replace(beside, place)
        self.now[path] = self.versions[tag] = version
        return version

    def same_size(self, path: str) -> bool:
        """Other rows in a file of the same length and time; whether that could be done."""
        before = self.now[path]
        about = (self.root / path).stat()
        self.put(path, before.rows, before.kind, before.type, before.wide)
        os.utime(self.root / path, ns=(about.st_atime_ns, about.st_mtime_ns))
        return (self.root / path).stat().st_size == about.st_size

    def remove(self, path: str) -> None:
        (self.root / path).unlink()
        del self.now[path]

    def spoil(self, path: str, how: str) -> None:
        """Damages a file. Its version is another one then, of which no row needs to be there."""
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
            # The first stripe: where there is another one, that can be saved.
            content[3:40] = b"\xff" * len(content[3:40])
            health = "damaged"
        place.write_bytes(bytes(content))
        self.damaged.add(before.tag)
        # The tag is that of the rows that were written: what is saved of them still says so.
        self.now[path] = Version(before.tag, path, before.rows, before.kind, before.type, before.wide, health)


def write(version: Version, place: Path) -> None:
    """The file of a version."""
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
