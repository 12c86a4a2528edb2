#!/usr/bin/env python3
"""Reads the same Kudu tables with coldframe and with Kudu's own programs and client, in one run.

usage: kudu_peers.py [DIR] [--passes N]

DIR (benches/data/kudu) holds two tables of 1,000,000 rows and 8 columns; if it is missing, a Kudu server on
loopback writes it first. In the table `updated`, a tenth of the rows was changed after it was written. Prints
milliseconds on one thread: CPU time of `kudu perf tablet_scan` (the first pass, with an empty block cache,
and later passes), wall time of the Java client (since the server works for it), CPU time of `kudu fs dump
cfile`, and CPU time of coldframe, which opens the directory anew in each pass.
"""

from __future__ import annotations

import argparse
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BENCHES = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCHES.parent / "tests" / "reference" / "cfile"))

from cluster import COMMON, Cluster, environment, free_port, java, programs  # noqa: E402

ROWS = 1_000_000
SERVER = [
    "--block_manager=file",
    "--flush_threshold_secs=20",
    "--maintenance_manager_polling_interval_ms=50",
    "--enable_rowset_compaction=false",
    "--enable_minor_delta_compaction=false",
    "--enable_major_delta_compaction=false",
]


def cluster(folder: Path) -> Cluster:
    """A cluster over the folder. The master must keep the address that it was formatted with."""
    kept = folder / "master-address"
    if not kept.exists():
        kept.write_text(f"127.0.0.1:{free_port()}", encoding="utf-8")
    flags = [f"--fs_wal_dir={folder / 'ts'}", *SERVER]
    return Cluster(folder, [flags], master=kept.read_text(encoding="utf-8"))


def write(folder: Path) -> None:
    (folder / "ts").mkdir(parents=True)
    with cluster(folder) as running:
        java(running.master, "bench", ROWS)


def java_client(folder: Path) -> list[float]:
    with cluster(folder) as running:
        printed = java(running.master, "scan", "plain")
    return [float(ms) for ms in re.findall(r"rows ([\d.]+) ms", printed)]


def local_flags(folder: Path) -> list[str]:
    """Flags for programs that read the files themselves. Such programs reject server flags; their log is
    parsed.
    """
    servers = ("webserver", "fsync", "minlog")
    common = [flag for flag in COMMON if not any(word in flag for word in servers)]
    return [f"--fs_wal_dir={folder / 'ts'}", "--block_manager=file", *common]


def tablet_scan(folder: Path, tablet: str, passes: int) -> list[float]:
    """CPU milliseconds of each pass, as the program reports them."""
    command = [programs() / "bin" / "kudu", "perf", "tablet_scan", tablet, f"--num_iters={passes + 1}"]
    done = subprocess.run(
        [*command, *local_flags(folder)], env=environment(), capture_output=True, text=True, check=True
    )
    times = re.findall(r"scanning tablet \(iter \d+\).*user ([\d.]+)s\s+sys ([\d.]+)s", done.stderr)
    return [1000 * (float(user) + float(system)) for user, system in times]


def cpu_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def ours(folder: Path, table: str, passes: int) -> list[float]:
    import coldframe as cf

    def read_all() -> None:
        rows = sum(batch.num_rows for batch in cf.open(folder / "ts", table=table).to_batches())
        if rows != ROWS:
            raise SystemExit(f"expected {ROWS} rows of {table}, found {rows}")

    return [cpu_of(read_all) for _ in range(passes)]


def dump_cfile(folder: Path, block: int) -> float:
    """CPU milliseconds of Kudu's program that prints a column, without its start-up."""
    command = [programs() / "bin" / "kudu", "fs", "dump", "cfile", str(block), *local_flags(folder)]

    def cpu(option: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*command, option], env=environment(), check=True, **quiet)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return max(cpu("--print_rows") - cpu("--noprint_rows"), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default=BENCHES / "data" / "kudu", type=Path)
    parser.add_argument("--passes", type=int, default=10)
    given = parser.parse_args()
    folder = given.folder.resolve()
    if not folder.exists():
        write(folder)
    import coldframe as cf

    tablets = {
        table: cf.open(folder / "ts", table=table).metadata["tablets"][0] for table in ("plain", "updated")
    }
    for table, tablet in tablets.items():
        kudu = tablet_scan(folder, tablet["tablet"], given.passes)
        mine = ours(folder, table, given.passes)
        warm = statistics.median(kudu[1:])
        own = statistics.median(mine)
        print(f"{table}: kudu perf tablet_scan  first {kudu[0]:.0f} ms, then {warm:.0f} ms")
        print(f"{table}: coldframe              first {mine[0]:.0f} ms, then {own:.0f} ms")
        print(f"{table}: {own / kudu[0]:.2f}x of Kudu's first pass, {own / warm:.2f}x of its later ones")
    blocks = tablets["plain"]["rowsets"][0]["columns"].values()
    dumped = sum(dump_cfile(folder, block) for block in blocks)
    print(f"kudu fs dump cfile, the columns of the first rowset: {dumped:.0f} ms")
    client = statistics.median(java_client(folder))
    print(f"Java client: {client:.0f} ms wall")


if __name__ == "__main__":
    main()
