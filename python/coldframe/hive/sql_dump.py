"""Reads the rows of some tables from the text dump of a database, in the order of the text.

    pg_dump      COPY public."TBLS" ("TBL_ID", "DB_ID") FROM stdin;     lines until \\.
    mysqldump    CREATE TABLE `TBLS` (`TBL_ID` bigint ..);              INSERT INTO `TBLS` VALUES (1,2),(3,4);
    sqlite3      CREATE TABLE TBLS (..); INSERT INTO TBLS VALUES(1,2);  a statement may span lines

A truncated dump is refused: it would hide tables. So is a dump of several metastores (mysqldump
--all-databases): each counts its tables from 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from coldframe.errors import SchemaError

Row = tuple[str, dict[str, str | None]]
"""A table, and its values by column."""

_NAME = r'(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|[A-Za-z_][\w$]*)'
_TABLE = rf"(?:{_NAME}\s*\.\s*)*({_NAME})"
_COPY = re.compile(rf"COPY\s+{_TABLE}\s*\(([^)]*)\)\s+FROM\s+stdin", re.IGNORECASE)
_INSERT = re.compile(
    rf"(?:INSERT(?:\s+IGNORE)?|REPLACE)\s+INTO\s+{_TABLE}\s*(?:\(([^)]*)\)\s*)?VALUES\s*", re.IGNORECASE
)
_CREATE = re.compile(rf"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_TABLE}\s*\(", re.IGNORECASE)
_STANDARD = r"'(?:[^']|'')*'"
_BACKSLASH = r"'(?:[^'\\]|\\.|'')*'"
_ESCAPES = {"0": "\0", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "Z": "\x1a"}
_ESCAPED = re.compile(r"\\(.)|''", re.DOTALL)
_COPIED = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_NO_COLUMN = re.compile(
    r"(PRIMARY|UNIQUE|KEY|INDEX|CONSTRAINT|FOREIGN|CHECK|FULLTEXT|SPATIAL)\b", re.IGNORECASE
)
_DATABASE = re.compile(rf"(?:USE\s+({_NAME})\s*;|\\connect\s+(?:-\S+\s+)*({_NAME}))", re.IGNORECASE)
"""The database that the following statements are about."""
_ENCODING = re.compile(r"\bSET (?:client_encoding = |NAMES )'?(\w+)")
_HEAD_LINES = 40
"""The number of lines that may name the program and the encoding of a dump."""
_ENDS = {
    "-- PostgreSQL database dump": "-- PostgreSQL database dump complete",
    "-- MySQL dump": "-- Dump completed",
    "-- MariaDB dump": "-- Dump completed",
    # SQLite, which ends the dump of a damaged database with ROLLBACK; and phpMyAdmin.
    "BEGIN TRANSACTION;": "COMMIT;",
    "START TRANSACTION;": "COMMIT;",
}
"""The last line of a complete dump, by the line at its beginning that shows its writer."""


@dataclass
class SqlDump:
    """A dump, which can be read once."""

    path: str
    lines: Iterable[str]
    wanted: Collection[str]
    """The tables to read, in upper case."""
    seen: set[str] = field(default_factory=set)
    """The wanted tables that the dump has, with or without rows."""
    _columns: dict[str, list[str]] = field(default_factory=dict)
    _database: str = ""
    _databases: dict[str, str] = field(default_factory=dict)
    """The databases of the tables that were seen."""
    _has_backslashes: bool = False
    _end: str = ""
    _number: int = 0

    def rows(self) -> Iterator[Row]:
        """All rows of the tables; raises SchemaError if the dump is malformed or truncated."""
        lines = self._numbered()
        has_end = False
        for line in lines:
            if self._number <= _HEAD_LINES:
                self._learn(line)
            has_end = has_end or bool(self._end and line.startswith(self._end))
            if (database := _DATABASE.match(line)) is not None:
                self._database = _name(database[1] or database[2]).lower()
            elif (copied := _COPY.match(line)) is not None:
                yield from self._copied(_name(copied[1]), _names(copied[2]), lines)
            elif (made := _CREATE.match(line)) is not None:
                self._learn_quotes(made[1])
                statement = self._statement(line, lines)
                self._declare(_name(made[1]), statement[made.end() :])
            elif (insert := _INSERT.match(line)) is not None:
                self._learn_quotes(insert[1])
                statement = self._statement(line, lines)
                yield from self._inserted(insert, statement)
        if self._end and not has_end:
            raise SchemaError(f"{self.path}: expected {self._end!r} near its end: the dump was cut short")

    def _numbered(self) -> Iterator[str]:
        for line in self.lines:
            self._number += 1
            yield line

    def _learn(self, line: str) -> None:
        for start, end in _ENDS.items():
            if line.startswith(start) and not line.startswith(end):
                self._end = self._end or end
                self._has_backslashes = self._has_backslashes or end == "-- Dump completed"

        encoding = _ENCODING.search(line)
        if encoding is not None and not encoding[1].lower().startswith("utf"):
            raise SchemaError(f"{self.path}: a dump in {encoding[1]}: dump in UTF-8 instead")

    def _learn_quotes(self, name: str) -> None:
        """Backticks show that the dump is MySQL's, in whose texts backslashes escape. Some tools write no
        comment that names MySQL.
        """
        self._has_backslashes = self._has_backslashes or name.startswith("`")

    def _takes(self, table: str) -> bool:
        if table not in self.wanted:
            return False
        self.seen.add(table)
        before = self._databases.setdefault(table, self._database)
        if before != self._database:
            raise SchemaError(
                f"{self.path}: line {self._number}: a dump of several databases with a metastore's tables, "
                f"{before or 'one without a name'} and {self._database}: dump the metastore's database alone"
            )
        return True

    def _copied(self, table: str, columns: list[str], lines: Iterator[str]) -> Iterator[Row]:
        takes = self._takes(table)
        for line in lines:
            text = line.rstrip("\n").rstrip("\r")
            if text == "\\.":
                return
            if takes:
                values = [_copied_value(value) for value in text.split("\t")]
                yield table, self._row(table, columns, values)
        raise SchemaError(f"{self.path}: the rows of {table} have no end: the dump was cut short")

    def _statement(self, first: str, lines: Iterator[str]) -> str:
        """A statement, from its first line to its semicolon."""
        parts, is_open, at = [first], self._leaves_open(first, is_open=False), self._number
        while is_open or not parts[-1].rstrip().endswith(";"):
            line = next(lines, None)
            if line is None:
                raise SchemaError(f"{self.path}: line {at}: a statement has no end: the dump was cut short")
            is_open = self._leaves_open(line, is_open=is_open)
            parts.append(line)
        return "".join(parts)

    def _leaves_open(self, line: str, *, is_open: bool) -> bool:
        """Whether a quoted text continues on the next line."""
        if self._has_backslashes and "\\" in line:
            line = re.sub(r"\\.", "", line, flags=re.DOTALL)
        return is_open ^ bool(line.count("'") % 2)

    def _declare(self, table: str, body: str) -> None:
        """Records the columns of a table in order."""
        known = table in self._columns
        if not self._takes(table):
            return
        if known:
            raise SchemaError(
                f"{self.path}: line {self._number}: {table} is created twice: a dump of several metastores"
            )
        if self._columns.get(table) is None:
            parts = (part.strip() for part in _apart(body))
            names = (re.match(_NAME, part) for part in parts if not _NO_COLUMN.match(part))
            self._columns[table] = [_name(name[0]) for name in names if name is not None]

    def _inserted(self, insert: re.Match[str], statement: str) -> Iterator[Row]:
        table = _name(insert[1])
        if not self._takes(table):
            return
        columns = _names(insert[2]) if insert[2] else self._columns.get(table)
        if columns is None:
            raise SchemaError(
                f"{self.path}: line {self._number}: the columns of {table} are not declared before its rows"
            )
        for values in self._values(statement[insert.end() :], table):
            yield table, self._row(table, columns, values)

    def _values(self, text: str, table: str) -> Iterator[list[str | None]]:
        """The rows of `(1,'a'),(2,'b');`."""
        string = _BACKSLASH if self._has_backslashes else _STANDARD
        token = re.compile(rf"\s*(?:([(),;])|([A-Za-z_]*){string}|[^\s(),;']+)\s*", re.DOTALL)
        row: list[str | None] = []
        at = depth = 0
        while at < len(text):
            match = token.match(text, at)
            if match is None or (match[1] == "(" and depth) or (match[1] == ")" and not depth):
                shown = text[at : at + 40]
                where = f"{self.path}: line {self._number}: {table}"
                raise SchemaError(f"{where}: expected a value, found {shown!r}")
            at = match.end()
            if match[1] == "(":
                depth, row = 1, []
            elif match[1] == ")":
                depth = 0
                yield row
            elif match[1] is None and depth:
                row.append(self._value(match[0].strip()))

    def _value(self, text: str) -> str | None:
        if text.upper() == "NULL":
            return None
        if text[:2] in ("0x", "0X") and len(text) % 2 == 0:
            return bytes.fromhex(text[2:]).decode("utf-8", "surrogateescape")
        if "'" not in text:
            return text
        before, _, inside = text.partition("'")
        if self._has_backslashes or before.upper() == "E":
            return _ESCAPED.sub(
                lambda escape: _ESCAPES.get(escape[1], escape[1]) if escape[1] else "'", inside[:-1]
            )
        return inside[:-1].replace("''", "'")

    def _row(self, table: str, columns: list[str], values: list[str | None]) -> dict[str, str | None]:
        if len(columns) != len(values):
            text = f"{table} has {len(columns)} columns, and a row of {len(values)} values"
            raise SchemaError(f"{self.path}: line {self._number}: {text}")
        return dict(zip(columns, values, strict=True))


def _name(text: str) -> str:
    """A name without quotes, in upper case."""
    quote = text[0]
    if quote in '"`':
        text = text[1:-1].replace(quote * 2, quote)
    return text.upper()


def _names(text: str) -> list[str]:
    return [_name(name) for name in re.findall(_NAME, text)]


def _copied_value(text: str) -> str | None:
    return None if text == "\\N" else _COPIED.sub(_copied_letter, text)


def _copied_letter(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] == "x" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPES.get(escape, escape)


def _apart(body: str) -> Iterator[str]:
    """The parts between commas of `a int, primary key (a, b))`, up to the last bracket."""
    depth, start = 0, 0
    for match in re.finditer(r"'(?:[^'\\]|\\.|'')*'|[(),]", body, re.DOTALL):
        letter = match[0]
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        if depth < 0 or (letter == "," and depth == 0):
            yield body[start : match.start()]
            start = match.end()
        if depth < 0:
            return
