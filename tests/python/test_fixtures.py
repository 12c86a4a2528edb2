"""Every file of the manifests gives the rows that its writer's reader gave."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from truth import DAMAGED, DATA, RCFILES, WAREHOUSE, Case, cases, corpus, difference

import coldframe as cf
from coldframe import _coldframe

FIXTURES = [case for manifest in sorted(DATA.glob("*/files/MANIFEST.json")) for case in cases(manifest)]
CORPUS = [
    case
    for manifest in corpus()
    if manifest.parent.name in _coldframe.formats()
    for case in cases(manifest)
    if case.entry.get("expect") or str(case.entry.get("truth")).endswith(".parquet")
]


def check(case: Case) -> None:
    expect = case.entry.get("expect")
    try:
        got = pa.concat_tables(cf.open(source, **case.options).read() for source in case.sources())
    except cf.UnsupportedError:
        if case.entry.get("optional") or expect == "UnsupportedError":
            return
        raise
    except cf.ColdframeError as error:
        if case.entry.get("optional"):
            pytest.xfail(f"nothing in the file tells how it is meant: {error}")
        assert expect in [kind.__name__ for kind in type(error).__mro__], error
        return
    assert not expect, f"expected {expect}"
    got.validate(full=True)
    why = difference(
        got,
        case.truth(),
        by_position=case.entry.get("by_position", False),
        unordered=case.entry.get("unordered", False),
    )
    if why is not None and case.entry.get("optional"):
        pytest.xfail(f"the writer lost what the truth has: {why}")
    assert why is None, why


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case.name)
def test_fixture(case: Case) -> None:
    check(case)


@pytest.mark.skipif(not CORPUS, reason="no larger corpus beside the checkout")
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_corpus(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "case",
    [case for case in cases(RCFILES / "MANIFEST.json") if "splits" in case.entry],
    ids=lambda case: case.name,
)
def test_byte_ranges_hold_the_rows_that_hive_finds_in_them(case: Case) -> None:
    file = cf.open(case.path, **case.options)
    for split in case.entry["splits"]:
        start, length = split["start"], split["length"]
        rows = file.to_batches(split=(start, length)).read_all().num_rows
        assert rows == split["rows"], split


@pytest.mark.parametrize("case", cases(DAMAGED / "MANIFEST.json"), ids=lambda case: case.name)
def test_damaged_files_raise_the_expected_error(case: Case) -> None:
    file = cf.open(case.path, **case.options)
    with pytest.raises(getattr(cf, case.entry["expect"])) as raised:
        file.read()
    assert str(case.path) in str(raised.value)
    assert raised.value.path == str(case.path)
    assert raised.value.structure
    assert raised.value.reason

    rescued = file.read(on_error="skip")
    rescued.validate(full=True)
    assert file.damage
    assert all(set(lost) >= {"offset", "length", "rows_lost", "structure", "reason"} for lost in file.damage)
    truth = case.truth_of_base()
    survivors = pa.concat_tables(truth.slice(first, last - first) for first, last in case.entry["survive"])
    assert rescued.num_rows >= max(survivors.num_rows, case.entry["hive_rows"])
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
    for column, statistics in expected["columns"].items():
        values = got.column(column)
        assert values.null_count == statistics["nulls"], column
        if "sum" in statistics:
            total = pc.sum(values).as_py()
            assert float(total) == pytest.approx(float(statistics["sum"])), column
        if "true" in statistics:
            assert pc.sum(values).as_py() == statistics["true"]
        if "min" in statistics:
            text = pc.min_max(
                values.cast(pa.timestamp("us")) if pa.types.is_timestamp(values.type) else values
            )
            assert [str(text[end].cast(pa.string())) for end in ("min", "max")] == [
                statistics["min"],
                statistics["max"],
            ]
        if "utf8_bytes" in statistics:
            assert pc.sum(pc.binary_length(values)).as_py() == statistics["utf8_bytes"], column
        if "items" in statistics:
            lengths = [len(value) for value in values.to_pylist() if value is not None]
            assert sum(lengths) == statistics["items"], column
