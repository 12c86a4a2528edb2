"""Adds the native libraries, one for each processor, to the connector's jar from Maven.

python packaging/jar.py MAVEN.jar LIBRARY.so.. OUT.jar
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

MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}
"""The number of a processor in the header of a library, and its name in Java."""


def machine_of(library: Path) -> str:
    """The processor that a library is for."""
    head = library.read_bytes()[:20]
    machine = MACHINES.get(int.from_bytes(head[18:20], "little"))
    if head[:4] != b"\x7fELF" or machine is None:
        raise SystemExit(f"{library}: expected a Linux library for one of {', '.join(MACHINES.values())}")
    return machine


def stripped(library: Path, folder: Path) -> Path:
    """The library without its symbols, if a `strip` for its processor is installed."""
    target = folder / library.name
    shutil.copy(library, target)
    machine = machine_of(library)
    strip = shutil.which("strip" if machine == platform.machine() else f"{machine}-linux-gnu-strip")
    if strip is not None:
        subprocess.run([strip, "--strip-unneeded", str(target)], check=True)
    return target


def main(maven: Path, libraries: list[Path], out: Path) -> None:
    """Writes the jar, completely or not at all."""
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        made = Path(folder) / out.name
        shutil.copy(maven, made)
        with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED, compresslevel=6) as jar:
            for library in libraries:
                name = f"io/coldframe/native/linux-{machine_of(library)}/libcoldframe_jni.so"
                jar.write(stripped(library, Path(folder)), name)
        os.replace(made, out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    maven, *libraries, out = map(Path, sys.argv[1:])
    main(maven, libraries, out)
