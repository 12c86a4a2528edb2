"""Compares the public API of each Rust crate with its public-api.txt.

python tests/lint/public_api.py            exit 1 if a crate's API differs from its file
python tests/lint/public_api.py --write    writes the files anew
python tests/lint/public_api.py --check    as without; where the tools are missing, exit 2 instead of 0

A change of a file is part of a change's review: it shows what users of the crate will notice. It needs
cargo-public-api and a nightly Rust, whose rustdoc writes JSON.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_PUBLIC = frozenset({"coldframe-jni", "coldframe-python", "coldframe-testing", "workspace-hack"})
"""Crates that no Rust code of other crates uses."""


def crates() -> list[Path]:
    folders = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))
    return [folder for folder in folders if folder.name not in NOT_PUBLIC]


def has_tools() -> bool:
    commands = (["cargo", "public-api", "--version"], ["cargo", "+nightly", "--version"])
    return all(subprocess.run(command, capture_output=True).returncode == 0 for command in commands)


def api(crate: Path) -> str:
    """One line for each public item, without the traits that rustc implements for every type."""
    # A folder of its own: this runs another compiler, whose artifacts the tests cannot use.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    command = ["cargo", "public-api", "-p", crate.name, "--all-features", "-sss"]
    command += ["--target-dir", f"{target}/public-api"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def differing(crate: Path) -> list[str]:
    path = crate / "public-api.txt"
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        known.splitlines(), api(crate).splitlines(), str(path), "now", lineterm="", n=0
    )
    return list(lines)


def main(arguments: list[str]) -> int:
    if not has_tools():
        print("cargo-public-api or a nightly Rust is missing: public APIs are not compared")
        return 2 if "--check" in arguments or "--write" in arguments else 0
    failed = False
    for crate in crates():
        if "--write" in arguments:
            (crate / "public-api.txt").write_text(api(crate), encoding="utf-8")
            continue
        for line in differing(crate):
            failed = True
            print(line)
    if failed:
        print("the public API differs from public-api.txt: `make api` writes the files anew")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
