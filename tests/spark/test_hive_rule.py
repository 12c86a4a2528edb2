"""Tables of a Hive metastore, read by the connector; Spark's own reader is the reference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import coldframe as cf
import coldframe.spark

TAKEN = {
    "latin texts": 2,
    "latin bytes": 2,
    "given": 1,
    "texts": 1,
    "bytes": 1,
    "filters": 1,
    "odd": 1,
    "days": 1,
    "one day": 1,
    "days twice": 2,
    "some day": 1,
    "join": 3,  # with the scan of the runtime filter
    "no nulls": 1,
    "not altered": 1,
    "wider": 1,
    "written": 1,
}
"""Scans by the connector. The other queries are left to Spark: they read partitions with other columns or
with a null value, char, varchar, tables without files, ORC, or names of files.
"""
ORC = {
    "orc latin": 2,
    "orcs": 1,
    "orc fields": 1,
    "orc days": 1,
    "orc day": 1,
    "orc changed": 3,
    "orc widened": 1,
    "orc counts": 1,
    "orc altered": 1,
    "orc others": 1,
}
"""The numbers of scans by the connector if it also reads tables of ORC files.

Char, and types narrower than the file's, are left to Spark.
"""
BY_HIVE = {**ORC, "orc altered": 0}
"""The same if Spark would use Hive's classes: the classes read partitions with other columns than
the table.
"""
ZONED = {"orcs": 1, "orc fields": 1}
"""The same where the JVM's time zone is not UTC: timestamps of RCFiles are left to Spark."""
READ = (
    ("coldframe", "spark", TAKEN),
    ("orc", "spark", ORC),
    ("orc by Hive", "hive", BY_HIVE),
    ("zoned on", "zoned off", ZONED),
)
"""The connector's answers, the replaced reader's answers, and the number of scans."""


def metastore(folder: Path, version: str) -> Any:
    """A metastore server, or None: then Spark keeps the tables itself."""
    sys.path.append(str(Path(__file__).parents[1] / "python"))
    from servers import HiveMetastore

    return HiveMetastore(folder / "metastore", version=version)


def test_rows_equal_those_of_sparks_reader(tmp_path: Path) -> None:
    try:
        coldframe.spark.jar()
    except cf.UnsupportedError:
        pytest.skip("no jar of the connector here (make jar)")
    version = os.environ.get("COLDFRAME_HIVE_METASTORE", "")
    if version.startswith("4"):
        pytest.skip("Spark's built-in client asks by get_table, which Hive 4 has no longer")
    server = metastore(tmp_path, version) if version else None
    job = Path(__file__).with_name("hive_tables_job.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(cf.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(job), str(tmp_path), *([server.url] if server else [])],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
        timeout=800,
    )
    if server:
        server.stop()
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    for setting, reader, taken in READ:
        for name, (scans, schema, rows) in results[setting].items():
            assert [schema, rows] == results[reader][name][1:], (setting, name)
            assert scans == taken.get(name, 0), (setting, name)
    assert all(scans == 0 for scans, _, _ in (*results["spark"].values(), *results["hive"].values()))
    assert results["zoned off"]["orcs"] != results["spark"]["orcs"]
    # Spark's own reader and Hive's agree.
    assert all(results["hive"][name][1:] == results["spark"][name][1:] for name in results["hive"])
    # New rows are visible, also to a DataFrame from before the write.
    assert results["late"] == [60, 61, 61, 1]
    assert results["reused"] == [2, 31, "late", 61]
    assert results["cached"] == [True, 4]
