"""Every file of the manifests gives what its writer's own reader read from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from truth import DAMAGED, DATA, RCFILES, WAREHOUSE, Case, cases, corpus, difference

import coldframe as cf
from coldframe import _coldframe

FIXTURES = [one for manifest in sorted(DATA.glob("*/files/MANIFEST.json")) for one in cases(manifest)]
CORPUS = [
    one
    for manifest in corpus()
    if manifest.parent.name in _coldframe.formats()
    for one in cases(manifest)
    if one.entry.get("expect") or str(one.entry.get("truth")).endswith(".parquet")
]


def check(one: Case, scratch: Path) -> None:
    expect = one.entry.get("expect")
    try:
        got = pa.concat_tables(cf.open(source, **one.options).read() for source in one.sources(scratch))
    except cf.UnsupportedError:
        if one.entry.get("optional") or expect == "UnsupportedError":
            return
        raise
    except cf.ColdframeError as error:
        if one.entry.get("optional"):
            pytest.xfail(f"nothing in the file tells how it is meant: {error}")
        assert expect in [kind.__name__ for kind in type(error).__mro__], error
        return
    assert not expect, f"expected {expect}"
    got.validate(full=True)
    why = difference(
        got,
        one.truth(),
        by_position=one.entry.get("by_position", False),
        unordered=one.entry.get("unordered", False),
    )
    if why is not None and one.entry.get("optional"):
        pytest.xfail(f"the writer lost what the truth has: {why}")
    assert why is None, why


@pytest.mark.parametrize("one", FIXTURES, ids=lambda one: one.name)
def test_fixture(one: Case, tmp_path: Path) -> None:
    check(one, tmp_path)


@pytest.mark.skipif(not CORPUS, reason="no larger corpus beside the checkout")
@pytest.mark.parametrize("one", CORPUS, ids=lambda one: one.name)
def test_corpus(one: Case, tmp_path: Path) -> None:
    check(one, tmp_path)


@pytest.mark.parametrize(
    "one",
    [one for one in cases(RCFILES / "MANIFEST.json") if "splits" in one.entry],
    ids=lambda one: one.name,
)
def test_byte_ranges_hold_the_rows_that_hive_finds_in_them(one: Case) -> None:
    file = cf.open(one.path, **one.options)
    for split in one.entry["splits"]:
        start, length = split["start"], split["length"]
        rows = file.to_batches(split=(start, length)).read_all().num_rows
        assert rows == split["rows"], split


@pytest.mark.parametrize("one", cases(DAMAGED / "MANIFEST.json"), ids=lambda one: one.name)
def test_damaged(one: Case) -> None:
    file = cf.open(one.path, **one.options)
    with pytest.raises(getattr(cf, one.entry["expect"])) as raised:
        file.read()
    assert str(one.path) in str(raised.value)
    assert raised.value.path == str(one.path)
    assert raised.value.structure
    assert raised.value.reason

    rescued = file.read(on_error="skip")
    rescued.validate(full=True)
    assert file.damage
    assert all(set(lost) >= {"offset", "length", "rows_lost", "structure", "reason"} for lost in file.damage)
    truth = one.truth_of_base()
    survivors = pa.concat_tables(truth.slice(first, last - first) for first, last in one.entry["survive"])
    assert rescued.num_rows >= max(survivors.num_rows, one.entry["hive_rows"])
    if rescued.num_rows == survivors.num_rows:
        assert difference(rescued, survivors) is None

    report = file.verify()
    assert report["damage"]


def tables() -> dict[str, dict[str, object]]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return dict(tomllib.loads((WAREHOUSE / "tables.toml").read_text())["tables"])


@pytest.mark.parametrize("name", sorted(tables()))
def test_a_warehouse_table_is_scanned_as_hive_sees_it(name: str) -> None:
    table = tables()[name]
    partitions = table.pop("partitions", None)
    expected = json.loads((WAREHOUSE / "EXPECTED.json").read_text())[name]
    dataset = cf.scan(WAREHOUSE / name, **table)
    assert len(dataset.files) == expected["files"]
    assert dataset.count_rows() == expected["rows"]
    got = dataset.to_table()
    assert set(got.column_names) == set(expected["columns"])
    assert dataset.partition_columns == ([] if partitions is None else ["dt", "region"])
    for column, facts in expected["columns"].items():
        values = got.column(column)
        assert values.null_count == facts["nulls"], column
        if "sum" in facts:
            total = pc.sum(values).as_py()
            assert float(total) == pytest.approx(float(facts["sum"])), column
        if "true" in facts:
            assert pc.sum(values).as_py() == facts["true"]
        if "min" in facts:
            text = pc.min_max(
                values.cast(pa.timestamp("us")) if pa.types.is_timestamp(values.type) else values
            )
            assert [str(text[end].cast(pa.string())) for end in ("min", "max")] == [
                facts["min"],
                facts["max"],
            ]
        if "utf8_bytes" in facts:
            assert pc.sum(pc.binary_length(values)).as_py() == facts["utf8_bytes"], column
        if "items" in facts:
            lengths = [len(value) for value in values.to_pylist() if value is not None]
            assert sum(lengths) == facts["items"], column
