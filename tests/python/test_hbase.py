"""HBase directories: tables, snapshots, and their migration."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.pipeline.source.inventory import take_inventory
from coldframe.pipeline.source.tables import TableSpec, find_tables, load_tables

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


def test_contents_of_logs_are_counted() -> None:
    flushed = cf.open(ROOT, as_of=AS_OF, wal=False)
    left = flushed.metadata["wal"]
    assert (left["read"], len(left["logs"])) == (False, 1)
    assert left["cells"] >= 60 - 10
    assert not flushed.read().equals(latest())


def test_families_are_chosen() -> None:
    whole = latest()
    family = latest(families=["g"])
    assert family.equals(whole.filter(pa.compute.equal(whole["family"], b"g")))
    with pytest.raises(cf.NotFoundError, match="f, g"):
        latest(families="h")


def test_hole_in_the_key_space_is_reported(tmp_path: Path) -> None:
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


def regions(root: Path) -> list[Path]:
    return sorted((root / "data/shop/orders").glob("[!.]*"))


def test_table_without_regions_is_damaged(tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "hbase")
    for region in regions(tmp_path / "hbase"):
        shutil.rmtree(region)
    file = cf.open(tmp_path / "hbase", as_of=AS_OF)
    with pytest.raises(cf.CorruptFileError, match="to the end, found none"):
        file.read()
    assert file.read(on_error="skip").num_rows == 0
    assert len(file.damage) == 1


def test_lost_region_info_does_not_restore_replaced_rows(tmp_path: Path) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    # The parent region of the two, with the rows that it had before the split.
    old = root / "data/shop/orders" / hashlib.md5(b"shop:orders,,1").hexdigest()
    source = regions(root)[0] / "f"
    shutil.copytree(source, old / "f")
    name = b"\x0a\x04shop\x12\x06orders"
    info = b"\x08\x01\x12" + bytes([len(name)]) + name
    (old / ".regioninfo").write_bytes(b"PBUF" + bytes([len(info)]) + info)
    assert latest().equals(cf.open(root, as_of=AS_OF).read())
    for region in regions(root):
        if region != old:
            (region / ".regioninfo").write_bytes(b"PBUF")
    file = cf.open(root, as_of=AS_OF)
    with pytest.raises(cf.CorruptFileError, match="region info"):
        file.read()
    assert file.read(on_error="skip").num_rows == 0
    assert any("may have replaced this one" in entry["reason"] for entry in file.damage)
    # A region that references half of the other is the younger region, and is read.
    (old / "f" / f"{next(source.iterdir()).name}.{source.parent.name}").write_bytes(b"")
    other = next(region for region in regions(root) if region not in (old, source.parent))
    shutil.rmtree(other)
    assert cf.open(root, as_of=AS_OF).metadata["regions"][0]["name"] == old.name


def test_store_files_from_split_logs_are_read(tmp_path: Path) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)

    def sequence_id(path: Path) -> int:
        value = cf.open(path).metadata["file_info"]["MAX_SEQ_ID_KEY"]
        return int.from_bytes(value.encode("latin-1") if isinstance(value, str) else value, "big")

    files = [path for path in (regions(root)[0] / "f").iterdir() if not path.name.startswith(".")]
    newest = max(files, key=sequence_id)
    (newest.parent / "recovered.hfiles").mkdir()
    newest.rename(newest.parent / "recovered.hfiles" / newest.name)
    assert cf.open(root, as_of=AS_OF).read().equals(latest())
    left = cf.open(root, as_of=AS_OF, wal=False)
    assert not left.read().equals(latest(wal=False))
    [path] = left.metadata["wal"]["recovered_hfiles"]
    assert path.endswith(f"recovered.hfiles/{newest.name}")


def test_a_closed_log_ends_where_its_trailer_begins(tmp_path: Path) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    [log] = (path for path in (root / "WALs").rglob("*") if path.is_file())
    data = log.read_bytes()
    if data.endswith(b"LAWP"):
        data = data[: -8 - int.from_bytes(data[-8:-4], "big")]
    closed = data + b"\0\0\0\0LAWP"
    log.write_bytes(closed)
    assert cf.open(root, as_of=AS_OF).read().equals(latest())
    cut = data[:-7]
    log.write_bytes(cut)  # its server died
    assert cf.open(root, as_of=AS_OF).read().num_rows > 0
    log.write_bytes(cut + b"\0\0\0\0LAWP")
    file = cf.open(root, as_of=AS_OF)
    with pytest.raises(cf.CorruptFileError, match="trailer"):
        file.read()
    assert file.read(on_error="skip").num_rows == 0
    assert "write-ahead log" in file.damage[0]["structure"]


@pytest.mark.parametrize(
    ("header", "what"),
    [
        (b"\x08\x01\x30\x01", "write-ahead logs with compressed values that name no codec"),
        (b"\x12\x01k", "encrypted write-ahead logs"),
    ],
    ids=["compressed", "encrypted"],
)
def test_logs_that_are_not_read_are_named(tmp_path: Path, header: bytes, what: str) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    [log] = (path for path in (root / "WALs").rglob("*") if path.is_file())
    log.write_bytes(b"PWAL" + bytes([len(header)]) + header)
    with pytest.raises(cf.UnsupportedError, match=f"{what}; `wal=False`"):
        cf.open(root, as_of=AS_OF).read()
    flushed = cf.open(root, as_of=AS_OF, wal=False)
    assert flushed.read().equals(latest(wal=False))
    # The logs are listed; their numbers of cells are unknown.
    assert (len(flushed.metadata["wal"]["logs"]), flushed.metadata["wal"]["cells"]) == (1, None)


def test_a_damaged_log_withholds_what_lost_edits_may_concern(tmp_path: Path) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    [log] = (path for path in (root / "WALs").rglob("*") if path.is_file())
    log.write_bytes(b"PWAL\x7f" + log.read_bytes()[5:])
    for view in ("latest", "versions", "raw"):
        file = cf.open(root, as_of=AS_OF, view=view)
        assert (file.read(on_error="skip").num_rows, file.read(on_error="null").num_rows) == (0, 0)
        assert file.damage
        assert all("write-ahead log" in d["structure"] for d in file.damage)
        assert file.verify()["damage"]
        with pytest.raises(cf.ColdframeError, match="write-ahead log"):
            file.read()
    assert cf.open(root, as_of=AS_OF, wal=False).read().equals(latest(wal=False))


def test_an_inventory_lists_the_tables_of_a_root(tmp_path: Path) -> None:
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


def test_a_root_of_several_tables_has_an_entry_for_each_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT, tmp_path / "hbase")
    phoenix = ROOT.parents[2] / "phoenix/files/root/data/default"
    for name in ("KEYS", "small"):
        shutil.copytree(phoenix / name, tmp_path / "hbase/data/default" / name)
    # A table without cells gets a name, but no guessed columns.
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
