#!/usr/bin/env python3
"""Has Kudu write the data directories of tests/data/kudu, and records what Kudu reads from them at four snapshots.

usage: make.py [DIR]     needs Maven, a JDK 17 and pyarrow; runs Kudu's own servers on loopback (Linux, x86-64)
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import pathlib
import shutil
import sys
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cluster import FLUSH, Cluster, java

WAIT_MS = 12_000
FILES = ["--block_manager=file"]
LOGS = ["--block_manager=log", "--log_container_preallocate_bytes=0"]
STILL = [
    "--enable_rowset_compaction=false",
    "--enable_minor_delta_compaction=false",
    "--enable_major_delta_compaction=false",
]
BUSY = [
    "--tablet_delta_store_minor_compact_max=2",
    "--compaction_minimum_improvement=0.0001",
    "--compaction_force_small_rowset_tradeoff=true",
    "--tablet_delta_store_major_compact_min_ratio=0.001",
]
# Each run: its name, the flags of its servers (`{}` is a server's folder), common flags, and the tables
# kept.
RUNS: list[tuple[str, list[list[str]], list[str], list[str]]] = [
    (
        "file_blocks",
        [
            [
                "--fs_wal_dir={}/wal",
                "--fs_metadata_dir={}/meta",
                "--fs_data_dirs={}/disk0,{}/disk1",
                *FILES,
                *STILL,
            ]
        ],
        [],
        ["events", "numbers"],
    ),
    (
        "log_blocks",
        [["--fs_wal_dir={}", *LOGS, *BUSY]],
        [],
        ["events"],
    ),
    ("encrypted", [["--fs_wal_dir={}", *LOGS, *STILL]], ["--encrypt_data_at_rest=true"], ["numbers"]),
    ("replicas", [["--fs_wal_dir={}", *LOGS, *STILL]] * 3, [], ["numbers"]),
]
SIMPLE = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "unixtime_micros": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}


def arrow_type(column: dict[str, Any]) -> pa.DataType:
    if column["type"] == "decimal":
        return pa.decimal128(column["precision"], column["scale"])
    return SIMPLE[column["type"]]


def typed(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(type_):
        return base64.b64decode(value).decode()
    if pa.types.is_binary(type_):
        return base64.b64decode(value)
    if pa.types.is_date(type_):
        return dt.date.fromisoformat(value)
    return decimal.Decimal(value) if pa.types.is_decimal(type_) else value


def truth(lines: pathlib.Path) -> tuple[int, pa.Table]:
    """The snapshot, and the rows that Kudu read at it."""
    head, *rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    types = [arrow_type(column) for column in head["columns"]]
    arrays = [pa.array([typed(row[i], t) for row in rows], t) for i, t in enumerate(types)]
    return head["snapshot"], pa.table(arrays, names=[column["name"] for column in head["columns"]])


def copy(server: pathlib.Path, to: pathlib.Path) -> None:
    """Copies a server's files without its log (which holds only flushed rows) and without locks."""
    shutil.copytree(server, to, ignore=shutil.ignore_patterns("wals", "*.lock", "*.log", "*.kudutmp*"))
    for folder in sorted(to.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def make(
    name: str, servers: list[list[str]], common: list[str], tables: list[str], out: pathlib.Path
) -> list[Any]:
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        folders = [work / f"ts{i}" for i in range(len(servers))]
        for folder in folders:
            folder.mkdir()
        flags = [
            [*FLUSH, *(flag.format(folder, folder) for flag in template)]
            for template, folder in zip(servers, folders, strict=True)
        ]
        with Cluster(work, flags, common) as cluster:
            java(cluster.master, "fixtures", work, WAIT_MS, len(servers), *tables)
        if len(folders) == 1:
            copy(folders[0], out / name)
        else:
            for folder in folders:
                copy(folder, out / name / folder.name)
        for table in tables:
            for s in range(1, 5):
                snapshot, rows = truth(work / f"{table}.s{s}.jsonl")
                file = f"{name}.{table}.s{s}.truth.parquet"
                pq.write_table(
                    rows, out / file, compression="zstd", use_dictionary=False, write_statistics=False
                )
                opened: dict[str, Any] = {"table": table}
                last = s == 4
                entries.append(
                    {
                        "file": name,
                        "truth": file,
                        "open": opened if last else opened | {"snapshot": snapshot},
                        "unordered": True,
                        "rows": rows.num_rows,
                        "snapshot": snapshot,
                        "writer": "Apache Kudu 1.17.1",
                        "options": [*servers[0], *common],
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
    default = pathlib.Path(__file__).resolve().parents[2] / "data" / "kudu"
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
