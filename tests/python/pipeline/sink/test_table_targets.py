"""Delta and Iceberg over migrated files: a version is exactly the difference between two runs."""

from __future__ import annotations

import datetime
import decimal
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deleting import delete_by_vector, delete_positions

from coldframe.errors import ColdframeError, SchemaError
from coldframe.pipeline.records import Committed, Part
from coldframe.pipeline.sink.committed import CommittedTable
from coldframe.pipeline.sink.destination import Destination

SCHEMA = pa.schema([("id", pa.int64())])


class Lake:
    """A target directory with one table, and the register function of its kind."""

    def __init__(self, root: Path, kind: str) -> None:
        if kind == "delta":
            from coldframe.pipeline.sink.delta import register
        else:
            from coldframe.pipeline.sink.iceberg import register
        self.root, self.kind = root, kind
        self.known: set[str] = set()
        self._register: Callable[[Destination, CommittedTable, str], dict[str, Any]] = register
        (root / "_coldframe").mkdir(parents=True)

    def file(
        self,
        name: str,
        ids: list[int],
        schema: pa.Schema = SCHEMA,
        p: pa.Scalar | None = None,
        v: Any = None,
    ) -> Committed:
        path = self.root / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        columns: dict[str, list[Any]] = {field.name: [None] * len(ids) for field in schema}
        if p is not None and "p" in columns:
            columns["p"] = [p.as_py()] * len(ids)
        if v is not None:
            columns["v"] = [v] * len(ids)
        pq.write_table(pa.table({**columns, "id": ids}, schema=schema), path)
        checks = {"columns": {field.name: {"nulls": 0} for field in schema}}
        part = Part("", f"t/{name}", len(ids), path.stat().st_size, checks, True)
        return Committed(name, name, "t", (part,))

    def register(
        self,
        *entries: Committed,
        schema: pa.Schema = SCHEMA,
        name: str = "t",
        path: str = "t",
        foreign: str = "refuse",
        partitions: Sequence[pa.Field] = (),
    ) -> dict[str, Any]:
        def announce(add: Iterable[str], remove: Iterable[str]) -> None:
            self.known = (self.known - set(remove)) | set(add)

        table = CommittedTable(
            name, path, schema, partitions, entries, "run", 1, frozenset(self.known), announce
        )
        return self._register(Destination(str(self.root)), table, foreign)

    def ids(self) -> list[int]:
        if self.kind == "delta":
            from deltalake import DeltaTable

            rows = pa.table(DeltaTable(self.root / "t").to_pyarrow_table())
        else:
            rows = self.iceberg().scan().to_arrow()
        return sorted(rows["id"].to_pylist())

    def version(self) -> int:
        """The newest version."""
        if self.kind == "delta":
            from deltalake import DeltaTable

            return int(DeltaTable(self.root / "t").version())
        return int(self.iceberg().current_snapshot().snapshot_id)

    def at(self, version: int) -> pa.Table:
        """The rows of a version."""
        if self.kind == "delta":
            from deltalake import DeltaTable

            return pa.table(DeltaTable(self.root / "t", version=version).to_pyarrow_table())
        return self.iceberg().scan(snapshot_id=version).to_arrow()

    def visible(self) -> list[int]:
        """Reads like an engine that supports deletion vectors, unlike pyarrow."""
        from deltalake import DeltaTable, QueryBuilder

        table = QueryBuilder().register("t", DeltaTable(self.root / "t"))
        ids: list[int] = pa.table(table.execute("select id from t").read_all())["id"].to_pylist()
        return ids

    def iceberg(self) -> Any:
        from coldframe.pipeline.sink.iceberg import open_catalog

        return open_catalog(str(self.root)).load_table(("migrated", "t"))

    def append(self, ids: list[int]) -> None:
        """Appends rows, as another user of the table does."""
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
    summary = lake.register(newer, second, third, schema=wide)
    assert lake.ids() == [1, 3, 4, 5]
    again = lake.register(newer, second, third, schema=wide)
    assert again.items() == {item for item in summary.items() if not item[0].startswith("read by")}


