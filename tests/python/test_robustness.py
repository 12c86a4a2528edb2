"""Reading a file with any damage gives rows or one of the package's errors."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from truth import RCFILES, cases

import coldframe as cf

SMALL = [case for case in cases(RCFILES / "MANIFEST.json") if case.path.stat().st_size <= 6000]


def outcome(data: bytes, options: dict[str, object], on_error: str = "raise") -> pa.Table | None:
    """The rows, checked to be valid Arrow; None for an error of the package."""
    try:
        table = cf.open(data, **options).read(on_error=on_error)
    except cf.ColdframeError as error:
        assert str(error)
        return None
    table.validate(full=True)
    return table


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_cut_at_every_byte(case: object) -> None:
    data, options = case.path.read_bytes(), case.options
    whole = outcome(data, options)
    assert whole is not None
    # bzip2 takes a hundred times as long as other codecs.
    for length in range(0, len(data), 7 if "bzip2" in case.name else 1):
        table = outcome(data[:length], options)
        # A cut at the end of a row group leaves a valid, shorter file.
        assert table is None or table.equals(whole.slice(0, table.num_rows)), length
        rescued = outcome(data[:length], options, "skip")
        assert rescued is None or rescued.equals(whole.slice(0, rescued.num_rows)), length


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_flipped_bytes_give_rows_or_an_error(case: object) -> None:
    data, options = case.path.read_bytes(), case.options
    dice = random.Random(1)
    for _ in range(400):
        mutant = bytearray(data)
        mutant[dice.randrange(len(data))] ^= dice.choice([0x01, 0x80, 0xFF, 1 << dice.randrange(8)])
        outcome(bytes(mutant), options)
        outcome(bytes(mutant), options, "skip")


@pytest.mark.parametrize("case", SMALL[:3], ids=lambda case: case.name)
def test_other_calls_on_a_damaged_file_return_or_raise_an_error_of_the_package(case: object) -> None:
    """Metadata, layout, splits, verification."""
    data, options = case.path.read_bytes(), case.options
    dice = random.Random(2)
    for _ in range(150):
        mutant = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            mutant[dice.randrange(len(data))] = dice.randrange(256)
        try:
            file = cf.open(bytes(mutant), **options)
        except cf.ColdframeError:
            continue
        try:
            assert file.verify().keys() >= {"rows", "units", "damage"}
        except cf.SchemaError as error:  # damage moved a date out of the range of nanoseconds
            assert "timestamp_unit" in str(error)
        for look in (
            lambda f: f.metadata,
            lambda f: f.statistics(),
            lambda f: f.inspect(),
            lambda f: f.count(),
        ):
            try:
                look(file)
            except cf.ColdframeError as error:
                assert str(error)
        for split in file.splits(1000):
            try:
                split.to_batches(on_error="skip").read_all().validate(full=True)
            except cf.ColdframeError as error:
                assert str(error)


def test_random_bytes_are_refused() -> None:
    dice = random.Random(3)
    for magic in (b"RCF\x01\x00", b"SEQ\x06", b"ORC", b"kuducfil", b"RED1", b""):
        for _ in range(50):
            data = magic + dice.randbytes(dice.randrange(300))
            try:
                cf.open(data).read()
            except cf.ColdframeError as error:
                assert str(error)


def test_errors_name_the_place(tmp_path: Path) -> None:
    case = next(c for c in cases(RCFILES / "MANIFEST.json") if c.entry["file"] == "binary_groups_zlib.rc")
    path = tmp_path / "cut.rc"
    path.write_bytes(case.path.read_bytes()[:-10])
    with pytest.raises(cf.CorruptFileError) as raised:
        cf.open(path, **case.options).read()
    error = raised.value
    assert error.path == str(path)
    assert isinstance(error.offset, int)
    assert 0 <= error.offset <= path.stat().st_size
    assert error.structure
    assert error.reason
    assert str(path) in str(error)
    assert str(error.offset) in str(error)
