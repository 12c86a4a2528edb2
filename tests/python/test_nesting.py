"""Inputs that are nested without end are one line of error, whatever they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe.errors import ColdframeError, SchemaError
from coldframe.json_input import parse_json
from coldframe.pipeline import audit

DEEP = 100_000


@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP, "[" * DEEP + "]" * DEEP])
def test_json(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(given)


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    made.orc("t/a", {"a": [1]})
    return made


def test_a_journal(estate: Estate) -> None:
    estate.migrate()
    state = estate.target / "_coldframe/state"
    last = max(int(path.name[:12]) for path in state.glob("*.jsonl"))
    (state / f"{last + 1:012d}.jsonl").write_text("\n" + "[" * DEEP + "\n")
    (state / f"{last + 1:012d}.jsonl").write_text("[" * DEEP + "\n")
    for look in (estate.migrate, lambda: audit(estate.target)):
        with pytest.raises(ColdframeError, match=rf"{last + 1:012d}.jsonl, line 1: ValueError: it is nested"):
            look()


@pytest.mark.parametrize(
    "line", ["[1]", "17", '"run"', "null", '{"event": ["run"]}', '{"event": "begin", "entry": 1}']
)
def test_a_journal_of_other_json(estate: Estate, line: str) -> None:
    estate.migrate()
    state = estate.target / "_coldframe/state"
    last = max(int(path.name[:12]) for path in state.glob("*.jsonl"))
    (state / f"{last + 1:012d}.jsonl").write_text(f"{line}\n")
    with pytest.raises(ColdframeError, match=rf"{last + 1:012d}.jsonl(, line 1)?: "):
        audit(estate.target)


def test_earlier_runs(estate: Estate) -> None:
    estate.migrate()
    runs = estate.target / "_coldframe/runs.jsonl"
    runs.write_text(runs.read_text() + "[" * DEEP + "\n")
    assert len(estate.migrate().runs) == 2  # as other lines that are torn


def test_tables_toml(estate: Estate) -> None:
    for text in (f"a = {'[' * DEEP}", f"[tables.t]\nx = {'{ a = ' * DEEP}", f"[{'a.' * DEEP}b]"):
        (estate.source / "tables.toml").write_text(text)
        with pytest.raises(SchemaError, match=r"tables\.toml"):
            estate.migrate()


def test_a_list_of_sources(estate: Estate) -> None:
    estate.migrate()
    listed = estate.target / "_coldframe/safe-to-delete.txt"
    first, _, *rest = listed.read_text().split("\n")
    listed.write_text("\n".join([first, "# " + "[" * DEEP, *rest]))
    with pytest.raises(SchemaError, match="nested too deeply"):
        audit(before_delete=listed, dst=estate.target)


def test_the_record_of_a_write(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/_coldframe-written.json").write_text("[" * DEEP)
    with pytest.raises(FileExistsError, match="nested too deeply"):
        cf.write(pa.table({"p": [1], "a": [1]}), tmp_path / "t", format="orc", partitioning=["p"])


@pytest.mark.parametrize(
    "statement",
    [
        f"create table t (a {'array<' * DEEP}int{'>' * DEEP}) stored as orc;",
        f"create table t (a {'struct<x:' * DEEP}) stored as orc;",
        f"create table t (a int) stored as orc tblproperties ({'(' * DEEP});",
        "(" * DEEP,
    ],
    ids=["array", "struct", "properties", "parentheses"],
)
def test_statements(tmp_path: Path, statement: str) -> None:
    (tmp_path / "t.sql").write_text(statement)
    run = [sys.executable, "-m", "coldframe", "tables", str(tmp_path / "t.sql")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert len(done.stderr) < 2000


@pytest.mark.parametrize("type", ["array<" * DEEP + "int" + ">" * DEEP, "struct<a:" * DEEP])
def test_columns(tmp_path: Path, type: str) -> None:
    cf.write(pa.table({"a": [1]}), tmp_path / "x.rc", format="rcfile", serde="binary")
    with pytest.raises((ColdframeError, ValueError)) as caught:
        cf.open(tmp_path / "x.rc", schema=f"a {type}", serde="binary").read()
    assert len(str(caught.value)) < 1000


def test_iceberg_metadata(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    folder = tmp_path / "t/metadata"
    folder.mkdir(parents=True)
    nested = '{"type":"list","element-id":1,"element-required":false,"element":' * 5000
    for text in ("[" * DEEP, json.dumps({"format-version": 2})[:-1] + ',"schemas":' + "[" * DEEP, nested):
        (folder / "v1.metadata.json").write_text(text)
        with pytest.raises((ColdframeError, ValueError)) as caught:
            cf.iceberg_table(str(tmp_path / "t")).count()
        assert "v1.metadata.json" in str(caught.value)
        assert len(str(caught.value)) < 1000
