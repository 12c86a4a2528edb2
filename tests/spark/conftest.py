"""A Spark session for all tests, and files for it to read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark_data import held

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import CATALOG, CATALOG_CLASS, is_loaded


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    with contextlib.suppress(cf.UnsupportedError):
        # With the connector's jar, `coldframe` is the JVM's source, and `coldframe_rcfile` Python's.
        conf |= {"spark.jars": coldframe.spark.jar(), CATALOG: CATALOG_CLASS}
    session = start_session("local[2]", conf=conf)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def connector(spark: SparkSession) -> Iterator[None]:
    """Skips the module without the connector's jar. After it, the JVM holds no reader and no batch."""
    if not is_loaded(spark):
        pytest.skip("no jar of the connector here (make jar): not tried")
    yield
    assert held(spark) == [0, 0]


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three RCFiles with 3,000 rows in many row groups; see `spark_data.NUMBERS`."""
    folder = tmp_path_factory.mktemp("numbers")
    for part in range(3):
        ids = range(part * 1000, part * 1000 + 1000)
        rows = pa.table(
            {"a": pa.array(ids, pa.int64()), "s": [f"row {i}" for i in ids], "h": [i / 2 for i in ids]}
        )
        cf.write(rows, folder / f"{part}.rc", format="rcfile", serde="binary", record_interval=100)
    return folder
