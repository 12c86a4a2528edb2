"""Parses definitions from Hive's statements: the output of SHOW CREATE TABLE, and DDL scripts.

    USE sales;
    CREATE EXTERNAL TABLE `orders`(`id` bigint COMMENT 'the id') PARTITIONED BY (`dt` date)
      ROW FORMAT SERDE '..' STORED AS INPUTFORMAT '..' OUTPUTFORMAT '..' LOCATION 'hdfs://nn/wh/orders';
    ALTER TABLE orders ADD PARTITION (dt = '2014-01-01') LOCATION 'hdfs://nn/elsewhere/x9';

Semicolons between statements are optional, and statements may be framed as beeline prints them. Types stay
texts; `parse_columns` parses them. A statement that this parser does not know leaves out its own table, if it
could change the definition; statements that change no definition (SET, MSCK, INSERT) are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coldframe._coldframe import folder_of
from coldframe.errors import SchemaError
from coldframe.hive.ddl_tokens import Token, tokens
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage

_HIVE = "org.apache.hadoop.hive."
_LAZY = f"{_HIVE}serde2.lazy.LazySimpleSerDe"
_ORC = f"{_HIVE}ql.io.orc.Orc"
_PARQUET = f"{_HIVE}ql.io.parquet."
_AVRO = f"{_HIVE}ql.io.avro.Avro"
_STORED: Mapping[str, tuple[str, str, str | None]] = {
    # The SerDe of RCFile tables is a setting of the server.
    "RCFILE": (f"{_HIVE}ql.io.RCFileInputFormat", f"{_HIVE}ql.io.RCFileOutputFormat", None),
    "ORC": (f"{_ORC}InputFormat", f"{_ORC}OutputFormat", f"{_ORC}Serde"),
    "TEXTFILE": (
        "org.apache.hadoop.mapred.TextInputFormat",
        f"{_HIVE}ql.io.HiveIgnoreKeyTextOutputFormat",
        _LAZY,
    ),
    "SEQUENCEFILE": (
        "org.apache.hadoop.mapred.SequenceFileInputFormat",
        f"{_HIVE}ql.io.HiveSequenceFileOutputFormat",
        _LAZY,
    ),
    "PARQUET": (
        f"{_PARQUET}MapredParquetInputFormat",
        f"{_PARQUET}MapredParquetOutputFormat",
        f"{_PARQUET}serde.ParquetHiveSerDe",
    ),
    "AVRO": (
        f"{_AVRO}ContainerInputFormat",
        f"{_AVRO}ContainerOutputFormat",
        f"{_HIVE}serde2.avro.AvroSerDe",
    ),
}
"""The classes for STORED AS: input format, output format, SerDe."""
_DELIMITERS = {
    ("FIELDS", "TERMINATED", "BY"): "field.delim",
    ("ESCAPED", "BY"): "escape.delim",
    ("COLLECTION", "ITEMS", "TERMINATED", "BY"): "collection.delim",
    ("MAP", "KEYS", "TERMINATED", "BY"): "mapkey.delim",
    ("LINES", "TERMINATED", "BY"): "line.delim",
    ("NULL", "DEFINED", "AS"): "serialization.null.format",
}
"""The clauses of ROW FORMAT DELIMITED, and the properties of the SerDe that they set."""
# fmt: off
_IDLE = frozenset((
    "SET", "RESET", "MSCK", "TRUNCATE", "LOAD", "INSERT", "FROM", "SELECT",
    "WITH", "ANALYZE", "GRANT", "REVOKE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN",
    "ADD", "RELOAD", "REFRESH", "INVALIDATE", "COMPUTE", "COMMENT", "EXPORT", "UPDATE",
    "DELETE", "MERGE", "START", "COMMIT", "ROLLBACK", "LOCK", "UNLOCK", "KILL",
))
# fmt: on
"""The first words of statements that change no definition. INSERT may add partitions, which are folders."""
_STARTS = frozenset(("CREATE", "ALTER", "USE", "DROP", "TRUNCATE", "LOAD", "MSCK"))
"""The first words of statements that end the previous statement without a semicolon, at the start of
a line.
"""
_HARMLESS = (
    ("ADD", "CONSTRAINT"),
    ("COMPACT",),
    ("TOUCH",),
    ("ENABLE",),
    ("DISABLE",),
    ("RECOVER", "PARTITIONS"),
)
"""Clauses of ALTER TABLE that change no columns, formats or locations."""


@dataclass
class Statements:
    """Tables and their partitions, in the order of the statements."""

    tables: dict[tuple[str, str], Definition] = field(default_factory=dict)
    partitions: dict[tuple[str, str], list[PartitionDefinition]] = field(default_factory=dict)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    """Tables whose statements are not understood, with the reason."""


def parse_statements(text: str, path: str) -> Statements:
    """Parses a script; raises SchemaError with the line if it defines no table."""
    return _Parser(list(tokens(text, path)), path).run()


class _Parser:
    """One pass over the tokens."""

    def __init__(self, parsed: list[Token], path: str) -> None:
        self._tokens, self._path, self._at = parsed, path, 0
        self._database = "default"
        self._made = Statements()

    def run(self) -> Statements:
        first: SchemaError | None = None
        while not self._is_over:
            if self._takes(";"):
                continue
            begin = self._at
            self._subject: tuple[str, str] | None = None
            try:
                self._statement()
            except SchemaError as reason:
                first = first or reason
                if self._subject is None:
                    raise
                self._refuse(self._subject, str(reason))
                self._at = max(self._at, begin + 1)
                self._skip()
        if not self._made.tables:
            raise first or self._wrong("CREATE TABLE, CREATE VIEW, ALTER TABLE or USE")
        return self._made

    def _statement(self) -> None:
        if self._takes("USE"):
            self._database = self._name()
        elif self._takes("CREATE"):
            self._create()
        elif self._takes("ALTER", "TABLE"):
            self._alter()
        elif self._takes("DROP"):
            self._drop()
        elif self._takes("ALTER", "VIEW") or self._takes("ALTER", "DATABASE") or self._word() in _IDLE:
            self._at += 1
            self._skip()
        else:
            raise self._wrong("CREATE TABLE, CREATE VIEW, ALTER TABLE or USE")

    def _refuse(self, key: tuple[str, str], reason: str) -> None:
        """Leaves out a table whose definition is not known for sure."""
        self._made.tables.pop(key, None)
        self._made.partitions.pop(key, None)
        self._made.refused.setdefault(key, reason)

    # ---- statements

    def _create(self) -> None:
        if self._takes("OR"):
            self._expect("REPLACE")
        kind = "MANAGED_TABLE"
        parameters: dict[str, str] = {}
        while (word := self._word()) in ("EXTERNAL", "TEMPORARY", "TRANSACTIONAL", "MANAGED", "MATERIALIZED"):
            self._at += 1
            if word == "EXTERNAL":
                kind = "EXTERNAL_TABLE"
            if word == "TRANSACTIONAL":
                parameters["transactional"] = "true"
        if word in ("DATABASE", "SCHEMA"):
            return self._skip()
        if self._takes("VIEW"):
            database, name = self._new_name()
            self._skip()
            self._keep(Definition(database, name, "VIRTUAL_VIEW"))
            return None
        if word in ("FUNCTION", "ROLE", "INDEX", "MACRO", "SCHEDULED"):
            return self._skip()
        self._expect("TABLE")
        database, name = self._new_name()
        self._subject = database, name
        table = Definition(database, name, kind, parameters=parameters)
        table = self._table(self._like(table) if self._takes("LIKE") else table)
        self._keep(table)
        return None

    def _like(self, table: Definition) -> Definition:
        """A table with the columns, format and keys of another table."""
        key = self._new_name()
        other = self._made.tables.get(key)
        if other is None:
            raise SchemaError(
                f"{self._path}: no CREATE TABLE of {'.'.join(key)} precedes CREATE TABLE .. LIKE"
            )
        storage = replace(other.storage, location=None)
        return replace(
            table, storage=storage, keys=other.keys, parameters={**other.parameters, **table.parameters}
        )

    def _drop(self) -> None:
        kind = self._next().text.upper()
        if self._takes("IF"):
            self._expect("EXISTS")
        if kind in ("DATABASE", "SCHEMA"):
            database = self._name().lower()
            for key in [key for key in self._made.tables if key[0] == database]:
                self._forget(key)
        elif kind in ("TABLE", "VIEW"):
            self._forget(self._new_name())
        self._skip()

    def _forget(self, key: tuple[str, str]) -> None:
        for known in (self._made.tables, self._made.partitions, self._made.refused):
            known.pop(key, None)

    def _keep(self, table: Definition) -> None:
        key = table.database, table.name
        if key in self._made.tables:
            raise SchemaError(f"{self._path}: {table.full_name} is defined twice")
        if key not in self._made.refused:
            self._made.tables[key] = table

    def _alter(self) -> None:
        key = self._new_name()
        if key in self._made.refused:
            self._skip()
            return
        table = self._made.tables.get(key)
        if table is None:
            raise SchemaError(f"{self._path}: no CREATE TABLE of {'.'.join(key)} precedes ALTER TABLE")
        self._subject = key
        if any(self._takes(*clause) for clause in _HARMLESS):
            self._skip()
            return
        if not self._takes("ADD"):
            raise self._wrong("ADD PARTITION")
        if self._takes("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        parts = self._made.partitions.setdefault(key, [])
        while self._takes("PARTITION"):
            given = self._values()
            values = tuple(given.get(key.name.lower(), "") for key in table.keys)
            if len(given) != len(table.keys) or "" in values:
                raise self._wrong(f"a value for each of {', '.join(key.name for key in table.keys)}")
            location = self._text() if self._takes("LOCATION") else None
            if location is None and table.storage.location is None:
                raise self._wrong("LOCATION: neither the partition nor its table has one")
            if location is None:
                folder = folder_of((key.name for key in table.keys), values)
                location = f"{(table.storage.location or '').rstrip('/')}/{folder}"
            parts.append(PartitionDefinition(values, replace(table.storage, location=location)))

    def _table(self, table: Definition) -> Definition:
        storage, keys = table.storage, table.keys
        parameters = dict(table.parameters)
        if self._takes("("):
            storage = replace(storage, columns=self._columns())
        while not self._is_over and not self._takes(";") and self._word() not in _STARTS:
            if self._takes("COMMENT"):
                parameters["comment"] = self._text()
            elif self._takes("PARTITIONED", "BY", "SPEC"):
                # Transforms of Iceberg: the metadata of Iceberg has them.
                self._skip_brackets()
            elif self._takes("PARTITIONED", "BY"):
                self._expect("(")
                keys = self._columns(untyped=storage.columns)
            elif self._takes("SKEWED", "BY"):
                self._skewed()
            elif self._takes("SORT", "BY"):
                # Impala: a hint for writers.
                if self._word() in ("LEXICAL", "ZORDER"):
                    self._at += 1
                self._skip_brackets()
            elif self._takes("CLUSTERED", "BY"):
                storage = self._buckets(storage)
            elif self._takes("ROW", "FORMAT"):
                storage = self._row_format(storage)
            elif self._takes("WITH", "SERDEPROPERTIES"):
                storage = self._with(storage, self._properties())
            elif self._takes("STORED", "BY"):
                parameters["storage_handler"] = self._text()
            elif self._takes("STORED", "AS"):
                storage = self._stored_as(storage)
            elif self._takes("LOCATION"):
                storage = replace(storage, location=self._text())
            elif self._takes("TBLPROPERTIES"):
                parameters |= self._properties()
            elif self._takes("USING"):
                parameters["spark.sql.sources.provider"] = self._name()
            elif self._takes("OPTIONS"):
                storage = self._with(storage, self._properties())
            else:
                raise self._wrong("a clause of CREATE TABLE")
        of_keys = {key.name.lower() for key in keys}
        columns = tuple(column for column in storage.columns if column.name.lower() not in of_keys)
        if storage.serde is None and storage.input_format is None and "storage_handler" not in parameters:
            storage = self._stored(storage, "TEXTFILE")
        return replace(table, storage=replace(storage, columns=columns), keys=keys, parameters=parameters)

    # ---- clauses

    def _columns(self, untyped: tuple[Column, ...] = ()) -> tuple[Column, ...]:
        """Columns up to the closing bracket.

        In Spark's statements the partition keys have no types: the types come from `untyped`.
        """
        columns: list[Column] = []
        while not self._takes(")"):
            if self._word() in ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE") and not self._peek.is_quoted:
                self._skip_constraint()
            else:
                name = self._name()
                kind = self._type()
                kinds = [column.type for column in untyped if column.name.lower() == name.lower()]
                comment = None
                while self._word() in ("COMMENT", "NOT", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "ENABLE"):
                    if self._takes("COMMENT"):
                        comment = self._text()
                    else:
                        self._skip_constraint()
                        break
                if not kind and not kinds:
                    raise self._wrong(f"the type of {name}")
                columns.append(Column(name.lower(), kind or kinds[0], comment))
            if not self._takes(",") and self._word() != ")":
                raise self._wrong("`,` or `)` after a column")
        return tuple(columns)

    def _type(self) -> str:
        """A type as text, up to the first token that cannot be part of it."""
        parts: list[str] = []
        depth = 0
        while not self._is_over:
            word = self._word()
            ends = word in (",", ")") or word in ("COMMENT", "NOT", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK")
            if depth == 0 and ends:
                break
            depth += (word in ("<", "(")) - (word in (">", ")"))
            token = self._next()
            # Inside a struct, COMMENT may be a field (`struct<comment:string>`); before a text it is a
            # comment.
            if depth and word == "COMMENT" and self._peek.is_text:
                self._next()
                continue
            quoted = f"`{token.text.replace('`', '``')}`"
            parts.append(quoted if token.is_quoted else token.text.lower())
        return re.sub(r"\s*([<>(),:])\s*", r"\1", " ".join(parts)).strip()

    def _skip_constraint(self) -> None:
        depth = 0
        while not self._is_over:
            word = self._word()
            if depth == 0 and word in (",", ")"):
                return
            depth += (word == "(") - (word == ")")
            self._at += 1

    def _buckets(self, storage: Storage) -> Storage:
        by = self._ordered_names()
        order: tuple[tuple[str, bool], ...] = ()
        if self._takes("SORTED", "BY"):
            order = self._ordered_names()
        self._expect("INTO")
        count = self._next().text
        if not (count.isascii() and count.isdigit() and len(count) < 10):
            self._at -= 1
            raise self._wrong("a number of buckets")
        self._expect("BUCKETS")
        return replace(
            storage, buckets=int(count), bucketed_by=tuple(name for name, _ in by), sorted_by=order
        )

    def _skewed(self) -> None:
        """`(a, b) ON ((1, 'x'), ..)`: the rows with these values are in files of their own."""
        self._skip_brackets()
        self._expect("ON")
        self._skip_brackets()
        if self._takes("STORED", "AS", "DIRECTORIES"):
            self._at -= 1
            raise self._wrong("files in one directory: skewed rows")

    def _skip_brackets(self) -> None:
        self._expect("(")
        depth = 1
        while depth:
            text = self._next()
            if not (text.is_text or text.is_quoted):
                depth += (text.text == "(") - (text.text == ")")

    def _ordered_names(self) -> tuple[tuple[str, bool], ...]:
        """`(a, b DESC)`: columns, and whether each column ascends."""
        self._expect("(")
        names: list[tuple[str, bool]] = []
        while not self._takes(")"):
            name, descends = self._name(), self._takes("DESC")
            if not descends:
                self._takes("ASC")
            names.append((name, not descends))
            self._takes(",")
        return tuple(names)

    def _row_format(self, storage: Storage) -> Storage:
        if self._takes("SERDE"):
            return replace(storage, serde=self._text())
        self._expect("DELIMITED")
        properties: dict[str, str] = {}
        while clause := next((clause for clause in _DELIMITERS if self._takes(*clause)), None):
            properties[_DELIMITERS[clause]] = self._text()
            if clause[0] == "FIELDS":
                properties["serialization.format"] = properties["field.delim"]
        return self._with(storage, properties)

    def _stored_as(self, storage: Storage) -> Storage:
        if self._takes("INPUTFORMAT"):
            given = self._text()
            self._expect("OUTPUTFORMAT")
            return replace(storage, input_format=given, output_format=self._text())
        return self._stored(storage, self._name().upper())

    def _stored(self, storage: Storage, kind: str) -> Storage:
        classes = _STORED.get(kind)
        if classes is None:
            return replace(storage, input_format=kind.lower())
        return replace(
            storage, input_format=classes[0], output_format=classes[1], serde=storage.serde or classes[2]
        )

    @staticmethod
    def _with(storage: Storage, properties: Mapping[str, str]) -> Storage:
        return replace(storage, serde_properties={**storage.serde_properties, **properties})

    def _properties(self) -> dict[str, str]:
        """`('a'='b', 'c'='d')`."""
        self._expect("(")
        properties: dict[str, str] = {}
        while not self._takes(")"):
            name = self._next().text
            while self._takes("."):
                name = f"{name}.{self._next().text}"
            self._takes("=")
            properties[name] = self._next().text
            self._takes(",")
        return properties

    def _values(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._properties().items()}

    # ---- tokens

    @property
    def _is_over(self) -> bool:
        return self._at >= len(self._tokens)

    @property
    def _peek(self) -> Token:
        return Token("", 0) if self._is_over else self._tokens[self._at]

    def _word(self) -> str:
        """The next token in upper case; empty if it is a text or a quoted name."""
        token = self._peek
        return "" if token.is_text or token.is_quoted else token.text.upper()

    def _next(self) -> Token:
        if self._is_over:
            raise self._wrong("more")
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, *keywords: str) -> bool:
        """Whether these keywords come next; consumes them if so."""
        following = self._tokens[self._at : self._at + len(keywords)]
        actual = [token.text.upper() for token in following if not (token.is_text or token.is_quoted)]
        if actual != list(keywords):
            return False
        self._at += len(keywords)
        return True

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(word)

    def _name(self) -> str:
        token = self._next()
        if token.is_text or not (token.is_quoted or re.fullmatch(r"[^\W][\w$]*", token.text)):
            self._at -= 1
            raise self._wrong("a name")
        return token.text

    def _text(self) -> str:
        token = self._next()
        if not token.is_text:
            self._at -= 1
            raise self._wrong("a text in quotes")
        return token.text

    def _new_name(self) -> tuple[str, str]:
        """`[IF NOT EXISTS] [database.]table`, in lower case as Hive keeps names."""
        if self._takes("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        names = [self._name()]
        while self._takes("."):
            names.append(self._name())
        # SHOW CREATE TABLE of Hive 2 quotes database and table together, as one name.
        names = ".".join(names).split(".") if len(names) == 1 else names
        table, database = names[-1], names[-2] if len(names) > 1 else self._database
        return database.lower(), table.lower()

    def _skip(self) -> None:
        """Skips the statement up to a semicolon or the start of another statement."""
        while not self._is_over and not self._takes(";"):
            if self._word() == "CREATE" or (self._word() in _STARTS and self._is_first):
                return
            self._at += 1

    @property
    def _is_first(self) -> bool:
        """Whether the next token begins a line."""
        return self._at > 0 and self._tokens[self._at - 1].line < self._peek.line

    def _wrong(self, expected: str) -> SchemaError:
        token = self._peek
        actual = repr(token.text) if token.text or token.is_text else "the end"
        return SchemaError(f"{self._path}: line {token.line or '?'}: expected {expected}, found {actual}")
