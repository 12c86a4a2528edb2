"""Reads the definitions of a metastore from a file, if its server does not run any more.

    metastore.db       its SQLite database
    metastore.sql      a dump of its database as text, of pg_dump, mysqldump or sqlite3; .gz too
    tables.hql         CREATE TABLE statements, as SHOW CREATE TABLE prints them

The file replaces thrift://host:9083 in addresses: `metastore.sql/sales.orders` is a table defined in the
file.
"""

from __future__ import annotations

import gzip
import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from coldframe.errors import NotFoundError, SchemaError, unsupported
from coldframe.hive.ddl import Statements, parse_statements
from coldframe.hive.ddl_tables import DdlTables
from coldframe.hive.reader import DefinitionReader
from coldframe.hive.sql_dump import SqlDump
from coldframe.hive.sql_tables import OF_TRANSACTIONS, TABLES, SqlTables, loaded
from coldframe.logs import step

_log = logging.getLogger(__name__)

_SQLITE = b"SQLite format 3\0"
_CUSTOM = b"PGDMP"
_KEPT = 2
"""The number of dumps that stay loaded: each pass over a table reads its partitions."""
_lock = threading.Lock()
_known: dict[tuple[str, int, int], sqlite3.Connection | Statements] = {}


def read_dump(path: str) -> DefinitionReader:
    """The definitions in a file; raises SchemaError if the file has no definitions, or is truncated."""
    try:
        about = os.stat(path)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: no such file") from error
    key = (os.path.realpath(path), about.st_size, about.st_mtime_ns)
    with _lock:
        if key not in _known:
            while len(_known) >= _KEPT:
                del _known[next(iter(_known))]
            with step(_log, logging.INFO, "loading the definitions in %s", path):
                _known[key] = _opened(path)
        content = _known[key]
    return DdlTables(path, content) if isinstance(content, Statements) else SqlTables(path, content)


def _opened(path: str) -> sqlite3.Connection | Statements:
    with open(path, "rb") as file:
        head = file.read(16)
    if head == _SQLITE:
        place = f"file:{os.path.abspath(path).replace('%', '%25').replace('?', '%3f').replace('#', '%23')}"
        return sqlite3.connect(f"{place}?mode=ro", uri=True, check_same_thread=False)
    if head.startswith(_CUSTOM):
        raise unsupported(
            f"{path}: a dump in pg_dump's custom format; `pg_restore -f out.sql` converts it to text"
        )
    is_packed = head.startswith(b"\x1f\x8b")
    dump = SqlDump(path, _lines(path, is_packed=is_packed), TABLES | OF_TRANSACTIONS)
    try:
        database = loaded(dump)
        if not dump.seen:
            return _statements(path, is_packed=is_packed)
    except (OSError, EOFError, zlib.error) as error:
        raise SchemaError(f"{path}: {error}") from error
    missing = sorted(TABLES.keys() - dump.seen)
    if missing:
        raise SchemaError(f"{path}: not the dump of a Hive metastore: it has no table {missing[0]}")
    return database


def _statements(path: str, *, is_packed: bool) -> Statements:
    text = "".join(_lines(path, is_packed=is_packed))
    if "\0" in text:
        raise SchemaError(f"{path}: neither a dump of a Hive metastore nor Hive statements")
    return parse_statements(text, path)


def _lines(path: str, *, is_packed: bool) -> Iterator[str]:
    opener: Callable[..., IO[str]] = gzip.open if is_packed else open
    with opener(path, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield from file
