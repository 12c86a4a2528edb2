#!/usr/bin/env python3
"""ORC by coldframe and pyarrow, Parquet by polars, DuckDB and pyarrow: many shapes, one core, CPU time.

usage: shapes.py [--rows N] [--passes N] [--shapes a,b] [--codecs a,b] [--queries a,b] [--seed N]
                 [--json FILE] [--folder DIR]

Each run makes other rows; --seed repeats the rows of an earlier run. pyarrow writes both files: ORC with
dictionaries, as Hive does, Parquet with its defaults. All readers run in this process, alternating; a figure
is the median of the passes. The table has milliseconds, and coldframe's time relative to the time of each
peer.

all, single, three  all columns, one column, three columns
key                 all columns of the 50 rows with a key
scattered           all columns of one row in 10,000, by three or four conditions
members             all columns of the rows with one of 200 numbers
prefix              all columns of the rows whose text begins so
limit               the first ten rows
count, counted      the number of rows, without and with a filter
tolerant            all columns, by coldframe alone: with on_error="skip", and plainly
floor               no reader: the codec's own time for the chunks of the ORC file; copying the table's bytes

The end lists each filter that costs coldframe more than reading all rows: there must be no such filter. Two
minutes are enough for `--rows 200000 --passes 3 --codecs zstd`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.orc as po
import pyarrow.parquet as pq
from peers import machine
from shape_tables import SHAPES, Shape, Test

import coldframe as cf

CODECS = ["uncompressed", "snappy", "zstd", "zlib"]
PARQUET = {"uncompressed": "none", "zlib": "gzip"}
OURS = "coldframe"
PLAIN = "coldframe, plainly"
Runner = Callable[[], int]
OPERATORS = {"=": "__eq__", "<": "__lt__", ">": "__gt__"}


def sql(tests: list[Test]) -> str:
    """The conditions as SQL, which coldframe and DuckDB take."""
    return " and ".join(test.sql() for test in tests)


def for_arrow(tests: list[Test]) -> Any:
    """The conditions as an expression of pyarrow."""

    def expression(test: Test) -> Any:
        column = pc.field(test.column)
        if test.op == "like":
            return pc.starts_with(column, pattern=str(test.value).removesuffix("%"))
        return column.isin(test.value) if test.op == "in" else getattr(column, OPERATORS[test.op])(test.value)

    return joined([expression(test) for test in tests])


def for_polars(tests: list[Test]) -> Any:
    """The conditions as an expression of polars."""

    def expression(test: Test) -> Any:
        column = pl.col(test.column)
        if test.op == "like":
            return column.str.starts_with(str(test.value).removesuffix("%"))
        return (
            column.is_in(test.value) if test.op == "in" else getattr(column, OPERATORS[test.op])(test.value)
        )

    return joined([expression(test) for test in tests])


def joined(parts: list[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


def columns_of(orc: str, parquet: str, columns: list[str] | None) -> dict[str, Runner]:
    """Reads columns of all rows."""
    names = "*" if columns is None else ", ".join(f'"{name}"' for name in columns)
    return {
        OURS: lambda: cf.open(orc, threads=1).read(columns=columns).num_rows,
        "polars": lambda: pl.read_parquet(parquet, columns=columns).height,
        "DuckDB": lambda: duck(f"select {names} from read_parquet('{parquet}')"),
        "pyarrow": lambda: pq.read_table(parquet, columns=columns, use_threads=False).num_rows,
        "pyarrow, ORC": lambda: po.read_table(orc, columns=columns).num_rows,
    }


def passing(orc: str, parquet: str, tests: list[Test]) -> dict[str, Runner]:
    """Reads all columns of the rows that pass."""
    text, arrow, polars = sql(tests), for_arrow(tests), for_polars(tests)
    return {
        OURS: lambda: cf.open(orc, threads=1).read(filter=text).num_rows,
        "polars": lambda: pl.scan_parquet(parquet).filter(polars).collect().height,
        "DuckDB": lambda: duck(f"select * from read_parquet('{parquet}') where {text}"),
        "pyarrow": lambda: ds.dataset(parquet).to_table(filter=arrow, use_threads=False).num_rows,
    }


def counting(orc: str, parquet: str, tests: list[Test]) -> dict[str, Runner]:
    """Counts rows."""
    where = f" where {sql(tests)}" if tests else ""
    arrow = for_arrow(tests) if tests else None

    def polars() -> int:
        rows = pl.scan_parquet(parquet)
        return int((rows.filter(for_polars(tests)) if tests else rows).select(pl.len()).collect().item())

    return {
        OURS: lambda: cf.open(orc, threads=1).count(sql(tests) if tests else None),
        "polars": polars,
        "DuckDB": lambda: CONNECTION.sql(f"select count(*) from read_parquet('{parquet}'){where}").fetchall()[
            0
        ][0],
        "pyarrow": lambda: ds.dataset(parquet).count_rows(filter=arrow, use_threads=False),
    }


def first_rows(orc: str, parquet: str) -> dict[str, Runner]:
    """Reads ten rows."""
    return {
        OURS: lambda: cf.open(orc, threads=1).read(limit=10).num_rows,
        "polars": lambda: pl.scan_parquet(parquet).head(10).collect().height,
        "DuckDB": lambda: duck(f"select * from read_parquet('{parquet}') limit 10"),
        "pyarrow": lambda: ds.dataset(parquet).head(10, use_threads=False).num_rows,
    }


def tolerant(orc: str) -> dict[str, Runner]:
    """Reads all columns of a file without damage, ready to skip what is damaged."""
    return {
        OURS: lambda: cf.open(orc, threads=1).read(on_error="skip").num_rows,
        PLAIN: lambda: cf.open(orc, threads=1).read().num_rows,
    }


def duck(query: str) -> int:
    result: pa.Table = CONNECTION.sql(query).to_arrow_table()
    return result.num_rows


CONNECTION = duckdb.connect(config={"threads": 1})


def queries(shape: Shape, orc: str, parquet: str) -> dict[str, dict[str, Runner]]:
    """The readers of each query."""
    return {
        "all": columns_of(orc, parquet, None),
        "single": columns_of(orc, parquet, [shape.single]),
        "three": columns_of(orc, parquet, shape.three),
        "key": passing(orc, parquet, shape.key),
        "scattered": passing(orc, parquet, shape.scattered),
        "members": passing(orc, parquet, shape.members),
        "prefix": passing(orc, parquet, shape.prefix),
        "limit": first_rows(orc, parquet),
        "count": counting(orc, parquet, []),
        "counted": counting(orc, parquet, shape.counted),
        "tolerant": tolerant(orc),
    }


FILTERS = ("key", "scattered", "members", "prefix")


def race(passes: int, runners: dict[str, Runner]) -> dict[str, float]:
    """The median CPU milliseconds of each runner; the runners alternate. The first round fills caches and
    allocators.
    """
    taken: dict[str, list[float]] = {name: [] for name in runners}
    counts: dict[str, int] = {}
    for number in range(passes + 1):
        for name, run in runners.items():
            start = time.process_time()
            counts[name] = run()
            if number:
                taken[name].append((time.process_time() - start) * 1000)
    if len(set(counts.values())) > 1:
        raise SystemExit(f"not the same rows: {counts}")
    return {name: statistics.median(times) for name, times in taken.items()} | {"rows": counts[OURS]}


def chunks(orc: str, codec: str) -> list[tuple[bytes, int]]:
    """The compressed chunks of the file's values, with the size of their contents."""
    whole = Path(orc).read_bytes()
    tree = cf.open(orc).inspect()
    stripes = [node for node in tree["children"] if node["name"].startswith("stripe ")]
    streams = [stream for stripe in stripes for stream in stripe["children"]]
    contents = []
    for stream in streams:
        if stream["name"] in ("ROW_INDEX", "stripe footer"):
            continue
        at, end = stream["offset"], stream["offset"] + stream["length"]
        while at + 3 <= end:
            header = int.from_bytes(whole[at : at + 3], "little")
            chunk = whole[at + 3 : at + 3 + (header >> 1)]
            at += 3 + len(chunk)
            if not header & 1:
                contents.append((chunk, content_size(codec, chunk)))
    return contents


