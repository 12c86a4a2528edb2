"""ORC files assembled stream by stream, in the forms of writers that are not available here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

BOOLEAN, SHORT, INT, LONG, DOUBLE, STRING, LIST, STRUCT, DATE = 0, 2, 3, 4, 6, 7, 10, 12, 15
PRESENT, DATA, LENGTH = 0, 1, 2
DIRECT, DIRECT_V2 = 0, 2


def varint(number: int) -> bytes:
    """A protobuf varint."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> int:
    """The form of a signed number in protobuf."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protobuf message of numbers and bytes."""
    out = b""
    for tag, value in fields:
        if isinstance(value, bytes):
            out += varint(tag << 3 | 2) + varint(len(value)) + value
        else:
            out += varint(tag << 3) + varint(value)
    return out


def column(kind: int, *children: int, names: Sequence[str] = ()) -> bytes:
    """A type."""
    named = [(3, name.encode()) for name in names]
    return message((1, kind), *([(2, b"".join(map(varint, children)))] if children else []), *named)


def table(*names: str) -> bytes:
    """The root of a table of plain columns."""
    return column(STRUCT, *range(1, len(names) + 1), names=names)


class Stream(NamedTuple):
    """The content of a stream."""

    kind: int
    column: int
    content: bytes


def stored(content: bytes) -> bytes:
    """A chunk that is not compressed, also of no bytes."""
    return (len(content) << 1 | 1).to_bytes(3, "little") + content


def orc(
    types: Sequence[bytes],
    encodings: Sequence[int],
    rows: int,
    streams: Sequence[Stream],
    *,
    statistics: Sequence[bytes] = (),
    writer: int | None = None,
    version: int | None = None,
    empty: bytes | None = None,
    chunked: bool = True,
    of_stripes: Sequence[Sequence[bytes]] = ((),),
) -> bytes:
    """A file with one stripe, or with as many equal stripes as there are statistics of stripes.

    Chunks are as for snappy, but with stored content. `empty` is the form of a stream of no bytes.
    """

    def chunk(content: bytes) -> bytes:
        if not chunked:
            return content
        return empty if empty is not None and not content else stored(content)

    data = [(kind, of, chunk(content)) for kind, of, content in streams]
    listed = [(1, message((1, kind), (2, of), (3, len(content)))) for kind, of, content in data]
    foot = chunk(message(*listed, *((2, message((1, kind))) for kind in encodings)))
    body = b"".join(content for _, _, content in data)
    count, length = len(of_stripes), len(body) + len(foot)
    starts = [3 + number * length for number in range(count)]
    sizes = [(2, 0), (3, len(body)), (4, len(foot)), (5, rows)]
    fields: list[tuple[int, int | bytes]] = [(1, 3), (2, 3 + count * length)]
    fields += [(3, message((1, start), *sizes)) for start in starts]
    fields += [(4, kind) for kind in types]
    fields += [(6, count * rows), *((7, of) for of in statistics), (8, 0)]
    fields += [] if writer is None else [(9, writer)]
    footer = chunk(message(*fields))
    stated = [(1, message(*((1, of) for of in columns))) for columns in of_stripes]
    metadata = chunk(message(*stated)) if any(of_stripes) else b""
    tail = message((1, len(footer)), (2, 2 if chunked else 0), (3, 262_144), (4, bytes([0, 12])))
    tail += message((5, len(metadata)))
    tail += b"" if version is None else message((6, version))
    tail += message((8000, b"ORC"))
    return b"ORC" + (body + foot) * count + metadata + footer + tail + bytes([len(tail)])
