"""The connector's jar: Maven's, with the native library in it.

python packaging/jar.py MAVEN.jar LIBRARY.so OUT.jar
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def stripped(library: Path, folder: Path) -> Path:
    """The library without its symbols, where there is something to take them out with."""
    target = folder / library.name
    shutil.copy(library, target)
    strip = shutil.which("strip")
    if strip is not None:
        subprocess.run([strip, "--strip-unneeded", str(target)], check=True)
    return target


def main(maven: Path, library: Path, out: Path) -> None:
    """Writes the jar, whole or not at all."""
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    name = f"io/coldframe/native/{platform.system().lower()}-{machine}/libcoldframe_jni.so"
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        made = Path(folder) / out.name
        shutil.copy(maven, made)
        with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED, compresslevel=6) as jar:
            jar.write(stripped(library, Path(folder)), name)
        os.replace(made, out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
