"""Normalising to Spark's types, and the fingerprint that proves a migration; these tests need no Spark."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coldframe import ColdframeError, SchemaError, UnsupportedError
from coldframe._coldframe import RawFingerprint, RawShape, conform_batch, hash_rows
from coldframe.pipeline.sink.sinks import ParquetSink
from coldframe.spark.types import plain_field, plain_schema, plain_type

UTC = datetime.timezone.utc


def _samples() -> dict[str, pa.Array]:
    rows = 64
    texts = [None if i % 7 == 0 else "é" * (i % 5) + str(i) for i in range(rows)]
    numbers = [None if i % 5 == 0 else i - 30 for i in range(rows)]
    naturals = [None if i % 5 == 0 else i for i in range(rows)]
    lists = [None if i % 6 == 0 else [None if j == 1 else j for j in range(i % 4)] for i in range(rows)]
    maps = [None if i % 6 == 0 else [(f"k{j}", j if j else None) for j in range(i % 3)] for i in range(rows)]
    structs = [
        None if i % 4 == 0 else {"a": i, "b": [str(i)] * (i % 3), "c": {"d": i / 3}} for i in range(rows)
    ]
    struct = pa.struct(
        [("a", pa.uint16()), ("b", pa.large_list(pa.large_string())), ("c", pa.struct([("d", pa.float32())]))]
    )
    nanos = [None if i % 9 == 0 else (i - 40) * 1_234_567 for i in range(rows)]
    codes = pa.array([i % 3 for i in range(rows)], pa.int8())
    branches = [
        pa.array(numbers, pa.int32()),
        pa.array(texts, pa.large_string()),
        pa.array(lists, pa.list_(pa.int64())),
    ]
    branch_rows = [0, 0, 0]
    places = []
    for code in codes.to_pylist():
        places.append(branch_rows[code])
        branch_rows[code] += 1
    amounts = [None if v is None else decimal.Decimal(v).scaleb(-2) for v in numbers]
    huge = [None if v is None else decimal.Decimal(v) * 10**25 for v in numbers]
    return {
        "null": pa.nulls(rows),
        "bool": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in range(rows)]),
        **{
            str(t): pa.array(numbers, t)
            for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
        },
        **{str(t): pa.array(naturals, t) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
        "uint64 big": pa.array([2**64 - 1 - i for i in range(rows)], pa.uint64()),
        "halffloat": pa.array(numbers, pa.float16()),
        **{str(t): pa.array(texts, t) for t in (pa.string(), pa.large_string(), pa.string_view())},
        **{
            str(t): pa.array([None if s is None else s.encode() for s in texts], t)
            for t in (pa.binary(), pa.large_binary(), pa.binary_view())
        },
        "fixed": pa.array([None if i % 3 == 0 else bytes([i] * 5) for i in range(rows)], pa.binary(5)),
        "dictionary": pa.array(texts).dictionary_encode(),
        "dictionary of nulls": pa.DictionaryArray.from_arrays(
            pa.array([i % 3 for i in range(rows)]), pa.array(["a", None, "c"])
        ),
        "ree": pc.run_end_encode(pa.array([i // 9 for i in range(rows)])),
        "date32": pa.array(numbers, pa.int32()).view(pa.date32()),
        "date64": pa.array([None if v is None else v * 86_400_000 for v in numbers], pa.int64()).view(
            pa.date64()
        ),
        **{
            f"timestamp {u}": pa.array(nanos, pa.int64()).view(pa.timestamp(u))
            for u in ("s", "ms", "us", "ns")
        },
        "instant": pa.array(nanos, pa.int64()).view(pa.timestamp("ns", tz="America/New_York")),
        "time32": pa.array(naturals, pa.int32()).view(pa.time32("ms")),
        "time64": pa.array(naturals, pa.int64()).view(pa.time64("us")),
        "duration": pa.array(numbers, pa.int64()).view(pa.duration("ms")),
        "decimal32": pa.array(amounts, pa.decimal32(7, 2)),
        "decimal64": pa.array(amounts, pa.decimal64(12, 2)),
        "decimal128": pa.array(huge, pa.decimal128(38, 2)),
        "decimal256": pa.array(huge, pa.decimal256(38, 2)),
        "list": pa.array(lists, pa.list_(pa.int32())),
        "large_list": pa.array(lists, pa.large_list(pa.int32())),
        "list_view": pa.array(lists, pa.list_view(pa.int32())),
        "fixed_list": pa.array(
            [None if i % 5 == 0 else [i, None] for i in range(rows)], pa.list_(pa.int16(), 2)
        ),
        "map": pa.array(maps, pa.map_(pa.string(), pa.int64())),
        "struct": pa.array(structs, struct),
        "sparse": pa.UnionArray.from_sparse(codes, branches),
        "dense": pa.UnionArray.from_dense(
            codes,
            pa.array(places, pa.int32()),
            [b.slice(0, n) for b, n in zip(branches, branch_rows, strict=True)],
        ),
        "list of structs": pa.array([None if s is None else [s, None, s] for s in structs], pa.list_(struct)),
    }


SAMPLES = _samples()


def print_of(data: pa.RecordBatch | pa.Table, target: pa.Schema | None = None, *, rows: int = 1 << 16) -> Any:
    """The fingerprint of some rows."""
    fingerprint = RawFingerprint(plain_schema(data.schema) if target is None else target)
    for batch in pa.table(data).to_batches(max_chunksize=rows):
        fingerprint.add(batch)
    return fingerprint


def conform(array: pa.Array, field: pa.Field) -> pa.Array:
    """A column with the type and name of `field`."""
    target = pa.schema([field])
    batch = conform_batch(pa.record_batch([array], names=[field.name]), target)
    assert batch.schema.equals(target, check_metadata=True)
    column: pa.Array = batch.column(0)
    return column


def hashes(array: pa.Array, kind: pa.DataType | None = None) -> list[int]:
    """The hash of each row of a table of one column, converted to the plain type of another column."""
    kind = plain_field(pa.field("x", array.type)).type if kind is None else kind
    hashed = hash_rows(pa.record_batch([array], names=["x"]), pa.schema([pa.field("x", kind)]))
    return [int.from_bytes(hashed[at : at + 8], "little") for at in range(0, len(hashed), 8)]


@pytest.mark.parametrize("name", SAMPLES)
def test_each_type_conforms_and_keeps_its_fingerprint(name: str) -> None:
    array = SAMPLES[name]
    field = plain_field(pa.field("x", array.type))
    plain = conform(array, field)
    plain.validate(full=True)
    assert plain.type.equals(field.type)
    assert len(plain) == len(array)
    assert plain_type(plain.type) == plain.type
    assert hashes(plain) == hashes(array)
    source = pa.record_batch([array], names=["x"])
    written = pa.record_batch([plain], names=["x"])
    assert print_of(source).differences(print_of(written)) == []
    for piece in (array.slice(3, 40), array.slice(0, 0), array.slice(63)):
        part = conform(piece, field)
        part.validate(full=True)
        assert part.equals(plain.slice(piece.offset, len(piece)))
        assert hashes(piece) == hashes(array)[piece.offset : piece.offset + len(piece)]


def test_values_survive() -> None:
    def plain(name: str) -> list[Any]:
        array = SAMPLES[name]
        values: list[Any] = conform(array, plain_field(pa.field("x", array.type))).to_pylist()
        return values

    for name in (
        "struct",
        "list_view",
        "map",
        "dictionary",
        "fixed",
        "decimal256",
        "uint64 big",
        "list of structs",
    ):
        assert plain(name) == SAMPLES[name].to_pylist(), name
    for name in ("sparse", "dense"):
        rows = plain(name)
        assert [row[f"f{row['tag']}"] for row in rows] == SAMPLES[name].to_pylist()
        assert all(row[f"f{i}"] is None for row in rows for i in range(3) if i != row["tag"])


def test_nanoseconds_round_down_also_before_1970() -> None:
    array = pa.array([-1, 1, -1000, 1999], pa.int64()).view(pa.timestamp("ns"))
    plain = conform(array, pa.field("x", pa.timestamp("us")))
    assert plain.view(pa.int64()).to_pylist() == [-1, 0, -1, 1]


def test_a_value_that_does_not_fit_is_refused_with_its_column() -> None:
    with pytest.raises(SchemaError, match=r"column x\.a: .*Int8"):
        conform(pa.array([{"a": 300}]), pa.field("x", pa.struct([("a", pa.int8())])))
    with pytest.raises(SchemaError, match="NOT NULL"):
        conform(pa.array([1, None]), pa.field("x", pa.int64(), nullable=False))
    with pytest.raises(SchemaError, match="instant"):
        conform(pa.array([1]).view(pa.timestamp("us")), pa.field("x", pa.timestamp("us", tz="UTC")))
    with pytest.raises(SchemaError, match=r"column x: expected Boolean"):
        conform(pa.array([1]), pa.field("x", pa.bool_()))
    with pytest.raises(UnsupportedError, match="decimal256"):
        plain_type(pa.decimal256(60, 2))
    with pytest.raises(SchemaError, match="columns"):
        conform_batch(pa.record_batch({"a": [1]}), pa.schema([("b", pa.int64())]))


def test_rows_survive_without_columns() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]}).select([])
    assert conform_batch(batch, pa.schema([])).num_rows == 3


def test_a_matching_batch_is_not_copied() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2, 3]).slice(1), "b": pa.array([1, 2], pa.int32())})
    assert conform_batch(batch, batch.schema) is batch
    target = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"}), ("b", pa.int64())], {"m": "n"})
    conformed = conform_batch(batch, target)
    assert conformed.schema.equals(target, check_metadata=True)
    assert conformed.to_pydict() == {"a": [2, 3], "b": [1, 2]}
    (_, values), (_, given) = conformed.column("a").buffers(), batch.column("a").buffers()
    assert values is not None
    assert given is not None
    assert values.address == given.address + 8


def test_the_schema_equals_the_target_down_to_element_names() -> None:
    lists = pa.array(
        [[{"b": 1, "a": b"x"}], None], pa.list_(pa.struct([("b", pa.uint8()), ("a", pa.binary())]))
    )
    element = pa.struct([pa.field("a", pa.string(), nullable=False), ("b", pa.int16())])
    kind = pa.list_(pa.field("element", element, nullable=False))
    conformed = conform(lists, pa.field("x", kind, metadata={"PARQUET:field_id": "7"}))
    assert str(conformed.type) == str(kind)
    assert conformed.to_pylist() == [[{"a": "x", "b": 1}], None]
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None]))
    assert conform(texts, pa.field("x", pa.large_string())).to_pylist() == ["{}", None]


def test_fingerprint_ignores_only_order_and_batch_boundaries() -> None:
    names = ["int64", "string", "double", "list", "struct", "decimal128", "timestamp ns", "map"]
    table = pa.table({name: SAMPLES[name] for name in names})
    whole = print_of(table)
    order = list(range(table.num_rows))
    random.Random(7).shuffle(order)
    shuffled = table.take(order)
    assert whole.differences(print_of(shuffled, rows=5)) == []
    # The print detects a changed value, lost rows, doubled rows, and values exchanged between rows.
    for name in names:
        swapped = table.set_column(
            table.schema.get_field_index(name), name, pc.take(table[name], [1, 2, *range(2, 63), 1])
        )
        assert whole.differences(print_of(swapped)), name
    assert "rows" in whole.differences(print_of(table.slice(1)))[0]
    doubled = pa.concat_tables([table.slice(1), table.slice(5, 1)])
    assert whole.differences(print_of(doubled))
    exchanged = table.set_column(0, "int64", pc.take(table["int64"], [2, 1, 0, *range(3, 64)]))
    # Each column has the same values as before: only the checksum of rows detects it.
    (difference,) = whole.differences(print_of(exchanged))
    assert difference.startswith("row checksum")


def test_each_byte_of_a_text_counts() -> None:
    for length in (1, 7, 8, 9, 16, 511, 512, 513, 2000):
        text = bytes(range(1, 256)) * 8
        base = text[:length]
        changed = [
            base[:i] + bytes([base[i] ^ 1]) + base[i + 1 :] for i in range(0, length, max(1, length // 50))
        ]
        variants = [base, base + b"\0", b"\0" + base, base[:-1], *changed]
        assert len(set(hashes(pa.array(variants, pa.binary())))) == len(variants)


def test_plain_schema_drops_nullability_and_metadata() -> None:
    schema = pa.schema([pa.field("a", pa.uint8(), nullable=False, metadata={"k": "v"})], metadata={"x": "y"})
    assert plain_schema(schema).equals(pa.schema([("a", pa.int16())]), check_metadata=True)
    assert plain_schema(pa.schema([("t", pa.timestamp("s"))]), timestamp_unit="ns").field(
        "t"
    ).type == pa.timestamp("ns")


def test_fingerprint_uses_the_written_type() -> None:
    ints = pa.array([1, -7, None, 10**9], pa.int32())
    wide = pa.array([1, -7, None, 10**9], pa.int64())
    floats = pa.array([1.0, -7.0, None, 1e9])
    decimals = pa.array(
        [None if v is None else decimal.Decimal(v) for v in wide.to_pylist()], pa.decimal128(10, 0)
    )
    cents = decimals.cast(pa.decimal128(12, 2))
    for source, target in ((ints, wide), (ints, floats), (wide, cents), (decimals, cents), (ints, cents)):
        assert hashes(source, target.type) == hashes(target, target.type), (source.type, target.type)
        first = pa.record_batch([source], names=["x"])
        other = pa.record_batch([target], names=["x"])
        assert print_of(first, other.schema).differences(print_of(other, other.schema)) == []
    narrow = pa.array([{"b": "x", "a": 1}, None], pa.struct([("b", pa.string()), ("a", pa.int32())]))
    kind = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32())])
    grown = pa.array([{"a": 1, "b": "x", "c": None}, None], kind)
    assert hashes(narrow, kind) == hashes(grown, kind)


def test_a_value_the_written_type_cannot_hold_has_another_hash() -> None:
    big = pa.array([2**53 + 1])
    assert hashes(big, pa.float64()) != hashes(pa.array([float(2**53 + 1)]), pa.float64())
    fine = pa.array([decimal.Decimal("1.25")], pa.decimal128(9, 2))
    assert hashes(fine, pa.decimal128(9, 1)) != hashes(
        pa.array([decimal.Decimal("1.2")], pa.decimal128(9, 1))
    )
    far = pa.array([2**62]).view(pa.timestamp("s"))
    assert hashes(far, pa.timestamp("us")) != hashes(pa.array([0]).view(pa.timestamp("us")))
    for array, kind in (
        (pa.array(["1"]), pa.int64()),
        (pa.array([1.5]), pa.decimal128(9, 2)),
        (pa.array([1]).view(pa.timestamp("us")), pa.timestamp("us", tz="UTC")),
        (pa.array([{"a": 1, "z": 2}]), pa.struct([("a", pa.int64())])),
    ):
        with pytest.raises(SchemaError, match="column x"):
            hashes(array, kind)


def test_minimum_and_maximum_are_readable() -> None:
    batch = pa.record_batch(
        {
            "a": pa.array([3, None, -2]),
            "b": pa.array([float("nan"), float("-inf"), -0.0]),
            "c": pa.array([decimal.Decimal("-0.05"), None, decimal.Decimal("12.00")], pa.decimal128(9, 2)),
            "d": pa.array(["é" * 70, "b", None]),
            "e": pa.array([b"\x00\xff", None, b"\x01"]),
            "f": pa.array([None, None, None], pa.int8()),
            "g": pa.array([[1], None, []]),
            "h": pa.array([True, False, None]),
        }
    )
    summary = print_of(batch).to_json()
    ends = {name: (column["min"], column["max"]) for name, column in summary["columns"].items()}
    assert ends == {
        "a": (-2, 3),
        "b": ("-inf", 0.0),
        "c": ("-0.05", "12.00"),
        "d": ("b", "é" * 64),
        "e": ("00ff", "01"),
        "f": (None, None),
        "g": (None, None),
        "h": (False, True),
    }
    assert [column["nulls"] for column in summary["columns"].values()] == [1, 0, 1, 1, 1, 3, 1, 1]
    assert summary["rows"] == 3
    assert all(len(column["checksum"]) == 32 for column in summary["columns"].values())


def test_parquet_is_read_back_by_another_implementation(tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    names = [
        "int64",
        "string",
        "double",
        "list",
        "struct",
        "decimal128",
        "timestamp us",
        "map",
        "instant",
        "bool",
    ]
    source = pa.record_batch({name: SAMPLES[name] for name in names})
    table = pa.table(
        [conform_batch(source, plain_schema(source.schema)).column(i) for i in range(len(names))], names
    )
    path, sink = str(tmp_path / "x.parquet"), ParquetSink()
    converted = sink.convert(pa.table(table), RawShape(table.schema), path)
    assert [file["rows"] for file in converted["files"]] == [table.num_rows]
    written = sink.read(path, table.schema)
    assert print_of(source).differences(written) == []
    assert converted["files"][0]["print"].differences(written) == []
    assert pq.read_table(path).equals(table)
    assert pq.read_metadata(path).created_by.startswith("coldframe")
    content = (tmp_path / "x.parquet").read_bytes()
    # No checksum covers the footer: the fingerprint has to detect damage there.
    chunks = pq.read_metadata(path).row_group(0).to_dict()["columns"]
    end = 4 + sum(chunk["total_compressed_size"] for chunk in chunks)
    refused, places = 0, range(4, end, 7)
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 1
        (tmp_path / "x.parquet").write_bytes(damaged)
        try:
            read = sink.read(path, table.schema)
        except (ColdframeError, OSError, pa.ArrowException):
            refused += 1
        else:
            # No checksum covers this byte: a header, or statistics in the footer.
            assert written.differences(read) == [], at
    assert refused > len(places) / 2
