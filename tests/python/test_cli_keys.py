"""Commands on keys: get, scan, keys, bloom; and on the layout of bytes: sizes, index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.cli.options import key_of, size_of

DATA = Path(__file__).parents[1] / "data"
CELLS = DATA / "hfile" / "files" / "cells_none.hfile"
PAIRS = DATA / "hfile" / "files" / "pairs_none.hfile"
BLOOM = DATA / "orc" / "files" / "bloom_utf8.orc"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse's own
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def cfile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CFile of sorted words."""
    path = tmp_path_factory.mktemp("words") / "words.cfile"
    values = pa.array([f"word {i:06}" for i in range(5000)])
    table = pa.table([values], schema=pa.schema([pa.field("any", pa.string(), nullable=False)]))
    cf.write(table, path, format="cfile", encoding="prefix", block_size=1024, value_index=True)
    return path


def lines(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def test_keys_are_typed_as_they_are_shown() -> None:
    assert key_of(r"row-\x00\xff\x5C") == b"row-\x00\xff\\"
    assert key_of("grün") == "grün".encode()
    assert key_of(r"\xZZ") == rb"\xZZ"


def test_sizes_may_have_units() -> None:
    assert [size_of(text) for text in ("1000", "64m", "1GiB", "2 kb")] == [1000, 64 << 20, 1 << 30, 2048]
    for text in ("0", "-1", "m", "1x"):
        with pytest.raises(Exception, match="expected a positive size"):
            size_of(text)


def test_get_shows_the_cells_of_rows(run: Any) -> None:
    whole = cf.open(CELLS).read()
    row = whole["row"][0].as_py()
    want = sum(1 for each in whole["row"].to_pylist() if each == row)
    code, out, _ = run("get", CELLS, row.decode(), "--format", "jsonl")
    assert code == 0
    assert len(lines(out)) == want
    assert {line["row"] for line in lines(out)} == {row.decode()}
    assert run("get", CELLS, row.decode())[1].startswith("row\tfamily\tqualifier\t")
    code, out, _ = run("get", CELLS, "no such row", "--json")
    assert (code, out) == (1, "")
    assert run("get", BLOOM, "x")[0] == 2


def test_scan_takes_a_range_of_keys(run: Any) -> None:
    rows = sorted(set(cf.open(CELLS).read(["row"])["row"].to_pylist()))
    start, stop = rows[len(rows) // 3].decode(), rows[len(rows) // 2].decode()
    cells = lines(run("scan", CELLS, "--start", start, "--stop", stop, "--format", "jsonl")[1])
    assert [line["row"] for line in cells] == sorted(line["row"] for line in cells)
    assert {line["row"] for line in cells} == {r.decode() for r in rows if start <= r.decode() < stop}
    last = lines(run("scan", CELLS, "--reverse", "-n", 1, "--json")[1])
    assert [line["row"] for line in last] == [rows[-1].decode()]
    prefix = lines(run("scan", CELLS, "--prefix", start, "--json")[1])
    assert {line["row"] for line in prefix} == {r.decode() for r in rows if r.decode().startswith(start)}
    assert run("scan", CELLS, "--from-ordinal", 3)[0] == 2


def test_scan_takes_values_and_ordinals_of_a_cfile(run: Any, cfile: Path) -> None:
    rows = lines(run("scan", cfile, "--start", "word 000100", "--stop", "word 000103", "--json")[1])
    assert [line["value"] for line in rows] == ["word 000100", "word 000101", "word 000102"]
    rows = lines(run("scan", cfile, "--from-ordinal", 4998, "--json")[1])
    assert [line["value"] for line in rows] == ["word 004998", "word 004999"]
    assert lines(run("get", cfile, "word 000007", "--json")[1]) == [{"ordinal": 7, "value": "word 000007"}]
    assert run("scan", cfile, "--reverse")[0] == 2


def test_keys_are_distinct(run: Any, cfile: Path) -> None:
    rows = list(dict.fromkeys(row.decode() for row in cf.open(CELLS).read(["row"])["row"].to_pylist()))
    assert run("keys", CELLS)[1].splitlines() == rows
    assert run("keys", CELLS, "--count")[1] == f"{len(rows)}\n"
    assert json.loads(run("keys", CELLS, "-n", 2, "--json")[1]) == rows[:2]
    both = run("keys", CELLS, cfile, "-n", 1)[1].splitlines()
    assert both == [f"{CELLS}\t{rows[0]}", f"{cfile}\tword 000000"]
    assert run("keys", BLOOM)[0] == 2


def test_bloom_rules_out_absent_values(run: Any) -> None:
    row = cf.open(CELLS).read(["row"], limit=1)["row"][0].as_py().decode()
    assert run("bloom", CELLS, "--test", row)[0] == 0
    ids = pq.read_table(BLOOM.with_name("bloom_original.truth.parquet"))
    name = ids.schema.names[0]
    value = ids[name][0].as_py()
    code, out, _ = run("bloom", BLOOM, "-c", name, "--test", value, "--json")
    answer = json.loads(out)[0]
    assert code == 0
    assert answer["may_contain"]
    assert 0 < answer["units"] <= answer["of"]
    code, out, _ = run("bloom", BLOOM, "-c", name, "--test", "-123456789")
    assert code == 1
    assert "not there" in out
    assert run("bloom", BLOOM, "--test", "x")[0] == 2
    assert run("bloom", BLOOM, "-c", name, "--test", "no number")[0] == 2


def test_index_lists_the_units_that_pass_a_filter(run: Any) -> None:
    file = cf.open(BLOOM)
    name = file.schema.names[0]
    whole = json.loads(run("index", BLOOM, "--json")[1])
    assert sum(unit["rows"] for unit in whole) == file.num_rows
    assert all(0 < unit["fetched"] <= unit["length"] for unit in whole)
    none = json.loads(run("index", BLOOM, "--where", f"{name} = -123456789", "--json")[1])
    assert none == []
    out = run("index", BLOOM, "--where", f"{name} = -123456789")[1]
    assert out.splitlines()[-1].startswith(f"{BLOOM}: 0 of {len(whole)} units, 0 B of ")
    assert file.units(filter=f"{name} = -123456789") == []


def test_sizes_add_up_to_the_file(run: Any, tmp_path: Path) -> None:
    table = pa.table(
        {"id": range(10_000), "s": [f"name {i % 7}" for i in range(10_000)], "a.b": [1.5] * 10_000}
    )
    for format, options in (("orc", {}), ("rcfile", {"schema": "id bigint, s string, `a.b` double"})):
        path = tmp_path / f"t.{format}"
        cf.write(table, path, format=format)
        how = ["--schema", options["schema"], "--serde", "binary"] if options else []
        sizes = json.loads(run("sizes", path, "--json", *how)[1])
        assert [size["column"] for size in sizes[:3]] == ["id", "s", "a.b"]
        assert all(size["stored"] > 0 and size["plain"] > 0 for size in sizes[:3])
        assert sum(size["stored"] for size in sizes) == path.stat().st_size
        assert sizes[0]["plain"] >= 80_000
        text = run("sizes", path, "--stored", *how)[1]
        assert text.startswith("column\tstored\tshare\n")
        size_of_s = json.loads(run("sizes", path, "-c", "s", "--json", *how)[1])
        assert [size["column"] for size in size_of_s] == ["s"]


@pytest.mark.parametrize("path", [CELLS, PAIRS, DATA / "redfile" / "files"], ids=lambda path: path.name)
def test_sizes_of_other_formats_add_up(run: Any, path: Path) -> None:
    if path.is_dir():
        path = next(p for p in sorted(path.glob("*.redfile")) if cf.open(p).num_rows)
    sizes = json.loads(run("sizes", path, "--json", "--stored")[1])
    assert sum(size["stored"] for size in sizes) == path.stat().st_size
