#!/usr/bin/env python3
"""Reads the same HFiles with coldframe, hudi-io 1.2 and HBase 2.6, side by side, in one run.

    python benches/hfile_peers.py [DIR] [--passes N]

DIR (benches/data/hfile) holds files of 1.5 million entries with values of 100 bytes in blocks of 64 KiB.
`benches/peers/hfile.sh` makes hudi-io and HBase write missing files (needs Maven and a JDK 17).

All figures are CPU time. For coldframe it is the time of the whole process. For the peers there are two
figures: the reading threads without the JVM's collector and compiler, and the whole process, which is what a
user pays. Medians; the first pass warms up the caches of coldframe, the first half warm up the JVM. `rust`
are the same look-ups without Python (`find`: the cells of a key without copying, as the peers return them;
`get`: as Arrow), if `cargo build --release -p coldframe-benches` was run.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import coldframe as cf

BENCHES = Path(__file__).resolve().parent
FILES = ("hudi_none", "hudi_gz", "hbase_none", "hbase_fast_diff")
ENTRIES = 1_500_000
LOOKUPS = 10_000
Costs = dict[tuple[str, str], float]


def key(i: int) -> str:
    return f"record-{i:012d}"


def cost(passes: int, entries: int, work: Callable[[], int]) -> float:
    """Entries per CPU second, by the median pass."""
    seconds = []
    for number in range(passes + 1):
        start = time.process_time()
        actual = work()
        if number:
            seconds.append(time.process_time() - start)
        if actual != entries:
            raise SystemExit(f"expected {entries} entries, found {actual}")
    return entries / statistics.median(seconds)


def scan(source: Path | bytes) -> int:
    return sum(batch.num_rows for batch in cf.open(source).to_batches())


def get(file: cf.File, keys: list[str]) -> int:
    return sum(file.get(key).num_rows for key in keys)


def get_many(file: cf.File, keys: list[str]) -> int:
    return int(file.get_many(keys).num_rows)


def get_many_fresh(path: Path, keys: list[str]) -> int:
    return get_many(cf.open(path), keys)


def ours(folder: Path, passes: int) -> Costs:
    costs: Costs = {}
    dice = random.Random(2)
    some = [key(dice.randrange(ENTRIES)) for _ in range(LOOKUPS)]
    many = [key(i * (ENTRIES // LOOKUPS)) for i in range(LOOKUPS)]
    for name in FILES:
        path = folder / f"{name}.hfile"

        # Large enough for all blocks that look-ups decode.
        file = cf.open(path, block_cache_bytes=1 << 30)
        costs[name, "scan"] = cost(passes, ENTRIES, partial(scan, path))
        costs[name, "scan, from memory"] = cost(passes, ENTRIES, partial(scan, path.read_bytes()))
        costs[name, "get"] = cost(passes, LOOKUPS, partial(get, file, some))
        costs[name, "get_many"] = cost(passes, LOOKUPS, partial(get_many, file, many))
        costs[name, "get_many, fresh"] = cost(passes, LOOKUPS, partial(get_many_fresh, path, many))
    return costs


def rust(folder: Path, passes: int) -> Costs:
    """The look-ups of `lookup`, a program of this folder; empty if it was not built."""
    program = BENCHES.parent / "target" / "release" / "lookup"
    if not program.exists():
        return {}
    seen: dict[tuple[str, str], list[float]] = {}
    for name in FILES:
        command = [str(program), str(folder / f"{name}.hfile"), "--passes", str(passes + 1)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        for entry in map(json.loads, done.stdout.splitlines()):
            if entry["pass"] > 1:
                seen.setdefault((name, f"{entry['what']}, rust"), []).append(
                    entry["entries"] / entry["cpu_s"]
                )
    return {at: statistics.median(rates) for at, rates in seen.items()}


@dataclass
class Peer:
    """Entries per CPU second: of the reading thread, and of the whole process."""

    thread: Costs = field(default_factory=dict)
    process: Costs = field(default_factory=dict)


def peers(folder: Path, passes: int) -> dict[str, Peer]:
    command = [str(BENCHES / "peers" / "hfile.sh"), str(folder), str(passes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    seen: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        at = (entry["reader"], entry["file"], entry["what"])
        process = max(entry["process_cpu_s"], entry["cpu_s"])
        seen.setdefault(at, []).append((entry["entries"] / entry["cpu_s"], entry["entries"] / process))
    by_reader: dict[str, Peer] = {}
    for (reader, file, what), rates in seen.items():
        warm = rates[len(rates) // 2 :]
        peer = by_reader.setdefault(reader, Peer())
        peer.thread[file, what] = statistics.median(thread for thread, _ in warm)
        peer.process[file, what] = statistics.median(process for _, process in warm)
    return by_reader


def shown(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


def peer_operation(what: str) -> str:
    """The peers' operation that corresponds to `what`."""
    operation = what.split(",")[0]
    return "get" if operation == "find" else operation


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=BENCHES / "data" / "hfile")
    parser.add_argument("--passes", type=int, default=6)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    others = peers(given.folder, given.passes)
    own = ours(given.folder, given.passes) | rust(given.folder, given.passes)
    print("Entries per CPU second (how many times faster coldframe is):\n")
    heads = [f"{name}, {part}" for name in others for part in ("its reading thread", "its process")]
    print("| file | what | coldframe | " + " | ".join(heads) + " |")
    print("| --- | --- | --- |" + " --- |" * len(heads))
    for (name, what), rate in sorted(own.items(), key=lambda item: FILES.index(item[0][0])):
        cells = []
        for peer in others.values():
            for rates in (peer.thread, peer.process):
                other = rates.get((name, peer_operation(what)))
                cells.append(f"{shown(other)} ({rate / other:.1f} x)" if other else "-")
        print(f"| {name} | {what} | **{shown(rate)}** | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
