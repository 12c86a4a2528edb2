"""The law of the writers: a written table reads back equal, or the writer refuses it with our error.

It covers every Arrow type and shape that users have, with every writer. Nothing raises CorruptFileError,
since no file is corrupt, and no error of pyarrow gets out.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli.ddl import hive_columns

UTC = dt.timezone.utc
D = decimal.Decimal


def _extension(type: Any, storage: Any) -> Any:
    return pa.ExtensionArray.from_storage(type, storage)


def _unions() -> Iterator[tuple[str, Any]]:
    parts = [pa.array([1, 0, 0, 4], pa.int32()), pa.array(["", "b", "c", ""])]
    kinds = pa.array([0, 1, 1, 0], pa.int8())
    yield "sparse union", pa.UnionArray.from_sparse(kinds, parts)
    dense = [pa.array([1, 4], pa.int32()), pa.array(["b", "c"])]
    yield "dense union", pa.UnionArray.from_dense(kinds, pa.array([0, 0, 1, 1], pa.int32()), dense)


def columns() -> Iterator[tuple[str, Any]]:
    """Four rows of each type, most with a null."""
    texts = ["", None, "Grüße 🦀", "a longer text, with a comma"]
    raw = [b"", None, b"\x00\xff", b"bytes that are more than twelve"]
    lists = [[1, 2], None, [], [3, None]]
    days = [dt.date(1970, 1, 1), None, dt.date(1582, 10, 4), dt.date(9999, 12, 31)]
    instants = [0, None, -1_500_000, 2_000_000_001]
    yield "bool", pa.array([True, None, False, True])
    for bits in (8, 16, 32, 64):
        yield f"int{bits}", pa.array([0, None, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1], f"int{bits}")
        yield f"uint{bits}", pa.array([0, None, 1, 2**bits - 1], f"uint{bits}")
    for bits in (16, 32, 64):
        floats = pa.array([0.0, None, -1.5, float("inf")], pa.float64())
        yield f"float{bits}", floats.cast({16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[bits])
    yield "nan", pa.array([float("nan"), -0.0, None, 1e300])
    for make, precision in ((pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76)):
        type = make(precision, 2)
        yield str(type), pa.array([D("0.00"), None, D("-1.25"), D(10) ** (precision - 3)], type)
    yield "decimal128(10, -2)", pa.array([D("100"), None, D("-500"), D("1200")], pa.decimal128(10, -2))
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(type), pa.array(texts, type)
    # Values with a special meaning in text formats.
    yield "awkward text", pa.array(["\\N", None, "", "\x01\x02\x03\n"])
    for n, value in enumerate(([None], [""], ["a\x02b"], [[]])):
        yield f"awkward list {n}", pa.array([value, None, [], value])
    yield "a struct of one null", pa.array([{"x": None}, None, {"x": 1}, {"x": None}])
    yield "a struct of one text", pa.array([{"x": ""}, None, {"x": "a\x02b"}, {"x": None}])
    twice = pa.array([[("a", 1), ("a", 2)], None, [], [("", None)]], pa.map_(pa.string(), pa.int64()))
    yield "a map with a key twice", twice
    for type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(type), pa.array(raw, type)
    yield "fixed binary", pa.array([b"aa", None, b"\x00\x01", b"zz"], pa.binary(2))
    yield "date32", pa.array(days, pa.date32())
    yield "date64", pa.array(days, pa.date64())
    for unit in ("s", "ms"):
        yield f"time32 {unit}", pa.array([0, None, 1, 86_399], pa.int32()).cast(pa.time32(unit))
    for unit in ("us", "ns"):
        yield f"time64 {unit}", pa.array([0, None, 1, 86_399], pa.int64()).cast(pa.time64(unit))
    for unit, zone in itertools.product(("s", "ms", "us", "ns"), (None, "UTC", "Europe/Berlin")):
        type = pa.timestamp(unit, zone)
        yield str(type), pa.array(instants, pa.int64()).cast(type)
    for unit in ("s", "ms", "us", "ns"):
        least = [-(2**63), None, 2**63 - 1, 0]
        yield f"extreme timestamp {unit}", pa.array(least, pa.int64()).cast(pa.timestamp(unit))
    yield "duration", pa.array([0, None, 1, -5], pa.int64()).cast(pa.duration("us"))
    yield "interval", pa.array([(1, 2, 3), None, (0, 0, 0), (4, 5, 6)], pa.month_day_nano_interval())
    yield "null", pa.nulls(4)
    for name, type in [
        ("list", pa.list_(pa.int64())),
        ("large list", pa.large_list(pa.int64())),
        ("list view", pa.list_view(pa.int64())),
        ("large list view", pa.large_list_view(pa.int64())),
    ]:
        yield name, pa.array(lists, type)
    yield "fixed list", pa.array([[1, 2], None, [3, None], [5, 6]], pa.list_(pa.int64(), 2))
    rows = [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 3, "y": None}]
    yield "struct", pa.array(rows, pa.struct([("x", pa.int32()), ("y", pa.string())]))
    yield "struct of nothing", pa.array([{}, {}, {}, {}], pa.struct([]))
    yield "map", pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int64()))
    yield "lists of null", pa.array([[None], None, [], [None, None]], pa.list_(pa.null()))
    deep = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32())))]))
    yield "deep", pa.array([[{"m": [("k", [1, None])]}], None, [], [{"m": None}, None]], deep)
    yield from _unions()
    yield "dictionary of text", pa.array(texts).dictionary_encode()
    yield "dictionary of numbers", pa.array([5, None, 6, 5]).dictionary_encode()
    naive = pa.array(instants, pa.int64()).cast(pa.timestamp("us"))
    yield "dictionary of timestamps", naive.dictionary_encode()
    yield (
        "dictionary with null",
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", None])),
    )
    yield "dictionary of large text", pa.array(texts, pa.large_string()).dictionary_encode()
    runs = pa.array([1, 3, 4], pa.int32())
    yield "runs of numbers", pa.RunEndEncodedArray.from_arrays(runs, pa.array([7, None, 8]))
    yield "runs of text", pa.RunEndEncodedArray.from_arrays(runs, pa.array(["a", None, "b"]))
    inner = pa.array(["a", "b", "a"]).dictionary_encode()
    yield "list of dictionaries", pa.ListArray.from_arrays(pa.array([0, 1, 1, 2, 3], pa.int32()), inner)
    views = pa.array(["a", None, "a view that is not inline", ""], pa.string_view())
    yield "struct of views", pa.StructArray.from_arrays([views], ["v"])
    uuids = pa.array([uuid.UUID(int=n).bytes for n in range(4)], pa.binary(16))
    yield "uuid", _extension(pa.uuid(), uuids)
    yield "json", _extension(pa.json_(pa.string()), pa.array(["{}", None, "1", "[]"]))
    yield "bool8", _extension(pa.bool8(), pa.array([0, None, 1, 1], pa.int8()))
    cubes = pa.array([[1, 2, 3, 4]] * 4, pa.list_(pa.int32(), 4))
    yield "tensor", _extension(pa.fixed_shape_tensor(pa.int32(), [2, 2]), cubes)
    yield "struct of uuid", pa.StructArray.from_arrays([_extension(pa.uuid(), uuids)], ["u"])


SHAPES: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "slice": lambda a: a.slice(1, 2),
    "chunks": lambda a: pa.chunked_array([a.slice(0, 1), a.slice(1, 0), a.slice(1)]),
    "no rows": lambda a: a.slice(0, 0),
    "no chunks": lambda a: pa.chunked_array([], a.type),
    "nulls": lambda a: pa.nulls(3, a.type) if not pa.types.is_union(a.type) else a.slice(0, 1),
    "twice": lambda a: pa.chunked_array([a, a]),
}


@dataclass(frozen=True)
class Writer:
    """A format, with the options to write a table and to read it back."""

    format: str
    write: dict[str, Any]
    read: Callable[[pa.Schema], dict[str, Any]]
    table: Callable[[str, Any], pa.Table]
    value: str | None = None
    """The name of the column when it is read; None if the name stays the same."""


def _keyed(name: str, column: Any) -> pa.Table:
    keys = pa.array([f"{at:08}".encode() for at in range(len(column))], pa.binary())
    return pa.table([keys, column], names=["key", "value"])


def _alone(name: str, column: Any) -> pa.Table:
    return pa.table([column], names=[name])


def _numbered(name: str, column: Any) -> pa.Table:
    return pa.table([pa.array(range(len(column)), pa.int64()), column], names=["id", name])


def _hive(serde: str) -> Callable[[pa.Schema], dict[str, Any]]:
    return lambda schema: {"schema": hive_columns(plain_schema(schema)), "serde": serde}


def _kudu(schema: pa.Schema) -> dict[str, Any]:
    """A CFile has no decimal scale: Kudu stores it elsewhere."""
    type = plain_type(schema.field(0).type)
    return {"value_type": str(type)} if pa.types.is_decimal(type) else {}


WRITERS = {
    "orc": Writer("orc", {}, lambda _: {}, _numbered),
    "redfile": Writer("redfile", {}, lambda _: {"int96": "timestamp"}, _numbered),
    "rcfile binary": Writer("rcfile", {"serde": "binary"}, _hive("binary"), _numbered),
    "rcfile text": Writer("rcfile", {"serde": "text"}, _hive("text"), _numbered),
    "cfile": Writer("cfile", {}, _kudu, _alone, "value"),
    "hfile": Writer("hfile", {"view": "kv"}, lambda _: {}, _keyed, "value"),
}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def plain_type(type: Any) -> Any:
    """The type as it is written: the storage of extensions, the values of runs and dictionaries."""
    if isinstance(type, pa.BaseExtensionType):
        return plain_type(type.storage_type)
    if pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
        return plain_type(type.value_type)
    if pa.types.is_list_view(type) or pa.types.is_large_list_view(type) or pa.types.is_list(type):
        return pa.list_(plain_type(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([(f.name, plain_type(f.type)) for f in type])
    return type


def values(column: Any) -> list[Any]:
    """The values of a column, independent of its layout."""
    if isinstance(column.type, pa.BaseExtensionType):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [value for chunk in chunks for value in values(chunk.storage)]
    if pa.types.is_dictionary(column.type) and pa.types.is_timestamp(column.type.value_type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        counts = column.cast(pa.int64()).to_pylist()
        size = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[column.type.unit]
        return [None if count is None else count * size for count in counts]
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else value
    if isinstance(value, dict) and list(value) == ["key", "value"]:
        return [_plain(item) for item in value.values()]  # a map entry, in formats without maps
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def law(writer: Writer, name: str, column: Any, path: Path) -> str | None:
    """The message of the writer's refusal; None if the file reads back equal."""
    table = writer.table(name, column)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cf.ExtensionTypeWarning)
            report = cf.write(table, path, format=writer.format, **writer.write)
    except (cf.SchemaError, cf.UnsupportedError) as refused:
        assert not path.exists()
        return str(refused)
    assert report["rows"] == table.num_rows
    file = cf.open(path, format=writer.format, **writer.read(table.schema))
    try:
        got = file.read()
    except cf.SchemaError as word:
        assert "timestamp_unit" in str(word)  # beyond 2262: the message names the option
        file = cf.open(path, format=writer.format, **writer.read(table.schema), timestamp_unit="us")
        got = file.read()
    got.validate(full=True)
    assert got.num_rows == table.num_rows
    at = -1 if writer.value is None else got.schema.get_field_index(writer.value)
    expected = values(column)
    if writer.format == "hfile":  # cells are bytes, and null is no bytes
        expected = [v.encode() if isinstance(v, str) else v or b"" for v in expected]
    assert values(got.column(at)) == expected
    assert file.count() == table.num_rows
    return None


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("name", [name for name, _ in columns()])
def test_every_type_in_every_shape(how: str, name: str, tmp_path: Path) -> None:
    column = dict(columns())[name]
    refusals = {}
    for shape, make in SHAPES.items():
        try:
            made = make(column)
        except pa.ArrowNotImplementedError:
            continue  # pyarrow cannot make it
        refusals[shape] = law(WRITERS[how], "x", made, tmp_path / f"{shape}.file")
    for refusal in filter(None, refusals.values()):
        assert "x" in refusal or "value" in refusal, "the message names the column"


