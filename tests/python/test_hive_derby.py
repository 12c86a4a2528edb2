"""A metastore in a Derby directory, made by Spark with Hive support, dumped by the script of the docs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import UnsupportedError
from coldframe.spark.java import find_java

MAKE = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE cold")
spark.sql(
    "CREATE TABLE cold.sales (id bigint, what string COMMENT 'it''s') PARTITIONED BY (dt string)"
    f" STORED AS ORC TBLPROPERTIES ('long' = '{'x' * 300}')"
)
spark.sql("INSERT INTO cold.sales PARTITION (dt = 'a/b') VALUES (1, 'x'), (2, NULL)")
spark.stop()
"""


def run(script: str, folder: Path) -> None:
    """Runs a script in a separate Spark whose metastore is in the folder."""
    settings = ("spark.master=local[1]", "spark.ui.enabled=false", "spark.driver.host=127.0.0.1")
    given = " ".join(f"--conf {setting}" for setting in (*settings, "spark.driver.bindAddress=127.0.0.1"))
    own = {"JAVA_HOME": find_java(), "PYSPARK_SUBMIT_ARGS": f"{given} pyspark-shell"}
    # Derby need not write its changes to the disk at once.
    own["SPARK_SUBMIT_OPTS"] = "-Dderby.system.durability=test"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_derby_directory_becomes_a_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    try:
        find_java()
    except UnsupportedError as reason:
        pytest.skip(str(reason))
    page = ROOT / "docs" / "hive-metastore.md"
    (script,) = (block.code for block in blocks(page) if "jdbc:derby" in block.code)
    run(MAKE, tmp_path)
    run(script, tmp_path)
    dump = tmp_path / "metastore.sqlite"
    assert main(["tables", str(dump)]) == 0
    assert "cold.sales\tmanaged\torc\t1" in capsys.readouterr().out
    table = cf.hive_table(f"{dump}/cold.sales")
    assert sorted(table.read().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "what": "x", "dt": "a/b"},
        {"id": 2, "what": None, "dt": "a/b"},
    ]
    assert table.definition.storage.columns[1].comment == "it's"
    assert table.definition.parameters["long"] == "x" * 300
