"""Finds crates whose tests would compile shared dependencies a second time.

python tests/lint/features.py    prints each dependency that a crate's tests want with features that the
                                 extension does not; exit 1 if there are any

Cargo compiles a dependency once for each set of features. `crates/workspace-hack` holds the sets together;
this script prints what is missing there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SHIPPED = "coldframe-python"
TREE = ["cargo", "tree", "--offline", "--prefix", "none", "--format", "{p} [{f}]"]
SMALL = {"proc-macro2", "quote"}
"""Crates that compile quickly, and that no large crate depends on."""


def features(package: str, edges: str) -> dict[str, str]:
    """The features that a package's build enables, by `name vVERSION`."""
    tree = subprocess.run([*TREE, "--package", package, "--edges", edges], capture_output=True, check=True)
    lines = (line.removesuffix(" (*)") for line in tree.stdout.decode().splitlines())
    pairs = (line.rsplit(" [", 1) for line in lines if line.endswith("]"))
    return {name.removesuffix(" (proc-macro)"): enabled for name, enabled in pairs}


def diverging(crates: list[str]) -> Iterator[str]:
    shipped = features(SHIPPED, "normal,build")
    for crate in crates:
        for name, enabled in features(crate, "normal,build,dev").items():
            ours = "/" in name or name.split()[0] in SMALL
            if not ours and name in shipped and shipped[name] != enabled:
                yield f"{crate}: {name} [{enabled}, the extension's is [{shipped[name]}"


def main(root: Path) -> int:
    crates = [path.name for path in sorted((root / "crates").iterdir()) if (path / "Cargo.toml").exists()]
    lines = list(diverging([crate for crate in crates if crate not in (SHIPPED, "workspace-hack")]))
    for line in lines:
        print(line)
    if lines:
        print("crates/workspace-hack/Cargo.toml has to name these features")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[2]))
