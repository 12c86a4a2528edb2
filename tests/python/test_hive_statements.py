"""Definitions from Hive's statements."""

from __future__ import annotations

from pathlib import Path

import pytest

import coldframe as cf
from coldframe.hive.ddl import parse_statements
from coldframe.hive.definition import Column
from coldframe.hive.dumps import read_dump
from coldframe.hive.reader import MetastoreRefusal, Refused

SHOWN = r"""
+----------------------------------------------------+
|                   createtab_stmt                   |
+----------------------------------------------------+
| CREATE EXTERNAL TABLE `sales.orders`(              |
|   `id` bigint COMMENT 'it\'s the id',              |
|   `when` timestamp,                                |
|   `m` map<string,array<struct<x:int,`y z`:string>>> COMMENT '') |
| COMMENT 'all'                                      |
| PARTITIONED BY (                                   |
|   `dt` date COMMENT 'day',                         |
|   `r` string)                                      |
| CLUSTERED BY ( id) SORTED BY ( id ASC, when DESC) INTO 4 BUCKETS |
| ROW FORMAT SERDE                                   |
|   'org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe'  |
| WITH SERDEPROPERTIES (                             |
|   'field.delim'='\u0001',                          |
|   'serialization.format'='|')                      |
| STORED AS INPUTFORMAT                              |
|   'org.apache.hadoop.hive.ql.io.RCFileInputFormat' |
| OUTPUTFORMAT                                       |
|   'org.apache.hadoop.hive.ql.io.RCFileOutputFormat' |
| LOCATION                                           |
|   'hdfs://nn/wh/orders'                            |
| TBLPROPERTIES (                                    |
|   'transient_lastDdlTime'='1', 'numRows'='5')      |
+----------------------------------------------------+
22 rows selected (0.1 seconds)
"""

SCRIPT = r"""
CREATE DATABASE other COMMENT 'x';
USE Other;
CREATE TABLE IF NOT EXISTS T (A int, b DECIMAL(10, 2) NOT NULL, PRIMARY KEY (a) DISABLE NOVALIDATE)
  PARTITIONED BY (p string) STORED AS ORC LOCATION '/x' -- what lies there
CREATE VIEW v AS SELECT * FROM t WHERE a = ';' AND b IN (1);
ALTER TABLE t ADD IF NOT EXISTS PARTITION (p='1') LOCATION '/x/1' PARTITION (P = 'a/b') LOCATION '/y';
CREATE TABLE hive.db.s (a INT COMMENT 'x', p STRING) USING orc OPTIONS (path '/z') PARTITIONED BY (p)
CREATE TABLE d (a array<int>) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\'
  COLLECTION ITEMS TERMINATED BY '|' MAP KEYS TERMINATED BY ':' LINES TERMINATED BY '\n'
  NULL DEFINED AS '\\N' STORED AS RCFILE;
CREATE TABLE h (k string) STORED BY 'org.apache.hadoop.hive.hbase.HBaseStorageHandler'
  WITH SERDEPROPERTIES ('hbase.columns.mapping'=':key') TBLPROPERTIES ('hbase.table.name'='ns:t');
"""


def test_the_output_of_show_create_table_is_parsed() -> None:
    made = parse_statements(SHOWN, "x.hql")
    table = made.tables["sales", "orders"]
    storage = table.storage
    assert (table.kind, table.comment, table.rows, table.format) == ("EXTERNAL_TABLE", "all", 5, "rcfile")
    assert storage.columns == (
        Column("id", "bigint", "it's the id"),
        Column("when", "timestamp"),
        Column("m", "map<string,array<struct<x:int,`y z`:string>>>", ""),
    )
    assert table.keys == (Column("dt", "date", "day"), Column("r", "string"))
    assert (storage.buckets, storage.bucketed_by) == (4, ("id",))
    assert storage.sorted_by == (("id", True), ("when", False))
    assert storage.serde_properties == {"field.delim": "\x01", "serialization.format": "|"}
    assert storage.location == "hdfs://nn/wh/orders"


