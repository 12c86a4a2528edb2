"""A single command migrates an estate on HDFS, defined by a Hive metastore, to Iceberg in a REST catalog.

    the metastore, HDFS, the catalog    servers of Hive, Hadoop and Iceberg
    the reference                       Spark, which reads both: by Hive's readers, and by Iceberg's

Spark refuses transactional tables, and has no handlers of HBase and Kudu here: for such tables, Hive's own
reader, HBase and Kudu give the expected rows.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from older_spark import PYTHON
from pyspark.sql import SparkSession

import coldframe as cf
from coldframe.sources import open_store
from coldframe.spark.connector import is_loaded
from coldframe.spark.java import find_java

sys.path.append(str(Path(__file__).parents[1] / "python"))

from hive_estate import ORC, RC_BINARY, RC_TEXT, HiveEstate, hive_client
from relays import Relay
from servers import Hdfs, HiveMetastore, IcebergRest, Server

DATA = Path(__file__).parents[1] / "data"
BEFORE = [("id", "bigint"), ("price", "decimal(10,2)"), ("at", "timestamp")]
NOW = [*BEFORE, ("channel", "string")]
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("channel", pa.string()),
    ]
)
NIGHTS = ["2014-03-30 02:30:00", "2014-10-26 02:30:00", "2014-03-09 02:30:00.5"]
"""Times that two zones skip, or that occur twice in them."""

pytestmark = [
    pytest.mark.skipif(PYTHON is None, reason="no PySpark 3.5 here, for which Iceberg has a runtime"),
]


@dataclass
class Place:
    """The servers, and the estate."""

    folder: Path
    hdfs: Hdfs
    metastore: HiveMetastore
    catalog: IcebergRest
    estate: HiveEstate

    def __post_init__(self) -> None:
        text = f"catalog:\n  lake:\n    type: rest\n    uri: {self.catalog.url}\n"
        (self.folder / ".pyiceberg.yaml").write_text(text)
        self.put()

    def put(self) -> None:
        """Copies the estate's files to HDFS."""
        store = open_store(f"{self.hdfs.url}/wh", self.hdfs.options)
        for path in self.estate.root.rglob("*"):
            name = path.relative_to(self.estate.root).as_posix()
            if path.is_file() and store.stat(name) is None:
                store.put(name, path.read_bytes())

    @property
    def lake(self) -> str:
        return f"{self.hdfs.url}/lake"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HADOOP_CONF_DIR": self.hdfs.conf,
            "PYICEBERG_HOME": str(self.folder),
            "PYTHONPATH": str(Path(cf.__file__).parents[1]),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def migrate(self, source: str | None = None, *more: str) -> subprocess.CompletedProcess[str]:
        """Runs the migration command."""
        command = [sys.executable, "-m", "coldframe", "migrate", source or self.metastore.url, self.lake]
        command += ["--to", "iceberg", "--catalog", "lake", "--master", "in-process[2]"]
        command += [f"--location={name}://={self.hdfs.url}/wh/{name}" for name in ("hbase", "kudu")]
        # The machine's time zone must not change the rows.
        zone = {"TZ": "Europe/Berlin"}
        return subprocess.run(
            [*command, *more],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**self.environment, **zone},
        )

    def files(self) -> set[str]:
        """The files of the tables."""
        listing = open_store(self.lake, self.hdfs.options).list("", recursive=True)
        return {file.path for some in listing for file in some if not file.path.startswith("_coldframe")}


def sales(estate: HiveEstate) -> None:
    """Partitions of RCFile text, RCFile binary and ORC: a partition lies elsewhere, another has no files."""
    keys = [("dt", "date"), ("region", "string")]
    about = {"comment": "all that was sold", "team": "till 7"}
    estate.table("sales", estate.storage(NOW, RC_BINARY, "sales"), keys, **about)
    kinds: list[tuple[str, list[str], Any, Any, dict[str, Any]]] = [
        ("sales/a", ["2014-01-01", "asia/pacific"], BEFORE, RC_TEXT, {"format": "rcfile", "serde": "text"}),
        ("sales/b", ["2014-01-01", "eu"], BEFORE, RC_BINARY, {"format": "rcfile", "serde": "binary"}),
        ("elsewhere/x9", ["2014-01-02", "eu"], NOW, ORC, {"format": "orc"}),
    ]
    for number, (place, values, columns, classes, how) in enumerate(kinds):
        properties = {"field.delim": "|"} if classes is RC_TEXT else {}
        if properties:
            how["serde_properties"] = properties
        some = {
            "id": [number, number + 10],
            "price": [Decimal("1.25") * number, None],
            "at": [dt.datetime(2014, 3, 30, 2, 30, number), None],
            "channel": ["web", None],
        }
        schema = pa.schema(list(TYPES)[: len(columns)])
        estate.file(f"{place}/000000_0", {name: some[name] for name in schema.names}, schema, **how)
        estate.partition("sales", values, estate.storage(columns, classes, place, **properties), numRows="2")
    null = ["2014-01-03", "__HIVE_DEFAULT_PARTITION__"]
    estate.partition("sales", null, estate.storage(NOW, RC_BINARY, "sales/d"), numRows="0")


