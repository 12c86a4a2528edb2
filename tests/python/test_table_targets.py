"""Delta and Iceberg over migrated files: a version is exactly the difference; others' versions are theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coldframe.errors import ColdframeError, SchemaError
from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.destination import Destination
from coldframe.pipeline.journal import Entry, Part

SCHEMA = pa.schema([("id", pa.int64())])


class Lake:
    """A target directory with one table, and the register function of its kind."""

    def __init__(self, root: Path, kind: str) -> None:
        if kind == "delta":
            from coldframe.pipeline.delta import register
        else:
            from coldframe.pipeline.iceberg import register
        self.root, self.kind = root, kind
        self.known: set[str] = set()
        self._register: Callable[[Destination, CommittedTable, str], dict[str, Any]] = register
        (root / "_coldframe").mkdir(parents=True)

    def file(self, name: str, ids: list[int], schema: pa.Schema = SCHEMA) -> Entry:
        path = self.root / "t" / name
        path.parent.mkdir(exist_ok=True)
        columns: dict[str, list[Any]] = {field.name: [None] * len(ids) for field in schema}
        pq.write_table(pa.table({**columns, "id": ids}, schema=schema), path)
        checks = {"columns": {field.name: {"nulls": 0} for field in schema}}
        part = Part("", f"t/{name}", len(ids), path.stat().st_size, checks, True)
        return Entry(name, name, "t", (part,))

    def register(
        self,
        *entries: Entry,
        schema: pa.Schema = SCHEMA,
        name: str = "t",
        path: str = "t",
        foreign: str = "refuse",
    ) -> dict[str, Any]:
        def announce(add: Iterable[str], remove: Iterable[str]) -> None:
            self.known = (self.known - set(remove)) | set(add)

        table = CommittedTable(name, path, schema, [], entries, "run", 1, frozenset(self.known), announce)
        return self._register(Destination(str(self.root)), table, foreign)

    def ids(self) -> list[int]:
        if self.kind == "delta":
            from deltalake import DeltaTable

            found = pa.table(DeltaTable(self.root / "t").to_pyarrow_table())
        else:
            found = self.iceberg().scan().to_arrow()
        return sorted(found["id"].to_pylist())

    def iceberg(self) -> Any:
        from coldframe.pipeline.iceberg import open_catalog

        return open_catalog(str(self.root)).load_table(("migrated", "t"))

    def append(self, ids: list[int]) -> None:
        """What a user does with the table later."""
        if self.kind == "delta":
            from deltalake import write_deltalake

            write_deltalake(self.root / "t", pa.table({"id": ids}, schema=SCHEMA), mode="append")
        else:
            self.iceberg().append(pa.table({"id": ids}, schema=SCHEMA))


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[request.param])
    return Lake(tmp_path / "lake", request.param)


def test_files_are_replaced_and_columns_added(lake: Lake) -> None:
    first, second = lake.file("a b.parquet", [1, 2]), lake.file("b.parquet", [3])
    lake.register(first, second)
    assert lake.ids() == [1, 2, 3]
    newer = lake.file("a c.parquet", [1, 4])
    lake.register(newer, second)
    assert lake.ids() == [1, 3, 4]
    wide = pa.schema([*SCHEMA, ("more", pa.string())])
    third = lake.file("d.parquet", [5], wide)
    facts = lake.register(newer, second, third, schema=wide)
    assert lake.ids() == [1, 3, 4, 5]
    assert lake.register(newer, second, third, schema=wide) == facts


def test_no_version_of_delta_adds_and_removes_one_path(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    lake = Lake(tmp_path / "lake", "delta")
    first, second = lake.file("a b.parquet", [1]), lake.file("b.parquet", [2])
    lake.register(first, second)
    lake.register(lake.file("c.parquet", [3]), second)
    wide = pa.schema([*SCHEMA, ("more", pa.string())])
    lake.register(lake.file("c.parquet", [3]), second, lake.file("e.parquet", [4], wide), schema=wide)
    logs = sorted((lake.root / "t" / "_delta_log").glob("*.json"))
    removed: list[str] = []
    for log in logs:
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        adds = {action["add"]["path"] for action in actions if "add" in action}
        removes = {action["remove"]["path"] for action in actions if "remove" in action}
        assert not adds & removes
        removed += removes
    assert removed == ["a%20b.parquet"]
    # Older versions still find their files.
    from deltalake import DeltaTable

    assert sorted(DeltaTable(lake.root / "t", version=0).to_pyarrow_table()["id"].to_pylist()) == [1, 2]


def test_what_others_did_is_left_as_it_is(lake: Lake) -> None:
    first = lake.file("a.parquet", [1])
    lake.register(first)
    lake.append([7])
    # A run with nothing to do says so, one with something to do refuses.
    assert lake.register(first)["changed by others"]
    assert lake.ids() == [1, 7]
    with pytest.raises(SchemaError, match="changed by others"):
        lake.register(first, lake.file("b.parquet", [2]))
    assert lake.ids() == [1, 7]


def test_what_is_new_is_added_to_what_others_did(lake: Lake) -> None:
    first, second = lake.file("a.parquet", [1]), lake.file("b.parquet", [2])
    lake.register(first, second)
    lake.append([7])
    third = lake.file("c.parquet", [3])
    assert lake.register(first, second, third, foreign="append")["changed by others"]
    assert lake.ids() == [1, 2, 3, 7]
    # A replaced file goes, what others appended stays.
    newer = lake.file("b2.parquet", [20])
    lake.register(first, newer, third, foreign="append")
    assert lake.ids() == [1, 3, 7, 20]
    # Once more changes nothing.
    lake.register(first, newer, third, foreign="append")
    assert lake.ids() == [1, 3, 7, 20]


def test_after_others_have_compacted_new_files_are_added_and_old_ones_stay_away(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    from deltalake import DeltaTable

    lake = Lake(tmp_path / "lake", "delta")
    first, second = lake.file("a.parquet", [1]), lake.file("b.parquet", [2])
    lake.register(first, second)
    DeltaTable(lake.root / "t").optimize.compact()
    DeltaTable(lake.root / "t").vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert not (lake.root / "t" / "a.parquet").exists()
    third = lake.file("c.parquet", [3])
    lake.register(first, second, third, foreign="append")
    assert lake.ids() == [1, 2, 3]
    with pytest.raises(SchemaError, match="rewritten by others"):
        lake.register(first, lake.file("b2.parquet", [20]), third, foreign="append")
    assert lake.ids() == [1, 2, 3]


def test_a_table_that_reads_otherwise_is_not_verified(lake: Lake) -> None:
    """The footers hold other rows than were verified: whoever reads the table has the last word."""
    first = lake.file("a.parquet", [1, 2])
    more = Part("", "t/a.parquet", 3, first.parts[0].bytes, {"columns": {}}, True)
    with pytest.raises(ColdframeError, match=r"reads 2 rows of the table, verified were 3"):
        lake.register(Entry("a", "a", "t", (more,)))


def test_a_column_that_changed_its_type_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    lake = Lake(tmp_path / "lake", "delta")
    first = lake.file("a.parquet", [1])
    lake.register(first)
    other = pa.schema([("id", pa.float64())])
    with pytest.raises(SchemaError, match="id"):
        lake.register(first, schema=other)
    assert lake.ids() == [1]


def test_two_tables_of_one_name_in_the_catalog(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    lake = Lake(tmp_path / "lake", "iceberg")
    first, second = lake.file("a.parquet", [1]), lake.file("b.parquet", [2])
    for _ in range(2):
        names = [
            lake.register(first, name="web-logs", path="t")["iceberg table"],
            lake.register(second, name="web_logs", path="u")["iceberg table"],
        ]
        assert names[0] == "migrated.web_logs"
        assert names[1].startswith("migrated.web_logs_")
    from coldframe.pipeline.iceberg import open_catalog

    catalog = open_catalog(str(lake.root))
    rows = [catalog.load_table(name).scan().to_arrow()["id"].to_pylist() for name in names]
    assert rows == [[1], [2]]
