#!/usr/bin/env python3
"""Reads the same HFiles with coldframe, hudi-io 1.2 and HBase 2.6, side by side, in one run.

    python benches/hfile_peers.py [DIR] [--passes N]

DIR (benches/data/hfile) holds files of 1.5 million entries with values of 100 bytes in blocks of 64 KiB.
`benches/peers/hfile.sh` has hudi-io and HBase write those that are missing (needs Maven and a JDK 17).

What is compared is CPU time: of coldframe's whole process, of the peers the thread that reads. Medians; the
first pass warms up the caches of coldframe, the first half warm up the JVM.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import coldframe as cf

HERE = Path(__file__).resolve().parent
FILES = ("hudi_none", "hudi_gz", "hbase_none", "hbase_fast_diff")
ENTRIES = 1_500_000
LOOKUPS = 10_000
Costs = dict[tuple[str, str], float]


def key(i: int) -> str:
    return f"record-{i:012d}"


def cost(passes: int, entries: int, work: Callable[[], int]) -> float:
    """Entries a CPU second, by the median pass."""
    seconds = []
    for number in range(passes + 1):
        start = time.process_time()
        found = work()
        if number:
            seconds.append(time.process_time() - start)
        if found != entries:
            raise SystemExit(f"expected {entries} entries, found {found}")
    return entries / statistics.median(seconds)


def scan(path: Path) -> int:
    return sum(batch.num_rows for batch in cf.open(path).to_batches())


def get(file: cf.File, keys: list[str]) -> int:
    return sum(file.get(key).num_rows for key in keys)


def get_many(file: cf.File, keys: list[str]) -> int:
    return int(file.get_many(keys).num_rows)


def get_many_fresh(path: Path, keys: list[str]) -> int:
    return get_many(cf.open(path), keys)


def ours(folder: Path, passes: int) -> Costs:
    found: Costs = {}
    dice = random.Random(2)
    some = [key(dice.randrange(ENTRIES)) for _ in range(LOOKUPS)]
    many = [key(i * (ENTRIES // LOOKUPS)) for i in range(LOOKUPS)]
    for name in FILES:
        path = folder / f"{name}.hfile"

        # Room for all blocks that look-ups decode.
        file = cf.open(path, block_cache_bytes=1 << 30)
        found[name, "scan"] = cost(passes, ENTRIES, partial(scan, path))
        found[name, "get"] = cost(passes, LOOKUPS, partial(get, file, some))
        found[name, "get_many"] = cost(passes, LOOKUPS, partial(get_many, file, many))
        found[name, "get_many, fresh"] = cost(passes, LOOKUPS, partial(get_many_fresh, path, many))
    return found


def peers(folder: Path, passes: int) -> dict[str, Costs]:
    command = [str(HERE / "peers" / "hfile.sh"), str(folder), str(passes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    seen: dict[tuple[str, str, str], list[float]] = {}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        at = (one["reader"], one["file"], one["what"])
        seen.setdefault(at, []).append(one["entries"] / one["cpu_s"])
    found: dict[str, Costs] = {}
    for (reader, file, what), rates in seen.items():
        found.setdefault(reader, {})[file, what] = statistics.median(rates[len(rates) // 2 :])
    return found


def shown(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "data" / "hfile")
    parser.add_argument("--passes", type=int, default=6)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    others = peers(given.folder, given.passes)
    own = ours(given.folder, given.passes)
    print("Entries a CPU second (how many times faster coldframe is):\n")
    print("| file | what | coldframe | " + " | ".join(others) + " |")
    print("| --- | --- | --- |" + " --- |" * len(others))
    for (name, what), rate in own.items():
        cells = []
        for rates in others.values():
            other = rates.get((name, what.split(",")[0]))
            cells.append(f"{shown(other)} ({rate / other:.1f} x)" if other else "-")
        print(f"| {name} | {what} | **{shown(rate)}** | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
