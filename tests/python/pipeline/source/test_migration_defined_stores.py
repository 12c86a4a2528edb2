"""A table with partitions on this machine, in HDFS and in S3, migrated into HDFS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from hive_estate import ORC, RC_TEXT, HiveEstate
from servers import S3, Hdfs, HiveMetastore

import coldframe as cf
from coldframe.pipeline import audit, migrate
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.scheduling import InProcess
from coldframe.sources import open_store

COLUMNS = [("id", "bigint"), ("what", "string")]
TYPES = pa.schema([("id", pa.int64()), ("what", pa.string())])
VALUES = ["a/b", "ü:%2F", "__HIVE_DEFAULT_PARTITION__", "x y"]


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["what"], row["p"]) for row in table.to_pylist())


def test_a_table_in_three_stores(
    hive_server: HiveMetastore, hive_estate: HiveEstate, s3: S3, hdfs: Hdfs
) -> None:
    options = {"s3": s3.options, "hdfs": hdfs.options}
    of_table = hive_estate.storage(COLUMNS, RC_TEXT, f"{hdfs.url}/wh/t")
    hive_estate.table("t", of_table, [("p", "string")])
    places = [
        f"{hdfs.url}/wh/t/p=1",
        f"{hdfs.url}/wh/t/_hidden/x=y",
        "s3://data/x%2Fy/p=1",
        f"{hive_estate.root}/p 4",
    ]
    for number, (value, place) in enumerate(zip(VALUES, places, strict=True)):
        some = pa.table({"id": [number], "what": [f"row {number}"]}, schema=TYPES)
        how: dict[str, Any] = {"format": "orc"}
        if number < 2:
            how = {"format": "rcfile", "serde": "text"}
        own = options.get(place.partition(":")[0])
        if own is None:
            Path(place).mkdir()
        cf.write(some, f"{place}/000000_0", storage_options=own, **how)
        # This Hive metastore has no file system for S3.
        location = place.replace("s3://data", f"file:{hive_estate.root}/s3")
        classes = RC_TEXT if number < 2 else ORC
        location = location if ":" in location else f"file:{location}"
        storage = hive_estate.storage(COLUMNS, classes, location)
        hive_estate.partition("t", [value], storage, numRows="1")
    moved = {f"file:{hive_estate.root}/s3": "s3://data"}
    target = f"{hdfs.url}/lake"

    def run() -> Report:
        return migrate(
            InProcess(2),
            f"{hive_server.url}/cold",
            target,
            locations=moved,
            source_storage_options=options,
            target_storage_options=hdfs.options,
        )

    theirs = cf.hive_table(f"{hive_server.url}/cold.t", location=moved, storage_options=options)
    expected = [(n, f"row {n}", None if n == 2 else value) for n, value in enumerate(VALUES)]
    assert rows(theirs.read()) == expected
    for _ in range(2):
        report = run()
        assert report.exit_code == 0, summary(report)
        assert report.safe_to_delete == 4
        # Files that could not be compared are not listed as safe.
        safe = f"{target}/_coldframe/safe-to-delete.txt"
        result = audit(before_delete=safe, storage_options=hdfs.options, source_storage_options=options)
        assert result.exit_code == 0
    stored = [
        file.path
        for some in open_store(f"{target}/cold/t", hdfs.options).list("", recursive=True)
        for file in some
        if file.path.endswith(".parquet")
    ]
    assert sorted({path.partition("/")[0] for path in stored}) == [
        "p=__HIVE_DEFAULT_PARTITION__",
        "p=a%2Fb",
        "p=x y",
        "p=ü%3A%252F",
    ]
    open_store(places[1], hdfs.options).delete("000000_0")
    report = run()
    assert report.exit_code == 1
    assert report.tables[0].vanished == ["cold/t/p=ü%3A%252F/000000_0"]
