#!/usr/bin/env python3
"""Spark's ORC reader, the connector for the JVM and the Python source on the same bytes: processor seconds.

usage: spark_peers.py [--rows N] [--passes N] [--codec zstd] [--folder DIR] [--only WORD] [--json]

A lineitem-like table of sixteen columns, sorted by its key, as ORC. A figure is the processor time of the
whole process tree (the JVM and the Python workers below it), Spark started and warmed up before, the best of
the passes on local[2]; all sources take turns. Needs the jar (make jar), and a quiet machine only for wall
seconds.
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

import coldframe.spark
from coldframe.pipeline.session import start_session
from coldframe.spark.connector import CATALOG, CATALOG_CLASS

SOURCES = ["orc", "coldframe", "coldframe_python"]

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

    def among(words: list[str]) -> pa.Array:
        return pa.array(np.array(words)[random.integers(0, len(words), rows)])

    ends = ("sleep", "nag", "wake furiously", "haggle")
    words = np.array([f"{a} deposits {b}" for a in ("even", "final", "quick", "bold") for b in ends])
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
            "l_comment": pa.array(words[random.integers(0, len(words), rows)]),
        }
    )


def queries(rows: int) -> dict[str, str]:
    """By name; `{t}` is the table."""
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


def processor_seconds() -> float:
    """Of everything below this process, what has ended too."""
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(run: Callable[[], Any]) -> tuple[float, float]:
    """Processor and wall seconds."""
    before, start = processor_seconds(), time.perf_counter()
    run()
    return processor_seconds() - before, time.perf_counter() - start


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    path = folder / f"lineitem-{given.rows}-{given.codec}.orc"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        po.write_table(lineitem(given.rows), path, compression=given.codec, dictionary_key_size_threshold=0.8)
    # Else a session of this package makes do with the quick compiler.
    os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=4"
    conf = {"spark.jars": coldframe.spark.jar(), CATALOG: CATALOG_CLASS, "spark.driver.memory": "2g"}
    conf["spark.sql.shuffle.partitions"] = "2"
    spark = start_session("local[2]", conf=conf)
    for source in SOURCES:
        options = {"split_bytes": "32m"} if source != "orc" else {}
        spark.read.format(source).options(**options).load(str(path)).createOrReplaceTempView(source)
    found: list[dict[str, Any]] = []
    for name, sql in queries(given.rows).items():
        if given.only not in name:
            continue

        def run(source: str, sql: str = sql) -> None:
            spark.sql(sql.format(t=source)).write.format("noop").mode("overwrite").save()

        best: dict[str, tuple[float, float]] = {}
        for number in range(given.passes + 1):
            for source in SOURCES:
                took = measured(lambda source=source: run(source))  # type: ignore[misc]
                if number > 0:
                    best[source] = min(best.get(source, took), took)
        found.append({"query": name, **{source: best[source] for source in SOURCES}})
        if not given.json:
            figures = "  ".join(f"{s} {best[s][0]:.2f} s ({best[s][1]:.2f})" for s in SOURCES)
            ratios = (
                f"{best['orc'][0] / best['coldframe'][0]:.2f} x Spark's, " if best["coldframe"][0] else ""
            )
            ratios += (
                f"{best['coldframe_python'][0] / best['coldframe'][0]:.2f} x Python's"
                if best["coldframe"][0]
                else ""
            )
            print(f"{name:24} {figures}  {ratios}", flush=True)
    if given.json:
        json.dump(
            {"rows": given.rows, "codec": given.codec, "bytes": path.stat().st_size, "found": found},
            sys.stdout,
        )
    spark.stop()


if __name__ == "__main__":
    main()
