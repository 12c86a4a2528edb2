"""Clients of Spark Connect: both sources, and how a client detects the server's source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spark_data import HAS_PYTHON_SOURCE

import coldframe
import coldframe.spark

for needed in ("grpc", "grpc_status", "zstandard"):
    pytest.importorskip(needed, reason="Spark Connect's client is not installed (pyspark[connect])")

pytestmark = [
    pytest.mark.skipif(not HAS_PYTHON_SOURCE, reason="tried on the newest Spark"),
]


def client(numbers: Path, with_jar: str) -> dict[str, Any]:
    """The answers to a client of a server with or without the jar."""
    try:
        coldframe.spark.jar()
    except coldframe.UnsupportedError as missing:
        pytest.skip(str(missing))
    path = os.pathsep.join(
        [str(Path(coldframe.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    command = [sys.executable, str(Path(__file__).with_name("connect_job.py")), str(numbers), with_jar]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (answers["remote"], answers["count"], answers["row 77"]) == (True, 3000, [["row 77", 38.5]])
    assert (answers["chosen"], answers["python"]) == ([1000, 1001, 1002, 1003, 1004], 10)
    return answers


def test_a_client_detects_a_server_with_the_jar(numbers: Path) -> None:
    answers = client(numbers, "jar")
    assert answers["loaded"]
    assert "[columns: s] [pushed filters: " in answers["plan"]


def test_a_client_may_bring_the_jar_to_a_server_without_it(numbers: Path) -> None:
    answers = client(numbers, "none")
    assert not answers["loaded"]
    assert "pushed filters" not in answers["plan"]
    loaded, rows, plan = answers["brought"]
    assert (loaded, rows) == (True, 1)
    assert "pushed filters: " in plan
