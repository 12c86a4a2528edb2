"""A migration writes folders that Spark, Hive and DuckDB read whole, or refuses before it writes anything."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from estates import Estate

from coldframe.pipeline import dry_run
from coldframe.pipeline.options import Options


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


BAD = {
    "beside": (["t/1", "t/p=1/2"], "lies in no partition folder"),
    "depths": (["t/p=1/1", "t/p=1/q=2/2"], "lies in folders of p, q"),
    "order": (["t/p=1/q=1/1", "t/q=2/p=2/2"], "lies in folders of q, p"),
    "case": (["t/City=a/1", "t/city=b/2"], "lies in folders of city"),
    "twice": (["t/p=1/p=2/1"], "two values for p"),
    "empty": (["t/c=/1"], "folder c= has no value"),
}
FINE = {"delta": {"order"}, "iceberg": {"beside", "depths", "order", "empty"}}


@pytest.mark.parametrize("target", ["parquet", "orc", "delta", "iceberg"])
@pytest.mark.parametrize("case", BAD)
def test_a_folder_that_engines_cannot_read_whole_is_refused(estate: Estate, target: str, case: str) -> None:
    if target in ("delta", "iceberg"):
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    places, reason = BAD[case]
    for number, place in enumerate(places):
        estate.orc(place, {"a": [number]})
    estate.orc("other/1", {"a": [9]})
    foreseen = dry_run(estate.source, estate.target, Options(to=target))
    report = estate.migrate(to=target)
    (table,) = (table for table in report.tables if table.name == "t")
    if case in FINE.get(target, set()):
        assert (foreseen.exit_code, report.exit_code, table.rows) == (0, 0, len(places))
        return
    assert (foreseen.exit_code, report.exit_code) == (1, 1)
    assert [file.source for file in table.problems] == places
    assert any(reason in str(file.error) for file in table.problems)
    assert any(reason in why for table in foreseen.tables for _, why in table.refused)
    assert not list((estate.target / "t").rglob("*"))
    # A bad table does not affect the other tables.
    assert {table.name: table.rows for table in report.tables} == {"t": 0, "other": 1}


def test_an_existing_table_keeps_its_layout_and_takes_files_that_fit(estate: Estate) -> None:
    estate.orc("t/p=1/1", {"a": [1]})
    assert estate.migrate().exit_code == 0
    estate.orc("t/0", {"a": [0]})
    estate.orc("t/p=2/2", {"a": [2]})
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/0"]
    assert estate.values() == [1, 2]
    # Files that a pattern excludes are checked as well.
    report = estate.migrate(include=["t/0"])
    assert [file.source for file in report.failures] == ["t/0"]
    assert estate.values() == [1, 2]


@pytest.mark.parametrize("target", ["parquet", "delta"])
def test_a_file_above_other_tables_is_refused(estate: Estate, target: str) -> None:
    if target == "delta":
        pytest.importorskip("deltalake")
    estate.orc("db/stray", {"a": [0]})
    estate.orc("db/x/1", {"a": [1]})
    estate.orc("db/y/p=1/1", {"a": [2]})
    assert dry_run(estate.source, estate.target, Options(to=target)).exit_code == 1
    report = estate.migrate(to=target)
    assert [file.source for file in report.failures] == ["db/stray"]
    assert {table.path: table.rows for table in report.tables} == {"db": 0, "db/x": 1, "db/y": 1}
    # An entry joins db/x and db/x/older into one table.
    (estate.source / "tables.toml").write_text('[tables.x]\npath = "db/x"\n')
    estate.orc("db/x/older/2", {"a": [3]})
    estate.migrate(to=target)
    if target == "parquet":
        assert estate.values("db/x") == [1, 3]


def test_a_later_table_is_not_placed_inside_an_existing_table(estate: Estate) -> None:
    estate.orc("orders/p=1/1", {"a": [1]})
    assert estate.migrate().exit_code == 0
    estate.orc("orders/archive/1", {"a": [2]})
    estate.orc("orders/p=2/1", {"a": [3]})
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["orders/archive/1"]
    assert "that of table orders are nested" in str(report.failures[0].error)
    assert estate.values("orders") == [1, 3]
    (estate.source / "tables.toml").write_text('[tables.orders]\npath = "orders"\n')
    report = estate.migrate()
    # As one table, orders would have files beside partition folders.
    assert [file.source for file in report.failures] == ["orders/archive/1"]
    assert estate.values("orders") == [1, 3]


def test_a_delta_table_has_the_columns_of_the_selected_files(estate: Estate) -> None:
    deltalake = pytest.importorskip("deltalake")
    estate.orc("t/1", {"a": [1]})
    assert estate.migrate(to="delta").exit_code == 0
    estate.orc("t/p=1/2", {"a": [2]})
    assert estate.migrate(to="delta").exit_code == 1
    rows = pa.table(deltalake.DeltaTable(estate.target / "t").to_pyarrow_table())
    assert rows.to_pydict() == {"a": [1]}