def content_size(codec: str, chunk: bytes) -> int:
    """The number of bytes after decompression of a chunk, as its own header says."""
    if codec == "snappy":
        size = shift = 0
        for byte in chunk:
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        return size
    if codec == "zstd":
        flag, single = chunk[4] >> 6, chunk[4] >> 5 & 1
        at = 5 + (not single) + (0, 1, 2, 4)[chunk[4] & 3]
        width = (1 if single else 0, 2, 4, 8)[flag]
        return int.from_bytes(chunk[at : at + width], "little") + (256 if flag == 1 else 0)
    return len(zlib.decompress(chunk, -15))


def floor(orc: str, codec: str, table: pa.Table) -> dict[str, Runner]:
    """The codec's own work, and a copy of all bytes. For zlib, Python's own library is used, which is not the
    fastest.
    """
    all_bytes = np.zeros(table.nbytes, "u1")
    copy = np.empty_like(all_bytes)

    def copied() -> int:
        np.copyto(copy, all_bytes)
        return 0

    if codec == "uncompressed":
        return {OURS: copied, "memcpy": copied}
    stored = chunks(orc, codec)
    library = pa.Codec(codec) if codec != "zlib" else None

    def decompressed() -> int:
        for chunk, size in stored:
            if library is None:
                zlib.decompress(chunk, -15)
            else:
                library.decompress(chunk, size)
        return 0

    return {OURS: decompressed, "memcpy": copied}


