"""A small writer of Redfiles, based on the format's text and Thrift file: record by record, as in the paper.

It shares no code with coldframe. A schema is a list of nodes; a record is a dict, a repeated field a list, an
absent optional field None.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY = range(7)
REQUIRED, OPTIONAL, REPEATED = range(3)
UNCOMPRESSED, SNAPPY, GZIP, LZO = range(4)
PLAIN, GROUP_VAR_INT = range(2)
DATA_PAGE, INDEX_PAGE = range(2)


@dataclass
class Node:
    """A leaf, which has a type, or a group, which has children."""

    name: str
    repetition: int
    type: int | None = None
    children: list[Node] = field(default_factory=list)
    converted: int | None = None


@dataclass
class Leaf:
    """A leaf's position and, once records are striped, its entries: repetition, definition, value."""

    path: list[Node]
    entries: list[tuple[int, int, Any]] = field(default_factory=list)

    @property
    def max_repetition(self) -> int:
        return sum(n.repetition == REPEATED for n in self.path)

    @property
    def max_definition(self) -> int:
        return sum(n.repetition != REQUIRED for n in self.path)


@dataclass
class Options:
    """How to write a file. `dialect`: a to f, or spec."""

    dialect: str = "f"
    codec: int = UNCOMPRESSED
    encoding: int = PLAIN
    page_values: int = 1000
    group_rows: int = 10**9
    crc: bool = False
    index_pages: bool = False
    metadata_after_chunk: bool = False
    breadth_first: bool = False
    key_values: list[tuple[str, str | None]] = field(default_factory=list)


def uleb128(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n: int) -> bytes:
    return uleb128(n << 1 if n >= 0 else (-n << 1) - 1)


