"""Ctrl-C ends long work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

PROGRAM = """
import sys, coldframe as cf, pyarrow as pa
file = cf.open(sys.argv[1], schema="x bigint, s string", serde="binary")
work = {
    "batches": lambda: [None for batch in file.to_batches(batch_size=10)],
    "read": lambda: file.read(),
    "stream": lambda: pa.table(file),
    "verify": lambda: file.verify(),
}[sys.argv[2]]
try:
    print("ready", flush=True)
    while True:
        work()
except KeyboardInterrupt:
    print("stopped", flush=True)
except BaseException as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "big.rc"
    rows = pa.table({"x": range(300_000), "s": [str(i) for i in range(300_000)]})
    cf.write(rows, path, format="rcfile", serde="binary", record_interval=10_000)
    return path


@pytest.mark.parametrize("work", ["batches", "read", "verify"])
def test_ctrl_c(work: str, big: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(big), work], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert process.wait() == 0


def test_ctrl_c_ends_a_stream_of_another_library(big: Path) -> None:
    """The consumer chooses the exception; the work must end."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(big), "stream"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline()
        assert process.wait() == 0
