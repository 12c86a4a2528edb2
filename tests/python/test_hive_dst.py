"""Partitions by local times that a zone skips or repeats: the machine's zone does not shift them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from hive_estate import ORC, HiveEstate
from servers import HiveMetastore

# Times in Berlin: skipped, repeated, and a midnight that is the previous day in UTC.
NIGHTS = ["2014-03-30 02:30:00", "2014-10-26 02:30:00", "2014-10-26 00:00:00"]
KEYS = pa.schema([("day", pa.date32()), ("at", pa.timestamp("us"))])


def nights(estate: HiveEstate) -> None:
    columns = [("id", "bigint")]
    estate.table("nights", estate.storage(columns, ORC, "nights"), [("day", "date"), ("at", "timestamp")])
    for number, night in enumerate(NIGHTS):
        estate.file(f"nights/{number}/000000_0", {"id": [number]}, format="orc")
        storage = estate.storage(columns, ORC, f"nights/{number}")
        estate.partition("nights", [night[:10], night], storage)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_machine_zone_shifts_no_partition(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path, zone: str
) -> None:
    nights(hive_estate)

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "coldframe", *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TZ": zone},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    source = f"{hive_server.url}/cold.nights"
    lines = run("head", source, "--format", "csv").splitlines()[1:]
    assert sorted(lines) == [f"{number},{night[:10]},{night}.000000" for number, night in enumerate(NIGHTS)]
    output = run("head", source, "-c", "id", "--where", f"at = '{NIGHTS[1]}'", "--format", "csv")
    assert output.splitlines()[1:] == ["1"]
    run("migrate", source, str(tmp_path / "dst"), "--master", "in-process")
    by = pads.partitioning(KEYS, flavor="hive")
    moved = pads.dataset(tmp_path / "dst/cold/nights", format="parquet", partitioning=by).to_table()
    assert sorted((row["id"], str(row["day"]), str(row["at"])) for row in moved.to_pylist()) == [
        (number, night[:10], night) for number, night in enumerate(NIGHTS)
    ]
