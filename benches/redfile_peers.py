#!/usr/bin/env python3
"""Redfile by coldframe side by side with PLAIN Parquet by pyarrow: one thread, same data, codec, page size.

    python benches/redfile_peers.py [--rows N] [--rounds N] [--only NAME] [--dir DIR] [--json]

Files are read from memory, and written to DIR (an in-memory file system if there is one). In a round,
both libraries read (or write) each file once, alternating. Figures are CPU seconds: medians over the rounds
without the first. Nothing else reads Redfile, so its descendant is the peer: Parquet with data pages of
version 1, no dictionary and no statistics.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import coldframe as cf

ROW_GROUP_ROWS = 1 << 20
PAGES = {"8 KiB": 8 << 10, "1 MiB": 1 << 20}
CODECS = ("none", "snappy", "gzip")
# The minimum ratios that coldframe must achieve.
READ_GOALS = {("int64 required", "none"): 1.0, ("double required", "none"): 1.0}
READ_GOAL = 1.5
WRITE_GOAL = 1.0


def tables(rows: int) -> Iterator[tuple[str, pa.Table]]:
    """The columns to compare."""
    rng = np.random.default_rng(7)
    ints = pa.array(np.cumsum(rng.integers(0, 1000, rows)))
    doubles = pa.array(rng.normal(0, 1000, rows).round(3))
    lengths = rng.integers(8, 24, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = rng.integers(97, 123, int(offsets[-1]), dtype=np.uint8)
    binary = pa.BinaryArray.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    )
    items = rng.integers(0, 6, rows)
    list_offsets = pa.array(np.concatenate([[0], np.cumsum(items)]).astype(np.int32))
    values = pa.array(rng.integers(0, 1 << 40, int(items.sum())))
    item = pa.field("element", pa.int64(), nullable=False)
    lists = pa.ListArray.from_arrays(list_offsets, values).cast(pa.list_(item))

    def column(array: pa.Array, nullable: bool = False) -> pa.Table:
        return pa.table([array], pa.schema([pa.field("c", array.type, nullable)]))

    yield "int64 required", column(ints)
    with_nulls = pa.array(ints.to_numpy(), mask=rng.random(rows) < 0.1)
    yield "int64 optional, 10 % null", column(with_nulls, nullable=True)
    yield "double required", column(doubles)
    yield "byte array of 8 to 23", column(binary)
    yield "list<int64> of 0 to 5", column(lists)
    fields = [pa.field(n, a.type, False) for n, a in zip("abc", (ints, doubles, binary), strict=True)]
    yield "int64, double, byte array", pa.table([ints, doubles, binary], pa.schema(fields))


@dataclass
class Result:
    """A comparison, in CPU seconds per pass."""

    what: str
    table: str
    codec: str
    page: str
    coldframe: float
    pyarrow: float
    goal: float

    @property
    def ratio(self) -> float:
        return self.pyarrow / self.coldframe


def side_by_side(passes: list[Callable[[], object]], rounds: int) -> list[float]:
    """The median CPU seconds of each pass."""
    seconds: list[list[float]] = [[] for _ in passes]
    for number in range(rounds + 1):
        for run, taken in zip(passes, seconds, strict=True):
            start = time.process_time()
            run()
            if number:
                taken.append(time.process_time() - start)
    return [statistics.median(s) for s in seconds]


def parquet(table: pa.Table, path: Path, codec: str, page: int) -> None:
    pq.write_table(
        table,
        path,
        compression=codec.upper(),
        compression_level=1 if codec == "gzip" else None,
        data_page_size=page,
        data_page_version="1.0",
        row_group_size=ROW_GROUP_ROWS,
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )


def redfile(table: pa.Table, path: Path, codec: str, page: int) -> None:
    level = {"compression_level": 1} if codec == "gzip" else {}
    cf.write(
        table,
        path,
        format="redfile",
        codec=codec,
        page_bytes=page,
        row_group_rows=ROW_GROUP_ROWS,
        row_group_bytes=1 << 40,
        **level,
    )


def compare(name: str, table: pa.Table, codec: str, page: str, rounds: int, folder: Path) -> Iterator[Result]:
    """Compares reading, then writing."""
    red, par = folder / "table.redfile", folder / "table.parquet"

    def write_ours() -> None:
        redfile(table, red, codec, PAGES[page])

    def write_theirs() -> None:
        parquet(table, par, codec, PAGES[page])

    write = side_by_side([write_ours, write_theirs], rounds)
    ours, theirs = red.read_bytes(), par.read_bytes()
    if not cf.open(ours).read().equals(table):
        raise SystemExit(f"{name}: coldframe reads back different rows")

    def read_ours() -> pa.Table:
        return cf.open(ours).read()

    def read_theirs() -> pa.Table:
        return pq.ParquetFile(pa.BufferReader(theirs)).read(use_threads=False)

    read = side_by_side([read_ours, read_theirs], rounds)
    goal = READ_GOALS.get((name, codec), READ_GOAL)
    yield Result("read", name, codec, page, read[0], read[1], goal)
    yield Result("write", name, codec, page, write[0], write[1], WRITE_GOAL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="tables whose name contains this")
    memory = Path("/dev/shm")
    parser.add_argument("--dir", type=Path, default=memory if memory.is_dir() else None)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    results: list[dict[str, Any]] = []
    if not arguments.json:
        print(
            f"{platform.processor() or platform.machine()}, pyarrow {pa.__version__}, {arguments.rows} rows"
        )
        print("| | table | codec | page | coldframe, Mrows/s | pyarrow, Mrows/s | ratio | goal |")
        print("|---|---|---|---|---|---|---|---|")
    scratch = tempfile.TemporaryDirectory(dir=arguments.dir)
    folder = Path(scratch.name)
    for (name, table), codec, page in itertools.product(tables(arguments.rows), CODECS, PAGES):
        if arguments.only not in name:
            continue
        for r in compare(name, table, codec, page, arguments.rounds, folder):
            results.append({**asdict(r), "ratio": r.ratio})
            if not arguments.json:
                million = arguments.rows / 1e6
                print(
                    f"| {r.what} | {r.table} | {r.codec} | {r.page} | {million / r.coldframe:.1f} "
                    f"| {million / r.pyarrow:.1f} | {r.ratio:.2f} | {r.goal} |",
                    flush=True,
                )
    scratch.cleanup()
    if arguments.json:
        json.dump(
            {"rows": arguments.rows, "pyarrow": pa.__version__, "results": results}, sys.stdout, indent=1
        )


if __name__ == "__main__":
    main()
