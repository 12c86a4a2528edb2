"""Spark with Iceberg reads and changes an adopted table, and leaves the files of the source alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from older_spark import PYTHON

from coldframe.pipeline import InProcess, migrate
from coldframe.spark.java import find_java

sys.path.append(str(Path(__file__).parents[1] / "python"))

from adoptions import Estate, ids
from servers import IcebergRest

pytestmark = pytest.mark.skipif(PYTHON is None, reason="no PySpark 3.5 here, for which Iceberg has a runtime")


def test_spark_reads_and_changes_an_adopted_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyiceberg")
    from pyiceberg.utils.config import Config

    estate = Estate(tmp_path)
    noon = pa.array([datetime(2020, 7, 1, 10)] * 2, pa.timestamp("us"))
    files = {
        "p=1/a": pa.table({"ID": ids(1, 2), "v": ["a", "b"], "t": noon, "p": pa.array([9, 9], pa.int32())}),
        "p=1/HIVE_UNION_SUBDIR_1/a": pa.table({"id": ids(3), "dropped": ["x"]}),
        "p=02/b": pa.table({"_col0": ids(4), "_col1": ["b"]}),
    }
    estate.table("t", "id bigint, v string, t timestamp", files, "p int")
    estate.partition("t", "p='1'", "p=1")
    estate.partition("t", "p='02'", "p=02")
    before = estate.digests()
    server = IcebergRest(tmp_path / "rest")
    try:
        for key, value in (("TYPE", "rest"), ("URI", server.url)):
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key}", value)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
        report = migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True, catalog="lake")
        assert report.verified, report.verdict.text
        job = Path(__file__).with_name("adoption_job.py")
        done = subprocess.run(
            [str(PYTHON), str(job), server.url, str(server.spark_jar), "lake.a.t"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"},
        )
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    time = "datetime.datetime(2020, 7, 1, 10, 0)"
    assert answers["rows"] == [
        f"(1, 'a', {time}, 1)",
        f"(2, 'b', {time}, 1)",
        "(3, None, None, 1)",
        "(4, 'b', None, 2)",
    ]
    assert answers["by partition"] == [1, 2, 3]
    assert answers["by value"] == [2, 4]
    assert answers["by time"] == [1, 2]
    assert answers["changed"] == [2]
    assert answers["compaction"] == ""
    for what in ("expiry", "orphans"):
        assert "GC is disabled" in answers[what]
    assert answers["left"] == [2, 3, 4]
    assert estate.digests() == before