def test_a_script_of_statements_is_parsed() -> None:
    made = parse_statements(SCRIPT, "x.hql")
    assert list(made.tables) == [
        ("other", "t"),
        ("other", "v"),
        ("db", "s"),
        ("other", "d"),
        ("other", "h"),
    ]
    table = made.tables["other", "t"]
    assert table.storage.schema == "a int, b decimal(10,2)"
    assert [
        (partition.values, partition.storage.location) for partition in made.partitions["other", "t"]
    ] == [
        (("1",), "/x/1"),
        (("a/b",), "/y"),
    ]
    assert made.tables["other", "v"].is_view
    spark = made.tables["db", "s"]
    assert (spark.format, spark.location, spark.storage.schema) == ("orc", "/z", "a int")
    assert spark.keys == (Column("p", "string"),)
    delimited = made.tables["other", "d"].storage
    assert delimited.serde is None
    assert delimited.serde_properties == {
        "field.delim": ",",
        "serialization.format": ",",
        "escape.delim": "\\",
        "collection.delim": "|",
        "mapkey.delim": ":",
        "line.delim": "\n",
        "serialization.null.format": "\\N",
    }
    handler = made.tables["other", "h"].left_out or ""
    assert "HBaseStorageHandler" in handler


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (a int", "after a column, found the end"),
        ("CREATE TABLE t (a) STORED AS ORC", "line 1: expected the type of a, found '\\)'"),
        ("DROP TABLE t", "expected CREATE TABLE, .* found the end"),
        ("FOO TABLE t", "expected CREATE TABLE, .* found 'FOO'"),
        ("CREATE TABLE t (a int)\nFOO", "line 2: expected a clause of CREATE TABLE, found 'FOO'"),
        ("CREATE TABLE t (a int) LOCATION x", "expected a text in quotes, found 'x'"),
        ("CREATE TABLE t (a int) \x01", "expected a Hive statement"),
        ("CREATE TABLE t (\na int COMMENT '\udcfe')", "line 2: not UTF-8"),
        ("CREATE TABLE t (a int) CLUSTERED BY (a) INTO many BUCKETS", "a number of buckets, found 'many'"),
        ("CREATE TABLE t (a int) CREATE TABLE default.t (b int)", "default.t is defined twice"),
        ("ALTER TABLE t ADD PARTITION (p=1)", "no CREATE TABLE of default.t"),
        ("CREATE TABLE t (a int) PARTITIONED BY (p int) ALTER TABLE t ADD PARTITION (p=1)", "LOCATION"),
        ("CREATE TABLE t (a int) PARTITIONED BY (p int) ALTER TABLE t ADD PARTITION (q=1)", "each of p"),
    ],
)
def test_invalid_statements_are_refused(text: str, expected: str) -> None:
    with pytest.raises(cf.SchemaError, match=expected):
        parse_statements(text, "x.hql")


def test_unregistered_partitions_come_from_folders(tmp_path: Path) -> None:
    (tmp_path / "x.hql").write_text(SHOWN + SCRIPT)
    with read_dump(str(tmp_path / "x.hql")) as dump:
        assert dump.databases() == ["db", "other", "sales"]
        assert dump.definition("sales", "orders").by_folders
        table = dump.definition("other", "t")
        assert not table.by_folders
        assert dump.partition_names(table) == ["p=1", "p=a%2Fb"]
        assert [partition.values for partition in dump.partition_definitions(table, ["p=a%2Fb"])] == [
            ("a/b",)
        ]


ODD = {
    "skewed": "CREATE TABLE o (a int) SKEWED BY (a) ON (1, 2) STORED AS DIRECTORIES LOCATION '/o';",
    "set": "CREATE TABLE o (a int) LOCATION '/o';\nALTER TABLE o SET LOCATION '/elsewhere';",
    "rename": "CREATE TABLE o (a int) LOCATION '/o';\nALTER TABLE o RENAME TO p;",
    "as": "CREATE TABLE o LOCATION '/o' AS SELECT 1;",
    "like": "CREATE TABLE o LIKE nothing;",
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_an_unknown_statement_costs_its_own_table(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "x.hql"
    path.write_text(f"{odd}\nCREATE TABLE t (x bigint) STORED AS ORC LOCATION '/t';\n")
    with read_dump(str(path)) as dump:
        assert dump.definition("default", "t").storage.schema == "x bigint"
        names = {table.name: isinstance(table, Refused) for table in dump.definitions("default")}
        assert names == {"o": True, "t": False}
        with pytest.raises(MetastoreRefusal, match=r"x\.hql"):
            dump.definition("default", "o")


def test_statements_that_change_no_definition_are_skipped() -> None:
    made = parse_statements(
        "SET hive.exec.dynamic.partition=true;\nDROP TABLE IF EXISTS t;\n"
        "CREATE TABLE t (a int) PARTITIONED BY (p string) SKEWED BY (a) ON (1) "
        "STORED AS ORC LOCATION '/t/';\n"
        "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (a) DISABLE NOVALIDATE;\nMSCK REPAIR TABLE t\n"
        "ALTER TABLE t ADD PARTITION (p='a/b');\nINSERT INTO t SELECT * FROM other;\n"
        "CREATE TABLE u LIKE t LOCATION '/u';\nCREATE TABLE gone (a int);\nDROP TABLE gone;\n"
        "CREATE EXTERNAL TABLE i (a int) SORT BY LEXICAL (a) STORED AS ORC LOCATION '/i';\n"
        "CREATE TABLE ice (a int) PARTITIONED BY SPEC (bucket(4, a)) STORED BY 'x.HiveIceberg';",
        "x.hql",
    )
    assert sorted(name for _, name in made.tables) == ["i", "ice", "t", "u"]
    assert not made.refused
    [partition] = made.partitions["default", "t"]
    assert (partition.values, partition.storage.location) == (("a/b",), "/t/p=a%2Fb")
    like = made.tables["default", "u"]
    assert (like.storage.location, like.format, [key.name for key in like.keys]) == ("/u", "orc", ["p"])
