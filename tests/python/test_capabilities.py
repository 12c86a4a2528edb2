"""The capabilities that each format declares are true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from truth import same

import coldframe as cf
from coldframe._coldframe import formats

FORMATS = formats()
WRITTEN = [name for name, about in FORMATS.items() if about["capabilities"]["written"]]

ROWS = {"hfile": pa.table({"key": [b"a", b"b"], "value": [b"1", b"2"]}), "cfile": pa.table({"value": [1, 2]})}


def rows(format: str) -> pa.Table:
    return ROWS.get(format, pa.table({"n": pa.array([1, 2], pa.int64())}))


def options(format: str) -> dict[str, Any]:
    needed = FORMATS[format]["capabilities"]["needs_schema"]
    return {"schema": "n bigint", "serde": "binary"} if needed else {}


@pytest.mark.parametrize("format", WRITTEN)
def test_written_files_have_the_declared_capabilities(format: str, tmp_path: Path) -> None:
    can = FORMATS[format]["capabilities"]
    path = tmp_path / f"a.{can['endings'][0]}"
    cf.write(rows(format), path, format=format)
    file = cf.open(path, **options(format))
    assert file.format == format
    questions = {
        "keys": lambda: file.get(b"a"),
        "seek": lambda: file.seek(0).read_all(),
        "lookup": lambda: file.lookup(1),
    }
    for name, ask in questions.items():
        if can[name]:
            assert ask().num_rows > 0
        else:
            with pytest.raises(cf.UnsupportedError):
                ask()
    if not can["might_contain"]:
        with pytest.raises(cf.UnsupportedError):
            file.might_contain(b"a")


def test_read_only_formats_refuse_writes() -> None:
    for name in FORMATS.keys() - set(WRITTEN):
        assert FORMATS[name]["capabilities"]["folders"]
        with pytest.raises(cf.UnsupportedError, match="writing"):
            cf.write(rows(name), "nowhere", format=name)


@pytest.mark.parametrize("format", WRITTEN)
def test_threads_are_an_option_of_all_formats(format: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    cf.write(rows(format), path, format=format)
    plain = cf.open(path, **options(format)).read()
    for threads in (0, 1, 3, 2**62):
        file = cf.open(path, threads=threads, **options(format))
        assert same(file.read(), plain)
        assert same(pa.table(file), plain)
        assert same(file.read(use_threads=False), plain)
    with pytest.raises(ValueError, match="threads"):
        cf.open(path, threads=-1, **options(format))
