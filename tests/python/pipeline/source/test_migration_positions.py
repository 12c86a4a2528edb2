"""Tables whose property makes Hive match columns by position; Spark with Hive is the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hive_estate import ORC, HiveEstate
from servers import HiveMetastore

import coldframe as cf
from coldframe.errors import UnsupportedError
from coldframe.hive.definition import Definition, Storage
from coldframe.pipeline import InProcess, migrate
from coldframe.pipeline.report.summary import summary

COLUMNS = [("a", "bigint"), ("b", "bigint"), ("c", "string")]
FORCED = {"orc.force.positional.evolution": "true"}
FILES: list[dict[str, Any]] = [
    {"b": [1, 2], "a": [3, 4], "c": ["x", None]},
    {"x": [5], "y": [6]},
    {"_col0": [7], "_col1": [8], "_col2": ["z"]},
    {"c": [9]},
]


def fill(estate: HiveEstate, name: str, *files: dict[str, Any], **properties: str) -> None:
    """A table with a partition for each file."""
    estate.table(name, estate.storage(COLUMNS, ORC, name), [("p", "int")], **properties)
    for number, rows in enumerate(files):
        folder = f"{name}/p={number}"
        estate.file(f"{folder}/000000_0", rows, format="orc")
        estate.partition(name, [str(number)], estate.storage(COLUMNS, ORC, folder))


def by_spark(spark: Any, name: str) -> list[tuple[Any, ...]]:
    rows = spark.table(f"cold.{name}").select("a", "b", "c", "p").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.select(["a", "b", "c", "p"]).to_pylist()), key=repr)


def test_a_property_matches_columns_by_position(
    hive_server: HiveMetastore, hive_spark: Any, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    fill(hive_estate, "forced", *FILES, **FORCED)
    expected = by_spark(hive_spark, "forced")
    assert (1, 3, "x", 0) in expected
    assert (9, None, None, 3) in expected
    table = cf.hive_table(f"{hive_server.url}/cold.forced")
    assert plain(table.read()) == expected
    # The filter applies to the table's columns, not to equally named columns of the file.
    some = [row for row in expected if row[:2] in ((2, 4), (5, 6))]
    assert plain(table.read(filter="a >= 2 and b < 8")) == some
    target = tmp_path / "dst"
    report = migrate(InProcess(), f"{hive_server.url}/cold.forced", target)
    assert report.exit_code == 0, summary(report)
    by = pads.partitioning(pa.schema({"p": pa.int32()}), flavor="hive")
    assert (
        plain(pads.dataset(target / "cold/forced", format="parquet", partitioning=by).to_table()) == expected
    )
    # Without the property, the names in a file count where the file has names.
    fill(hive_estate, "named", FILES[0])
    named = by_spark(hive_spark, "named")
    assert (3, 1, "x", 0) in named
    assert plain(cf.hive_table(f"{hive_server.url}/cold.named").read()) == named


def test_columns_that_cannot_be_matched_by_position_are_refused(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    fill(hive_estate, "longer", {"a": [1], "b": [2], "c": ["x"], "d": [3]}, **FORCED)
    fill(hive_estate, "taken", {"p": [1], "b": [2]}, **FORCED)
    fill(hive_estate, "deep", FILES[0], **FORCED, **{"orc.force.positional.evolution.level": "2"})
    report = migrate(InProcess(), f"{hive_server.url}/cold", tmp_path / "dst")
    assert report.exit_code == 1
    (failed,) = report.failures
    assert failed.source == "cold/longer/p=0/000000_0"
    assert "the file has 4 columns, the table's definition names 3" in str(failed.error)
    assert report.metastore is not None
    assert [str(finding) for finding in report.metastore.findings] == [
        "cold.deep: left out: its orc.force.positional.evolution.level is about fields of structs",
    ]
    address = f"{hive_server.url}/cold."
    # As in Hive, columns after the table's last column are not read.
    assert plain(cf.hive_table(f"{address}longer").read()) == [(1, 2, "x", 0)]
    # A column of the file may have the name of a partition key: names do not count.
    assert plain(cf.hive_table(f"{address}taken").read()) == [(1, 2, None, 0)]
    with pytest.raises(UnsupportedError, match=r"orc\.force\.positional\.evolution\.level"):
        cf.hive_table(f"{address}deep")
    transactional = Definition(
        "d", "t", storage=Storage(location="/x"), parameters={**FORCED, "transactional": "true"}
    )
    assert transactional.left_out == "transactional, with orc.force.positional.evolution"
