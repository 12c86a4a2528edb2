"""Columns of the source that change after its adoption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from adoptions import OPTIONS, Estate, ids

from coldframe.pipeline import audit
from coldframe.pipeline.adopt import adopt
from coldframe.pipeline.adopt.records import TableOutcome

COLUMNS = "id bigint, n int, d decimal(5,2), s struct<a:int>"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    struct = pa.struct([("a", pa.int32()), ("b", pa.string())])
    # `later` and `s.b` are in a file before the table has them.
    early = {
        "ID": ids(1),
        "n": pa.array([1], pa.int32()),
        "d": pa.array([1], pa.decimal128(5, 2)),
        "s": pa.array([{"a": 1, "b": "x"}], struct),
        "Later": ["then"],
    }
    files = {
        "p=1/early": pa.table(early),
        "p=1/plain": pa.table({"id": ids(2)}),
        "p=1/ordinal": pa.table({"_col0": ids(3)}),
    }
    made.table("t", COLUMNS, files, "p int")
    made.partition("t", "p='1'", "p=1")
    assert adopt(made.source, made.target, OPTIONS).verified
    return made


def redefine(estate: Estate, columns: str, keys: str = "p int") -> None:
    estate.statements.clear()
    estate.table("t", columns, {}, keys)
    estate.partition("t", "p='1'", "p=1")


def run(estate: Estate) -> TableOutcome:
    adoption = adopt(estate.source, estate.target, OPTIONS)
    (table,) = adoption.adopted
    if not table.refused:
        assert adoption.verified, adoption.verdict.text
        assert audit(estate.target, deep=True).faults == []
    return table


def rows(estate: Estate) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = estate.loaded("t").scan().to_arrow().sort_by("id").to_pylist()
    return content


def test_an_added_column_decodes_only_what_may_have_it(estate: Estate) -> None:
    before = estate.digests()
    redefine(estate, f"{COLUMNS}, extra double")
    table = run(estate)
    # Of the files that stay none has the column; what the converted one has beside its columns is not known.
    assert table.new == 1
    assert [row["extra"] for row in rows(estate)] == [None, None, None]
    assert estate.loaded("t").scan().to_arrow().column_names == ["id", "n", "d", "s", "extra", "p"]
    assert run(estate).new == 0
    estate.table("t", "", {"p=1/new": pa.table({"id": ids(4), "extra": [0.5]})})
    estate.statements.pop()
    assert run(estate).new == 1
    assert estate.loaded("t").scan(row_filter="extra > 0").to_arrow()["id"].to_pylist() == [4]
    assert before.items() <= estate.digests().items()


def test_a_column_that_files_have_already_shows_their_values(estate: Estate) -> None:
    hidden = dict(by_name(estate))["later"]
    redefine(estate, f"{COLUMNS}, later string")
    assert run(estate).new == 3
    assert [row["later"] for row in rows(estate)] == ["then", None, None]
    assert estate.loaded("t").scan(row_filter="later = 'then'").to_arrow()["id"].to_pylist() == [1]
    assert dict(by_name(estate))["later"] != hidden
    # The older snapshot, which was made without the column, is read as before.
    first = estate.loaded("t").metadata.snapshots[0]
    assert estate.loaded("t").scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 3


def by_name(estate: Estate) -> list[tuple[str, int]]:
    mapping = estate.loaded("t").name_mapping()
    assert mapping is not None
    return [(name.lower(), field.field_id) for field in mapping.root for name in field.names]


def test_wider_types_and_fields_of_structs(estate: Estate) -> None:
    redefine(estate, "id bigint, n bigint, d decimal(9,2), s struct<a:bigint,b:string>")
    assert run(estate).new == 3
    first = rows(estate)[0]
    assert (first["n"], str(first["d"]), first["s"]) == (1, "1.00", {"a": 1, "b": "x"})
    wide = pa.table({"id": ids(5), "n": pa.array([1 << 40], pa.int64())})
    estate.table("t", "", {"p=1/wide": wide})
    estate.statements.pop()
    assert run(estate).new == 1
    assert estate.loaded("t").scan(row_filter=f"n = {1 << 40}").to_arrow()["id"].to_pylist() == [5]


@pytest.mark.parametrize(
    ("columns", "keys", "why"),
    [
        ("id bigint, n int, d decimal(5,2)", "p int", "its column s was dropped or renamed"),
        (COLUMNS.replace("n int", "m int"), "p int", "its column n was dropped or renamed"),
        (COLUMNS.replace("a:int", "c:int"), "p int", r"its column s\.a was dropped or renamed"),
        (COLUMNS.replace("n int", "n string"), "p int", "its column n was int and is string"),
        (COLUMNS.replace("id bigint", "id int"), "p int", "its column id was long and is int"),
        (COLUMNS.replace("(5,2)", "(9,4)"), "p int", r"its column d was decimal\(5, 2\) and is"),
        (COLUMNS, "p bigint", "its partition columns are other than when it was adopted"),
    ],
)
def test_what_iceberg_cannot_follow_is_refused(estate: Estate, columns: str, keys: str, why: str) -> None:
    import re

    before = estate.loaded("t").metadata_location
    redefine(estate, columns, keys)
    refused = run(estate).refused
    assert re.search(why, refused), refused
    assert "Adopt it into a new directory" in refused
    assert estate.loaded("t").metadata_location == before


def test_columns_that_others_changed_are_left_alone(estate: Estate) -> None:
    from pyiceberg.types import StringType

    with estate.loaded("t").update_schema() as update:
        update.add_column("theirs", StringType())
    assert "its columns were changed by others" in run(estate).refused


def test_columns_of_a_partition_that_change_are_decoded_again(tmp_path: Path) -> None:
    from dataclasses import replace

    from coldframe.pipeline.adopt import changes

    made = Estate(tmp_path)
    made.table("t", "id bigint", {"a": pa.table({"id": ids(1)})})
    first = adopt(made.source, made.target, OPTIONS).adopted[0].verdicts[0]
    from coldframe.pipeline.adopt.sources import find_source

    (table,) = find_source(made.source, OPTIONS).tables
    (file,) = table.files
    assert changes.changes_of(table, [first]).kept
    other = replace(table, files=(replace(file, own="0123456789abcdef"),))
    assert changes.changes_of(other, [first]).new