def test_checkpoints_of_a_delta_log_are_ten_versions_apart(tmp_path: Path) -> None:
    """Readers need no file of the log before the last checkpoint, which has all statistics."""
    pytest.importorskip("deltalake")
    from deltalake import DeltaTable

    lake = Lake(tmp_path / "lake", "delta")
    entries = []
    for number in range(23):
        entries.append(lake.file(f"{number}.parquet", [number]))
        lake.register(*entries)
    log = lake.root / "t" / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 20
    assert [path.name for path in sorted(log.glob("*.checkpoint.parquet"))] == [
        f"{version:020}.checkpoint.parquet" for version in (10, 20)
    ]
    for version in range(20):
        (log / f"{version:020}.json").unlink()
    assert lake.ids() == list(range(23))
    actions = pa.table(DeltaTable(lake.root / "t").get_add_actions(flatten=True))
    assert sorted(actions["max.id"].to_pylist()) == list(range(23))


def test_no_delta_version_adds_and_removes_the_same_path(tmp_path: Path) -> None:
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


def test_versions_of_other_writers_are_not_overwritten(lake: Lake) -> None:
    first = lake.file("a.parquet", [1])
    lake.register(first)
    lake.append([7])
    # A run without work reports the other writers; a run with work refuses.
    assert lake.register(first)["changed by others"]
    assert lake.ids() == [1, 7]
    with pytest.raises(SchemaError, match="changed by others"):
        lake.register(first, lake.file("b.parquet", [2]))
    assert lake.ids() == [1, 7]


def test_new_files_are_added_after_versions_of_other_writers(lake: Lake) -> None:
    first, second = lake.file("a.parquet", [1]), lake.file("b.parquet", [2])
    lake.register(first, second)
    lake.append([7])
    third = lake.file("c.parquet", [3])
    assert lake.register(first, second, third, foreign="append")["changed by others"]
    assert lake.ids() == [1, 2, 3, 7]
    # The replaced file is removed; rows of other writers stay.
    newer = lake.file("b2.parquet", [20])
    lake.register(first, newer, third, foreign="append")
    assert lake.ids() == [1, 3, 7, 20]
    # A rerun changes nothing.
    lake.register(first, newer, third, foreign="append")
    assert lake.ids() == [1, 3, 7, 20]


def test_after_a_foreign_compaction_new_files_are_added_and_old_files_are_not(tmp_path: Path) -> None:
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


def test_a_table_with_other_rows_is_not_verified(lake: Lake) -> None:
    """The footers hold other rows than were verified: the final read of the table decides."""
    first = lake.file("a.parquet", [1, 2])
    more = Part("", "t/a.parquet", 3, first.parts[0].bytes, {"columns": {}}, True)
    with pytest.raises(ColdframeError, match=r"reads 2 rows of .*3 were verified"):
        lake.register(Committed("a", "a", "t", (more,)))


def test_a_column_that_changed_its_type_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    lake = Lake(tmp_path / "lake", "delta")
    first = lake.file("a.parquet", [1])
    lake.register(first)
    other = pa.schema([("id", pa.float64())])
    with pytest.raises(SchemaError, match="id"):
        lake.register(first, schema=other)
    assert lake.ids() == [1]


def test_tables_with_the_same_name_in_the_catalog_get_different_names(tmp_path: Path) -> None:
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
    from coldframe.pipeline.sink.iceberg import open_catalog

    catalog = open_catalog(str(lake.root))
    rows = [catalog.load_table(name).scan().to_arrow()["id"].to_pylist() for name in names]
    assert rows == [[1], [2]]


