"""The reader of Hive metastores, against Hive's own server and against broken servers."""

from __future__ import annotations

import importlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from estates import Estate
from hive_estate import ACCURATE, HiveRecords, hive_client
from hive_estate import ORC as ORC_CLASSES
from servers import HiveMetastore, free_port

from coldframe.errors import ColdframeError, UnsupportedError
from coldframe.hive import defined
from coldframe.hive.addresses import addresses
from coldframe.hive.definition import Definition, PartitionDefinition, Storage
from coldframe.hive.reader import Refused
from coldframe.pipeline import dry_run
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.source import registered
from coldframe.pipeline.source.selection import Selection

pytest.importorskip("thrift")
# pyiceberg includes Hive's generated code: a second implementation of the same messages.
hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
types = importlib.import_module("hive_metastore.ttypes")

from thrift.protocol.TBinaryProtocol import TBinaryProtocol  # noqa: E402
from thrift.transport.TSocket import TServerSocket  # noqa: E402
from thrift.transport.TTransport import TBufferedTransport  # noqa: E402

from coldframe.hive import connection  # noqa: E402
from coldframe.hive.changes import MetastoreWriter  # noqa: E402
from coldframe.hive.metastore import Metastore  # noqa: E402

ORC = ORC_CLASSES[0]
RC = "org.apache.hadoop.hive.ql.io.RCFileInputFormat"


records = HiveRecords("default")
new_partition = records.partition


def storage(location: str | None, input_format: str | None = ORC, **parameters: str) -> Any:
    return records.storage([("a", "bigint")], (input_format, *ORC_CLASSES[1:]), location, **parameters)


def new_table(
    name: str, sd: Any, keys: tuple[str, ...] = (), kind: str = "EXTERNAL_TABLE", **parameters: str
) -> Any:
    return records.table(name, sd, [(key, "string") for key in keys], kind, **parameters)


# Servers that imitate a metastore, or are no metastore.


class Handler:
    """A metastore inside this process."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.tables = {f"t{number:03d}": new_table(f"t{number:03d}", storage("/x")) for number in range(230)}
        self.tables["parts"] = new_table("parts", storage(None), ("p", "q"))
        self.refused: set[str] = set()
        self.closed: set[str] = set()

    def get_all_databases(self) -> list[str]:
        return ["default"]

    def get_all_tables(self, database: str) -> list[str]:
        if database in self.closed:
            raise types.MetaException("no entry")
        return sorted(self.tables)

    def get_table_objects_by_name(self, database: str, names: list[str]) -> list[Any]:
        self.calls.append(f"{len(names)} tables")
        if self.refused & set(names):
            raise types.MetaException("no")
        return [self.tables[name] for name in names]

    def get_table_objects_by_name_req(self, request: Any) -> Any:
        tables = self.get_table_objects_by_name(request.dbName, request.tblNames)
        return types.GetTablesResult(tables=tables)

    def get_table(self, database: str, name: str) -> Any:
        if name in self.refused:
            raise types.NoSuchObjectException(f"not {name}\n\tat org.apache.hadoop")
        return self.tables[name]

    def get_table_req(self, request: Any) -> Any:
        return types.GetTableResult(table=self.get_table(request.dbName, request.tblName))

    def get_partition_names(self, database: str, table: str, most: int) -> list[str]:
        assert most == -1
        return [f"p={number}/q=a%2Fb" for number in range(1203)]

    def get_partitions_by_names(self, database: str, table: str, names: list[str]) -> list[Any]:
        self.calls.append(f"{len(names)} partitions")
        values = [[name.split("/")[0][2:], "a/b"] for name in names]
        return [new_partition(table, value, storage(f"/x/{value[0]}", RC), numRows="7") for value in values]

    def get_partitions_by_names_req(self, request: Any) -> Any:
        partitions = self.get_partitions_by_names(request.db_name, request.tbl_name, request.names)
        return types.GetPartitionsByNamesResult(partitions=partitions)


NEW = ("get_table_req", "get_table_objects_by_name_req", "get_partitions_by_names_req")
OLD = ("get_table", "get_table_objects_by_name", "get_partitions_by_names")


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts a server for a single client; it stops when the client disconnects."""
    started: list[tuple[Any, threading.Thread]] = []

    def start(handler: Handler, without: tuple[str, ...]) -> str:
        processor = hive.Processor(handler)
        for name in without:
            del processor._processMap[name]
        port = free_port()
        listening = TServerSocket("127.0.0.1", port)
        listening.listen()

        def serve_client() -> None:
            client = listening.accept()
            if client is not None:
                talk(processor, client)

        thread = threading.Thread(target=serve_client, daemon=True)
        thread.start()
        started.append((listening, thread))
        return f"thrift://127.0.0.1:{port}"

    yield start
    for listening, thread in started:
        listening.close()
        thread.join(10)


