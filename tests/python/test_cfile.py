"""Features of CFiles only: seeks by ordinal, look-ups by value, bloom filters, entries of delta files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf

BLOCKS = Path(__file__).parents[1] / "data" / "kudu" / "files" / "file_blocks"


def blocks(kind: str) -> list[cf.File]:
    """Kudu's CFiles of one kind."""
    files = []
    for path in sorted(p for p in BLOCKS.rglob("*") if p.is_file()):
        if path.read_bytes()[:8] == b"kuducfl2":
            file = cf.open(path)
            if file.metadata["kind"] == kind:
                files.append(file)
    return files


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Forty thousand words in order, in small blocks, with a value index."""
    values = pa.array([f"word {i:06}" for i in range(40_000)])
    table = pa.table([values], schema=pa.schema([pa.field("any", pa.string(), nullable=False)]))
    path = tmp_path / "keys.cfile"
    cf.write(table, path, format="cfile", encoding="prefix", block_size=1024, value_index=True)
    return path


def test_seek_starts_at_an_ordinal(keys: Path) -> None:
    file = cf.open(keys)
    assert file.format == "cfile"
    assert file.seek(39_998).read_all().column("value").to_pylist() == ["word 039998", "word 039999"]
    assert file.seek(0, batch_size=10).read_next_batch().num_rows == 10
    assert file.seek(40_000).read_all().num_rows == 0
    with pytest.raises(ValueError, match="at most 40000"):
        file.seek(40_001)
    with pytest.raises(ValueError, match="at least 0"):
        file.seek(-1)


def test_lookup_returns_the_ordinals_of_a_value(keys: Path) -> None:
    file = cf.open(keys)
    assert file.lookup("word 012345").to_pylist() == [{"ordinal": 12345, "value": "word 012345"}]
    assert file.lookup("zebra").num_rows == 0
    assert file.read(filter=[("value", "in", ["word 000001", "word 000002"])]).num_rows == 2
    with_ordinals = cf.open(keys, ordinal=True).read(filter=[("ordinal", ">=", 39_999)])
    assert with_ordinals.to_pylist() == [{"ordinal": 39_999, "value": "word 039999"}]


def test_nulls_are_looked_up_without_an_index(tmp_path: Path) -> None:
    path = tmp_path / "numbers.cfile"
    cf.write(pa.table({"n": pa.array([3, None, 3, 4])}), path, format="cfile")
    file = cf.open(path)
    assert file.lookup(3).column("ordinal").to_pylist() == [0, 2]
    assert file.lookup(pa.scalar(None, pa.int64())).column("ordinal").to_pylist() == [1]


def test_dates_outside_pythons_range_can_be_looked_up(tmp_path: Path) -> None:
    path = tmp_path / "far.cfile"
    instants = pa.array([0, 2**60, None], pa.int64()).cast(pa.timestamp("us"))
    cf.write(pa.table({"t": instants}), path, format="cfile")
    assert cf.open(path).lookup(instants[1]).column("ordinal").to_pylist() == [1]


def test_lookup_and_filter_give_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "floats.cfile"
    cf.write(pa.table({"f": [0.0, -0.0, float("nan"), 1.5]}), path, format="cfile")
    file = cf.open(path, ordinal=True)
    for value in (0.0, -0.0, float("nan"), 1.5):
        filtered = file.read(filter=[("value", "=", value)])
        assert file.lookup(value).column("ordinal").to_pylist() == filtered.column("ordinal").to_pylist()


def test_invalid_arguments_are_not_reported_as_corruption(tmp_path: Path) -> None:
    path = tmp_path / "times.cfile"
    with pytest.raises(cf.SchemaError, match="column `t`"):
        cf.write(pa.table({"t": pa.array([2**62], pa.timestamp("s"))}), path, format="cfile")
    assert not path.exists()


def test_value_types_and_dictionaries_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "price.cfile"
    cf.write(pa.table({"p": pa.array([1, 2], pa.decimal128(18, 5))}), path, format="cfile")
    assert cf.open(path).schema.field("value").type == pa.decimal128(18, 0)
    assert cf.open(path, value_type="decimal128(18, 5)").schema.field("value").type == pa.decimal128(18, 5)
    with pytest.raises(cf.SchemaError):
        cf.open(path, value_type="string")
    cf.write(pa.table({"w": ["a", "b", "a"]}), path, format="cfile")
    coded = cf.open(path, dictionary=True).read()
    assert pa.types.is_dictionary(coded.schema.field("value").type)
    assert coded.column("value").to_pylist() == ["a", "b", "a"]


def test_other_kinds_of_cfiles_are_read() -> None:
    deltas = blocks("delta")
    rows = [row for file in deltas for row in file.read().to_pylist()]
    assert {row["kind"] for row in rows} >= {"update", "delete"}
    assert all(row["cells"] for row in rows if row["kind"] == "update")
    for file in deltas:
        assert "deltafilestats" in file.statistics()["columns"]["value"]
        with pytest.raises(cf.UnsupportedError, match="a seek by ordinal in a CFile that is a delta file"):
            file.seek(0)
    blooms = blocks("bloom")
    for index in blocks("index"):
        keys = index.read().column("value").to_pylist()
        assert any(all(bloom.might_contain_key(key) for key in keys) for bloom in blooms)


def test_other_formats_refuse_cfile_calls(tmp_path: Path) -> None:
    path = tmp_path / "one.rc"
    cf.write(pa.table({"a": [1]}), path, format="rcfile")
    for call in (lambda f: f.seek(0), lambda f: f.lookup(1), lambda f: f.might_contain_key(b"k")):
        with pytest.raises(cf.UnsupportedError, match="this is a rcfile file"):
            call(cf.open(path))


@pytest.mark.parametrize("nulls", [False, True])
def test_byte_ranges_that_tile_a_file_give_each_row_once(tmp_path: Path, nulls: bool) -> None:
    rows = [None if nulls and n % 7 == 0 else n * 31 % 9973 for n in range(20_000)]
    path = tmp_path / "x.cfile"
    cf.write(pa.table({"value": pa.array(rows, pa.int64())}), path, format="cfile", block_size=1024)
    file, size = cf.open(path), path.stat().st_size
    for step in (size // 7, size // 2 + 1, size, 2 * size, 999):
        parts = [
            file.to_batches(split=(at, step)).read_all()["value"].to_pylist() for at in range(0, size, step)
        ]
        assert [row for part in parts for row in part] == rows
    assert len(file.to_batches(split=(0, size // 2)).read_all()) not in (0, 20_000)


def test_a_decimal_of_too_many_digits_loses_its_row(tmp_path: Path) -> None:
    """There is no checksum: only the type's number of digits shows the damage. Other plain values of the
    block stay.
    """
    values = [Decimal(i * 7919 % 10**5) / 100 for i in range(200)]
    path = tmp_path / "n.cfile"
    for encoding in ("plain", "bit_shuffle"):
        table = pa.table({"value": pa.array(values, pa.decimal128(9, 2))})
        cf.write(table, path, format="cfile", checksums=False, encoding=encoding)
        whole, reported = path.read_bytes(), 0
        for at in range(30, len(whole) - 60):
            try:
                file = cf.open(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
                rows = file.read(on_error="skip")
            except cf.ColdframeError:
                continue
            rows.validate(full=True)
            long = [d for d in file.damage if "decimals between" in d["reason"]]
            if long:
                reported += 1
                assert rows.num_rows == 200 - sum(d["rows_lost"] for d in long)
                assert rows.num_rows == (199 if encoding == "plain" else 0)
                assert set(rows["value"].to_pylist()) <= {value * 100 for value in values}  # without scale
                assert file.verify()["damage"] == file.damage
                with pytest.raises(cf.CorruptFileError, match="decimals between"):
                    file.read()
                nulled = file.read(on_error="null")
                assert (nulled.num_rows, nulled["value"].null_count) == (200, 200 - rows.num_rows)
        assert reported, encoding
