"""Collects the licences of everything that is compiled into the wheel.

    python packaging/licences.py            writes packaging/THIRD-PARTY.txt
    python packaging/licences.py --check    only checks that all of them are allowed

Covers the crates of the extension on Linux. The licences come from manifests, the texts from files.
A crate whose licence is not on the list of allowed licences is an error.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "packaging" / "THIRD-PARTY.txt"
PLATFORM = "x86_64-unknown-linux-gnu"

ALLOWED = {
    *("MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib"),
    *("0BSD", "CC0-1.0", "Unlicense", "Unicode-3.0", "BSL-1.0", "MIT-0", "CDLA-Permissive-2.0", "OpenSSL"),
    "bzip2-1.0.6",
}

_TEXTS = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense|copyright)([-_.].*)?$")


def packages() -> list[dict[str, Any]]:
    """The crates that are linked into the extension, by name."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM]
    manifest = ROOT / "crates" / "coldframe-python" / "Cargo.toml"
    raw = subprocess.run([*command, "--manifest-path", manifest], capture_output=True, check=True).stdout
    whole = json.loads(raw)
    nodes = {node["id"]: node for node in whole["resolve"]["nodes"]}
    start = next(p["id"] for p in whole["packages"] if p["name"] == "coldframe-python")
    wanted, open_ = set(), [start]
    while open_:
        this = open_.pop()
        if this in wanted:
            continue
        wanted.add(this)
        open_ += [d["pkg"] for d in nodes[this]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    crates = [p for p in whole["packages"] if p["id"] in wanted and p["source"] is not None]
    return sorted(crates, key=lambda p: (p["name"], p["version"]))


def is_allowed(expression: str) -> bool:
    """Whether at least one alternative of a licence expression is allowed in all its parts."""
    plain = expression.replace("/", " OR ").strip()
    if plain in ALLOWED:
        return True
    # AND binds closer than OR.
    for choice in _split(plain, " OR "):
        parts = _split(choice, " AND ")
        if all(p in ALLOWED or (p.startswith("(") and is_allowed(p[1:-1])) for p in parts):
            return True
    return False


def _split(text: str, sign: str) -> list[str]:
    """The parts of an expression at its outermost level."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(sign, at):
            parts.append(text[start:at].strip())
            start = at + len(sign)
    return [*parts, text[start:].strip()]


def texts_of(package: dict[str, Any]) -> Iterator[str]:
    """The licence texts in a crate."""
    folder = Path(package["manifest_path"]).parent
    for path in sorted(folder.iterdir()):
        if path.is_file() and _TEXTS.match(path.name):
            yield "\n".join(line.rstrip() for line in path.read_text("utf-8", "replace").strip().splitlines())


def collected(crates: list[dict[str, Any]]) -> str:
    """The whole document: the crates, and every text once."""
    by_text: dict[str, tuple[str, list[str]]] = {}
    listed = []
    for package in crates:
        name = f"{package['name']} {package['version']}"
        listed.append(f"{name}: {package['license']}")
        for text in texts_of(package):
            key = hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest()
            by_text.setdefault(key, (text, []))[1].append(name)
    parts = ["The crates in coldframe's extension, and their licences.", "\n".join(listed)]
    for text, names in by_text.values():
        parts.append(f"{'=' * 79}\n{', '.join(dict.fromkeys(names))}\n{'-' * 79}\n{text}")
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Returns 1 if a licence is not allowed."""
    crates = packages()
    bad = [f"{p['name']}: {p['license']}" for p in crates if not is_allowed(p["license"] or "")]
    if bad:
        print("licences that are not allowed: " + "; ".join(bad), file=sys.stderr)
        return 1
    if "--check" in arguments:
        print(f"{len(crates)} crates, all with allowed licences")
        return 0
    TARGET.write_text(collected(crates), encoding="utf-8")
    print(f"{TARGET}: {len(crates)} crates, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
