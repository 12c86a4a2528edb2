"""ORC options: key functions, valid writes, text lengths."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pytest
from truth import ROOT

import coldframe as cf

FILES = ROOT / "tests" / "data" / "orc" / "files"
KEY = "000102030405060708090a0b0c0d0e0f"


@pytest.mark.parametrize("given", [KEY, bytes.fromhex(KEY)])
def test_a_key_function_gives_the_key(given: str | bytes) -> None:
    asked: list[str] = []

    def keys(name: str) -> str | bytes | None:
        asked.append(name)
        return given if name == "pii" else None

    file = FILES / "encrypted.orc"
    expected = cf.open(file, keys={"pii": KEY}).read()
    assert cf.open(file, keys=keys).read().equals(expected)
    assert asked.count("pii") == 1
    assert cf.scan(file, keys=keys).to_table().equals(expected)


def test_a_key_function_may_lack_the_key_or_fail() -> None:
    file = FILES / "encrypted.orc"
    with pytest.warns(cf.EncryptedColumnWarning):
        masked = cf.open(file)
    with pytest.warns(cf.EncryptedColumnWarning):
        assert cf.open(file, keys=lambda _: None).read().equals(masked.read())
    with pytest.raises(cf.KeyUnavailableError, match="pii"):
        cf.open(file, keys=lambda _: None, masked="error").read()
    with pytest.raises(ValueError, match="16 bytes"):
        cf.open(file, keys=lambda _: b"short")

    def broken(name: str) -> bytes:
        raise LookupError(f"no way to {name}")

    with pytest.raises(LookupError, match="no way to pii"):
        cf.open(file, keys=broken)


def test_only_valid_writes_are_read() -> None:
    table = FILES / "acid_table"

    def rows(**options: str) -> int:
        return cf.open(table, acid=True, **options).read().num_rows

    everything = cf.open(table, acid=True).read()
    largest = 2**63 - 1
    assert rows(acid_valid_write_ids=f"default.t:4:{largest}::") == everything.num_rows
    base = cf.open(table / "base_0000001" / "bucket_00000").read().num_rows
    assert rows(acid_valid_write_ids=f"default.t:1:{largest}::") == base
    assert rows(acid_valid_write_ids=f"default.t:0:{largest}::") == 0
    # Without writes 3 and 4, only the inserts of write 2 are added.
    second = cf.open(table / "delta_0000002_0000002_0000" / "bucket_00000").read().num_rows
    assert rows(acid_valid_write_ids="default.t:4:3:3:4") == base + second
    with pytest.raises(ValueError, match="acid_valid_write_ids"):
        rows(acid_valid_write_ids="4")


def test_varchar_and_char_are_truncated_and_padded(tmp_path: Path) -> None:
    texts = [None, "", "ab", "Grüße, Welt", "日本語の文字列", "🦀🦀🦀", "x  "]
    table = pa.table(
        {
            "v": texts,
            "c": pa.array(texts, pa.large_string()),
            "s": pa.StructArray.from_arrays([pa.array(texts).dictionary_encode()], ["c"]),
        }
    )
    types = {"v": "varchar(2)", "c": "char(3)", "s.c": "CHAR(1)"}
    path = tmp_path / "file.orc"
    cf.write(table, path, format="orc", types=types, bloom_filter_columns=["c"])
    expected = {
        "v": [None, "", "ab", "Gr", "日本", "🦀🦀", "x "],
        "c": [None, "   ", "ab ", "Grü", "日本語", "🦀🦀🦀", "x  "],
        "s": [{"c": text} for text in [None, " ", "a", "G", "日", "🦀", "x"]],
    }
    assert cf.open(path).read().to_pydict() == expected
    assert cf.open(path).read(filter=[("c", "=", "ab ")]).num_rows == 1
    assert po.ORCFile(path).read().to_pydict() == expected
    stored = {column["name"]: column["type"] for column in declared(path)}
    assert stored == {"v": "varchar(2)", "c": "char(3)", "s.c": "char(1)"}
    for wrong in ({"w": "char(3)"}, {"s": "char(3)"}, {"v": "char(256)"}):
        with pytest.raises((ValueError, cf.NotFoundError), match="types"):
            cf.write(table, path, format="orc", types=wrong)


def declared(path: Path) -> list[dict[str, str]]:
    """The text columns with their lengths, from the file's footer."""
    return [
        {"name": column["path"], "type": f"{column['kind']}({column['maximum_length']})"}
        for column in cf.open(path).metadata["types"]
        if column.get("maximum_length") is not None
    ]


def test_bloom_filters_of_tinyint_by_the_cpp_writer_lose_no_rows(tmp_path: Path) -> None:
    # The C++ writer hashes the numbers after it has overwritten them with bytes.
    path = tmp_path / "tiny.orc"
    table = pa.table({"b": pa.array([-60, 5, -3, 100] * 4, pa.int8())})
    po.write_table(table, path, bloom_filter_columns=[0])
    file = cf.open(path)
    for value in (-60, 5, -3, 100):
        assert file.read(filter=[("b", "==", value)]).num_rows == 4
        assert file.read(filter=[("b", "in", [value])]).num_rows == 4


def test_values_of_null_rows_belong_to_no_row(tmp_path: Path) -> None:
    # The C++ writer also stores values of null structs: the counts show which value belongs to which row.
    path, rows = tmp_path / "left.orc", 1000
    odd = pa.array([row % 2 == 0 for row in range(rows)])
    inner = pa.StructArray.from_arrays([pa.array(range(rows))], names=["v"], mask=odd)
    outer = pa.StructArray.from_arrays([inner], names=["in"])
    written = pa.table({"id": pa.array(range(rows)), "s": outer})
    po.write_table(written, path, row_index_stride=100)
    file = cf.open(path)
    for on_error in ("raise", "skip", "null"):
        assert file.read(on_error=on_error).to_pylist() == written.to_pylist()
        assert not file.damage
    # The same must hold after a seek.
    some = file.read(filter=[("id", ">=", 300), ("id", "<", 500)])
    assert some.to_pylist() == written.slice(300, 200).to_pylist()
    assert not file.verify()["damage"]
    assert file.read(["id"]).num_rows == rows


def test_timestamps_are_instants_in_a_given_zone(tmp_path: Path) -> None:
    """As Spark returns them in a JVM of this zone: `tests/spark/test_like_sparks_reader.py` compares them."""
    # The second clock occurs twice in New York, the third not at all.
    walls = [datetime(2021, 7, 1), datetime(2021, 11, 7, 1, 30), datetime(2021, 3, 14, 2, 30), None]
    cf.write(pa.table({"t": pa.array(walls, pa.timestamp("us"))}), tmp_path / "t.orc", format="orc")
    file = cf.open(tmp_path / "t.orc", timestamps_in="America/New_York", timestamp_unit="us")
    assert file.schema.field("t").type == pa.timestamp("us", tz="UTC")
    instants = [(2021, 7, 1, 4), (2021, 11, 7, 5, 30), (2021, 3, 14, 6, 30)]
    expected = [datetime(*instant, tzinfo=timezone.utc) for instant in instants]
    assert file.read().column("t").to_pylist() == [*expected, None]
    for instant in expected:
        assert file.read(filter=[("t", "=", instant)]).column("t").to_pylist() == [instant]
    with pytest.raises(cf.UnsupportedError, match="Mars/Olympus"):
        cf.open(tmp_path / "t.orc", timestamps_in="Mars/Olympus").read()
