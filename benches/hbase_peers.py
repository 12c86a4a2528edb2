#!/usr/bin/env python3
"""Reads the same HBase tables with coldframe and with HBase's own offline readers, side by side, in one run.

    python benches/hbase_peers.py [DIR] [--passes N]

DIR (benches/data/hbase) holds root directories, each with a table of four regions, and a snapshot of the
table. A region has three store files; a tenth of the rows are written twice. `tests/reference/hbase` writes
missing directories (needs Maven and a JDK 17). `small` has a hundredth of the cells of `large`.

The figures are CPU time. For coldframe it is the CPU time of the whole process. For HBase there are two: the
CPU time of the reading thread, without the JVM's collector and compiler, and of the whole process, which is
what a user pays. Scans use TableSnapshotScanner; rows are looked up in the regions of the snapshot, opened as
that
scanner opens them and kept open. Medians; the first pass of coldframe and the first half of HBase's passes
are warm-up.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import coldframe as cf

BENCHES = Path(__file__).resolve().parent
REFERENCE = BENCHES.parent / "tests" / "reference" / "hbase" / "run.sh"
TABLES = {"small": (50_000, "none"), "large": (5_000_000, "none"), "packed": (1_000_000, "snappy")}
"""The number of cells (a tenth of them are duplicates) and the codec; the packed table uses FAST_DIFF too."""
COLUMNS = 5
LOOKUPS = 10_000
AS_OF = 1_700_000_000_000


def key(i: int) -> bytes:
    return f"row-{i:012d}".encode()


def opened(folder: Path) -> cf.File:
    return cf.open(folder, table="bench", snapshot="bench", as_of=AS_OF)


def scan(folder: Path) -> int:
    return sum(batch.num_rows for batch in opened(folder).to_batches())


def get(file: cf.File, keys: list[bytes]) -> int:
    return sum(file.get(key).num_rows for key in keys)


def get_many(file: cf.File, keys: list[bytes]) -> int:
    return int(file.get_many(keys).num_rows)


def cost(passes: int, entries: int, cells: int, work: Callable[[], int]) -> float:
    """Entries per CPU second, by the median pass."""
    seconds = []
    for number in range(passes + 1):
        start = time.process_time()
        actual = work()
        if number:
            seconds.append(time.process_time() - start)
        if actual != cells:
            raise SystemExit(f"expected {cells} cells, found {actual}")
    return entries / statistics.median(seconds)


def ours(folder: Path, cells: int, passes: int) -> dict[str, float]:
    rows = cells // COLUMNS
    dice = random.Random(2)
    some = [key(dice.randrange(rows)) for _ in range(LOOKUPS)]
    many = [key(i * rows // LOOKUPS) for i in range(LOOKUPS)]
    file = opened(folder)
    looked_up = LOOKUPS * COLUMNS
    return {
        "scan": cost(passes, cells, cells, partial(scan, folder)),
        "get": cost(passes, LOOKUPS, looked_up, partial(get, file, some)),
        "get_many": cost(passes, LOOKUPS, looked_up, partial(get_many, file, many)),
    }


def theirs(folder: Path, cells: int, passes: int) -> dict[str, tuple[float, float]]:
    """Entries per CPU second of HBase's reading thread and of its process."""
    rates = {}
    for what in (
        ["scan", folder, 2 * passes],
        ["get", folder, cells // COLUMNS, LOOKUPS, 2 * passes],
    ):
        done = subprocess.run([REFERENCE, *map(str, what)], stdout=subprocess.PIPE, check=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        warm = lines[len(lines) // 2 :]
        rate = {
            by: statistics.median(pass_["entries"] / max(pass_[by], pass_["cpu_s"]) for pass_ in warm)
            for by in ("cpu_s", "process_cpu_s")
        }
        rates[str(what[0])] = (rate["cpu_s"], rate["process_cpu_s"])
    return rates


def peak(folder: Path) -> float:
    """The peak memory, in MiB, of a scan in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return float(done.stdout)


def shown(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=BENCHES / "data" / "hbase")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak is not None:
        scan(given.peak)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    for name, (cells, codec) in TABLES.items():
        if not (given.folder / name).exists():
            subprocess.run([REFERENCE, "load", str(given.folder / name), str(cells), codec], check=True)
    # Run before this process grows: a child's peak memory starts with its parent's.
    sizes = {name: peak(given.folder / name) for name in ("small", "large")}
    print("Per CPU second (how many times faster coldframe is):\n")
    print("| table | what | coldframe | HBase, its reading thread | HBase, its process |")
    print("| --- | --- | --- | --- | --- |")
    for name, (cells, _) in TABLES.items():
        folder = given.folder / name
        if name == "small":
            continue
        peer, own = theirs(folder, cells, given.passes), ours(folder, cells, given.passes)
        for what, rate in own.items():
            thread, process = peer[what.split("_")[0]]
            print(
                f"| {name} | {what} | **{shown(rate)}** | {shown(thread)} ({rate / thread:.1f} x) "
                f"| {shown(process)} ({rate / process:.1f} x) |"
            )
    print(f"\nPeak memory of a scan, MiB: {', '.join(f'{name} {size:.0f}' for name, size in sizes.items())}")


if __name__ == "__main__":
    main()
