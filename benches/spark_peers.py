#!/usr/bin/env python3
"""Spark's readers of ORC and RCFile, the connector and the Python source on the same bytes: CPU seconds.

usage: spark_peers.py [--rows N] [--passes N] [--warm N] [--codec zstd] [--folder DIR]
                      [--files orc,text,binary] [--sources hive,rule,coldframe] [--only WORD] [--json]

A lineitem-like table of sixteen columns, sorted by its key, as ORC and as RCFile by both of Hive's SerDes.
`orc` is Spark's own reader and `coldframe` the connector, on the path. The other two sources read tables of a
metastore: `hive` is Spark without an extension, with Hive's SerDe or (for ORC) Spark's own reader; `rule` is
the same query with the connector's extension. A figure is the processor time of the whole process tree (the
JVM and the Python workers below it), the best of the passes on local[2]; in the passes before these
(`--warm`) the JVM compiles what a query needs. All sources take turns. Needs the jar (make jar), and a quiet
machine only for wall seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.orc as po
from pyspark.sql import SparkSession

import coldframe as cf
import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import CATALOG, CATALOG_CLASS, EXTENSIONS

SOURCES = {
    "orc": ["orc", "hive", "rule", "coldframe", "coldframe_python"],
    "text": ["hive", "rule", "coldframe", "coldframe_python"],
    "binary": ["hive", "rule", "coldframe", "coldframe_python"],
}
"""The sources by the kind of files; Spark's own reader comes first."""
COLUMNAR = "org.apache.hadoop.hive.serde2.columnar"
STORED = {
    "orc": "stored as orc",
    "text": f"row format serde '{COLUMNAR}.ColumnarSerDe' stored as rcfile",
    "binary": f"row format serde '{COLUMNAR}.LazyBinaryColumnarSerDe' stored as rcfile",
}
"""The clause of CREATE TABLE by the kind of files."""
COLUMNS = (
    "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity double, "
    "l_extendedprice double, l_discount double, l_tax double, l_returnflag string, l_linestatus string, "
    "l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string, "
    "l_comment string"
)

Q1 = """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
  sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
  avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
  from {t} where l_shipdate <= date'1998-09-02' group by l_returnflag, l_linestatus"""
Q6 = """select sum(l_extendedprice * l_discount) from {t} where l_shipdate >= date'1994-01-01'
  and l_shipdate < date'1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24"""


