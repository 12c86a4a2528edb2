#!/usr/bin/env python3
"""Measures the recovery of rows that a server had only in memory and in its write-ahead log when it died.

usage: wal_replay.py [DIR] [--cells N] [--rows N] [--passes N]

DIR (benches/data/wal) is filled if it is empty. HBase: the directory of tests/data, its log extended by edits
of five cells of 20 bytes each, as a region server appends them. Kudu: two tables of eight columns that a Kudu
server on loopback had in memory when it was killed, a tenth of the rows of one changed (needs Maven and a JDK
17). Each pass opens the directory anew; the median CPU time of the whole process, minus the time of a pass
without the log.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import struct
import sys
import time
from pathlib import Path

import coldframe as cf

BENCHES = Path(__file__).resolve().parent
FIXTURE = BENCHES.parent / "tests" / "data" / "hbase" / "files" / "orders"
REGION = b"17f101f018830c35f4b2923e1e48d06a"
AS_OF = 1_700_000_000_000


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def write_hbase(folder: Path, cells: int) -> None:
    shutil.copytree(FIXTURE, folder)
    [log] = (path for path in (folder / "WALs").rglob("*") if path.is_file())
    with log.open("ab") as out:
        for edit in range(cells // 5):
            # Rows are not written in order.
            row = b"o000%09d" % (edit * 7919 % (cells // 5))
            key = field(1, REGION) + field(2, b"shop:orders") + field(3, 10_000_000 + edit)
            key += field(4, AS_OF) + field(7, 5)
            out.write(varint(len(key)) + key)
            for column in range(5):
                of = struct.pack(">H", len(row)) + row + b"\1fcolumn%d" % column
                of += struct.pack(">qB", AS_OF - 1000, 4)
                value = b"%020d" % (edit * 5 + column)
                cell = struct.pack(">II", len(of), len(value)) + of + value
                out.write(struct.pack(">I", len(cell)) + cell)


def write_kudu(folder: Path, rows: int) -> None:
    sys.path.insert(0, str(BENCHES.parent / "tests" / "reference" / "cfile"))
    from cluster import free_port, java
    from killed import STILL, copy, start

    work = folder.with_name("kudu-server")
    server = work / "ts0"
    server.mkdir(parents=True)
    ports, master = [f"127.0.0.1:{free_port()}"], f"127.0.0.1:{free_port()}"
    with start(work, [server], STILL, ports, master) as cluster:
        java(master, "bench", rows)
        cluster.kill()
    copy(server, folder)
    shutil.rmtree(work)


def cost(path: Path, passes: int, **options: object) -> tuple[int, float]:
    """The number of rows, and the CPU seconds to read them."""
    seconds, rows = [], 0
    for _ in range(passes + 1):
        start = time.process_time()
        rows = sum(batch.num_rows for batch in cf.open(path, **options).to_batches())
        seconds.append(time.process_time() - start)
    return rows, statistics.median(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=BENCHES / "data" / "wal")
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--passes", type=int, default=5)
    given = parser.parse_args()
    hbase, kudu = given.folder / "hbase", given.folder / "kudu"
    if not hbase.exists():
        write_hbase(hbase, given.cells)
    if not kudu.exists():
        write_kudu(kudu, given.rows)
    print("| table | from the log | log | CPU s | per CPU second | without the log |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, path, options in (
        ("HBase", hbase, {"table": "shop:orders", "as_of": AS_OF}),
        ("Kudu, inserts", kudu, {"table": "plain"}),
        ("Kudu, inserts and updates", kudu, {"table": "updated"}),
    ):
        rows, seconds = cost(path, given.passes, **options)
        left, without = cost(path, given.passes, **options, wal=False)
        wal = cf.open(path, **options).metadata["wal"]
        size = wal.get("bytes", 0) / 1e6
        print(
            f"| {name} | {rows - left:,} | {size:.0f} MB | {seconds:.2f} | "
            f"{(rows - left) / (seconds - without) / 1e6:.2f} M | {without:.3f} s |"
        )


if __name__ == "__main__":
    main()
