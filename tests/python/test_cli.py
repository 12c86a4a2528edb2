"""The command `coldframe`."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import ROWS, SCHEMA
from truth import same

import coldframe as cf
from coldframe.cli import main
from coldframe.cli.bytemap import kind, regions, shares
from coldframe.cli.ddl import hive_columns
from coldframe.cli.output import escaped, to_json_value

HOW = ["--schema", SCHEMA, "--serde", "binary"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:  # raised by argparse
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def broken(written: Path, tmp_path: Path) -> Path:
    data = bytearray(written.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    path = tmp_path / "broken.rc"
    path.write_bytes(data)
    return path


def test_help_lists_commands_and_examples(run: Any) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert "exit codes" in out
    assert "coldframe head" in out
    commands = ["detect", "schema", "meta", "stats", "head", "cat", "count", "inspect", "verify", "salvage"]
    commands += ["convert", "splits", "migrate", "version"]
    for command in commands:
        assert f"    {command}" in out
        if command not in ("migrate", "version"):
            code, text, _ = run(command, "--help")
            assert code == 0
            assert f"examples:\n  coldframe {command}" in text


def test_usage_mistakes_are_explained(run: Any, written: Path) -> None:
    for arguments in (
        [],
        ["nonsense"],
        ["head"],
        ["head", written, "--where", "x ==", *HOW],
        ["head", written, "--option", "novalue"],
        ["head", written, "--option", "nosuch=1"],
        ["head", written, "-c", "nope", *HOW],
        ["head", "missing.rc"],
        ["convert", written, "out.unknown", *HOW],
        ["cat", written, "--to", "xml"],
        ["inspect", written, "--at", "-1"],
    ):
        code, out, err = run(*arguments)
        assert code == 2, arguments
        assert out == ""
        assert err.startswith(("coldframe: ", "usage: ")), arguments


def test_version_is_printed(run: Any) -> None:
    assert run("version") == (0, f"coldframe {cf.__version__}\n", "")
    assert run("--version")[1] == f"coldframe {cf.__version__}\n"


def test_detect_prints_formats(run: Any, written: Path) -> None:
    assert run("detect", written)[:2] == (0, f"{written}: rcfile\n")
    code, out, _ = run("detect", "--json", written, __file__)
    assert code == 2
    assert json.loads(out) == {str(written): "rcfile", __file__: None}


def test_schema_prints_the_columns(run: Any, written: Path, table: pa.Table) -> None:
    code, out, _ = run("schema", written, *HOW)
    assert code == 0
    assert out.splitlines()[1] == "id\tint64"
    assert json.loads(run("schema", written, "--json", *HOW)[1])[1] == {
        "name": "x",
        "type": "int32",
        "nullable": True,
    }
    ddl = run("schema", written, "--as", "hive", *HOW)[1].strip()
    assert cf.open(written, schema=ddl, serde="binary").schema.types == table.schema.types


def test_meta_stats_and_splits_print_text_and_json(run: Any, written: Path) -> None:
    code, out, _ = run("meta", written, *HOW)
    assert code == 0
    assert "format: rcfile" in out
    assert json.loads(run("meta", written, "--json")[1])["format"] == "rcfile"
    assert run("stats", written, *HOW)[0] == 0
    json.loads(run("stats", written, "--json", *HOW)[1])
    splits = json.loads(run("splits", written, "--json", "--split-bytes", 4000, *HOW)[1])
    assert splits[0]["path"] == str(written)
    assert run("splits", written, *HOW)[1].startswith("path\tpart\t")


def test_head_prints_the_first_rows(run: Any, written: Path) -> None:
    code, out, _ = run("head", written, "-n", 2, "-c", "id,s,at,st,tags", *HOW)
    assert code == 0
    assert out.splitlines() == [
        "id\ts\tat\tst\ttags",
        "0\t\t\t\t",
        '1\tname 1\t1970-01-01 00:00:01.000000007\t{"a": 1, "b": "1"}\t["0"]',
    ]
    lines = run("head", written, "--json", "--where", "id in (7, 8)", *HOW)[1].splitlines()
    assert [json.loads(line)["id"] for line in lines] == [7, 8]
    assert len(run("head", written, *HOW)[1].splitlines()) == 11


def test_cat_prints_all_rows(
    written: Path, capfdbinary: pytest.CaptureFixture[bytes], table: pa.Table
) -> None:
    def cat(*arguments: object) -> bytes:
        assert main(["cat", str(written), *map(str, arguments), *HOW]) == 0
        return capfdbinary.readouterr().out

    rows = list(csv.DictReader(io.StringIO(cat().decode())))
    assert len(rows) == ROWS
    assert rows[1]["st"] == '{"a": 1, "b": "1"}'
    lines = [json.loads(line) for line in cat("--to", "jsonl", "-n", 3).decode().splitlines()]
    assert [line["id"] for line in lines] == [0, 1, 2]
    assert same(pa.ipc.open_stream(cat("--to", "arrow")).read_all(), table)
    assert pq.read_table(pa.BufferReader(cat("--to", "parquet", "-c", "id"))).equals(table.select(["id"]))


def test_count_prints_the_number_of_rows(run: Any, written: Path) -> None:
    assert run("count", written, *HOW)[1] == f"{ROWS}\n"
    assert run("count", written, "--where", "id < 10", *HOW)[1] == "10\n"
    assert json.loads(run("count", written, written, "--json", *HOW)[1]) == {"rows": 2 * ROWS}


def test_inspect_prints_the_layout(run: Any, written: Path) -> None:
    size = written.stat().st_size
    code, out, _ = run("inspect", written, *HOW)
    assert code == 0
    assert f"[0 +{size}]" in out.splitlines()[0]
    assert json.loads(run("inspect", written, "--json")[1])["length"] == size
    assert "more" in run("inspect", written, "--children", 2)[1]
    assert len(run("inspect", written, "--depth", 0)[1].splitlines()) == 1
    path = run("inspect", written, "--at", size - 1)[1].splitlines()
    assert len(path) > 1


def test_verify_reports_damage_by_its_exit_code(run: Any, written: Path, broken: Path) -> None:
    code, out, _ = run("verify", written, *HOW)
    first, checked = out.splitlines()
    assert (code, first) == (0, f"{written}: no damage found, {ROWS} rows in 10 units")
    assert checked.startswith("  checked: decoding of every value, ")
    assert "no checksums" in checked
    code, out, _ = run("verify", broken, written, *HOW)
    assert code == 1
    assert "DAMAGED" in out
    code, out, _ = run("verify", "--json", broken, written, "missing.rc", *HOW)
    report = json.loads(out)
    assert code == 1
    assert report[str(broken)]["damage"]
    assert report[str(written)]["damage"] == []
    assert report["missing.rc"]["error_type"] == "NotFoundError"
    assert run("verify", written, "missing.rc", *HOW)[0] == 2


def test_salvage_saves_the_readable_rows(
    run: Any, broken: Path, tmp_path: Path, written: Path, table: pa.Table
) -> None:
    dest, report = tmp_path / "rescued.parquet", tmp_path / "lost.json"
    code, out, _ = run("salvage", broken, dest, "--report", report, *HOW)
    assert code == 1
    assert "rows saved" in out
    summary = json.loads(report.read_text())
    rescued = pq.read_table(dest)
    assert rescued.num_rows == summary["rows"]
    assert 700 <= rescued.num_rows < ROWS
    assert summary["damage"]
    assert rescued.num_rows + sum(lost["rows_lost"] or 0 for lost in summary["damage"]) <= ROWS
    assert run("salvage", written, dest, "--overwrite", *HOW)[0] == 0
    assert same(pq.read_table(dest), table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.rc", "lost.json", "rescued.parquet"]


def test_convert_writes_other_formats(
    run: Any, written: Path, tmp_path: Path, table: pa.Table, broken: Path
) -> None:
    parquet = tmp_path / "all.parquet"
    code, out, err = run("convert", written, parquet, "--where", "id < 100", *HOW)
    assert (code, out) == (0, "")
    assert "100 rows" in err
    assert same(pq.read_table(parquet), table.slice(0, 100))
    copy = tmp_path / "copy.rc"
    code, out, _ = run("convert", written, copy, "--write-option", "serde=text", "--json", "-c", "id,s", *HOW)
    assert json.loads(out)["rows"] == ROWS
    assert cf.open(copy, schema="id bigint, s string", serde="text").read().equals(table.select(["id", "s"]))
    for name in ("all.csv", "all.jsonl", "all.arrow"):
        assert run("convert", written, tmp_path / name, *HOW)[0] == 0
        assert (tmp_path / name).stat().st_size > 10_000
    assert run("convert", broken, tmp_path / "no.parquet", *HOW)[0] == 1
    assert not (tmp_path / "no.parquet").exists()
    assert run("convert", broken, tmp_path / "some.parquet", "--on-error", "skip", *HOW)[0] == 1
    assert pq.read_table(tmp_path / "some.parquet").num_rows >= 700
    assert run("convert", written, parquet, "--write-option", "a=b", *HOW)[0] == 2


def test_directories_are_read_with_partition_columns(run: Any, tmp_path: Path) -> None:
    for day in ("2014-01-01", "2014-01-02"):
        (tmp_path / f"dt={day}").mkdir()
        cf.write(pa.table({"x": [1, 2]}), tmp_path / f"dt={day}" / "f", format="rcfile", serde="binary")
    how = ["--schema", "x int", "--serde", "binary"]
    assert run("count", tmp_path, *how)[1] == "4\n"
    assert (
        run("head", tmp_path, "--where", "dt = '2014-01-02'", *how)[1]
        == "x\tdt\n1\t2014-01-02\n2\t2014-01-02\n"
    )
    assert run("count", tmp_path / "dt=*" / "*", "--where", "x > 1", *how)[1] == "2\n"


def test_a_damaged_file_is_exit_code_1(run: Any, broken: Path) -> None:
    code, _, err = run("count", broken, "--where", "id >= 0 and s like '%x%'", *HOW)
    assert code == 1
    assert str(broken) in err
    code, out, err = run("head", broken, "-n", 5000, "-c", "id", "--on-error", "skip", *HOW)
    assert code == 1
    assert len(out.splitlines()) > 700
    assert "lost" in err


# ---- as a process


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "coldframe", *map(str, arguments)]


def test_closed_pipe_ends_the_command(written: Path) -> None:
    with subprocess.Popen(
        command("cat", *[written] * 50, "--to", "jsonl", *HOW), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_is_exit_code_130(written: Path) -> None:
    size = len(subprocess.check_output(command("cat", written, "--to", "jsonl", *HOW)))
    with subprocess.Popen(
        command("cat", *[written] * 2000, "--to", "jsonl", *HOW),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = sum(map(len, iter(lambda: process.stdout.read(1 << 20), b"")))
        assert process.wait() == 130
        assert rest < 1000 * size, "the command did not stop early"
        assert process.stderr.read() == b"coldframe: interrupted\n"


def test_migrate_runs_the_pipeline(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    # A second import would replace the parent's attribute, which other tests use.
    monkeypatch.setattr(cf, "pipeline", importlib.import_module("coldframe.pipeline"))
    for name in [name for name in sys.modules if name.startswith("coldframe.pipeline")]:
        monkeypatch.delitem(sys.modules, name)
    code, _, err = run("migrate", "a", "b")
    assert code == 2
    assert "pyspark" in err or "usage" in err or "a" in err


# ---- the pieces


def test_bytes_and_special_values_have_text_forms() -> None:
    assert escaped(b"a\\\x00\xff~") == "a\\x5C\\x00\\xFF~"
    assert to_json_value({1: [float("nan"), b"\x01", None]}) == {"1": ["nan", "\\x01", None]}


def test_arrow_types_are_written_as_hive_types() -> None:
    fields = pa.schema(
        [
            ("a`b", pa.uint64()),
            ("m", pa.map_(pa.string(), pa.list_(pa.decimal128(5, 2)))),
            ("s", pa.struct([("x", pa.int16()), ("y", pa.timestamp("us", "UTC"))])),
        ]
    )
    assert hive_columns(list(fields)) == (
        "`a``b` decimal(20,0), `m` map<string,array<decimal(5,2)>>, "
        "`s` struct<`x`:smallint,`y`:timestamp with local time zone>"
    )
    with pytest.raises(cf.UnsupportedError):
        hive_columns([pa.field("n", pa.null())])


def test_a_byte_map_shows_the_kind_with_the_most_bytes() -> None:
    def node(name: str, offset: int, length: int, *children: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "offset": offset, "length": length, "detail": {}, "children": list(children)}

    tree = node("file", 0, 100, node("header", 0, 10), node("stripe 0", 10, 40), node("stripe 1", 53, 47))
    assert kind("stripe 12") == "stripe"
    assert list(regions(tree)) == [(0, 10, "header"), (10, 40, "stripe"), (50, 3, "file"), (53, 47, "stripe")]
    assert shares(tree, 10) == ["header", *["stripe"] * 9]
    assert sum(length for _, length, _ in regions(tree)) == 100
    assert shares(node("empty", 0, 0), 3) == ["", "", ""]


def test_pictures_are_drawn_on_a_terminal(written: Path) -> None:
    """The rich forms, which other tests never show."""
    pty = pytest.importorskip("pty")
    for arguments in (["inspect", written], ["head", written], ["meta", written], ["verify", written]):
        primary, secondary = pty.openpty()
        environment = {**os.environ, "COLDFRAME_PAGER": ""}
        process = subprocess.Popen(
            command(*arguments, *HOW), stdout=secondary, stderr=secondary, env=environment
        )
        os.close(secondary)
        seen = b""
        while True:
            try:
                part = os.read(primary, 1 << 16)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.close(primary)
        assert process.wait() == 0, seen
        assert b"Traceback" not in seen
        assert seen
