"""Tables as a Hive metastore defines them: listed, and read."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hive_estate import ORC, RC_TEXT, TEXT, HiveEstate, mixed
from servers import HiveMetastore

from coldframe.cli import main
from coldframe.errors import ColdframeError
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import common_root, connect
from coldframe.hive.definition import Column, Definition, Storage
from coldframe.pipeline.source.tables import load_tables

pytest.importorskip("thrift")
# pyiceberg brings Hive's generated code along.
hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
protocols = importlib.import_module("thrift.protocol.TBinaryProtocol")
sockets = importlib.import_module("thrift.transport.TSocket")
transports = importlib.import_module("thrift.transport.TTransport")


@pytest.fixture
def estate(hive_server: HiveMetastore, tmp_path: Path) -> Iterator[HiveEstate]:
    """An empty database, gone with the test."""
    transport = transports.TBufferedTransport(sockets.TSocket("127.0.0.1", hive_server.port))
    transport.open()
    made = HiveEstate(hive.Client(protocols.TBinaryProtocol(transport)), tmp_path / "wh")
    yield made
    made.drop()
    transport.close()


def neighbours(estate: HiveEstate) -> None:
    """What is not read."""
    estate.table("notes", estate.storage([("a", "int")], TEXT, "notes"))
    estate.table("a_view", estate.storage([("a", "int")], TEXT, None), kind="VIRTUAL_VIEW")
    estate.table(
        "in_hbase",
        estate.storage([("a", "string")], (None, None, "x.HBaseSerDe"), "hb"),
        storage_handler="org.apache.hadoop.hive.hbase.HBaseStorageHandler",
    )


@pytest.mark.parametrize(
    ("uri", "selected"),
    [
        ("thrift://h", Selected("thrift://h")),
        ("thrift://h:1/", Selected("thrift://h:1")),
        ("thrift://h:1/Sales", Selected("thrift://h:1", "sales")),
        ("thrift://h:1/sales.o*", Selected("thrift://h:1", "sales", "o*")),
        ("thrift://a:1,thrift://b:2/s.t", Selected("thrift://a:1,thrift://b:2", "s", "t")),
    ],
)
def test_addresses_of_tables(uri: str, selected: Selected) -> None:
    assert Selected.of(uri) == selected


@pytest.mark.parametrize("uri", ["h:1/s", "thrift:///s", "thrift://h/a/b", "thrift://h/a.", "thrift://h/.a"])
def test_what_is_no_address(uri: str) -> None:
    with pytest.raises(ValueError, match="metastore"):
        Selected.of(uri)


@pytest.mark.parametrize(
    ("locations", "root"),
    [
        (["hdfs://nn/wh/a", "hdfs://nn/wh/b/c"], "hdfs://nn/wh"),
        (["file:/wh/a"], "file:/wh"),
        (["hdfs://nn/wh", "hdfs://mm/wh"], ""),
        (["hdfs://nn/wh", "file:/wh"], ""),
        ([], ""),
    ],
)
def test_the_directory_that_holds_all(locations: list[str], root: str) -> None:
    assert common_root(locations) == root


def test_a_definition_is_whole(hive_server: HiveMetastore, estate: HiveEstate) -> None:
    mixed(estate)
    with connect(hive_server.url) as metastore:
        table = metastore.definition("cold", "sales")
        partitions = list(metastore.partition_definitions(table))
    assert (table.kind, table.owner, table.comment) == ("EXTERNAL_TABLE", "olga", "all that was sold")
    assert table.keys == (Column("dt", "date", "the dt"), Column("region", "string", "the region"))
    assert table.storage.schema == "id bigint, price decimal(10,2), channel string"
    assert table.location == f"file:{estate.root}/sales"
    assert table.has_partitions
    assert not table.is_transactional
    told = [
        (one.values, table.format_of(one.storage), len(one.storage.columns), one.rows) for one in partitions
    ]
    assert told == [
        (("2014-01-01", "asia/pacific"), "rcfile", 2, 2),
        (("2014-01-01", "eu"), "rcfile", 2, 1),
        (("2014-01-02", "eu"), "orc", 3, 3),
        (("2014-01-03", "__HIVE_DEFAULT_PARTITION__"), "rcfile", 3, None),
    ]
    assert partitions[0].storage.options("rcfile") == {
        "schema": "id bigint, price decimal(10,2)",
        "serde": RC_TEXT[2],
        "serde_properties": {"field.delim": "|"},
    }
    assert partitions[2].storage.options("orc") == {}
    assert partitions[2].storage.location == f"file:{estate.root}/elsewhere/x9"
    assert table.name_of(partitions[0]) == "dt=2014-01-01/region=asia/pacific"
    # Those that have the same columns share them.
    assert partitions[0].storage.columns is partitions[1].storage.columns


def test_a_table_that_is_not_there(hive_server: HiveMetastore, estate: HiveEstate) -> None:
    with connect(hive_server.url) as metastore, pytest.raises(ColdframeError, match=r"cold\.nobody"):
        metastore.definition("cold", "nobody")


def test_the_command_line_lists_them(
    hive_server: HiveMetastore, estate: HiveEstate, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mixed(estate)
    neighbours(estate)
    estate.table("plain", estate.storage([("a", "int")], ORC, "plain"), numRows="7")
    toml = tmp_path / "tables.toml"
    command = ["tables", f"{hive_server.url}/cold", "--json", "--write-tables", str(toml)]
    assert main(command) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert list(found) == [f"cold.{name}" for name in ("a_view", "in_hbase", "notes", "plain", "sales")]
    sales = found["cold.sales"]
    assert (sales["formats"], sales["partitions"], sales["partitions_outside"]) == (["rcfile", "orc"], 4, 1)
    # One partition states no number that means anything.
    assert (sales["rows"], found["cold.plain"]["rows"]) == (None, 7)
    assert {name: one["left_out"] for name, one in found.items()} == {
        "cold.a_view": "a view: it has no rows of its own",
        "cold.in_hbase": "kept by HBaseStorageHandler: open the files of that system instead",
        "cold.notes": "files of TextInputFormat are not read",
        "cold.plain": None,
        "cold.sales": None,
    }
    text = toml.read_text()
    assert text.startswith(f"# for SRC = file:{estate.root}\n")
    assert "# cold.a_view: a view: it has no rows of its own" in text
    assert [(one.name, one.path) for one in load_tables(str(toml))] == [
        ("cold.plain", "plain"),
        ("cold.sales", "sales"),
    ]
    # Nothing is written over.
    assert main(command) == 2


def test_the_command_line_for_people(
    hive_server: HiveMetastore, estate: HiveEstate, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed(estate)
    neighbours(estate)
    assert main(["tables", f"{hive_server.url}/cold.*s"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[:4] for line in out.splitlines() if line.startswith("cold.")] == [
        ["cold.notes", "external", "TextInputFormat", f"file:{estate.root}/notes"],
        ["cold.sales", "external", "rcfile,", "orc"],
    ]
    assert "cold.notes: files of TextInputFormat are not read" in err
    assert "cold.sales: 1 partitions lie elsewhere" in err
    assert main(["tables", f"{hive_server.url}/cold.x*"]) == 2
    assert "no such tables" in capsys.readouterr().err
    assert main(["tables", f"{hive_server.url}/cold.x"]) == 2
    assert "cold.x" in capsys.readouterr().err


def test_spark_has_columns_that_hive_does_not_know() -> None:
    dummy = Storage((Column("col", "array<string>", "from deserializer"),), "file:/x")
    spark = {"spark.sql.sources.provider": "orc"}
    told: Any = Definition("db", "t", storage=dummy, parameters=spark).left_out
    assert told.startswith("a table of Spark's whose columns Hive does not know")
    assert Definition("db", "t", storage=dummy).left_out is None
