#!/usr/bin/env python3
"""Has Kudu write the data directories of tests/data/kudu_logr, whose containers' records are in RocksDB (`--block_manager=logr`).
What Kudu reads when it is started on a copy of such a directory is the truth.

usage: logr.py [DIR]     needs Maven, a JDK 17 and pyarrow; runs Kudu's own servers on loopback (Linux, x86-64)
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import tempfile
import time
from typing import Any

import cluster
import pyarrow.parquet as pq
from cluster import FLUSH, Cluster, free_port, java
from make import BUSY, truth

cluster.VERSION = "1.18.1"
BLOCKS = ["--fs_wal_dir={}", "--block_manager=logr", "--log_container_preallocate_bytes=0"]
STILL = ["--enable_maintenance_manager=false", "--log_preallocate_segments=false"]
QUICK = ["--log_preallocate_segments=false", "--log_segment_size_mb=1"]
# RocksDB already merges two tables of its upper level, and the server's own operations come slowly, so that the directory stays
# small.
OWN = [
    "--log_container_rdb_level0_file_num_compaction_trigger=2",
    "--maintenance_manager_polling_interval_ms=900",
]
NAME = "killed"
TABLES = ["numbers"]
# Files that only a running server or a person needs.
LEFT_OUT = ["*.lock", "LOCK", "LOG", "LOG.old.*", "OPTIONS-*", "IDENTITY", "*.kudutmp*", "index.*"]


def start(work: pathlib.Path, server: pathlib.Path, flags: list[str], port: str, master: str) -> Cluster:
    every = [[flag.format(server) for flag in BLOCKS] + flags]
    return Cluster(work, every, [], master=master, addresses=[port])


def make(out: pathlib.Path) -> list[Any]:
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        server = work / "ts"
        server.mkdir()
        port, master = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        snapshots = []
        # When the server starts again, RocksDB writes the contents of its log to a table.
        for phase in range(4):
            with start(work, server, [*FLUSH, *BUSY, *QUICK, *OWN], port, master) as servers:
                snapshots.append(int(java(master, "logr", phase)))
                time.sleep(6)
                if phase == 3:
                    # These rows are only in memory and in Kudu's own log.
                    snapshots.append(int(java(master, "logr", phase + 1)))
                    servers.kill()
        shutil.copytree(server, out / NAME, ignore=shutil.ignore_patterns(*LEFT_OUT))
        with start(work, server, STILL, port, master):
            time.sleep(5)
            for table in TABLES:
                for s, snapshot in enumerate(snapshots, 1):
                    java(master, "dump", table, snapshot, work / f"{table}.s{s}.jsonl")
        for table in TABLES:
            for s in range(1, len(snapshots) + 1):
                snapshot, rows = truth(work / f"{table}.s{s}.jsonl")
                file = f"{NAME}.{table}.s{s}.truth.parquet"
                pq.write_table(
                    rows, out / file, compression="zstd", use_dictionary=False, write_statistics=False
                )
                opened: dict[str, Any] = {"table": table}
                last = s == len(snapshots)
                entries.append(
                    {
                        "file": NAME,
                        "truth": file,
                        "open": opened if last else opened | {"snapshot": snapshot},
                        "unordered": True,
                        "rows": rows.num_rows,
                        "snapshot": snapshot,
                        "writer": f"Apache Kudu {cluster.VERSION}, killed",
                        "options": [*BLOCKS, *BUSY, *QUICK, *OWN],
                    }
                )
    return entries


def main(out: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        files = pathlib.Path(scratch) / "files"
        files.mkdir()
        entries = make(files)
        (files / "MANIFEST.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(out / "files", ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.move(files, out / "files")


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parents[2] / "data" / "kudu_logr"
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
