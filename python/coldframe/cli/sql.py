"""The commands sql, summarize and tables: DuckDB over files and tables of all formats.

DuckDB reads Parquet, CSV and JSON by itself. For other names in a query, this module opens a dataset, into
which DuckDB pushes the columns and filters of the query.
"""

from __future__ import annotations

import argparse
import contextlib
import decimal
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coldframe import writing
from coldframe._coldframe import formats, shown
from coldframe._coldframe import tables as tables_held
from coldframe.arrow import pa, without_numpy
from coldframe.cli import output
from coldframe.cli.declared import declared_options
from coldframe.cli.grid import print_grid
from coldframe.cli.options import (
    STDIN,
    Commands,
    add_command,
    add_open_options,
    open_arguments,
    prints_json,
    rows_of_sources,
)
from coldframe.cli.parquet_side import is_parquet
from coldframe.cli.reading import rows_of
from coldframe.cli.sinks import write_rows
from coldframe.errors import NotFoundError, install_hint, unsupported
from coldframe.named_tables import by_hive_names
from coldframe.sources import open_store, scheme_of
from coldframe.table_listing import FoundTable, tables

if TYPE_CHECKING:
    from coldframe.dataset import Rows

FORMS = ["table", "csv", "json", "jsonl", "arrow", "parquet"]


def add_parsers(commands: Commands) -> None:
    """Adds sql and summarize."""
    _add_sql(commands)
    _add_summarize(commands)


def _add_sql(commands: Commands) -> None:
    parser = add_command(
        commands,
        "sql",
        """coldframe sql "select channel, count(*) from 'warehouse/sales' group by 1"
coldframe sql "select * from 'tserver/events' limit 5"      # a table of a Kudu directory or an HBase root
coldframe sql --in warehouse "select * from sales join customers using (id)" --format csv
coldframe sql --in hbase/                                   # asks for queries; .tables, .exit""",
    )
    parser.add_argument("query", nargs="?", help="one or more statements; without any, a prompt opens")
    parser.add_argument(
        "--in",
        dest="places",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory whose tables can be queried by name; may be repeated",
    )
    parser.add_argument(
        "--format", dest="form", choices=FORMS, default="table", help="the form of the rows (default table)"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where the rows go (default: standard output)"
    )
    add_open_options(parser, prints_rows=True)
    parser.set_defaults(run=sql)


def _add_summarize(commands: Commands) -> None:
    parser = add_command(
        commands,
        "summarize",
        """coldframe summarize events.orc
coldframe summarize warehouse/sales --json""",
    )
    parser.add_argument("source", help="a file, a pattern or a directory; may be a URL")
    add_open_options(parser)
    prints_json(parser, summarize)


def summarize(args: argparse.Namespace) -> None:
    """Prints a line for each column."""
    args.places, args.form, args.output = [], "json" if args.json else "table", "-"
    session = Session(args)
    with output.waiting("summarize"):
        _show(session.run(f"summarize '{args.source.replace(chr(39), chr(39) * 2)}'"), args.form, "-")


def sql(args: argparse.Namespace) -> None:
    """Runs a query, the queries of standard input, or a prompt."""
    session = Session(args)
    if args.query is not None:
        session.show_all(args.query)
    elif not sys.stdin.isatty():
        session.show_all(sys.stdin.read())
    else:
        from coldframe.cli.prompt import ask

        ask(session)


