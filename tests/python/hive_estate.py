"""Tables that a Hive metastore defines, registered over Thrift."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import coldframe as cf

_HIVE = "org.apache.hadoop.hive."
ORC = (
    f"{_HIVE}ql.io.orc.OrcInputFormat",
    f"{_HIVE}ql.io.orc.OrcOutputFormat",
    f"{_HIVE}ql.io.orc.OrcSerde",
)
_RC = (f"{_HIVE}ql.io.RCFileInputFormat", f"{_HIVE}ql.io.RCFileOutputFormat")
RC_TEXT = (*_RC, f"{_HIVE}serde2.columnar.ColumnarSerDe")
RC_BINARY = (*_RC, f"{_HIVE}serde2.columnar.LazyBinaryColumnarSerDe")
TEXT = (
    "org.apache.hadoop.mapred.TextInputFormat",
    f"{_HIVE}ql.io.HiveIgnoreKeyTextOutputFormat",
    f"{_HIVE}serde2.lazy.LazySimpleSerDe",
)
ACCURATE = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numFiles": "1", "totalSize": "1"}
"""The claim that `numRows` is accurate.

A metastore withdraws the claim if it has to count the files itself.
"""
Columns = Sequence[tuple[str, str]]


@contextlib.contextmanager
def hive_client(hive: Any, port: int) -> Iterator[Any]:
    """A client from Hive's generated code."""
    protocol = importlib.import_module("thrift.protocol.TBinaryProtocol")
    socket = importlib.import_module("thrift.transport.TSocket")
    transport = importlib.import_module("thrift.transport.TTransport")
    connection = transport.TBufferedTransport(socket.TSocket("127.0.0.1", port))
    connection.open()
    try:
        yield hive.Client(protocol.TBinaryProtocol(connection))
    finally:
        connection.close()


class HiveRecords:
    """Makes Hive's records of the tables and partitions of a database, without registering them."""

    def __init__(self, database: str) -> None:
        self.types = importlib.import_module("hive_metastore.ttypes")
        self.database = database

    def columns(self, columns: Columns) -> list[Any]:
        return [self.types.FieldSchema(name, kind, f"the {name}") for name, kind in columns]

    def storage(
        self, columns: Columns, classes: tuple[str | None, ...], location: str | None, **properties: str
    ) -> Any:
        input_format, output_format, serde = classes
        return self.types.StorageDescriptor(
            cols=self.columns(columns),
            location=location,
            inputFormat=input_format,
            outputFormat=output_format,
            compressed=False,
            numBuckets=-1,
            serdeInfo=self.types.SerDeInfo(None, serde, properties),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def table(
        self, name: str, storage: Any, keys: Columns = (), kind: str = "EXTERNAL_TABLE", **parameters: str
    ) -> Any:
        external = {"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {}
        return self.types.Table(
            tableName=name,
            dbName=self.database,
            owner="olga",
            createTime=0,
            lastAccessTime=0,
            retention=0,
            sd=storage,
            partitionKeys=self.columns(keys),
            parameters={**external, **parameters},
            tableType=kind,
        )

    def partition(self, table: str, values: list[str], storage: Any, **parameters: str) -> Any:
        return self.types.Partition(
            values=values,
            dbName=self.database,
            tableName=table,
            createTime=0,
            lastAccessTime=0,
            sd=storage,
            parameters=parameters,
        )


class HiveEstate:
    """A database `cold`, and the directory of its files."""

    def __init__(self, client: Any, root: Path, url: str | None = None) -> None:
        """`url`: the directory's location in the metastore, if it differs from `root`."""
        self.records = HiveRecords("cold")
        self.client, self.root = client, root
        self.url = f"file:{root}" if url is None else url
        client.create_database(self.records.types.Database(name="cold", locationUri=f"{self.url}/cold"))

    def storage(
        self, columns: Columns, classes: tuple[str | None, ...], location: str | None, **properties: str
    ) -> Any:
        """`location`: a URL, or a path below the root."""
        place = location if location is None or ":" in location else f"{self.url}/{location}"
        return self.records.storage(columns, classes, place, **properties)

    def table(
        self, name: str, storage: Any, keys: Columns = (), kind: str = "EXTERNAL_TABLE", **parameters: str
    ) -> Any:
        """Registers a table."""
        table = self.records.table(name, storage, keys, kind, **parameters)
        if kind == "VIRTUAL_VIEW":
            table.viewOriginalText = table.viewExpandedText = "select 1"
        self.client.create_table(table)
        return table

    def partition(self, table: str, values: list[str], storage: Any, **parameters: str) -> None:
        """Registers a partition."""
        self.client.add_partition(self.records.partition(table, values, storage, **parameters))

    def file(self, name: str, rows: dict[str, Any], schema: Any = None, **options: Any) -> Path:
        """Writes a file below the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cf.write(pa.table(rows, schema=schema), path, **options)
        return path

    def registered(self, name: str) -> Any:
        """A table of the metastore, by a call that Hive 4 has too."""
        return self.client.get_table_req(self.records.types.GetTableRequest("cold", name)).table

    def drop(self) -> None:
        """Drops the database."""
        self.client.drop_database("cold", False, True)
        for name in self.client.get_all_tables("default"):
            self.client.drop_table("default", name, False)


def mixed(estate: HiveEstate) -> None:
    """`cold.sales`: four partitions in three formats, one outside the table's directory, one empty."""
    now = [("id", "bigint"), ("price", "decimal(10,2)"), ("channel", "string")]
    before = now[:2]
    decimals = pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2))])
    whole = pa.schema([*decimals, ("channel", pa.string())])
    estate.table(
        "sales",
        estate.storage(now, RC_BINARY, "sales"),
        [("dt", "date"), ("region", "string")],
        comment="all that was sold",
    )
    estate.file(
        "sales/a/000000_0",
        {"id": [1, 2], "price": [1, 2]},
        decimals,
        format="rcfile",
        serde="text",
        serde_properties={"field.delim": "|"},
    )
    pipe = estate.storage(before, RC_TEXT, "sales/a", **{"field.delim": "|"})
    estate.partition("sales", ["2014-01-01", "asia/pacific"], pipe, numRows="2")
    estate.file("sales/b/000000_0", {"id": [3], "price": [3]}, decimals, format="rcfile", serde="binary")
    estate.partition("sales", ["2014-01-01", "eu"], estate.storage(before, RC_BINARY, "sales/b"), numRows="1")
    named = {"id": [4, 5, 6], "price": [4, 5, 6], "channel": ["web", None, "shop"]}
    estate.file("elsewhere/x9/000000_0", named, whole, format="orc")
    estate.partition("sales", ["2014-01-02", "eu"], estate.storage(now, ORC, "elsewhere/x9"), numRows="3")
    (estate.root / "sales/d").mkdir()
    null = ["2014-01-03", "__HIVE_DEFAULT_PARTITION__"]
    estate.partition("sales", null, estate.storage(now, RC_BINARY, "sales/d"), numRows="0")


@contextlib.contextmanager
def spark_over(url: str) -> Iterator[Any]:
    """A Spark session with the tables of a metastore."""
    sql = importlib.import_module("pyspark.sql")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[1]").appName("metastore")
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": url,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Hive's timestamps follow Java's default time zone.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
