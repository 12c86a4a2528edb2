"""Listing and reading tables by their definitions in a Hive metastore."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hive_estate import ORC, RC_TEXT, TEXT, HiveEstate, mixed
from servers import S3, HiveMetastore

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import ColdframeError
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import common_root, connect
from coldframe.hive.definition import Column, Definition, Storage
from coldframe.hive.locations import Locations
from coldframe.pipeline.source.tables import load_tables
from coldframe.spark.java import find_java


def neighbours(hive_estate: HiveEstate) -> None:
    """Registers tables that cannot be read."""
    hive_estate.table("notes", hive_estate.storage([("a", "int")], TEXT, "notes"))
    hive_estate.table("a_view", hive_estate.storage([("a", "int")], TEXT, None), kind="VIRTUAL_VIEW")
    hive_estate.table(
        "in_hbase",
        hive_estate.storage([("a", "string")], (None, None, "x.HBaseSerDe"), "hb"),
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
def test_addresses_of_tables_are_parsed(uri: str, selected: Selected) -> None:
    assert Selected.of(uri) == selected


@pytest.mark.parametrize("uri", ["h:1/s", "thrift:///s", "thrift://h/a/b", "thrift://h/a.", "thrift://h/.a"])
def test_invalid_addresses_are_refused(uri: str) -> None:
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
def test_the_common_directory_of_locations_is_the_deepest(locations: list[str], root: str) -> None:
    assert common_root(locations) == root


def test_the_definition_of_a_table_is_complete(hive_server: HiveMetastore, hive_estate: HiveEstate) -> None:
    mixed(hive_estate)
    with connect(hive_server.url) as metastore:
        table = metastore.definition("cold", "sales")
        partitions = list(metastore.partition_definitions(table))
    assert (table.kind, table.owner, table.comment) == ("EXTERNAL_TABLE", "olga", "all that was sold")
    assert table.keys == (Column("dt", "date", "the dt"), Column("region", "string", "the region"))
    assert table.storage.schema == "id bigint, price decimal(10,2), channel string"
    assert table.location == f"file:{hive_estate.root}/sales"
    assert table.has_partitions
    assert not table.is_transactional
    listed = [
        (partition.values, table.format_of(partition.storage), len(partition.storage.columns), partition.rows)
        for partition in partitions
    ]
    assert listed == [
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
    assert partitions[2].storage.location == f"file:{hive_estate.root}/elsewhere/x9"
    assert table.name_of(partitions[0]) == "dt=2014-01-01/region=asia/pacific"
    # Partitions with the same columns share the list of columns.
    assert partitions[0].storage.columns is partitions[1].storage.columns


def test_a_missing_table_is_an_error(hive_server: HiveMetastore, hive_estate: HiveEstate) -> None:
    with connect(hive_server.url) as metastore, pytest.raises(ColdframeError, match=r"cold\.nobody"):
        metastore.definition("cold", "nobody")


def test_the_command_line_lists_the_tables_of_a_metastore(
    hive_server: HiveMetastore, hive_estate: HiveEstate, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mixed(hive_estate)
    neighbours(hive_estate)
    hive_estate.table("plain", hive_estate.storage([("a", "int")], ORC, "plain"), numRows="7")
    toml = tmp_path / "tables.toml"
    command = ["tables", f"{hive_server.url}/cold", "--json", "--write-tables", str(toml)]
    assert main(command) == 0
    tables = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    assert list(tables) == [f"cold.{name}" for name in ("a_view", "in_hbase", "notes", "plain", "sales")]
    sales = tables["cold.sales"]
    assert (sales["formats"], sales["partitions"], sales["partitions_outside"]) == (["rcfile", "orc"], 4, 1)
    # One partition states no usable row count.
    assert (sales["rows"], tables["cold.plain"]["rows"]) == (None, 7)
    assert {name: table["left_out"] for name, table in tables.items()} == {
        "cold.a_view": "a view: it has no rows of its own",
        "cold.in_hbase": "kept by HBaseStorageHandler: open the files of that system instead",
        "cold.notes": "files of TextInputFormat are not read",
        "cold.plain": None,
        "cold.sales": None,
    }
    text = toml.read_text()
    assert text.startswith(f"# for SRC = file:{hive_estate.root}\n")
    assert "# cold.a_view: a view: it has no rows of its own" in text
    assert [(table.name, table.path) for table in load_tables(str(toml))] == [
        ("cold.plain", "plain"),
        ("cold.sales", "sales"),
    ]
    # An existing file is not overwritten.
    assert main(command) == 2


def test_the_command_line_prints_tables_for_people(
    hive_server: HiveMetastore, hive_estate: HiveEstate, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed(hive_estate)
    neighbours(hive_estate)
    assert main(["tables", f"{hive_server.url}/cold.*s"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[:4] for line in out.splitlines() if line.startswith("cold.")] == [
        ["cold.notes", "external", "TextInputFormat", f"file:{hive_estate.root}/notes"],
        ["cold.sales", "external", "rcfile,", "orc"],
    ]
    assert "cold.notes: files of TextInputFormat are not read" in err
    assert "cold.sales: 1 partitions lie outside its location" in err
    assert main(["tables", f"{hive_server.url}/cold.x*"]) == 2
    assert "no such tables" in capsys.readouterr().err
    assert main(["tables", f"{hive_server.url}/cold.x"]) == 2
    assert "cold.x" in capsys.readouterr().err


def test_spark_has_columns_that_hive_does_not_know() -> None:
    dummy = Storage((Column("col", "array<string>", "from deserializer"),), "file:/x")
    spark = {"spark.sql.sources.provider": "orc"}
    reason: Any = Definition("db", "t", storage=dummy, parameters=spark).left_out
    assert reason.startswith("a Spark table whose columns Hive does not know")
    assert Definition("db", "t", storage=dummy).left_out is None


# Read.


@pytest.fixture
def sales(hive_server: HiveMetastore, hive_estate: HiveEstate) -> str:
    """The address of a table with every kind of partition."""
    mixed(hive_estate)
    return f"{hive_server.url}/cold.sales"


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


DAYS = [dt.date(2014, 1, day) for day in (1, 2, 3)]
ALL = [
    (1, Decimal(1), None, DAYS[0], "asia/pacific"),
    (2, Decimal(2), None, DAYS[0], "asia/pacific"),
    (3, Decimal(3), None, DAYS[0], "eu"),
    (4, Decimal(4), "web", DAYS[1], "eu"),
    (5, Decimal(5), None, DAYS[1], "eu"),
    (6, Decimal(6), "shop", DAYS[1], "eu"),
]


def test_each_partition_follows_its_definition(sales: str) -> None:
    table = cf.hive_table(sales)
    assert table.schema == pa.schema(
        {
            "id": pa.int64(),
            "price": pa.decimal128(10, 2),
            "channel": pa.string(),
            "dt": pa.date32(),
            "region": pa.string(),
        }
    )
    assert table.partition_columns == ["dt", "region"]
    assert rows(table.read()) == ALL
    assert table.count() == 6
    assert len(table.files) == 3
    assert [partition.rows for partition in table.partitions()] == [2, 1, 3, None]
    assert rows(table.read(["region", "id"], limit=4))[1:] == [("asia/pacific", 2), ("eu", 3), ("eu", 4)]
    assert "cold.sales: id, price" in repr(table)
    assert pa.table(table).num_rows == 6


FILTERS = {
    "dt = '2014-01-02'": ALL[3:],
    "region = 'asia/pacific' and id > 1": ALL[1:2],
    "channel is null and region = 'eu'": [ALL[2], ALL[4]],
    "channel = 'web'": ALL[3:4],
    "id in (1, 6)": [ALL[0], ALL[5]],
    "region is null": [],
    "dt > '2015-01-01'": [],
}


@pytest.mark.parametrize("filter", list(FILTERS))
def test_filters_select_rows_of_every_partition(sales: str, filter: str) -> None:
    table = cf.hive_table(sales)
    assert rows(table.read(filter=filter)) == FILTERS[filter]
    assert table.count(filter) == len(FILTERS[filter])
    assert rows(cf.hive_table(sales, filter=filter).read()) == FILTERS[filter]
    assert [row[0] for row in rows(table.read(["id"], filter=filter))] == [row[0] for row in FILTERS[filter]]


def test_filters_combine(sales: str) -> None:
    table = cf.hive_table(sales, filter="region = 'eu'")
    assert rows(table.read(filter="id > 5")) == ALL[5:]
    assert (
        rows(cf.hive_table(sales, filter=pc.field("region") == "eu").read(filter=pc.field("id") > 5))
        == ALL[5:]
    )
    with pytest.raises(cf.UnsupportedError, match="together with a pyarrow expression"):
        table.read(filter=pc.field("id") > 5)
    with pytest.raises(cf.SchemaError, match="nobody"):
        cf.hive_table(sales, filter="nobody = 1")


@pytest.mark.parametrize(
    "filter", ["region = 'asia/pacific'", pc.field("region") == "asia/pacific"], ids=["sql", "expression"]
)
def test_pruned_partitions_are_not_touched(sales: str, hive_estate: HiveEstate, filter: Any) -> None:
    shutil.rmtree(hive_estate.root / "elsewhere")
    shutil.rmtree(hive_estate.root / "sales/b")
    table = cf.hive_table(sales)
    assert rows(table.read(filter=filter)) == ALL[:2]
    assert [partition.values for partition in table.partitions(filter)] == [("2014-01-01", "asia/pacific")]
    # Hive would fail as well: a missing directory is not an empty directory.
    with pytest.raises(cf.NotFoundError, match="sales/b"):
        table.read()


def test_scan_takes_the_address_of_a_table(sales: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = cf.scan(sales)
    assert rows(table.read()) == ALL
    assert isinstance(table, cf.HiveDataset)
    # RCFile files have no row count.
    assert table.num_rows is None
    assert table.format == "rcfile"
    again = pickle.loads(pickle.dumps(cf.hive_table(sales, filter="id = 4")))
    assert rows(again.read()) == ALL[3:4]
    assert again.num_rows is None
    assert "cold.sales" in table._repr_html_()
    for what in (lambda: cf.scan(sales, row_index="n"), lambda: list(table.parts())):
        with pytest.raises(cf.UnsupportedError, match=r"of a (table|metastore)|with a table"):
            what()
    assert main(["count", sales]) == 0
    assert capsys.readouterr().out.split() == ["6"]
    assert main(["head", sales, "-c", "id,region", "--where", "channel = 'web'", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ['"id","region"', '4,"eu"']


def test_files_that_were_copied_are_read_at_their_new_location(
    sales: str, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    (tmp_path / "wh").rename(tmp_path / "copy")
    table = cf.hive_table(sales, location={f"file:{tmp_path}/wh/": f"{tmp_path}/copy"})
    assert rows(table.read()) == ALL


def test_files_that_were_copied_to_a_store_are_read_there(
    sales: str, hive_estate: HiveEstate, s3: S3
) -> None:
    shutil.copytree(hive_estate.root, s3.root / "wh")
    shutil.rmtree(hive_estate.root)
    table = cf.hive_table(
        sales,
        location={f"file:{hive_estate.root}": "s3a://data/wh"},
        storage_options=s3.options,
    )
    # A store has no empty directories; the partition has no rows.
    assert rows(table.read()) == ALL
    assert rows(table.read(filter="region = 'asia/pacific'")) == ALL[:2]
    assert all(path.startswith("s3a://data/wh/") for path in table.files)


def test_engines_read_the_table(sales: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("data", cf.hive_table(sales).to_dataset())
    result = connection.sql("select region, sum(id) from data where dt < '2014-01-03' group by 1 order by 1")
    assert result.fetchall() == [("asia/pacific", 3), ("eu", 18)]


def test_a_partition_in_another_format(sales: str, hive_estate: HiveEstate) -> None:
    hive_estate.partition(
        "sales", ["2015-01-01", "eu"], hive_estate.storage([("id", "bigint")], TEXT, "sales/text")
    )
    table = cf.hive_table(sales)
    named = "sales dt=2015-01-01/region=eu: files of TextInputFormat"
    with pytest.raises(cf.UnsupportedError, match=named):
        table.read()
    assert rows(table.read(filter="dt < '2015-01-01'")) == ALL


ORC_FILES = {
    # The table has x, b, c; the partition names its two columns a, b.
    "by-name": ({"b": [1, 2], "a": [3, 4]}, [(None, 1, None), (None, 2, None)]),
    "in-any-case": ({"B": [1, 2], "X": [3, 4]}, [(3, 1, None), (4, 2, None)]),
    "by-position": ({"_col0": [1, 2], "_col1": [3, 4]}, [(1, 3, None), (2, 4, None)]),
    "more-than-the-partition": ({"x": [1, 2], "b": [3, 4], "c": ["v", "w"]}, [(1, 3, "v"), (2, 4, "w")]),
}


@pytest.mark.parametrize("which", list(ORC_FILES))
def test_columns_of_orc_are_matched_as_in_hive(
    hive_server: HiveMetastore, hive_estate: HiveEstate, which: str
) -> None:
    """Columns are matched as Hive and Spark match them: see `test_spark_reads_the_same`."""
    of_file, expected = ORC_FILES[which]
    orc_table(hive_estate, "t", of_file)
    table = cf.hive_table(f"{hive_server.url}/cold.t")
    assert rows(table.read()) == [(*row, 1) for row in expected]
    passing = [(b,) for x, b, c in expected if (x or 0) > 1 and c is None]
    assert rows(table.read(["b"], filter="x > 1 and c is null")) == passing
    assert table.count("x = 1") == sum(row[0] == 1 for row in expected)


def orc_table(estate: HiveEstate, name: str, of_file: dict[str, Any]) -> None:
    columns = [("x", "bigint"), ("b", "bigint"), ("c", "string")]
    estate.file(f"{name}/p=1/000000_0", of_file, format="orc")
    estate.table(name, estate.storage(columns, ORC, name), [("p", "int")])
    before = estate.storage([("a", "bigint"), ("b", "bigint")], ORC, f"{name}/p=1")
    estate.partition(name, ["1"], before)


SPARK = """
import json, sys
from pyspark.sql import SparkSession
url, *names = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": url,
    # Hive's own reader of ORC, by the SerDes of the partitions.
    "spark.sql.hive.convertMetastoreOrc": "false",
}
builder = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print(json.dumps({name: sorted(repr(tuple(row)) for row in spark.table(name).collect()) for name in names}))
"""


def test_spark_reads_the_same(sales: str, hive_server: HiveMetastore, hive_estate: HiveEstate) -> None:
    """The reference is Spark with Hive's readers, over the same metastore."""
    names = ["cold.sales"]
    for number, (which, (of_file, _)) in enumerate(ORC_FILES.items()):
        # Hive 2.3 distinguishes case; Hive 3 and Spark's reader do not.
        if which != "in-any-case":
            orc_table(hive_estate, f"t{number}", of_file)
            names.append(f"cold.t{number}")
    done = subprocess.run(
        [sys.executable, "-c", SPARK, hive_server.url, *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=hive_estate.root,
        env={**os.environ, "JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    for name in names:
        ours = rows(cf.hive_table(f"{hive_server.url}/{name}").read())
        assert sorted(map(repr, ours)) == theirs[name], name


def test_types_widen_and_do_not_narrow(hive_server: HiveMetastore, hive_estate: HiveEstate) -> None:
    hive_estate.file("w/000000_0", {"a": pa.array([1, 2], pa.int32())}, format="orc")
    hive_estate.table("w", hive_estate.storage([("a", "bigint")], ORC, "w"))
    hive_estate.table("n", hive_estate.storage([("a", "date")], ORC, "w"))
    assert cf.hive_table(f"{hive_server.url}/cold.w").read()["a"].to_pylist() == [1, 2]
    assert cf.hive_table(f"{hive_server.url}/cold.w").schema.field("a").type == pa.int64()
    with pytest.raises(cf.SchemaError, match="a"):
        cf.hive_table(f"{hive_server.url}/cold.n").read()


def test_damage_is_reported(sales: str, hive_estate: HiveEstate) -> None:
    broken = hive_estate.root / "elsewhere/x9/000000_0"
    data = bytearray(broken.read_bytes())
    data[3 : len(data) // 2] = bytes(len(data) // 2 - 3)
    broken.write_bytes(data)
    table = cf.hive_table(sales)
    with pytest.raises(cf.CorruptFileError):
        table.read()
    assert len(table.read(on_error="skip")) == 3
    assert {entry["path"] for entry in table.damage} == {str(broken)}


def test_unreadable_tables_are_refused_with_a_reason(
    hive_server: HiveMetastore, hive_estate: HiveEstate
) -> None:
    neighbours(hive_estate)
    for name, reason in (("a_view", "a view"), ("in_hbase", "kept by HBaseStorageHandler")):
        with pytest.raises(cf.UnsupportedError, match=reason):
            cf.hive_table(f"{hive_server.url}/cold.{name}")
    with pytest.raises(cf.UnsupportedError, match=r"cold\.notes: files of TextInputFormat"):
        cf.hive_table(f"{hive_server.url}/cold.notes").read()
    for uri in (hive_server.url, f"{hive_server.url}/cold", f"{hive_server.url}/cold.*"):
        with pytest.raises(ValueError, match=r"expected thrift://host:9083/database\.table"):
            cf.hive_table(uri)


@pytest.mark.parametrize(
    ("location", "readable"),
    [
        ("file:/wh/t", "/wh/t"),
        ("file:///wh/t/", "/wh/t"),
        ("hdfs:/wh/t", "hdfs:///wh/t"),
        ("hdfs://old/wh/t", "/mnt/wh/t"),
        ("hdfs://old/wh/deep/t", "s3://b/t"),
        ("hdfs://older/wh/t", "hdfs://older/wh/t"),
        ("s3a://b/wh/p=a%2Fb", "s3a://b/wh/p=a%2Fb"),
    ],
)
def test_locations_are_mapped(location: str, readable: str) -> None:
    moved = {"hdfs://old/": "/mnt/", "hdfs://old/wh/deep": "s3://b"}
    assert Locations(moved).readable(location) == readable


@pytest.mark.parametrize("by_partition", [False, True], ids=["whole", "by-partition"])
def test_transactional_tables_give_their_live_rows(
    hive_server: HiveMetastore, hive_estate: HiveEstate, by_partition: bool
) -> None:
    source = Path(__file__).parents[1] / "data/hive/files/major"
    place = "t/p=7" if by_partition else "t"
    shutil.copytree(source, hive_estate.root / place)
    live = cf.open(source)
    kinds = {pa.int64(): "bigint", pa.string(): "string", pa.float64(): "double"}
    columns = [(field.name, kinds[field.type]) for field in live.schema]
    of_table = hive_estate.storage(columns, ORC, "t")
    of_table.numBuckets, of_table.bucketCols = 2, [columns[0][0]]
    keys = [("p", "int")] if by_partition else []
    hive_estate.table("t", of_table, keys, kind="MANAGED_TABLE", transactional="true")
    if by_partition:
        hive_estate.partition("t", ["7"], hive_estate.storage(columns, ORC, place))
    table = cf.hive_table(f"{hive_server.url}/cold.t")
    assert table.count() == live.count()
    assert table.read(live.schema.names).equals(live.read())
    assert set(table.read(table.partition_columns).to_pylist()[0].items()) == (
        {("p", 7)} if by_partition else set()
    )
