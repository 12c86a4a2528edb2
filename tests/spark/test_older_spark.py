"""The migration and the connector on an older Spark, in an environment that `make` builds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from older_spark import PYTHON, ROOT

import coldframe as cf

WAREHOUSE = ROOT / "tests" / "data" / "rcfile" / "warehouse"


pytestmark = [
    pytest.mark.skipif(PYTHON is None, reason="no PySpark 3.5 here: not tried on it"),
]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(cf.__file__).parents[1])}
    environment.pop("SPARK_HOME", None)
    command = [str(PYTHON), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1200)


def test_migrate_runs_unchanged(tmp_path: Path) -> None:
    done = run("-m", "coldframe", "migrate", WAREHOUSE, tmp_path / "lake", "--master", "local[2]", "--json")
    if "Spark without Java" in done.stderr:
        pytest.skip(f"Spark 3.5 runs on Java 8 to 17: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr[-3000:]
    tables = {table["name"]: table for table in json.loads(done.stdout)["tables"]}
    assert {name: table["rows"] for name, table in tables.items()} == {"events": 2100, "sales": 3078}
    assert all(table["verified"] for table in tables.values())


def test_the_data_source_names_the_spark_it_needs() -> None:
    done = run("-c", "import coldframe.spark; coldframe.spark.register(None)")
    assert done.returncode != 0
    assert "UnsupportedError" in done.stderr
    assert "it needs 4.1 or later. The connector for the JVM" in done.stderr


@pytest.mark.timeout(1300)
def test_the_connector_reads_with_an_older_spark() -> None:
    # Stream tests of features that may differ in Spark 3: offsets, triggers and logs.
    streams = ("each_file_is_read_once", "limits_of_a_batch", "a_batch_that_spark_did_not_log")
    names = (
        "test_connector.py",
        "test_connector_metadata.py",
        "test_connector_planning.py",
        "test_connector_writes.py",
        "test_reading.py",
        "test_hive_rule.py",
        *(f"test_streams.py::test_{name}" for name in streams),
    )
    tests = [Path(__file__).with_name(name) for name in names]
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    if "No module named pytest" in done.stderr:
        pytest.skip("no pytest beside the PySpark 3.5 here")
    assert done.returncode == 0, done.stdout[-3000:]
    if "skipped" in done.stdout and "passed" not in done.stdout:
        pytest.skip("no jar of the connector here (make jar)")
