"""Drivers killed (SIGKILL) at a random moment, and started again: `COLDFRAME_KILLS=200` for a soak."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate

import coldframe as cf
from coldframe.pipeline import audit, migrate
from coldframe.pipeline.scheduling import InProcess
from coldframe.pipeline.work import committing

KILLS = int(os.environ.get("COLDFRAME_KILLS", "6"))
SEED = int(os.environ.get("COLDFRAME_SEED", "13"))
OLD = sorted([*(number * 10 + at for number in range(10) for at in (1, 2)), *range(400, 412)])
NEW = sorted(
    [
        7,
        *(value for value in OLD if not 1 <= value <= 12 and value not in (71, 72, 81, 82)),
        88,
        *range(300, 305),
        70000,
    ]
)
"""Source 0 keeps one row, source 1 is gone, five files are new, and one more has a wider type. Of four
sources that share a target file, one is gone and one has another row."""


def changed_estate(root: Path, target: str) -> Estate:
    """A target, and a source that changed since: new, changed, vanished and widened files."""
    estate = Estate(root)
    for number in range(6):
        estate.orc(f"t/p={number}/f", {"a": pa.array([number * 10 + 1, number * 10 + 2], pa.int16())})
    for number in range(6, 10):
        estate.orc(f"t/p=6/{number}", {"a": pa.array([number * 10 + 1, number * 10 + 2], pa.int16())})
    large = pa.table({"a": pa.array(range(400, 412), pa.int16())})
    cf.write(large, estate.source / "t/p=6/large", format="orc", stripe_rows=2)
    estate.migrate(to=target, split_bytes=1)
    (estate.source / "t/p=6/7").unlink()
    estate.orc("t/p=6/8", {"a": pa.array([88], pa.int16())})
    estate.orc("t/p=0/f", {"a": pa.array([7], pa.int16())})
    (estate.source / "t/p=1/f").unlink()
    for number in range(5):
        estate.orc(f"t/p=2/new{number}", {"a": pa.array([300 + number], pa.int16())})
    estate.orc("t/p=3/wide", {"a": pa.array([70000], pa.int64())})
    return estate


def values(estate: Estate, target: str) -> list[int]:
    if target == "delta":
        from deltalake import DeltaTable

        rows = pa.table(DeltaTable(estate.target / "t").to_pyarrow_table())
    elif target == "iceberg":
        from coldframe.pipeline.sink.iceberg import open_catalog

        rows = open_catalog(str(estate.target)).load_table("migrated.t").scan().to_arrow()
    else:
        return [int(value) for value in estate.values()]
    return sorted(rows["a"].to_pylist())


def go(root: str, target: str, threads: int) -> None:
    # So that the journal keeps every part of the large file separately.
    committing.BATCH_SECONDS = 0.0
    estate = Estate(Path(root))
    report = migrate(
        InProcess(threads),
        estate.source,
        estate.target,
        to=target,
        on_vanished="remove",
        archived_rows="drop",
        split_bytes=1,
    )
    assert report.exit_code == 0


def killed_after(seconds: float, root: Path, target: str, threads: int = 1) -> bool:
    """Runs a driver in its own process; returns whether it was killed before it finished."""
    # Forked by a server that has everything loaded, and no threads.
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=go, args=(str(root), target, threads))
    process.start()
    process.join(seconds)
    running = process.is_alive()
    if running:
        process.kill()
    process.join()
    assert running or process.exitcode == 0
    return running


def check_complete(estate: Estate, target: str) -> None:
    """After an undisturbed run: the table is complete, no file is left over, and the audit agrees."""
    report = estate.migrate(to=target, on_vanished="remove", split_bytes=1)
    assert report.exit_code == 0, report.failures
    assert values(estate, target) == NEW
    home = estate.target / "_coldframe"
    assert [path.name for path in home.rglob("*") if path.suffix == ".new"] == []
    assert not (home / "staging").exists()
    result = audit(estate.target, deep=True)
    assert result.faults == []


@pytest.mark.timeout(600 + 60 * KILLS)
@pytest.mark.parametrize("target", ["parquet", "delta", "iceberg"])
def test_drivers_killed_at_random(tmp_path: Path, target: str) -> None:
    if target != "parquet":
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["coldframe.pipeline", "estates", "deltalake", "pyiceberg.catalog.sql"]
    )
    template = changed_estate(tmp_path / "template", target)
    chance = random.Random(f"{SEED} {target}")
    times: list[float] = []
    killed = 0
    tried = 0
    while killed < -(-KILLS // 3):
        tried += 1
        assert tried < 20 * KILLS
        # Iceberg's metadata has absolute paths: each attempt runs at the template's path.
        place = tmp_path / "template"
        kept = tmp_path / "kept"
        if not kept.exists():
            place.rename(kept)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place, copy_function=shutil.copy2)
        if len(times) < 2:
            started = time.monotonic()
            assert killed_after(600, place, target) is False
            times.append(time.monotonic() - started)
        else:
            # The first driver had to wait for the server.
            moment = chance.uniform(0, min(times))
            again = killed_after(moment, place, target, chance.choice((1, 3)))
            killed += again
            if target == "parquet":
                # A reader of the table now sees each row of both states at least once.
                seen = {row for path in template.files("t") for row in pq.read_table(path)["a"].to_pylist()}
                assert seen >= set(NEW) or seen >= set(OLD), f"killed after {moment}"
            if again and chance.random() < 0.3:
                killed += killed_after(chance.uniform(0, min(times)), place, target)
        check_complete(template, target)
    print(f"{target}: {killed} kills in {tried} runs")
