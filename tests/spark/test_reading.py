"""A common contract for both sources: the connector for the JVM, and the Python source. The sources differ in
the connector's push-down (test_connector.py), and in their error classes.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_data import (
    DATA,
    HAS_PYTHON_SOURCE,
    NUMBERS,
    WAREHOUSE,
    comparable,
    damaged,
    held,
    rows_of,
    survivors,
)

import coldframe as cf
import coldframe.spark
from coldframe.spark.connector import is_loaded
from coldframe.spark.types import to_spark_schema

ORC = Path(__file__).parents[1] / "data/orc/files/types_none.orc"


@pytest.fixture(params=["coldframe", "coldframe_python"])
def source(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """The name of a source: the connector's, and Python's."""
    name: str = request.param
    if name == "coldframe" and not is_loaded(spark):
        pytest.skip("no jar of the connector here (make jar)")
    if name == "coldframe_python" and not HAS_PYTHON_SOURCE:
        pytest.skip("no Python source in this PySpark")
    yield name
    if is_loaded(spark):
        assert held(spark) == [0, 0]


@pytest.fixture
def by(spark: SparkSession, source: str) -> Source:
    """Reads with the source of the fixture."""
    return Source(spark, source)


class Source:
    """Reads with either source."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.name = name

    def load(self, path: object, /, *, user: str | None = None, **options: str) -> DataFrame:
        reader = self.spark.read.format(self.name).options(**options)
        if user is not None:
            reader = reader.schema(user)
        return reader.load([str(item) for item in path] if isinstance(path, list) else str(path))


def read_twice(spark: SparkSession, name: str) -> None:
    sql = f"select a from {name} where a = 5 union all select a from {name} where a = 6"
    assert sorted(spark.sql(sql).collect()) == [(5,), (6,)]
    sql = f"select count(*) from {name} where a in (select a + 1 from {name} where a < 10)"
    assert spark.sql(sql).collect() == [(10,)]
    sql = (
        f"with few as (select * from {name} where a < 3) "
        f"select l.s, r.h from few l join {name} r on l.a + 1 = r.a order by l.a"
    )
    assert spark.sql(sql).collect() == [("row 0", 0.5), ("row 1", 1.0), ("row 2", 1.5)]


class TestOneFrameTwice:
    """Known pitfalls of the filter hook of Python sources, which ours does not implement."""

    def test_a_frame_has_its_rows_under_two_filters(self, by: Source, numbers: Path) -> None:
        frame = by.load(numbers, **NUMBERS)
        assert sorted(frame.where("a = 1").union(frame.where("a = 2")).select("a").collect()) == [(1,), (2,)]
        assert frame.where("a < 10").count() == 10
        assert frame.count() == 3000
        assert [row.a for row in frame.where("a = 1").collect()] == [1]
        assert frame.count() == 3000

    def test_a_frame_has_its_rows_as_a_view_and_a_table(self, by: Source, numbers: Path) -> None:
        by.load(numbers, **NUMBERS).createOrReplaceTempView("numbers_view")
        options = f"path '{numbers}', schema '{NUMBERS['schema']}', serde '{NUMBERS['serde']}'"
        by.spark.sql(f"create table numbers_table using {by.name} options ({options})")
        try:
            by.spark.sql(f"create temp view numbers_using using {by.name} options ({options})")
            for name in ("numbers_view", "numbers_using"):
                read_twice(by.spark, name)
            if by.name == "coldframe":
                read_twice(by.spark, "numbers_table")
            else:
                with pytest.raises(Exception, match="Spark does not pass the table's options to it"):
                    by.spark.table("numbers_table").count()
        finally:
            by.spark.sql("drop table numbers_table")
            by.spark.catalog.dropTempView("numbers_using")

    def test_a_frame_has_its_rows_joined_with_itself_and_cached(self, by: Source, numbers: Path) -> None:
        frame = by.load(numbers, **NUMBERS)
        joined = frame.alias("l").join(frame.alias("r"), F.expr("l.a = r.a + 1")).where("r.a < 5")
        assert joined.count() == 5
        cached = frame.where("a >= 100").cache()
        try:
            assert (cached.count(), frame.count()) == (2900, 3000)
            assert cached.where("a = 101").select("s").collect() == [("row 101",)]
            assert cached.agg(F.max("s"), F.min("s")).collect() == [("row 999", "row 100")]
        finally:
            cached.unpersist()


