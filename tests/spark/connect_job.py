"""Starts a Spark Connect server on loopback, reads as its client, and prints the answers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from spark_data import NUMBERS

import coldframe.spark
from coldframe.spark.connector import CATALOG, CATALOG_CLASS, is_loaded, is_remote
from coldframe.spark.java import find_java

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS = 240


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def server(jar: str | None) -> Iterator[str]:
    """The address of a server, with the jar or without."""
    port = free_port()
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # Spark also evaluates the filters of tables that it may broadcast.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.ui.enabled": "false",
    }
    if jar is not None:
        conf |= {"spark.jars": jar, CATALOG: CATALOG_CLASS}
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2]"]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(port, process)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until the server listens."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise SystemExit("the server did not start")


def main(numbers: str, with_jar: str) -> None:
    """Prints the answers as JSON."""
    os.environ["JAVA_HOME"] = find_java()
    jar = coldframe.spark.jar() if with_jar == "jar" else None
    with server(jar) as address:
        spark = SparkSession.builder.remote(address).getOrCreate()
        try:
            print(json.dumps(results(spark, numbers, with_jar == "jar")))
        finally:
            spark.stop()


def results(spark: SparkSession, numbers: str, has_jar: bool) -> dict[str, object]:
    """The answers of reads through both sources."""
    frame = spark.read.format("coldframe").options(**NUMBERS).load(numbers)
    chosen = coldframe.spark.read(
        spark, Path(numbers) / "1.rc", columns=["a", "s"], filter="a < 1005", **NUMBERS
    )
    python = spark.read.format("coldframe_python").options(**NUMBERS, filter="a >= 2990").load(numbers)
    answers: dict[str, object] = {
        "remote": is_remote(spark),
        "loaded": is_loaded(spark),
        "count": frame.count(),
        "row 77": [list(row) for row in frame.where("a = 77").select("s", "h").collect()],
        "plan": frame.where("a = 77").select("s")._explain_string(extended=True),
        "chosen": sorted(row.a for row in chosen.collect()),
        "python": python.count(),
    }
    if not has_jar:
        # A client may add the jar to its own session on a server that lacks the jar.
        spark.addArtifacts(coldframe.spark.jar())
        brought = spark.read.format("coldframe").options(**NUMBERS).load(numbers).where("a = 77")
        answers["brought"] = [is_loaded(spark), brought.count(), brought._explain_string(extended=True)]
    return answers


if __name__ == "__main__":
    main(*sys.argv[1:3])