class Session:
    """A connection to DuckDB that opens the files and tables that its queries name."""

    def __init__(self, args: argparse.Namespace) -> None:
        without_numpy()
        try:
            import duckdb
        except ImportError as missing:
            raise unsupported(f"sql: DuckDB is not installed; {install_hint('duckdb')}") from missing
        self._duckdb = duckdb
        self._connection = duckdb.connect()
        self._args = args
        self._arguments = open_arguments(args)
        self._storage = self._arguments["storage_options"]
        self._known: set[str] = set()
        self._scans: list[_Watched] = []
        self.tables: dict[str, FoundTable] = {}
        """The tables by their names in queries."""
        for place in args.places:
            for table in tables(place, storage_options=self._storage, rows=False):
                self.tables.setdefault(table.name, table)
        self._by_hive = by_hive_names(self.tables)

    def show_all(self, text: str) -> None:
        """Runs statements one after another, and shows the rows of each statement."""
        try:
            statements = self._connection.extract_statements(text)
        except self._duckdb.Error as error:
            raise ValueError(str(error)) from error
        for statement in statements:
            with output.waiting("sql"):
                rows = self.run(statement.query)
            _show(rows, self._args.form, self._args.output)

    def run(self, statement: str) -> Any:
        """The rows of one statement as a pyarrow.RecordBatchReader; None if it returns none."""
        for name in mentioned(statement, {**self._by_hive, **self.tables}):
            self._find(name)
        try:
            relation = self._connection.sql(statement)
            reader = None if relation is None else pa.RecordBatchReader.from_stream(relation)
        except self._duckdb.Error as error:
            self._raise_own()
            raise ValueError(self._advice(str(error))) from error
        if reader is None:
            return None
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def _batches(self, reader: Any) -> Iterator[Any]:
        try:
            yield from reader
        except (self._duckdb.Error, pa.ArrowException, OSError) as error:
            self._raise_own()
            raise ValueError(self._advice(str(error))) from error

    def _raise_own(self) -> None:
        """Raises the error of a scan that ended a statement."""
        for scan in self._scans:
            if scan.error is not None:
                error, scan.error = scan.error, None
                raise error

    def _find(self, name: str) -> None:
        """Registers the rows for a name in a query, if DuckDB does not read the name itself."""
        from coldframe.dataset import ArrowDataset  # loads more of pyarrow

        if name in self._known:
            return
        if (table := self.tables.get(name) or self._by_hive.get(name)) is not None:
            rows = table.open(storage_options=self._storage)
        else:
            path_rows = self._of_path(name)
            if path_rows is None:
                return
            rows = path_rows
        self._known.add(name)
        self._scans.append(_Watched(rows))
        self._connection.register(name, ArrowDataset(self._scans[-1]))
        if name in self._by_hive and "." in name:
            database, of_database = (_quoted(part) for part in name.split("."))
            self._connection.execute(f"create schema if not exists {database}")
            view = f"create view {database}.{of_database} as select * from {_quoted(name)}"
            self._connection.execute(view)

    def _of_path(self, path: str) -> Any:
        """The rows of a path, pattern or URL; None if the format is not one of coldframe's."""
        if path == STDIN:
            return rows_of_sources([path], self._arguments)
        try:
            entry = None if scheme_of(path) in ("http", "https") else open_store(path, self._storage).stat()
        except (NotFoundError, OSError, ValueError):
            return None
        if entry is None and not re.search(r"[*?\[]", path) and scheme_of(path) not in ("http", "https"):
            return self._of_directory(path)
        ours = None if entry is None else writing.detect(path, storage_options=self._storage)
        if entry is not None and ours is None and not entry.is_folder:
            return None
        if ours is None and re.search(r"\.(parquet|csv|json|jsonl|ndjson)$", path):
            return None
        if ours is None and entry is not None and is_parquet(path, self._storage):
            self._register_parquet(path)
            return None
        if ours is not None and formats()[ours]["capabilities"]["tables"] and "table" not in self._arguments:
            held = tables_held(path, format=ours, storage_options=self._storage)
            if len(held) > 1:
                raise NotFoundError(
                    f"{shown(path)}: a directory of several tables; name one: {_names(shown(path), held)}"
                )
        declared = declared_options(path, None, self._arguments, self._storage)
        return rows_of_sources([path], {**declared, **self._arguments})

    def _of_directory(self, path: str) -> Any:
        """A table in a directory with several tables: `tserver/events`."""
        folder, _, table = path.rstrip("/").rpartition("/")
        if not folder or not table:
            return None
        try:
            entry = open_store(folder, self._storage).stat()
        except (NotFoundError, OSError, ValueError):
            return None
        if entry is None or not entry.is_folder:
            return None
        format = writing.detect(folder, storage_options=self._storage)
        if format is None or not formats()[format]["capabilities"]["tables"]:
            return None
        held = tables_held(folder, format=format, storage_options=self._storage)
        known = {name: table_id for table_id, name in held} | {table_id: table_id for table_id, _ in held}
        if table not in known:
            raise NotFoundError(f"{folder}: no table {table!r}; there are {_names(folder, held)}")
        return rows_of_sources([folder], {**self._arguments, "table": known[table]})

    def _register_parquet(self, folder: str) -> None:
        quoted, view = folder.rstrip("/").replace("'", "''"), _quoted(folder)
        self._known.add(folder)
        self._connection.execute(
            f"create temp view {view} as select * from read_parquet('{quoted}/**/*.parquet', "
            "hive_partitioning = true)"
        )

    def _advice(self, error: str) -> str:
        """DuckDB's error; if DuckDB does not know a table, the known tables, too."""
        if "does not exist" not in error or "Table with name" not in error:
            return error
        first = error.splitlines()[0]
        if self.tables:
            return f"{first} The tables are: {', '.join(sorted(self.tables))}"
        return f"{first} Name a file or directory in quotes, or give the tables' directory by --in"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Watched:
    """Rows that keep the error of a scan: DuckDB passes on only the error's text, with a traceback."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.schema = rows.schema
        self.error: Exception | None = None

    def to_batches(self, columns: Sequence[str] | None = None, **arguments: Any) -> Any:
        """The rows as a pyarrow.RecordBatchReader."""
        with self._watch():
            reader = self._rows.to_batches(columns, **arguments)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def count(self, filter: Any = None) -> int:
        """The number of rows that pass."""
        with self._watch():
            return self._rows.count(filter)

    def _batches(self, reader: Any) -> Iterator[Any]:
        with self._watch():
            yield from reader

    @contextlib.contextmanager
    def _watch(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.error = error
            raise


def _names(folder: str, held: Sequence[tuple[str, str]]) -> str:
    """The tables of a directory as a query names them."""
    return ", ".join(f"'{folder.rstrip('/')}/{name}'" for _, name in held)


_TOKENS = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/)|'(?P<text>(?:[^']|'')*)'|"(?P<quoted>(?:[^"]|"")*)"|(?P<word>[\w$:]+)|(?P<mark>\S)""",
    re.DOTALL,
)
# The words that precede the name of a table.
_BEFORE = frozenset({"from", "join", "summarize", "describe", "pivot", "unpivot", "into", "table", ","})