def nights(estate: HiveEstate) -> None:
    """Partitions by timestamps, which no time zone may shift."""
    columns = [("id", "bigint")]
    estate.table("nights", estate.storage(columns, ORC, "nights"), [("day", "date"), ("at", "timestamp")])
    for number, night in enumerate(NIGHTS):
        place = f"nights/{number}"
        estate.file(f"{place}/000000_0", {"id": [number]}, format="orc")
        estate.partition("nights", [night[:10], night], estate.storage(columns, ORC, place))


def ledger(estate: HiveEstate) -> None:
    """A transactional table with seven writes; the fifth was aborted."""
    source = DATA / "hive/files/hive2_changes"
    kinds = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.float64(): "double"}
    columns = [(column.name, kinds[column.type]) for column in cf.open(source).schema]
    shutil.copytree(source, estate.root / "ledger/x")
    storage = estate.storage(columns, ORC, "ledger")
    storage.numBuckets, storage.bucketCols = 2, [columns[0][0]]
    estate.table("ledger", storage, [("p", "int")], kind="MANAGED_TABLE", transactional="true")
    estate.partition("ledger", ["7"], estate.storage(columns, ORC, "ledger/x"))
    types, client = estate.records.types, estate.client
    client.open_txns(types.OpenTxnRequest(num_txns=7, user="u", hostname="h"))
    for number in (1, 2, 3, 4, 6, 7):
        client.commit_txn(types.CommitTxnRequest(number))
    client.abort_txn(types.AbortTxnRequest(5))


def handled(estate: HiveEstate) -> None:
    """A table in HBase, and a table in Kudu."""
    shutil.copytree(DATA / "hbase/files/orders", estate.root / "hbase")
    shutil.copytree(DATA / "kudu_wal/files/lz4", estate.root / "kudu")
    hive = "org.apache.hadoop.hive"
    columns = [("k", "string"), ("amount", "bigint"), ("note", "string")]
    mapping = {"hbase.columns.mapping": ":key,f:count#b,f:note"}
    in_hbase = estate.storage(columns, (None, None, f"{hive}.hbase.HBaseSerDe"), None, **mapping)
    of_hbase = {"storage_handler": f"{hive}.hbase.HBaseStorageHandler", "hbase.table.name": "shop:orders"}
    estate.table("orders", in_hbase, **of_hbase)
    in_kudu = estate.storage([("k", "int")], (None, None, f"{hive}.kudu.KuduSerDe"), None)
    of_kudu = {"storage_handler": f"{hive}.kudu.KuduStorageHandler", "kudu.table_name": "ledger"}
    estate.table("numbers", in_kudu, **of_kudu)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    pytest.importorskip("pyiceberg")
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    folder = tmp_path_factory.mktemp("estate")
    starts: list[tuple[type[Server], tuple[str, ...]]] = [
        (Hdfs, ("named",)),
        (HiveMetastore, ()),
        (IcebergRest, ()),
    ]
    with ThreadPoolExecutor() as pool:
        futures = [pool.submit(start, folder / start.__name__, *modes) for start, modes in starts]
    started = [future.result() for future in futures if future.exception() is None]
    try:
        hdfs, metastore, catalog = (future.result() for future in futures)
        with hive_client(hive, metastore.port) as client:
            estate = HiveEstate(client, folder / "wh", f"{hdfs.url}/wh")
            for make in (sales, nights, ledger, handled):
                make(estate)
            yield Place(folder, hdfs, metastore, catalog, estate)
    finally:
        for server in started:
            server.stop()


