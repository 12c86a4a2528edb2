"""Real servers on the loopback: an S3 that checks signatures, an HDFS of two DataNodes, a Hive metastore, an
Iceberg REST catalog.

All but the metastore are programs of tests/reference, which need Java and, for the first build, Maven. The
metastore is part of PySpark. Tests are skipped where these are missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coldframe as cf
from coldframe.spark.java import find_java

REFERENCE = Path(__file__).parents[1] / "reference"
PATIENCE = 240


@contextlib.contextmanager
def alone(program: Path) -> Iterator[None]:
    """Lets one process in at a time: tests run side by side."""
    with (program / "pom.xml").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def built(program: Path, made: Path, *how: str, phase: str) -> None:
    """Builds a program of tests/reference once; skips the test if that fails."""
    with alone(program):
        _built(program, made, *how, phase=phase)


def _built(program: Path, made: Path, *how: str, phase: str) -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java to run a server with")
    sources = [program / "pom.xml", *program.glob("src/**/*.java")]
    if made.exists() and made.stat().st_mtime >= max(source.stat().st_mtime for source in sources):
        return
    if shutil.which("mvn") is None:
        pytest.skip(f"no Maven to build {program.name} with")
    done = subprocess.run(
        ["mvn", "-B", "-q", *how, phase], cwd=program, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"Maven cannot build {program.name}: {done.stdout[-300:]}")


def free_port() -> int:
    """A port outside the system's ephemeral range: the server starts to listen only later."""
    chance = random.Random(f"{os.getpid()} {time.monotonic_ns()}")
    while True:
        port = chance.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """A process that writes to `folder`/log."""

    port: int
    _process: subprocess.Popen[Any]

    def __init__(self, folder: Path) -> None:
        self._place = folder / "log"
        self._log = self._place.open("wb")

    def wait(self, name: str) -> None:
        """Waits until it listens at its port; skips the test if it does not."""
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
        line = _answer(self._process)
        if not line.startswith("READY "):
            self.stop()
            pytest.skip("HDFS does not start: " + (folder / "log").read_text()[-300:])
        _, self.url, self.conf, self.web = line.split()

    @property
    def options(self) -> dict[str, str]:
        return {"hadoop_conf_dir": self.conf, "user": os.environ.get("USER", "tester")}

    def send(self, command: str) -> None:
        """Sends a command to the cluster, and waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert _answer(self._process) == "OK"


def _answer(process: subprocess.Popen[str]) -> str:
    """The next answer line of a test program."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(("READY", "OK", "FAILED")):
            return line.strip()
    return ""


