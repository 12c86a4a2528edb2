"""The connector for the JVM writes; Spark's own ORC reader and writer are the reference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_data import HAS_PYTHON_SOURCE
from test_like_sparks_reader import settings

pytestmark = pytest.mark.usefixtures("connector")

TYPED = """cast(id as tinyint) b, cast(id * 3 as smallint) h, cast(id as int) i, id l, id / 4 d,
           cast(id as float) f, concat('n', id) s, cast(concat('b', id) as binary) y, id % 2 = 0 t,
           date_add(date'1969-12-30', cast(id as int)) day,
           timestamp'1960-01-01 00:00:00.000001' + make_interval(0, 0, 0, 0, cast(id as int)) at,
           cast(id * -1.5 as decimal(9,2)) small, cast(id * -1000000 as decimal(38,3)) wide,
           array(id, null) a, map(concat('k', id), array(id)) m,
           named_struct('x', id, 'y', if(id = 2, null, named_struct('z', 'deep'))) r"""


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A database whose tables lie below the path."""
    if spark.version < "4":
        pytest.skip("Spark 3 has no SQL writes for sources of version 2 in its own catalog")
    spark.sql(f"create database writes location '{tmp_path.as_uri()}/db'")
    spark.sql("use writes")
    yield tmp_path
    spark.sql("use default")
    spark.sql("drop database writes cascade")


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def read(spark: SparkSession, by: str, path: Path) -> list[str]:
    return rows(spark.read.format(by).load(str(path)))


def shown(path: Path) -> list[str]:
    """The files that a reader sees, as folders and endings."""
    files = (each.relative_to(path) for each in path.rglob("*") if each.is_file())
    seen = [each for each in files if not any(part[0] in "._" for part in each.parts)]
    return sorted(str(each.parent / f"*{each.suffix}") for each in seen)


def test_values_of_all_types(spark: SparkSession, tmp_path: Path) -> None:
    typed = spark.sql(f"select {TYPED} from range(5)")
    nothing = ", ".join(f"cast(null as {field.dataType.simpleString()})" for field in typed.schema)
    frame = typed.union(spark.sql(f"select {nothing}"))
    frame.coalesce(1).write.format("coldframe").option("codec", "zstd").save(str(tmp_path / "t"))
    expected = rows(frame)
    assert read(spark, "coldframe", tmp_path / "t") == expected
    if spark.version >= "4":  # before, Spark's reader has no timestamp with local time zone
        assert read(spark, "orc", tmp_path / "t") == expected
    assert shown(tmp_path / "t") == ["*.orc"]


def test_wall_clocks_are_noted_as_spark_notes_them(spark: SparkSession, tmp_path: Path) -> None:
    if spark.version < "3.4":
        pytest.skip("no timestamp without time zone before Spark 3.4")
    frame = spark.sql(
        "select timestamp_ntz'1969-12-31 23:59:59.5' n, array(timestamp_ntz'0001-02-03 04:05:06') l"
    )
    frame.write.format("coldframe").save(str(tmp_path / "t"))
    for by in ("coldframe", "orc"):
        assert read(spark, by, tmp_path / "t") == rows(frame)
        assert spark.read.format(by).load(str(tmp_path / "t")).dtypes == frame.dtypes


def test_save_modes_and_partitions_are_as_sparks(spark: SparkSession, tmp_path: Path) -> None:
    first = spark.range(6).selectExpr("id v", "if(id = 5, null, id % 2) p", "concat('a b/', id % 2) q")
    second = spark.range(10, 12).selectExpr("id v", "0L p", "'z' q")

    def save(by: str, frame: DataFrame, mode: str | None, **options: str) -> str:
        writer = frame.coalesce(1).write.format(by).options(**options).partitionBy("p", "q")
        try:
            (writer if mode is None else writer.mode(mode)).save(str(tmp_path / by))
        except Exception as error:
            return str(error).split("]")[0]
        return "saved"

    dynamic = {"partitionOverwriteMode": "dynamic"}
    steps: list[tuple[DataFrame, str | None, dict[str, str]]] = [
        (first, None, {}),
        (second, None, {}),
        (second, "ignore", {}),
        (second, "append", {}),
        (second.withColumnRenamed("q", "q"), "overwrite", dynamic),
        (first, "append", {}),
        (second, "overwrite", {}),
        (second.where("v < 0"), "overwrite", {}),
    ]
    for frame, mode, options in steps:
        outcomes = [save(by, frame, mode, **options) for by in ("orc", "coldframe")]
        assert outcomes[0] == outcomes[1]
        if shown(tmp_path / "orc"):
            assert read(spark, "orc", tmp_path / "coldframe") == read(spark, "orc", tmp_path / "orc")
            assert read(spark, "coldframe", tmp_path / "coldframe") == read(spark, "orc", tmp_path / "orc")
        assert {each.rsplit("/", 1)[0] for each in shown(tmp_path / "coldframe")} == {
            each.rsplit("/", 1)[0] for each in shown(tmp_path / "orc")
        }