class Struct:
    """A struct of Thrift's compact protocol. Fields in ascending order; None is left out."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.last = 0

    def _field(self, id: int, kind: int, value: bytes) -> Struct:
        self.out += bytes([id - self.last << 4 | kind]) + value
        self.last = id
        return self

    def i32(self, id: int, value: int | None) -> Struct:
        return self if value is None else self._field(id, 5, zigzag(value))

    def i64(self, id: int, value: int | None) -> Struct:
        return self if value is None else self._field(id, 6, zigzag(value))

    def text(self, id: int, value: str | None) -> Struct:
        return self if value is None else self._field(id, 8, binary(value))

    def struct(self, id: int, value: bytes | None) -> Struct:
        return self if value is None else self._field(id, 12, value)

    def list(self, id: int, kind: int, values: list[bytes]) -> Struct:
        size = len(values)
        header = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + uleb128(size)
        return self._field(id, 9, header + b"".join(values))

    def end(self) -> bytes:
        return bytes(self.out) + b"\0"


def binary(text: str) -> bytes:
    data = text.encode()
    return uleb128(len(data)) + data


def leaves(nodes: list[Node], path: list[Node] | None = None) -> Iterator[Leaf]:
    for node in nodes:
        here = [*(path or []), node]
        if node.type is not None:
            yield Leaf(here)
        else:
            yield from leaves(node.children, here)


def stripe(leaf: Leaf, record: dict[str, Any]) -> None:
    def down(depth: int, value: Any, repetition: int, definition: int) -> None:
        if depth == len(leaf.path):
            leaf.entries.append((repetition, definition, value))
            return
        node = leaf.path[depth]
        child = value[node.name]
        if node.repetition == REQUIRED:
            down(depth + 1, child, repetition, definition)
        elif child is None or (child == [] and node.repetition == REPEATED):
            leaf.entries.append((repetition, definition, None))
        elif node.repetition == OPTIONAL:
            down(depth + 1, child, repetition, definition + 1)
        else:
            level = sum(n.repetition == REPEATED for n in leaf.path[: depth + 1])
            for i, item in enumerate(child):
                down(depth + 1, item, level if i else repetition, definition + 1)

    down(0, record, 0, 0)


def runs(levels: list[int], maximum: int) -> bytes:
    width = maximum.bit_length()
    bits: list[int] = []

    def put(value: int, count: int) -> None:
        bits.extend(value >> i & 1 for i in range(count))

    at = 0
    while at < len(levels):
        count = 1
        while at + count < len(levels) and levels[at + count] == levels[at]:
            count += 1
        if count >= max(2, (width + 9) // (1 + width)):
            put(1 | levels[at] << 1, 1 + width)
            for byte in uleb128(count):
                put(byte, 8)
        else:
            for _ in range(count):
                put(levels[at] << 1, 1 + width)
        at += count
    return bytes(sum(b << i for i, b in enumerate(bits[k : k + 8])) for k in range(0, len(bits), 8))


def pack(values: list[int], width: int) -> bytes:
    bits = "".join(format(v, f"0{width}b") for v in values) if width else ""
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def group_var_int(values: list[int], type: int) -> bytes:
    size, width = (4, 4) if type == INT32 else (5, 8)
    out = bytearray()
    for i in range(0, len(values), size):
        group = values[i : i + size] + [0] * (size - len(values[i : i + size]))
        data = [(v & (1 << 8 * width) - 1).to_bytes(width, "little").rstrip(b"\0") or b"\0" for v in group]
        header = 0
        for d in data:
            header = header << (2 if type == INT32 else 3) | len(d) - 1
        out += header.to_bytes(1 if type == INT32 else 2, "little") + b"".join(data)
    return bytes(out)


def plain(values: list[Any], type: int, dialect: str) -> bytes:
    order = ">" if dialect == "a" else "<"
    if type == BOOLEAN:
        return bytes(values) if dialect in "ab" else pack(list(map(int, values)), 1)
    if type == INT96:
        return b"".join(values)
    if type == BYTE_ARRAY:
        length: Callable[[int], bytes] = uleb128 if dialect == "b" else lambda n: struct.pack(order + "I", n)
        return b"".join(length(len(v)) + v for v in values)
    return struct.pack(
        f"{order}{len(values)}{ {INT32: 'i', INT64: 'q', FLOAT: 'f', DOUBLE: 'd'}[type] }", *values
    )


def page(entries: list[tuple[int, int, Any]], leaf: Leaf, options: Options, encoding: int) -> bytes:
    repetition, definition = [e[0] for e in entries], [e[1] for e in entries]
    values = [e[2] for e in entries if e[1] == leaf.max_definition]
    type = leaf.path[-1].type
    assert type is not None
    data = group_var_int(values, type) if encoding == GROUP_VAR_INT else plain(values, type, options.dialect)

    def framed(levels: list[int], maximum: int) -> bytes:
        stream = runs(levels, maximum)
        return struct.pack(">I", len(stream)) + stream if maximum else b""

    width = leaf.max_repetition.bit_length()
    if options.dialect == "spec":
        return (
            (runs(definition, leaf.max_definition) if leaf.max_definition else b"")
            + pack(repetition, width)
            + data
        )
    if options.dialect == "a":
        packed = framed(repetition, leaf.max_repetition)
    else:
        # The early dialects pad the levels to groups of values that end on a byte.
        group = {3: 8, 5: 8, 6: 4, 7: 8}.get(width, 1) if options.dialect in "bcde" else 1
        packed = pack(repetition + [0] * (-len(repetition) % group), width)
    return packed + framed(definition, leaf.max_definition) + data


def compress(data: bytes, codec: int) -> bytes:
    """Snappy and LZO use literals only, in Hadoop's framing: two blocks of several chunks, an empty block."""
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == UNCOMPRESSED:
        return data
    out = bytearray()
    for block in (data[: len(data) // 2], data[len(data) // 2 :]):
        out += struct.pack(">I", len(block))
        for i in range(0, len(block), 50):
            literal = block[i : i + 50]
            if codec == SNAPPY:
                chunk = uleb128(len(literal)) + bytes([len(literal) - 1 << 2]) + literal
            else:
                chunk = bytes([17 + len(literal)]) + literal + b"\x11\0\0"
            out += struct.pack(">I", len(chunk)) + chunk
    return bytes(out) + bytes(4)


def page_header(kind: int, raw: bytes, stored: bytes, crc: bool, count: int, encoding: int) -> bytes:
    header = Struct().i32(1, kind).i32(2, len(raw)).i32(3, len(stored))
    if crc:
        header.i32(4, struct.unpack("<i", struct.pack("<I", zlib.crc32(stored)))[0])
    if kind == DATA_PAGE:
        return header.struct(5, Struct().i32(1, count).i32(2, encoding).end()).end()
    return header.struct(6, Struct().end()).end()


def schema(nodes: list[Node], options: Options) -> list[bytes]:
    """The schema elements, depth first; if children are given by position, breadth first on request."""
    root = Node("m", REQUIRED, children=nodes)
    order: list[Node] = []

    def visit(node: Node) -> None:
        order.append(node)
        for child in node.children:
            visit(child)

    if options.breadth_first:
        order = [root]
        for node in order:
            order.extend(node.children)
    else:
        visit(root)
    places = {id(n): i for i, n in enumerate(order)}
    elements = []
    for node in order:
        element = Struct().i32(1, node.type)
        if node is not root or options.dialect in "abc":
            element.i32(2, REPEATED if node is root else node.repetition)
        element.text(3, node.name)
        if node.type is None and options.dialect in "abc":
            element.list(4, 5, [zigzag(places[id(c)]) for c in node.children])
        elif node.type is None:
            element.i32(4, len(node.children))
        elements.append(element.i32(5, node.converted).end())
    return elements


def write(nodes: list[Node], records: list[dict[str, Any]], options: Options) -> bytes:
    out = bytearray(b"RED1")
    groups = []
    for first in range(0, len(records), options.group_rows):
        rows = records[first : first + options.group_rows]
        if options.dialect in "abc":
            out += b"RED1"
        columns = []
        for leaf in leaves(nodes):
            for record in rows:
                stripe(leaf, record)
            columns.append(chunk(out, leaf, options))
        groups.append(Struct().list(1, 12, columns).i64(2, 0).i64(3, len(rows)).end())
    footer = Struct().i32(1, 1).list(2, 12, schema(nodes, options)).i64(3, len(records)).list(4, 12, groups)
    if options.key_values:
        footer.list(5, 12, [Struct().text(1, k).text(2, v).end() for k, v in options.key_values])
    metadata = footer.end()
    return bytes(out) + metadata + struct.pack("<I", len(metadata)) + b"RED1"


def chunk(out: bytearray, leaf: Leaf, options: Options) -> bytes:
    """Appends a leaf's pages to `out`. Returns the chunk's ColumnChunk."""
    type = leaf.path[-1].type
    encoding = options.encoding if type in (INT32, INT64) else PLAIN
    raw_size = stored_size = 0
    index_offset = data_offset = None
    for i in range(0, len(leaf.entries), options.page_values):
        if options.index_pages:
            index_offset = index_offset or len(out)
            out += page_header(INDEX_PAGE, b"index", b"index", False, 0, 0) + b"index"
        data_offset = data_offset or len(out)
        entries = leaf.entries[i : i + options.page_values]
        raw = page(entries, leaf, options, encoding)
        # Before dialect e the footer names a codec, but pages are uncompressed.
        stored = raw if options.dialect in "abcd" else compress(raw, options.codec)
        out += page_header(DATA_PAGE, raw, stored, options.crc, len(entries), encoding) + stored
        raw_size, stored_size = raw_size + len(raw), stored_size + len(stored)
    if options.dialect in "abcd":
        stored_size = 0
    metadata = (
        Struct()
        .i32(1, type)
        .list(2, 5, [zigzag(encoding)])
        .list(3, 8, [binary(n.name) for n in leaf.path])
        .i32(4, options.codec)
        .i64(5, len(leaf.entries))
        .i64(6, raw_size)
        .i64(7, stored_size)
        .i64(8, data_offset or len(out))
        .i64(9, index_offset)
        .end()
    )
    offset = data_offset or len(out)
    if options.metadata_after_chunk:
        offset = len(out)
        out += metadata
    return Struct().i64(2, offset).struct(3, metadata).end()
