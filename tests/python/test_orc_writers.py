"""Healthy ORC files of writers that deviate from the specification, or state something wrong."""

from __future__ import annotations

import datetime
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crafted_orc import (
    DATA,
    DATE,
    DIRECT,
    DIRECT_V2,
    DOUBLE,
    INT,
    LENGTH,
    LIST,
    LONG,
    PRESENT,
    SHORT,
    STRING,
    Stream,
    column,
    message,
    orc,
    table,
    zigzag,
)

import coldframe as cf
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess

GO, CUDF = 3, 5
NULLS = b"\x00\x00"  # a run of three bytes of zero bits: 24 rows without a value
ZEROS = b"\x05\x00\x05\x00\x01\x00"  # SHORT_REPEAT of 8, 8 and 4 zeros


def read_everywhere(data: bytes, name: str = "x") -> list[Any]:
    """The values of a column read in every way, which must agree."""
    file = cf.open(data)
    values: list[Any] = file.read()[name].to_pylist()
    for on_error in ("skip", "null"):
        again = cf.open(data)
        assert again.read(on_error=on_error)[name].to_pylist() == values
        assert again.damage == []
    report = file.verify()
    assert report["damage"] == []
    batches = file.to_batches(batch_size=7)
    assert [value for batch in batches for value in batch[name].to_pylist()] == values
    return values


@pytest.mark.parametrize("empty", [None, b"\x02\x00\x00\x00"], ids=["stored", "snappy"])
@pytest.mark.parametrize(
    ("types", "streams", "expected"),
    [
        ([column(DOUBLE)], [Stream(PRESENT, 1, NULLS), Stream(DATA, 1, b"")], [None] * 24),
        ([column(INT)], [Stream(PRESENT, 1, NULLS), Stream(DATA, 1, b"")], [None] * 24),
        (
            [column(STRING)],
            [Stream(PRESENT, 1, NULLS), Stream(DATA, 1, b""), Stream(LENGTH, 1, b"")],
            [None] * 24,
        ),
        ([column(STRING)], [Stream(DATA, 1, b""), Stream(LENGTH, 1, ZEROS)], [""] * 20),
        (
            [column(LIST, 2), column(INT)],
            [Stream(PRESENT, 1, NULLS), Stream(LENGTH, 1, b""), Stream(DATA, 2, b"")],
            [None] * 24,
        ),
    ],
    ids=["double", "int", "string", "empty strings", "list"],
)
def test_cudf_streams_without_values_are_empty_chunks(
    types: list[bytes], streams: list[Stream], expected: list[Any], empty: bytes | None
) -> None:
    encodings = [DIRECT, *([DIRECT_V2] * len(types))]
    for writer in (CUDF, None):
        data = orc([table("x"), *types], encodings, len(expected), streams, writer=writer, empty=empty)
        assert read_everywhere(data) == expected


def test_a_chunk_with_values_after_the_last_row_is_damage() -> None:
    streams = [Stream(PRESENT, 1, NULLS), Stream(DATA, 1, b"\x05\x00")]
    data = orc([table("x"), column(INT)], [DIRECT, DIRECT_V2], 24, streams, writer=CUDF)
    with pytest.raises(cf.CorruptFileError):
        cf.open(data).read()


def test_cudf_negative_smallints_are_stored_as_unsigned() -> None:
    run = bytes([0x8E, 0x13, 0x4B, 0x20, 0x00, 0xF2, 0x30, *range(0, 200, 10)])  # PATCHED_BASE from 62000
    types, encodings = [table("x"), column(SHORT)], [DIRECT, DIRECT_V2]
    expected = [62_000 + n - 65_536 for n in range(0, 200, 10)]
    for writer, version in ((CUDF, 7), (None, None)):
        data = orc(types, encodings, 20, [Stream(DATA, 1, run)], writer=writer, version=version)
        assert read_everywhere(data) == expected
    java = orc(types, encodings, 20, [Stream(DATA, 1, run)], writer=0, version=6)
    with pytest.raises(cf.CorruptFileError, match="expected an integer of 16 bits, found 62000"):
        cf.open(java).read()


def statistics(values: int, *, has_null: bool, integers: tuple[int, int, int] | None = None) -> bytes:
    """Statistics of a column: values, and smallest, largest and sum of integers."""
    fields: list[tuple[int, int | bytes]] = [(1, values)]
    if integers is not None:
        fields.append((2, message(*((tag, zigzag(of)) for tag, of in enumerate(integers, 1)))))
    return message(*fields, (10, int(has_null)))