def test_a_failed_job_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(3).write.format("coldframe").save(str(path))
    before = read(spark, "coldframe", path)
    broken = spark.range(0, 9, 1, 3).selectExpr("if(id = 8, raise_error('a task that fails'), id) id")
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="a task that fails"):
            broken.write.format("coldframe").mode(mode).save(str(path))
        assert read(spark, "coldframe", path) == before


def test_rows_that_are_read_may_be_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("coldframe").save(path)
    spark.read.format("coldframe").load(path).selectExpr("id + 1 id").write.format("coldframe").mode(
        "overwrite"
    ).save(path)
    assert read(spark, "coldframe", tmp_path / "t") == ["Row(id=1)", "Row(id=2)", "Row(id=3)"]


BOTH = ["coldframe", *(["coldframe_orc"] if HAS_PYTHON_SOURCE else [])]


@pytest.mark.parametrize("by", BOTH)
@pytest.mark.parametrize("killed", range(4))
def test_an_overwrite_that_was_killed_is_completed(
    spark: SparkSession, tmp_path: Path, by: str, killed: int
) -> None:
    path, staged = tmp_path / "t", tmp_path / "t/_coldframe-1"
    spark.range(3).coalesce(1).write.format("coldframe").save(str(path))
    [old] = [each.name for each in path.glob("part-*")]
    # As a kill leaves it: after the record, after deleting, in the middle of moving, after moving.
    spark.range(10, 14, 1, 2).write.format("coldframe").save(str(staged))
    record = {"staged": staged.name, "replaced": [old], "end": True}
    (path / "_coldframe-written.json").write_text(json.dumps(record, separators=(",", ":")))
    if killed > 0:
        (path / old).unlink()
    for file in sorted(staged.glob("part-*"))[: max(killed - 1, 0)]:
        file.rename(path / file.name)
    with pytest.raises(Exception, match="write there again"):
        spark.read.format(by).load(str(path)).collect()
    spark.range(20, 21).coalesce(1).write.format(by).mode("append").save(str(path))
    assert read(spark, by, path) == [f"Row(id={at})" for at in (10, 11, 12, 13, 20)]
    assert not staged.exists()
    assert not (path / "_coldframe-written.json").exists()


@pytest.mark.parametrize("by", BOTH)
@pytest.mark.parametrize(("staged", "replaced"), [("_coldframe-1", "../kept"), ("../_coldframe-1", "x")])
def test_a_record_deletes_nothing_outside_its_folder(
    spark: SparkSession, tmp_path: Path, by: str, staged: str, replaced: str
) -> None:
    path = tmp_path / "t"
    spark.range(3).write.format("coldframe").save(str(path))
    (tmp_path / "kept").write_bytes(b"x")
    (tmp_path / "_coldframe-1").mkdir()
    record = {"staged": staged, "replaced": [replaced], "end": True}
    (path / "_coldframe-written.json").write_text(json.dumps(record, separators=(",", ":")))
    with pytest.raises(Exception, match=r"below the folder|not the record"):
        spark.range(1).write.format(by).mode("append").save(str(path))
    assert (tmp_path / "kept").exists()
    assert (tmp_path / "_coldframe-1").exists()


@pytest.mark.parametrize("by", BOTH)
def test_an_overwrite_leaves_only_the_new_files(spark: SparkSession, tmp_path: Path, by: str) -> None:
    path = tmp_path / "t"
    for low in (0, 10):
        writer = spark.range(low, low + 3).coalesce(1).write.format(by).mode("overwrite")
        writer.save(str(path))
        assert read(spark, "orc", path) == [f"Row(id={at})" for at in range(low, low + 3)]
    assert [each.name for each in path.iterdir() if each.name.startswith("_coldframe")] == []
    assert (path / "_SUCCESS").exists() == (by == "coldframe")


def test_the_format_is_that_of_the_files_there(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3).selectExpr("id", "concat('n', id) name")
    writer = frame.write.format("coldframe").option("as", "rcfile").option("serde", "binary")
    writer.save(str(tmp_path / "t"))
    assert shown(tmp_path / "t") == ["*.rc"] * len(shown(tmp_path / "t"))
    back = spark.read.format("coldframe").option("serde", "binary").schema("id bigint, name string")
    assert rows(back.load(str(tmp_path / "t"))) == rows(frame)
    with pytest.raises(Exception, match="option as is missing"):
        frame.write.format("coldframe").mode("append").save(str(tmp_path / "t"))
    with pytest.raises(Exception, match="codek"):
        frame.write.format("coldframe").option("codek", "zstd").save(str(tmp_path / "u"))