def lineitem(rows: int) -> pa.Table:
    """The same rows at each call."""
    random = np.random.default_rng(7)
    day = np.datetime64("1992-01-01")

    def days(spread: int) -> pa.Array:
        return pa.array(
            (day + random.integers(0, 2526, rows) + random.integers(0, spread, rows)).astype("M8[D]")
        )

    def among(choices: list[str]) -> pa.Array:
        return pa.array(np.array(choices)[random.integers(0, len(choices), rows)])

    ends = ("sleep", "nag", "wake furiously", "haggle")
    comments = np.array([f"{a} deposits {b}" for a in ("even", "final", "quick", "bold") for b in ends])
    price = np.round(random.uniform(900, 105000, rows), 2)
    return pa.table(
        {
            "l_orderkey": np.sort(random.integers(1, rows * 4, rows)),
            "l_partkey": random.integers(1, 200_000, rows),
            "l_suppkey": random.integers(1, 10_000, rows),
            "l_linenumber": random.integers(1, 8, rows).astype("int32"),
            "l_quantity": random.integers(1, 51, rows).astype("float64"),
            "l_extendedprice": price,
            "l_discount": random.integers(0, 11, rows) / 100,
            "l_tax": random.integers(0, 9, rows) / 100,
            "l_returnflag": among(["A", "N", "R"]),
            "l_linestatus": among(["F", "O"]),
            "l_shipdate": days(121),
            "l_commitdate": days(90),
            "l_receiptdate": days(150),
            "l_shipinstruct": among(["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
            "l_shipmode": among(["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]),
            "l_comment": pa.array(comments[random.integers(0, len(comments), rows)]),
        }
    )


def queries(rows: int) -> dict[str, str]:
    """The queries by name; `{t}` is the table."""
    first = rows * 2
    some = f"l_orderkey >= {first} and l_orderkey < {first + rows // 250}"
    return {
        "all columns": "select * from {t}",
        "1 of 16 summed": "select sum(l_partkey) from {t}",
        "count(*)": "select count(*) from {t}",
        "0.1 % by a sorted key": f"select * from {{t}} where {some}",
        "TPC-H Q1": Q1,
        "TPC-H Q6": Q6,
    }


ATTEMPTS = 3
"""The number of attempts if a process ends during a run: Spark kills idle Python workers."""


def processor_seconds() -> dict[int, float]:
    """The processor seconds of each process below this one, with its ended children."""
    seconds = {}
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        seconds[child.pid] = times.user + times.system + times.children_user + times.children_system
    return seconds


def measured(run: Callable[[], Any]) -> tuple[float, float]:
    """Processor and wall seconds. Repeats a run in which a process was killed, as its seconds are lost."""
    for _ in range(ATTEMPTS):
        before, start = processor_seconds(), time.perf_counter()
        run()
        wall, after = time.perf_counter() - start, processor_seconds()
        took = sum(after.values()) - sum(before.values())
        if before.keys() <= after.keys():
            break
    return took, wall


def written(folder: Path, rows: int, codec: str, kind: str) -> Path:
    """The folder with the file of a kind, written once."""
    path = folder / f"lineitem-{rows}-{codec}-{kind}"
    if not path.is_dir():
        path.mkdir(parents=True)
        table = lineitem(rows)
        if kind == "orc":
            compression = "uncompressed" if codec == "none" else codec
            po.write_table(table, path / "0.orc", compression=compression, dictionary_key_size_threshold=0.8)
        else:
            cf.write(table, path / "0.rc", format="rcfile", serde=kind, codec="zlib")
    return path


def session(folder: Path) -> SparkSession:
    """Spark with a new metastore."""
    # By default, a session of this package uses only the quick compiler.
    os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=4"
    scratch = tempfile.mkdtemp(dir=folder)
    metastore = f"jdbc:derby:;databaseName={scratch}/db;create=true"
    return start_session(
        "local[2]",
        conf={
            "spark.jars": coldframe.spark.jar(),
            CATALOG: CATALOG_CLASS,
            "spark.sql.extensions": EXTENSIONS,
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={scratch} -Duser.timezone=UTC",
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.coldframe.hive.orc": "on",
        },
    )


def tables(spark: SparkSession, kind: str, path: Path, wanted: list[str]) -> dict[str, str]:
    """The name of the table or view for each wanted source."""
    names = {}
    for source in SOURCES[kind]:
        if wanted and source not in wanted:
            continue
        names[source] = f"{kind}_{source}"
        if source in ("hive", "rule"):
            names[source] = f"{kind}_table"
            spark.sql(
                f"create external table if not exists {kind}_table ({COLUMNS}) {STORED[kind]} "
                f"location '{path}'"
            )
            continue
        options = {} if source == "orc" else {"split_bytes": "32m"}
        if kind != "orc":
            options |= {"schema": COLUMNS, "serde": kind}
        spark.read.format(source).options(**options).load(str(path)).createOrReplaceTempView(names[source])
    return names


def compared(
    spark: SparkSession, names: dict[str, str], sql: str, passes: int, warm: int
) -> dict[str, tuple[float, float]]:
    """The best processor and wall seconds of each source, after some passes that are not counted."""
    best: dict[str, tuple[float, float]] = {}
    for number in range(warm + passes):
        for source, table in names.items():
            spark.conf.set("spark.coldframe.hive", "off" if source == "hive" else "on")
            query = sql.format(t=table)
            took = measured(
                lambda query=query: spark.sql(query).write.format("noop").mode("overwrite").save()
            )  # type: ignore[misc]
            if number >= warm:
                best[source] = min(best.get(source, took), took)
    return best


def line(kind: str, name: str, best: dict[str, tuple[float, float]]) -> str:
    """The figures of a query, and their ratios to the connector's."""
    figures = "  ".join(f"{source} {cpu:.2f} s ({wall:.2f})" for source, (cpu, wall) in best.items())
    ours = best["coldframe"][0] if "coldframe" in best else 0.0
    ratios = [
        f"{cpu / ours:.2f} x {source}'s"
        for source, (cpu, _) in best.items()
        if ours and source != "coldframe"
    ]
    return f"{kind:8}{name:24}{figures}  {', '.join(ratios)}"


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--files", default="orc,text,binary")
    parser.add_argument("--sources", default="", help="those to compare; all if not given")
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    kinds = given.files.split(",")
    wanted = [source for source in given.sources.split(",") if source]
    paths = {kind: written(folder, given.rows, given.codec, kind) for kind in kinds}
    spark = session(folder)
    results: list[dict[str, Any]] = []
    for kind in kinds:
        names = tables(spark, kind, paths[kind], wanted)
        for name, sql in queries(given.rows).items():
            if given.only not in name:
                continue
            best = compared(spark, names, sql, given.passes, given.warm)
            results.append({"files": kind, "query": name, **best})
            if not given.json:
                print(line(kind, name, best), flush=True)
    if given.json:
        sizes = {kind: sum(file.stat().st_size for file in path.iterdir()) for kind, path in paths.items()}
        json.dump({"rows": given.rows, "codec": given.codec, "bytes": sizes, "found": results}, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main()
