"""Rows that are deleted by their numbers: files of positions, and deletion vectors."""

from __future__ import annotations

import bisect
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from coldframe.errors import CorruptFileError

__all__ = ["Positions", "vector"]

_MAGIC = b"\xd1\xd3\x39\x64"
_COOKIE, _COOKIE_WITHOUT_RUNS = 12347, 12346
_NO_OFFSETS = 4
"""A bitmap with runs has no offsets if it has fewer containers."""
_DENSE = 4096
"""The values from which on a container is 65,536 bits."""


class Positions:
    """Numbers of the rows of one file that are deleted."""

    def __init__(self, parts: Iterable[pa.Array | pa.ChunkedArray]) -> None:
        """Of arrays of int64, in any order, which may have values twice."""
        chunks = [chunk for part in parts for chunk in _chunks(part)]
        whole = pa.chunked_array(chunks, pa.int64()).combine_chunks()
        ordered = whole.take(pc.array_sort_indices(whole)) if len(whole) else whole
        self._numbers = array("q")
        if len(ordered):
            self._numbers.frombytes(ordered.buffers()[1].slice(ordered.offset * 8, len(ordered) * 8))

    def __len__(self) -> int:
        return len(self._numbers)

    def kept(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The rows of a batch that are left; `first`: the number of its first row in the file."""
        start = bisect.bisect_left(self._numbers, first)
        stop = bisect.bisect_left(self._numbers, first + batch.num_rows, start)
        if start == stop:
            return batch
        mask = bytearray(b"\x01") * batch.num_rows
        for at in self._numbers[start:stop]:
            mask[at - first] = 0
        bits = pa.Array.from_buffers(pa.uint8(), len(mask), [None, pa.py_buffer(bytes(mask))])
        return batch.filter(bits.cast(pa.bool_()))


def _chunks(part: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(part.chunks) if isinstance(part, pa.ChunkedArray) else [part]


def vector(blob: bytes, path: str, offset: int) -> pa.Array:
    """The row numbers of a deletion vector: length, magic, bitmaps of the upper 32 bits, CRC-32."""

    def damaged(reason: str, at: int = 0) -> CorruptFileError:
        where = f"{path}: offset {offset + at}: deletion vector"
        error = CorruptFileError(f"{where}: {reason}")
        error.path, error.offset, error.structure, error.reason = path, offset + at, "deletion vector", reason
        return error

    if len(blob) < 20:
        raise damaged(f"expected at least 20 bytes, found {len(blob)}")
    length, magic = struct.unpack_from(">I4s", blob)
    if length + 8 != len(blob):
        raise damaged(f"expected {len(blob) - 8} bytes, found a length of {length}")
    if magic != _MAGIC:
        raise damaged(f"expected the magic {_MAGIC.hex()}, found {magic.hex()}", 4)
    body = blob[4:-4]
    stored, found = struct.unpack(">I", blob[-4:])[0], zlib.crc32(body)
    if stored != found:
        raise damaged(f"expected the CRC-32 {stored:08x}, found {found:08x}", len(blob) - 4)
    try:
        return pa.array(_Bitmaps(body, 4).numbers(), pa.int64())
    except (struct.error, ValueError) as reason:
        raise damaged(f"not a Roaring bitmap: {reason}") from reason


class _Bitmaps:
    """Roaring bitmaps in their portable form, one for each value of the upper 32 bits."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def _take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def numbers(self) -> Iterator[int]:
        """All numbers, ascending."""
        (count,) = self._take("Q")
        for _ in range(count):
            (key,) = self._take("I")
            for low in self._bitmap():
                yield key << 32 | low
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes behind the last bitmap")

    def _bitmap(self) -> Iterator[int]:
        (cookie,) = self._take("I")
        runs = b""
        if cookie & 0xFFFF == _COOKIE:
            size = (cookie >> 16) + 1
            runs = bytes(self._take(f"{(size + 7) // 8}B"))
        elif cookie == _COOKIE_WITHOUT_RUNS:
            (size,) = self._take("I")
            if size > 1 << 16:
                raise ValueError(f"{size} containers")
        else:
            raise ValueError(f"a cookie of {cookie}")
        keys = self._take("HH" * size)
        if not runs or size >= _NO_OFFSETS:
            self._take("I" * size)
        for at in range(size):
            high, values = keys[2 * at] << 16, keys[2 * at + 1] + 1
            if runs and runs[at // 8] >> at % 8 & 1:
                container = self._runs()
            else:
                container = self._bits() if values > _DENSE else iter(self._take("H" * values))
            for low in container:
                yield high | low

    def _runs(self) -> Iterator[int]:
        (count,) = self._take("H")
        pairs = self._take("HH" * count)
        for start, more in zip(pairs[::2], pairs[1::2], strict=True):
            if start + more > 0xFFFF:
                raise ValueError(f"a run of {more + 1} from {start}")
            yield from range(start, start + more + 1)

    def _bits(self) -> Iterator[int]:
        for at, word in enumerate(self._take("Q" * 1024)):
            while word:
                low = word & -word
                yield at * 64 + low.bit_length() - 1
                word ^= low
