"""Folders of partitions have names under which the engines of the target find them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.pipeline import InProcess, migrate


def rows_by_engine(target: Path, to: str) -> list[dict[str, object]]:
    if to == "delta":
        tables = pytest.importorskip("deltalake")
        return list(tables.DeltaTable(str(target / "t")).to_pyarrow_table().to_pylist())
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = catalogs.SqlCatalog(
        "coldframe", uri=f"sqlite:///{target}/_coldframe/iceberg.db", warehouse=f"file://{target}"
    )
    return list(catalog.load_table(("migrated", "t")).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("to", ["delta", "iceberg"])
@pytest.mark.parametrize("value", ["a\tb", "line\nfeed", "a b", "100%"])
def test_values_with_control_characters_are_read_by_the_engine(tmp_path: Path, to: str, value: str) -> None:
    folder = tmp_path / "src" / "t" / f"k={value.replace('%', '%25')}"
    folder.mkdir(parents=True)
    cf.write(pa.table({"id": pa.array(range(3), pa.int64())}), folder / "a.orc")
    report = migrate(InProcess(), tmp_path / "src", tmp_path / "dst", to=to)
    assert (report.exit_code, report.rows) == (0, 3)
    rows = rows_by_engine(tmp_path / "dst", to)
    assert [row["id"] for row in rows] == [0, 1, 2]
    if to == "delta":
        assert {row["k"] for row in rows} == {value}