def test_every_kind_of_filter_keeps_the_right_rows(by: Source, tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    rows = pa.table(
        {
            "i": pa.array([1, 2, None, 4, 5], pa.int32()),
            "x": pa.array([1.0, nan, None, -0.0, inf]),
            "s": ["a", "B%_", None, "äö", ""],
            "b": [b"\x00", b"\xff", None, b"", b"ab"],
            "t": pa.array([0, -(10**9), None, 10**15, 1], pa.timestamp("us")),
            "d": pa.array([0, -1, None, 19000, 1], pa.date32()),
            "m": pa.array([1, -1, None, 12345, 0], pa.decimal128(9, 2)),
            "o": [True, False, None, True, False],
        }
    )
    cf.write(rows, tmp_path / "t.orc", format="orc")
    frame = by.load(tmp_path / "t.orc")
    conditions = (
        "i > 1", "i <> 2", "i in (1, 4, null)", "i not in (1, 4)", "i <=> null", "not (i <=> 4)",
        "x > 0.5", "x >= 0.0", "x <> 1.0", "x < 2.0", "x = 0.0", "x = double('nan')", "x in (1.0, 0.0)",
        "s like 'B\\%%'", "s like '%ö'", "s like '%\\_%'", "s > 'B'", "s = ''", "s is null",
        "b > X'00'", "b = X''", "t < timestamp_ntz'1970-01-01 00:00:00'", "d >= date'1970-01-01'",
        "m = 123.45", "m < 0", "m > 0.005", "o", "not o", "o is null", "i = 1 or s = 'B%_'",
        "not (i = 1 or x > 2)", "i is not null and (o or d < date'1970-01-01')",
        "i = 2.5", "upper(s) = 'A'",
    )  # fmt: skip
    everything = frame.collect()
    # All conditions at once, over rows that do not come from a file.
    plain = by.spark.createDataFrame(everything, frame.schema).selectExpr(*conditions).collect()
    # The Python source gets no filter: Spark evaluates it.
    step = 1 if by.name == "coldframe" else 8
    for at, condition in list(enumerate(conditions))[::step]:
        expected = sorted(str(row) for row, matches in zip(everything, plain, strict=True) if matches[at])
        assert sorted(map(str, frame.where(condition).collect())) == expected, condition
        assert frame.where(condition).count() == len(expected), condition


def test_partitions(by: Source) -> None:
    schema = "id bigint, customer string, quantity int, price decimal(10,2), discount double, "
    schema += "sold_at timestamp, paid boolean, channel varchar(12)"
    frame = by.load(WAREHOUSE / "sales", schema=schema, serde="binary")
    expected = json.loads((WAREHOUSE / "EXPECTED.json").read_text())["sales"]
    assert dict(frame.dtypes)["dt"] == "date"
    assert dict(frame.dtypes)["sold_at"] == "timestamp_ntz"
    sums = frame.agg(F.count("*"), F.sum("id"), F.sum("price"), F.count("region")).collect()[0]
    columns = expected["columns"]
    assert (sums[0], sums[1], str(sums[2])) == (
        expected["rows"],
        columns["id"]["sum"],
        columns["price"]["sum"],
    )
    assert sums[3] == expected["rows"] - columns["region"]["nulls"]
    day = frame.where("dt = date'2014-01-02'").select("region")
    assert {row.region for row in day.collect()} == {"eu", "us", "asia/pacific"}
    files = cf.scan(WAREHOUSE / "sales", schema=schema, serde="binary")
    assert day.count() == files.count_rows(filter=[("dt", "==", datetime.date(2014, 1, 2))])


def test_every_type(spark: SparkSession, by: Source) -> None:
    """Types and values of all files, also nested, equal the types and values of `cf.open`."""
    checked, seen = 0, set[str]()
    files: list[tuple[Path, dict[str, Any]]] = [(ORC, {})]
    for entry in json.loads((DATA / "files" / "MANIFEST.json").read_text()):
        if isinstance(entry["file"], str) and ("_types" in entry["file"] or "nested" in entry["file"]):
            files.append((DATA / "files" / entry["file"], entry.get("open", {})))
    files.append((Path(__file__).parents[1] / "data/hfile/files/cells_none.hfile", {}))
    files.append((Path(__file__).parents[1] / "data/redfile/files/documents_f.redfile", {}))
    for path, options in files:
        given = {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()
        }
        frame = by.load(path, **given)
        unit = {"timestamp_unit": "us"} if path.suffix in (".orc", ".rc") else {}
        if path.suffix == ".orc" and by.name == "coldframe":
            # As Spark's own reader returns them: instants in the zone of its JVM.
            unit["timestamps_in"] = spark.sparkContext._jvm.java.util.TimeZone.getDefault().getID()
        rows, file = comparable(frame.collect()), cf.open(path, **options, **unit)
        assert rows == rows_of(file), path
        assert frame.schema == to_spark_schema(file.schema), path
        # Column by column, as Spark requests them. Each query of the Python source starts a process, so it
        # reads only one column of each type.
        names = {field.dataType.simpleString(): field.name for field in frame.schema}
        new = [name for kind, name in names.items() if kind not in seen]
        seen |= names.keys()
        for name in frame.columns if by.name == "coldframe" else new:
            assert comparable(frame.select(f"`{name}`").collect()) == rows_of(file, [name]), (path, name)
        checked += 1
    assert checked >= 8


def test_timestamps_of_all_years_are_read(by: Source, tmp_path: Path) -> None:
    days = [
        datetime.datetime(1, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(9999, 12, 31),
    ]
    rows = pa.table({"t": pa.array(days, pa.timestamp("us"))})
    cf.write(rows, tmp_path / "t.rc", format="rcfile", serde="text")
    frame = by.load(tmp_path / "t.rc", schema="t timestamp", serde="text")
    assert [row.t for row in frame.collect()] == days


def test_nested_fields(by: Source, tmp_path: Path) -> None:
    items = [{"r": {"x": i, "y": f"n{i}"}, "l": [{"k": i, "v": None}], "m": {"a": i}} for i in range(100)]
    inner = pa.struct([("k", pa.int32()), ("v", pa.string())])
    schema = pa.schema(
        [
            ("r", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("l", pa.list_(inner)),
            ("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    cf.write(
        pa.Table.from_pylist([{**i, "m": list(i["m"].items())} for i in items], schema),
        tmp_path / "n.orc",
        format="orc",
    )
    frame = by.load(tmp_path / "n.orc")
    assert frame.select("r.y").where("r.x = 7").collect() == [("n7",)]
    assert frame.where("r.x between 3 and 4").selectExpr("l[0].k", "m['a']").collect() == [(3, 3), (4, 4)]
    assert frame.selectExpr("sum(r.x)", "max(r.y)").collect() == [(4950, "n99")]


def test_the_users_schema_gives_types_and_columns(by: Source, numbers: Path) -> None:
    pruned = by.load(numbers, user="H double, a bigint", **NUMBERS)
    assert pruned.where("a = 7").collect() == [(3.5, 7)]
    # Without the option schema, an RCFile has the types of the user's schema.
    typed = by.load(numbers, user=NUMBERS["schema"], serde="binary")
    assert typed.where("a = 7").collect() == [(7, "row 7", 3.5)]
    untyped = by.load(numbers)
    assert untyped.columns == ["_c0", "_c1", "_c2"]
    assert untyped.limit(1).collect()[0]._c1 == bytearray(b"row 0")
    narrow = by.load(numbers, user="a tinyint", **NUMBERS)
    with pytest.raises(Exception, match="column a: expected Int8, found Int64"):
        narrow.collect()
    missing = r"SchemaError: column 'nowhere' not found; the files have \['a', 's', 'h'\]"
    with pytest.raises(Exception, match=missing):
        by.load(numbers, user="nowhere int", **NUMBERS).count()


def test_the_options_columns_and_filter_select(by: Source, numbers: Path) -> None:
    condition = "s like 'row 29%' and a >= 2950"
    frame = by.load(numbers, columns='["h", "a"]', filter=condition, split_bytes="8k", **NUMBERS)
    assert frame.columns == ["h", "a"]
    assert frame.rdd.getNumPartitions() > 1
    assert sorted(row.a for row in frame.collect()) == list(range(2950, 3000))
    assert frame.where("a < 2955").count() == 5
    assert by.load([numbers / "0.rc", numbers / "2.rc"], columns="a", **NUMBERS).count() == 2000
    assert by.load(numbers, filter="a < 0", **NUMBERS).collect() == []
    assert by.load(f"{numbers}/[01].rc", **NUMBERS).count() == 2000


def test_damage_fails_the_query_or_is_listed(by: Source, tmp_path: Path) -> None:
    for entry in damaged():
        path = DATA / "damaged" / entry["file"]
        with pytest.raises(Exception, match="CorruptFileError") as caught:
            by.load(path, **entry["open"]).collect()
        assert entry["file"] in str(caught.value)
        table = tmp_path / entry["file"]
        frame = by.load(path, mode="DROPMALFORMED", damage=str(table), **entry["open"])
        assert len(frame.collect()) == survivors(entry)
        first = by.spark.read.json(str(table)).collect()
        assert len(frame.collect()) == survivors(entry)
        assert by.spark.read.json(str(table)).collect() == first
        assert first
        assert all(row.path.endswith(entry["file"]) and row.reason and row.structure for row in first)
        file = cf.open(path, **entry["open"])
        file.read(on_error="skip")
        names = ["offset", "length", "rows_lost", "structure", "reason"]
        expected = sorted(tuple(damage[name] for name in names) for damage in file.damage)
        assert sorted(tuple(row[name] for name in names) for row in first) == expected, path


def test_files_that_cannot_be_opened_are_listed_too(by: Source, numbers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.rc").write_bytes((numbers / "0.rc").read_bytes())
    (folder / "b.rc").write_bytes((numbers / "1.rc").read_bytes()[:20])
    with pytest.raises(Exception, match=r"b\.rc"):
        by.load(folder, **NUMBERS).count()
    assert by.load(folder, mode="DROPMALFORMED", damage=str(tmp_path / "d"), **NUMBERS).count() == 1000
    (lost,) = by.spark.read.json(str(tmp_path / "d")).collect()
    assert lost.path.endswith("b.rc")
    assert lost.length == 20


def test_wrong_options_are_refused(by: Source, numbers: Path) -> None:
    for options, message in (
        ({"mode": "PERMISSIVE"}, "FAILFAST or DROPMALFORMED"),
        ({"damage": "/nowhere"}, "DROPMALFORMED"),
        ({"split_bytes": "many"}, "split_bytes"),
        ({"columns": "zzz"}, "zzz"),
        ({"nonsense": "1"}, "nonsense"),
    ):
        with pytest.raises(Exception, match=message):
            by.load(numbers, **{**NUMBERS, **options}).count()
    with pytest.raises(Exception, match=r"NotFoundError: .*no such file|PATH_NOT_FOUND"):
        by.load("/nowhere/at/all").count()


def test_a_table_of_kudu_is_read(by: Source) -> None:
    blocks = Path(__file__).parents[1] / "data/kudu/files/file_blocks"
    table = cf.open(blocks, table="numbers").read()
    frame = by.load(blocks, table="numbers")
    assert (frame.count(), frame.columns) == (table.num_rows, table.column_names)
    assert len(frame.collect()) == table.num_rows


def test_a_root_of_hbase_is_read(by: Source) -> None:
    root = Path(__file__).parents[1] / "data/hbase/files/orders"
    table = cf.open(root, table="shop:orders").read()
    frame = by.load(root, table="shop:orders", split_bytes="1")
    assert (frame.count(), frame.columns) == (table.num_rows, table.column_names)
    rows = sorted(zip(*(table[name].to_pylist() for name in ("row", "timestamp")), strict=True))
    assert sorted((bytes(row.row), row.timestamp) for row in frame.collect()) == rows
    some = [row for row in rows if row[0] < b"o001"]
    assert frame.where("row < X'6f303031'").count() == len(some) > 0


def test_sorting_and_grouping_release_batches(by: Source, numbers: Path) -> None:
    frame = by.load(numbers, **NUMBERS, batch_rows="100")
    assert frame.agg(F.max("s"), F.min("s"), F.first("s"), F.last("s")).count() == 1
    assert frame.agg(F.max("s"), F.min("s")).collect() == [("row 999", "row 0")]
    assert frame.orderBy(F.desc("s")).limit(2).select("s").collect() == [("row 999",), ("row 998",)]
    assert (
        frame.groupBy(F.substring("s", 1, 5).alias("p")).count().where("p = 'row 1'").collect()[0][1] == 1111
    )
    assert frame.agg(F.collect_list("s")).collect()[0][0][:2] == ["row 0", "row 1"]
    assert frame.repartition(3).agg(F.sum("a"), F.countDistinct("s")).collect() == [(4498500, 3000)]


def options_of(**given: Any) -> dict[str, str]:
    return {name: coldframe.spark.option_text(value) for name, value in given.items()}


def test_a_schema_of_arrow_is_an_option(by: Source, numbers: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("s", pa.string()), ("h", pa.float64())])
    frame = by.load(numbers, **options_of(schema=schema, serde="binary"))
    assert frame.agg(F.sum("a")).collect() == [(4498500,)]
