"""Column statistics in a source file, compared with the decoded values."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from estates import Estate, scanning

import coldframe as cf
from coldframe._coldframe import RawObserved
from coldframe.errors import ColdframeError
from coldframe.file import Split
from coldframe.pipeline.work import convert

DATA = Path(__file__).parents[3] / "data"
CORPUS = Path(__file__).parents[4] / ".." / "shared" / "corpus" / "orc"

ROWS = pa.table(
    {
        "i": pa.array([1, None, -3], pa.int64()),
        "big": pa.array([2**63 - 1, 2**63 - 1, None], pa.int64()),
        "small": pa.array([1, 2, None], pa.int8()),
        "s": ["a", "bcd", None],
        "b": [True, False, None],
        "f": [0.5, None, -1.5],
        "nan": [float("nan"), 1.0, None],
        "d": [datetime.date(2020, 1, 1), datetime.date(1970, 1, 1), None],
        "old": [datetime.date(1000, 1, 1), None, None],
        "n": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-7.25"), None], pa.decimal128(38, 2)),
        "bin": [b"a", b"xx", None],
        "l": [[1], [2, 3], None],
        "dot.ted": [1, 2, 3],
        "none": pa.array([None, None, None], pa.int32()),
    }
)


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def differences(split: Split, rows: pa.Table | None = None) -> list[str]:
    witness = split.witness()
    observed = RawObserved(witness.names)
    for batch in split.to_batches() if rows is None else rows.to_batches():
        observed.add(batch)
    return witness.differences(observed)


def changed(column: str, values: Any) -> pa.Table:
    at = ROWS.schema.get_field_index(column)
    return ROWS.set_column(at, column, pa.array(values, ROWS.schema.field(column).type))


@pytest.mark.parametrize(
    ("column", "values", "what"),
    [
        ("i", [1, None, -2], "sum -2 by the file, -1 decoded"),
        ("i", [1, 0, -3], "values 2 by the file, 3 decoded"),
        ("i", [2, None, -4], "smallest -3 by the file, -4 decoded"),
        ("small", [1, 3, None], "largest 2 by the file, 3 decoded"),
        ("s", ["a", "bcdé", None], "bytes of text 4 by the file, 6 decoded"),
        ("b", [False, False, None], "true 1 by the file, 0 decoded"),
        ("f", [0.5, None, -1.0], "smallest -1.5 by the file, -1.0 decoded"),
        ("d", [datetime.date(2020, 1, 2), None, None], "largest 18262 by the file, 18263"),
        ("n", [decimal.Decimal("1.51"), decimal.Decimal("-7.25"), None], "largest 1.5 by the file, 1.51"),
        ("bin", [b"a", b"x", None], "bytes of text 3 by the file, 2 decoded"),
        ("l", [None, [2, 3], None], "values 2 by the file, 1 decoded"),
        ("none", [None, 5, None], "values 0 by the file, 1 decoded"),
    ],
)
def test_a_wrongly_decoded_value_is_detected(tmp_path: Path, column: str, values: Any, what: str) -> None:
    cf.write(ROWS, tmp_path / "x.orc", format="orc")
    (split,) = cf.open(tmp_path / "x.orc").splits()
    assert differences(split) == []
    reasons = differences(split, changed(column, values))
    assert any(reason.startswith(f"column {column}: {what}") for reason in reasons), reasons


def test_a_wrong_reader_fails_the_file(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading back cannot detect this: only the file's own statistics can show it."""
    estate.orc("t/1", {"a": [1, 2, 3], "b": ["x", "y", "z"]})
    estate.orc("t/2", {"a": [4], "b": ["x"]})

    def wrong(_: Split, batches: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            wide = batch.num_rows > 1
            yield batch.set_column(0, "a", pc.add(batch.column(0), 1)) if wide else batch

    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", scanning(wrong))
        report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/1"]
    assert "column a: sum 6 by the file, 9 decoded" in str(report.failures[0].error)
    assert estate.values() == [4]
    assert estate.migrate().exit_code == 0
    assert estate.values() == [1, 2, 3, 4]


def test_each_part_has_the_statistics_of_its_stripes(estate: Estate) -> None:
    rows = pa.table({"a": range(20_000), "s": [str(number) for number in range(20_000)]})
    path = estate.source / "t/1"
    path.parent.mkdir(parents=True)
    cf.write(rows, path, format="orc", stripe_rows=5_000)
    splits = cf.open(path).splits(1)
    assert len(splits) > 2
    assert all(differences(split) == [] for split in splits)
    first = next(iter(splits[0].to_batches()))
    assert differences(splits[1], pa.Table.from_batches([first])) != []
    report = estate.migrate(split_bytes=1)
    assert (report.exit_code, report.rows) == (0, 20_000)


def test_formats_without_statistics_have_none_to_compare(tmp_path: Path) -> None:
    cf.write(pa.table({"a": [1]}), tmp_path / "x", format="rcfile", serde="binary")
    (split,) = cf.open(tmp_path / "x", schema="a int", serde="binary").splits()
    assert split.stated() == []
    assert split.witness().names == []
    assert differences(split) == []


def test_statistics_of_other_writers_match_the_decoded_values() -> None:
    files = [*DATA.rglob("*.orc"), *(CORPUS.rglob("*.orc") if CORPUS.exists() else ())]
    compared = 0
    for path in files:
        try:
            splits = cf.open(path).splits(1 << 20)
            reasons = [reason for split in splits for reason in differences(split)]
        except ColdframeError:
            # Damaged on purpose, or encrypted with an unknown key.
            continue
        assert reasons == [], path
        compared += bool(splits and splits[0].stated())
    assert compared >= len(files) // 2
