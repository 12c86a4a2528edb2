"""Random queries beside Spark's ORC reader.

`COLDFRAME_SPARK_QUERIES=1500` is a longer run, `COLDFRAME_SEED` has other queries.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

QUERIES = os.environ.get("COLDFRAME_SPARK_QUERIES", "75")
SEED = os.environ.get("COLDFRAME_SEED", "1")


def run(*arguments: str) -> None:
    command = [sys.executable, str(Path(__file__).parent / "run.py"), "--seed", SEED, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-2000:]}"


def test_random_queries_are_answered_as_by_sparks_reader() -> None:
    run("--queries", QUERIES)


def test_damaged_files_end_no_session() -> None:
    run("--damaged", "40")
