"""Regions by hbase:meta, and losses in logs: coldframe reports everything that it leaves out."""

from __future__ import annotations

import hashlib
import shutil
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe._coldframe import contents

ROOT = Path(__file__).resolve().parents[1] / "data" / "hbase" / "files" / "orders"
TABLE = Path("data/shop/orders")
AS_OF = 1_700_000_000_000


def latest(root: Path = ROOT, **options: object) -> pa.Table:
    return cf.open(root, **{"as_of": AS_OF, **options}).read()


def passed_over(root: Path, **options: object) -> dict[str, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scan = cf.open(root, **{"as_of": AS_OF, **options})._raw.scan()
    assert sum(batch.num_rows for batch in scan) > 0
    return scan.passed_over()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ROOT, tmp_path / "hbase")
    return tmp_path / "hbase"


def varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def region_info(number: int, start: bytes, end: bytes) -> bytes:
    name = field(1, b"shop") + field(2, b"orders")
    return b"\x08" + varint(number) + field(2, name) + field(3, start) + field(4, end) + b"\x28\0\x30\0"


def region_name(number: int, start: bytes) -> tuple[bytes, str]:
    name = b"shop:orders," + start + b"," + str(number).encode()
    encoded = hashlib.md5(name).hexdigest()
    return name + b"." + encoded.encode() + b".", encoded


def regions(root: Path) -> list[tuple[int, bytes, bytes]]:
    listed = cf.open(root).metadata["regions"]
    return [(region["id"], region["start"].encode(), region["end"].encode()) for region in listed]


def write_meta(root: Path, listed: list[tuple[int, bytes, bytes]]) -> None:
    """Writes hbase:meta with these regions, as one file."""
    rows = [(region_name(number, start)[0], region_info(number, start, end)) for number, start, end in listed]
    cells = pa.table(
        {
            "row": pa.array([row for row, _ in rows], pa.binary()),
            "family": pa.array([b"info"] * len(rows), pa.binary()),
            "qualifier": pa.array([b"regioninfo"] * len(rows), pa.binary()),
            "timestamp": pa.array([AS_OF] * len(rows), pa.int64()),
            "type": pa.array([4] * len(rows), pa.uint8()),
            "value": pa.array([b"PBUF" + info for _, info in rows], pa.binary()),
        }
    )
    folder = root / "data" / "hbase" / "meta" / "1588230740" / "info"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cf.write(cells, folder / ("0" * 31 + "1"), format="hfile")


def abandon_split(root: Path) -> list[str]:
    """Adds younger folders for the rows of the first region, as an abandoned split leaves them."""
    number, start, end = regions(root)[0]
    parent = root / TABLE / region_name(number, start)[1]
    names = []
    for first, last in ((start, b"o0020"), (b"o0020", end)):
        info = region_info(number + 1000, first, last)
        encoded = region_name(number + 1000, first)[1]
        shutil.copytree(parent / "f", root / TABLE / encoded / "f")
        for file in sorted((root / TABLE / encoded / "f").iterdir())[1:]:
            file.unlink()
        (root / TABLE / encoded / ".regioninfo").write_bytes(b"PBUF" + varint(len(info)) + info)
        names.append(encoded)
    return names


def reference(row: bytes, half: int) -> bytes:
    """A reference to half of a file: 0 has the rows from `row` on, 1 those before it."""
    key = len(row).to_bytes(2, "big") + row + b"\0" + (2**63 - 1).to_bytes(8, "big") + b"\xff"
    return b"PBUF" + field(1, key) + b"\x10" + bytes([half])


def refer(root: Path, number: int, rows: tuple[bytes, bytes], parents: list[tuple[str, bytes, int]]) -> Path:
    """Adds a region of halves of its parents' files: parent, dividing row, half.

    Returns one of the references.
    """
    encoded = region_name(number, rows[0])[1]
    references = []
    for parent, row, half in parents:
        for file in [f for family in "fg" for f in (root / TABLE / parent / family).iterdir()]:
            references.append(root / TABLE / encoded / file.parent.name / f"{file.name}.{parent}")
            references[-1].parent.mkdir(parents=True, exist_ok=True)
            references[-1].write_bytes(reference(row, half))
    info = region_info(number, *rows)
    (root / TABLE / encoded / ".regioninfo").write_bytes(b"PBUF" + varint(len(info)) + info)
    return references[-1]


def split(root: Path) -> list[tuple[Path, bytes]]:
    """Splits the first region."""
    number, start, end = regions(root)[0]
    parent, middle = region_name(number, start)[1], b"o0020"
    return [
        (refer(root, number + 9, (start, middle), [(parent, middle, 1)]), middle),
        (refer(root, number + 9, (middle, end), [(parent, middle, 0)]), middle),
    ]


def merge(root: Path) -> list[tuple[Path, bytes]]:
    """Merges both regions."""
    (number, start, middle), (_, _, end) = regions(root)
    parents = [(region_name(number, row)[1], row, 0) for row in (start, middle)]
    return [(refer(root, number + 9, (start, end), parents), middle)]


@pytest.mark.parametrize("change", [split, merge])
def test_a_changed_row_of_a_reference_is_damage(root: Path, change: Any) -> None:
    whole = latest(root, wal=False)
    for path, row in change(root):
        assert latest(root, wal=False).equals(whole)
        intact = path.read_bytes()
        at = intact.index(row)
        for place, bit in [(at, 0), (at + 1, 6), (at + len(row) - 1, 1)]:
            damaged = bytearray(intact)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            file = cf.open(root, as_of=AS_OF, wal=False)
            with pytest.raises(cf.CorruptFileError, match="where the region was split off"):
                file.read()
            left = file.read(on_error="skip")
            assert file.damage
            assert left.num_rows < whole.num_rows
        path.write_bytes(intact)


