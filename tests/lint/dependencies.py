"""Finds dependencies of the Rust crates that nothing uses.

    python tests/lint/dependencies.py [ROOT]    prints each; exit 1 if there are any

A dependency is used if the code of its crate names it (for [dependencies], the code below src), or if a
feature in its Cargo.toml names it (`dep:reqwest`): some dependencies only switch on features of another
crate. A dependency of the workspace is used if a crate declares it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Typed as Any, since only one of the two modules exists.
tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

SECTIONS = ("dependencies", "dev-dependencies", "build-dependencies")
FEATURES_ONLY = "workspace-hack"
"""A crate without code, which only lists features of dependencies."""
LIBRARIES = {"md-5": "md5"}
"""Packages whose library has a different name."""


def declared(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The dependencies of a crate with their sections."""
    for place in (manifest, *manifest.get("target", {}).values()):
        for section in SECTIONS:
            for name in place.get(section, {}):
                yield section, name


def source(crate: Path, section: str) -> str:
    """The Rust code of a crate that a section applies to, without comments."""
    files = [path for path in crate.rglob("*.rs") if "target" not in path.relative_to(crate).parts]
    if section == "dependencies" and (crate / "src").exists():
        files = [path for path in files if path.relative_to(crate).parts[0] == "src"]
    return re.sub(r"//[^\n]*", "", "\n".join(path.read_text() for path in files))


def unused(crate: Path) -> Iterator[str]:
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    features = " ".join(value for values in manifest.get("features", {}).values() for value in values)
    code = {section: source(crate, section) for section in SECTIONS}
    for section, name in declared(manifest):
        if FEATURES_ONLY in (crate.name, name):
            continue
        library = LIBRARIES.get(name, name).replace("-", "_")
        is_named = re.search(rf"\b{library}\b", code[section]) or re.search(rf"\b{name}\b", features)
        if not is_named:
            yield f"{crate.name}: {name} of [{section}]"


def main(root: Path) -> int:
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    crates = [path.parent for path in sorted(root.glob("crates/*/Cargo.toml"))]
    crates += [path for path in (root / "benches", root / "fuzz") if (path / "Cargo.toml").exists()]
    lines = [line for crate in crates for line in unused(crate)]
    named = {
        name for crate in crates for _, name in declared(tomllib.loads((crate / "Cargo.toml").read_text()))
    }
    lines += [f"workspace: {name}" for name in workspace.get("dependencies", {}) if name not in named]
    for line in lines:
        print(f"nothing names {line}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]))