def mentioned(statement: str, known: Mapping[str, Any]) -> Iterator[str]:
    """The names in a statement that may be tables: known names, and quoted names after FROM."""
    before = last = ""
    seen: set[str] = set()
    for match in _TOKENS.finditer(statement):
        if match["skip"] is not None:
            continue
        text = match["text"]
        name = text.replace("''", "'") if text is not None else match["quoted"] or match["word"]
        is_table = before in _BEFORE and match["word"] is None and name is not None
        if name is not None and name not in seen and (is_table or name in known):
            seen.add(name)
            yield name
        # Hive's `database.table`, which is not in quotes as a whole.
        both = f"{last}.{name}"
        if before == "." and both in known and both not in seen:
            seen.add(both)
            yield both
        last = last if match["mark"] == "." else name or ""
        before = (match["word"] or match["mark"] or "").lower()


def _show(reader: Any, form: str, dest: str) -> None:
    """The rows of a statement."""
    if reader is None:
        return
    if form == "table":
        if dest != "-":
            raise ValueError("--output is for --format csv, json, jsonl, arrow and parquet")
        print_grid(reader.schema.names, (row for batch in reader for row in rows_of(batch)))
    elif form == "json":
        if dest != "-":
            raise ValueError("--output is for --format csv, jsonl, arrow and parquet")
        names = reader.schema.names
        rows = (map(_plain, row) for batch in reader for row in rows_of(batch))
        print(output.as_json([dict(zip(names, row, strict=True)) for row in rows]))
    else:
        write_rows(reader, dest, form)


def _plain(value: Any) -> Any:
    """DuckDB's sums of integers are decimals in Arrow; in JSON they become numbers."""
    is_whole = isinstance(value, decimal.Decimal) and value.as_tuple().exponent == 0
    return int(value) if is_whole else value
