"""Fixtures that several test files share."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsing
import pyarrow as pa
import pytest
from hive_estate import HiveEstate, hive_client, spark_over
from samples import ROWS, SCHEMA
from servers import S3, Hdfs, HiveMetastore
from truth import Case, case

import coldframe as cf


@pytest.fixture(scope="session")
def groups() -> Case:
    """A file that Hive wrote: 600 rows in many row groups, uncompressed text."""
    return case("text_groups.rc")


@pytest.fixture(scope="session")
def table() -> pa.Table:
    """Rows of the types that filters treat differently, with nulls."""
    numbers = range(ROWS)
    instants = [None if i % 13 == 0 else i * 1_000_000_007 for i in numbers]
    days = [None if i % 17 == 0 else dt.date(2014, 1, 1) + dt.timedelta(days=i) for i in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "x": pa.array([None if i % 7 == 0 else i % 100 - 50 for i in numbers], pa.int32()),
            "s": [None if i % 11 == 0 else f"name {i % 50}" for i in numbers],
            "f": pa.array(
                [None if i % 5 == 0 else float("nan") if i % 6 == 0 else i / 4 for i in numbers], pa.float64()
            ),
            "d": pa.array(
                [None if i % 9 == 0 else decimal.Decimal(i - 500).scaleb(-2) for i in numbers],
                pa.decimal128(9, 2),
            ),
            "at": pa.array(instants, pa.timestamp("ns")),
            "day": pa.array(days, pa.date32()),
            "b": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in numbers], pa.bool_()),
            "st": pa.array([None if i % 8 == 0 else {"a": i, "b": str(i)} for i in numbers]),
            "tags": pa.array([None if i % 4 == 0 else [str(j) for j in range(i % 4)] for i in numbers]),
        }
    )


@pytest.fixture(scope="session")
def written(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as an RCFile of ten row groups."""
    path = tmp_path_factory.mktemp("written") / "table.rc"
    cf.write(table, path, format="rcfile", serde="binary", codec="zlib", record_interval=100)
    return path


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A store with the bucket `data`, which tests share: each uses names of its own."""
    started = S3(tmp_path_factory.mktemp("s3"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A cluster that tests share: each uses names of its own."""
    started = Hdfs(tmp_path_factory.mktemp("hdfs"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def hive_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """An empty Hive metastore."""
    started = HiveMetastore(tmp_path_factory.mktemp("hive") / "metastore")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def hive_spark(hive_server: HiveMetastore) -> Iterator[Any]:
    """A session with Hive support over the metastore."""
    with spark_over(hive_server.url) as spark:
        yield spark


@pytest.fixture
def hive_estate(hive_server: HiveMetastore, tmp_path: Path) -> Iterator[HiveEstate]:
    """An empty database of the metastore, dropped after the test."""
    pytest.importorskip("thrift")
    # pyiceberg ships Hive's generated Thrift code.
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    with hive_client(hive, hive_server.port) as client:
        made = HiveEstate(client, tmp_path / "wh")
        yield made
        made.drop()


@pytest.fixture
def file(written: Path) -> cf.File:
    return cf.open(written, schema=SCHEMA, serde="binary")


@pytest.fixture(scope="session")
def browser() -> Iterator[browsing.Browser]:
    """A browser; skips the test where none can start."""
    if (why := browsing.missing()) is not None:
        pytest.skip(why)
    with browsing.started() as running:
        yield running