def test_plain_files_never_get_into_a_table_with_a_log(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("p=1/delta_0000001_0000001/bucket_00000", ".hoodie/x", "metadata/v1.metadata.json"):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        (path / name).parent.mkdir(parents=True)
        (path / name).write_bytes(b"x")
        for mode in ("append", "overwrite"):
            with pytest.raises(Exception, match=r"UnsupportedError.*plain files"):
                spark.range(1).write.format("coldframe").mode(mode).save(str(path))


STATEMENTS = (
    "create table t (v bigint, s string, p int) using {by} {options} partitioned by (p)",
    "insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', null)",
    "insert into t partition (p = 2) select 4, 'd'",
    "insert into t (p, v) values (1, 5)",
    "insert overwrite t partition (p = 2) values (6, 'f')",
    "insert overwrite t partition (p = 1) select 7, 'g' where false",
    "create table u using {by} {options} partitioned by (s) as select id v, concat('x', id) s from range(3)",
    "insert overwrite u select 9, 'x1'",
    "create table w using {by} {options} location '{path}/{by}-w' as select 1 a",
    "insert into w select 2",
    "create table empty (a int, b string) using {by} {options}",
    "insert into empty select 1, 'x' where false",
)


def answers(spark: SparkSession, by: str, options: str, path: Path) -> list[Any]:
    entries: list[Any] = []
    for statement in STATEMENTS:
        spark.sql(statement.format(by=by, options=options, path=path.as_uri()))
        table = next(
            word
            for word in statement.replace("into", "table")
            .replace("overwrite", "table")
            .split("table ")[1]
            .split()
        )
        entries.append([statement.split("{")[0], rows(spark.table(table)), spark.table(table).count()])
    for table in ("t", "u", "w", "empty"):
        spark.sql(f"drop table {table}")
    return entries


@pytest.mark.parametrize("options", ["", "options (as 'orc', codec 'zstd')"])
def test_sql_writes_are_as_sparks(spark: SparkSession, tables: Path, options: str) -> None:
    assert answers(spark, "coldframe", options, tables) == answers(spark, "orc", "", tables)


def test_sql_writes_rcfiles(spark: SparkSession, tables: Path) -> None:
    spark.sql(
        "create table r (i int, s string, p string) using coldframe "
        "options (as 'rcfile', serde 'binary') partitioned by (p)"
    )
    spark.sql("insert into r values (1, 'a', 'x'), (2, null, 'y')")
    spark.sql("insert overwrite r partition (p = 'x') values (3, 'c')")
    assert rows(spark.table("r")) == ["Row(i=2, s=None, p='y')", "Row(i=3, s='c', p='x')"]
    assert shown(tables / "db/r") == ["p=x/*.rc", "p=y/*.rc"]


@pytest.mark.parametrize(
    "statement",
    [
        "delete from t where v = 1",
        "update t set v = 2",
        "merge into t using (select 1 v) s on t.v = s.v when matched then delete",
    ],
)
def test_changes_of_rows_are_refused(spark: SparkSession, tables: Path, statement: str) -> None:
    spark.sql("create table t using coldframe as select 1L v")
    with pytest.raises(Exception, match=r"(?i)does not support|unsupported"):
        spark.sql(statement)
    assert rows(spark.table("t")) == ["Row(v=1)"]


def test_single_partitions_are_overwritten_by_sql(spark: SparkSession, tables: Path) -> None:
    spark.sql("create table t (v int, p int) using coldframe partitioned by (p)")
    spark.sql("insert into t values (1, 1), (2, 2)")
    with settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        with pytest.raises(Exception, match="dynamic overwrite"):
            spark.sql("insert overwrite t values (3, 1)")
        spark.createDataFrame([(3, 1)], "v int, p int").write.format("coldframe").partitionBy("p").mode(
            "overwrite"
        ).save(str(tables / "db/t"))
    assert rows(spark.table("t")) == ["Row(v=2, p=2)", "Row(v=3, p=1)"]


def test_a_table_is_shown_as_it_was_created(spark: SparkSession, tables: Path) -> None:
    """A statement of SHOW CREATE TABLE makes the same table, which has no row before the first write."""
    spark.sql(
        "create table t (v int comment 'x', p int) using coldframe options (as 'orc', codec 'zlib') "
        f"partitioned by (p) location '{tables}/later' tblproperties ('Key' = 'value')"
    )
    [shown] = spark.sql("show create table t").first() or ()
    for part in (
        "USING coldframe",
        "'codec' = 'zlib'",
        "PARTITIONED BY (p)",
        f"{tables}/later",
        "'Key' = 'value'",
    ):
        assert part in shown
    assert spark.table("t").count() == 0
    described = {row[0]: row[1] for row in spark.sql("describe extended t").collect()}
    assert described["Provider"] == "coldframe"
    spark.sql("drop table t")
    spark.sql(shown)
    assert spark.sql("show create table t").first() == (shown,)
    spark.sql("insert into t values (1, 2)")
    assert rows(spark.table("t")) == ["Row(v=1, p=2)"]
    spark.sql(f"create table known using coldframe tblproperties ('Key' = 'value') location '{tables}/later'")
    assert rows(spark.table("known")) == ["Row(v=1, p=2)"]
