"""Dumps of a metastore's database, by PostgreSQL and MariaDB. Hive's scripts made its tables, a metastore of
Hive 3 filled them. The expected definitions are its answers over Thrift.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.hive.addresses import Selected, is_metastore
from coldframe.hive.defined import connect, definitions
from coldframe.hive.definition import Definition
from coldframe.hive.sql_dump import SqlDump
from coldframe.hive.sql_tables import TABLES
from coldframe.hive.write_ids import WriteIds, aborted_among
from coldframe.pipeline import InProcess, audit, migrate
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.summary import summary

DUMPS = Path(__file__).parents[1] / "data/hive/dumps"
BOTH = ["postgres.sql", "mysql.sql"]
COUNTED = {"numFiles", "totalSize", "transient_lastDdlTime"}
"""What a metastore counts by itself."""


def definitions_in(path: Path) -> Any:
    made = []
    with connect(str(path)) as metastore:
        for definition in definitions(metastore, Selected.of(str(path))):
            assert isinstance(definition, Definition)
            parts = metastore.partition_definitions(definition) if definition.has_partitions else ()
            made.append({**asdict(definition), "partitions": [asdict(part) for part in parts]})
    return plain(json.loads(json.dumps(made)))


def plain(made: Any) -> Any:
    for table in made:
        table.pop("by_folders", None)
        table["partitions"].sort(key=lambda part: part["values"])
        for entry in (table, *table["partitions"]):
            entry["parameters"] = {k: v for k, v in entry["parameters"].items() if k not in COUNTED}
    return made


def expected() -> Any:
    return plain(json.loads((DUMPS / "expected.json").read_text()))


@pytest.mark.parametrize("name", BOTH)
def test_dumps_match_the_server(name: str) -> None:
    assert definitions_in(DUMPS / name) == expected()


def test_a_dump_without_comments(tmp_path: Path) -> None:
    """As `mysqldump --skip-comments` and phpMyAdmin write it: backticks show that the backslashes are
    MySQL's.
    """
    lines = (DUMPS / "mysql.sql").read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(("--", "/*")))
    assert "\\\\" in text or "\\n" in text
    (tmp_path / "x.sql").write_text(text)
    assert definitions_in(tmp_path / "x.sql") == expected()


def test_compressed_dumps_inserts_and_sqlite_databases(tmp_path: Path) -> None:
    packed = tmp_path / "x.sql.gz"
    packed.write_bytes(gzip.compress((DUMPS / "postgres.sql").read_bytes()))
    assert definitions_in(packed) == expected()
    # The same rows in SQLite: the database, and SQLite's dump of it.
    lines = (DUMPS / "postgres.sql").read_text().splitlines(keepends=True)
    database = sqlite3.connect(tmp_path / "x.db")
    made = set()
    for table, row in SqlDump("x", lines, TABLES.keys()).rows():
        if table not in made:
            made.add(table)
            names = ", ".join(f'"{name}"' for name in row)
            database.execute(f'create table "{table}" ({names})')
        numbers = [
            int(v) if v is not None and v.lstrip("-").isdigit() and not k.startswith("P") else v
            for k, v in row.items()
        ]
        database.execute(f'insert into "{table}" values ({", ".join("?" * len(row))})', numbers)
    database.commit()
    assert definitions_in(tmp_path / "x.db") == expected()
    text = "\n".join(database.iterdump())
    database.close()
    (tmp_path / "x.sql").write_text(text)
    assert definitions_in(tmp_path / "x.sql") == expected()
    for end in ("", "ROLLBACK; -- due to errors\n"):
        (tmp_path / "cut.sql").write_text(f"{text.rpartition('COMMIT;')[0]}{end}")
        with pytest.raises(cf.SchemaError, match="expected 'COMMIT;' near its end"):
            definitions_in(tmp_path / "cut.sql")


@pytest.mark.parametrize("name", BOTH)
def test_truncated_dump_hides_no_table(name: str, tmp_path: Path) -> None:
    whole = (DUMPS / name).read_bytes()
    path = tmp_path / "cut.sql"
    for size in range(0, len(whole) - 40, 997):
        path.write_bytes(whole[:size])
        # A dump that is cut before its first table is an empty script or no script.
        if size and b"CREATE TABLE" in whole[:size]:
            with pytest.raises(cf.SchemaError):
                definitions_in(path)


TRANSACTIONS = """
COPY public.txns (txn_id, txn_state, txn_user) FROM stdin;
3	a	u
5	o	u
\\.
COPY public.next_txn_id (ntxn_next) FROM stdin;
9
\\.
-- PostgreSQL database dump complete"""
WRITES = """
COPY public.txn_to_write_id (t2w_txnid, t2w_database, t2w_table, t2w_writeid) FROM stdin;
2	cold	sales	1
3	cold	sales	2
5	cold	sales	3
6	cold	sales	4
5	cold	other	9
\\.
COPY public.next_write_id (nwi_database, nwi_table, nwi_next) FROM stdin;
cold	sales	5
cold	other	10
\\.
"""


def test_valid_write_ids_are_read_from_a_dump(tmp_path: Path) -> None:
    text = (DUMPS / "postgres.sql").read_text()
    end = "-- PostgreSQL database dump complete"
    for extra, expected in (
        (TRANSACTIONS, WriteIds(8, (5,), (3,))),
        (WRITES + TRANSACTIONS, WriteIds(4, (3,), (2,))),
    ):
        path = tmp_path / f"{len(extra)}.sql"
        path.write_text(text.replace(end, extra.lstrip()))
        with connect(str(path)) as metastore:
            assert metastore.write_ids(metastore.definition("cold", "sales")) == expected
    assert WriteIds(4, (3,), (2,)).text("a.b") == "a.b:4:3:3:2"
    assert WriteIds(4).text() == "4:9223372036854775807::"
    with connect(str(DUMPS / "postgres.sql")) as metastore, pytest.raises(cf.ColdframeError, match="TXNS"):
        metastore.write_ids(metastore.definition("cold", "sales"))
    assert aborted_among([4, 7, 9], b"\x05") == ((7,), (4, 9))
    assert aborted_among([4, 7], b"") == ((4, 7), ())


def test_invalid_dumps_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"PGDMP\x01")
    with pytest.raises(cf.UnsupportedError, match="pg_restore"):
        definitions_in(path)
    cf.write(pa.table({"a": [1]}), path, format="orc")
    with pytest.raises(cf.SchemaError, match="neither a dump of a Hive metastore"):
        definitions_in(path)
    sqlite3.connect(tmp_path / "y").execute("create table t (a)").connection.close()
    with pytest.raises(cf.SchemaError, match="it has no table"):
        definitions_in(tmp_path / "y")
    text = (DUMPS / "postgres.sql").read_text()
    path.write_text(
        text.replace('COPY public."PARTITIONS"', 'COPY public."OTHERS"').replace(
            'CREATE TABLE public."PARTITIONS"', 'CREATE TABLE public."OTHERS"'
        )
    )
    with pytest.raises(cf.SchemaError, match="it has no table PARTITIONS"):
        definitions_in(path)
    for wrong, expected in (
        (text.replace("client_encoding = 'UTF8'", "client_encoding = 'LATIN1'"), "a dump in LATIN1"),
        (text.replace("all that was sold", "\udcfe"), "PARAM_VALUE is not UTF-8"),
        (text.replace("\t-1\torg", "\tmany\torg"), "NUM_BUCKETS: expected a number, found 'many'"),
    ):
        path.write_bytes(wrong.encode(errors="surrogateescape"))
        with pytest.raises(cf.SchemaError, match=expected):
            definitions_in(path)
    (tmp_path / "z").write_bytes(gzip.compress(text.encode())[:-200])
    with pytest.raises(cf.SchemaError):
        definitions_in(tmp_path / "z")


def test_addresses(tmp_path: Path) -> None:
    file = tmp_path / "x.sql"
    file.write_text("")
    assert Selected.of(f"{file}/Sales.o*") == Selected(str(file), "sales", "o*")
    assert Selected.of(f"{file}/") == Selected(str(file))
    assert is_metastore(f"{file}/sales.orders")
    assert not is_metastore(str(file))
    assert is_metastore(file, or_file=True)
    assert not is_metastore(tmp_path, or_file=True)
    with pytest.raises(ValueError, match="after the file"):
        Selected.of(f"{file}/a.")


COLUMNS = [("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("channel", pa.string())]


def files(root: Path) -> None:
    """Writes the files of `cold.sales`, by its definitions."""
    rows: dict[str, list[Any]] = {"id": [1, 2], "price": [1, 2], "channel": ["x", "y"]}

    def write(place: str, count: int, **how: Any) -> None:
        (root / place).mkdir(parents=True)
        some = {name: rows[name] for name, _ in COLUMNS[:count]}
        cf.write(pa.table(some, schema=pa.schema(COLUMNS[:count])), root / place / "0", **how)

    text = {"field.delim": "|", "line.delim": "\n", "escape.delim": "\\"}
    write("sales/a", 2, format="rcfile", serde="text", serde_properties=text)
    write("sales/b", 2, format="rcfile", serde="binary")
    write("elsewhere/x9", 3, format="orc")
    (root / "sales/d").mkdir()


@pytest.mark.parametrize("name", BOTH)
def test_a_dump_replaces_the_metastore_in_a_migration(name: str, tmp_path: Path) -> None:
    files(tmp_path / "wh")
    moved = {"file:/cold": str(tmp_path / "wh")}
    table = cf.hive_table(f"{DUMPS / name}/cold.sales", location=moved)
    assert table.count() == 6
    report = migrate(InProcess(), DUMPS / name, tmp_path / "dst", locations=moved, only=["cold.sales"])
    remarks = [remark for table in report.tables for remark in table.metastore]
    assert report.rows == 6, summary(report)
    # The metastore has other row counts than these files, but does not claim that they are accurate.
    assert [remark.kind for remark in remarks if remark.is_wrong] == []
    assert "does not claim that its number is accurate" in " ".join(str(remark) for remark in remarks)
    assert len(safe_list.read(str(tmp_path / "dst/_coldframe/safe-to-delete.txt")).lines) == 3
    command = ["migrate", str(DUMPS / name), str(tmp_path / "dst"), "--tables", "cold.no*"]
    assert main([*command, "--master", "in-process"]) == 2


def test_the_command_line_lists_a_dump(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["tables", str(DUMPS / "mysql.sql"), "--json"]) == 0
    tables = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    assert list(tables) == [f"cold.{name}" for name in ("a_view", "bucketed", "in_hbase", "notes", "sales")]
    assert (tables["cold.sales"]["partitions"], tables["cold.sales"]["partitions_outside"]) == (4, 1)
    assert main(["tables", f"{DUMPS / 'mysql.sql'}/cold.s*", "--write-tables", str(tmp_path / "t.toml")]) == 0
    assert "cold.sales" in (tmp_path / "t.toml").read_text()


def test_statements_replace_the_metastore_in_a_migration(tmp_path: Path) -> None:
    """No statement names the partitions: they come from the names of folders."""
    root, script = tmp_path / "wh", tmp_path / "tables.hql"
    script.write_text(
        f"""CREATE EXTERNAL TABLE `sales.orders`(`id` bigint, `what` string)
        PARTITIONED BY (`dt` date, `r` string)
        ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe'
        WITH SERDEPROPERTIES ('field.delim'='|') STORED AS RCFILE
        LOCATION 'file:{root}/orders'"""
    )
    schema = pa.schema([("id", pa.int64()), ("what", pa.string())])
    for place in ("dt=2014-01-01/r=a%2Fb", "dt=2014-01-02/r=c/k=1", "dt=2014-01-03", "other"):
        (root / "orders" / place).mkdir(parents=True)
        some = pa.table({"id": [1], "what": ["x"]}, schema=schema)
        how: dict[str, Any] = {"serde": "text", "serde_properties": {"field.delim": "|"}}
        cf.write(some, root / "orders" / place / "0", format="rcfile", **how)
    target = tmp_path / "dst"
    report = migrate(InProcess(), script, target)
    assert report.exit_code == 1
    remarks = [str(remark) for table in report.tables for remark in table.metastore]
    assert remarks == [
        f"sales.orders: 2 files in no registered partition, such as {root}/orders/dt=2014-01-03/0"
    ]
    (root / "orders/other/0").unlink()
    (root / "orders/dt=2014-01-03/0").unlink()
    report = migrate(InProcess(), script, target)
    assert report.exit_code == 0, summary(report)
    table = cf.hive_table(f"{script}/sales.orders")
    assert sorted((row["id"], str(row["dt"]), row["r"]) for row in table.read().to_pylist()) == [
        (1, "2014-01-01", "a/b"),
        (1, "2014-01-02", "c"),
    ]
    listed = safe_list.read(str(target / "_coldframe/safe-to-delete.txt"))
    assert sorted(line.path for line in listed.lines) == [
        f"{root}/orders/dt=2014-01-01/r=a%2Fb/0",
        f"{root}/orders/dt=2014-01-02/r=c/k=1/0",
    ]
    assert audit(before_delete=target / "_coldframe/safe-to-delete.txt").exit_code == 0
    folders = sorted(str(path.parent.relative_to(target)) for path in (target / "sales").rglob("*.parquet"))
    assert folders == ["sales/orders/dt=2014-01-01/r=a%2Fb", "sales/orders/dt=2014-01-02/r=c"]


MEASURE = """
import resource, sys, time
from coldframe.pipeline.source.defined import read_defined
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
found = read_defined(sys.argv[1])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(found.tables[0].parts), (after - before) // 1024, time.process_time() - started)
"""


def test_ten_thousand_partitions_of_fifty_columns(tmp_path: Path) -> None:
    """As Hive writes them: the dump repeats the columns for each partition."""
    path, orc = tmp_path / "x.sql", "org.apache.hadoop.hive.ql.io.orc.Orc"
    count = range(10_001)
    rows: dict[str, Any] = {
        "DBS": [(1, "db")],
        "TBLS": [(1, 1, "olga", 0, "t", "EXTERNAL_TABLE", "\\N")],
        "SDS": ((n, n, f"{orc}InputFormat", f"file:/wh/p={n}", -1, f"{orc}OutputFormat", n) for n in count),
        "COLUMNS_V2": ((n, "", f"c{at}", "bigint", at) for n in count for at in range(50)),
        "SERDES": ((n, f"{orc}Serde") for n in count),
        "SERDE_PARAMS": ((n, "serialization.format", "1") for n in count),
        "PARTITION_KEYS": [(1, "\\N", "p", "int", 0)],
        "PARTITIONS": ((n, n, 1) for n in count[1:]),
        "PARTITION_PARAMS": ((n, name, "1") for n in count[1:] for name in ("numRows", "numFiles")),
        "PARTITION_KEY_VALS": ((n, n, 0) for n in count[1:]),
    }
    with path.open("w") as file:
        for table, columns in TABLES.items():
            names = ", ".join(f'"{name}"' for name in columns.split())
            file.write(f'COPY public."{table}" ({names}) FROM stdin;\n')
            file.writelines("\t".join(map(str, row)) + "\n" for row in rows.get(table, ()))
            file.write("\\.\n")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    parts, mebibytes, seconds = done.stdout.split()
    assert int(parts) == 10_000
    assert int(mebibytes) < 200
    assert float(seconds) < 30


def test_a_dump_of_two_metastores_is_refused(tmp_path: Path) -> None:
    """Both count their tables from 1: one would get the other's files and columns."""
    whole = (DUMPS / "mysql.sql").read_text()
    (tmp_path / "both.sql").write_text(f"USE `prod`;\n{whole}\nUSE `test`;\n{whole}")
    with pytest.raises(cf.SchemaError, match=r"several databases .* prod and test"):
        definitions_in(tmp_path / "both.sql")
    (tmp_path / "twice.sql").write_text(f"{whole}\n{whole}")
    with pytest.raises(cf.SchemaError, match="created twice"):
        definitions_in(tmp_path / "twice.sql")
    (tmp_path / "named.sql").write_text(f"USE `prod`;\n{whole}")
    assert len(definitions_in(tmp_path / "named.sql")) == len(definitions_in(DUMPS / "mysql.sql"))