class Kdc(Server):
    """A KDC with the service `hive` of this machine and the user olga."""

    def __init__(self, folder: Path) -> None:
        program = REFERENCE / "kdc"
        classpath = program / "target" / "classpath"
        built(program, classpath, phase="process-classes")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        super().__init__(folder)
        path = f"{program / 'target' / 'classes'}:{classpath.read_text()}"
        self._process = subprocess.Popen(
            ["java", "-Xmx256m", "-cp", path, "reference.Kdc", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        line = _answer(self._process)
        if not line.startswith("READY "):
            self.stop()
            pytest.skip("the KDC does not start: " + (folder / "log").read_text()[-300:])
        _, self.configuration, self.realm = line.split()

    @property
    def environment(self) -> dict[str, str]:
        """The environment that makes the Kerberos library act as olga."""
        return {
            "KRB5_CONFIG": self.configuration,
            "KRB5_CLIENT_KTNAME": str(self.folder / "client.keytab"),
            "KRB5CCNAME": f"FILE:{self.folder}/tickets",
        }


class HiveMetastore(Server):
    """A Hive metastore on an empty Derby: Hive 2.3 from PySpark's jars. The environment may name another
    version, as COLDFRAME_HIVE_METASTORE=4.0.1, which Maven fetches.
    """

    VERSION = os.environ.get("COLDFRAME_HIVE_METASTORE", "2.3")

    def __init__(
        self,
        folder: Path,
        *,
        version: str = VERSION,
        locks: bool = False,
        kdc: Kdc | None = None,
        protection: str = "privacy",
    ) -> None:
        """`locks`: with the tables for locks, which needs a JDK; later versions always have them. `kdc`: with
        Kerberos, and Hadoop's protection level: authentication, integrity or privacy.
        """
        self.version = version
        java, jars, main = _metastore_of_hive_2(locks=locks)
        settings = {
            "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "DBCP",
            "hive.metastore.schema.verification": "false",
            # In test mode, the metastore creates the transaction tables, but refuses locks without a purpose.
            "hive.in.test": str(not locks).lower(),
            "hive.metastore.warehouse.dir": str(folder / "warehouse"),
            # Asynchronous logging would need a library that Spark lacks.
            "hive.async.log.enabled": "false",
        }
        if version != "2.3":
            locks, (jars, main) = True, _standalone_metastore(version)
            settings["javax.jdo.option.ConnectionDriverName"] = "org.apache.derby.jdbc.EmbeddedDriver"
            settings["hive.in.test"] = "false"
            # The other classes are in jars of Hive that PySpark lacks.
            own = "org.apache.hadoop.hive.metastore"
            settings["metastore.task.threads.always"] = f"{own}.events.EventCleanerTask"
            settings["metastore.expression.proxy"] = f"{own}.DefaultPartitionExpressionProxy"
        folder.mkdir(parents=True)
        self.port = free_port()
        secured: list[str] = []
        if kdc is not None:
            secured, jars = [f"-Djava.security.krb5.conf={kdc.configuration}"], f"{folder}:{jars}"
            settings |= {
                "hive.metastore.sasl.enabled": "true",
                "hive.metastore.kerberos.keytab.file": str(kdc.folder / "hive.keytab"),
                "hive.metastore.kerberos.principal": f"hive/localhost@{kdc.realm}",
            }
            names = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": protection}
            properties = (
                f"<property><name>{n}</name><value>{v}</value></property>" for n, v in names.items()
            )
            (folder / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")
        given = [word for name, value in settings.items() for word in ("--hiveconf", f"{name}={value}")]
        super().__init__(folder)
        self._process = subprocess.Popen(
            [
                *(str(java), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *(f"-Dderby.system.home={folder}", f"-Djava.io.tmpdir={folder}", *secured, "-cp", jars),
                # The tool that creates the tables takes no arguments.
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


def _metastore_of_hive_2(*, locks: bool) -> tuple[Path, str, str]:
    """The Java program, the class path and the main class."""
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        pytest.skip("no PySpark, in which Hive's metastore is")
    try:
        java = Path(find_java()) / "bin" / "java"
    except cf.UnsupportedError as reason:
        pytest.skip(str(reason))
    main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    if locks:
        main = str(REFERENCE / "metastore" / "LockingMetastore.java")
    return java, f"{Path(spark.origin).parent / 'jars'}/*", main


def _standalone_metastore(version: str) -> tuple[str, str]:
    """The class path and the main class of Hive 3 and 4."""
    program = REFERENCE / "metastore"
    classpath = program / "target" / f"hive-{version}" / "classpath"
    profile = "-Pold" if version.startswith("3.") else "-Pnew"
    built(program, classpath, f"-Dhive.version={version}", profile, phase="process-resources")
    return classpath.read_text(), str(program / "StandaloneMetastore.java")


def iceberg_for_spark() -> Path:
    """Iceberg's runtime for Spark 3.5."""
    program = REFERENCE / "iceberg"
    built(program, program / "target" / "classpath", phase="process-resources")
    return next((program / "target").glob("iceberg-spark-runtime-*.jar"))


class IcebergRest(Server):
    """The REST catalog of Iceberg's tests, over SQLite. A later server in the same folder keeps the
    tables.
    """

    def __init__(self, folder: Path) -> None:
        program = REFERENCE / "iceberg"
        classpath = program / "target" / "classpath"
        built(program, classpath, phase="process-resources")
        self.spark_jar = iceberg_for_spark()
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder)
        self.port = free_port()
        settings = {
            "CATALOG_REST_PORT": str(self.port),
            "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
            "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
            # SQLite allows one writer.
            "CATALOG_CLIENTS": "1",
        }
        self._process = subprocess.Popen(
            ["java", "-Xmx384m", "-cp", classpath.read_text(), "org.apache.iceberg.rest.RESTCatalogServer"],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        self.wait("Iceberg's REST catalog")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"
