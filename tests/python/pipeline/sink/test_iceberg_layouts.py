"""Iceberg layouts from tables.toml, checked by PyIceberg's metadata and query plans."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.errors import SchemaError
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary

pytest.importorskip("pyiceberg")


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def sales(estate: Estate, *days: int) -> None:
    """A table partitioned by day and region."""
    for day in days:
        for region in ("eu", "us"):
            at = dt.datetime(2020, 1, day, 12)
            rows = {"id": [day * 10, day * 10 + 1], "sold_at": pa.array([at, at], pa.timestamp("us"))}
            estate.orc(f"sales/dt=2020-0{1 + day // 10}-0{day % 10}/region={region}/000000_0", rows)


def state(estate: Estate, **layout: object) -> None:
    """Writes tables.toml."""
    lines = [f"{name} = {value!r}" for name, value in layout.items()]
    text = ["[tables.sales]", 'partitions = "dt date, region string"', "[tables.sales.iceberg]", *lines]
    (estate.source / "tables.toml").write_text("\n".join(text))


def migrate_iceberg(estate: Estate, **options: Any) -> Report:
    return estate.migrate(**{"to": "iceberg", **options})


def migrate_verified(estate: Estate, **options: Any) -> Report:
    report = migrate_iceberg(estate, **options)
    assert report.exit_code == 0, summary(report)
    assert report.verified
    return report


def iceberg(estate: Estate, name: str = "sales") -> Any:
    from coldframe.pipeline.sink.iceberg import open_catalog

    return open_catalog(str(estate.target)).load_table(("migrated", name))


def spec(table: Any) -> list[tuple[str, str]]:
    return [(field.name, str(field.transform)) for field in table.spec().fields]


def planned_folders(table: Any, filter: str) -> list[str]:
    """The folders of the files that a query plans to read."""
    prefix = f"{table.location()}/"
    files = (task.file.file_path for task in table.scan(filter).plan_files())
    return sorted(path.removeprefix(prefix).rpartition("/")[0] for path in files)


def ids(table: Any) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_keys_are_transformed_and_readers_prune(estate: Estate) -> None:
    sales(estate, 1, 2, 11)
    state(
        estate,
        partition_by=["months(dt)", "bucket(4, region)"],
        sort_by=["region", "id desc nulls last"],
        target_file_size="1m",
        format_version=2,
    )
    migrate_verified(estate)
    table = iceberg(estate)
    assert spec(table) == [("dt_month", "month"), ("region_bucket_4", "bucket[4]")]
    assert [str(field) for field in table.sort_order().fields] == ["4 ASC NULLS FIRST", "1 DESC NULLS LAST"]
    assert table.format_version == 2
    assert table.properties["write.target-file-size-bytes"] == str(1 << 20)
    assert ids(table) == sorted(2 * [10, 11, 20, 21, 110, 111])
    assert planned_folders(table, "dt = '2020-02-01' and region = 'eu'") == ["dt=2020-02-01/region=eu"]
    assert planned_folders(table, "dt >= '2020-02-01'") == [
        "dt=2020-02-01/region=eu",
        "dt=2020-02-01/region=us",
    ]
    # The migration does not sort the rows within a file.
    assert {task.file.sort_order_id for task in table.scan().plan_files()} == {None}
    before = table.metadata
    migrate_verified(estate)
    assert iceberg(estate).metadata == before  # a rerun changes nothing, and keeps the field ids


def test_a_changed_layout_applies_to_new_files(estate: Estate) -> None:
    sales(estate, 1)
    state(estate)
    migrate_verified(estate)
    assert spec(iceberg(estate)) == [("dt", "identity"), ("region", "identity")]
    sales(estate, 2)
    state(estate, partition_by=["region", "days(dt)"], sort_by=[])
    migrate_verified(estate)
    table = iceberg(estate)
    assert spec(table) == [("region", "identity"), ("dt_day", "day")]
    files = [task.file for task in table.scan().plan_files()]
    assert len({file.spec_id for file in files}) == 2
    assert ids(table) == sorted(2 * [10, 11, 20, 21])
    assert planned_folders(table, "dt = '2020-01-02' and region = 'us'") == ["dt=2020-01-02/region=us"]
    assert table.sort_order().is_unsorted


def test_fields_keep_their_ids_when_all_files_are_converted_again(estate: Estate) -> None:
    sales(estate, 1)
    state(estate, partition_by=["region", "days(dt)"])
    migrate_verified(estate)
    before = iceberg(estate)
    migrate_verified(estate, fresh=True)
    after = iceberg(estate)
    assert after.current_snapshot() != before.current_snapshot()
    assert (after.schema(), after.spec()) == (before.schema(), before.spec())


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"partition_by": ["days(nothing)"]}, "no column nothing; there are id, sold_at, dt, region"),
        ({"partition_by": ["days(region)"]}, r"days\(region\): its column is string, which has no day"),
        ({"partition_by": ["days(dt)", "months(dt)"]}, r"days\(dt\) and months\(dt\): one of them is enough"),
        ({"sort_by": ["id", "ID desc"]}, "id and id: one of them is enough"),
        ({"format_version": 3}, "format version 3: PyIceberg writes 2"),
    ],
)
def test_an_impossible_layout_is_refused_before_anything_is_written(
    estate: Estate, layout: dict[str, Any], message: str
) -> None:
    sales(estate, 1)
    state(estate, **layout)
    report = migrate_iceberg(estate)
    assert report.exit_code == 1
    assert not estate.files("sales")
    assert all(re.search(message, str(file.error)) for file in report.tables[0].files.problems)
    assert len(list(report.tables[0].files.problems)) == 2


def test_an_entry_with_only_a_layout_applies_to_a_table_of_a_metastore(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.orc("orders/dt=2020-01-01/0", {"id": [1]})
    estate.orc("orders/dt=2020-02-01/0", {"id": [2]})
    script, entry = tmp_path / "tables.hql", tmp_path / "tables.toml"
    script.write_text(
        "CREATE EXTERNAL TABLE `sales.orders`(`id` bigint) PARTITIONED BY (`dt` date) "
        f"STORED AS ORC LOCATION 'file:{estate.source}/orders'"
    )
    entry.write_text('[tables."sales.orders".iceberg]\npartition_by = ["years(DT)"]\n')
    estate.source = script
    migrate_verified(estate, tables=entry)
    table = iceberg(estate, "sales_orders")
    assert spec(table) == [("dt_year", "year")]
    assert ids(table) == [1, 2]
    entry.write_text('[tables."sales.nothing".iceberg]\npartition_by = ["years(dt)"]\n')
    report = migrate_iceberg(estate, tables=entry)
    assert report.exit_code == 1
    assert "1 entry of tables.toml matches nothing: sales.nothing" in summary(report)
    entry.write_text('[tables."sales.orders"]\nschema = "id int"\n')
    with pytest.raises(SchemaError, match=r"tables\.sales\.orders: for a metastore as the source, an entry"):
        migrate_iceberg(estate, tables=entry)


def test_names_that_differ_in_case_are_merged_or_refused(estate: Estate) -> None:
    estate.orc("sales/b", {"ID": [2]})
    migrate_verified(estate)
    estate.orc("sales/a", {"id": [1]})
    estate.orc("twice/a", {"id": [1], "ID": [1]})
    estate.orc("inside/a", {"s": [[{"x": 1, "X": 2}]]})
    report = migrate_iceberg(estate)
    errors = {table.name: [str(file.error) for file in table.files.problems] for table in report.tables}
    assert errors == {
        "inside": ["UnsupportedError: fields of s.element that differ in case only, or not at all: ['x']"],
        "sales": [],
        "twice": ["UnsupportedError: columns that differ in case only, or not at all: ['id']"],
    }
    assert iceberg(estate).scan().to_arrow().sort_by("ID").to_pydict() == {"ID": [1, 2]}
