"""The evidence in reports of `verify`: no format claims checksums that its files lack."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf

CELLS = pa.table(
    {
        "row": pa.array([b"a", b"b"], pa.binary()),
        "family": pa.array([b"f", b"f"], pa.binary()),
        "qualifier": pa.array([b"q", b"q"], pa.binary()),
        "timestamp": pa.array([1, 1], pa.int64()),
        "value": pa.array([b"1", b"2"], pa.binary()),
    }
)
NUMBERS = pa.table({"value": pa.array([1, 2], pa.int64())})


@pytest.mark.parametrize(
    ("format", "rows", "checksums"),
    [
        ("orc", NUMBERS, "none"),
        ("rcfile", NUMBERS, "none"),
        ("hfile", CELLS, "all"),
        ("cfile", NUMBERS, "all"),
    ],
)
def test_report_names_what_was_compared(tmp_path: Path, format: str, rows: pa.Table, checksums: str) -> None:
    path = tmp_path / "file"
    cf.write(rows, path, format=format)
    report = cf.open(path).verify()
    assert (report["rows"], report["damage"], report["checksums"]) == (2, [], checksums)
    assert ("no checksums are stored" in report["checked"]) == (checksums == "none")
    ignored = cf.open(path, verify_checksums=False).verify()
    assert ignored["checksums"] == ("none" if checksums == "none" else "ignored")


def test_blocks_that_say_they_have_no_checksum_are_no_proof(tmp_path: Path) -> None:
    path = tmp_path / "file"
    cf.write(CELLS, path, format="hfile", checksum="null")
    report = cf.open(path).verify()
    assert (report["damage"], report["checksums"]) == ([], "none")
    assert "no checksums are stored" in report["checked"]
    # A block of another writer, or one whose checksum type was changed.
    cf.write(CELLS, path, format="hfile")
    whole = bytearray(path.read_bytes())
    assert whole[24] in (1, 2)
    whole[24] = 0
    assert cf.open(bytes(whole)).verify()["checksums"] == "some"