def talk(processor: Any, client: Any) -> None:
    """Answers a client until it hangs up."""
    transport = TBufferedTransport(client)
    protocol = TBinaryProtocol(transport)
    try:
        while True:
            processor.process(protocol, protocol)
    except Exception:
        transport.close()


@pytest.mark.parametrize("without", [NEW, OLD, ()])
def test_old_and_new_servers_are_read_alike(serve: Callable[..., str], without: tuple[str, ...]) -> None:
    handler = Handler()
    with Metastore(serve(handler, without)) as metastore:
        assert metastore.databases() == ["default"]
        tables = list(metastore.definitions("default"))
        assert len(tables) == 231
        *_, last = tables
        assert isinstance(last, Definition)
        assert (last.full_name, last.kind, last.parameters) == (
            "default.t229",
            "EXTERNAL_TABLE",
            {"EXTERNAL": "TRUE"},
        )
        assert (last.location, last.format, last.keys) == ("/x", "orc", ())
        parts = next(table for table in tables if table.name == "parts")
        assert isinstance(parts, Definition)
        assert ([key.name for key in parts.keys], parts.location) == (["p", "q"], None)
        partitions = list(metastore.partitions(parts))
        assert len(partitions) == 1203
        at = Storage((), "/x/1202", RC)
        assert partitions[1202] == PartitionDefinition(("1202", "a/b"), at, {"numRows": "7"})
    assert handler.calls == [
        *("100 tables", "100 tables", "31 tables"),
        *("500 partitions", "500 partitions", "203 partitions"),
    ]


