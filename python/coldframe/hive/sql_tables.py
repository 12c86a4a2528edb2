"""Queries the database of a metastore, in SQLite, for definitions.

    TBLS -> SDS -> CDS -> COLUMNS_V2      a table, its location, its columns
         -> PARTITION_KEYS                its keys
         <- PARTITIONS -> SDS -> ..       its partitions, each with a location and columns
    *_PARAMS                              properties of tables, partitions and SerDes

The names are the same in all versions of Hive since 0.8, and in all databases that Hive supports.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from coldframe._coldframe import folder_of
from coldframe.errors import SchemaError
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.reader import DefinitionReader, MetastoreRefusal, Refused
from coldframe.hive.sql_dump import SqlDump
from coldframe.hive.write_ids import WriteIds

TABLES = {
    "DBS": "DB_ID NAME",
    "TBLS": "TBL_ID DB_ID OWNER SD_ID TBL_NAME TBL_TYPE VIEW_EXPANDED_TEXT",
    "SDS": "SD_ID CD_ID INPUT_FORMAT LOCATION NUM_BUCKETS OUTPUT_FORMAT SERDE_ID",
    "COLUMNS_V2": "CD_ID COMMENT COLUMN_NAME TYPE_NAME INTEGER_IDX",
    "SERDES": "SERDE_ID SLIB",
    "SERDE_PARAMS": "SERDE_ID PARAM_KEY PARAM_VALUE",
    "TABLE_PARAMS": "TBL_ID PARAM_KEY PARAM_VALUE",
    "PARTITION_KEYS": "TBL_ID PKEY_COMMENT PKEY_NAME PKEY_TYPE INTEGER_IDX",
    "PARTITIONS": "PART_ID SD_ID TBL_ID",
    "PARTITION_PARAMS": "PART_ID PARAM_KEY PARAM_VALUE",
    "PARTITION_KEY_VALS": "PART_ID PART_KEY_VAL INTEGER_IDX",
    "BUCKETING_COLS": "SD_ID BUCKET_COL_NAME INTEGER_IDX",
    "SORT_COLS": "SD_ID COLUMN_NAME ORDER INTEGER_IDX",
}
"""The tables to read, with the columns to read."""
_TRANSACTIONS = ("TXNS",)
_NEXT = ("NEXT_WRITE_ID", "NEXT_TXN_ID")
OF_TRANSACTIONS = {
    "TXNS": "TXN_ID TXN_STATE",
    "TXN_TO_WRITE_ID": "T2W_TXNID T2W_DATABASE T2W_TABLE T2W_WRITEID",
    "NEXT_WRITE_ID": "NWI_DATABASE NWI_TABLE NWI_NEXT",
    "NEXT_TXN_ID": "NTXN_NEXT",
}
"""Like `TABLES`; each version of Hive has some of these tables."""
_CATALOG = "CTLG_NAME"
_AT_ONCE = 500
_KEYS = ("DB_ID", "TBL_ID", "SD_ID", "CD_ID", "SERDE_ID", "PART_ID")


def loaded(dump: SqlDump) -> sqlite3.Connection:
    """Loads a dump into a temporary SQLite database, which exists until the connection is closed."""
    database = sqlite3.connect("", check_same_thread=False)
    database.execute("pragma journal_mode = off")
    inserts = {}
    for table, columns in (TABLES | OF_TRANSACTIONS).items():
        names = [*columns.split(), *([_CATALOG] if table == "DBS" else [])]
        kinds = (f'"{name}" {"integer" if _is_number(name) else "text"}' for name in names)
        database.execute(f'create table "{table}" ({", ".join(kinds)})')
        inserts[table] = names, f'insert into "{table}" values ({", ".join("?" * len(names))})'
    for table, row in dump.rows():
        names, insert = inserts[table]
        missing = [name for name in names if name not in row and name != _CATALOG]
        if missing:
            raise SchemaError(
                f"{dump.path}: {table} has no column {missing[0]}: not the tables of a Hive metastore"
            )
        database.execute(insert, [_checked(dump.path, table, name, row.get(name)) for name in names])
    for table, columns in TABLES.items():
        first = next((name for name in columns.split() if name in _KEYS), None)
        database.execute(f'create index "by_{table}" on "{table}" ("{first}")')
    for table in OF_TRANSACTIONS.keys() - dump.seen:
        database.execute(f'drop table "{table}"')
    database.execute('create index parts_of_table on "PARTITIONS" ("TBL_ID")')
    database.commit()
    return database


def _checked(path: str, table: str, name: str, value: str | None) -> str | int | None:
    """A value in its column's type."""
    if value is None:
        return None
    try:
        value.encode()
        return int(value) if _is_number(name) else value
    except UnicodeEncodeError as error:
        raise SchemaError(f"{path}: {table}: {name} is not UTF-8: dump in UTF-8 instead") from error
    except ValueError as error:
        raise SchemaError(f"{path}: {table}: {name}: expected a number, found {value!r}") from error


