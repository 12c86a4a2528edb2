"""A table's fingerprint, computed alike from what was read and from what was written.

The fingerprint does not depend on the order of rows nor on where batches are cut: it holds, for each column,
rows, nulls, smallest and largest value and the sum modulo 2^64 of a 64-bit hash of each value, and for the
table the sum of a hash of each row, which ties the columns of a row together. A value is hashed in a
canonical form, so that the same value has the same hash as dictionary entry or plain, as int32 or int64, as
text or large text, as nanoseconds or microseconds. Thereby the source is fingerprinted as decoded, before it
is made into the target's types, and that step is verified too.

All work is on whole columns (numpy on Arrow's buffers).
"""

from __future__ import annotations

import decimal
import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import UnsupportedError
from coldframe.spark.types import plain_list, union_codes, union_offsets

Hashes: TypeAlias = npt.NDArray[np.uint64]
Extreme: TypeAlias = "int | float | str | bool | decimal.Decimal | None"

MODULUS = 1 << 64
LONG_VALUE = 512
"""Bytes above which one value is hashed on its own."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xA0761D6478BD642F)
_SEED = np.uint64(0xE7037ED1A0B428DB)
_CANONICAL_NAN = np.uint64(0x7FF8000000000000)


@dataclass
class ColumnCheck:
    """What is known of one column."""

    nulls: int = 0
    smallest: Extreme = None
    largest: Extreme = None
    checksum: int = 0

    def to_json(self) -> dict[str, Any]:
        """For the manifest. 64-bit sums are text: JSON readers round big numbers."""
        return {
            "nulls": self.nulls,
            "min": _json(self.smallest),
            "max": _json(self.largest),
            "checksum": f"{self.checksum:016x}",
        }


@dataclass
class Checks:
    """The fingerprint of a stream of batches."""

    rows: int = 0
    row_checksum: int = 0
    columns: dict[str, ColumnCheck] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch, *, unit: str = "us") -> None:
        """Adds the rows of a batch. `unit`: that of the timestamps that are written."""
        self.rows += batch.num_rows
        if batch.num_rows == 0:
            for name in batch.schema.names:
                self.columns.setdefault(name, ColumnCheck())
            return
        rows = np.full(batch.num_rows, _SEED)
        for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            check = self.columns.setdefault(name, ColumnCheck())
            hashes = hash_values(column, unit=unit)
            check.nulls += _null_count(column)
            check.checksum = (check.checksum + _sum(hashes)) % MODULUS
            smallest, largest = extremes(column, unit=unit)
            check.smallest = _pick(min, check.smallest, smallest)
            check.largest = _pick(max, check.largest, largest)
            # The column's place goes into the row's hash: swapped columns must not cancel out.
            rows ^= mix(hashes + np.uint64((place * 0x632BE59BD9B4E019) % MODULUS))
            rows *= np.uint64(0x2545F4914F6CDD1D)
        self.row_checksum = (self.row_checksum + _sum(mix(rows))) % MODULUS

    def differences(self, other: Checks) -> list[str]:
        """What the written fingerprint `other` has differently, in words; empty where the two agree."""
        found: list[str] = []
        if self.rows != other.rows:
            found.append(f"rows: read {self.rows}, written {other.rows}")
        if list(self.columns) != list(other.columns):
            found.append(f"columns: read {list(self.columns)}, written {list(other.columns)}")
        for name, mine in self.columns.items():
            theirs = other.columns.get(name)
            if theirs is None:
                continue
            for what in ("nulls", "smallest", "largest", "checksum"):
                a, b = getattr(mine, what), getattr(theirs, what)
                if a != b:
                    found.append(f"column {name}: {what} read {a!r}, written {b!r}")
        if not found and self.row_checksum != other.row_checksum:
            found.append(f"row checksum: read {self.row_checksum:016x}, written {other.row_checksum:016x}")
        return found

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "rows": self.rows,
            "row_checksum": f"{self.row_checksum:016x}",
            "columns": {name: check.to_json() for name, check in self.columns.items()},
        }


def _json(value: Extreme) -> int | float | str | bool | None:
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value


def checks_of(batches: Iterable[pa.RecordBatch], *, unit: str = "us") -> Checks:
    """The fingerprint of some batches."""
    checks = Checks()
    for batch in batches:
        checks.add(batch, unit=unit)
    return checks


def mix(values: Hashes) -> Hashes:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output; a new array."""
    mixed: Hashes = values + _GOLDEN
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _sum(hashes: Hashes) -> int:
    return int(hashes.sum(dtype=np.uint64))


