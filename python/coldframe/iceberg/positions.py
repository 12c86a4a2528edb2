"""Position deletes: rows that are deleted by number, in delete files and deletion vectors."""

from __future__ import annotations

import bisect
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator

import pyarrow.compute as pc

from coldframe.arrow import pa
from coldframe.errors import CorruptFileError, corrupt

__all__ = ["Positions", "vector"]

_MAGIC = b"\xd1\xd3\x39\x64"
_COOKIE, _COOKIE_WITHOUT_RUNS = 12347, 12346
_NO_OFFSETS = 4
"""A bitmap with runs has no offsets if it has fewer containers than this."""
_DENSE = 4096
"""A container with more values than this is stored as 65,536 bits."""


class Positions:
    """The numbers of the deleted rows of one file."""

    def __init__(self, parts: Iterable[pa.Array | pa.ChunkedArray]) -> None:
        """`parts`: arrays of int64 in any order, possibly with duplicates."""
        chunks = [chunk for part in parts for chunk in _chunks(part)]
        whole = pa.chunked_array(chunks, pa.int64()).combine_chunks()
        ordered = whole.take(pc.array_sort_indices(whole)) if len(whole) else whole
        self._numbers = array("q")
        if len(ordered):
            self._numbers.frombytes(ordered.buffers()[1].slice(ordered.offset * 8, len(ordered) * 8))

    def __len__(self) -> int:
        return len(self._numbers)

    def kept(self, batch: pa.RecordBatch, numbers: pa.Array) -> pa.RecordBatch:
        """The rows of a batch that are not deleted; `numbers`: their row numbers in the file, ascending."""
        if not len(numbers):
            return batch
        start = bisect.bisect_left(self._numbers, numbers[0].as_py())
        stop = bisect.bisect_right(self._numbers, numbers[-1].as_py(), start)
        if start == stop:
            return batch
        deleted = pa.Array.from_buffers(
            pa.int64(), stop - start, [None, pa.py_buffer(self._numbers[start:stop])]
        )
        return batch.filter(pc.invert(pc.is_in(numbers, value_set=deleted)))


def _chunks(part: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(part.chunks) if isinstance(part, pa.ChunkedArray) else [part]


def vector(blob: bytes, path: str, offset: int) -> pa.ChunkedArray:
    """The row numbers of a deletion vector: a length, a magic, a bitmap for each upper half, a CRC-32."""

    def damaged(reason: str, at: int = 0) -> CorruptFileError:
        return corrupt(path, offset + at, "deletion vector", reason)

    if len(blob) < 20:
        raise damaged(f"expected at least 20 bytes, found {len(blob)}")
    length, magic = struct.unpack_from(">I4s", blob)
    if length + 8 != len(blob):
        raise damaged(f"expected {len(blob) - 8} bytes, found a length of {length}")
    if magic != _MAGIC:
        raise damaged(f"expected the magic {_MAGIC.hex()}, found {magic.hex()}", 4)
    body = blob[4:-4]
    stored, actual = struct.unpack(">I", blob[-4:])[0], zlib.crc32(body)
    if stored != actual:
        raise damaged(f"expected the CRC-32 {stored:08x}, found {actual:08x}", len(blob) - 4)
    try:
        return pa.chunked_array(list(_Bitmaps(body, 4).numbers()), pa.int64())
    except (struct.error, ValueError, MemoryError) as reason:
        raise damaged(f"not a Roaring bitmap: {reason}") from reason


class _Bitmaps:
    """Roaring bitmaps in their portable form, one for each value of the upper 32 bits."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def _take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def _bytes(self, size: int) -> pa.Buffer:
        if len(self._data) - self._at < size:
            raise ValueError(f"expected {size} bytes, found {len(self._data) - self._at}")
        self._at += size
        return pa.py_buffer(self._data).slice(self._at - size, size)

    def numbers(self) -> Iterator[pa.Array]:
        """All numbers, ascending, as arrays of int64."""
        (count,) = self._take("Q")
        for _ in range(count):
            (key,) = self._take("I")
            for high, low in self._containers():
                yield pc.add(low.cast(pa.int64()), key << 32 | high << 16)
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes after the last bitmap")

    def _containers(self) -> Iterator[tuple[int, pa.Array]]:
        """For each container the upper 16 bits, and an array of the lower bits of its numbers."""
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
            self._bytes(4 * size)
        for at in range(size):
            values = keys[2 * at + 1] + 1
            if runs and runs[at // 8] >> at % 8 & 1:
                yield keys[2 * at], self._runs()
            elif values > _DENSE:
                bits = pa.Array.from_buffers(pa.bool_(), 1 << 16, [None, self._bytes(1 << 13)])
                yield keys[2 * at], pc.indices_nonzero(bits)
            else:
                yield (
                    keys[2 * at],
                    pa.Array.from_buffers(pa.uint16(), values, [None, self._bytes(2 * values)]),
                )

    def _runs(self) -> pa.Array:
        (count,) = self._take("H")
        pairs = self._take("HH" * count)
        marks = bytearray(1 << 16)
        for start, more in zip(pairs[::2], pairs[1::2], strict=True):
            if start + more > 0xFFFF:
                raise ValueError(f"a run of {more + 1} from {start}")
            marks[start : start + more + 1] = b"\x01" * (more + 1)
        return pc.indices_nonzero(_truths(marks))


def _truths(marks: bytearray) -> pa.Array:
    """Bytes of 0 and 1 as truth values."""
    return pa.Array.from_buffers(pa.uint8(), len(marks), [None, pa.py_buffer(bytes(marks))]).cast(pa.bool_())
