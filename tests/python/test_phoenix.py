"""Phoenix tables: its client wrote the cells and read the expected columns (`tests/reference/phoenix`)."""

from __future__ import annotations

import base64
import json
import shutil
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coldframe as cf

FILES = Path(__file__).parents[1] / "data" / "phoenix" / "files"
ROOT = FILES / "root"
TABLES = ["ORDERS", "NUMBERS", "KEYS", "small"]
EPOCH = datetime(1970, 1, 1)


def statement(table: str) -> str:
    return (FILES / f"{table}.sql").read_text()


def opened(table: str, **more: Any) -> cf.File:
    return cf.open(ROOT, table=table, view="pivot", phoenix=statement(table), **more)


def json_form(value: Any, of: pa.DataType) -> Any:
    """A value as the method `json` of the Java program writes it."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(**{"milliseconds" if of.unit == "ms" else "microseconds": 1})
    return value


def agrees(ours: Any, theirs: Any, of: pa.DataType) -> bool:
    ours = json_form(ours, of)
    if ours is None or theirs is None:
        return ours is theirs is None
    if isinstance(ours, Decimal):
        return ours == Decimal(theirs)
    if pa.types.is_float32(of):
        return np.float32(ours) == np.float32(theirs)
    if pa.types.is_float64(of):
        return ours == float(theirs)
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("table", TABLES)
def test_rows_equal_the_rows_of_phoenix(table: str) -> None:
    read = opened(table).read()
    expected = [json.loads(line) for line in (FILES / f"{table}.rows").read_text().splitlines()]
    assert sorted(read.column_names) == sorted(expected[0])
    types = {field.name: field.type for field in read.schema}
    rows = read.to_pylist()
    assert len(rows) == len(expected) > 0
    left = list(rows)
    for theirs in expected:
        same = [row for row in left if all(agrees(row[n], theirs[n], types[n]) for n in types)]
        assert len(same) == 1, theirs
        left.remove(same[0])
    assert all(any(row[n] is not None for row in rows) for n in types)


def test_types_come_from_the_statement() -> None:
    schema = opened("ORDERS").schema
    assert schema.field("TOTAL").type == pa.decimal128(10, 2)
    assert schema.field("ORDERED").type == pa.timestamp("ms")
    assert schema.field("SENT").type == pa.timestamp("us")
    assert schema.field("NUMBER").type == pa.int64()
    assert schema.names[:5] == ["REGION", "ORDERED", "CUSTOMER", "NUMBER", "NOTE"]


def test_columns_and_rows_are_chosen() -> None:
    whole = opened("ORDERS").read()
    some = opened("ORDERS").read(["NUMBER", "Comment"], filter=[("REGION", "=", "DE")])
    keep = [row for row in whole.to_pylist() if row["REGION"] == "DE"]
    assert some.to_pylist() == [{"NUMBER": row["NUMBER"], "Comment": row["Comment"]} for row in keep]
    # A column named `row` is not HBase's row key.
    renamed = statement("ORDERS").replace("number", '"row"')
    file = cf.open(ROOT, table="ORDERS", phoenix=renamed)
    assert file.read(filter=[("row", "=", 17)])["row"].to_pylist() == [17]


def test_row_keys_are_looked_up_as_they_are_stored() -> None:
    keys = cf.open(ROOT, table="ORDERS").read()["row"].to_pylist()
    assert opened("ORDERS").get(keys[0]).equals(opened("ORDERS").read().slice(0, 1))
    backward = opened("ORDERS").scan(reverse=True).read_all()
    assert backward.to_pylist() == opened("ORDERS").read().to_pylist()[::-1]


def test_rest_has_the_columns_outside_the_statement() -> None:
    shorter = statement("ORDERS").replace(", d.sent TIMESTAMP", "")
    rest = cf.open(ROOT, table="ORDERS", phoenix=shorter, rest=True).read()
    sent = [row for row in opened("ORDERS").read().to_pylist() if row["SENT"] is not None]
    with_rest = [row["rest"] for row in rest.to_pylist() if row["rest"]]
    assert [[key for key, _ in pairs] for pairs in with_rest] == [[b"D:\x80\x0f"]] * len(sent)


def test_statement_of_another_table_is_reported() -> None:
    with pytest.raises(cf.SchemaError, match="COLUMN_ENCODED_BYTES"):
        cf.open(ROOT, table="KEYS", phoenix=statement("KEYS").replace("COLUMN_ENCODED_BYTES = 0,", "")).read()
    other = statement("NUMBERS").rstrip().rstrip(";") + " COLUMN_ENCODED_BYTES = 0"
    with pytest.raises(cf.SchemaError, match="COLUMN_ENCODED_BYTES"):
        cf.open(ROOT, table="NUMBERS", phoenix=other).read()
    unsalted = statement("ORDERS").replace("SALT_BUCKETS = 4, ", "")
    with pytest.raises(cf.SchemaError, match="row"):
        cf.open(ROOT, table="ORDERS", phoenix=unsalted).read()
    file = cf.open(ROOT, table="ORDERS", phoenix=unsalted)
    left = file.read(on_error="null")
    assert left.num_rows == opened("ORDERS").count()
    assert len(file.damage) > 0


def test_unsupported_statements_are_refused() -> None:
    table = "CREATE TABLE t (k VARCHAR PRIMARY KEY, v {})"
    for statement in [
        table.format("INTEGER ARRAY"),
        table.format("INTEGER DEFAULT 5"),
        table.replace("TABLE", "IMMUTABLE TABLE").format("INTEGER"),
        "CREATE VIEW v AS SELECT k FROM t",
    ]:
        with pytest.raises(cf.UnsupportedError):
            cf.open(ROOT, table="small", phoenix=statement)
    with pytest.raises(ValueError, match="position"):
        cf.open(ROOT, table="small", phoenix=table.format("MONEY"))
    with pytest.raises(ValueError, match="phoenix"):
        cf.open(ROOT, table="small", phoenix=table.format("INTEGER"), view="latest")
    with pytest.raises(ValueError, match="one of them"):
        cf.open(ROOT, table="small", phoenix=table.format("INTEGER"), columns={"0:a": "int"})


def test_damaged_store_file_loses_rows_and_adds_no_rows(tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "root")
    whole = opened("NUMBERS").read().to_pylist()
    [store] = [p for p in (tmp_path / "root/data/default/NUMBERS").glob("*/0/*") if len(p.name) == 32]
    data = bytearray(store.read_bytes())
    data[60] ^= 0xFF
    store.write_bytes(data)
    options = {"table": "NUMBERS", "phoenix": statement("NUMBERS")}
    with pytest.raises(cf.CorruptFileError):
        cf.open(tmp_path / "root", **options).read()
    file = cf.open(tmp_path / "root", **options)
    left = file.read(on_error="skip").to_pylist()
    assert file.damage
    assert all(row in whole for row in left)