NAMES = ["a.b", "ü", "Ü-🦀", "select", "with space", 'quo"te', "tick`", "new\nline", "_", "a,b", "a:b", ""]
NAMES.append("long " * 60)


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_names(how: str, name: str, tmp_path: Path) -> None:
    column = pa.array([1, None, 3], pa.int64()) if how != "hfile" else pa.array([b"1", b"", b"3"])
    law(WRITERS[how], name, column, tmp_path / "x")


@pytest.mark.parametrize("format", ["orc", "redfile", "rcfile", "cfile", "hfile"])
def test_duplicate_names_are_kept_or_refused(format: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    table = pa.table([pa.array([1, 2]), pa.array(["a", "b"])], names=["x", "x"])
    if format == "rcfile":  # the file has no names: they come from the schema on opening
        cf.write(table, path, format=format, serde="binary")
        got = cf.open(path, schema="a bigint, b string", serde="binary").read()
        assert got.columns == table.columns
        return
    try:
        cf.write(table, path, format=format)
    except (cf.SchemaError, cf.UnsupportedError) as refused:
        assert "x" in str(refused)
    else:
        got = cf.open(path).read()
        assert [values(column) for column in got.columns] == [values(column) for column in table.columns]


@pytest.mark.parametrize("format", ["orc", "redfile", "rcfile", "cfile", "hfile"])
def test_tables_without_columns_are_written_or_refused(format: str, tmp_path: Path) -> None:
    empty = pa.table({})
    try:
        assert cf.write(empty, tmp_path / "x", format=format)["rows"] == 0
    except (cf.SchemaError, cf.UnsupportedError) as refused:
        assert str(refused)
    else:
        assert cf.open(tmp_path / "x", format=format).read().num_rows == 0


@pytest.mark.parametrize("how", WRITERS)
def test_batches_without_rows_are_skipped(how: str, tmp_path: Path) -> None:
    column = pa.array([b"1", b"2"])
    table = WRITERS[how].table("x", column)
    none = table.slice(0, 0).to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    batches = [*none, *table.slice(0, 1).to_batches(), *none, *table.slice(1).to_batches(), *none]
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    writer = WRITERS[how]
    assert cf.write(reader, tmp_path / "x", format=writer.format, **writer.write)["rows"] == 2
    got = cf.open(tmp_path / "x", format=writer.format, **writer.read(table.schema)).read()
    assert values(got.column(writer.value or "x")) == [b"1", b"2"]


# ---- input that no file can store


def _deep(levels: int) -> Any:
    type = pa.int64()
    for _ in range(levels):
        type = pa.list_(type)
    return type


STRICT = pa.field("a", pa.int64(), nullable=False)
UNSUITABLE = {
    "null": (pa.schema([pa.field("x", pa.int64(), nullable=False)]), [pa.array([1, None])]),
    "null inside": (
        pa.schema([("x", pa.struct([STRICT]))]),
        [pa.StructArray.from_arrays([pa.array([1, None])], fields=[STRICT])],
    ),
    "nesting": (pa.schema([("x", _deep(70))]), [pa.array([None], _deep(70))]),
    "seconds": (
        pa.schema([("x", pa.timestamp("s"))]),
        [pa.array([2**62], pa.int64()).cast(pa.timestamp("s"))],
    ),
}


@pytest.mark.parametrize("how", [how for how in WRITERS if how != "hfile"])
@pytest.mark.parametrize("name", UNSUITABLE)
def test_unsuitable_input_is_not_reported_as_corruption(how: str, name: str, tmp_path: Path) -> None:
    schema, arrays = UNSUITABLE[name]
    table = pa.Table.from_arrays(arrays, schema=schema)
    writer = WRITERS[how]
    with pytest.raises((cf.SchemaError, cf.UnsupportedError), match="x"):
        cf.write(table, tmp_path / "x.file", format=writer.format, **writer.write)
    assert list(tmp_path.iterdir()) == []


def test_error_of_the_source_propagates(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64())])

    def batches() -> Iterator[Any]:
        yield pa.record_batch({"x": [1]})
        raise ZeroDivisionError("no more rows")

    with pytest.raises(ZeroDivisionError, match="no more rows"):
        cf.write(pa.RecordBatchReader.from_batches(schema, batches()), tmp_path / "x", format="orc")
    good = tmp_path / "good"
    cf.write(pa.table({"x": range(100_000)}), good, format="orc", codec="none")
    bad = bytearray(good.read_bytes())
    bad[3:2000] = b"\xff" * 1997
    with pytest.raises(cf.CorruptFileError):
        cf.write(cf.open(bytes(bad)), tmp_path / "copy", format="orc")


def test_extension_type_is_written_with_a_warning(tmp_path: Path) -> None:
    column = dict(columns())["uuid"]
    with pytest.warns(
        cf.ExtensionTypeWarning, match=r"'u' is written as fixed_size_binary\[16\].*arrow\.uuid"
    ):
        cf.write(pa.table({"u": column}), tmp_path / "x", format="orc")
    assert cf.open(tmp_path / "x").read()["u"].to_pylist() == column.storage.to_pylist()
