#!/usr/bin/env python3
"""The Spark connector and the Python source over formats that Spark has no reader for: CPU seconds.

usage: spark_formats.py [--rows N] [--passes N] [--folder DIR] [--hbase DIR] [--kudu DIR]

A Redfile like TPC-H's lineitem (dates as days) and an HFile with a cell for each row are written here.
`--hbase` is a root directory as hbase_peers.py makes it, `--kudu` a server's directory as kudu_peers.py makes
it; a format without its directory is left out. Figures are as in spark_peers.py: the processor time of the
JVM and of all Python workers below it, after a warm-up, the best of the passes on local[2], alternating
between the sources.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from spark_peers import compared, line, lineitem, session

import coldframe as cf

SOURCES = ("coldframe", "coldframe_python")


@dataclass(frozen=True)
class Read:
    """A table and its queries, in which `{t}` is the table."""

    path: Path
    column: str
    """The column that is read alone."""
    filter: str
    """A condition that few rows pass."""
    options: dict[str, str] = field(default_factory=dict)

    def queries(self) -> dict[str, str]:
        return {
            "all columns": "select * from {t}",
            "one column": f"select max({self.column}) from {{t}} where {self.column} is not null",
            "count(*)": "select count(*) from {t}",
            "few rows": f"select * from {{t}} where {self.filter}",
        }


def redfile(folder: Path, rows: int) -> Read:
    """The columns of lineitem; dates become integers, as the format has no dates."""
    path = folder / f"lineitem-{rows}.redfile"
    if not path.exists():
        table = lineitem(rows)
        days = [pa.int32() if pa.types.is_date32(kind) else kind for kind in table.schema.types]
        cf.write(
            table.cast(pa.schema(list(zip(table.column_names, days, strict=True)))), path, format="redfile"
        )
    return Read(path, "l_partkey", f"l_orderkey between {rows * 2} and {rows * 2 + rows // 250}")


def hfile(folder: Path, rows: int) -> Read:
    """A cell for each row, with a value of 20 bytes."""
    path = folder / f"cells-{rows}.hfile"
    if not path.exists():
        keys = [f"row-{number:09}" for number in range(rows)]
        values = np.random.default_rng(7).bytes(20 * rows)
        cells = pa.table(
            {
                "row": keys,
                "family": ["f"] * rows,
                "qualifier": ["q"] * rows,
                "timestamp": pa.array(np.full(rows, 1_700_000_000_000)),
                "value": [values[at : at + 20] for at in range(0, len(values), 20)],
            }
        )
        cf.write(cells, path, format="hfile", codec="snappy")
    half, some = rows // 2, rows // 1000
    return Read(path, "timestamp", f"row >= X'{key(half)}' and row < X'{key(half + some)}'")


def key(number: int) -> str:
    """The row's key in hexadecimal digits."""
    return f"row-{number:09}".encode().hex()


def hbase(root: Path) -> Read:
    """The latest cells of the root's table."""
    table = cf.open(root, table="bench")
    keys = table.read(["row"], limit=500)["row"].to_pylist()
    return Read(
        root, "timestamp", f"row between X'{keys[0].hex()}' and X'{keys[-1].hex()}'", {"table": "bench"}
    )


def kudu(directory: Path) -> Read:
    """The table without updates."""
    table = cf.open(directory, table="plain")
    first = table.schema.names[0]
    least = table.read([first], limit=1)[first][0].as_py()
    return Read(directory, first, f"{first} between {least} and {least + 1000}", {"table": "plain"})


def view(spark: SparkSession, source: str, name: str, read: Read) -> str:
    """Creates a view of a table by a source, and returns its name."""
    rows = spark.read.format(source).options(split_bytes="32m", **read.options).load(str(read.path))
    rows.createOrReplaceTempView(f"{name}_{source}")
    return f"{name}_{source}"


def main() -> None:
    """Prints a line for each query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--hbase", type=Path)
    parser.add_argument("--kudu", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    reads = {"redfile": redfile(folder, given.rows), "hfile": hfile(folder, given.rows)}
    if given.hbase:
        reads["hbase"] = hbase(given.hbase)
    if given.kudu:
        reads["kudu"] = kudu(given.kudu)
    spark = session(folder)
    for name, read in reads.items():
        views = {source: view(spark, source, name, read) for source in SOURCES}
        for query, sql in read.queries().items():
            print(line(name, query, compared(spark, views, sql, given.passes, warm=1)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
