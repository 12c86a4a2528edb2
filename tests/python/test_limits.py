"""Limits of the reader: a healthy file opens without options, and an exceeded limit is no damage."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pytest
from crafted_orc import DATA, DIRECT, DIRECT_V2, INT, PRESENT, STRUCT, Stream, column, orc, table

import coldframe as cf
from coldframe.cli import main
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess

NULLS = b"\x00\x00"  # a run of three bytes of zero bits: 24 rows without a value
ONES = b"\x05\x02\x05\x02\x05\x02"  # 24 times 1


def nested(depth: int, *, beside: bool = False) -> bytes:
    """A column of structs inside structs, all null at the first level; and beside it a column of integers."""
    types = [column(STRUCT, number + 1, names=["x"]) for number in range(1, depth)]
    types.append(column(INT))
    streams = [Stream(PRESENT, 1, NULLS)]
    root = table("deep")
    if beside:
        root = column(STRUCT, 1, depth + 1, names=["deep", "flat"])
        types.append(column(INT))
        streams.append(Stream(DATA, depth + 1, ONES))
    encodings = [DIRECT, *([DIRECT_V2] * len(types))]
    return orc([root, *types], encodings, 24, streams, chunked=False)


def test_columns_as_deep_as_arrow_allows_are_read() -> None:
    table = cf.open(nested(63)).read()
    assert (table.num_rows, table["deep"].null_count) == (24, 24)


@pytest.mark.parametrize("depth", [64, 70, 101])
def test_deeper_columns_are_unsupported_and_others_are_read(depth: int) -> None:
    file = cf.open(nested(depth, beside=True))
    for read in (file.read, lambda: file.schema, lambda: pa.table(file), lambda: list(file.to_batches())):
        with pytest.raises(cf.UnsupportedError, match=r"63 levels.*`deep`"):
            read()
    assert file.num_rows == 24
    assert file.read(["flat"])["flat"].to_pylist() == [1] * 24
    assert "2 columns" in repr(file)
    assert file.verify()["damage"] == []


def test_too_deep_a_type_is_a_limit_with_an_option() -> None:
    with pytest.raises(cf.LimitError) as raised:
        cf.open(nested(200))
    error = raised.value
    assert isinstance(error, cf.ColdframeError)
    assert not isinstance(error, cf.CorruptFileError)
    assert (error.limit, error.option) == (128, "max_depth")
    assert "may be intact" in str(error)
    assert cf.open(nested(200, beside=True), max_depth=300).read(["flat"]).num_rows == 24


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Few bytes with many rows in a stripe."""
    path = tmp_path / "in" / "t" / "many.orc"
    path.parent.mkdir(parents=True)
    po.write_table(pa.table({"n": np.full(100_000, 7)}), path, compression="zstd")
    return path


def test_an_exceeded_limit_is_no_damage(many: Path) -> None:
    file = cf.open(many, max_unit_rows=1000)
    reads = [functools.partial(file.read, on_error=on_error) for on_error in ("skip", "null")]
    for read in (file.read, file.verify, *reads):
        with pytest.raises(cf.LimitError, match="max_unit_rows") as raised:
            read()
        assert (raised.value.what, raised.value.limit) == ("a stripe", 1000)
        assert (raised.value.path, raised.value.structure) == (str(many), "stripe 0")
    assert file.damage == []
    assert cf.open(many).read().num_rows == 100_000


def test_the_command_line_says_that_a_limit_is_exceeded(
    many: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("verify", "head"):
        assert main([command, str(many), "--option", "max_unit_rows=1000"]) == 2
        shown = capsys.readouterr()
        text = shown.out + shown.err
        assert "max_unit_rows" in text
        assert "damaged" not in text


def test_a_migration_does_not_quarantine_for_a_limit(many: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "tables.toml").write_text('[tables.t]\npath = "t"\nmax_unit_rows = 1000\n')
    report = migrate(InProcess(), str(tmp_path / "in"), str(tmp_path / "out"), on_error="quarantine")
    (failure,) = report.failures
    assert failure.status == "failed"
    assert "max_unit_rows" in str(failure.error)


def test_stripes_of_many_rows_need_no_option(tmp_path: Path) -> None:
    rows, path = 17_000_000, tmp_path / "a.orc"
    po.write_table(
        pa.table({"flag": pa.array(np.zeros(rows, bool)), "day": np.full(rows, 20200101, np.int32)}),
        path,
        compression="zstd",
    )
    file = cf.open(path)
    assert len(file.metadata["stripes"]) == 1
    assert file.count("day = 20200101") == rows
    assert file.count("day = 20200102") == 0


def test_batches_shrink_to_the_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    texts = pa.array(["x" * 1000]).take(pa.array(np.zeros(20_000, dtype=np.int32)))
    po.write_table(pa.table({"s": texts, "n": np.arange(20_000)}), path)
    whole = cf.open(path).read()
    bounded = cf.open(path, memory_limit="8m", threads=1)
    batches = list(bounded.to_batches())
    assert max(batch.nbytes for batch in batches) <= 2 << 20
    assert pa.Table.from_batches(batches).equals(whole)
