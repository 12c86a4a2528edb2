"""The stored dictionaries of columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main

CHANNELS = ["web", "shop", "app", None]
ROWS = pa.table(
    {
        "id": range(20_000),
        "channel": [CHANNELS[i % 4] for i in range(20_000)],
        "unique": [f"value {i}" for i in range(20_000)],
        "inner": [{"kind": f"kind {i % 3}"} for i in range(20_000)],
    }
)


@pytest.fixture
def orc(tmp_path: Path) -> Path:
    """A file of several stripes."""
    path = tmp_path / "a.orc"
    cf.write(ROWS, path, codec="zlib", stripe_rows=5000)
    assert len(cf.open(path).metadata["stripes"]) > 1
    return path


def test_each_stripe_has_a_dictionary(orc: Path) -> None:
    dictionaries = cf.open(orc).dictionaries("channel")
    stripes = cf.open(orc).metadata["stripes"]
    assert [dictionary["part"] for dictionary in dictionaries] == [
        f"stripe {number}" for number in range(len(stripes))
    ]
    for dictionary in dictionaries:
        assert dictionary["values"].type == pa.string()
        assert sorted(dictionary["values"].to_pylist()) == ["app", "shop", "web"]
        inside = cf.open(orc).inspect()
        start = dictionary["offset"]
        assert inside["offset"] <= start < start + dictionary["length"] <= inside["length"]
    assert cf.open(orc).dictionaries("unique") == []
    assert sorted(cf.open(orc).dictionaries("inner.kind")[0]["values"].to_pylist()) == [
        "kind 0",
        "kind 1",
        "kind 2",
    ]


def test_columns_without_text_are_refused(orc: Path, tmp_path: Path) -> None:
    for column in ("id", "nothing"):
        with pytest.raises(cf.SchemaError, match=f"`{column}`; those with text are `channel`, `unique`"):
            cf.open(orc).dictionaries(column)
    cf.write(ROWS.select(["id"]), tmp_path / "a.red")
    with pytest.raises(cf.UnsupportedError, match="only the columns of ORC files and CFiles"):
        cf.open(tmp_path / "a.red").dictionaries("id")


def test_cfile_has_one_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "a.cfile"
    cf.write(pa.table({"value": ROWS["channel"]}), path, encoding="dict")
    [dictionary] = cf.open(path).dictionaries("value")
    assert (dictionary["part"], dictionary["values"].to_pylist()) == ("file", ["web", "shop", "app"])
    with pytest.raises(cf.SchemaError, match="a CFile has only the column `value`"):
        cf.open(path).dictionaries("channel")
    cf.write(pa.table({"value": ROWS["channel"]}), tmp_path / "b.cfile", encoding="plain")
    assert cf.open(tmp_path / "b.cfile").dictionaries("value") == []


def test_the_command_prints_dictionaries(orc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dictionary", str(orc), "-c", "channel"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("stripe 0: 3 entries, ")
    assert sorted(line.strip()[3:] for line in lines[1:4]) == ["app", "shop", "web"]
    assert main(["dictionary", str(orc), "-c", "channel", "--json", "-n", "1"]) == 0
    dictionaries = json.loads(capsys.readouterr().out)
    assert dictionaries[0]["entries"] == 3
    assert len(dictionaries[0]["values"]) == 1
    assert main(["dictionary", str(orc), "-c", "unique"]) == 0
    assert "unique is stored without a dictionary" in capsys.readouterr().err
    assert main(["dictionary", str(orc), "-c", "id"]) == 2


def test_dictionaries_of_orcs_own_writer_are_read() -> None:
    folder = Path(__file__).parents[1] / "data" / "orc" / "files"
    seen = 0
    for path in sorted(folder.glob("*.orc")):
        try:
            file = cf.open(path)
        except cf.ColdframeError:
            continue
        for field in file.schema:
            if not pa.types.is_string(field.type):
                continue
            values = set(file.read([field.name])[field.name].to_pylist()) - {None}
            stored = [set(dictionary["values"].to_pylist()) for dictionary in file.dictionaries(field.name)]
            seen += len(stored)
            assert not stored or set.union(*stored) <= values | {""}, (path.name, field.name)
            if len(stored) == len(file.metadata["stripes"]):
                assert set.union(set(), *stored) >= values, (path.name, field.name)
    assert seen > 5
