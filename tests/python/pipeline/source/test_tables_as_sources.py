"""A table or partition that is given as the source itself is read as a table, not as a folder of files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from estates import Estate

import coldframe as cf

ACID = Path(__file__).resolve().parents[3] / "data" / "hive" / "files"


@pytest.mark.parametrize("name", sorted(path.name for path in ACID.iterdir() if path.is_dir()))
def test_a_transactional_table(name: str, tmp_path: Path) -> None:
    if cf.detect(ACID / name) is None:
        pytest.skip("no table by itself")
    estate = Estate(tmp_path)
    estate.source.rmdir()
    shutil.copytree(ACID / name, estate.source)
    try:
        rows = cf.open(estate.source).read().num_rows
    except cf.ColdframeError:
        assert (estate.migrate().exit_code, estate.safe()) == (1, [])
        return
    report = estate.migrate()
    assert [(table.name, table.rows) for table in report.tables] == [("src", rows)]
    assert (report.exit_code, estate.safe()) == (0, [str(estate.source)])


def test_files_in_a_table_of_hudi_are_not_scanned(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    for slice in ("1", "2"):
        estate.orc(f"trips/eu/g_0-1-{slice}_{slice}.orc", {"a": [1]})
    (estate.source / "trips/.hoodie").mkdir()
    (estate.source / "trips/.hoodie/hoodie.properties").write_text("hoodie.table.name=trips\n")
    estate.orc("other/f", {"a": [2]})
    report = estate.migrate()
    # No commit names the files, so the table has no rows; and the files are not its own.
    assert {table.name: table.rows for table in report.tables}["other"] == 1
    assert not any("trips" in path for path in estate.safe())
    with pytest.raises(cf.UnsupportedError, match="a Hudi table"):
        cf.scan(estate.source)
    assert cf.open(estate.source / "trips").read().num_rows == 0
    assert cf.scan(estate.source / "other").count() == 1


def test_a_file_that_no_state_of_a_transactional_table_reads(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    table = next(path for path in sorted(ACID.iterdir()) if path.is_dir() and cf.detect(path) is not None)
    shutil.copytree(table, estate.source / "t")
    estate.migrate()
    listed = estate.safe()
    (estate.source / "t/_backup").mkdir()
    (estate.source / "t/_backup/part-0.orc").write_bytes(b"ORC")
    report = estate.migrate()
    assert [item.kind for item in report.left_out] == ["other-files"]
    assert estate.safe() == []
    assert estate.migrate(leave_behind=["other-files"]).safe_to_delete == len(listed)