@pytest.mark.parametrize("without", [NEW, OLD])
def test_a_refused_table_does_not_hide_the_others(
    serve: Callable[..., str], without: tuple[str, ...]
) -> None:
    handler = Handler()
    handler.refused = {"t117"}
    with Metastore(serve(handler, without)) as metastore:
        tables = list(metastore.definitions("default"))
    refused = [table for table in tables if isinstance(table, Refused)]
    assert [table.name for table in refused] == ["t117"]
    assert refused[0].reason.endswith(": not t117")
    assert len(tables) == 231
    handler.closed = {"default"}
    with Metastore(serve(handler, without)) as metastore:
        (refused_all,) = metastore.definitions("default")
        assert isinstance(refused_all, Refused)
        assert refused_all.name == "*"
        assert metastore.databases() == ["default"]


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Starts servers that answer every request with fixed bytes, and hang up."""
    listening: list[socket.socket] = []

    def start(answer: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def talk() -> None:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.recv(1 << 16)
                client.sendall(answer)

        threading.Thread(target=talk, daemon=True).start()
        return f"thrift://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in listening:
        server.close()


def message(name: bytes, body: bytes, kind: int = 2, number: int = 1) -> bytes:
    return struct.pack(">HHI", 0x8001, kind, len(name)) + name + struct.pack(">I", number) + body


DATABASES = b"get_all_databases"
NONSENSE = {
    "nothing": b"",
    "a web server": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "frames": struct.pack(">I", 40) + message(DATABASES, b"\0") + bytes(20),
    "random": bytes(range(256)) * 10,
    "cut off": message(DATABASES, b"\x0f\0\0\x0b\0\0\0\x02\0\0\0\x05defa"),
    "a long list": message(DATABASES, b"\x0f\0\0\x0b\x7f\xff\xff\xff"),
    "a large list": message(DATABASES, b"\x0f\0\0\x0b\x01\0\0\0"),
    "a long text": message(DATABASES, b"\x0f\0\0\x0b\0\0\0\x01\x7f\xff\xff\xff"),
    "a negative list": message(DATABASES, b"\x0f\0\0\x0b\xff\xff\xff\xff"),
    "numbers": message(DATABASES, b"\x0f\0\0\x08\0\0\0\x01\0\0\0\x05\0"),
    "no text": message(DATABASES, b"\x0f\0\0\x0b\0\0\0\x01\0\0\0\x02\xff\xff\0"),
    "another type": message(DATABASES, b"\x0b\0\0\0\0\0\x01a\0"),
    "no answer": message(DATABASES, b"\0"),
    "another call": message(b"get_all_tables", b"\x0f\0\0\x0b\0\0\0\0\0"),
    "another number": message(DATABASES, b"\x0f\0\0\x0b\0\0\0\0\0", number=9),
    "a call": message(DATABASES, b"\x0f\0\0\x0b\0\0\0\0\0", kind=1),
    "an unknown call": message(DATABASES, b"\x08\0\x02\0\0\0\x01\0", kind=3),
    "deep": message(DATABASES, b"\x0c\0\x09" * 20_000),
}


@pytest.mark.parametrize("what", list(NONSENSE))
def test_a_malformed_answer_ends_the_run_before_it_begins(
    what: str, answering: Callable[[bytes], str], tmp_path: Path
) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/a", {"a": [1]})
    url = answering(NONSENSE[what])
    with pytest.raises(ColdframeError, match=f"metastore {url}: "):
        estate.migrate(metastore=url)
    assert not estate.target.exists()


def test_a_missing_answer_times_out(
    answering: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.2)
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, Metastore(f"thrift://127.0.0.1:{silent.getsockname()[1]}") as metastore:  # noqa: SIM117
        with pytest.raises(ColdframeError, match="get_all_databases: no answer for 0 s"):
            metastore.databases()


def test_an_unreachable_server_ends_the_run(tmp_path: Path, serve: Callable[..., str]) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/a", {"a": [1]})
    url = f"thrift://127.0.0.1:{free_port()}"
    for run in (
        lambda: estate.migrate(metastore=url),
        lambda: dry_run(estate.source, estate.target, Options(metastore=url)),
    ):
        with pytest.raises(ColdframeError, match=f"metastore {url} cannot be reached: Connection refused"):
            run()
    assert not estate.target.exists()
    # Of several addresses, the first that answers is used.
    there = serve(Handler(), ())
    with Metastore(f"{url},{there}") as metastore:
        assert metastore.uri == there
        assert metastore.databases() == ["default"]


def test_the_next_server_is_used_when_a_server_disconnects(
    serve: Callable[..., str], answering: Callable[[bytes], str]
) -> None:
    there = serve(Handler(), ())
    with Metastore(f"{answering(b'')},{there}") as metastore:
        assert metastore.databases() == ["default"]
        assert metastore.uri == there
    gone, nobody = answering(b""), f"thrift://127.0.0.1:{free_port()}"
    message = f"metastore {gone}: get_all_databases: it closed.*; metastore {nobody} cannot be reached"
    with Metastore(f"{gone},{nobody}") as metastore, pytest.raises(ColdframeError, match=message):
        metastore.databases()


def test_a_change_is_not_repeated_on_the_next_server(answering: Callable[[bytes], str]) -> None:
    gone = answering(b"")
    with MetastoreWriter(f"{gone},thrift://127.0.0.1:{free_port()}") as writer:
        with pytest.raises(ColdframeError, match=f"metastore {gone}: create_table: it closed") as raised:
            writer.create(Definition("default", "t"))
        assert "cannot be reached" not in str(raised.value)


def test_addresses_are_parsed() -> None:
    assert addresses("thrift://a, thrift://b:1/") == [("a", 9083, ""), ("b", 1, "")]
    assert addresses("thrift://[::1]:7") == [("::1", 7, "")]
    assert [str(address) for address in addresses("thrift://hive@a,thrift://b")] == [
        "thrift://hive@a:9083",
        "thrift://b:9083",
    ]
    for wrong in (
        "thrift://a:b@c",
        "",
        "a:9083",
        "http://a:1",
        "thrift://",
        "thrift://a:x",
        "thrift://a/db",
        "thrift://a,",
    ):
        with pytest.raises(ValueError, match="metastore"):
            addresses(wrong)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defined.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        UnsupportedError, match="without the package thrift; install the extra `hive` of coldframe"
    ):
        registered.read_registered("thrift://h:1", "/wh", Selection())


def test_the_command_line_does_not_import_the_metastore_client() -> None:
    code = "import sys, coldframe.cli, coldframe.pipeline; sys.exit('thrift' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Hive's own server.


@pytest.fixture
def writer(hive_server: HiveMetastore) -> Iterator[Any]:
    """A client that registers tables, which the test drops at its end."""
    with hive_client(hive, hive_server.port) as client:
        yield client
        for name in client.get_all_tables("default"):
            client.drop_table("default", name, False)


def fill(estate: Estate, writer: Any, wrong: int = 0) -> None:
    """Registers tables of every kind; the row count of one partition is too large by `wrong`."""
    root = f"file:{estate.source}"
    for number in range(1, 4):
        estate.orc(f"sales/dt=1/r=a%2F{number}/000000_0", {"a": list(range(number))})
    estate.orc("events/000000_0", {"a": [1, 2]})
    estate.orc("by_spark/000000_0", {"a": [1, 2, 3]})
    writer.create_table(new_table("sales", storage(f"{root}/sales"), ("dt", "r")))
    writer.add_partitions(
        [
            new_partition(
                "sales",
                ["1", f"a/{number}"],
                storage(f"{root}/sales/dt=1/r=a%2F{number}"),
                numRows=str(number + (wrong if number == 2 else 0)),
                **ACCURATE,
            )
            for number in range(1, 4)
        ]
    )
    writer.create_table(new_table("events", storage(f"{root}/events", RC), numRows="2"))
    spark = {"numRows": "0", "spark.sql.statistics.numRows": "3"}
    writer.create_table(new_table("by_spark", storage(f"{root}/by_spark"), **spark))
    view = new_table("view", storage(None, "org.apache.hadoop.mapred.TextInputFormat"), kind="VIRTUAL_VIEW")
    view.viewOriginalText = view.viewExpandedText = "select 1"
    writer.create_table(view)
    handler = "org.apache.hadoop.hive.hbase.HBaseStorageHandler"
    writer.create_table(new_table("hbase", storage(f"{root}/hbase", None), storage_handler=handler))
    acid = new_table("acid", storage(f"{root}/acid"), kind="MANAGED_TABLE", transactional="true")
    acid.sd.numBuckets, acid.sd.bucketCols = 2, ["a"]
    writer.create_table(acid)
    writer.create_table(new_table("elsewhere", storage(f"{root}-other/t"), numRows="9"))


def test_a_migration_agrees_with_a_correct_metastore(
    tmp_path: Path, hive_server: HiveMetastore, writer: Any
) -> None:
    estate = Estate(tmp_path)
    fill(estate, writer)
    for _ in range(2):
        report = estate.migrate(metastore=hive_server.url)
        assert report.exit_code == 0, summary(report)
        assert report.verified
        assert report.metastore is not None
        assert (report.metastore.tables, report.metastore.partitions) == (4, 3)
        assert (report.metastore.compared, report.metastore.agreed) == (5, 5)
        assert [str(finding) for finding in report.metastore.findings] == [
            f"default.acid: {estate.source}/acid holds no files"
        ]
    (message,) = [str(finding) for table in report.tables for finding in table.metastore]
    assert message == "default.events: rcfile by the metastore, orc by its bytes"


def test_a_migration_reports_the_differences_to_a_wrong_metastore(
    tmp_path: Path, hive_server: HiveMetastore, writer: Any
) -> None:
    estate = Estate(tmp_path)
    fill(estate, writer, wrong=1)
    lost = storage(f"file:{estate.source}/sales/lost")
    writer.add_partitions([new_partition("sales", ["2", "x"], lost, numRows="5")])
    # Hive has created this directory.
    (estate.source / "sales/lost").rmdir()
    preview = dry_run(estate.source, estate.target, Options(metastore=hive_server.url))
    assert preview.exit_code == 1
    assert preview.metastore is not None
    missing = f"default.sales dt=2/r=x: there is no {estate.source}/sales/lost"
    assert missing in [str(finding) for finding in preview.metastore.findings]
    report = estate.migrate(metastore=hive_server.url)
    assert report.exit_code == 1
    text = summary(report)
    message = "default.sales dt=1/r=a/2: 3 rows by the metastore, 2 migrated from sales/dt=1/r=a%2F2"
    assert f"  not as the metastore has it: {message}\n" in text
    assert f"not as the metastore has it: {missing}\n" in text
    assert "4 of 5 numbers of rows agree" in text
    assert sorted(estate.values("sales")) == [0, 0, 0, 1, 1, 2]


def test_the_command_line_compares_with_the_metastore(
    tmp_path: Path, hive_server: HiveMetastore, writer: Any
) -> None:
    estate = Estate(tmp_path)
    fill(estate, writer, wrong=1)
    command = [
        sys.executable,
        "-m",
        "coldframe",
        "migrate",
        str(estate.source),
        str(estate.target),
        "--dry-run",
    ]
    done = subprocess.run(
        [*command, "--metastore", hive_server.url], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "note: default.events: rcfile by the metastore, orc by its bytes" in done.stdout
    for url, code in ((f"thrift://127.0.0.1:{free_port()}", 2), ("host:1", 2)):
        done = subprocess.run([*command, "--metastore", url], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr.startswith("coldframe migrate: metastore ")
        assert done.stderr.count("\n") == 1
