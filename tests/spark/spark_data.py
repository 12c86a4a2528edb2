"""Paths of the test data, and helpers that read it."""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

import coldframe as cf
from coldframe._coldframe import conform_batch
from coldframe.spark import OLDEST_PYSPARK
from coldframe.spark.types import plain_schema

DATA = Path(__file__).parents[1] / "data" / "rcfile"
WAREHOUSE = DATA / "warehouse"
NUMBERS = {"schema": "a bigint, s string, h double", "serde": "binary"}
"""Options to open the files of the fixture `numbers`."""

HAS_PYTHON_SOURCE = tuple(map(int, pyspark.__version__.split(".")[:2])) >= OLDEST_PYSPARK


def damaged() -> list[dict[str, Any]]:
    """The damaged files and their surviving rows."""
    entries: list[dict[str, Any]] = json.loads((DATA / "damaged" / "MANIFEST.json").read_text())
    return entries


def survivors(entry: dict[str, Any]) -> int:
    """The number of rows that must be read."""
    return sum(stop - start for start, stop in entry["survive"])


def comparable(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Rows as text: equal across versions of Spark, and for NaN, which does not equal itself."""
    return [repr([_comparable(value) for value in row]) for row in rows]


def _comparable(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, decimal.Decimal):
        return f"{value.normalize(decimal.Context(prec=50)):f}"
    if isinstance(value, dict):
        return sorted(
            (repr(_comparable(key)), _comparable(item)) for key, item in value.items()
        )  # the JVM has its own order
    if isinstance(value, list | tuple):
        return [_comparable(item) for item in value]
    return value


def rows_of(file: cf.File, columns: list[str] | None = None) -> list[str]:
    """The rows of a file, read without Spark, in the form of `comparable`."""
    table = file.read(columns)
    plain = plain_schema(table.schema)
    batches = [conform_batch(batch, plain) for batch in table.to_batches()]
    values = [
        [_as_spark(value, field.type) for batch in batches for value in batch.column(at).to_pylist()]
        for at, field in enumerate(plain)
    ]
    return comparable(zip(*values, strict=True))


def _as_spark(value: Any, kind: Any) -> Any:
    """A value of pyarrow as PySpark returns it."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return value.astimezone().replace(tzinfo=None)
    if pa.types.is_list(kind):
        return [_as_spark(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return {_as_spark(key, kind.key_type): _as_spark(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return [_as_spark(value[field.name], field.type) for field in fields]
    return value


def held(spark: SparkSession) -> list[int]:
    """The numbers of readers and batches that the native library has not released."""
    native = spark._jvm.java.lang.Class.forName(
        "io.coldframe.spark.Native", True, spark._jvm.Thread.currentThread().getContextClassLoader()
    )
    method = native.getDeclaredMethod("held", None)
    method.setAccessible(True)
    return list(method.invoke(None, None))[1:]
