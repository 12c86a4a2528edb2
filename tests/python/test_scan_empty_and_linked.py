"""Scans skip empty files and folders, and follow links to folders."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf


def part(path: Path, start: int, rows: int = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cf.write(pa.table({"id": pa.array(range(start, start + rows), pa.int64())}), path, format="orc")


def ids(sources: object) -> list[int]:
    return sorted(cf.scan(sources).to_table(["id"])["id"].to_pylist())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "table"
    part(root / "dt=2020-01-01" / "000000_0", 0)
    part(root / "dt=2020-01-02" / "000000_0", 100)
    return root


def test_empty_buckets_and_markers_hold_no_rows(tree: Path) -> None:
    (tree / "dt=2020-01-01" / "000001_0").touch()
    (tree / "dt=2020-01-03").mkdir()
    (tree / "dt=2020-01-04").mkdir()
    (tree / "dt=2020-01-04" / "000000_0").touch()
    (tree / "dt=2020-01-01_$folder$").touch()
    assert ids(tree) == list(range(200))
    assert ids(f"{tree}/dt=*") == list(range(200))
    assert ids(f"{tree}/*/*_0") == list(range(200))
    assert ids([str(path) for path in sorted(tree.iterdir())]) == list(range(200))
    assert cf.scan(tree).count_rows() == 200


def test_only_empty_files_is_reported(tmp_path: Path) -> None:
    (tmp_path / "000000_0").touch()
    with pytest.raises(cf.NotFoundError, match="empty"):
        cf.scan(tmp_path)
    (tmp_path / "000000_0").unlink()
    with pytest.raises(cf.NotFoundError, match="no files"):
        cf.scan(tmp_path)


def test_linked_folders_are_followed(tree: Path, tmp_path: Path) -> None:
    part(tmp_path / "elsewhere" / "000000_0", 200)
    (tree / "dt=2020-01-03").symlink_to(tmp_path / "elsewhere")
    assert ids(tree) == list(range(300))
    assert ids(f"{tree}/**/*_0") == list(range(300))
    assert cf.scan(tree).to_table(filter="dt = date '2020-01-03'").num_rows == 100


def test_circular_links_end(tree: Path, tmp_path: Path) -> None:
    """Links to the root, to a parent folder, and between two folders."""
    (tree / "dt=2020-01-01" / "back").symlink_to(tree)
    assert ids(tree) == list(range(200))
    part(tmp_path / "other" / "dt=2020-01-03" / "000000_0", 200)
    (tmp_path / "other" / "dt=2020-01-03" / "x").symlink_to(tree / "dt=2020-01-02")
    (tree / "dt=2020-01-02" / "y").symlink_to(tmp_path / "other" / "dt=2020-01-03")
    # The folders link to each other: a scan from either reads each row once.
    assert ids(tree / "dt=2020-01-02") == list(range(100, 300))
    assert ids(tmp_path / "other" / "dt=2020-01-03") == list(range(100, 300))
