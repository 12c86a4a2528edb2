"""Installs and uses a wheel in a clean environment of every Python on this machine.

    python packaging/smoke.py dist/coldframe-*.whl

Uses interpreters on the path and below ~/.pyenv, and the running interpreter. Prints which versions from 3.10
to 3.14 are missing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = [(3, minor) for minor in range(10, 15)]

# Writes and reads back formats and calls the command line, with only the dependencies of the wheel.
USE = """
import subprocess, sys, tempfile, pathlib
import pyarrow as pa
import coldframe as cf

folder = pathlib.Path(tempfile.mkdtemp())
table = pa.table({"id": pa.array(range(1000), pa.int64()), "s": [f"name {i % 50}" for i in range(1000)]})
how = {"orc": {}, "rcfile": {"schema": "id bigint, s string", "serde": "binary"}, "redfile": {}}
for format, options in how.items():
    path = folder / f"t.{format}"
    cf.write(table, path, format=format)
    assert cf.detect(path) == format
    assert cf.open(path, **options).to_table(filter="id >= 990").num_rows == 10, format
assert cf.scan(folder / "t.orc").count() == 1000
command = [pathlib.Path(sys.executable).with_name("coldframe"), "count", folder / "t.orc"]
done = subprocess.run(command, capture_output=True, text=True)
assert done.stdout == "1000\\n", done
import coldframe.spark, zipfile
try:
    jar = coldframe.spark.jar()
except cf.UnsupportedError as missing:
    print(missing)
else:
    with zipfile.ZipFile(jar) as connector:
        assert any(name.endswith("/libcoldframe_jni.so") for name in connector.namelist())
from coldframe.layout import page
assert "<svg" in page(cf.open(folder / "t.orc"))
print("coldframe", cf.__version__, "on Python", sys.version.split()[0], "with pyarrow", pa.__version__)
"""


def interpreter(version: tuple[int, int]) -> str | None:
    """A Python interpreter of this version, if there is one."""
    name = ".".join(map(str, version))
    candidates = [
        f"python{name}",
        *sorted(map(str, Path.home().glob(f".pyenv/versions/{name}.*/bin/python"))),
        sys.executable,
    ]
    for candidate in candidates:
        try:
            probe = subprocess.run(
                [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            continue
        if probe.stdout.strip() == name:
            return candidate
    return None


def smoke(python: str, wheel: Path) -> bool:
    """Whether the wheel can be installed and used."""
    with tempfile.TemporaryDirectory(prefix="coldframe-smoke-") as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        inside = str(Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        install = [
            inside,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            str(wheel),
        ]
        if subprocess.run(install, check=False).returncode != 0:
            print(f"{python}: the wheel or one of its dependencies cannot be installed", file=sys.stderr)
            return False
        return subprocess.run([inside, "-c", USE], check=False, cwd=folder).returncode == 0


def main(arguments: list[str]) -> int:
    """Returns 1 if the wheel fails with one of the Pythons."""
    [wheel] = map(Path, arguments)
    good = True
    for version in VERSIONS:
        python = interpreter(version)
        if python is None:
            print(f"Python {version[0]}.{version[1]}: not on this machine, not tried")
        else:
            good = smoke(python, wheel.resolve()) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
