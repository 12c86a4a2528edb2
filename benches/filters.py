#!/usr/bin/env python3
"""The savings of a filter in RCFile, Redfile, HFile and CFile: CPU milliseconds on one thread.

usage: filters.py [--rows N] [--passes N] [--only WORD] [--json]

The table has six columns: a sorted key, a random key, a double, a price, words with few distinct values and
text with many. An HFile has the cells of a table of five columns with values of about 20 bytes, a CFile one
column and its ordinals. All columns of the rows that pass are decoded to Arrow. Files and filters take turns;
a figure is the median of the passes. `--json` prints a line for each file, to compare two builds.
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
Options = dict[str, Any]
# The table, the format, how it is written, how it is read.
FILES: dict[str, tuple[str, str, Options, Options]] = {
    "rcfile, text": ("rows", "rcfile", {"serde": "text"}, {"serde": "text", "schema": DDL}),
    "rcfile, text, zlib": (
        "rows",
        "rcfile",
        {"serde": "text", "codec": "zlib"},
        {"serde": "text", "schema": DDL},
    ),
    "rcfile, binary": ("rows", "rcfile", {"serde": "binary"}, {"serde": "binary", "schema": DDL}),
    "redfile": ("rows", "redfile", {"codec": "none"}, {}),
    "redfile, snappy": ("rows", "redfile", {"codec": "snappy"}, {}),
    "hfile": ("cells", "hfile", {"codec": "none"}, {}),
    "hfile, gz": ("cells", "hfile", {"codec": "gz"}, {}),
    "hfile, fast_diff": ("cells", "hfile", {"codec": "none", "encoding": "fast_diff"}, {}),
    "cfile, int64": ("numbers", "cfile", {}, {"ordinal": True}),
    "cfile, dictionary": ("words", "cfile", {}, {"ordinal": True}),
}


def table(rows: int) -> pa.Table:
    """The six columns."""
    random = np.random.default_rng(11)
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


def cells(rows: int) -> pa.Table:
    """Cells of five columns, in their order."""
    random = np.random.default_rng(12)
    count = rows // 5 * 5
    return pa.table(
        {
            "row": pa.array([f"row {i // 5:09}".encode() for i in range(count)]),
            "family": pa.array([b"cf"] * count),
            "qualifier": pa.array([f"column {i % 5}".encode() for i in range(count)]),
            "timestamp": pa.array(random.integers(0, 1_000_000, count)),
            "type": pa.array(np.full(count, 4, "u1")),
            "value": pa.array([f"{a:x} {b:x}".encode() for a, b in random.integers(0, 2**40, (count, 2))]),
        }
    )


def tables(rows: int) -> dict[str, pa.Table]:
    """The tables by their names in `FILES`."""
    six = table(rows)
    return {
        "rows": six,
        "cells": cells(rows),
        "numbers": six.select(["key"]).rename_columns(["value"]),
        "words": six.select(["word"]).rename_columns(["value"]),
    }


def filters(name: str, rows: int) -> dict[str, Any]:
    """Filters by name."""
    middle = rows * 2 // 5
    if name == "cells":
        first, last = (f"row {row // 5:09}".encode() for row in (middle, middle + rows // 1000))
        return {
            "all rows": None,
            "0.1 %, random key": pc.field("timestamp") < 1_000,
            "0.1 %, sorted key": (pc.field("row") >= first) & (pc.field("row") < last),
            "one text": pc.field("value") == b"none has it",
            "half": pc.field("timestamp") < 500_000,
        }
    ordinals = (pc.field("ordinal") >= middle) & (pc.field("ordinal") < middle + rows // 1000)
    if name == "numbers":
        return {
            "all rows": None,
            "0.1 %, random key": pc.field("value") < 1_000,
            "0.1 %, sorted key": ordinals,
            "half": pc.field("value") < 500_000,
        }
    if name == "words":
        return {
            "all rows": None,
            "0.1 %, sorted key": ordinals,
            "one text": pc.field("value") == "none has it",
            "0.2 %, a word": pc.field("value") == "word number 17",
        }
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
    some = tables(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        for name, (what, form, written, opened) in FILES.items():
            if args.only not in name:
                continue
            path = Path(folder) / name.replace(", ", ".")
            cf.write(some[what], path, format=form, **written)
            taken = race(str(path), form, opened, filters(what, args.rows), args.passes)
            if args.json:
                print(json.dumps({"file": name, **taken}), flush=True)
            else:
                times = "  ".join(f"{what} {ms:6.1f}" for what, ms in taken.items())
                print(f"{name:<20} {times}", flush=True)


def race(path: str, form: str, opened: dict[str, Any], some: dict[str, Any], passes: int) -> dict[str, float]:
    """The median milliseconds of each filter, taking turns; the first two rounds are warm-up."""
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
