#!/usr/bin/env python3
"""Reading one file and many with 1 to 8 threads: wall and processor milliseconds, and files opened a second.

usage: scan_threads.py [--rows N] [--files N] [--tiny N] [--threads 1,2,4,8] [--passes N] [--json]

One ORC file (zstd) and the same rows in many small files are read into Arrow; many tiny files are opened for
their columns. Cases take turns; a figure is the median of the passes. Two more passes come first and do not
count: a read with more threads than before touches new memory, which the system must clear. With more threads
than processors, the processor time shows the cost of threads.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import coldframe as cf

WARM_UP = 2
"""Warm-up passes."""


def table(rows: int, seed: int) -> pa.Table:
    """Six columns."""
    random = np.random.default_rng(seed)
    vocabulary = pa.array([f"word number {i}" for i in range(500)])
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "key": pa.array(random.integers(0, 1_000_000, rows)),
            "measure": pa.array(random.standard_normal(rows)),
            "price": pa.array(random.integers(100, 10_000_000, rows)),
            "word": vocabulary.take(pa.array(random.integers(0, len(vocabulary), rows))),
            "comment": pa.array([f"{a:x} {b:x}" for a, b in random.integers(0, 2**40, (rows, 2))]),
        }
    )


def write(folder: Path, rows: int, files: int, tiny: int) -> None:
    """One file, the same rows in many, and many files of a row."""
    for name in ("one", "many", "tiny"):
        (folder / name).mkdir()
    cf.write(table(rows, 1), folder / "one" / "a.orc", format="orc", codec="zstd", stripe_size=16 << 20)
    for number in range(files):
        part = table(rows // files, number)
        cf.write(part, folder / "many" / f"{number:04}.orc", format="orc", codec="zstd")
    row = table(1, 1)
    for number in range(tiny):
        cf.write(row, folder / "tiny" / f"{number:05}.orc", format="orc")


def read(folder: Path, threads: int) -> int:
    """The rows of a table, batch by batch."""
    return sum(batch.num_rows for batch in cf.scan(folder, threads=threads).to_batches())


def open_all(folder: Path, threads: int) -> int:
    """Opens all files to unify their columns; returns the number of columns."""
    return len(cf.scan(folder, threads=threads).schema)


def measured(case: Callable[[], int]) -> tuple[float, float]:
    """Wall and processor milliseconds."""
    wall, used = time.perf_counter(), time.process_time()
    case()
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - used)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--tiny", type=int, default=5_000)
    parser.add_argument("--threads", default="1,2,4,8")
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, args.rows, args.files, args.tiny)
        cases: dict[str, Callable[[], int]] = {}
        for threads in map(int, args.threads.split(",")):
            cases[f"one file, {threads}"] = lambda t=threads: read(folder / "one", t)  # type: ignore[misc]
            cases[f"{args.files} files, {threads}"] = lambda t=threads: read(folder / "many", t)  # type: ignore[misc]
        cases[f"open {args.tiny}"] = lambda: open_all(folder / "tiny", 2)
        cases[f"read {args.tiny}, 1"] = lambda: read(folder / "tiny", 1)
        cases[f"read {args.tiny}, 2"] = lambda: read(folder / "tiny", 2)
        measurements: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for _ in range(WARM_UP + args.passes):
            for name, case in cases.items():
                measurements[name].append(measured(case))
    load = f"{os.getloadavg()[0]:.1f}"
    rows: dict[str, Any] = {
        name: tuple(round(statistics.median(pass_[at] for pass_ in passes[WARM_UP:])) for at in (0, 1))
        for name, passes in measurements.items()
    }
    if args.json:
        print(json.dumps({"load": load, **rows}))
        return
    print(f"load {load}, {os.cpu_count()} processors\n")
    print("| case, threads | wall ms | processor ms |\n| --- | --- | --- |")
    for name, (wall, used) in rows.items():
        print(f"| {name} | {wall} | {used} |")


if __name__ == "__main__":
    main()
