#!/usr/bin/env python3
"""ORC to Parquet: a verified migration in process beside a copy by hand with pyarrow, which verifies nothing.

usage: migrate_shapes.py [--rows N] [--passes N] [--shapes a,b] [--seed N]

The shapes are those of `shapes.py`, as ORC with zstd and dictionaries by pyarrow. Each copy has a process of
its own, one processor and one thread; the figures are CPU seconds after the imports, peak megabytes of the
process, and the size of what was written: medians of the passes, in turn.

verified      `coldframe.pipeline.migrate`: decodes, fingerprints, writes, reads back, compares
unverified    the same without reading back
pyarrow       `ORCFile.read_stripe` into a `ParquetWriter`, stripe by stripe
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("verified", "unverified", "pyarrow")


def by_pyarrow(source: Path, target: Path) -> None:
    """Copies each file as one would write it by hand."""
    import pyarrow.orc as po
    import pyarrow.parquet as pq

    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        file = po.ORCFile(path)
        with pq.ParquetWriter(target / f"{path.stem}.parquet", file.schema, compression="zstd") as writer:
            for stripe in range(file.nstripes):
                writer.write_batch(file.read_stripe(stripe))


def by_coldframe(source: Path, target: Path, verify: bool) -> None:
    """Migrates the table."""
    from coldframe.pipeline import migrate
    from coldframe.pipeline.scheduling import InProcess

    report = migrate(InProcess(), source.parent, target, verify=verify)
    if report.exit_code:
        raise SystemExit(f"the migration ended with {report.exit_code}")


def copied(way: str, source: Path, target: Path) -> dict[str, float]:
    """Copies once in this process; its CPU seconds and peak megabytes."""
    import pyarrow as pa
    import pyarrow.orc
    import pyarrow.parquet

    import coldframe.pipeline  # noqa: F401

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    started = time.process_time()
    if way == "pyarrow":
        by_pyarrow(source, target)
    else:
        by_coldframe(source, target, verify=way == "verified")
    taken = time.process_time() - started
    # `getrusage` counts the process that started this one, too.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1024
    written = sum(path.stat().st_size for path in target.rglob("*.parquet")) / 1e6
    return {"seconds": taken, "peak": peak, "megabytes": written}


def write_source(name: str, rows: int, seed: int, folder: Path) -> None:
    """Writes a shape as one ORC file."""
    import numpy as np
    import pyarrow.orc as po
    from shape_tables import SHAPES

    folder.mkdir(parents=True)
    table = SHAPES[name](np.random.default_rng(seed), rows).table
    po.write_table(table, folder / "part-0.orc", compression="zstd", dictionary_key_size_threshold=0.8)


def main() -> None:
    """Prints a line for each shape and way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--shapes", default="orders,taxi")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        way, source, target = given.part
        print(json.dumps(copied(way, Path(source), Path(target))))
        return
    print(f"Seed {given.seed}, {given.rows:,} rows.\n")
    print("| shape | way | CPU seconds | of pyarrow's | peak MB | written MB |\n|---|---|---|---|---|---|")
    for name in given.shapes.split(","):
        with tempfile.TemporaryDirectory(prefix="coldframe-shapes-") as place:
            source = Path(place) / "source" / name
            write_source(name, given.rows, given.seed, source)
            figures: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for number in range(given.passes):
                for way in WAYS:
                    target = Path(place) / f"{way}-{number}"
                    command = [sys.executable, __file__, "--part", way, str(source), str(target)]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                    figures[way].append(json.loads(done.stdout.splitlines()[-1]))
            medians = {
                way: {key: statistics.median(figure[key] for figure in taken) for key in taken[0]}
                for way, taken in figures.items()
            }
            for way, median in medians.items():
                ratio = median["seconds"] / medians["pyarrow"]["seconds"]
                cells = [f"{median['seconds']:.2f}", f"{ratio:.2f}", f"{median['peak']:.0f}"]
                print(f"| {name} | {way} | {' | '.join(cells)} | {median['megabytes']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
