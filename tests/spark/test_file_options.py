"""The options that select and skip files, beside Spark's own ORC reader in one session."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_data import HAS_PYTHON_SOURCE
from test_like_sparks_reader import put, settings

pytestmark = pytest.mark.usefixtures("connector")

SECOND = 1_700_000_000
TABLES = ("files", "parts", "tree")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of which each has its own time."""
    root = tmp_path_factory.mktemp("options")
    names = ("files/a.orc", "files/b.orc", "files/c1.old", "parts/p=1/a.orc", "parts/p=2/b.orc")
    for at, name in enumerate((*names, "tree/a.orc", "tree/sub/b.orc", "tree/sub/deep/c.orc")):
        put({"v": [at, None]}, root / name)
        os.utime(root / name, ns=((SECOND + at) * 10**9, (SECOND + at) * 10**9 + 999_999))
    return root


def outcome(read: Callable[[], list[str]]) -> list[str] | str:
    try:
        return read()
    except Exception:
        return "an error"


def rows(
    spark: SparkSession, by: str, path: str | list[str], options: dict[str, str], schema: str = ""
) -> list[str] | str:
    def read() -> list[str]:
        reader = spark.read.format(by).options(**options)
        frame = (reader.schema(schema) if schema else reader).load(path)
        return [str(sorted(frame.columns)), *sorted(map(repr, frame.select(sorted(frame.columns)).collect()))]

    return outcome(read)


def at(second: int) -> str:
    return f"2023-11-14T22:13:{20 + second:02d}"


SELECTIONS: list[dict[str, str]] = [
    {"pathGlobFilter": "*.orc"},
    {"pathGlobFilter": "{a,c?}.*"},
    {"pathGlobFilter": "[^a]*"},
    {"pathGlobFilter": "nothing*"},
    {"pathGlobFilter": "a["},
    {"pathGlobFilter": "a{b"},
    {"recursiveFileLookup": "true"},
    {"recursiveFileLookup": "false"},
    {"recursiveFileLookup": "maybe"},
    {"recursiveFileLookup": "true", "pathGlobFilter": "*b.orc"},
    {"modifiedAfter": at(0)},
    {"modifiedAfter": at(3), "modifiedBefore": at(6)},
    {"modifiedBefore": f"{at(1)}Z"},
    {"modifiedBefore": "2023-11-14T23:13:21+01:00"},
    {"modifiedAfter": "2100-01-01"},
    {"modifiedAfter": "yesterday or so"},
]


@pytest.mark.parametrize("options", SELECTIONS, ids=str)
def test_files_are_selected_as_by_sparks_reader(
    spark: SparkSession, tables: Path, options: dict[str, str]
) -> None:
    names = TABLES if "recursiveFileLookup" in options else TABLES[:2]
    for name in names:
        columns = (
            "v bigint, p int"
            if name == "parts" and options.get("recursiveFileLookup") != "true"
            else "v bigint"
        )
        for schema in ("", columns):
            # Partitions above a pattern's end are columns here, not in Spark.
            for path in (f"{tables}/{name}", f"{tables}/{name}/*")[: 1 if name == "parts" else 2]:
                answers = [rows(spark, by, path, options, schema) for by in ("orc", "coldframe")]
                assert answers[0] == answers[1], (name, schema, path)
    file = f"{tables}/files/a.orc"
    assert rows(spark, "orc", file, options, "v int") == rows(spark, "coldframe", file, options, "v int")


def test_the_sessions_zone_counts(spark: SparkSession, tables: Path) -> None:
    """Spark itself shifts the times of files by the zone, too, so that it agrees in UTC only."""
    after = {"UTC": "2023-11-14 22:13:20.5", "Asia/Kolkata": "2023-11-15T03:43:20.5"}
    for zone, text in after.items():
        with settings(spark, {"spark.sql.session.timeZone": zone}):
            answers = [
                rows(spark, by, f"{tables}/files", {"modifiedAfter": text}) for by in ("orc", "coldframe")
            ]
            assert answers[0] == answers[1] or zone != "UTC"
            assert answers[1] == ["['v']", "Row(v=1)", "Row(v=2)", "Row(v=None)", "Row(v=None)"]


def test_a_mistyped_option_is_refused(spark: SparkSession, tables: Path) -> None:
    with pytest.raises(Exception, match="did you mean pathGlobFilter"):
        spark.read.format("coldframe").option("pathGlobFiter", "*").load(f"{tables}/files")


