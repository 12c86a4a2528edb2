"""Sources of the commands: directories, table folders, names from tables.toml, files of other formats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe.cli import grid, main

DATA = Path(__file__).parents[1] / "data"
ROWS = pa.table({"id": range(1000), "s": [f"name {i % 7}" for i in range(1000)]})


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two ORC files in partitions, and text files beside them."""
    folder = tmp_path / "sales"
    for part in (1, 2):
        (folder / f"p={part}").mkdir(parents=True)
        cf.write(ROWS, folder / f"p={part}" / "part-0.orc", format="orc", codec="zlib")
    (folder / "README.txt").write_text("What lies here:\n\u00e4\n" * 30, encoding="utf-8")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("command", ["verify", "meta", "stats", "sizes", "inspect", "index"])
def test_directory_is_read_as_its_files(
    command: str, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(warehouse), "--json"]) == 0
    output = capsys.readouterr()
    warning = "left out, because no format reads them: README.txt (text)"
    assert output.err == f"coldframe: warning: {warehouse}: {warning}\n"
    answer = json.loads(output.out)
    if command != "sizes":  # which prints a sum
        assert sorted(answer) == [str(warehouse / f"p={part}" / "part-0.orc") for part in (1, 2)]


def test_unreadable_binary_file_is_reported(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (warehouse / "p=1" / "torn.orc").write_bytes(bytes(range(200)))
    assert main(["verify", str(warehouse), "--json"]) == 1
    reports = json.loads(capsys.readouterr().out)
    assert "error" in reports[str(warehouse / "p=1" / "torn.orc")]
    assert len(reports) == 3


def test_directory_of_text_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.md").write_text("nothing\n")
    assert main(["verify", str(tmp_path)]) == 2
    assert "only notes.md (text)" in capsys.readouterr().err
    assert main(["detect", str(tmp_path)]) == 2
    assert "notes.md: unknown" in capsys.readouterr().out


def test_transactional_table_needs_no_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "changes"
    shutil.copytree(DATA / "hive" / "files" / "changes", folder)
    merged = cf.open(folder, acid=True).read()
    assert cf.open(folder).read().equals(merged)
    assert cf.read_table(folder).equals(merged)
    assert cf.scan(folder).to_table().equals(merged)
    assert main(["count", str(folder)]) == 0
    assert capsys.readouterr().out == f"{merged.num_rows}\n"
    for command in ("schema", "meta", "verify", "sizes", "inspect", "index", "stats"):
        assert main([command, str(folder)]) == 0, command
    with pytest.raises(cf.UnsupportedError, match="`acid` false"):
        cf.open(folder, acid=False)


def test_a_file_without_names_takes_them_from_tables_toml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sales").mkdir()
    path = tmp_path / "sales" / "000000_0"
    cf.write(ROWS, path, format="rcfile", serde="text")
    assert main(["head", str(path), "-n", "1"]) == 0
    assert capsys.readouterr().out == "_c0\t_c1\n0\tname 0\n"
    toml = tmp_path / "tables.toml"
    toml.write_text('[tables.sales]\nschema = "id bigint, s string"\nserde = "text"\n')
    for place in (path, path.parent):  # the nearest tables.toml applies
        assert main(["head", str(place), "-n", "1", "--json"]) == 0
        output = capsys.readouterr()
        assert json.loads(output.out) == {"id": 0, "s": "name 0"}
        assert f"with the options of [tables.sales] in {toml}" in output.err
    other = tmp_path / "other.toml"
    other.write_text('[tables.x]\npath = "sales"\nschema = "n int, t string"\nserde = "text"\n')
    assert main(["head", str(path), "-n", "1", "--tables", str(other), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": 0, "t": "name 0"}
    assert main(["head", str(path), "-n", "1", "--schema", "a bigint, b string", "--serde", "text"]) == 0
    assert capsys.readouterr().out.startswith("a\tb\n")
    other.write_text('[tables.x]\nschema = "n int, t string"\n')
    assert main(["head", str(path), "--tables", str(other)]) == 2
    assert "no entry has the path of" in capsys.readouterr().err


def test_head_and_cat_have_the_same_forms(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(warehouse / "p=1" / "part-0.orc")
    for form in ("table", "csv", "jsonl"):
        outputs = []
        for command in ("head", "cat"):
            assert main([command, path, "-n", "3", "--format", form]) == 0
            outputs.append(capsys.readouterr().out)
        assert outputs[0] == outputs[1] != ""
    assert main(["head", path, "-n", "2", "--vertical"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if ":" in line] == [
        ["id:", "0"],
        ["s:", "name", "0"],
        ["id:", "1"],
        ["s:", "name", "1"],
    ]


def test_offsets_may_be_hexadecimal(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(warehouse / "p=1" / "part-0.orc")
    assert main(["inspect", path, "--at", "16"]) == 0
    decimal = capsys.readouterr().out
    assert main(["inspect", path, "--at", "0x10"]) == 0
    assert capsys.readouterr().out == decimal
    with pytest.raises(SystemExit):
        main(["inspect", path, "--at", "here"])
    assert "expected a number such as 4139 or 0x102b, found 'here'" in capsys.readouterr().err


def test_wide_tables_leave_out_columns_in_the_middle() -> None:
    assert grid.fitting([5] * 4, 100) == [0, 1, 2, 3]
    assert grid.fitting([10] * 17, 100) == [0, 1, 2, 3, 14, 15, 16]
    assert grid.fitting([500, 5, 5], 60) == [0, 1, 2]  # a long value is folded and displaces no column
    assert grid.fitting([50, 50], 10) == [0]


def test_a_long_value_is_cut_on_a_terminal() -> None:
    assert grid.shortened("x" * 100_000) == "x" * 500 + "\u2026 (100,000 characters)"
    assert grid.shortened([1] * 1000) == "[" + "1, " * 166 + "1\u2026 (3,000 characters)"
    assert [grid.shortened(value) for value in (None, "x" * 500, 7)] == [None, "x" * 500, "7"]


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A file without its tail, beside an intact file of its table and a file of another table."""
    for name, rows in {"whole": ROWS, "a_other": pa.table({"x": [1.5]})}.items():
        cf.write(rows, tmp_path / f"{name}.orc", format="orc", codec="zlib")
    data = (tmp_path / "whole.orc").read_bytes()
    path = tmp_path / "cut.orc"
    path.write_bytes(data[:-40])
    return path


def test_truncated_file_is_salvaged_with_its_neighbours_columns(
    cut: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rescued = cut.with_name("rescued.parquet")
    assert main(["salvage", str(cut), str(rescued)]) == 1
    output = capsys.readouterr()
    assert "assumed the columns, codec and writer of whole.orc" in output.err
    assert pq.read_table(rescued).equals(ROWS)
    assert main(["salvage", str(cut), str(rescued), "--overwrite", "--json"]) == 1
    assert "whole.orc" in json.loads(capsys.readouterr().out)["assumed"]


def test_salvage_without_known_columns_names_the_next_step(
    cut: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut.with_name("whole.orc").unlink()
    assert main(["salvage", str(cut), str(cut.with_name("rescued.parquet"))]) == 1
    errors = capsys.readouterr().err
    assert "--schema" in errors
    assert "schema_from=NAME" in errors


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow"])
def test_other_formats_are_converted(ending: str, tmp_path: Path) -> None:
    cf.write(ROWS, tmp_path / "rows.orc", format="orc")
    between, back = tmp_path / f"rows.{ending}", tmp_path / "back.orc"
    assert main(["convert", str(tmp_path / "rows.orc"), str(between)]) == 0
    assert main(["convert", str(between), str(back), "--where", "id >= 10", "-c", "s,id", "-n", "500"]) == 0
    assert cf.read_table(back).equals(ROWS.select(["s", "id"]).slice(10, 500))
    assert main(["convert", str(between), str(back), "--overwrite", "-c", "nothing"]) == 2


def test_parquet_is_written_with_the_codec_and_row_groups_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cf.write(ROWS, tmp_path / "rows.orc", format="orc")
    source, dest = str(tmp_path / "rows.orc"), str(tmp_path / "rows.parquet")
    options = ["--write-option", "codec=gzip", "--write-option", "row_group_rows=300"]
    assert main(["convert", source, dest, *options]) == 0
    about = pq.ParquetFile(dest).metadata
    assert [about.row_group(at).num_rows for at in range(about.num_row_groups)] == [300, 300, 300, 100]
    assert about.row_group(0).column(0).compression == "GZIP"
    for wrong in ("codec=zip", "row_group_rows=many", "stripe_size=1"):
        assert main(["convert", source, dest, "--overwrite", "--write-option", wrong]) == 2
        assert wrong.partition("=")[0] in capsys.readouterr().err
