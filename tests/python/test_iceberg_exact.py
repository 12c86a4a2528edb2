"""Values and names of Iceberg tables that a reader could easily confuse with other values and names."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf

pytest.importorskip("pyiceberg")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, TimestampType, TimestamptzType

from coldframe.iceberg.paths import is_same_file


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    made = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/x.db", warehouse=f"file://{tmp_path}/w")
    made.create_namespace("n")
    return made


def test_partition_values_of_type_double_are_exact(catalog: Any) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", DoubleType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    table = catalog.create_table("n.t", schema, partition_spec=spec)
    table.append(pa.table({"id": [1, 2, 3], "p": [2.222, 2.222, 0.1]}))
    read = cf.iceberg_table(table.location().removeprefix("file://"))
    for filter, count in (("p = 2.222", 2), ("p = 0.1", 1), ("p >= 2.222", 2), ("p < 2.222", 1)):
        assert (read.to_table(filter=filter).num_rows, read.count(filter=filter)) == (count, count)


@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType()], ids=str)
def test_int96_is_read_as_the_type_of_the_column(catalog: Any, tmp_path: Path, kind: Any) -> None:
    at = dt.datetime(2020, 2, 29, 12, tzinfo=dt.timezone.utc)
    rows = pa.table({"at": pa.array([at, None], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    mapping = json.dumps([{"field-id": 1, "names": ["at"]}])
    schema = Schema(NestedField(1, "at", kind))
    table = catalog.create_table("n.t", schema, properties={"schema.name-mapping.default": mapping})
    # PyIceberg adds only files whose types it likes: add another one, and put this one in its place.
    like = pa.table(
        {"at": pa.array([at, None], pa.timestamp("us", "UTC" if kind == TimestamptzType() else None))}
    )
    table.append(like)
    [task] = table.scan().plan_files()
    path = Path(task.file.file_path.removeprefix("file://"))
    path.write_bytes((tmp_path / "f.parquet").read_bytes())
    read = cf.iceberg_table(table.location().removeprefix("file://")).to_table()["at"].to_pylist()
    assert read == [at if kind == TimestamptzType() else at.replace(tzinfo=None), None]


@pytest.mark.parametrize(
    ("named", "path", "same"),
    [
        ("/w/x", "/w/x", True),
        ("hdfs://nn:8020/w/x", "/w/x", True),
        ("hdfs:/w/x", "hdfs://nn:8020/w/x", True),
        ("hdfs://nn/w/x", "hdfs://ha/w/x", None),
        ("s3://b/w/x", "s3a://b/w/x", True),
        ("s3://b/w/x", "s3a://c/w/x", None),
        ("s3://b/w/x", "hdfs://b/w/x", None),
        ("/w/x", "/w/y", False),
        ("file:///w/x", "file:/w/x", True),
    ],
)
def test_names_of_one_file(named: str, path: str, same: bool | None) -> None:
    if same is not None:
        assert is_same_file(named, path) is same
        return
    with pytest.raises(cf.UnsupportedError, match="the same file is unknown"):
        is_same_file(named, path)
