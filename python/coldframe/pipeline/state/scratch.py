"""A run's data about its files, as rows on the driver's disk, so that memory does not grow with the number of
files.

    rows     (list, key) -> body        each `Rows` or `Ledger` has its own list; a body is marshalled

Lists of a few rows stay in memory, up to `FEW_BYTES` in all: most tables have a few files. SQLite keeps the
others in a database without a name: in memory while it is small, in a temporary file when it grows, gone with
the process. Nothing in it outlives the run or is shared; lasting data is in the journal.
Keys are texts in byte order; names that are not UTF-8 are preserved.
"""

from __future__ import annotations

import itertools
import marshal
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

CACHE_KIB = 32 << 10
"""The size of SQLite's page cache in memory."""
PAGE = 512
"""Rows that are written or read at once."""
FEW = 8
"""Maximum number of rows of a list that stays in memory."""
FEW_BYTES = 128 << 20
"""Maximum size of all lists in memory, by their keys and bodies."""

T = TypeVar("T")


class Scratch:
    """The lists of few rows, the database with the others, and their numbers."""

    def __init__(self) -> None:
        self._opened: sqlite3.Connection | None = None
        self._lists = itertools.count(1)
        self._few: dict[int, dict[bytes, bytes]] = {}
        self._few_bytes = 0
        self._many: set[int] = set()
        """The lists in the database."""
        # Rows not yet passed to SQLite.
        self._waiting: dict[tuple[int, bytes], bytes] = {}

    @property
    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            # One thread at a time may use it, not necessarily its creator.
            self._opened = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            for setting in ("journal_mode = off", "synchronous = off", f"cache_size = -{CACHE_KIB}"):
                self._opened.execute(f"pragma {setting}")
            self._opened.execute(
                "create table rows (list integer, key blob, body blob, primary key (list, key)) without rowid"
            )
            # The transaction is never committed: nothing could read the database after a crash.
            self._opened.execute("begin")
        return self._opened

    def new_list(self) -> int:
        """The number of a new, empty list."""
        return next(self._lists)

    def put(self, number: int, key: bytes, body: bytes) -> None:
        """Adds a row; replaces a row with the same key."""
        if number not in self._many:
            few = self._few.setdefault(number, {})
            self._few_bytes += len(key) + len(body) - _size(key, few)
            few[key] = body
            if len(few) <= FEW and self._few_bytes <= FEW_BYTES:
                return
            self._forget_few(number)
            self._many.add(number)
            self._waiting.update(((number, key), body) for key, body in few.items())
        self._waiting[number, key] = body
        if len(self._waiting) >= PAGE:
            self._settle()

    def get(self, number: int, key: bytes) -> bytes | None:
        """The body of a key."""
        if number not in self._many:
            return self._few.get(number, {}).get(key)
        waiting = self._waiting.get((number, key))
        if waiting is not None:
            return waiting
        row = self._database.execute(
            "select body from rows where list = ? and key = ?", (number, key)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def page(
        self, number: int, after: bytes | None, limit: int = PAGE, *, before: bytes | None = None
    ) -> list[tuple[bytes, bytes]]:
        """Keys and bodies after a key, or from the beginning; only those before another key, if given."""
        if number not in self._many:
            few = sorted(self._few.get(number, {}).items())
            return [
                (key, body)
                for key, body in few
                if (after is None or key > after) and (before is None or key < before)
            ][:limit]
        self._settle()
        how = ">" if after is not None else ">="
        end, ends = ("", ()) if before is None else ("and key < ?", (before,))
        return self._database.execute(
            f"select key, body from rows where list = ? and key {how} ? {end} order by key limit ?",
            (number, after or b"", *ends, limit),
        ).fetchall()

    def rows(self, number: int, prefix: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and bodies in key order: all, or those whose key begins with the prefix and is longer.

        Concurrent changes may or may not be seen.
        """
        after, before = prefix, None if prefix is None else _end_of(prefix)
        while page := self.page(number, after, before=before):
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def delete(self, number: int, key: bytes) -> None:
        """Removes a row, if it exists."""
        if number not in self._many:
            few = self._few.get(number, {})
            self._few_bytes -= _size(key, few)
            few.pop(key, None)
            return
        self._waiting.pop((number, key), None)
        self._database.execute("delete from rows where list = ? and key = ?", (number, key))

    def clear(self, number: int) -> None:
        """Removes all rows of a list."""
        self._forget_few(number)
        if number in self._many:
            self._settle()
            self._database.execute("delete from rows where list = ?", (number,))

    def has_rows(self, number: int) -> bool:
        """Whether a list has a row."""
        return bool(self.page(number, None, 1) if number in self._many else self._few.get(number))

    def count(self, number: int) -> int:
        """How many rows a list has."""
        if number not in self._many:
            return len(self._few.get(number, ()))
        self._settle()
        (count,) = self._database.execute("select count(*) from rows where list = ?", (number,)).fetchone()
        return int(count)

    def _forget_few(self, number: int) -> None:
        few = self._few.pop(number, {})
        self._few_bytes -= sum(_size(key, few) for key in few)

    def _settle(self) -> None:
        if self._waiting:
            rows = ((number, key, body) for (number, key), body in self._waiting.items())
            self._database.executemany("insert or replace into rows values (?, ?, ?)", rows)
            self._waiting = {}


def _size(key: bytes, rows: Mapping[bytes, bytes]) -> int:
    """The size of a row with its key; 0 if there is no such row."""
    return len(key) + len(rows[key]) if key in rows else 0


def _end_of(prefix: bytes) -> bytes | None:
    """The first key after all keys with a prefix; None if there is none."""
    start = prefix.rstrip(b"\xff")
    return start[:-1] + bytes([start[-1] + 1]) if start else None


def key_of(text: str) -> bytes:
    """A text as a key; also for file names that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def text_of(key: bytes) -> str:
    """The reverse of `key_of`."""
    return key.decode("utf-8", "surrogateescape")


class Rows(Generic[T]):
    """Objects with one key each, in key order: iterable, and with look-ups.

    Adding under an existing key replaces the old object. Changes during iteration are allowed.
    """

    def __init__(
        self,
        scratch: Scratch,
        key: Callable[[T], str],
        pack: Callable[[T], tuple[Any, ...]],
        unpack: Callable[[Any], T],
    ) -> None:
        """`pack` turns an object into a tuple of plain values, `unpack` turns it back."""
        self._scratch, self._number = scratch, scratch.new_list()
        self._key, self._pack, self._unpack = key, pack, unpack
        self._length: int | None = 0

    def another(self) -> Rows[T]:
        """An empty collection of the same kind."""
        return Rows(self._scratch, self._key, self._pack, self._unpack)

    def append(self, thing: T) -> None:
        """Adds an object; replaces an object with the same key."""
        self._scratch.put(self._number, key_of(self._key(thing)), marshal.dumps(self._pack(thing)))
        self._length = None

    def get(self, key: str) -> T | None:
        """The object with this key; None if there is none."""
        body = self._scratch.get(self._number, key_of(key))
        return None if body is None else self._unpack(marshal.loads(body))

    def discard(self, key: str) -> None:
        """Removes an object, if it exists."""
        self._scratch.delete(self._number, key_of(key))
        self._length = None

    def clear(self) -> None:
        """Removes everything."""
        self._scratch.clear(self._number)
        self._length = 0

    def __iter__(self) -> Iterator[T]:
        if self._length == 0:
            return
        for _, body in self._scratch.rows(self._number):
            yield self._unpack(marshal.loads(body))

    def __len__(self) -> int:
        if self._length is None:
            self._length = self._scratch.count(self._number)
        return self._length

    def __bool__(self) -> bool:
        return bool(self._length if self._length is not None else self._scratch.has_rows(self._number))

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return list(itertools.islice(self, place.start, place.stop, place.step))
        for thing in itertools.islice(self, place, None):
            return thing
        raise IndexError(place)


def names(scratch: Scratch) -> Rows[str]:
    """A collection of names."""
    return Rows(scratch, lambda name: name, lambda name: (name,), lambda row: str(row[0]))
