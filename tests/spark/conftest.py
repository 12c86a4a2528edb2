"""One Spark for all tests, and files for it to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import coldframe as cf
from coldframe.pipeline.session import start_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session("local[2]", conf={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


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