@pytest.mark.parametrize("by_session", [True, False])
def test_files_that_are_gone_are_ignored(spark: SparkSession, tmp_path: Path, by_session: bool) -> None:
    setting = {"spark.sql.files.ignoreMissingFiles": "true"} if by_session else {}
    options = {} if by_session else {"ignoreMissingFiles": "true"}
    queries: list[Callable[..., object]] = [
        lambda frame: sorted(frame.collect()),
        lambda frame: frame.count(),
        lambda frame: frame.selectExpr("min(v)", "max(v)", "count(v)").collect(),
        lambda frame: frame.where("v > 1").count(),
        lambda frame: frame.orderBy("v").limit(2).collect(),
    ]
    for query in queries:
        answers = []
        for by in ("orc", "coldframe"):
            for name in ("a", "b", "c"):
                put({"v": [1, 2, 3]}, tmp_path / f"{by}/{name}.orc")
            with settings(spark, setting):
                frame = spark.read.format(by).options(**options).load(f"{tmp_path}/{by}")
                for name in ("a", "c"):
                    (tmp_path / f"{by}/{name}.orc").unlink()
                answers.append(query(frame))
        assert answers[0] == answers[1]
    with pytest.raises(Exception, match="none"):
        spark.read.format("coldframe").option("ignoreMissingFiles", "true").load(f"{tmp_path}/none")
    frame = spark.read.format("coldframe").load(f"{tmp_path}/coldframe")
    (tmp_path / "coldframe/b.orc").unlink()
    with pytest.raises(Exception, match=r"b\.orc"):
        frame.collect()


@pytest.mark.parametrize("by_session", [True, False])
def test_damaged_files_are_ignored_with_a_record(
    spark: SparkSession, tmp_path: Path, by_session: bool
) -> None:
    setting = {"spark.sql.files.ignoreCorruptFiles": "true"} if by_session else {}
    options = {} if by_session else {"ignoreCorruptFiles": "true"}
    put({"v": list(range(1000))}, tmp_path / "t/a.orc")
    put({"v": list(range(1000))}, tmp_path / "t/b.orc")
    whole = (tmp_path / "t/b.orc").read_bytes()
    (tmp_path / "t/b.orc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Exception, match=r"b\.orc"):
        spark.read.format("coldframe").load(f"{tmp_path}/t").count()
    with settings(spark, setting):
        frames = [
            spark.read.schema("v bigint").format(by).options(**options).load(f"{tmp_path}/t")
            for by in ("orc", "coldframe")
        ]
        for query in ("count(*)", "sum(v)", "max(v)"):
            assert frames[0].selectExpr(query).collect() == frames[1].selectExpr(query).collect()
        recorded = spark.read.format("coldframe").options(**options).option("damage", f"{tmp_path}/damage")
        assert recorded.load(f"{tmp_path}/t").where("v is not null").count() == 1000
        [record] = spark.read.json(f"{tmp_path}/damage").select("path").collect()
        assert record.path.endswith("t/b.orc")
        strict = spark.read.format("coldframe").option("mode", "FAILFAST").load(f"{tmp_path}/t")
        with pytest.raises(Exception, match=r"b\.orc"):
            strict.where("v is not null").count()


def test_the_python_source_selects_too(spark: SparkSession, tables: Path) -> None:
    if not HAS_PYTHON_SOURCE:
        pytest.skip("this Spark has no Python data sources")
    for options, name in (
        ({"pathGlobFilter": "{a,c?}.*"}, "files"),
        ({"recursiveFileLookup": "true"}, "parts"),
        ({"recursiveFileLookup": "false"}, "tree"),
        ({"modifiedAfter": f"{at(0)}Z", "modifiedBefore": f"{at(2)}Z"}, "files"),
    ):
        path = f"{tables}/{name}"
        assert rows(spark, "coldframe_python", path, options) == rows(spark, "orc", path, options)
    for wrong, message in (
        ({"modifiedAfter": at(0)}, "with its time zone"),
        ({"pathGlobFilter": "nothing*"}, "none is selected by pathGlobFilter"),
        ({"modifiedBefor": at(0)}, "did you mean modifiedBefore"),
    ):
        with pytest.raises(Exception, match=message):
            spark.read.format("coldframe_python").options(**wrong).load(f"{tables}/files").collect()


def test_the_python_source_ignores_files_that_are_gone_or_damaged(
    spark: SparkSession, tmp_path: Path
) -> None:
    if not HAS_PYTHON_SOURCE:
        pytest.skip("this Spark has no Python data sources")
    for name in ("a", "b"):
        put({"v": [1, 2, 3]}, tmp_path / f"t/{name}.orc")
    (tmp_path / "t/c.orc").write_bytes((tmp_path / "t/a.orc").read_bytes()[:100])
    options = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": "true"}
    frame = spark.read.format("coldframe_python").options(**options).load(f"{tmp_path}/t")
    assert frame.count() == 6
    (tmp_path / "t/b.orc").unlink()
    assert frame.count() == 3
