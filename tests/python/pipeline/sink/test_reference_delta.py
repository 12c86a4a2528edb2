"""Migrated Delta tables, read by Spark with Delta's own reader: see tests/reference/README.md."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

PYTHON = os.environ.get("COLDFRAME_DELTA_PYTHON", "")
READ = Path(__file__).parents[3] / "reference" / "delta" / "read.py"

pytestmark = pytest.mark.skipif(not PYTHON, reason="COLDFRAME_DELTA_PYTHON names no Python with delta-spark")


def spark_reads(table: Path, *versions: int) -> list[list[Any]]:
    """The values of the column `a`, of each version."""
    done = subprocess.run(
        [PYTHON, str(READ), str(table), *map(str, versions)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line)["values"] for line in done.stdout.splitlines() if line.startswith("{")]


def test_every_version_has_its_rows(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    from deltalake import DeltaTable, write_deltalake

    estate = Estate(tmp_path)
    table = estate.target / "t"
    estate.orc("t/p=a b%2F/1", {"a": [1, 2]})
    estate.orc("t/p=x/1", {"a": [3]})
    meant: dict[int, list[int]] = {}

    def run(*values: int, **options: Any) -> None:
        report = estate.migrate(to="delta", **options)
        assert (report.exit_code, [table.error for table in report.tables]) == (0, [None])
        meant[DeltaTable(table).version()] = sorted(values)

    run(1, 2, 3)
    # A file is replaced: if one version added and removed the same path, Spark read 60 of 360 rows.
    estate.orc("t/p=x/1", {"a": [4, 5]})
    run(1, 2, 4, 5)
    # A new column, and one file fewer.
    estate.orc("t/p=x/2", {"a": [6], "b": ["new"]})
    (estate.source / "t/p=a b%2F/1").unlink()
    run(4, 5, 6, on_vanished="remove")
    # Other writers append and compact; then one run has no work, and the next run has some.
    rows = pa.table({"a": pa.array([7], pa.int64()), "b": ["theirs"], "p": ["x"]})
    write_deltalake(table, rows, mode="append")
    run(4, 5, 6, 7)
    DeltaTable(table).optimize.compact()
    estate.orc("t/p=y/1", {"a": [8]})
    run(4, 5, 6, 7, 8, on_foreign_changes="append")
    assert spark_reads(table, *meant) == list(meant.values())
    assert spark_reads(table) == [[4, 5, 6, 7, 8]]


@pytest.mark.parametrize("wide", [pa.array([70000], pa.int64()), pa.array([0.5])])
def test_all_versions_can_be_read_after_a_column_became_wider(tmp_path: Path, wide: pa.Array) -> None:
    """Shared files are rewritten in the wider type; old versions keep their types."""
    pytest.importorskip("deltalake")
    estate = Estate(tmp_path)
    table = estate.target / "t"
    for number in range(4):
        estate.orc(f"t/p={number // 2}/{number}", {"a": pa.array([number, number + 10], pa.int16())})
    old = sorted(value for number in range(4) for value in (number, number + 10))
    assert estate.migrate(to="delta").exit_code == 0
    estate.orc("t/p=1/wide", {"a": wide})
    assert estate.migrate(to="delta").exit_code == 0
    (estate.source / "t/p=0/1").unlink()
    assert estate.migrate(to="delta", on_vanished="remove").exit_code == 0
    new = sorted([*old, wide[0].as_py()])
    newest = [value for value in new if value not in (1, 11)]
    assert spark_reads(table, 0, 1, 2) == [old, new, newest]
    assert spark_reads(table) == [newest]
