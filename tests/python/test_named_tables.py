"""`cf.estate`: the tables of a directory by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    for at, place in enumerate(("sales.db/orders", "hr.db/orders", "hr.db/staff", "loose")):
        folder = tmp_path / "disk" / place
        folder.mkdir(parents=True)
        cf.write(pa.table({"id": [at]}), folder / "000000_0", format="orc")
    return tmp_path / "disk"


def test_tables_open_by_their_own_names_and_those_in_hive(warehouse: Path) -> None:
    estate = cf.estate(warehouse)
    assert list(estate) == ["hr.db.orders", "hr.db.staff", "loose", "sales.db.orders"]
    ids = {
        name: estate[name].read()["id"].to_pylist()
        for name in ("sales.orders", "hr.orders", "staff", "loose")
    }
    assert ids == {"sales.orders": [0], "hr.orders": [1], "staff": [2], "loose": [3]}
    assert len(estate) == 4
    assert "sales.orders" in estate
    assert "hr.db.staff: orc, 1 files" in repr(estate)


def test_a_name_that_is_missing_or_of_two_tables_is_an_error(warehouse: Path) -> None:
    estate = cf.estate(warehouse)
    assert "orders" not in estate
    assert estate.get("orders") is None
    with pytest.raises(KeyError, match=r"did you mean 'sales\.orders'"):
        estate["sales.order"]


def test_opening_waits_until_a_table_is_asked_for(warehouse: Path) -> None:
    (warehouse / "loose/000000_0").write_bytes(b"ORC")
    estate = cf.estate(warehouse)
    assert "staff" in estate
    assert estate["staff"].read().num_rows == 1
