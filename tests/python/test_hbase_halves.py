"""Missing halves of HBase directories are reported by default; other versions' directories are refused."""

from __future__ import annotations

import shutil
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from estates import Estate

import coldframe as cf
from coldframe._coldframe import unclaimed

ROOT = Path(__file__).resolve().parents[1] / "data" / "hbase" / "files" / "orders"
TABLE = Path("data/shop/orders")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ROOT, tmp_path / "src" / "hbase")
    return tmp_path / "src" / "hbase"


def warned(place: Path, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cf.open(place, **options)
    return [str(warning.message) for warning in caught]


def cells(place: Path, **options: Any) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cf.open(place, **options).read().num_rows


def test_a_root_without_logs_is_a_warning(root: Path) -> None:
    assert warned(root) == []
    whole = cells(root)
    shutil.rmtree(root / "WALs")
    # Also of regions that were never flushed since they were opened.
    for mark in root.rglob("*.seqid"):
        mark.unlink()
    [text] = warned(root)
    assert "no folder WALs" in text
    assert cells(root) < whole
    assert warned(root, wal=False) == []
    with pytest.raises(cf.CorruptFileError, match="no folder WALs"):
        cf.open(root, complete=True).read()
    file = cf.open(root, complete=True)
    assert file.read(on_error="skip").num_rows == cells(root)
    assert any("no folder WALs" in lost["reason"] for lost in file.damage)
    assert cf.open(root, complete=True, wal=False).read().num_rows == cells(root, wal=False)


@pytest.mark.filterwarnings("ignore::coldframe.PartialTableWarning")
def test_a_root_without_logs_is_not_verified(root: Path) -> None:
    estate = Estate(root.parent.parent)
    shutil.rmtree(root / "WALs")
    report = estate.migrate(leave_behind=["snapshots", "older-versions"])
    assert (report.exit_code, estate.safe()) == (1, [])
    assert "no folder WALs" in str(report.tables[0].partial)


def test_marks_of_open_regions_without_a_log_are_a_warning(root: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(root / TABLE, alone)
    for log in root.glob("WALs/*/*"):
        log.unlink()
    [text] = warned(root)
    assert "no server has a log" in text
    assert "not closed since it was opened" in text
    assert warned(root, wal=False) == []
    with pytest.raises(cf.CorruptFileError, match="no server has a log"):
        cf.open(root, complete=True).read()
    [text] = warned(alone)
    assert "folder alone" in text
    # HBase closed the regions after their last flush: all edits are in their files.
    for place in (root, alone):
        for mark in place.rglob("*.seqid"):
            mark.rename(mark.with_name("99999.seqid"))
        assert warned(place) == []


@pytest.mark.filterwarnings("ignore::coldframe.PartialTableWarning")
def test_a_root_with_an_empty_folder_of_logs_is_not_verified(root: Path) -> None:
    estate = Estate(root.parent.parent)
    for log in root.glob("WALs/*/*"):
        log.unlink()
    report = estate.migrate(leave_behind=["snapshots", "older-versions"])
    assert (report.exit_code, estate.safe()) == (1, [])
    assert "no server has a log" in str(report.tables[0].partial)


def test_a_root_that_was_shut_down_is_verified_without_logs(root: Path) -> None:
    estate = Estate(root.parent.parent)
    for log in root.glob("WALs/*/*"):
        log.unlink()
    for mark in root.rglob("*.seqid"):
        mark.rename(mark.with_name("99999.seqid"))
    report = estate.migrate(leave_behind=["snapshots", "older-versions"])
    assert (report.exit_code, estate.safe()) == (0, [str(root)])


def test_a_table_without_a_descriptor_is_read_by_its_folders(root: Path) -> None:
    whole = cells(root)
    shutil.rmtree(root / TABLE / ".tabledesc")
    [text] = warned(root, table="shop:orders")
    assert ".tabledesc" in text
    assert cells(root, table="shop:orders") == whole
    # The table's folder alone: its regions have its name.
    alone = root.parent / "alone"
    shutil.copytree(root / TABLE, alone)
    assert any(".tabledesc" in text for text in warned(alone))
    assert cells(alone, wal=False) == cells(root, table="shop:orders", wal=False)


def test_what_is_no_table_is_refused_by_name(root: Path, tmp_path: Path) -> None:
    region = next(path for path in (root / TABLE).iterdir() if (path / ".regioninfo").exists())
    copy = tmp_path / "copy"
    shutil.copytree(region, copy)
    with pytest.raises(cf.UnsupportedError, match="one region"):
        cf.open(copy)
    for name in ("-ROOT-", ".META.", "t/2917807921353018942"):
        (tmp_path / "old" / name).mkdir(parents=True)
    (tmp_path / "old" / "hbase.version").write_bytes(b"\0\x017")
    with pytest.raises(cf.UnsupportedError, match=r"before 0\.96"):
        cf.open(tmp_path / "old")


def test_files_of_others_keep_a_root_off_the_list(root: Path) -> None:
    assert unclaimed(root, format="hbase") == []
    region = next(path for path in (root / TABLE).iterdir() if (path / ".regioninfo").exists())
    for place in (root, root / "WALs", root / TABLE, region, region / "f", region / "f" / "copy"):
        place.mkdir(exist_ok=True)
        (place / "part-0.orc").write_bytes(b"ORC")
    assert len(unclaimed(root, format="hbase")) == 6
    estate = Estate(root.parent.parent)
    report = estate.migrate(leave_behind=["snapshots", "older-versions"])
    assert (report.exit_code, estate.safe()) == (0, [])
    [item] = (item for item in report.left_out if item.kind == "other-files")
    assert (item.count, item.blocks) == (6, True)
    estate.migrate(leave_behind=["snapshots", "older-versions", "other-files"])
    assert estate.safe() == [str(root)]


def varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def cell(row: bytes, value: bytes) -> bytes:
    key = struct.pack(">H", len(row)) + row + b"\x01f" + b"phoenix" + struct.pack(">qB", 9, 4)
    whole = struct.pack(">ii", len(key), len(value)) + key + value
    return struct.pack(">i", len(whole)) + whole


def edit(region: str, number: int, items: list[bytes]) -> bytes:
    key = field(1, region.encode()) + field(2, b"shop:orders")
    key += varint(3 << 3) + varint(number) + varint(4 << 3) + varint(1) + varint(7 << 3) + varint(len(items))
    return varint(len(key)) + key + b"".join(items)


@pytest.mark.parametrize("length", [6, 200, 70_000])
def test_index_updates_of_phoenix_in_a_log_are_skipped(root: Path, length: int) -> None:
    region = cf.open(root).metadata["regions"][0]["name"]
    before = cells(root)
    size = length.to_bytes(3, "big").lstrip(b"\0")
    vint = bytes([length]) if length < 128 else bytes([0x90 - len(size)]) + size
    update = struct.pack(">i", -1) + b"\x04IDX1" + vint + b"\x0a" * length
    codec = field(5, b"org.apache.hadoop.hbase.regionserver.wal.IndexedWALEditCodec")
    header = field(4, b"ProtobufLogWriter") + codec
    log = b"PWAL" + varint(len(header)) + header
    log += edit(region, 90001, [cell(b"o0001", b"x"), update]) + edit(region, 90002, [cell(b"o0002", b"y")])
    (root / "WALs/localhost,2,2").mkdir()
    (root / "WALs/localhost,2,2/localhost%2C2%2C2.1").write_bytes(log)
    assert cells(root) == before + 2
    # Another codec has no such updates: a length of -1 is damage.
    (root / "WALs/localhost,2,2/localhost%2C2%2C2.1").write_bytes(log.replace(b"Indexed", b"Unknown"))
    with pytest.raises(cf.CorruptFileError, match="a cell's length"):
        cf.open(root).read()