def _pick(choose: Callable[..., Any], a: Extreme, b: Extreme) -> Extreme:
    if a is None:
        return b
    if b is None:
        return a
    return choose(a, b)  # type: ignore[no-any-return]


def _null_count(array: pa.Array) -> int:
    t = pa.types
    if t.is_dictionary(array.type) or t.is_run_end_encoded(array.type):
        return int(pc.sum(pc.is_null(_unwrapped(array))).as_py() or 0)
    return int(array.null_count)


def hash_values(array: pa.Array, *, unit: str = "us") -> Hashes:
    """One 64-bit hash for each value, nulls included."""
    array = _unwrapped(array)
    t = pa.types
    if t.is_null(array.type):
        return np.full(len(array), _NULL)
    if t.is_union(array.type):
        return _hash_union(array, unit)
    hashes = _hash_valid(array, unit)
    if array.null_count:
        hashes[pc.is_null(array).to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _unwrapped(array: pa.Array) -> pa.Array:
    """The plain array behind extension types, dictionaries and runs."""
    if isinstance(array, pa.ExtensionArray):
        return _unwrapped(array.storage)
    if pa.types.is_dictionary(array.type):
        return _unwrapped(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return _unwrapped(pc.run_end_decode(array))
    return array


def _hash_valid(array: pa.Array, unit: str) -> Hashes:
    """Hashes of an array whose nulls the caller overwrites."""
    t = pa.types
    kind = array.type
    if t.is_struct(kind):
        return _hash_struct(array, unit)
    if t.is_map(kind):
        keys = hash_values(_inside(array, array.keys), unit=unit)
        items = hash_values(_inside(array, array.items), unit=unit)
        return _hash_runs(array, mix(keys) ^ mix(items + _GOLDEN))
    if t.is_list_view(kind) or t.is_large_list_view(kind) or t.is_fixed_size_list(kind):
        return _hash_valid(plain_list(array), unit)
    if t.is_list(kind) or t.is_large_list(kind):
        return _hash_runs(array, hash_values(_inside(array, array.values), unit=unit))
    if t.is_string_view(kind):
        return _hash_bytes(pc.cast(array, pa.large_string()))
    if t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return _hash_bytes(pc.cast(array, pa.large_binary()))
    if t.is_string(kind) or t.is_binary(kind) or t.is_large_string(kind) or t.is_large_binary(kind):
        return _hash_bytes(array)
    if t.is_decimal(kind):
        return _hash_decimal(array)
    if t.is_uint64(kind):
        # In Spark a decimal, for want of unsigned numbers.
        return _hash_decimal(pc.cast(array, pa.decimal128(20, 0)))
    return mix(_words(array, unit))


def _words(array: pa.Array, unit: str) -> Hashes:
    """Fixed-width values as one 64-bit word each; what stands at nulls does not matter."""
    t = pa.types
    kind = array.type
    if t.is_boolean(kind):
        return _numbers(pc.cast(array, pa.int8())).astype(np.uint64)
    if t.is_floating(kind):
        return _float_words(_numbers(array).astype(np.float64))
    if t.is_integer(kind):
        return _numbers(array).astype(np.int64).view(np.uint64)
    if t.is_date32(kind):
        return _numbers(array.view(pa.int32())).astype(np.int64).view(np.uint64)
    if t.is_date64(kind):
        return (_numbers(array.view(pa.int64())) // 86_400_000).view(np.uint64)
    if t.is_timestamp(kind):
        return _in_unit(_numbers(array.view(pa.int64())), kind.unit, unit).view(np.uint64)
    if t.is_time(kind):
        raw = array.view(pa.int32()) if t.is_time32(kind) else array.view(pa.int64())
        return _in_unit(_numbers(raw).astype(np.int64), kind.unit, "ns").view(np.uint64)
    if t.is_duration(kind):
        return _in_unit(_numbers(array.view(pa.int64())), kind.unit, "us").view(np.uint64)
    raise UnsupportedError(f"a checksum over Arrow's {kind}")


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values of a fixed-width array without a copy, nulls as whatever bytes stand there."""
    if array.null_count:
        buffers = array.buffers()
        array = pa.Array.from_buffers(array.type, len(array), [None, *buffers[1:]], 0, array.offset)
    numbers: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _in_unit(values: npt.NDArray[np.int64], found: str, wanted: str) -> npt.NDArray[np.int64]:
    have, want = _PER_SECOND[found], _PER_SECOND[wanted]
    scaled: npt.NDArray[np.int64] = (
        values // np.int64(have // want) if have > want else values * np.int64(want // have)
    )
    return scaled


def _float_words(values: npt.NDArray[np.float64]) -> Hashes:
    words: Hashes = np.ascontiguousarray(values).view(np.uint64).copy()
    words[np.isnan(values)] = _CANONICAL_NAN
    return words


def _hash_decimal(array: pa.Array) -> Hashes:
    """A decimal by its unscaled number; one that fits 64 bits is hashed as the integer that it is."""
    kind: Any = array.type
    if kind.scale < 0:
        array = pc.cast(array, pa.decimal128(min(38, kind.precision - kind.scale), 0))
        kind = array.type
    width = kind.bit_width // 8
    if width < 8:
        return _hash_decimal(pc.cast(array, pa.decimal128(kind.precision, kind.scale)))
    words = width // 8
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype=np.uint64)
    start = array.offset * words
    raw = np.frombuffer(data, dtype="<u8")[start : start + len(array) * words].reshape(len(array), words)
    hashes = mix(raw[:, 0])
    # Upper words only count where they are no mere sign extension of the ones below.
    for place in range(1, words):
        wide = raw[:, place] != (raw[:, place - 1].view(np.int64) >> 63).view(np.uint64)
        hashes = np.where(wide, mix(hashes ^ (raw[:, place] * np.uint64(2 * place + 1))), hashes)
    return hashes


def _inside(array: Any, values: pa.Array) -> pa.Array:
    """The part of a list's or map's values that a possibly sliced array uses."""
    if len(array) == 0:
        return values.slice(0, 0)
    start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return values.slice(start, stop - start)


def _hash_runs(array: Any, hashes: Hashes) -> Hashes:
    """Lists from the hashes of all their elements: elements count by their place in the list."""
    if len(array) == 0:
        return np.zeros(0, dtype=np.uint64)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = offsets - offsets[0]
    lengths = np.diff(offsets)
    places = np.arange(len(hashes), dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    weighed = mix(hashes ^ ((places.astype(np.uint64) + np.uint64(1)) * _GOLDEN))
    running = np.zeros(len(hashes) + 1, dtype=np.uint64)
    np.cumsum(weighed, out=running[1:])
    return mix((running[offsets[1:]] - running[offsets[:-1]]) ^ mix(lengths.astype(np.uint64)))


def _hash_struct(array: pa.Array, unit: str) -> Hashes:
    children = [hash_values(array.field(i), unit=unit) for i in range(array.type.num_fields)]
    return _combine(len(array), children)


def _combine(rows: int, children: list[Hashes]) -> Hashes:
    hashes = np.full(rows, _SEED)
    for place, child in enumerate(children):
        hashes = mix(hashes ^ mix(child + np.uint64(place + 1)))
    return hashes


def _hash_union(array: Any, unit: str) -> Hashes:
    """A union as the struct (tag, f0, f1, ..) that stands for it where unions are unknown."""
    kind = array.type
    codes = union_codes(array).to_numpy(zero_copy_only=False)
    tags = np.zeros(len(array), dtype=np.int64)
    branches: list[Hashes] = []
    for i, code in enumerate(kind.type_codes):
        chosen = codes == code
        tags[chosen] = i
        child = array.field(i)
        hashes = np.full(len(array), _NULL)
        if kind.mode == "sparse":
            hashes[chosen] = hash_values(child, unit=unit)[chosen]
        elif chosen.any():
            places = union_offsets(array).to_numpy(zero_copy_only=False)[chosen]
            hashes[chosen] = hash_values(child.take(pa.array(places)), unit=unit)
        branches.append(hashes)
    return _combine(len(array), [mix(tags.view(np.uint64)), *branches])


def _hash_bytes(array: pa.Array) -> Hashes:
    """Texts and blobs, eight bytes a step for all values at once; the few long ones go to blake2b."""
    count = len(array)
    kind = array.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, offset_buffer, data = array.buffers()
    if count == 0 or offset_buffer is None:
        return np.zeros(count, dtype=np.uint64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64 if wide else np.int32)
    offsets = offsets[array.offset : array.offset + count + 1].astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    if array.null_count:
        # A null may have bytes of its own: they are none of the value's.
        lengths = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), 0, lengths)
    hashes = mix(lengths.astype(np.uint64) ^ _SEED)
    longest = int(lengths.max(initial=0))
    if longest == 0 or data is None:
        return hashes
    first, last = int(offsets[0]), int(offsets[-1])
    # Eight spare bytes, so that the last word of the last value may be loaded whole.
    text = np.zeros(last - first + 8, dtype=np.uint8)
    text[: last - first] = np.frombuffer(data, dtype=np.uint8)[first:last]
    starts = starts - first
    _fold_words(hashes, text, starts, np.where(lengths > LONG_VALUE, 0, lengths))
    if longest > LONG_VALUE:
        for row in np.flatnonzero(lengths > LONG_VALUE):
            value = text[starts[row] : starts[row] + lengths[row]]
            digest = hashlib.blake2b(value.tobytes(), digest_size=8).digest()
            hashes[row] = np.uint64(int.from_bytes(digest, "little"))
    return hashes


def _fold_words(hashes: Hashes, text: npt.NDArray[np.uint8], starts: Any, lengths: Any) -> None:
    words: Hashes = np.ndarray(shape=(len(text) - 7,), dtype=np.uint64, buffer=text, strides=(1,))
    rows = np.flatnonzero(lengths > 0)
    done = 0
    while len(rows):
        word = words[starts[rows] + done]
        spare = 8 - np.minimum(lengths[rows] - done, 8)
        word &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (spare * 8).astype(np.uint64)
        hashes[rows] = mix(hashes[rows] ^ word)
        done += 8
        rows = rows[lengths[rows] > done]


def extremes(array: pa.Array, *, unit: str = "us") -> tuple[Extreme, Extreme]:
    """Smallest and largest value in a form that can be compared; nothing for nested types.

    Dates are days, times are counted in their unit since 1970; of long texts and blobs (as hex) the beginning
    counts.
    """
    array = _unwrapped(array)
    t = pa.types
    kind = array.type
    if t.is_nested(kind) or t.is_null(kind) or len(array) == array.null_count:
        return None, None
    if t.is_temporal(kind):
        words = _words(array, unit).view(np.int64)
        if array.null_count:
            words = words[pc.is_valid(array).to_numpy(zero_copy_only=False)]
        return int(words.min()), int(words.max())
    if t.is_string_view(kind):
        array = pc.cast(array, pa.large_string())
    elif t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        array = pc.cast(array, pa.large_binary())
    elif t.is_float16(kind):
        array = pc.cast(array, pa.float32())
    elif t.is_decimal32(kind) or t.is_decimal64(kind):
        array = pc.cast(array, pa.decimal128(kind.precision, kind.scale))
    ends = pc.min_max(array)
    return _extreme(ends["min"].as_py()), _extreme(ends["max"].as_py())


def _extreme(value: Any) -> Extreme:
    if isinstance(value, bytes):
        return value[:64].hex()
    if isinstance(value, str):
        return value[:64]
    if isinstance(value, float):
        # NaN never is an extreme; -0.0 and 0.0 are equal, and which of them comes first is chance.
        return None if math.isnan(value) else value + 0.0
    if isinstance(value, bool | int | decimal.Decimal) or value is None:
        return value
    raise UnsupportedError(f"smallest and largest of {type(value).__name__}")
