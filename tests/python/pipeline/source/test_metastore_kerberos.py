"""Hive's own metastore with Kerberos, and tickets of Hadoop's KDC."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hive_estate import ORC
from servers import HiveMetastore, Kdc

import coldframe as cf
from coldframe.errors import ColdframeError, UnsupportedError
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage

pytest.importorskip("thrift")

from coldframe.hive import sasl
from coldframe.hive.changes import MetastoreWriter
from coldframe.hive.metastore import Metastore


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    pytest.importorskip("gssapi", reason="no gssapi here: Kerberos is not tried", exc_type=ImportError)
    started = Kdc(tmp_path_factory.mktemp("kdc"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment.items():
            patch.setenv(name, value)
        yield started
    started.stop()


@pytest.fixture(scope="module", params=["authentication", "privacy"])
def metastore(
    request: pytest.FixtureRequest, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveMetastore]:
    folder = tmp_path_factory.mktemp("hive") / "metastore"
    started = HiveMetastore(folder, kdc=kdc, protection=request.param)
    yield started
    started.stop()


def url_of(metastore: HiveMetastore) -> str:
    return f"thrift://hive@localhost:{metastore.port}"


def made(writer: MetastoreWriter, root: Path) -> Definition:
    """A table of two partitions, with all its files."""
    kinds = {"input_format": ORC[0], "output_format": ORC[1], "serde": ORC[2]}
    storage = Storage((Column("a", "bigint", "of " + "ä" * 100),), f"file:{root}/t", **kinds)
    table = Definition("default", "t", "EXTERNAL_TABLE", "olga", storage, (Column("p", "string"),))
    parts = []
    for number in range(2):
        (root / f"t/{number}").mkdir(parents=True)
        cf.write(pa.table({"a": [number]}), root / f"t/{number}/000000_0", format="orc")
        storage = Storage(storage.columns, f"file:{root}/t/{number}", **kinds)
        parts.append(PartitionDefinition((str(number),), storage))
    writer.create(table)
    writer.add(table, parts)
    return table


def test_definitions_are_read_and_migrated_with_kerberos(metastore: HiveMetastore, tmp_path: Path) -> None:
    with MetastoreWriter(url_of(metastore)) as writer:
        table = made(writer, tmp_path / "wh")
        assert len(list(writer.partition_definitions(table))) == 2
        # More names than the server accepts in one message.
        names = ["p=0", *(f"p={number:0200}" for number in range(900))]
        assert [partition.values for partition in writer.partition_definitions(table, names)] == [("0",)]
    command = [sys.executable, "-m", "coldframe", "migrate", url_of(metastore), str(tmp_path / "dst")]
    command += ["--master", "in-process"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pads.dataset(tmp_path / "dst/default/t", format="parquet", partitioning="hive").to_table()
    assert sorted(rows["a"].to_pylist()) == [0, 1]


def test_an_unknown_principal_is_refused(
    kdc: Kdc, metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_of(metastore)
    plain = url.replace("hive@", "")
    with Metastore(plain) as without, pytest.raises(ColdframeError, match=r"as in thrift://hive@host"):
        without.databases()
    with pytest.raises(ColdframeError, match=r"Kerberos: Server nobody/localhost@.* not found"):
        Metastore(url.replace("hive@", "nobody@"))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"{kdc.folder}/nothing")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.folder}/no-tickets")
    with pytest.raises(ColdframeError, match=f"metastore {url}: Kerberos: .*; kinit gets a ticket"):
        Metastore(url)


ANSWERS = {
    "nothing": (b"", "it closed the connection"),
    "a web server": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it may not use Kerberos"),
    "a refusal": (b"\3\0\0\0\7go away", "Kerberos: go away"),
    "a long message": (b"\2\x7f\xff\xff\xff", "it may not use Kerberos"),
    "no token": (b"\2\0\0\0\3abc", "Kerberos: "),
    "an end": (b"\5\0\0\0\0", "before it was authenticated"),
}


@pytest.mark.parametrize("what", list(ANSWERS))
def test_answers_of_servers_without_kerberos_are_errors(kdc: Kdc, what: str) -> None:
    answer, message = ANSWERS[what]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1 << 16)
                client.sendall(answer)

        threading.Thread(target=talk, daemon=True).start()
        with pytest.raises(ColdframeError, match=message):
            Metastore(f"thrift://hive@localhost:{server.getsockname()[1]}")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[[str], object] = sasl.importlib.import_module

    def missing(name: str) -> object:
        if name == "gssapi":
            raise ImportError("no such module")
        return real(name)

    monkeypatch.setattr(sasl.importlib, "import_module", missing)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(UnsupportedError, match="the extra `kerberos` of coldframe"),
    ):
        Metastore(f"thrift://hive@localhost:{server.getsockname()[1]}")
