"""Compares two streams of rows, whatever their order, and finds the rows that differ.

    A ──▶ batches ──▶ (hash of the key, hash of the row) ──▶ 256 parts on disk ──┐
    B ──▶ batches ──▶ (hash of the key, hash of the row) ──▶ 256 parts on disk ──┴──▶ part by part: only in A,
                                                                                      only in B, changed
    A, B once more ──▶ the rows of the first differences, for people

Rows are compared by 64-bit hashes of their key and of the row, which do not depend on how a value is stored
(int32 or int64, dictionary or plain). So each row takes 16 bytes on disk, one of the 256 parts is in memory
at a time, and two different rows compare as equal with a probability of 2^-64. Without a key, the whole row
is the key: tables are then multisets.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coldframe._coldframe import hash_rows
from coldframe.arrow import pa
from coldframe.errors import SchemaError, install_hint, unsupported
from coldframe.widening import unified

_PARTS = 256
_HELD_BYTES = 64 << 20
"""The maximum number of bytes of hashes of one side in memory; if a side has more, all hashes go to disk."""

Batches = Callable[[Sequence[str]], Iterator[Any]]


@dataclass(frozen=True)
class Side:
    """One of the two tables."""

    name: str
    schema: Any
    batches: Batches
    """Returns the named columns as record batches; may be called more than once."""


@dataclass
class Comparison:
    """The differences."""

    rows: tuple[int, int]
    only_columns: tuple[list[str], list[str]] = ([], [])
    """Columns that only one side has. Only the common columns are compared."""
    only: tuple[int, int] = (0, 0)
    """For each side, the number of rows with a key that the other side lacks (without a key: with values that
    the other side lacks).
    """
    changed: int = 0
    """The number of keys that both sides have, with different rows."""
    examples: list[tuple[str, Any]] = field(default_factory=list)
    """A few of the rows that differ: `"A"` or `"B"`, and a record batch with one row."""

    @property
    def same(self) -> bool:
        """Whether both sides have the same columns and the same rows."""
        return not (any(self.only_columns) or any(self.only) or self.changed)


def compare(a: Side, b: Side, *, key: Sequence[str] = (), examples: int = 10) -> Comparison:
    """Compares two tables; `key` names the columns that identify a row."""
    names, only_columns = _columns(a.schema, b.schema)
    if missing := [name for name in key if name not in names]:
        raise SchemaError(f"the key {missing} is not a column of both tables; common columns: {names}")
    target = _target(a, b, names)
    with tempfile.TemporaryDirectory(prefix="coldframe-diff-") as folder:
        sides = [_hashed(side, target, key, os.path.join(folder, str(at))) for at, side in enumerate((a, b))]
        differences = _Differences(examples, keyed=bool(key))
        for part in range(_PARTS):
            differences.add(sides[0].part(part), sides[1].part(part))
    result = Comparison(
        (sides[0].rows, sides[1].rows),
        only_columns,
        (differences.only[0], differences.only[1]),
        differences.changed,
    )
    if differences.samples:
        for label, side in (("A", a), ("B", b)):
            wanted = {pair for which, pair in differences.samples if which == label}
            result.examples += [(label, row) for row in _rows(side, target, key, wanted)]
    return result


def _columns(a: Any, b: Any) -> tuple[list[str], tuple[list[str], list[str]]]:
    names = [name for name in a.names if name in b.names]
    only = ([name for name in a.names if name not in names], [name for name in b.names if name not in names])
    if not names:
        raise SchemaError(f"no column is in both: {a.names} and {b.names}")
    return names, only


def _target(a: Side, b: Side, names: Sequence[str]) -> Any:
    """The common columns, in types that hold the values of both sides. Rows are hashed in these types."""
    from coldframe.spark.types import plain_type

    fields = []
    for name in names:
        types = [side.schema.field(name).type for side in (a, b)]
        unit = "ns" if any("[ns" in str(kind) for kind in types) else "us"
        plain = [plain_type(kind, timestamp_unit=unit) for kind in types]
        sides = [(side.name, pa.schema([pa.field(name, t)])) for side, t in zip((a, b), plain, strict=True)]
        fields.append(pa.field(name, plain[0] if plain[0] == plain[1] else unified(sides).field(0).type))
    return pa.schema(fields)


def _hashes(batch: Any, target: Any, key: Sequence[str]) -> Any:
    """For each row two numbers: the hash of its key, and the hash of the row."""
    try:
        import numpy as np
    except ImportError as missing:
        raise unsupported(f"comparing tables without numpy; {install_hint('diff')}") from missing

    def hashes(names: Sequence[str]) -> Any:
        columns = pa.schema([target.field(name) for name in names])
        return np.frombuffer(hash_rows(batch.select(names), columns), dtype="<u8")

    pairs = np.empty((batch.num_rows, 2), dtype=np.uint64)
    pairs[:, 1] = hashes(target.names)
    pairs[:, 0] = hashes(key) if key else pairs[:, 1]
    return pairs


class _Hashed:
    """The hashes of one side, partitioned by key hash; on disk if there are many."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._held: list[list[Any]] = [[] for _ in range(_PARTS)]
        self._bytes = 0
        self.rows = 0

    def add(self, hashes: Any) -> None:
        import numpy as np

        self.rows += len(hashes)
        self._bytes += hashes.nbytes
        part = (hashes[:, 0] >> np.uint64(56)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        sorted_hashes, ends = hashes[order], np.searchsorted(part[order], np.arange(_PARTS + 1))
        for at in range(_PARTS):
            if ends[at] < ends[at + 1]:
                self._held[at].append(sorted_hashes[ends[at] : ends[at + 1]])
        if self._bytes > _HELD_BYTES:
            self._spill()

    def _spill(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        for at, held in enumerate(self._held):
            with open(self._path(at), "ab") as sink:
                for hashes in held:
                    sink.write(hashes.tobytes())
            held.clear()
        self._bytes = 0

    def part(self, at: int) -> Any:
        import numpy as np

        held = list(self._held[at])
        self._held[at].clear()
        if os.path.exists(self._path(at)):
            held.append(np.fromfile(self._path(at), dtype=np.uint64).reshape(-1, 2))
        return np.concatenate(held) if held else np.empty((0, 2), dtype=np.uint64)

    def _path(self, at: int) -> str:
        return os.path.join(self._folder, f"{at}.hashes")


def _hashed(side: Side, target: Any, key: Sequence[str], folder: str) -> _Hashed:
    hashed = _Hashed(folder)
    for batch in side.batches(target.names):
        hashed.add(_hashes(batch, target, key))
    return hashed


class _Differences:
    """The differences so far."""

    def __init__(self, examples: int, *, keyed: bool) -> None:
        self.only = [0, 0]
        self.changed = 0
        self.samples: list[tuple[str, tuple[int, int]]] = []
        self._examples = examples
        self._keyed = keyed

    def add(self, a: Any, b: Any) -> None:
        """Compares one part. Equal keys are in the same part on both sides."""
        import numpy as np

        if len(a) == len(b) == 0:
            return
        rows, surplus = _surplus(a, b)
        extra = [(rows[surplus > 0], surplus[surplus > 0]), (rows[surplus < 0], -surplus[surplus < 0])]
        both = np.empty(0, dtype=np.uint64)
        if self._keyed:
            both = np.union1d(
                np.intersect1d(extra[0][0][:, 0], b[:, 0]), np.intersect1d(extra[1][0][:, 0], a[:, 0])
            )
            self.changed += len(both)
        for which, (rows_of_side, counts) in enumerate(extra):
            self.only[which] += int(counts[~np.isin(rows_of_side[:, 0], both)].sum())
            label = "AB"[which]
            room = max(0, self._examples - sum(1 for at, _ in self.samples if at == label))
            self.samples += [(label, (int(key), int(row))) for key, row in rows_of_side[:room]]


def _surplus(a: Any, b: Any) -> tuple[Any, Any]:
    """The distinct rows of both sides, and how many more times the first side has each row."""
    import numpy as np

    rows = np.concatenate([a, b])
    side = np.concatenate([np.ones(len(a), dtype=np.int64), np.full(len(b), -1, dtype=np.int64)])
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    rows, side = rows[order], side[order]
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    return rows[starts], np.add.reduceat(side, starts)


def _rows(side: Side, target: Any, key: Sequence[str], wanted: set[tuple[int, int]]) -> Iterable[Any]:
    """For each requested pair (hash of the key, hash of the row), the first row of this side with these
    hashes.
    """
    wanted = set(wanted)
    for batch in side.batches(target.names) if wanted else ():
        hashes = _hashes(batch, target, key)
        for at, pair in enumerate(map(tuple, hashes.tolist())):
            if pair in wanted:
                wanted.discard(pair)
                yield batch.slice(at, 1)
        if not wanted:
            return
