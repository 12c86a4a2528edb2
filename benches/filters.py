#!/usr/bin/env python3
"""What a filter saves in formats without statistics: RCFile and Redfile, CPU milliseconds on one thread.

usage: filters.py [--rows N] [--passes N] [--only WORD] [--json]

The table has six columns: a sorted key, a random key, a double, a price, words with few and text with many
distinct values. All columns of the passing rows are decoded to Arrow. Files and filters take turns; a figure
is the median of the passes. `--json` prints a line per file, for comparing two builds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import coldframe as cf

DDL = "id bigint, key bigint, measure double, price bigint, word string, comment string"
FILES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "rcfile, text": ("rcfile", {"serde": "text"}, {"serde": "text", "schema": DDL}),
    "rcfile, text, zlib": ("rcfile", {"serde": "text", "codec": "zlib"}, {"serde": "text", "schema": DDL}),
    "rcfile, binary": ("rcfile", {"serde": "binary"}, {"serde": "binary", "schema": DDL}),
    "redfile": ("redfile", {"codec": "none"}, {}),
    "redfile, snappy": ("redfile", {"codec": "snappy"}, {}),
}


def table(rows: int) -> pa.Table:
    """The six columns."""
    random = np.random.default_rng(11)
    words = pa.array([f"word number {i}" for i in range(500)])
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "key": pa.array(random.integers(0, 1_000_000, rows)),
            "measure": pa.array(random.standard_normal(rows)),
            "price": pa.array(random.integers(100, 10_000_000, rows)),
            "word": words.take(pa.array(random.integers(0, len(words), rows))),
            "comment": pa.array([f"{a:x} {b:x}" for a, b in random.integers(0, 2**40, (rows, 2))]),
        }
    )


def filters(rows: int) -> dict[str, Any]:
    """Filters by name."""
    middle = rows * 2 // 5
    return {
        "all rows": None,
        "0.1 %, random key": pc.field("key") < 1_000,
        "0.1 %, sorted key": (pc.field("id") >= middle) & (pc.field("id") < middle + rows // 1000),
        "one text": pc.field("comment") == "none has it",
        "half": pc.field("measure") > 0.0,
    }


def main() -> None:
    """Writes the files and reads each with each filter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--passes", type=int, default=11)
    parser.add_argument("--only", default="", help="a word of a file's name")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = table(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        for name, (form, written, opened) in FILES.items():
            if args.only not in name:
                continue
            path = Path(folder) / name.replace(", ", ".")
            cf.write(rows, path, format=form, **written)
            taken = race(str(path), form, opened, filters(args.rows), args.passes)
            if args.json:
                print(json.dumps({"file": name, **taken}), flush=True)
            else:
                print(
                    f"{name:<20} " + "  ".join(f"{what} {ms:6.1f}" for what, ms in taken.items()), flush=True
                )


def race(path: str, form: str, opened: dict[str, Any], some: dict[str, Any], passes: int) -> dict[str, float]:
    """The median milliseconds of each filter, taking turns; the first two rounds do not count."""
    taken: dict[str, list[float]] = {what: [] for what in some}
    for number in range(passes + 2):
        for what, condition in some.items():
            start = time.process_time()
            cf.open(path, format=form, threads=1, **opened).read(filter=condition)
            if number > 1:
                taken[what].append((time.process_time() - start) * 1000)
    return {what: round(statistics.median(times), 1) for what, times in taken.items()}


if __name__ == "__main__":
    main()
