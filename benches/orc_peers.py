#!/usr/bin/env python3
"""ORC side by side with pyarrow.orc (the C++ reader and writer): one process, one core, CPU time.

usage: orc_peers.py [--rows N] [--passes N] [--only types|table|write|select] [--folder DIR]

table   all 16 columns of a table like TPC-H's lineitem, by codec
types   one column per file, no codec
select  0.1 % of the rows of the table by a filter on its sorted key, compared with reading all
write   the table, by codec: time and bytes

pyarrow writes the files to read. Both readers take turns; a figure is the median of the passes.
"""

from __future__ import annotations

import argparse
import decimal
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
import pyarrow.compute as pc
import pyarrow.orc as po

import coldframe as cf

CODECS = ["uncompressed", "snappy", "lz4", "zstd", "zlib"]
COMMENT = ["carefully", "final", "deposits", "sleep", "quickly", "against", "ironic", "accounts", "furiously"]


def table(rows: int) -> pa.Table:
    """Sixteen columns as in lineitem: keys, four decimals, flags, dates, and a comment."""
    random = np.random.default_rng(1)
    order = np.cumsum(random.integers(0, 2, rows)) * 4 + 1

    def chosen(choices: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, len(choices), rows).astype("i4")), choices
        ).cast(pa.string())

    def cents(low: int, high: int) -> pa.Array:
        whole = pa.array(random.integers(low, high, rows)).cast(pa.decimal128(19, 0))
        hundredth = pa.scalar(decimal.Decimal("0.01"), pa.decimal128(3, 2))
        return pc.multiply(whole, hundredth).cast(pa.decimal128(15, 2))

    def days() -> pa.Array:
        return pa.array(random.integers(8036, 10561, rows).astype("i4")).cast(pa.date32())

    comments = [chosen(COMMENT) for _ in range(4)]
    return pa.table(
        {
            "orderkey": pa.array(order),
            "partkey": pa.array(random.integers(1, 200_000, rows)),
            "suppkey": pa.array(random.integers(1, 10_000, rows)),
            "linenumber": pa.array((np.arange(rows) % 7 + 1).astype("i4")),
            "quantity": cents(100, 5000),
            "extendedprice": cents(90_000, 10_000_000),
            "discount": cents(0, 10),
            "tax": cents(0, 8),
            "returnflag": chosen(["A", "N", "R"]),
            "linestatus": chosen(["F", "O"]),
            "shipdate": days(),
            "commitdate": days(),
            "receiptdate": days(),
            "shipinstruct": chosen(["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"]),
            "shipmode": chosen(["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]),
            "comment": pc.binary_join_element_wise(*comments, " "),
        }
    )


def columns(rows: int) -> dict[str, pa.Array]:
    """A column of each type, and one of integers for each encoding."""
    random = np.random.default_rng(2)
    seconds = random.integers(0, 2**31, rows)
    wide = np.where(
        random.random(rows) < 0.02, random.integers(0, 2**40, rows), random.integers(0, 200, rows)
    )
    texts = pa.array(random.integers(0, 2**40, rows)).cast(pa.string())
    some = pa.array(random.random(rows) < 0.1)
    numbers = pa.array(random.integers(-500, 500, rows))
    return {
        "boolean": pa.array(random.random(rows) < 0.3),
        "tinyint": pa.array(random.integers(-128, 128, rows).astype("i1")),
        "smallint": pa.array(random.integers(-(2**15), 2**15, rows).astype("i2")),
        "int": pa.array(random.integers(-(2**31), 2**31, rows).astype("i4")),
        "bigint, 10 bits": numbers,
        "bigint, 64 bits": pa.array(random.integers(-(2**62), 2**62, rows)),
        "bigint, rising": pa.array(np.cumsum(random.integers(0, 9, rows))),
        "bigint, repeated": pa.array(np.repeat(random.integers(0, 9, rows // 20 + 1), 20)[:rows]),
        "bigint, patched": pa.array(wide),
        "bigint, nulls": pc.if_else(some, pa.scalar(None, pa.int64()), numbers),
        "float": pa.array(random.standard_normal(rows).astype("f4")),
        "double": pa.array(random.standard_normal(rows)),
        "string, direct": texts,
        "string, dictionary": pa.array(random.integers(0, 1000, rows)).cast(pa.string()),
        "binary": texts.cast(pa.binary()),
        "date": pa.array(random.integers(0, 20_000, rows).astype("i4")).cast(pa.date32()),
        "timestamp": pa.array(seconds * 10**9 + random.integers(0, 10**6, rows) * 1000).cast(
            pa.timestamp("ns")
        ),
        "decimal(15,2)": pa.array(random.integers(-(10**9), 10**9, rows))
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(38, 2))
        .cast(pa.decimal128(15, 2)),
        "list<int>": pa.ListArray.from_arrays(
            pa.array(np.arange(0, rows + 1, 4).astype("i4")),
            pa.array(random.integers(0, 99, rows).astype("i4")),
        ),
        "struct": pa.StructArray.from_arrays([numbers, texts], ["a", "b"]),
    }


def race(passes: int, **runners: Callable[[], Any]) -> dict[str, float]:
    """The median CPU seconds of each runner. The runners alternate; the first two rounds, which fill
    allocators, do not count.
    """
    taken: dict[str, list[float]] = {name: [] for name in runners}
    for number in range(passes + 2):
        for name, run in runners.items():
            start = time.process_time()
            run()
            if number > 1:
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def report(what: str, rows: int, seconds: dict[str, float], **more: Any) -> None:
    line: dict[str, Any] = {"what": what}
    for name, time_taken in seconds.items():
        line[name] = round(rows / max(time_taken, 1e-9) / 1e6, 2)
    line["ratio"] = round(seconds["pyarrow"] / max(seconds["coldframe"], 1e-9), 2)
    print(json.dumps(line | more), flush=True)


def read_both(path: Path, what: str, rows: int, passes: int, **more: Any) -> None:
    ours = cf.open(path, threads=1).read()
    theirs = po.ORCFile(path).read()
    assert ours.num_rows == theirs.num_rows == rows
    assert ours.equals(theirs.cast(ours.schema)), what
    del ours, theirs
    seconds = race(
        passes,
        coldframe=lambda: cf.open(path, threads=1).read(),
        pyarrow=lambda: po.ORCFile(path).read(),
    )
    report(what, rows, seconds, bytes=path.stat().st_size, **more)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--only", choices=["types", "table", "write", "select"])
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    print("# million rows per CPU second; ratio: how many times faster coldframe is")
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        lines = table(given.rows) if given.only != "types" else None
        if lines is not None:
            for codec in CODECS:
                path = folder / f"table_{codec}.orc"
                if not path.exists():
                    po.write_table(lines, path, compression=codec)
                if given.only in (None, "table"):
                    read_both(path, f"table, {codec}", given.rows, given.passes)
            if given.only in (None, "select"):
                select(folder / "table_zstd.orc", lines, given.passes)
            if given.only in (None, "write"):
                write(lines, folder, given.passes)
        if given.only in (None, "types"):
            for name, column in columns(given.rows).items():
                path = folder / "column.orc"
                po.write_table(pa.table({"c": column}), path)
                read_both(path, name, len(column), given.passes)


def select(path: Path, lines: pa.Table, passes: int) -> None:
    """A thousandth of the rows: both readers filter, but only coldframe skips units."""
    rows = lines.num_rows
    keys = lines["orderkey"]
    low, high = keys[rows // 2].as_py(), keys[rows // 2 + rows // 1000].as_py()
    few = [("orderkey", ">=", low), ("orderkey", "<", high)]
    chosen = (pc.field("orderkey") >= low) & (pc.field("orderkey") < high)
    expected = cf.open(path).read().filter(chosen)
    assert cf.open(path).read(filter=few).equals(expected)
    seconds = race(
        passes,
        coldframe=lambda: cf.open(path, threads=1).read(filter=few),
        pyarrow=lambda: po.ORCFile(path).read().filter(chosen),
        all=lambda: cf.open(path, threads=1).read(),
    )
    faster = round(seconds.pop("all") / seconds["coldframe"], 1)
    report("select 0.1 %, zstd", rows, seconds, times_faster_than_all=faster)


def write(lines: pa.Table, folder: Path, passes: int) -> None:
    ours, theirs = folder / "ours.orc", folder / "theirs.orc"

    def by(codec: str) -> dict[str, float]:
        return race(
            passes,
            coldframe=lambda: cf.write(lines, ours, format="orc", codec=codec),
            pyarrow=lambda: po.write_table(lines, theirs, compression=codec),
        )

    for codec in CODECS:
        seconds = by(codec)
        sizes = {"bytes": ours.stat().st_size, "bytes_pyarrow": theirs.stat().st_size}
        report(f"write, {codec}", lines.num_rows, seconds, **sizes)


if __name__ == "__main__":
    main()
