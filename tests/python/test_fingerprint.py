"""Fingerprints follow docs/migration-state.md, so that other programs can compute them."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from coldframe._coldframe import RawFingerprint

WORD = (1 << 64) - 1
NULL = 0xA0761D6478BD642F
NESTED = 0x632BE59BD9B4E019


def mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD
    return value ^ value >> 31


def whole(value: int) -> int:
    low, high = value & WORD, value >> 64 & WORD
    fits = -(1 << 63) <= value < 1 << 63
    return mix(low) if fits else mix(mix(low) ^ 3 * high & WORD)


def number(value: float) -> int:
    return mix(struct.unpack("<Q", struct.pack("<d", value))[0] if value == value else 0x7FF8 << 48)


def row(hashes: list[int]) -> int:
    state = 0xE7037ED1A0B428DB
    for value in hashes:
        state = (state ^ value) * 0x2545F4914F6CDD1D & WORD
        state = (state << 29 | state >> 35) & WORD
    return mix(state)


def checksum(hashes: list[int]) -> str:
    high = sum(mix(value ^ 0xD6E8FEB86659FD93) for value in hashes) & WORD
    return f"{high:016x}{sum(hashes) & WORD:016x}"


def listed(values: list[int]) -> int:
    state = mix(len(values) ^ NESTED)
    for value in values:
        state = mix(state ^ whole(value))
    return state


DAY = datetime.date(1970, 1, 1)


@pytest.mark.parametrize(
    ("kind", "values", "of"),
    [
        (pa.int32(), [0, -1, None, 2**31 - 1], whole),
        (pa.uint64(), [0, 2**63, None, 2**64 - 1], whole),
        (pa.bool_(), [True, False, None], whole),
        (pa.float64(), [0.5, -0.0, float("nan"), None], number),
        (pa.float32(), [1.5, float("inf")], number),
        (
            pa.decimal128(38, 2),
            [Decimal("1.25"), Decimal("-1e30"), None],
            lambda v: whole(int(v.scaleb(2))),
        ),
        (pa.date32(), [DAY, datetime.date(1969, 12, 31), None], lambda v: whole((v - DAY).days)),
        (pa.list_(pa.int64()), [[1, 2], [], None], listed),
        (pa.struct([("a", pa.int8())]), [{"a": 3}, None], lambda v: mix(NESTED ^ whole(v["a"]))),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],
)
def test_fingerprints_match_the_documentation(kind: Any, values: list[Any], of: Callable[[Any], int]) -> None:
    # More values than one batch of the loops, so that every loop runs.
    values *= 3_000
    fingerprint = RawFingerprint(pa.schema([("x", kind), ("n", pa.int64())]))
    numbers = list(range(len(values)))
    fingerprint.add(
        pa.record_batch([pa.array(values, kind), pa.array(numbers, pa.int64())], names=["x", "n"])
    )
    hashes = [NULL if value is None else of(value) for value in values]
    form = fingerprint.to_json()
    assert form["columns"]["x"]["checksum"] == checksum(hashes)
    assert form["row_checksum"] == checksum(
        [row([hashed, whole(n)]) for hashed, n in zip(hashes, numbers, strict=True)]
    )