def test_tasks_prefer_the_machines_that_have_their_bytes(
    place: Place, spark: SparkSession, tmp_path: Path
) -> None:
    if not is_loaded(spark):
        pytest.skip("no jar of the connector here (make jar): not tried")
    rows = pa.table({"n": pa.array(range(500_000), pa.int64()), "x": [str(n) for n in range(500_000)]})
    cf.write(rows, tmp_path / "a.orc", format="orc", codec="none", stripe_size=256 << 10)
    # With a single replica, each block is on one machine.
    hadoop: Any = spark._jvm.org.apache.hadoop
    settings = hadoop.conf.Configuration()
    settings.set("dfs.replication", "1")
    uri = spark._jvm.java.net.URI(place.hdfs.url)
    files = hadoop.fs.FileSystem.newInstance(uri, settings, place.hdfs.options["user"])
    names = ("p=a b/0.orc", "p=a b/1.orc", "p=c/2.orc")
    for name in names:
        source, target = hadoop.fs.Path(str(tmp_path / "a.orc")), hadoop.fs.Path(f"/hosts/{name}")
        files.mkdirs(target.getParent())
        files.copyFromLocalFile(source, target)
    options = {f"storage_options.{name}": value for name, value in place.hdfs.options.items()}
    frame = (
        spark.read.format("coldframe").options(**options, split_bytes="1m").load(f"{place.hdfs.url}/hosts")
    )
    assert frame.count() == 1_500_000
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    tasks = leaves.apply(0).inputPartitions()
    preferred = [list(tasks.apply(at).preferredLocations()) for at in range(tasks.size())]
    expected = []
    size = (tmp_path / "a.orc").stat().st_size
    for name in names:
        blocks = files.getFileBlockLocations(hadoop.fs.Path(f"/hosts/{name}"), 0, size)
        where = [(block.getOffset(), block.getLength(), block.getHosts()[0]) for block in blocks]
        shares = -(-size // (1 << 20))
        for share in range(shares):
            start, end = size * share // shares, size * (share + 1) // shares
            held: dict[str, int] = {}
            for offset, length, host in where:
                held[host] = held.get(host, 0) + max(0, min(end, offset + length) - max(start, offset))
            expected.append(
                sorted((host for host in held if held[host]), key=lambda host: (-held[host], host))
            )
    files.close()
    assert preferred == expected
    assert {host for hosts in preferred for host in hosts} <= {"data0", "data1"}


def test_the_estate(place: Place) -> None:
    done = place.migrate()
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "verified; 7 sources in safe-to-delete.txt" in done.stdout
    files = place.files()
    # A run without new files changes nothing.
    again = place.migrate()
    assert (again.returncode, place.files()) == (0, files), again.stderr

    # The metastore dies during a request; another run continues.
    add_partition(place)
    with Relay(place.metastore.port, "dies", 3) as dying:
        cut = place.migrate(dying.url)
    assert (cut.returncode, cut.stdout, cut.stderr.count("\n")) == (2, "", 1), cut.stderr
    assert f"metastore {dying.url}: " in cut.stderr
    assert "it closed the connection" in cut.stderr
    assert place.files() == files
    later = place.migrate()
    assert later.returncode == 0, later.stdout[-3000:] + later.stderr[-3000:]
    assert files < place.files()

    answers = spark_reads(place, ("sales", "nights"), ("sales", "nights", "ledger", "orders", "numbers"))
    assert len(answers["hive"]["sales"]) == 8
    for name, theirs in answers["hive"].items():
        assert answers["iceberg"][name] == theirs, name
    assert answers["iceberg"]["ledger"] == sorted(map(repr, in_ledger()))
    assert answers["iceberg"]["orders"] == sorted(map(repr, in_hbase()))
    assert answers["iceberg"]["numbers"] == sorted(map(repr, in_kudu()))
    check_described(answers["about"]["sales"])


def add_partition(place: Place) -> None:
    """A partition that arrives after the first run."""
    there = "sales/late/000000_0"
    rows = {"id": [70, 71], "price": [1, None], "at": [None] * 2, "channel": ["x", "y"]}
    place.estate.file(there, rows, TYPES, format="orc")
    place.estate.partition("sales", ["2015-07-01", "ü:%"], place.estate.storage(NOW, ORC, "sales/late"))
    place.put()


def spark_reads(place: Place, of_hive: Sequence[str], of_iceberg: Sequence[str]) -> Any:
    job = Path(__file__).with_name("estate_job.py")
    servers = (place.metastore.url, place.catalog.url, str(place.catalog.spark_jar))
    done = subprocess.run(
        [str(PYTHON), str(job), *servers, ",".join(of_hive), ",".join(of_iceberg)],
        capture_output=True,
        text=True,
        check=False,
        cwd=place.folder,
        env={**place.environment, "JAVA_HOME": str(find_java()), "TZ": "UTC"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def in_ledger() -> Iterator[tuple[Any, ...]]:
    for row in pq.read_table(DATA / "hive/files/hive2_changes.4.truth.parquet").to_pylist():
        yield row["id"], row["name"], 7, row["price"]


def in_hbase() -> Iterator[tuple[Any, ...]]:
    rows: dict[bytes, dict[bytes, bytes]] = {}
    for cell in pq.read_table(DATA / "hbase/files/orders.wal.latest.truth.parquet").to_pylist():
        of_row = rows.setdefault(cell["row"], {})
        of_row[cell["family"] + b":" + cell["qualifier"]] = cell["value"]
    for key, cells in rows.items():
        count, note = cells.get(b"f:count"), cells.get(b"f:note")
        amount = None if count is None else int.from_bytes(count, "big", signed=True)
        yield amount, bytearray(key), None if note is None else note.decode()


def in_kudu() -> Iterator[tuple[Any, ...]]:
    for row in pq.read_table(DATA / "kudu_wal/files/lz4.ledger.s3.truth.parquet").to_pylist():
        yield tuple(row[name] for name in sorted(row))


def check_described(lines: list[list[str | None]]) -> None:
    """Comments, owner, properties and partitions are the same as in the metastore."""
    described = {str(name): (kind, comment) for name, kind, comment in lines}
    kinds = [(*column, f"the {column[0]}") for column in NOW if column[0] != "at"]
    assert [(name, *described[name]) for name, *_ in kinds] == kinds
    # Hive's timestamps have no time zone.
    assert described["at"] == ("timestamp_ntz", "the at")
    assert described["_partition"] == ("struct<dt:date,region:string>", "")
    assert [described[name][0] for name in ("Comment", "Owner")] == ["all that was sold", "olga"]
    assert "team=till 7" in str(described["Table Properties"][0])