def test_meta_prefers_its_region_to_younger_unknown_folders(root: Path) -> None:
    whole, listed = latest(), regions(root)
    younger = abandon_split(root)
    # The result is the same without hbase:meta: the parent has files of a family that the younger regions
    # lack.
    with pytest.warns(UserWarning, match="that HBase gave up"):
        assert latest(root).equals(whole)
    write_meta(root, listed)
    with pytest.warns(UserWarning, match="hbase:meta does not list 2 of the region folders"):
        file = cf.open(root, as_of=AS_OF)
    assert file.metadata["regions_by"] == "hbase:meta"
    assert file.read().equals(whole)
    unknown = file.metadata["unknown_regions"]
    assert all(any(name in reason for reason in unknown) for name in younger)
    # Each of the younger regions has a file that is not read.
    assert passed_over(root)["regions"] == 2
    [held] = (entry for entry in contents(root, format="hbase") if entry["kind"] == "regions")
    assert (held["visible"], held["taken"]) == (True, None)
    for name in younger:
        shutil.rmtree(root / TABLE / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert latest(root).equals(whole)
    assert "regions" not in passed_over(root)


def test_rows_without_a_region_in_meta_are_read_from_their_folder(root: Path) -> None:
    whole, listed = latest(), regions(root)
    write_meta(root, listed[:1])
    with pytest.warns(UserWarning, match="hbase:meta does not list 1 of the region folders"):
        assert latest(root).equals(whole)
    assert "regions" not in passed_over(root)


def test_meta_is_read_before_region_folders(root: Path) -> None:
    whole, listed = latest(), regions(root)
    write_meta(root, listed)
    for number, start, _ in listed:
        (root / TABLE / region_name(number, start)[1] / ".regioninfo").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert latest(root).equals(whole)


def log_of(root: Path) -> Path:
    [log] = (path for path in (root / "WALs").rglob("*") if path.is_file())
    return log


def edits_of(data: bytes) -> list[int]:
    """The offsets of a log's edits."""

    def number(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value, at

    length, at = number(4)
    at += length
    end = len(data)
    if data.endswith(b"LAWP"):
        end = len(data) - 8 - int.from_bytes(data[-8:-4], "big")
    starts = []
    while at < end:
        starts.append(at)
        length, at = number(at)
        key, at = data[at : at + length], at + length
        count = key[key.rindex(b"\x38") + 1] if b"\x38" in key else 0
        for _ in range(count):
            at += 4 + int.from_bytes(data[at : at + 4], "big")
    return [*starts, end]


def test_damaged_length_in_an_unclosed_log_is_reported(root: Path) -> None:
    log = log_of(root)
    data = log.read_bytes()
    starts = edits_of(data)
    assert len(starts) > 10
    at = starts[-4]
    size = 1 if data[at] < 0x80 else 2
    whole = latest(root)
    log.write_bytes(data[:at] + b"\xff\xff\xff\xff\x07" + data[at + size : starts[-1]])
    file = cf.open(root, as_of=AS_OF)
    with pytest.raises(cf.CorruptFileError, match="the log is cut short") as caught:
        file.read()
    assert caught.value.offset == at
    left = file.read(on_error="skip")
    assert not left.equals(whole)
    assert any("cut short" in lost["reason"] for lost in file.damage)


def test_edit_cut_off_by_a_crash_is_reported(root: Path) -> None:
    log = log_of(root)
    data = log.read_bytes()
    starts = edits_of(data)
    log.write_bytes(data[: starts[-1]])
    before = latest(root)
    assert cf.open(root).metadata["wal"]["cut_off"] == []
    log.write_bytes(data[: starts[-1] - 3])
    [cut] = cf.open(root).metadata["wal"]["cut_off"]
    assert cut["offset"] == starts[-2]
    assert cut["log"].endswith(log.name)
    # The server never acknowledged this edit.
    assert latest(root).num_rows <= before.num_rows


def test_missing_logs_that_regions_need_are_reported(root: Path) -> None:
    assert cf.open(root).metadata["wal"]["missing"] is None
    shutil.rmtree(root / "WALs")
    with pytest.warns(UserWarning, match="no folder WALs"):
        file = cf.open(root, as_of=AS_OF)
    assert "not closed since it was opened at 1" in file.metadata["wal"]["missing"]
    assert passed_over(root)["edits"] == 2
    [held] = (entry for entry in contents(root, format="hbase") if entry["kind"] == "edits")
    assert held["taken"] is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flushed: Any = latest(root, wal=False)
    assert flushed.equals(latest(ROOT, wal=False))


def test_the_raw_view_limits_the_versions_of_a_column() -> None:
    every = latest(view="raw")
    some = latest(view="raw", versions=2)
    puts: dict[tuple[Any, ...], int] = {}
    wanted = []
    for cell in every.to_pylist():
        column = (cell["row"], cell["family"], cell["qualifier"])
        puts[column] = puts.get(column, 0) + (cell["type"] == 4)
        # No cell follows the last requested put, not even a delete marker.
        if puts[column] <= 2:
            wanted.append(cell)
    assert some.to_pylist() == wanted
    assert len(wanted) < every.num_rows
