"""Written tables read back equal."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import coldframe as cf

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

# Values that text cells keep; the format's tests cover delimiters and escapes.
TEXT = st.text(
    st.characters(min_codepoint=32, exclude_characters="\\", exclude_categories=["Cs"]), max_size=20
)
INSTANT = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))

TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "boolean": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "string": (pa.string(), TEXT),
    "date": (pa.date32(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "timestamp": (pa.timestamp("ns"), INSTANT),
    "decimal(12,3)": (
        pa.decimal128(12, 3),
        st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: decimal.Decimal(n).scaleb(-3)),
    ),
}
BINARY_ONLY: dict[str, tuple[pa.DataType, Any]] = {
    "array<int>": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-5, 5), max_size=4)),
    "struct<a:bigint,b:string>": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | TEXT}),
    ),
}


def tables(types: dict[str, tuple[pa.DataType, Any]]) -> Any:
    @st.composite
    def build(draw: Any) -> tuple[str, pa.Table]:
        chosen = draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=4))
        rows = draw(st.integers(0, 30))
        columns = [
            draw(st.lists(st.none() | types[name][1], min_size=rows, max_size=rows)) for name in chosen
        ]
        names = [f"c{at}" for at in range(len(chosen))]
        arrays = [pa.array(values, types[name][0]) for values, name in zip(columns, chosen, strict=True)]
        ddl = ", ".join(f"{column} {name}" for column, name in zip(names, chosen, strict=True))
        return ddl, pa.table(arrays, names=names)

    return build()


def round_trip(ddl: str, table: pa.Table, folder: Path, serde: str, **options: Any) -> None:
    path = folder / "file.rc"
    report = cf.write(table, path, format="rcfile", serde=serde, **options)
    assert report == {"rows": table.num_rows, "bytes": path.stat().st_size}
    got = cf.open(path, schema=ddl, serde=serde).read()
    got.validate(full=True)
    assert got.schema.types == table.schema.types
    assert got.to_pydict() == table.to_pydict()


OPTIONS = {
    "codec": st.sampled_from(["none", "zlib", "snappy", "zstd"]),
    "record_interval": st.sampled_from([1, 7, 1000]),
}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=tables({**TYPES, **BINARY_ONLY}), options=st.fixed_dictionaries(OPTIONS))
def test_binary_files_round_trip(data: tuple[str, pa.Table], options: dict[str, Any], tmp_path: Path) -> None:
    round_trip(*data, tmp_path, "binary", **options)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=tables(TYPES), options=st.fixed_dictionaries(OPTIONS))
def test_text_files_round_trip(data: tuple[str, pa.Table], options: dict[str, Any], tmp_path: Path) -> None:
    round_trip(*data, tmp_path, "text", **options)


def test_every_kind_of_input_is_written(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([1, 2, 3], pa.int64())})
    path = tmp_path / "x.rc"

    def check(data: Any) -> None:
        assert cf.write(data, path, format="rcfile", serde="binary")["rows"] == 3
        assert cf.open(path, schema="x bigint", serde="binary").read().equals(rows)

    check(rows)
    check(rows.to_reader())
    check(rows.to_batches()[0])
    check(pads.dataset(rows))
    check(cf.open(_copy(path, tmp_path), schema="x bigint", serde="binary"))
    check(cf.scan(tmp_path / "copy", schema="x bigint", serde="binary"))
    polars = pytest.importorskip("polars")
    check(polars.DataFrame(rows))
    check(polars.DataFrame(rows).lazy())
    pandas = pytest.importorskip("pandas")
    check(pandas.DataFrame({"x": [1, 2, 3]}))
    with pytest.raises(cf.UnsupportedError, match="list"):
        cf.write([1, 2, 3], path, format="rcfile")


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / "copy"
    copy.write_bytes(path.read_bytes())
    return copy


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64())])

    def batches() -> Any:
        yield pa.record_batch({"x": [1]})
        raise ZeroDivisionError("no more rows")

    path = tmp_path / "x.rc"
    path.write_bytes(b"what was there before")
    with pytest.raises(Exception, match="no more rows"):
        cf.write(pa.RecordBatchReader.from_batches(schema, batches()), path, format="rcfile")
    assert [p.name for p in tmp_path.iterdir()] == ["x.rc"]
    assert path.read_bytes() == b"what was there before"


def test_mistakes_in_arguments_are_errors(tmp_path: Path) -> None:
    rows = pa.table({"x": [1]})
    with pytest.raises((cf.ColdframeError, ValueError), match="no_such_format"):
        cf.write(rows, tmp_path / "x", format="no_such_format")
    with pytest.raises(ValueError, match="no_such_option"):
        cf.write(rows, tmp_path / "x", format="rcfile", no_such_option=1)
    with pytest.raises((cf.ColdframeError, OSError), match="missing"):
        cf.write(rows, tmp_path / "missing" / "x", format="rcfile")
    with pytest.raises((cf.SchemaError, cf.UnsupportedError)):
        cf.write(
            pa.table({"x": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
            tmp_path / "x",
            format="rcfile",
        )
    assert list(tmp_path.iterdir()) == []


def test_progress_is_reported(tmp_path: Path) -> None:
    seen: list[int] = []
    rows = pa.table({"x": range(100)})
    cf.write(rows.to_reader(max_chunksize=10), tmp_path / "x", format="rcfile", progress=seen.append)
    assert seen == list(range(10, 101, 10))
