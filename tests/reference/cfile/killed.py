#!/usr/bin/env python3
"""Has Kudu write the data directories of tests/data/kudu_wal: of servers that were killed with rows in memory. What Kudu reads
when it is started on a copy of such a directory is the truth.

usage: killed.py [DIR]     needs Maven, a JDK 17 and pyarrow; runs Kudu's own servers on loopback (Linux, x86-64)
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys
import tempfile
import time
from typing import Any

import pyarrow.parquet as pq
from cluster import FLUSH, Cluster, free_port, java
from make import truth

LOGS = ["--fs_wal_dir={}", "--block_manager=log", "--log_container_preallocate_bytes=0"]
STILL = ["--enable_maintenance_manager=false", "--log_preallocate_segments=false"]
# For transactions over several tablets, which are experimental in Kudu.
TRANSACTIONS = ["--txn_manager_enabled=true", "--txn_manager_status_table_num_replicas=1"]
# Each run: its name, the number of servers, the flags that all its servers get, its last phase.
RUNS: list[tuple[str, int, list[str], int]] = [
    ("lz4", 1, ["--log_segment_size_mb=1"], 3),
    ("plain", 1, ["--log_compression_codec=no_compression"], 1),
    ("zlib", 1, ["--log_compression_codec=zlib"], 1),
    ("snappy_encrypted", 1, ["--log_compression_codec=snappy", "--encrypt_data_at_rest=true"], 1),
    ("replicas", 3, [], 1),
    ("transactions", 1, ["--enable_txn_system_client_init=true"], 3),
]
TABLES = ["ledger", "trips", "notes"]


def copy(server: pathlib.Path, to: pathlib.Path) -> None:
    """Copies a server's files, without locks and without files that only the server's own start needs."""
    shutil.copytree(server, to, ignore=shutil.ignore_patterns("*.lock", "*.log", "*.kudutmp*", "index.*"))


def start(
    work: pathlib.Path, servers: list[pathlib.Path], flags: list[str], ports: list[str], master: str
) -> Cluster:
    every = [[flag.format(folder) for flag in LOGS] + flags for folder in servers]
    return Cluster(work, every, [], master=master, addresses=ports, master_flags=TRANSACTIONS)


def make(name: str, count: int, flags: list[str], last: int, out: pathlib.Path) -> list[Any]:
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        servers = [work / f"ts{i}" for i in range(count)]
        for folder in servers:
            folder.mkdir()
        ports, master = [f"127.0.0.1:{free_port()}" for _ in servers], f"127.0.0.1:{free_port()}"
        with start(work, servers, [*FLUSH, *flags], ports, master):
            java(master, "killed", 0, count)
            time.sleep(12)
        snapshots = []
        with start(work, servers, [*STILL, *flags], ports, master) as cluster:
            if name == "transactions":
                time.sleep(3)
                snapshots += map(int, java(master, "transactions").split())
            for phase in range(len(snapshots) + 1, last + 1):
                snapshots.append(int(java(master, "killed", phase, count)))
            cluster.kill()
        for folder in servers:
            copy(folder, out / name if count == 1 else out / name / folder.name)
        with start(work, servers, [*STILL, *flags], ports, master):
            time.sleep(5)
            tables = TABLES[:1] if name == "transactions" else TABLES
            for table in tables:
                for s, snapshot in enumerate(snapshots, 1):
                    java(master, "dump", table, snapshot, work / f"{table}.s{s}.jsonl")
        for table in tables:
            for s in range(1, last + 1):
                snapshot, rows = truth(work / f"{table}.s{s}.jsonl")
                file = f"{name}.{table}.s{s}.truth.parquet"
                pq.write_table(
                    rows, out / file, compression="zstd", use_dictionary=False, write_statistics=False
                )
                opened: dict[str, Any] = {"table": table}
                entries.append(
                    {
                        "file": name,
                        "truth": file,
                        "open": opened if s == last else opened | {"snapshot": snapshot},
                        "unordered": True,
                        "rows": rows.num_rows,
                        "snapshot": snapshot,
                        "writer": "Apache Kudu 1.17.1, killed",
                        "options": [*STILL, *flags],
                    }
                )
    return entries


def main(out: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        files = pathlib.Path(scratch) / "files"
        files.mkdir()
        entries = [entry for run in RUNS for entry in make(*run, files)]
        (files / "MANIFEST.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(out / "files", ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.move(files, out / "files")


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parents[2] / "data" / "kudu_wal"
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
