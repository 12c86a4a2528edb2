"""ORC files of coldframe, read by pyarrow and coldframe; files of pyarrow, read by coldframe."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pytest
from truth import difference

import coldframe as cf

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SMALL = st.integers(-3, 3)
# Runs of every kind: constant, rising, narrow, narrow with wide outliers.
INTEGERS = (
    st.integers(-(2**63), 2**63 - 1)
    | SMALL
    | st.builds(lambda bits, sign: sign * (2**bits - 1), st.integers(0, 63), st.sampled_from([1, -1]))
)
INSTANT = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
Strategy = Any

TYPES: list[tuple[pa.DataType, Strategy]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127) | SMALL),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1) | SMALL),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1) | SMALL),
    (pa.int64(), INTEGERS),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), TEXT | st.sampled_from(["a", "b", ""])),
    (pa.large_string(), TEXT),
    (pa.string_view(), TEXT),
    (pa.binary(), st.binary(max_size=20)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.date32(), st.dates()),
    (pa.timestamp("ns"), INSTANT),
    (pa.timestamp("us"), INSTANT),
    (pa.timestamp("s", "UTC"), INSTANT.map(lambda at: at.replace(microsecond=0))),
    (pa.decimal128(7, 2), st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2))),
    (
        pa.decimal128(38, 9),
        st.integers(-(10**27), 10**27).map(lambda n: decimal.Decimal(n).scaleb(-9)),
    ),
    (pa.list_(pa.int32()), st.lists(st.none() | SMALL, max_size=4)),
    (pa.large_list(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    (pa.map_(pa.int32(), pa.float64()), st.lists(st.tuples(SMALL, st.none() | st.floats()), max_size=3)),
    (
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
        st.fixed_dictionaries(
            {"a": st.none() | INTEGERS, "b": st.none() | st.lists(st.none() | TEXT, max_size=2)}
        ),
    ),
]


@st.composite
def tables(draw: Any, types: list[tuple[pa.DataType, Strategy]] = TYPES) -> pa.Table:
    rows = draw(st.integers(0, 60))
    arrays = []
    for of, values in draw(st.lists(st.sampled_from(types), min_size=1, max_size=4)):
        some = draw(st.lists(st.none() | values if draw(st.booleans()) else values, min_size=1, max_size=20))
        # Repeat each value, or the whole list: long runs, or periods
        column = [some[at % len(some)] for at in range(rows)]
        if draw(st.booleans()):
            column = sorted(column, key=lambda value: some.index(value) if value == value else 0)
        arrays.append(pa.array(column, of))
    return pa.table(arrays, [f"c{at}" for at in range(len(arrays))])


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "codec": st.sampled_from(["none", "zlib", "snappy", "lz4", "zstd"]),
        "compression_block_size": st.sampled_from([64, 1000, 1 << 16]),
        "stripe_rows": st.integers(1, 70),
        "row_index_stride": st.sampled_from([0, 1, 7, 1000]),
        "dictionary_threshold": st.sampled_from([0.0, 0.5, 1.0]),
        "encoding_strategy": st.sampled_from(["speed", "compression"]),
    },
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=tables(), options=OPTIONS)
def test_pyarrow_and_coldframe_read_coldframe_files(
    table: pa.Table, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "file.orc"
    # Times in the last second before 1970 as C++ writes them; Java could not read some of them.
    report = cf.write(table, path, format="orc", last_second="cpp", **options)
    assert report == {"rows": table.num_rows, "bytes": path.stat().st_size}
    for got in (po.read_table(path), cf.open(path).read()):
        got.validate(full=True)
        why = difference(got, table)
        assert why is None, why
    assert not cf.open(path).verify()["damage"]


PYARROW = [
    entry for entry in TYPES if entry[0] not in (pa.string_view(), pa.binary(3), pa.large_list(pa.string()))
]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=tables(PYARROW),
    codec=st.sampled_from(["uncompressed", "zlib", "snappy", "lz4", "zstd"]),
    stride=st.sampled_from([10, 10000]),
    version=st.sampled_from(["0.11", "0.12"]),
    threshold=st.sampled_from([0.0, 1.0]),
)
def test_coldframe_reads_pyarrow_files(
    table: pa.Table, codec: str, stride: int, version: str, threshold: float, tmp_path: Path
) -> None:
    path = tmp_path / "file.orc"
    po.write_table(
        table,
        path,
        compression=codec,
        row_index_stride=stride,
        file_version=version,
        dictionary_key_size_threshold=threshold,
    )
    got = cf.open(path).read()
    got.validate(full=True)
    why = difference(got, table)
    assert why is None, why


def test_unions_and_dictionaries_are_written_as_structs_and_values(tmp_path: Path) -> None:
    numbers, texts = pa.array([1, None, 3, 4]), pa.array(["a", "b", None, "d"])
    tags = pa.array([0, 1, 1, 0], pa.int8())
    sparse = pa.UnionArray.from_sparse(tags, [numbers, texts])
    dense = pa.UnionArray.from_dense(tags, pa.array([0, 1, 2, 3], pa.int32()), [numbers, texts])
    encoded = pa.array(["x", None, "y", "x"]).dictionary_encode()
    table = pa.table({"sparse": sparse, "dense": dense, "words": encoded})
    path = tmp_path / "file.orc"
    cf.write(table, path, format="orc")
    for got in (po.read_table(path), cf.open(path).read()):
        assert got["sparse"].to_pylist() == got["dense"].to_pylist() == [1, "b", None, 4]
        assert got["words"].to_pylist() == ["x", None, "y", "x"]


def test_times_in_the_second_before_1970_need_an_option(tmp_path: Path) -> None:
    nanos = [
        -1,
        -999_999,
        -1_000_000,
        -500_000_000,
        -(10**9),
        -(10**9) - 1,
        -1_500_000_000,
        0,
        1,
        999_999_999,
    ]
    path = tmp_path / "file.orc"
    table = pa.table({"at": pa.array(nanos, pa.timestamp("ns"))})
    # Java, and thus Spark, fails on a file with such times.
    with pytest.raises(ValueError, match=r'column "at": 1969-12-31 23:59:59\..*last_second'):
        cf.write(table, path, format="orc")
    cf.write(table, path, format="orc", last_second="cpp")
    for got in (po.read_table(path), cf.open(path).read()):
        assert got["at"].cast(pa.int64()).to_pylist() == nanos


def test_statistics_and_filters_find_stored_values(tmp_path: Path) -> None:
    rows = 30_000
    table = pa.table(
        {
            "id": pa.array(range(rows)),
            "name": pa.array([f"name {at * 7919 % rows}" for at in range(rows)]),
            "f": pa.array([float("nan") if at == 12_345 else at / 2 for at in range(rows)]),
            "at": pa.array([at * 10**9 - 5 * 10**12 for at in range(rows)], pa.timestamp("ns")),
            "d": pa.array([decimal.Decimal(at).scaleb(-1) for at in range(rows)], pa.decimal128(9, 1)),
        }
    )
    path = tmp_path / "file.orc"
    blooms = ["id", "name", "f", "at", "d"]
    cf.write(table, path, format="orc", row_index_stride=1000, bloom_filter_columns=blooms)
    file = cf.open(path)
    for row in (0, 999, 1000, 12_345, rows - 1):
        for column in table.column_names:
            value = table[column][row].as_py()
            if value == value:
                got = file.read(filter=[(column, "==", value)])
                assert got["id"].to_pylist() == [row], (column, value)
    assert file.read(filter=[("name", "==", "nobody")]).num_rows == 0
    assert file.read(filter=[("f", ">", 14_990.0)]).num_rows == 19


def test_unsupported_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(cf.SchemaError, match="no unsigned integers"):
        cf.write(pa.table({"a": pa.array([1], pa.uint8())}), tmp_path / "a.orc", format="orc")
    with pytest.raises(ValueError, match="no option `codex`"):
        cf.write(pa.table({"a": [1]}), tmp_path / "a.orc", format="orc", codex="zlib")
    assert not list(tmp_path.iterdir())


def test_user_metadata_and_attributes_are_kept(tmp_path: Path) -> None:
    field = pa.field("a", pa.int64(), metadata={"unit": "m"})
    path = tmp_path / "file.orc"
    cf.write(
        pa.table([[1]], schema=pa.schema([field])),
        path,
        format="orc",
        metadata={"made": "here", "raw": b"\xff"},
    )
    file = po.ORCFile(path)
    assert file.metadata[b"made"] == b"here"
    assert file.metadata[b"raw"] == b"\xff"
    assert file.schema.field("a").metadata == {b"unit": b"m"}
    assert cf.open(path).schema.field("a").metadata == {b"unit": b"m"}
