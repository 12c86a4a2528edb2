"""An incompatible jar, a Spark too old, or a task without memory raises a clear error at the first use."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import coldframe as cf
import coldframe.spark

PROPERTIES = "io/coldframe/spark/jar.properties"
PROBE = """
package io.coldframe.spark;

class Probe {
  public static void main(String[] arguments) {
    NativeLibrary.load();
  }
}
"""
CALLS = b"Java_io_coldframe_spark_Native_calls"
"""The function of the library that states the version of its calls."""


@pytest.fixture
def jar() -> Path:
    try:
        return Path(coldframe.spark.jar())
    except cf.UnsupportedError as missing:
        pytest.skip(str(missing))


def changed(jar: Path, target: Path, content: dict[str, bytes | None]) -> Path:
    """The jar with other content of some of its files, or without them."""
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(target, "w") as made:
        for name in whole.namelist():
            data = next((new for end, new in content.items() if name.endswith(end)), whole.read(name))
            if data is not None:
                made.writestr(name, data)
    return target


def messages_of(jar: Path, folder: Path, fraction: str = "0.6") -> dict[str, str]:
    """The messages that `jar_job.py` prints."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cf.__file__).parents[1])}
    command = [sys.executable, Path(__file__).with_name("jar_job.py"), jar, folder, fraction]
    done = subprocess.run(
        [str(argument) for argument in command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    messages: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return messages


def test_a_jar_without_a_library_for_this_platform_is_an_error(
    jar: Path, numbers: Path, tmp_path: Path
) -> None:
    messages = messages_of(changed(jar, tmp_path / "c.jar", {"libcoldframe_jni.so": None}), numbers)
    for message in messages.values():
        assert "UnsupportedError: this platform: the jar has no native library for linux-" in message


def test_a_jar_of_another_version_is_an_error(jar: Path, numbers: Path, tmp_path: Path) -> None:
    messages = messages_of(changed(jar, tmp_path / "c.jar", {PROPERTIES: b"version=0.0.9\n"}), numbers)
    both = (
        f"a jar of version 0.0.9 with a native library of version {cf.__version__}: take both from one build"
    )
    assert both in messages["format"]
    assert f"coldframe {cf.__version__} with the connector's jar of version 0.0.9" in messages["read"]


def test_a_task_beyond_its_memory_is_an_error(jar: Path, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(range(20_000), pa.int64()), "s": [f"{i:0500}" for i in range(20_000)]})
    table = table.append_column("h", pa.array([0.5] * 20_000))
    cf.write(table, tmp_path / "0.rc", format="rcfile", serde="binary")
    # Tasks share 1 % of the memory above 300 MB.
    messages = messages_of(jar, tmp_path, "0.01")
    assert "is more than the task's memory has left" in messages["format"]
    assert "give the executor more memory, or a smaller option batch_rows" in messages["format"]


def refused(*path: Path, folder: Path) -> str:
    """The message of loading the library, with these files on the class path."""
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        pytest.skip("no JDK here")
    source = folder / "Probe.java"
    source.write_text(PROBE)
    subprocess.run([javac, "-cp", str(path[0]), "-d", str(folder), str(source)], check=True)
    everything = os.pathsep.join(map(str, (*path, folder)))
    done = subprocess.run(
        [java, "-cp", everything, "io.coldframe.spark.Probe"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_a_spark_that_is_too_old_is_an_error(jar: Path, tmp_path: Path) -> None:
    # As in Spark 3.2: without the interface that 3.3 added.
    message = refused(jar, folder=tmp_path)
    assert "UnsupportedError: this Spark: the connector needs 3.3 or later" in message


def test_a_library_of_another_build_is_an_error(jar: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(jar) as whole:
        name = next(name for name in whole.namelist() if name.endswith("libcoldframe_jni.so"))
        library = whole.read(name)
    assert CALLS in library
    other = changed(jar, tmp_path / "c.jar", {name: library.replace(CALLS, CALLS[:-1] + b"_")})
    message = refused(other, Path(pyspark.__file__).parent / "jars/*", folder=tmp_path)
    assert "a native library with calls 1: take both from one build" in message
