"""Partitions of foreign formats, which Spark reads; Spark with Hive on this metastore is the reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hive_estate import ORC, TEXT, HiveEstate, hive_client
from servers import HiveMetastore

from coldframe.cli import main
from coldframe.errors import UnsupportedError
from coldframe.pipeline import InProcess, dry_run, migrate
from coldframe.pipeline.options import Options
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary

_HIVE = "org.apache.hadoop.hive."
SEQUENCE = (
    "org.apache.hadoop.mapred.SequenceFileInputFormat",
    f"{_HIVE}ql.io.HiveSequenceFileOutputFormat",
    TEXT[2],
)
PARQUET = (
    f"{_HIVE}ql.io.parquet.MapredParquetInputFormat",
    f"{_HIVE}ql.io.parquet.MapredParquetOutputFormat",
    f"{_HIVE}ql.io.parquet.serde.ParquetHiveSerDe",
)
AVRO = (
    f"{_HIVE}ql.io.avro.AvroContainerInputFormat",
    f"{_HIVE}ql.io.avro.AvroContainerOutputFormat",
    f"{_HIVE}serde2.avro.AvroSerDe",
)
JSON = (*TEXT[:2], "org.apache.hive.hcatalog.data.JsonSerDe")
COLUMNS = [
    ("id", "bigint"),
    ("what", "string"),
    ("at", "timestamp"),
    ("price", "decimal(10,2)"),
    ("tags", "array<string>"),
    ("more", "map<string,int>"),
    ("code", "varchar(4)"),
]
PIPES = {"field.delim": "|", "escape.delim": "\\", "colelction.delim": ",", "mapkey.delim": ":"}
CONTROL_CHARACTERS = {"field.delim": "\x01", "colelction.delim": "\x02", "mapkey.delim": "\x03"}
"""Hive's defaults; written out, since Spark falls back to the table's settings where a partition has no
setting.
"""
LINES = b"""\
1|plain|2014-01-02 03:04:05.123456|1.50|a,b|x:1,y:2|abcd
2|with \\| and \\\\|1969-12-31 23:59:59|-0.01||x:\\N|abcdefgh
\\N|\\N|\\N|\\N|\\N|\\N|\\N
no number||no time|no price|,|x|
4|short row
5|long row|0001-01-01 00:00:00|99999999.99|a|b:3|z|and|more
6|\xc3\xa9\xe2\x82\xac|2014-03-09 02:30:00|123456789012.5|\\N,b|:7|a
"""


@pytest.fixture
def estate(hive_server: HiveMetastore, hive_spark: Any, tmp_path: Path) -> Iterator[HiveEstate]:
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    with hive_client(hive, hive_server.port) as client:
        made = HiveEstate(client, tmp_path / "wh")
        yield made
        hive_spark.catalog.clearCache()
        made.drop()


def text(estate: HiveEstate, folder: str, content: bytes = LINES) -> None:
    (estate.root / folder).mkdir(parents=True)
    (estate.root / folder / "000000_0").write_bytes(content)


def by_spark(spark: Any, estate: HiveEstate, folder: str, stored_as: str) -> None:
    """Five rows of all columns, written by Spark with Hive's classes."""
    rows = spark.range(5).selectExpr(
        "IF(id = 3, NULL, id) AS id",
        "concat('row ', id) AS what",
        "timestamp'2014-01-01 00:00:00' + make_interval(0, 0, 0, 0, int(id)) AS at",
        "cast(id / 4 AS decimal(10,2)) AS price",
        "IF(id = 2, NULL, array(string(id), 'x')) AS tags",
        "map('k', int(id)) AS more",
        "'abc' AS code",
    )
    rows.createOrReplaceTempView("five")
    # Decimals as Hive writes them, and Hive's classes read them.
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    spark.sql(
        f"INSERT OVERWRITE DIRECTORY 'file:{estate.root}/{folder}' STORED AS {stored_as} SELECT * FROM five"
    )


def mixed(spark: Any, estate: HiveEstate) -> None:
    """`cold.log`: a partition in each of four formats."""
    storage = estate.storage
    estate.table("log", storage(COLUMNS, TEXT, "log", **PIPES), [("dt", "date")])
    text(estate, "log/a")
    estate.partition("log", ["2014-01-01"], storage(COLUMNS, TEXT, "log/a", **PIPES), numRows="7")
    by_spark(spark, estate, "log/b", "SEQUENCEFILE")
    estate.partition(
        "log", ["2014-01-02"], storage(COLUMNS, SEQUENCE, "log/b", **CONTROL_CHARACTERS), numRows="5"
    )
    by_spark(spark, estate, "elsewhere/c", "PARQUET")
    estate.partition("log", ["2014-01-03"], storage(COLUMNS, PARQUET, "elsewhere/c"), numRows="5")
    estate.file("log/d/000000_0", {"id": [7], "what": ["ours"]}, format="orc")
    estate.partition("log", ["2014-01-04"], storage(COLUMNS, ORC, "log/d"), numRows="1")


def rows(frame: Any) -> list[tuple[str | None, ...]]:
    """All rows as text of Spark."""
    shown = frame.selectExpr(*(f"cast(`{name}` AS string)" for name in sorted(frame.columns)))
    return sorted(map(tuple, shown.collect()), key=repr)


def run(spark: Any, server: HiveMetastore, target: Path, what: str = "/cold", **options: Any) -> Report:
    return migrate(spark, f"{server.url}{what}", target, others="spark", **options)


def findings(report: Any) -> list[str]:
    lines = [*report.metastore.findings, *(finding for table in report.tables for finding in table.metastore)]
    return sorted(map(str, lines))


