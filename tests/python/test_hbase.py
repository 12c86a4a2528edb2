"""HBase's directories: tables, snapshots, what a migration makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.pipeline.inventory import take_inventory
from coldframe.pipeline.tables import TableSpec, find_tables, load_tables

ROOT = Path(__file__).resolve().parents[1] / "data" / "hbase" / "files" / "orders"
AS_OF = 1_700_000_000_000


def latest(**options: object) -> pa.Table:
    return cf.open(ROOT, **{"as_of": AS_OF, **options}).read()


def test_a_directory_is_recognised() -> None:
    table = ROOT / "data" / "shop" / "orders"
    snapshot = ROOT / ".hbase-snapshot" / "kept"
    assert cf.detect(str(ROOT)) == cf.detect(str(table)) == cf.detect(str(snapshot)) == "hbase"
    whole = latest()  # the only table
    assert cf.open(table, as_of=AS_OF).read().equals(whole)
    assert latest(table="shop:orders").equals(whole)
    kept = latest(snapshot="kept")
    assert cf.open(snapshot).metadata["snapshot"]["name"] == "kept"
    assert cf.open(snapshot, as_of=AS_OF).read().equals(kept)
    assert not kept.equals(whole)
    with pytest.raises(cf.NotFoundError, match="shop:orders"):
        latest(table="orders")
    with pytest.raises(cf.NotFoundError, match="lost"):
        latest(snapshot="lost")


def test_what_logs_hold_is_counted() -> None:
    flushed = cf.open(ROOT, as_of=AS_OF, wal=False)
    left = flushed.metadata["wal"]
    assert (left["read"], len(left["logs"])) == (False, 1)
    assert left["cells"] >= 60 - 10
    assert not flushed.read().equals(latest())


def test_families_are_chosen() -> None:
    whole = latest()
    one = latest(families=["g"])
    assert one.equals(whole.filter(pa.compute.equal(whole["family"], b"g")))
    with pytest.raises(cf.NotFoundError, match="f, g"):
        latest(families="h")


def test_a_hole_in_the_key_space_is_told(tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "hbase")
    regions = cf.open(ROOT).metadata["regions"]
    shutil.rmtree(tmp_path / "hbase" / "data" / "shop" / "orders" / regions[0]["name"])
    file = cf.open(tmp_path / "hbase", as_of=AS_OF)
    with pytest.raises(cf.CorruptFileError, match="o0040"):
        file.read()
    left = file.read(on_error="skip")
    whole = latest()
    assert left.equals(whole.filter(pa.compute.greater_equal(whole["row"], b"o0040")))
    assert len(file.damage) == len(file.metadata["missing"]) == 1


def test_a_root_is_as_many_tables_as_it_holds(tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "hbase")
    [table] = find_tables(take_inventory(str(tmp_path / "hbase")), [])
    assert (table.name, table.path, table.format) == ("shop.orders", "shop.orders", "hbase")
    assert dict(table.options) == {"table": "shop:orders"}
    wide = TableSpec(
        "wide", ".", options={"table": "shop:orders", "view": "pivot", "columns": {"f:count": "long"}}
    )
    [table] = find_tables(take_inventory(str(tmp_path / "hbase")), [wide])
    rows = cf.open(table.files[0].path, format=table.format, **table.options)
    assert rows.schema.names == ["row", "f:count", "rest"]
    assert rows.count() == len(set(latest()["row"].to_pylist()))


def test_a_proposal_is_an_entry_of_tables_toml(capsys: pytest.CaptureFixture[str]) -> None:
    proposal = cf.open(ROOT).proposal()
    assert proposal is not None
    assert proposal["columns"]["f:count"] == "long"
    assert proposal["columns"]["g:price"] == "double"
    assert proposal["columns"]["f:note"] == "string"
    assert main(["schema", str(ROOT), "--as", "tables"]) == 0
    assert '"f:count" = "long"' in capsys.readouterr().out


def test_a_root_of_several_tables_has_an_entry_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT, tmp_path / "hbase")
    phoenix = ROOT.parents[2] / "phoenix/files/root/data/default"
    for name in ("KEYS", "small"):
        shutil.copytree(phoenix / name, tmp_path / "hbase/data/default" / name)
    # Without a cell nothing is guessed, but the table is named.
    for path in (tmp_path / "hbase/data/default/small").glob("*/[!.]*/*"):
        path.unlink()
    assert main(["schema", str(tmp_path / "hbase"), "--as", "tables"]) == 0
    proposed = capsys.readouterr().out
    (tmp_path / "tables.toml").write_text(proposed)
    specs = load_tables(str(tmp_path / "tables.toml"))
    assert {spec.name: spec.options["table"] for spec in specs} == {
        "KEYS": "default:KEYS",
        "shop.orders": "shop:orders",
        "small": "default:small",
    }
    tables = find_tables(take_inventory(str(tmp_path / "hbase")), specs)
    assert [table.name for table in tables] == ["KEYS", "shop.orders", "small"]
