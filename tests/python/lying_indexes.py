"""Copies of real files whose indexes lie, while all checksums that are compared match.

ORC's row indexes are rewritten as chunks that are stored without compression, whatever the file's codec,
with the footers. The indexes of HFiles and CFiles are changed in place, and checksums are not compared.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import coldframe as cf

Fields = list[tuple[int, int, Any]]
"""The fields of a protobuf message in order: number, wire type, value."""

ROW_INDEX = 6
CODECS_BY_NUMBER = {0: "none", 1: "zlib"}


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Fields:
    read: Fields = []
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value: Any
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 2:
            length, at = read_varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            length = 8 if tag & 7 == 1 else 4
            value, at = data[at : at + length], at + length
        read.append((tag >> 3, tag & 7, value))
    return read


def message(parts: Fields) -> bytes:
    out = b""
    for number, wire, value in parts:
        out += varint(number << 3 | wire)
        if wire == 0:
            out += varint(value)
        elif wire == 2:
            out += varint(len(value)) + value
        else:
            out += value
    return out


def first(parts: Fields, number: int, default: Any = None) -> Any:
    return next((value for own, _, value in parts if own == number), default)


def replaced(parts: Fields, number: int, new: Any) -> Fields:
    return [(own, wire, new if own == number else value) for own, wire, value in parts]


@dataclass
class Orc:
    """An ORC file of which single row indexes can be replaced. Its codec is none or zlib."""

    content: bytes
    codec: int
    block: int
    footer: Fields
    tail: Fields
    footer_at: int
    metadata_at: int

    @staticmethod
    def of(content: bytes) -> Orc | None:
        """None if the file has another codec."""
        size = content[-1]
        tail = fields(content[-1 - size : -1])
        codec, block = first(tail, 2, 0), first(tail, 3, 256 << 10)
        if codec not in CODECS_BY_NUMBER:
            return None
        footer_at = len(content) - 1 - size - first(tail, 1, 0)
        metadata_at = footer_at - first(tail, 5, 0)
        opened = Orc(content, codec, block, [], tail, footer_at, metadata_at)
        opened.footer = fields(opened.plain(content[footer_at : len(content) - 1 - size]))
        return opened

    def plain(self, stored: bytes) -> bytes:
        if self.codec == 0:
            return stored
        out, at = b"", 0
        while at < len(stored):
            head = int.from_bytes(stored[at : at + 3], "little")
            chunk = stored[at + 3 : at + 3 + (head >> 1)]
            out += chunk if head & 1 else zlib.decompress(chunk, -15)
            at += 3 + (head >> 1)
        return out

    def stored(self, plain: bytes) -> bytes:
        if self.codec == 0:
            return plain
        parts = [plain[at : at + self.block] for at in range(0, len(plain), self.block)]
        return b"".join((len(part) << 1 | 1).to_bytes(3, "little") + part for part in parts)

    def with_index(self, change: Callable[[int, int, bytes], bytes | None]) -> bytes:
        """The file with row indexes replaced: `change` gets the stripe, the column and the index."""
        out = self.content[:3]
        stripes: Fields = []
        number = -1
        for own, wire, value in self.footer:
            if own != 3:
                stripes.append((own, wire, value))
                continue
            number += 1
            stripe = fields(value)
            at, index, data, footer = (first(stripe, n, 0) for n in (1, 2, 3, 4))
            parts = fields(self.plain(self.content[at + index + data : at + index + data + footer]))
            changed: Fields = []
            streams, place = b"", at
            for kind, kind_wire, stream in parts:
                if kind != 1:
                    changed.append((kind, kind_wire, stream))
                    continue
                described = fields(stream)
                length = first(described, 3, 0)
                bytes_ = self.content[place : place + length]
                place += length
                if first(described, 1, 0) == ROW_INDEX and place <= at + index:
                    new = change(number, first(described, 2, 0), self.plain(bytes_))
                    if new is not None:
                        bytes_ = self.stored(new)
                        described = replaced(described, 3, len(bytes_))
                if place <= at + index:
                    streams += bytes_
                changed.append((1, 2, message(described)))
            begin = len(out)
            own_footer = self.stored(message(changed))
            out += streams + self.content[at + index : at + index + data] + own_footer
            for n, v in ((1, begin), (2, len(streams)), (4, len(own_footer))):
                stripe = replaced(stripe, n, v)
            stripes.append((3, 2, message(stripe)))
        begin = len(out)
        out += self.content[self.metadata_at : self.footer_at]
        footer = self.stored(message(replaced(stripes, 2, begin)))
        tail = message(replaced(self.tail, 1, len(footer)))
        return out + footer + tail + bytes([len(tail)])


def shifted(index: bytes, dice: random.Random) -> bytes | None:
    """A row index with one position of one row group changed; None if it has no positions."""
    groups = fields(index)
    entries = [at for at, (number, _, value) in enumerate(groups) if number == 1 and first(fields(value), 1)]
    if not entries:
        return None
    at = dice.choice(entries)
    entry = fields(groups[at][2])
    positions: list[int] = []
    packed = first(entry, 1)
    if isinstance(packed, int):
        positions = [value for number, _, value in entry if number == 1]
    else:
        place = 0
        while place < len(packed):
            value, place = read_varint(packed, place)
            positions.append(value)
    which = dice.randrange(len(positions))
    positions[which] = max(0, positions[which] + dice.choice([-8, -2, -1, 1, 2, 4, 8, 100]))
    rest = [field for field in entry if field[0] != 1]
    new = message([(1, 2, b"".join(map(varint, positions))), *rest])
    return message([*groups[:at], (1, 2, new), *groups[at + 1 :]])


def orc_copies(content: bytes, dice: random.Random, count: int) -> Iterator[bytes]:
    """Copies of an ORC file in which the row indexes of one column lie."""
    opened = Orc.of(content)
    if opened is None:
        return
    columns: set[int] = set()
    opened.with_index(lambda _, column, __: columns.add(column))
    for _ in range(count if columns else 0):
        lying = dice.choice(sorted(columns))

        def change(_: int, column: int, index: bytes, own: int = lying) -> bytes | None:
            return shifted(index, dice) if column == own else None

        copy = opened.with_index(change)
        if copy != content:
            yield copy


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("children") or ():
        yield from nodes(child)


def changed_in_place(content: bytes, at: int, length: int, dice: random.Random) -> bytes:
    """One or a few neighbouring bytes of a structure changed."""
    copy = bytearray(content)
    place = at + dice.randrange(length)
    for offset in range(place, min(at + length, place + dice.choice([1, 1, 2]))):
        copy[offset] = (copy[offset] + dice.choice([1, 1, 2, 3, 128, 254, 255])) % 256
    return bytes(copy)


def block_copies(content: bytes, options: dict[str, Any], dice: random.Random, count: int) -> Iterator[bytes]:
    """Copies of a file in whose index blocks bytes were changed."""
    tree = cf.open(content, **options).inspect()
    named = [node for node in nodes(tree) if "index" in node["name"].lower() and node["length"] > 40]
    inner = [
        child["offset"] for node in named for child in nodes(node) if child is not node and child in named
    ]
    indexes = [
        node
        for node in named
        if not any(node["offset"] <= at < node["offset"] + node["length"] for at in inner)
    ]
    for _ in range(count if indexes else 0):
        node = dice.choice(indexes)
        yield changed_in_place(content, node["offset"] + 33, node["length"] - 33, dice)