def test_a_file_with_foreign_deletes_is_not_replaced(tmp_path: Path) -> None:
    """No library removes a file with its deletion vector: readers would see old and new rows."""
    pytest.importorskip("deltalake")
    lake = Lake(tmp_path / "lake", "delta")
    first, second = lake.file("a.parquet", list(range(5))), lake.file("b.parquet", [7])
    lake.register(first, second)
    delete_by_vector(lake.root / "t", "a.parquet", [1])
    # New files are still added.
    third = lake.file("c.parquet", [8])
    lake.register(first, second, third, foreign="append")
    assert sorted(lake.visible()) == [0, 2, 3, 4, 7, 8]
    with pytest.raises(SchemaError, match="others have deleted rows of 1 file"):
        lake.register(lake.file("a2.parquet", [0, 1]), second, third, foreign="append")
    assert sorted(lake.visible()) == [0, 2, 3, 4, 7, 8]


def test_other_writers_are_noticed_after_the_log_was_cleaned_up(lake: Lake) -> None:
    """Log retention and expired snapshots remove other writers' versions from the history."""
    lake.register(lake.file("a.parquet", [1]))
    lake.append([7])
    if lake.kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(lake.root / "t")
        table.create_checkpoint()
        for log in (lake.root / "t" / "_delta_log").glob("*.json"):
            log.unlink()
    else:
        newest = lake.iceberg().current_snapshot().snapshot_id
        old = [
            snapshot.snapshot_id
            for snapshot in lake.iceberg().metadata.snapshots
            if snapshot.snapshot_id != newest
        ]
        lake.iceberg().maintenance.expire_snapshots().by_ids(old).commit()
    with pytest.raises(SchemaError, match="changed by others"):
        lake.register(lake.file("a2.parquet", [2]))
    assert lake.ids() == [1, 7]


def test_a_table_whose_log_is_gone_is_not_recreated(lake: Lake) -> None:
    """Rows that other writers had deleted would come back."""
    first = lake.file("a.parquet", [1])
    lake.register(first)
    if lake.kind == "delta":
        shutil.rmtree(lake.root / "t" / "_delta_log")
    else:
        (lake.root / "_coldframe" / "iceberg.db").unlink()
    with pytest.raises(SchemaError, match="is gone"):
        lake.register(first)
    # The same path with only new files is a new table.
    again = lake.file("b.parquet", [1])
    lake.register(again)
    lake.register(again, lake.file("c.parquet", [2]))
    assert lake.ids() == [1, 2]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.list_(pa.struct([("at", pa.timestamp("us"))]))], ids=["column", "nested"]
)
def test_a_timestamp_without_zone_needs_a_feature_of_the_protocol(tmp_path: Path, kind: pa.DataType) -> None:
    pytest.importorskip("deltalake")
    from deltalake import DeltaTable

    lake = Lake(tmp_path / "lake", "delta")
    text = pa.schema([*SCHEMA, ("at", pa.string())])
    lake.register(lake.file("a.parquet", [1], text), schema=text)
    assert DeltaTable(lake.root / "t").protocol().min_reader_version == 1
    times = pa.schema([*SCHEMA, ("at", kind)])
    lake.register(lake.file("b.parquet", [2], times), schema=times)
    protocol = DeltaTable(lake.root / "t").protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert "timestampNtz" in (protocol.reader_features or ())
    assert {"timestampNtz", "appendOnly", "invariants"} <= set(protocol.writer_features or ())
    assert lake.ids() == [2]
    assert lake.register(lake.file("b.parquet", [2], times), schema=times)


