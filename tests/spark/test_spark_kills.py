"""Kills (SIGKILL) driver, JVM, worker or all at a random moment: `COLDFRAME_SPARK_KILLS=50` for a soak."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import coldframe as cf
from coldframe.pipeline import audit, migrate
from coldframe.pipeline.scheduling import InProcess

KILLS = int(os.environ.get("COLDFRAME_SPARK_KILLS", "3"))
SEED = int(os.environ.get("COLDFRAME_SEED", "13"))
WHOM = ("jvm", "worker", "all", "driver")
FILES = 60
ROWS = 50


def make(source: Path) -> list[int]:
    """Writes small files and a large file of many parts; returns all values."""
    (source / "t").mkdir(parents=True)
    for number in range(FILES):
        rows = range(number * ROWS, number * ROWS + ROWS)
        cf.write(pa.table({"a": rows}), source / "t" / f"{number:03d}", format="orc")
    rows = range(FILES * ROWS, FILES * ROWS + 20_000)
    cf.write(pa.table({"a": rows}), source / "t" / "large", format="orc", stripe_rows=1000)
    return list(range(FILES * ROWS + 20_000))


def victims(process: subprocess.Popen[bytes], whom: str) -> list[psutil.Process]:
    """The processes to kill; no process where they have not started yet."""
    below = psutil.Process(process.pid).children(recursive=True)
    if whom == "jvm":
        return [child for child in below if "java" in child.name()]
    if whom == "worker":
        daemons = [child for child in below if "pyspark.daemon" in " ".join(child.cmdline())]
        workers = [child for child in daemons if child.parent() in daemons]
        return workers[:1]
    return [psutil.Process(process.pid), *(below if whom == "all" else ())]


def killed(process: subprocess.Popen[bytes], whom: str, target: Path, moment: float) -> bool:
    """Kills some time after the first task has written a file; returns whether it killed any process."""
    state = target / "_coldframe"
    while process.poll() is None and not any(state.glob("staging/*/*")):
        time.sleep(0.01)
    time.sleep(moment)
    count = 0
    try:
        while process.poll() is None and not count:
            for child in victims(process, whom):
                child.send_signal(signal.SIGKILL)
                count += 1
    except psutil.NoSuchProcess:
        pass
    return count > 0


@pytest.mark.timeout(300 + 120 * KILLS)
def test_a_run_killed_at_random_is_continued(tmp_path: Path) -> None:
    values = make(tmp_path / "src")
    chance = random.Random(SEED)
    counts = dict.fromkeys(WHOM, 0)
    tried = 0
    while sum(counts.values()) < KILLS:
        assert tried < 4 * KILLS + 8
        target = tmp_path / f"dst{tried}"
        whom = WHOM[tried % len(WHOM)]
        tried += 1
        command = [sys.executable, "-m", "coldframe", "migrate", str(tmp_path / "src"), str(target)]
        options = ["--master", "local[2]", "--split-bytes", "1", "--target-file-size", "40k"]
        with (tmp_path / "output").open("wb") as output:
            process = subprocess.Popen(
                [*command, *options], start_new_session=True, stdout=output, stderr=subprocess.STDOUT
            )
            hit = killed(process, whom, target, chance.uniform(0, 1.5))
            code = process.wait()
            with (target / "_coldframe" / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
            # The JVM of a dead driver exits by itself; files its workers still write belong to no run.
        counts[whom] += hit
        message = f"{whom}, kill {sum(counts.values())}: {(tmp_path / 'output').read_text()[-2000:]}"
        if whom in ("jvm", "worker"):
            assert code == 0, message
        report = migrate(InProcess(), tmp_path / "src", target, split_bytes=1, target_file_bytes=40 << 10)
        assert (report.exit_code, report.verified) == (0, True), message
        migrated = pads.dataset(target / "t", format="parquet").to_table()["a"].to_pylist()
        assert sorted(migrated) == values, message
        assert audit(target, deep=True).faults == [], message
        if whom != "driver":
            assert not (target / "_coldframe" / "staging").exists(), message
    print(f"{counts} killed in {tried} runs")
