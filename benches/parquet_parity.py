#!/usr/bin/env python3
"""ORC by coldframe and Parquet by polars, DuckDB and pyarrow: the same rows, one core, wall seconds.

usage: parquet_parity.py [--rows N] [--passes N] [--only WORD] [--folder DIR] [--cpu] [--json]

The table has twelve columns: sorted and random integers, doubles, decimals, dates, timestamps, strings with
few and with many distinct values, with nulls. pyarrow writes both files with its defaults, except that ORC
gets dictionaries (key size threshold 0.8), which Hive writes and pyarrow does not by default. Whole tables
are decoded to Arrow, with polars to its own frame. All readers take turns; a figure is the median of the
passes. On a machine that others use, `--cpu` takes processor seconds of all threads in place of wall seconds.
"""

from __future__ import annotations

import argparse
import decimal
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.orc as po
import pyarrow.parquet as pq

import coldframe as cf

CODECS = ["uncompressed", "snappy", "lz4", "zstd", "zlib"]
PARQUET = {"uncompressed": "none", "zlib": "gzip"}
KEY = 4711
Runner = Callable[[], int]


def table(rows: int) -> pa.Table:
    """The twelve columns."""
    random = np.random.default_rng(7)

    def thinned(column: pa.Array, share: float) -> pa.Array:
        return pc.if_else(pa.array(random.random(rows) < share), pa.scalar(None, column.type), column)

    cents = pa.array(random.integers(100, 10_000_000, rows)).cast(pa.decimal128(19, 0))
    price = pc.multiply(cents, pa.scalar(decimal.Decimal("0.01"), pa.decimal128(3, 2)))
    vocabulary = pa.array([f"word number {i}" for i in range(500)])
    micros = random.integers(1_400_000_000, 1_700_000_000, rows) * 1_000_000
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "key": pa.array(random.integers(0, 200_000, rows)),
            "quantity": pa.array(random.integers(0, 50, rows).astype("i4")),
            "number": thinned(pa.array(random.integers(-(2**31), 2**31, rows).astype("i4")), 0.1),
            "measure": pa.array(random.standard_normal(rows)),
            "score": thinned(pa.array(np.round(random.random(rows) * 100, 1)), 0.3),
            "price": price.cast(pa.decimal128(15, 2)),
            "day": pa.array(random.integers(15_000, 19_000, rows).astype("i4")).cast(pa.date32()),
            "at": pa.array(micros).cast(pa.timestamp("us")),
            "word": vocabulary.take(pa.array(random.integers(0, len(vocabulary), rows))),
            "flag": thinned(pa.array(["A", "N", "R"]).take(pa.array(random.integers(0, 3, rows))), 0.05),
            "comment": pa.array([f"{a:x} {b:x}" for a, b in random.integers(0, 2**40, (rows, 2))]),
        }
    )


FILTERS = {
    "one key of 200,000": (
        (pc.field("key") == KEY),
        (pl.col("key") == KEY),
        f"key = {KEY}",
    ),
    "three conditions, few rows": (
        (pc.field("quantity") == 3) & (pc.field("flag") == "R") & (pc.field("word") == "word number 17"),
        (pl.col("quantity") == 3) & (pl.col("flag") == "R") & (pl.col("word") == "word number 17"),
        "quantity = 3 and flag = 'R' and word = 'word number 17'",
    ),
    "0.1 % of a sorted key": (
        (pc.field("id") >= 400_000) & (pc.field("id") < 401_000),
        (pl.col("id") >= 400_000) & (pl.col("id") < 401_000),
        "id >= 400000 and id < 401000",
    ),
    "half of all rows": ((pc.field("measure") > 0.0), (pl.col("measure") > 0.0), "measure > 0"),
}


def race(passes: int, runners: dict[str, Runner], clock: Callable[[], float]) -> dict[str, float]:
    """The median seconds of each runner. The runners alternate; the first two rounds, which fill allocators,
    do not count.
    """
    taken: dict[str, list[float]] = {name: [] for name in runners}
    counts: dict[str, int] = {}
    for number in range(passes + 2):
        for name, run in runners.items():
            start = clock()
            counts[name] = run()
            if number > 1:
                taken[name].append(clock() - start)
    if len(set(counts.values())) > 1:
        raise SystemExit(f"not the same rows: {counts}")
    return {name: statistics.median(times) for name, times in taken.items()}


def whole(orc: str, parquet: str) -> dict[str, Runner]:
    """Reads everything into memory."""
    return {
        "coldframe, ORC": lambda: cf.open(orc, threads=1).read().num_rows,
        "polars, Parquet": lambda: pl.read_parquet(parquet).height,
        "pyarrow, Parquet": lambda: pq.read_table(parquet, use_threads=False).num_rows,
        "DuckDB, Parquet": lambda: sql(f"select * from read_parquet('{parquet}')"),
        "pyarrow, ORC": lambda: po.read_table(orc).num_rows,
    }


def filtered(orc: str, parquet: str, name: str) -> dict[str, Runner]:
    """Reads all columns of the passing rows."""
    arrow, polars, text = FILTERS[name]
    return {
        "coldframe, ORC": lambda: cf.open(orc, threads=1).read(filter=arrow).num_rows,
        "polars, Parquet": lambda: pl.scan_parquet(parquet).filter(polars).collect().height,
        "pyarrow, Parquet": lambda: ds.dataset(parquet).to_table(filter=arrow, use_threads=False).num_rows,
        "DuckDB, Parquet": lambda: sql(f"select * from read_parquet('{parquet}') where {text}"),
    }


def sql(query: str) -> int:
    """The number of rows of a query, fetched as Arrow."""
    result: pa.Table = CONNECTION.sql(query).to_arrow_table()
    return result.num_rows


CONNECTION = duckdb.connect(config={"threads": 1})


def main() -> None:
    """Writes the files and compares the readers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=9)
    parser.add_argument("--only", default="", help="a codec, or a word of a filter's name")
    parser.add_argument("--folder")
    parser.add_argument("--cpu", action="store_true", help="processor seconds in place of wall seconds")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    pa.set_cpu_count(1)
    clock = time.process_time if args.cpu else time.perf_counter
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.folder or scratch)
        rows = table(args.rows)
        for codec in CODECS:
            orc, parquet = str(folder / f"{codec}.orc"), str(folder / f"{codec}.parquet")
            if not Path(orc).exists():
                po.write_table(rows, orc, compression=codec, dictionary_key_size_threshold=0.8)
                pq.write_table(rows, parquet, compression=PARQUET.get(codec, codec))
            races = {codec: whole(orc, parquet)}
            if codec in ("uncompressed", "zstd"):
                races |= {f"{codec}, {name}": filtered(orc, parquet, name) for name in FILTERS}
            for what, runners in races.items():
                if args.only in what:
                    show(what, race(args.passes, runners, clock), args.json)


def show(what: str, seconds: dict[str, float], as_json: bool) -> None:
    """Prints a line: JSON, or milliseconds and our time relative to polars'."""
    if as_json:
        print(
            json.dumps(
                {"what": what, **{name: round(seconds_taken, 5) for name, seconds_taken in seconds.items()}}
            ),
            flush=True,
        )
        return
    times = "  ".join(f"{name} {seconds_taken * 1000:7.1f}" for name, seconds_taken in seconds.items())
    share = seconds["coldframe, ORC"] / seconds["polars, Parquet"]
    print(f"{what:<36} {times}   {share:.2f} x polars' time", flush=True)


if __name__ == "__main__":
    main()