def test_a_new_column_of_timestamps_without_zone_needs_the_feature_too(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    lake = Lake(tmp_path / "lake", "delta")
    first = lake.file("a.parquet", [1])
    lake.register(first)
    wide = pa.schema([*SCHEMA, ("at", pa.timestamp("us"))])
    lake.register(first, lake.file("b.parquet", [2], wide), schema=wide)
    assert lake.ids() == [1, 2]


@pytest.mark.parametrize("partitioned_first", [False, True])
def test_files_beside_partition_folders_and_in_them_are_refused(
    tmp_path: Path, partitioned_first: bool
) -> None:
    pytest.importorskip("deltalake")
    lake = Lake(tmp_path / "lake", "delta")
    plain, inside = lake.file("a.parquet", [1]), lake.file("p=x/b.parquet", [2])
    column = [pa.field("p", pa.string())]
    first, second = (inside, plain) if partitioned_first else (plain, inside)
    lake.register(first, partitions=column if partitioned_first else [])
    with pytest.raises(SchemaError, match=r"break the protocol: .* partition columns"):
        lake.register(first, second, partitions=column)
    assert lake.ids() == ([2] if partitioned_first else [1])


@pytest.mark.parametrize(
    ("kind", "folders"),
    [
        (pa.string(), ["p=a b%2F", "p=__HIVE_DEFAULT_PARTITION__"]),
        (pa.int8(), ["p=1", "p=-2"]),
        (pa.date32(), ["p=2014-01-01", "p=0001-01-01"]),
        (pa.bool_(), ["p=true", "p=false"]),
        (pa.decimal128(10, 2), ["p=1.50", "p=2.00"]),
        (pa.timestamp("us"), ["p=2014-01-01 10%3A00%3A00", "p=__HIVE_DEFAULT_PARTITION__"]),
    ],
    ids=str,
)
def test_partitions_are_counted_by_the_log(lake: Lake, kind: pa.DataType, folders: list[str]) -> None:
    column = pa.field("p", kind)
    whole = pa.schema([*SCHEMA, column]) if lake.kind == "iceberg" else SCHEMA
    entries = []
    for number, folder in enumerate(folders):
        value = None if "HIVE" in folder else unquote(folder.partition("=")[2])
        scalar = pa.scalar(value, pa.string()).cast(kind)
        entries.append(lake.file(f"{folder}/{number}.parquet", [number] * (number + 1), whole, p=scalar))
    for _ in range(2):
        lake.register(*entries, schema=whole, partitions=[column])
    assert lake.ids() == [0, 1, 1]


KINDS = [
    (pa.int32(), pa.int64()),
    (pa.string(), pa.timestamp("us")),
    (pa.float64(), pa.decimal128(10, 2)),
    (pa.binary(), pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int32()))])),
    (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64()), ("y", pa.string())])),
    (pa.list_(pa.string()), pa.list_(pa.date32())),
    (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
    (pa.struct([("x", pa.int32())]), pa.string()),
]
VALUES: dict[str, Any] = {
    "int32": 1,
    "int64": 70000,
    "string": "a",
    "timestamp[us]": datetime.datetime(2014, 1, 2),
    "double": 0.5,
    "decimal128(10, 2)": decimal.Decimal("1.50"),
    "binary": b"a",
    "struct<x: int32>": {"x": 1},
    "struct<x: int64, y: list<item: int32>>": {"x": 70000, "y": [1]},
    "struct<x: int64, y: string>": {"x": 70000, "y": "b"},
    "list<item: string>": ["a"],
    "list<item: date32[day]>": [datetime.date(2014, 1, 2)],
    "map<string, int32>": [("k", 1)],
    "map<string, int64>": [("k", 70000)],
}


@pytest.mark.parametrize(("old", "new"), KINDS, ids=str)
def test_older_versions_keep_their_types_and_values(lake: Lake, old: pa.DataType, new: pa.DataType) -> None:
    """Each old version still reads what it read when it was the newest."""
    meant: dict[int, Any] = {}
    for number, kind in enumerate([old, new, old]):
        schema = pa.schema([*SCHEMA, ("v", kind)])
        lake.register(lake.file(f"{number}.parquet", [number], schema, v=VALUES[str(kind)]), schema=schema)
        meant[lake.version()] = VALUES[str(kind)]
    for version, value in meant.items():
        assert lake.at(version)["v"].to_pylist() == [value]


