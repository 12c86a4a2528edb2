"""Foreign files beside the files of a table: files left out with a warning, and files that are an error."""

from __future__ import annotations

import gzip
import json
import pickle
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate

import coldframe as cf
from coldframe._coldframe import unclaimed
from coldframe.cli import main

ROWS = pa.table({"id": range(100), "s": [f"name {i % 7}" for i in range(100)]})


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two ORC files in partitions, and text files beside them."""
    folder = tmp_path / "sales"
    for part in (1, 2):
        (folder / f"p={part}").mkdir(parents=True)
        cf.write(ROWS, folder / f"p={part}" / "part-0.orc", format="orc", codec="zlib")
    (folder / "README.md").write_text("# What lies here\n\u00e4\n", encoding="utf-8")
    (folder / "p=1" / "job.log").write_text("started\nended\n")
    (folder / "p=1" / "rows.csv").write_text("id,s\n1,a\n")
    (folder / "p=1" / "part-0.orc.md5").write_text("d41d8cd98f00b204e9800998ecf8427e  part-0.orc\n")
    (folder / "p=2" / "rows.csv.gz").write_bytes(gzip.compress(b"id,s\n1,a\n"))
    (folder / "_SUCCESS").touch()
    pq.write_table(ROWS, folder / "p=2" / "export.parquet")
    return folder


LEFT_OUT = {
    "README.md": "text",
    "p=1/job.log": "text",
    "p=1/part-0.orc.md5": "text",
    "p=1/rows.csv": "text",
    "p=2/export.parquet": "Parquet",
    "p=2/rows.csv.gz": "gzip",
}


def test_scan_leaves_foreign_files_out_with_a_warning(warehouse: Path) -> None:
    with pytest.warns(
        cf.LeftOutWarning, match=r"README.md \(text\), job.log \(text\), .* and 3 more"
    ) as warned:
        dataset = cf.scan(warehouse)
    assert len(warned) == 1
    assert str(warehouse) in str(warned[0].message)
    assert dataset.left_out == [
        {"path": str(warehouse / path), "kind": kind} for path, kind in sorted(LEFT_OUT.items())
    ]
    assert dataset.files == [str(warehouse / f"p={part}" / "part-0.orc") for part in (1, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # warned about only once
        assert dataset.count() == dataset.num_rows == 200
        assert pickle.loads(pickle.dumps(dataset)).to_table(["id", "p"]).num_rows == 200
        assert sum(s.to_batches().read_all().num_rows for s in dataset.splits()) == 200


def test_similar_names_are_not_probed(tmp_path: Path) -> None:
    for part in range(3):
        cf.write(ROWS, tmp_path / f"00000{part}_0", format="orc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cf.scan(tmp_path).left_out == []


@pytest.mark.parametrize(
    "command", ["count", "head", "cat", "verify", "meta", "stats", "sizes", "inspect", "index"]
)
def test_every_command_leaves_foreign_files_out(
    command: str, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(warehouse), *(["-c", "s"] if command == "dictionary" else [])]) == 0
    output = capsys.readouterr()
    assert output.err.count("left out, because no format reads them: README.md (text), job.log (text)") == 1
    if command == "count":
        assert output.out == "200\n"


def test_convert_salvage_and_sql_leave_foreign_files_out(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("convert", "salvage"):
        assert main([command, str(warehouse), str(warehouse.parent / f"{command}.parquet")]) == 0
        assert pq.read_table(warehouse.parent / f"{command}.parquet").num_rows == 200
    assert "left out" in capsys.readouterr().err
    (warehouse / "p=1" / "a.parquet").write_bytes((warehouse / "p=2" / "export.parquet").read_bytes())
    assert main(["sql", f"select count(*) as n from '{warehouse}'", "--format", "json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == [{"n": 200}]
    assert output.err.count("left out") == 1
    assert main(["tables", str(warehouse.parent), "--json", "--no-rows"]) == 0
    [table] = [entry for entry in json.loads(capsys.readouterr().out) if entry["name"] == "sales"]
    assert (table["format"], table["files"]) == ("orc", 2)


@pytest.mark.parametrize(
    "name",
    [
        "p=1/part-1.orc",  # has the extension of a format
        "p=1/part-00001",  # in a numbered series
        "p=3/rows.csv",  # the only file of its partition
    ],
)
def test_possible_rows_of_the_table_are_an_error(name: str, tmp_path: Path) -> None:
    for part in (1, 2):
        (tmp_path / f"p={part}").mkdir()
        cf.write(ROWS, tmp_path / f"p={part}" / "part-00000", format="orc")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("id,s\n1,a\n")
    dataset = cf.scan(tmp_path)
    assert dataset.left_out == []
    with pytest.raises(cf.CorruptFileError, match="magic of a known format"):
        dataset.to_table()
    lost = []
    assert dataset.to_batches(on_error="skip", on_damage=lost.extend).read_all().num_rows == 200
    assert [entry["path"] for entry in lost] == [str(tmp_path / name)]


def test_truncated_or_named_files_are_an_error(warehouse: Path) -> None:
    whole = (warehouse / "p=1" / "part-0.orc").read_bytes()
    with pytest.raises(cf.CorruptFileError):
        cf.scan([warehouse / "p=1" / "part-0.orc", warehouse / "README.md"]).to_table()
    (warehouse / "p=1" / "part-1.cut").write_bytes(whole[: len(whole) // 2])
    with pytest.warns(cf.LeftOutWarning), pytest.raises(cf.CorruptFileError):
        cf.scan(warehouse).to_table()


def test_directory_of_other_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.txt").write_text("notes\n")
    with pytest.raises(cf.CorruptFileError, match=r"a\.csv.*magic of a known format"):
        cf.scan(tmp_path).to_table()


def test_migration_leaves_foreign_files_out(warehouse: Path, tmp_path: Path) -> None:
    from coldframe.pipeline import InProcess, migrate

    lake = tmp_path.parent / f"{tmp_path.name}-lake"
    (warehouse / "p=2" / "part-1.orc").write_bytes(b"torn off")
    report = migrate(InProcess(), warehouse.parent, lake / "first", to="parquet")
    assert report.exit_code == 1
    summary = json.loads((lake / "first" / "_coldframe" / "report.json").read_text())
    [table] = summary["tables"]
    assert table["reasons"][0]["kind"] == "failed"
    assert [problem["source"] for problem in table["problems"]] == ["sales/p=2/part-1.orc"]
    (warehouse / "p=2" / "part-1.orc").unlink()
    report = migrate(InProcess(), warehouse.parent, lake / "again", to="parquet")
    assert report.verified
    assert report.exit_code == 0
    safe = (lake / "again" / "_coldframe" / "safe-to-delete.txt").read_text()
    assert not any(path in safe for path in LEFT_OUT)
    summary = json.loads((lake / "again" / "_coldframe" / "report.json").read_text())
    assert sorted(summary["unknown"]) == sorted(f"sales/{path}" for path in LEFT_OUT)


def test_other_files_beside_a_summary_of_redfiles_keep_it_off_the_list(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    folder = estate.source / "job"
    folder.mkdir()
    for part in ("part-0.redelm", "part-1.redelm"):
        cf.write(ROWS, folder / part, format="redfile")
    data = (folder / "part-0.redelm").read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    uri = b"hdfs://host/job/part-0.redelm"
    summary = (1).to_bytes(4, "big") + len(uri).to_bytes(2, "big") + uri + footer
    (folder / "_RedElmSummary").write_bytes(summary)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.redelm.crc").write_bytes(b"crc\0")
    assert cf.open(folder).read().num_rows == 2 * len(ROWS)
    assert unclaimed(folder, format="redfile") == []
    estate.migrate()
    assert estate.safe() == [str(folder)]
    (folder / "orders").mkdir()
    cf.write(ROWS, folder / "orders" / "part-0.redelm", format="redfile")
    pq.write_table(ROWS, folder / "export.parquet")
    assert [name for name, _ in unclaimed(folder, format="redfile")] == [
        "export.parquet",
        "orders/part-0.redelm",
    ]
    report = estate.migrate()
    assert (report.exit_code, estate.safe()) == (0, [])
    [item] = (item for item in report.left_out if item.kind == "other-files")
    assert (item.count, item.blocks) == (2, True)