def go_file(*, smallest: int = 3, writer: int = GO, stripes: int = 1) -> bytes:
    """24 rows; the first 20 rows have the values 3 .. 22. Nulls are counted as values.

    If there are several stripes, they are equal, and the statistics of the first stripe equal the statistics
    of the file.
    """
    present = b"\xfd\xff\xff\xf0"  # three bytes as they are: 20 bits
    delta = b"\xc0\x13\x06\x02"  # DELTA: 20 values from 3 on, each one more

    def stated(least: int, most: int) -> list[bytes]:
        return [
            statistics(24 * stripes, has_null=False),
            statistics(24 * stripes, has_null=False, integers=(least, most, 999)),
        ]

    return orc(
        [table("x"), column(LONG)],
        [DIRECT, DIRECT_V2],
        24,
        [Stream(PRESENT, 1, present), Stream(DATA, 1, delta)],
        statistics=stated(smallest, 22),
        of_stripes=[stated(2, 50), *([stated(3, 22)] * (stripes - 1))] if stripes > 1 else ((),),
        writer=writer,
    )


GO_VALUES = [*range(3, 23), None, None, None, None]


def test_go_counts_of_values_are_no_statements() -> None:
    data = go_file()
    assert read_everywhere(data) == GO_VALUES
    file = cf.open(data)
    assert file.read(filter="x is null").num_rows == 4
    assert file.count("x is null") == 4
    assert file.count("x is not null") == 20


def test_go_states_wrong_statistics_of_the_first_stripe(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    path.write_bytes(go_file(stripes=3))
    assert read_everywhere(path.read_bytes()) == GO_VALUES * 3
    splits = cf.open(path).splits(1)
    assert len(splits) == 3
    assert all(split.stated() == [] for split in splits)
    assert [split.to_batches().read_all()["x"].to_pylist() for split in splits] == [GO_VALUES] * 3
    # The range is only wider, so filters may use it.
    assert cf.open(path).count("x = 22") == 3
    assert cf.open(path).count("x > 22") == 0
    path.write_bytes(go_file(stripes=3, writer=4))
    assert all(split.stated() for split in cf.open(path).splits(1))


def migrated(folder: Path, data: bytes) -> Any:
    """The report of a migration of one file."""
    source = folder / "in" / "t"
    source.mkdir(parents=True)
    (source / "a.orc").write_bytes(data)
    return migrate(InProcess(), str(folder / "in"), str(folder / "out"), verify=True)


def test_migration_trusts_a_writer_like_readers_do(tmp_path: Path) -> None:
    report = migrated(tmp_path, go_file())
    assert (report.exit_code, report.verified, report.rows) == (0, True, 24)
    (file,) = (tmp_path / "out" / "t").rglob("*.parquet")
    assert pq.read_table(file)["x"].to_pylist() == GO_VALUES


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (go_file(smallest=2), "smallest 2 by the file, 3 decoded"),
        (go_file(writer=4), "expected a number of values of 24, found 20"),
    ],
    ids=["ends of Go", "counts of Trino"],
)
def test_migration_compares_what_a_writer_states_rightly(tmp_path: Path, data: bytes, what: str) -> None:
    report = migrated(tmp_path, data)
    assert report.exit_code != 0
    assert what in str(report.failures[0].error)


def old_days(*, version: int, stated: bool = True) -> bytes:
    """One day: 1300-01-01 in the proleptic calendar, which is 1299-12-25 in the hybrid calendar."""
    day = (datetime.date(1300, 1, 1) - datetime.date(1970, 1, 1)).days
    coded = zigzag(day).to_bytes(3, "big")
    run = bytes([0x40 | 23 << 1, 0]) + coded  # DIRECT: one value of 24 bits
    ends = message((1, zigzag(day)), (2, zigzag(day)))
    of_day = message((1, 1), (7, ends), (10, 0)) if stated else message((1, 1))
    return orc(
        [table("d"), column(DATE)],
        [DIRECT, DIRECT_V2],
        1,
        [Stream(DATA, 1, run)],
        statistics=[statistics(1, has_null=False), of_day],
        writer=0,
        version=version,
    )


def test_calendar_of_old_days_is_an_option() -> None:
    data = old_days(version=6)
    with pytest.warns(cf.AmbiguousCalendarWarning, match=r"`d`.*calendar=\"proleptic\""):
        assumed = cf.open(data).read()["d"].to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proleptic = cf.open(data, calendar="proleptic").read()["d"].to_pylist()
        hybrid = cf.open(data, calendar="hybrid").read()["d"].to_pylist()
        # Hive 2 and older wrote the hybrid calendar only.
        assert cf.open(old_days(version=5)).read()["d"].to_pylist() == hybrid
    assert proleptic == [datetime.date(1300, 1, 1)]
    assert assumed == hybrid == [datetime.date(1299, 12, 25)]
    with pytest.raises(ValueError, match="calendar"):
        cf.open(data, calendar="julian")


def test_filters_use_the_calendar_that_was_asked_for() -> None:
    data = old_days(version=6)
    day = pa.scalar(datetime.date(1300, 1, 1))
    assert cf.open(data, calendar="proleptic").read(filter=[("d", "=", day.as_py())]).num_rows == 1
    assert cf.open(data, calendar="hybrid").read(filter=[("d", "=", day.as_py())]).num_rows == 0
