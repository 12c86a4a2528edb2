"""Hive tables with storage handlers of HBase and Kudu, migrated from the files of these systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest
from hive_estate import HiveEstate
from servers import HiveMetastore

import coldframe as cf
from coldframe.cli import main
from coldframe.pipeline import InProcess, audit, migrate
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary

DATA = Path(__file__).parents[3] / "data"
HBASE, KUDU = DATA / "hbase/files/orders", DATA / "kudu_wal/files/lz4"
IN_HBASE = (None, None, "org.apache.hadoop.hive.hbase.HBaseSerDe")
IN_KUDU = (None, None, "org.apache.hadoop.hive.kudu.KuduSerDe")


def in_hbase(estate: HiveEstate, mapping: str, **properties: str) -> None:
    columns = [("k", "string"), ("amount", "bigint"), ("note", "string")]
    storage = estate.storage(columns, IN_HBASE, None, **{"hbase.columns.mapping": mapping})
    handler = {"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}
    estate.table("orders", storage, **handler, **{"hbase.table.name": "shop:orders"}, **properties)


def in_kudu(estate: HiveEstate, *names: str) -> None:
    for name in names:
        storage = estate.storage([("k", "int"), ("v", "string")], IN_KUDU, None)
        handler = {"storage_handler": "org.apache.hadoop.hive.kudu.KuduStorageHandler"}
        estate.table(f"in_kudu_{name}", storage, **handler, **{"kudu.table_name": name})


def run(server: HiveMetastore, target: Path, **options: Any) -> Report:
    places = {"hbase://": str(HBASE), "kudu://": str(KUDU)}
    return migrate(InProcess(2), f"{server.url}/cold", target, locations=places, **options)


def read(target: Path, table: str) -> Any:
    return pads.dataset(target / "cold" / table, format="parquet").to_table()


@pytest.mark.parametrize(
    "how",
    [(":key, f:count#b, f:note", {}), ("f:count,f:note#s", {"hbase.table.default.storage.type": "binary"})],
)
def test_a_table_of_hbase_is_migrated(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path, how: tuple[str, dict[str, str]]
) -> None:
    in_hbase(hive_estate, how[0], **how[1])
    report = run(hive_server, tmp_path / "dst")
    assert report.exit_code == 0, summary(report)
    columns = {"f:count": "long", "f:note": "string"}
    theirs = cf.open(HBASE, table="shop:orders", view="pivot", columns=columns).read()
    ours = read(tmp_path / "dst", "orders")
    assert ours.schema.names == ["k", "amount", "note", "rest"]
    for name, of_hbase in (("k", "row"), ("amount", "f:count"), ("note", "f:note")):
        assert sorted(map(repr, ours[name].to_pylist())) == sorted(map(repr, theirs[of_hbase].to_pylist()))
    # The run does not ask for older versions of cells.
    assert not safe_list.read(str(tmp_path / "dst/_coldframe/safe-to-delete.txt")).lines


def test_tables_of_kudu_are_migrated(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    in_kudu(hive_estate, "trips")
    target = tmp_path / "dst"
    report = run(hive_server, target)
    assert report.exit_code == 0, summary(report)
    command = ["migrate", hive_server.url, str(tmp_path / "other"), "--location", f"kudu://={KUDU}"]
    assert main([*command, "--master", "in-process"]) == 0
    # Another table lies in the same directory.
    assert not safe_list.read(str(target / "_coldframe/safe-to-delete.txt")).lines
    in_kudu(hive_estate, "ledger", "notes")
    report = run(hive_server, target, leave_behind=["other-times"])
    assert report.exit_code == 0, summary(report)
    for name in ("trips", "ledger", "notes"):
        theirs = cf.open(KUDU, table=name).read()
        ours = read(target, f"in_kudu_{name}")
        assert ours.num_rows == theirs.num_rows
        assert ours.schema.names == theirs.schema.names
    listed = safe_list.read(str(target / "_coldframe/safe-to-delete.txt"))
    assert [line.path for line in listed.lines] == [str(KUDU)], summary(report)
    assert audit(before_delete=target / "_coldframe/safe-to-delete.txt").exit_code == 0


def test_unmapped_columns_are_refused(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    in_hbase(hive_estate, ":key,f:,f:note")
    with pytest.raises(cf.UnsupportedError, match="column amount is f:: only the key and single cells"):
        run(hive_server, tmp_path / "dst")
    with pytest.raises(cf.UnsupportedError, match="--location hbase://=DIR says where its data are"):
        migrate(InProcess(), f"{hive_server.url}/cold", tmp_path / "dst")
