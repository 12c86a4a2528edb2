"""Acceptance: executors in separate processes, which only have the package's archive."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from kills_job import TIMES
from spark_data import WAREHOUSE

import coldframe
import coldframe.spark

pytestmark = [pytest.mark.usefixtures("work_folder")]

KILLS = int(os.environ.get("COLDFRAME_TASK_KILLS", "6"))


@pytest.fixture(scope="module")
def work_folder() -> Iterator[None]:
    """local-cluster leaves its logs inside the installed pyspark."""
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.iterdir()) if work.is_dir() else None
    yield
    if not work.is_dir():
        return
    if before is None:
        shutil.rmtree(work)
        return
    for folder in set(work.iterdir()) - before:
        shutil.rmtree(folder)


def install(folder: Path) -> None:
    """Installs the contents of the wheel: from `dist/` if it was built, else from the package in use."""
    root = Path(coldframe.__file__).parents[1]
    wheel = os.environ.get("COLDFRAME_WHEEL")
    if wheel:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        return
    for package in [root / "coldframe", *root.glob("pyspark_coldframe*")]:
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    if not list((folder / "coldframe").glob("_coldframe*.so")):
        from coldframe import _coldframe

        shutil.copy(str(_coldframe.__file__), folder / "coldframe")


def test_executors_need_only_the_archive(numbers: Path, tmp_path: Path) -> None:
    package = tmp_path / "package"
    install(package)
    archive = tmp_path / "coldframe.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as out:
        for entry in package.iterdir():
            out.add(entry, entry.name)
    environment = {**os.environ, "PYTHONPATH": str(package), "SPARK_LOCAL_IP": "127.0.0.1"}
    job = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run(
        [sys.executable, str(job), str(numbers), str(WAREHOUSE), str(tmp_path / "lake"), str(archive)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["driver"].startswith(str(package))
    assert summary["executors"]
    for file in summary["executors"]:
        assert "/work/app-" in file, "the executor imports the package from another path"
    assert summary["rows"] == 2900
    assert (summary["exit"], summary["verified"]) == (0, True)
    expected = json.loads((WAREHOUSE / "EXPECTED.json").read_text())
    assert summary["migrated"] == sum(table["rows"] for table in expected.values())


@pytest.fixture(scope="module")
def job(numbers: Path, work_folder: None) -> dict[str, Any]:
    """The output of a job that uses the connector on a cluster without Python."""
    try:
        coldframe.spark.jar()
    except coldframe.UnsupportedError as missing:
        pytest.skip(str(missing))
    # Starting a Python worker in an executor would fail.
    environment = {**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "/bin/false"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(Path(coldframe.__file__).parents[1])}
    command = [sys.executable, str(Path(__file__).with_name("kills_job.py")), str(numbers), str(KILLS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary


def test_the_connector_needs_no_python_in_executors(job: dict[str, Any]) -> None:
    assert job["read"] == {"rows": 3000, "sum": 4498500, "row 77": [["row 77", 38.5]], "executors": 2}


def test_killed_tasks_leak_nothing_and_lose_nothing(job: dict[str, Any]) -> None:
    """`COLDFRAME_TASK_KILLS=100` for a soak."""
    assert job["killed"] > KILLS // 2
    assert (job["executors"], job["held"]) == (2, ["0 tables, 0 readers, 0 batches"])
    assert job["opened"] == []
    assert job["expected"] == [3000 * TIMES, TIMES * sum(range(3000))]
    assert job["after"] == job["expected"]
    assert job["with a lost executor"] == [job["expected"]]
