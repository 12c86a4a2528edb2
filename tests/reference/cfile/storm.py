"""Kills Kudu's servers while they are written to, and compares what coldframe reads with what Kudu reads after a restart.

python storm.py [ROUNDS]      needs Linux, Maven (for Kudu's programs), a JDK 17 and coldframe installed
"""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
from cluster import FLUSH, HERE, classpath, free_port, java
from killed import STILL, copy, start
from make import truth

import coldframe as cf


def rows(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def main(rounds: int) -> int:
    wrong, dice = 0, random.Random(rounds)
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        server = work / "ts0"
        server.mkdir()
        ports, master = [f"127.0.0.1:{free_port()}"], f"127.0.0.1:{free_port()}"
        flags = ["--log_segment_size_mb=1"]
        with start(work, [server], [*FLUSH, *flags], ports, master):
            java(master, "killed", 0, 1)
        for at in range(rounds):
            # In every second round, memory is flushed meanwhile.
            busy = [*FLUSH, "--flush_threshold_secs=1"] if at % 2 else STILL
            with start(work, [server], [*busy, *flags], ports, master) as cluster:
                time.sleep(3)
                command = [
                    "java",
                    "-cp",
                    ":".join(classpath()),
                    str(HERE / "Main.java"),
                    master,
                    "storm",
                    str(at),
                ]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as storm:
                    assert storm.stdout is not None
                    storm.stdout.readline()
                    time.sleep(dice.uniform(0.3, 4))
                    cluster.kill()
                    storm.kill()
            left = work / f"copy{at}"
            copy(server, left)
            with start(work, [server], [*STILL, *flags], ports, master):
                time.sleep(4)
                java(master, "dump", "ledger", 0, work / "rows.jsonl")
            expected = rows(truth(work / "rows.jsonl")[1])
            file = cf.open(left, table="ledger")
            actual = rows(file.read())
            log = file.metadata["wal"]
            same = actual == expected and file.num_rows == len(expected)
            wrong += not same
            print(
                at,
                "same" if same else "DIFFERENT",
                len(expected),
                len(actual),
                file.num_rows,
                log,
                flush=True,
            )
            if not same:
                print(
                    [r for r in actual if r not in expected][:3], [r for r in expected if r not in actual][:3]
                )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 6))