def line(what: str, taken: dict[str, float]) -> str:
    """A line of the table in markdown."""
    ours = max(taken[OURS], 0.01)
    peers = ("polars", "DuckDB", "pyarrow", "pyarrow, ORC")
    cells = [
        f"{taken[peer]:.1f} ({ours / max(taken[peer], 0.01):.2f})" if peer in taken else "" for peer in peers
    ]
    return f"| {what} | {int(taken['rows']):,} | **{taken[OURS]:.1f}** | {' | '.join(cells)} |"


def main() -> int:
    """Writes the files and compares the readers; 1 if a filter costs more than reading all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--queries", default="")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", type=Path, help="write all figures into this file, too")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    wanted = given.queries.split(",") if given.queries else None
    print("; ".join(f"{key}: {value}" for key, value in machine().items()))
    print(f"Seed {given.seed}, {given.rows:,} rows, CPU milliseconds (and coldframe's relative to them).\n")
    print("| shape, codec, query | rows | coldframe | polars | DuckDB | pyarrow | pyarrow, ORC |")
    print("|---|---|---|---|---|---|---|")
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in given.shapes.split(","):
            shape = SHAPES[name](np.random.default_rng(given.seed), given.rows)
            for codec in given.codecs.split(","):
                orc, parquet = str(folder / f"{name}_{codec}.orc"), str(folder / f"{name}_{codec}.parquet")
                po.write_table(shape.table, orc, compression=codec, dictionary_key_size_threshold=0.8)
                pq.write_table(shape.table, parquet, compression=PARQUET.get(codec, codec))
                races = queries(shape, orc, parquet) | {"floor": floor(orc, codec, shape.table)}
                for query, runners in races.items():
                    if wanted is None or query in wanted:
                        taken = race(given.passes, runners)
                        figures.append({"shape": name, "codec": codec, "query": query, **taken})
                        print(line(f"{name}, {codec}, {query}", taken), flush=True)
    if given.json:
        facts = {"seed": given.seed, "rows": given.rows, "passes": given.passes, "load": os.getloadavg()[0]}
        given.json.write_text(json.dumps({**facts, "figures": figures}, indent=1) + "\n")
    return summary(figures)


def summary(figures: list[dict[str, Any]]) -> int:
    """Prints where polars is faster, and where a filter costs more than the full read."""
    slower = [f for f in figures if "polars" in f and f[OURS] > f["polars"]]
    print(f"\nSlower than polars in {len(slower)} of {sum('polars' in f for f in figures)} cases.")
    ratios = [f[OURS] / f[PLAIN] for f in figures if PLAIN in f]
    if ratios:
        print(f'With on_error="skip", undamaged files take up to {max(ratios):.2f} of the time without.')
    whole = {(f["shape"], f["codec"]): f[OURS] for f in figures if f["query"] == "all"}
    dear = 0
    for f in figures:
        full = whole.get((f["shape"], f["codec"]))
        if full is not None and f["query"] in FILTERS and f[OURS] > full:
            dear += 1
            print(f"{f['shape']}, {f['codec']}, {f['query']}: costs {f[OURS]:.1f}, the full read {full:.1f}")
    return int(dear > 0)


if __name__ == "__main__":
    sys.exit(main())