def _is_number(name: str) -> bool:
    return (
        name in _KEYS
        or name.endswith(("_IDX", "_NEXT", "TXNID", "TXN_ID", "WRITEID"))
        or name in ("NUM_BUCKETS", "ORDER")
    )


class SqlTables(DefinitionReader):
    """The definitions in a database. The caller owns the connection."""

    def __init__(self, uri: str, database: sqlite3.Connection) -> None:
        self.uri, self._database = uri, database
        self._there = {str(name).upper() for (name,) in self._rows("select name from sqlite_master")}
        missing = sorted(TABLES.keys() - self._there)
        if missing:
            raise SchemaError(f"{uri}: not the database of a Hive metastore: it has no table {missing[0]}")
        columns = {str(row[1]).upper() for row in self._rows('pragma table_info("DBS")')}
        self._catalog = f"coalesce(\"{_CATALOG}\", 'hive')" if _CATALOG in columns else "'hive'"
        self._columns: dict[int, tuple[Column, ...]] = {}
        """Lists of columns by the list's id."""
        self._lists: dict[tuple[Column, ...], tuple[Column, ...]] = {}
        """Equal lists are kept once: a metastore may store a list for each partition."""

    def databases(self) -> list[str]:
        """The names of all databases, including databases of catalogs other than `hive`."""
        return [str(name) for (name,) in self._rows('select distinct "NAME" from "DBS" order by 1')]

    def definitions(self, database: str) -> Iterator[Definition | Refused]:
        catalogs = self._rows(f'select {self._catalog} from "DBS" where "NAME" = ?', database)
        for (catalog,) in catalogs:
            if catalog != "hive":
                yield Refused(database, "*", f"databases of the catalog {catalog} are not read")
        yield from self._definitions('d."NAME" = ?', database)

    def definition(self, database: str, name: str) -> Definition:
        definitions = list(self._definitions('d."NAME" = ? and t."TBL_NAME" = ?', database, name))
        if not definitions:
            raise MetastoreRefusal(f"{self.uri}: {database}.{name} table not found")
        if isinstance(definitions[0], Refused):
            raise MetastoreRefusal(f"{self.uri}: {database}.{name}: {definitions[0].reason}")
        return definitions[0]

    def _definitions(self, where: str, *values: str) -> Iterator[Definition | Refused]:
        text = (
            'select d."NAME", t."TBL_NAME", t."TBL_ID", t."TBL_TYPE", t."OWNER", t."SD_ID", '
            't."VIEW_EXPANDED_TEXT" from "TBLS" t join "DBS" d on d."DB_ID" = t."DB_ID" '
            f"where {self._catalog} = 'hive' and {where} order by t.\"TBL_NAME\""
        )
        for database, name, number, kind, owner, storage, view in self._rows(text, *values):
            storages = {} if storage is None else self._storages([storage])
            if storage is not None and storage not in storages:
                yield Refused(database, name, "its storage descriptor is not in the dump")
                continue
            keys = self._rows(
                'select "PKEY_NAME", "PKEY_TYPE", "PKEY_COMMENT" from "PARTITION_KEYS" where "TBL_ID" = ? '
                'order by "INTEGER_IDX"',
                number,
            )
            yield Definition(
                database,
                name,
                kind or "",
                owner,
                storages.get(storage, Storage()),
                tuple(Column(*key) for key in keys),
                self._parameters("TABLE_PARAMS", "TBL_ID", [number]).get(number, {}),
                view,
            )

    def partition_names(self, table: Definition) -> list[str]:
        return list(self._numbered(table))

    def _numbered(self, table: Definition) -> dict[str, int]:
        """The ids of a table's partitions by name."""
        keys = [key.name for key in table.keys]
        rows = self._rows(
            'select p."PART_ID", v."PART_KEY_VAL" from "PARTITIONS" p '
            'left join "PARTITION_KEY_VALS" v on v."PART_ID" = p."PART_ID" where p."TBL_ID" = ? '
            'order by p."PART_ID", v."INTEGER_IDX"',
            self._number(table),
        )
        values: dict[int, list[str]] = {}
        for number, value in rows:
            values.setdefault(number, []).append("" if value is None else value)
        return {folder_of(keys, some): number for number, some in values.items()}

    def _number(self, table: Definition) -> int:
        rows = self._rows(
            'select t."TBL_ID" from "TBLS" t join "DBS" d on d."DB_ID" = t."DB_ID" '
            f'where {self._catalog} = \'hive\' and d."NAME" = ? and t."TBL_NAME" = ?',
            table.database,
            table.name,
        )
        return int(next(iter(rows))[0])

    def partition_definitions(
        self, table: Definition, names: Sequence[str] | None = None
    ) -> Iterator[PartitionDefinition]:
        numbered = self._numbered(table)
        wanted = list(numbered.values()) if names is None else [numbered[name] for name in names]
        for at in range(0, len(wanted), _AT_ONCE):
            yield from self._partitions(table, wanted[at : at + _AT_ONCE])

    def _partitions(self, table: Definition, numbers: Sequence[int]) -> Iterator[PartitionDefinition]:
        some = ", ".join("?" * len(numbers))
        of_part = dict(
            self._rows(f'select "PART_ID", "SD_ID" from "PARTITIONS" where "PART_ID" in ({some})', *numbers)
        )
        values: dict[int, list[str]] = {}
        for number, value in self._rows(
            f'select "PART_ID", "PART_KEY_VAL" from "PARTITION_KEY_VALS" where "PART_ID" in ({some}) '
            'order by "PART_ID", "INTEGER_IDX"',
            *numbers,
        ):
            values.setdefault(number, []).append("" if value is None else value)
        storages = self._storages(
            [storage_number for storage_number in of_part.values() if storage_number is not None]
        )
        parameters = self._parameters("PARTITION_PARAMS", "PART_ID", numbers)
        for number in numbers:
            storage = storages.get(of_part[number])
            if storage is None:
                text = f"a partition {values.get(number)} has no storage descriptor in the dump"
                raise MetastoreRefusal(f"{self.uri}: {table.full_name}: {text}")
            yield PartitionDefinition(tuple(values.get(number, ())), storage, parameters.get(number, {}))

    def write_ids(self, table: Definition) -> WriteIds:
        """Which writes of a transactional table are committed."""
        if not self._there.issuperset(_TRANSACTIONS) or not self._there.intersection(_NEXT):
            text = f"the dump has no tables {', '.join(_TRANSACTIONS)}: which writes are committed is unknown"
            raise MetastoreRefusal(f"{self.uri}: {table.full_name}: {text}")
        # Before Hive 3, the write ids of directories are transaction ids.
        rows = self._rows("select TXN_ID, TXN_STATE from TXNS order by 1")
        next_id = self._rows("select max(NTXN_NEXT) from NEXT_TXN_ID") if "NEXT_TXN_ID" in self._there else []
        if "TXN_TO_WRITE_ID" in self._there:
            rows = self._rows(
                "select w.T2W_WRITEID, t.TXN_STATE from TXN_TO_WRITE_ID w "
                "left join TXNS t on t.TXN_ID = w.T2W_TXNID "
                "where lower(w.T2W_DATABASE) = ? and lower(w.T2W_TABLE) = ? order by 1",
                table.database,
                table.name,
            )
            next_id = self._rows(
                "select max(NWI_NEXT) from NEXT_WRITE_ID "
                "where lower(NWI_DATABASE) = ? and lower(NWI_TABLE) = ?",
                table.database,
                table.name,
            )
        highest = (next_id[0][0] or 1) - 1 if next_id else 0
        states = {
            state: tuple(number for number, row_state in rows if row_state == state) for state in ("o", "a")
        }
        return WriteIds(highest, states["o"], states["a"])

    def _storages(self, numbers: Sequence[int]) -> dict[int, Storage]:
        some = ", ".join("?" * len(numbers))
        rows = self._rows(
            'select s."SD_ID", s."CD_ID", s."LOCATION", s."INPUT_FORMAT", s."OUTPUT_FORMAT", '
            's."NUM_BUCKETS", s."SERDE_ID", e."SLIB" from "SDS" s '
            'left join "SERDES" e on e."SERDE_ID" = s."SERDE_ID" '
            f'where s."SD_ID" in ({some})',
            *numbers,
        )
        serdes = self._parameters("SERDE_PARAMS", "SERDE_ID", [row[6] for row in rows if row[6] is not None])
        buckets = self._ordered("BUCKETING_COLS", '"BUCKET_COL_NAME", 1', numbers)
        sorts = self._ordered("SORT_COLS", '"COLUMN_NAME", "ORDER"', numbers)
        return {
            number: Storage(
                self._columns_of(columns),
                location,
                input_format,
                output_format,
                library,
                serdes.get(serde, {}),
                max(int(count or 0), 0),
                tuple(name for name, _ in buckets.get(number, ())),
                tuple((name, order != 0) for name, order in sorts.get(number, ())),
            )
            for number, columns, location, input_format, output_format, count, serde, library in rows
        }

    def _ordered(self, table: str, columns: str, numbers: Sequence[int]) -> dict[int, list[tuple[str, int]]]:
        some = ", ".join("?" * len(numbers))
        columns_of: dict[int, list[tuple[str, int]]] = {}
        for number, name, order in self._rows(
            f'select "SD_ID", {columns} from "{table}" where "SD_ID" in ({some}) order by "INTEGER_IDX"',
            *numbers,
        ):
            columns_of.setdefault(number, []).append((name, order))
        return columns_of

    def _columns_of(self, number: int | None) -> tuple[Column, ...]:
        if number is None:
            return ()
        if number not in self._columns:
            rows = self._rows(
                'select "COLUMN_NAME", "TYPE_NAME", "COMMENT" from "COLUMNS_V2" where "CD_ID" = ? '
                'order by "INTEGER_IDX"',
                number,
            )
            made = tuple(Column(name, kind or "", comment) for name, kind, comment in rows)
            self._columns[number] = self._lists.setdefault(made, made)
        return self._columns[number]

    def _parameters(self, table: str, key: str, numbers: Sequence[int]) -> dict[int, dict[str, str]]:
        some = ", ".join("?" * len(numbers))
        parameters: dict[int, dict[str, str]] = {}
        for number, name, value in self._rows(
            f'select "{key}", "PARAM_KEY", "PARAM_VALUE" from "{table}" where "{key}" in ({some})', *numbers
        ):
            # Oracle stores empty texts as null.
            parameters.setdefault(number, {})[name] = "" if value is None else value
        return parameters

    def _rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise SchemaError(f"{self.uri}: not the database of a Hive metastore: {error}") from error
