"""Spark with Iceberg reads and changes an adopted table, and leaves the files of the source alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from older_spark import PYTHON

import coldframe as cf
from coldframe.errors import UnsupportedError
from coldframe.pipeline import InProcess, migrate
from coldframe.pipeline.adopt.rules import UNPROVED_BY_SPARK
from coldframe.pipeline.adopt.spark_proof import reader_of
from coldframe.spark.java import find_java

sys.path.append(str(Path(__file__).parents[1] / "python"))

from adoptions import Estate, ids
from servers import IcebergRest, iceberg_for_spark

needs_iceberg = pytest.mark.skipif(
    PYTHON is None, reason="no PySpark 3.5 here, for which Iceberg has a runtime"
)


def answers_of(folder: Path, job: str, *arguments: object) -> Any:
    """What a job prints, in an environment with a Spark for which Iceberg has a runtime."""
    done = subprocess.run(
        [str(PYTHON), str(Path(__file__).with_name(job)), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "JAVA_HOME": str(find_java()),
            "PYTHONPATH": str(Path(cf.__file__).parents[1]),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TZ": "UTC",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@needs_iceberg
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
        answers = answers_of(tmp_path, "adoption_job.py", server.url, server.spark_jar, "lake.a.t")
    finally:
        server.stop()
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


@needs_iceberg
def test_spark_proves_the_rows_of_each_file(tmp_path: Path) -> None:
    """With fewer rules, the proof itself finds the files that Spark reads otherwise than PyIceberg."""
    pyiceberg = pytest.importorskip("pyiceberg")
    estate = Estate(tmp_path)
    second = pa.timestamp("us")
    files = {
        "late": pa.table({"id": ids(1), "t": pa.array([1_500_000], second)}),
        "early": pa.table({"id": ids(2), "t": pa.array([-1_500_000], second)}),
    }
    estate.table("times", "id bigint, t timestamp", files)
    nested = pa.array([[{"A": 1}], None, []], pa.list_(pa.struct([("A", pa.int32())])))
    kinds = {
        "ID": ids(1, 2, 3),
        "l": nested,
        "m": pa.array([[("k", 1.5)], None, [("z", float("nan"))]], pa.map_(pa.string(), pa.float64())),
        "d": pa.array([1, 2, None], pa.decimal128(9, 2)),
        "odd.name x": ["q", None, ""],
        "p": [7, 7, 7],
    }
    columns = "id bigint, l array<struct<a:int>>, m map<string,double>, d decimal(9,2), `odd.name x` string"
    estate.table("kinds", columns, {"p=1/a": pa.table(kinds)}, "p int")
    estate.partition("kinds", "p='1'", "p=1")
    estate.table("parts", "id bigint, t timestamp", {"us.parquet": pa.table({"id": ids(1)})})
    nanoseconds = pa.table({"id": ids(2), "t": pa.array([1000], pa.timestamp("ns"))})
    pq.write_table(nanoseconds, estate.root / "parts" / "ns.parquet")
    estate.table("ticks", "id bigint, `a``b` string", {"tick": pa.table({"id": ids(1), "a`b": ["x"]})})
    evolve(estate)
    before = estate.digests()
    packages = Path(pyiceberg.__file__).parents[1]
    jar = iceberg_for_spark()
    first, again = answers_of(tmp_path, "adoption_proof_job.py", estate.source, estate.target, packages, jar)
    assert first["verified"], first["text"]
    tables = {table["name"]: table for table in first["tables"]}
    assert all(
        table["by_spark"] and "with Iceberg" in table["metadata"]["read by"] for table in tables.values()
    )
    reasons = {
        Path(file["path"]).name: file["reason"] for table in tables.values() for file in table["files"]
    }
    assert reasons == {
        "late": "",
        "early": UNPROVED_BY_SPARK,
        "a": "",
        "tick": UNPROVED_BY_SPARK,
        "narrow": "",
        "wide": "",
        "us.parquet": "",
        "ns.parquet": UNPROVED_BY_SPARK,
    }
    assert again["verified"], again["text"]
    assert [table["new"] for table in again["tables"]] == [0] * 5
    assert estate.digests() == before


def evolve(estate: Estate) -> None:
    """A table that is adopted, and whose columns then change."""
    within = pa.array([{"a": 1, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    narrow = pa.table({"n": pa.array([7], pa.int32()), "s": within, "Later": ["then"]})
    estate.table("evolved", "n int, s struct<a:int>", {"narrow": narrow})
    assert migrate(
        InProcess(), estate.source, estate.target, to="iceberg", adopt=True, only=["a.evolved"]
    ).verified
    estate.statements.pop()
    wide = pa.table({"n": pa.array([1 << 40], pa.int64())})
    columns = "extra double, n bigint, s struct<a:bigint,b:string>, later string"
    estate.table("evolved", columns, {"wide": wide})


def test_a_spark_without_iceberg_is_refused_by_name(spark: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"iceberg-spark-runtime-.*--spark-conf"):
        _ = reader_of(spark).spark