@pytest.mark.parametrize("kind", [pa.string(), pa.int32()])
def test_a_column_that_no_file_has_is_dropped_and_may_come_back(lake: Lake, kind: pa.DataType) -> None:
    """Each old version still reads what it read when it was the newest."""
    wide = pa.schema([*SCHEMA, ("v", pa.string())])
    back = pa.schema([*SCHEMA, ("v", kind)])
    value: Any = pa.scalar(7).cast(kind).as_py()
    lake.register(lake.file("1.parquet", [1], wide, v="x"), schema=wide)
    versions = {lake.version(): {1: "x"}}
    narrow = lake.file("2.parquet", [2])
    lake.register(narrow)
    versions[lake.version()] = {2: None}
    assert lake.at(lake.version()).column_names == ["id"]
    lake.register(narrow, lake.file("3.parquet", [3], back, v=value), schema=back)
    versions[lake.version()] = {2: None, 3: value}
    for version, rows in versions.items():
        old_rows = lake.at(version).to_pylist()
        assert {row["id"]: row.get("v") for row in old_rows} == rows


def test_iceberg_does_not_drop_a_partition_column(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    lake = Lake(tmp_path / "lake", "iceberg")
    column = pa.field("p", pa.string())
    schema = pa.schema([*SCHEMA, column])
    first = lake.file("p=a/1.parquet", [1], schema, p=pa.scalar("a"))
    lake.register(first, schema=schema, partitions=[column])
    with pytest.raises(SchemaError, match="partition field p"):
        lake.register(lake.file("2.parquet", [2]))
    assert lake.ids() == [1]


def test_a_partition_column_keeps_its_type_in_iceberg(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    lake = Lake(tmp_path / "lake", "iceberg")
    for kind, value in ((pa.string(), "2014-01-01"), (pa.date32(), datetime.date(2014, 1, 1))):
        column = pa.field("p", kind)
        schema = pa.schema([*SCHEMA, column])
        file = lake.file(f"p=2014-01-01/{kind}.parquet", [1], schema, p=pa.scalar(value, kind))
        if kind == pa.string():
            lake.register(file, schema=schema, partitions=[column])
        else:
            with pytest.raises(SchemaError, match="partition column p becomes date"):
                lake.register(file, schema=schema, partitions=[column])
    assert lake.ids() == [1]


def test_an_iceberg_file_with_foreign_deletes_is_not_replaced(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    lake = Lake(tmp_path / "lake", "iceberg")
    first, second = lake.file("a.parquet", list(range(5))), lake.file("b.parquet", [7])
    lake.register(first, second)
    delete_positions(lake.iceberg(), f"file://{lake.root}/t/a.parquet", [1])
    third = lake.file("c.parquet", [8])
    lake.register(first, second, third, foreign="append")
    assert lake.ids() == [0, 2, 3, 4, 7, 8]
    with pytest.raises(SchemaError, match="others have deleted rows of 1 file"):
        lake.register(lake.file("a2.parquet", [0, 1]), second, third, foreign="append")
    assert lake.ids() == [0, 2, 3, 4, 7, 8]


@pytest.mark.parametrize(
    "name", ["p=a%20b%2Fc/x y+z.parquet", "p=ü%23%3F&/%25.parquet", "p=100%25 [a]/~'a.parquet"]
)
def test_names_are_the_same_in_the_log_and_in_the_journal(lake: Lake, name: str) -> None:
    """Otherwise the migration would take its own files for another writer's."""
    schema = pa.schema([*SCHEMA, ("p", pa.string())]) if lake.kind == "iceberg" else SCHEMA
    value = pa.scalar(unquote(name.partition("/")[0].partition("=")[2]))
    column = [pa.field("p", pa.string())]
    first = lake.file(name, [1], schema, p=value)
    lake.register(first, schema=schema, partitions=column)
    second = lake.file(f"{name}.b.parquet", [2], schema, p=value)
    for entries in ([first, second], [first, second], [second]):
        assert "changed by others" not in lake.register(*entries, schema=schema, partitions=column)
    assert lake.ids() == [2]
