"""Reports the glibc version that a wheel needs, and fails if it is newer than the wheel's name states.

    python packaging/symbols.py dist/coldframe-0.1.0-cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl

Also checks the native library of the Spark connector, in the jar of the wheel.

A shared object lists the versions of the symbols that it needs from each library (`.gnu.version_r`). A node
of an old cluster has glibc 2.17, and cannot load a library that needs a newer version.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

# The libraries that manylinux2014 guarantees and the extension may need.
LIBRARIES = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}

MAX_BYTES = 30_000_000
"""The maximum size of a wheel."""


def needed(extension: bytes) -> Iterator[tuple[str, str]]:
    """Libraries and versions of their symbols, such as `("libc.so.6", "GLIBC_2.17")`."""
    for section in ELFFile(io.BytesIO(extension)).iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for library, versions in section.iter_versions():
                for version in versions:
                    yield library.name, version.name


def libraries(extension: bytes) -> set[str]:
    """The libraries that the extension loads."""
    dynamic = ELFFile(io.BytesIO(extension)).get_section_by_name(".dynamic")
    return {tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}


def shared_objects(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """The shared objects of a wheel, and of the jars in it."""
    for name in archive.namelist():
        if name.endswith(".so"):
            yield name, archive.read(name)
        elif name.endswith(".jar"):
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as jar:
                yield from ((f"{name}!{inner}", data) for inner, data in shared_objects(jar))


def check(wheel: Path) -> list[str]:
    """The problems of a wheel. Prints the needs of each extension."""
    named = re.search(r"manylinux_(\d+)_(\d+)", wheel.name)
    allowed = (int(named[1]), int(named[2])) if named else (2, 17)
    wrong = []
    size = wheel.stat().st_size
    if size > MAX_BYTES:
        wrong.append(
            f"{wheel.name}: {size / 1e6:.1f} MB: the connector's jar belongs in a separate distribution"
        )
    with zipfile.ZipFile(wheel) as archive:
        extensions = list(shared_objects(archive))
        for name, data in extensions:
            symbols = {
                (library, version) for library, version in needed(data) if version.startswith("GLIBC_2")
            }
            versions = {tuple(map(int, re.findall(r"\d+", version))) for _, version in symbols}
            highest = max(versions, default=(0,))
            print(f"{wheel.name}: {name}: {len(data):,} bytes, glibc {'.'.join(map(str, highest))}")
            if highest[:2] > allowed:
                wrong.append(f"{name} needs glibc {highest}, but {wheel.name} states {allowed}")
            if unknown := libraries(data) - LIBRARIES:
                wrong.append(f"{name} needs {sorted(unknown)}, which some Linux systems lack")
        if not extensions:
            wrong.append("no extension in it")
        names = archive.namelist()
        for wanted in ("licenses/LICENSE", "licenses/packaging/THIRD-PARTY.txt", "sboms/"):
            if not any(f".dist-info/{wanted}" in name for name in names):
                wrong.append(f"{wanted} is not in it")
    return wrong


def main(wheels: list[str]) -> int:
    """Returns 1 if a wheel has a problem."""
    wrong = [problem for wheel in wheels for problem in check(Path(wheel))]
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