def test_every_row_of_the_table_is_migrated(
    hive_server: HiveMetastore, hive_spark: Any, estate: HiveEstate, tmp_path: Path
) -> None:
    mixed(hive_spark, estate)
    target = tmp_path / "dst"
    report = run(hive_spark, hive_server, target)
    assert report.exit_code == 0, summary(report)
    assert report.verified
    assert report.tables[0].format == (
        "MapredParquetInputFormat by Spark, SequenceFileInputFormat by Spark, TextInputFormat by Spark, orc"
    )
    expected = rows(hive_spark.table("cold.log"))
    assert len(expected) == 18
    assert rows(hive_spark.read.parquet(str(target / "cold/log"))) == expected
    assert (report.metastore.compared, report.metastore.agreed) == (4, 4) if report.metastore else False
    # The rows that Spark shows were compared; the files may hold more.
    assert "3 sources were read by Spark" in summary(report)
    listed = safe_list.read(str(target / "_coldframe/safe-to-delete.txt"))
    assert [line.path for line in listed.lines] == [f"{estate.root}/log/d/000000_0"]
    # Nothing is converted again; the user accepts sources that only Spark has read.
    report = run(hive_spark, hive_server, target, allow_loss=["not-shown-by-spark"])
    assert report.exit_code == 0
    assert all(file.earlier for table in report.tables for file in table.files)
    listed = safe_list.read(str(target / "_coldframe/safe-to-delete.txt"))
    places = [f"{estate.root}/{name}" for name in ("elsewhere/c", "log/a", "log/b", "log/d/000000_0")]
    assert sorted(line.path for line in listed.lines) == places
    # An added file changes the directory: all its rows are read again.
    (estate.root / "log/a/000001_0").write_bytes(b"8|new\n")
    report = run(hive_spark, hive_server, target)
    assert "7 rows by the metastore, 8 migrated from cold/log/dt=2014-01-01" in summary(report)
    hive_spark.catalog.refreshTable("cold.log")
    assert rows(hive_spark.read.parquet(str(target / "cold/log"))) == rows(hive_spark.table("cold.log"))
    assert main(["audit", str(target), "--deep"]) == 0


def test_tables_that_spark_reads_differently_from_hive_are_refused(
    hive_server: HiveMetastore, hive_spark: Any, estate: HiveEstate, tmp_path: Path
) -> None:
    columns, storage = [("a", "int"), ("b", "string")], estate.storage
    for name in ("notes", "header", "json", "nested", "disguised"):
        text(estate, name, b"1\x01x\n2\x01\\N\n")
    estate.table("notes", storage(columns, TEXT, "notes"))
    estate.table("header", storage(columns, TEXT, "header"), **{"skip.header.line.count": "1"})
    estate.table("json", storage(columns, JSON, "json"))
    estate.table("nested", storage(columns, TEXT, "nested"))
    text(estate, "nested/below", b"3\x01y\n")
    estate.table("disguised", storage(columns, TEXT, "disguised"))
    estate.file("disguised/000001_0", {"a": [1]}, format="orc")
    estate.table("lines", storage(columns, ("x.LinesInputFormat", "x.Out", "x.SerDe"), "lines"))
    estate.table("unions", storage([("u", "uniontype<int,string>")], TEXT, "unions"))
    hive_spark.sql("CREATE TABLE cold.records (a int, b array<string>) STORED AS AVRO")
    hive_spark.sql("INSERT INTO cold.records VALUES (1, array('x')), (NULL, NULL)")
    target = tmp_path / "dst"
    report = run(hive_spark, hive_server, target)
    assert report.exit_code == 1
    where = "left out: "
    assert findings(report) == [
        f"cold.header: {where}Spark ignores its property skip.header.line.count",
        f"cold.lines: {where}files of LinesInputFormat are not read, not even by Spark",
        f"cold.unions: {where}Spark has no type for unions",
    ]
    failed = {file.source: str(file.error) for file in report.failures}
    assert sorted(failed) == [f"cold/{name}/directory" for name in ("disguised", "json", "nested")]
    assert "000001_0 is orc by its bytes" in failed["cold/disguised/directory"]
    assert "org.apache.hive.hcatalog.data.JsonSerDe" in failed["cold/json/directory"]
    assert "below/000000_0 lies in a subdirectory" in failed["cold/nested/directory"]
    for name in ("notes", "records"):
        expected = rows(hive_spark.table(f"cold.{name}"))
        assert len(expected) == 2
        assert rows(hive_spark.read.parquet(str(target / "cold" / name))) == expected
    # Files that were not read are not listed as safe to delete.
    assert not safe_list.read(str(target / "_coldframe/safe-to-delete.txt")).lines


def test_foreign_formats_need_spark_and_a_metastore(
    hive_server: HiveMetastore, estate: HiveEstate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text(estate, "notes")
    estate.table("notes", estate.storage(COLUMNS, TEXT, "notes", **PIPES))
    with pytest.raises(UnsupportedError, match="--others spark does not go with --master in-process"):
        run(InProcess(), hive_server, tmp_path / "dst")
    with pytest.raises(ValueError, match="others are for a metastore"):
        dry_run(estate.root, tmp_path / "dst", Options(others="spark"))
    options = ["--others", "spark", "--master", "in-process"]
    assert main(["migrate", f"{hive_server.url}/cold", str(tmp_path / "dst"), *options]) == 2
    assert "does not go with --master in-process" in capsys.readouterr().err
    preview = dry_run(f"{hive_server.url}/cold", tmp_path / "dst", Options(others="spark"))
    assert preview.exit_code == 0
