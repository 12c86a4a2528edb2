"""Options that formats declare: their defaults and their values as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from truth import same

import coldframe as cf
from coldframe._coldframe import formats, parse_option
from coldframe.options import choices_of, declared

FORMATS = formats()
WRITTEN = [name for name, about in FORMATS.items() if about["capabilities"]["written"]]
ROWS = {"hfile": pa.table({"key": ["a", "b"], "value": [b"1", b"2"]}), "cfile": pa.table({"value": [1, 2]})}


def defaults(options: dict[str, Any]) -> dict[str, Any]:
    return {name: about["default"] for name, about in options.items() if about["default"] is not None}


@pytest.mark.parametrize("format", WRITTEN)
def test_declared_defaults_match_behaviour(format: str, tmp_path: Path) -> None:
    rows = ROWS.get(format, pa.table({"n": pa.array([1, 2], pa.int64()), "s": ["a", None]}))
    known = FORMATS[format]["write"]
    fixed = {name: 7 for name in ("sync_seed", "create_time") if name in known}
    typed = {"schema": "n bigint, s string", "serde": "binary"}
    needed = typed if FORMATS[format]["capabilities"]["needs_schema"] else {}
    cf.write(rows, tmp_path / "a", format=format, **fixed, **needed)
    cf.write(rows, tmp_path / "b", format=format, **{**defaults(known), **fixed, **needed})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    plain = cf.open(tmp_path / "a", **needed).read()
    assert same(cf.open(tmp_path / "a", **{**defaults(FORMATS[format]["open"]), **needed}).read(), plain)


def test_every_choice_of_an_option_is_accepted(tmp_path: Path) -> None:
    rows = pa.table({"s": ["a", None]})
    for codec in FORMATS["orc"]["write"]["codec"]["choices"]:
        cf.write(rows, tmp_path / codec, format="orc", compression=codec.upper())
        assert same(cf.open(tmp_path / codec).read(), rows)
    with pytest.raises(ValueError, match=r'option `codec`: expected "zstd", .* or "none", found "rar"'):
        cf.write(rows, tmp_path / "rar", format="orc", codec="rar")
    with pytest.raises(ValueError, match="options `codec` and `compression` are the same"):
        cf.write(rows, tmp_path / "two", format="orc", codec="none", compression="none")


def test_text_is_parsed_as_the_format_declares() -> None:
    assert parse_option("recover", "true", format="orc") is True
    assert parse_option("timezone", "1", format="rcfile") == "1"
    assert parse_option("max_block_bytes", "64m") == 64 << 20
    assert parse_option("columns", '{"f:b": "long", "f:a": "int"}', format="hbase") == {
        "f:b": "long",
        "f:a": "int",
    }
    assert [*parse_option("columns", '{"f:b": "long", "f:a": "int"}')] == ["f:b", "f:a"]
    assert parse_option("families", "a, b", format="hbase") == ["a", "b"]
    assert parse_option("no_option", "1") == "1"
    with pytest.raises(ValueError, match="option `stripe_rows`: expected an integer, found"):
        parse_option("stripe_rows", "many", write=True)


def test_options_of_all_formats_by_name() -> None:
    assert choices_of("recover") == ["true", "false"]
    of_hudi = ["snapshot", "read_optimized", "incremental"]
    assert choices_of("view") == ["cells", "kv", *of_hudi, "latest", "versions", "raw", "pivot"]
    assert len(declared()["timestamp_unit"]) == 2
    assert "schema" in declared(write=True)
