"""Metastores of Hive 3 and 4 as the source.

The other tests use the metastore of Hive 2.3, or the version in the environment: see `servers.HiveMetastore`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hive_estate import ORC, HiveEstate, hive_client, mixed
from servers import HiveMetastore

import coldframe as cf
from coldframe.hive.defined import connect
from coldframe.pipeline import migrate
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.scheduling import InProcess

ACID = Path(__file__).parents[3] / "data/hive/files/changes"
KINDS = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.float64(): "double"}


@pytest.fixture(scope="module", params=["3.1.3", "4.0.1"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("hive") / "metastore"
    started = HiveMetastore(folder, version=request.param)
    yield started
    started.stop()


@pytest.fixture
def estate(server: HiveMetastore, tmp_path: Path) -> Iterator[HiveEstate]:
    pytest.importorskip("thrift")
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    with hive_client(hive, server.port) as client:
        made = HiveEstate(client, tmp_path / "wh")
        yield made
        made.drop()


def rows(table: Any) -> list[str]:
    names = sorted(table.schema.names)
    return sorted(repr([row[name] for name in names]) for row in table.select(names).to_pylist())


def read(target: Path, table: str, **keys: pa.DataType) -> Any:
    by = pads.partitioning(pa.schema(list(keys.items())), flavor="hive")
    return pads.dataset(target / "cold" / table, format="parquet", partitioning=by).to_table()


def written(estate: HiveEstate) -> None:
    """A transactional table of seven writes; the fifth write was aborted."""
    columns = [(column.name, KINDS[column.type]) for column in cf.open(ACID).schema]
    shutil.copytree(ACID, estate.root / "ledger/x")
    storage = estate.storage(columns, ORC, "ledger")
    estate.table("ledger", storage, [("p", "int")], kind="MANAGED_TABLE", transactional="true")
    estate.partition("ledger", ["7"], estate.storage(columns, ORC, "ledger/x"))
    types, client = estate.records.types, estate.client
    begun = client.open_txns(types.OpenTxnRequest(num_txns=7, user="u", hostname="h")).txn_ids
    ids = types.AllocateTableWriteIdsRequest(dbName="cold", tableName="ledger", txnIds=begun)
    client.allocate_table_write_ids(ids)
    for number, transaction in enumerate(begun, 1):
        if number == 5:
            client.abort_txn(types.AbortTxnRequest(transaction))
        else:
            client.commit_txn(types.CommitTxnRequest(transaction))


def others(estate: HiveEstate) -> None:
    """A database in another catalog of the metastore's, which is not read."""
    types, client = estate.records.types, estate.client
    root = f"file:{estate.root}/other"
    client.create_catalog(types.CreateCatalogRequest(types.Catalog(name="other", locationUri=root)))
    client.create_database(types.Database(name="theirs", locationUri=f"{root}/t", catalogName="other"))


def test_tables_of_every_kind_are_migrated(server: HiveMetastore, estate: HiveEstate, tmp_path: Path) -> None:
    mixed(estate)
    # Hive 4 makes an external table of such a table.
    estate.file("managed/000000_0", {"a": [1, 2]}, format="orc")
    estate.table("managed", estate.storage([("a", "bigint")], ORC, "managed"), kind="MANAGED_TABLE")
    estate.table("a_view", estate.storage([("a", "int")], ORC, None), kind="VIRTUAL_VIEW")
    others(estate)
    theirs = rows(cf.hive_table(f"{server.url}/cold.sales").read())
    assert len(theirs) == 6
    for _ in range(2):
        report = migrate(InProcess(2), server.url, tmp_path / "dst")
        assert report.exit_code == 0, summary(report)
        assert [table.name for table in report.tables] == ["cold.managed", "cold.sales"]
    with connect(server.url) as metastore:
        assert metastore.databases() == ["cold", "default"]
    assert rows(read(tmp_path / "dst", "sales", dt=pa.date32(), region=pa.string())) == theirs
    assert rows(read(tmp_path / "dst", "managed")) == ["[1]", "[2]"]


def test_valid_writes_are_read(server: HiveMetastore, estate: HiveEstate, tmp_path: Path) -> None:
    if server.version.startswith("4"):
        pytest.skip("the tables for transactions of Hive 4 are not in its jars")
    written(estate)
    report = migrate(InProcess(2), f"{server.url}/cold", tmp_path / "dst")
    assert report.exit_code == 0, summary(report)
    truth = pq.read_table(ACID.parent / "changes.6.truth.parquet")
    ledger = read(tmp_path / "dst", "ledger", p=pa.int32())
    assert rows(ledger.drop_columns("p")) == rows(truth)
    assert rows(cf.hive_table(f"{server.url}/cold.ledger").read(truth.schema.names)) == rows(truth)
