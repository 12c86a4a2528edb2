"""Real servers on the loopback: an S3 that checks signatures, an HDFS of two DataNodes, a Hive metastore.

The first two are programs of tests/reference, which need Java and, to be fetched once, Maven; the metastore
is in PySpark. Where there is none, a test is skipped and says so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import coldframe as cf
from coldframe.spark.java import find_java

REFERENCE = Path(__file__).parents[1] / "reference"
PATIENCE = 90


def built(program: Path, made: Path, *, phase: str) -> None:
    """Builds a program of tests/reference once; skips the test where that cannot be done."""
    if shutil.which("java") is None:
        pytest.skip("no Java to run a server with")
    sources = [program / "pom.xml", *program.glob("src/**/*.java")]
    if made.exists() and made.stat().st_mtime >= max(source.stat().st_mtime for source in sources):
        return
    if shutil.which("mvn") is None:
        pytest.skip(f"no Maven to build {program.name} with")
    done = subprocess.run(
        ["mvn", "-B", "-q", phase], cwd=program, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"Maven cannot build {program.name}: {done.stdout[-300:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A process that writes to `folder`/log."""

    port: int
    _process: subprocess.Popen[Any]

    def __init__(self, folder: Path) -> None:
        self._place = folder / "log"
        self._log = self._place.open("wb")

    def wait(self, name: str) -> None:
        """Until it listens at its port; where it does not come to that the test is skipped."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    pytest.skip(f"{name} does not start: {self._place.read_text()[-300:]}")
                time.sleep(0.1)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


class S3(Server):
    """S3Proxy over a directory: the bucket `data`."""

    KEY, SECRET = "cold", "frame-secret"

    def __init__(self, folder: Path) -> None:
        program = REFERENCE / "s3"
        jar = program / "target" / "s3proxy.jar"
        built(program, jar, phase="process-resources")
        self.root = folder / "data"
        self.root.mkdir(parents=True)
        self.port = free_port()
        properties = folder / "s3proxy.conf"
        properties.write_text(
            f"s3proxy.endpoint=http://127.0.0.1:{self.port}\n"
            "s3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.identity={self.KEY}\ns3proxy.credential={self.SECRET}\n"
            "jclouds.provider=filesystem-nio2\njclouds.identity=x\njclouds.credential=x\n"
            f"jclouds.filesystem.basedir={folder}\n"
        )
        super().__init__(folder)
        command = ["java", "-Xmx256m", "-jar", str(jar), "--properties", str(properties)]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)
        self.wait("S3Proxy")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        return {"endpoint": self.endpoint, "access_key_id": self.KEY, "secret_access_key": self.SECRET}


class Hdfs(Server):
    """A NameNode and two DataNodes in one process."""

    def __init__(self, folder: Path, *modes: str) -> None:
        program = REFERENCE / "hdfs"
        classpath = program / "target" / "classpath"
        built(program, classpath, phase="process-classes")
        folder.mkdir(parents=True, exist_ok=True)
        path = f"{program / 'target' / 'classes'}:{classpath.read_text()}"
        command = ["java", "-Xmx512m", "-cp", path, "reference.Cluster", str(folder), *modes]
        super().__init__(folder)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=folder
        )
        line = self._answer()
        if not line.startswith("READY "):
            self.stop()
            pytest.skip("HDFS does not start: " + (folder / "log").read_text()[-300:])
        _, self.url, self.conf, self.web = line.split()

    @property
    def options(self) -> dict[str, str]:
        return {"hadoop_conf_dir": self.conf, "user": os.environ.get("USER", "tester")}

    def tell(self, command: str) -> None:
        """Has the cluster carry out a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert self._answer() == "OK"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(("READY", "OK", "FAILED")):
                return line.strip()
        return ""


class HiveMetastore(Server):
    """Hive 2.3's metastore out of PySpark's own jars, on an empty Derby."""

    def __init__(self, folder: Path, *, locks: bool = False) -> None:
        """`locks`: with the tables for locks, which takes a Java that compiles."""
        spark = importlib.util.find_spec("pyspark")
        if spark is None or spark.origin is None:
            pytest.skip("no PySpark, in which Hive's metastore is")
        try:
            java = Path(find_java()) / "bin" / "java"
        except cf.UnsupportedError as reason:
            pytest.skip(str(reason))
        folder.mkdir(parents=True)
        self.port = free_port()
        settings = {
            "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "DBCP",
            "hive.metastore.schema.verification": "false",
            # "In a test" it makes the tables of transactions, and refuses locks without a purpose.
            "hive.in.test": str(not locks).lower(),
            "hive.metastore.warehouse.dir": str(folder / "warehouse"),
            # It would want a library that Spark has not.
            "hive.async.log.enabled": "false",
        }
        given = [word for name, value in settings.items() for word in ("--hiveconf", f"{name}={value}")]
        main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
        if locks:
            main = str(REFERENCE / "metastore" / "LockingMetastore.java")
        super().__init__(folder)
        self._process = subprocess.Popen(
            [
                *(str(java), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *(f"-Dderby.system.home={folder}", f"-Djava.io.tmpdir={folder}"),
                *("-cp", f"{Path(spark.origin).parent / 'jars'}/*"),
                # What makes the tables knows no arguments.
                *(f"-D{name}={value}" for name, value in settings.items() if locks),
                *(main, "-p", str(self.port), *given),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        self.wait("Hive's metastore")

    @property
    def url(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"
