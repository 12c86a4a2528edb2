"""A Kudu master and tablet servers on this machine, from the programs in the project's Maven artifact.

They listen on loopback and connect to nothing else: the probes for cloud metadata are pointed at a closed port.
"""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import time
import zipfile
from collections.abc import Sequence

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "target"
# The version of programs and client. Another module may set the version before the programs or the client are first used.
VERSION = "1.17.1"
CLOSED = "http://127.0.0.1:9/"
COMMON = [
    f"--cloud_aws_instance_id_url={CLOSED}",
    f"--cloud_azure_instance_id_url={CLOSED}",
    f"--cloud_gce_instance_id_url={CLOSED}",
    f"--cloud_openstack_metadata_url={CLOSED}",
    "--cloud_metadata_server_request_timeout_ms=50",
    "--time_source=system_unsync",
    "--webserver_enabled=false",
    "--unlock_unsafe_flags",
    "--unlock_experimental_flags",
    "--logtostderr",
    "--minloglevel=2",
    "--never_fsync",
]
# Flushes memory to files within seconds, with small bloom filters.
FLUSH = [
    "--tablet_bloom_block_size=512",
    "--flush_threshold_mb=0",
    "--flush_threshold_secs=2",
    "--flush_upper_bound_ms=1000",
    "--maintenance_manager_polling_interval_ms=50",
    "--maintenance_manager_num_threads=1",
]


def classpath() -> list[str]:
    """The jars of the client and of the programs, from Maven."""
    listed = TARGET / f"classpath-{VERSION}"
    if not listed.exists() or listed.stat().st_mtime < (HERE / "pom.xml").stat().st_mtime:
        TARGET.mkdir(exist_ok=True)
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listed}", f"-Dkudu.version={VERSION}"]
        subprocess.run(["mvn", "-B", "-q", *goal], cwd=HERE, check=True)
    return listed.read_text(encoding="utf-8").strip().split(":")


def programs() -> pathlib.Path:
    """The folder with `bin` and `lib`, unpacked on first use."""
    jar = next(pathlib.Path(path) for path in classpath() if "kudu-binary" in path)
    folder = TARGET / jar.stem
    if not folder.exists():
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(TARGET)
        for program in (folder / "bin").iterdir():
            program.chmod(0o755)
    return folder


def environment() -> dict[str, str]:
    lib = programs() / "lib"
    return os.environ | {"LD_LIBRARY_PATH": str(lib), "SASL_PATH": str(lib / "sasl2"), "TZ": "UTC"}


def run(program: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Runs one of Kudu's programs to its end."""
    command = [str(programs() / "bin" / program), *map(str, args)]
    return subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)


def java(*args: object) -> str:
    """Runs the Java program beside this file."""
    command = ["java", "-cp", ":".join(classpath()), str(HERE / "Main.java"), *map(str, args)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A master and tablet servers, each given by its flags. They stop at the end of the `with` block."""

    def __init__(
        self,
        folder: pathlib.Path,
        servers: Sequence[Sequence[str]],
        common: Sequence[str] = (),
        master: str | None = None,
        addresses: Sequence[str] | None = None,
        master_flags: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.servers = servers
        self.common = [*COMMON, *common]
        self.master = master or f"127.0.0.1:{free_port()}"
        self.addresses = addresses or [f"127.0.0.1:{free_port()}" for _ in servers]
        self.master_flags = master_flags
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, program: str, address: str, flags: Sequence[str]) -> None:
        command = [str(programs() / "bin" / program), f"--rpc_bind_addresses={address}", *self.common, *flags]
        log = (self.folder / f"{program}-{len(self.running)}.log").open("wb")
        self.running.append(subprocess.Popen(command, env=environment(), stdout=log, stderr=log))

    def __enter__(self) -> Cluster:
        master = self.folder / "master"
        own = [f"--master_addresses={self.master}", f"--fs_wal_dir={master}", "--default_num_replicas=1"]
        flags = [*own, *self.master_flags]
        self.start("kudu-master", self.master, flags)
        for flags, address in zip(self.servers, self.addresses, strict=True):
            self.start("kudu-tserver", address, [f"--tserver_master_addrs={self.master}", *flags])
        for _ in range(240):
            time.sleep(0.5)
            if any(process.poll() is not None for process in self.running):
                break
            listed = subprocess.run(
                [programs() / "bin" / "kudu", "tserver", "list", self.master, "-format=csv"],
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            if listed.returncode == 0 and listed.stdout.count("127.0.0.1") >= len(self.servers):
                return self
        self.__exit__()
        ends = [log.read_text(errors="replace")[-2000:] for log in sorted(self.folder.glob("*.log"))]
        raise RuntimeError("the servers did not start:\n" + "\n".join(ends))

    def kill(self) -> None:
        """Kills the tablet servers, and asks the master to end."""
        for process in self.running[1:]:
            process.kill()
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
