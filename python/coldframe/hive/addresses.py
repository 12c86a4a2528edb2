"""Addresses of metastores and of their tables.

thrift://host:9083                     the metastore
thrift://a:9083,thrift://b:9083        the first of these that answers
thrift://hive@host:9083                a metastore with Kerberos, whose service is `hive`
thrift://host:9083/sales               a database
thrift://host:9083/sales.orders        a table; * and ? match any letters
metastore.sql/sales.orders             a table in a dump of a metastore: see `dumps`
"""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from typing import NamedTuple

PORT = 9083
_SCHEME = "thrift://"


class Address(NamedTuple):
    """Where a metastore listens."""

    host: str
    port: int
    service: str = ""
    """The name of the metastore's Kerberos service; empty without Kerberos."""

    def __str__(self) -> str:
        service = f"{self.service}@" if self.service else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEME}{service}{host}:{self.port}"


@dataclass(frozen=True)
class Selected:
    """A metastore, and a selection of its tables."""

    uris: str
    database: str = "*"
    """A name, or a pattern of names."""
    table: str = "*"
    """As `database`."""

    @staticmethod
    def of(uri: str) -> Selected:
        """Parses an address; raises ValueError if it is malformed."""
        file = dump_file(uri)
        if file is not None:
            database, dot, table = uri[len(file) :].strip("/").partition(".")
            if dot and not (database and table):
                raise ValueError(f"{uri!r}: expected /database or /database.table after the file")
            return Selected(file, database.lower() or "*", table.lower() or "*")
        *others, last = uri.split(",")
        host, slash, name = last.strip().removeprefix(_SCHEME).partition("/")
        uris = ",".join([*others, f"{_SCHEME}{host}"])
        if not last.strip().startswith(_SCHEME) or not addresses(uris):
            raise ValueError(f"metastore {uri!r}: expected {_SCHEME}host:{PORT}")
        database, dot, table = name.strip("/").partition(".")
        if (slash and "/" in name.strip("/")) or (dot and not (database and table)):
            raise ValueError(f"metastore {uri!r}: expected /database or /database.table after the host")
        # Hive keeps names in lower case.
        return Selected(uris, database.lower() or "*", table.lower() or "*")

    @property
    def is_single(self) -> bool:
        """Whether the address names one table."""
        return not any(letter in self.database + self.table for letter in "*?[")

    def takes_database(self, name: str) -> bool:
        """Whether the address covers tables of this database."""
        return fnmatch.fnmatchcase(name.lower(), self.database)

    def takes(self, database: str, table: str) -> bool:
        """Whether the address covers a table."""
        return self.takes_database(database) and fnmatch.fnmatchcase(table.lower(), self.table)


def is_metastore(source: object, *, or_file: bool = False) -> bool:
    """Whether a source is a metastore, or a table in a dump, and not a path of data files. `or_file`: take a
    plain file as a dump, too.
    """
    if not isinstance(source, str | os.PathLike):
        return False
    text = os.fsdecode(source)
    file = None if "://" in text else dump_file(text)
    return text.startswith(_SCHEME) or (file is not None and (or_file or file != text))


def dump_file(source: str) -> str | None:
    """The file of an address `FILE[/database[.table]]`; None if there is no such file.

    This is unambiguous, as nothing lies below a file.
    """
    whole = source.rstrip("/")
    for path in (whole, os.path.dirname(whole)):
        if path and os.path.isfile(path):
            return path
    return None


def addresses(uris: str) -> list[Address]:
    """The addresses in `thrift://host:port,..`; raises ValueError if malformed."""
    from urllib.parse import urlsplit

    parsed: list[Address] = []
    for uri in uris.split(","):
        parts = urlsplit(uri.strip())
        try:
            host, port = parts.hostname, parts.port
        except ValueError as reason:
            raise ValueError(f"metastore {uri!r}: {reason}") from reason
        if parts.scheme != "thrift" or not host or parts.path.strip("/") or parts.password is not None:
            raise ValueError(f"metastore {uri!r}: expected {_SCHEME}host:{PORT}")
        parsed.append(Address(host, port or PORT, parts.username or ""))
    return parsed
