"""Checks what the working tree changes: python tests/check.py [--base REF] [--list]

`make check` calls this program. It compares the working tree with REF (default: the last commit on main) and
runs, for the crates and rooms that changed:

    changed                what runs
    .rs, Cargo.toml        rustfmt; clippy and nextest of the changed crates and of all that rest on them;
                           doctests of the changed ones; a new extension; then what a change of Python runs
    .py, .pyi, .toml       ruff, mypy, lints; pytest of the tier unit, and of changed rooms the tier engine
    .java, pom.xml         javac, and the Spark tests of the tier engine
    .md                    the tests of the pages

It ends with the ten slowest unit tests, the seconds of each step, and a list of what it did not run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON_FILES = ("python", "tests", "benches", "packaging", "docs/site")
NOT_TESTED = frozenset({"coldframe-python", "coldframe-benches", "coldframe-fuzz", "workspace-hack"})
"""Crates without Rust tests of their own: clippy looks at them, and pytest or fuzzing runs them."""
NO_TESTS = 5
"""The exit code of pytest if it collected no test."""
ROOMS = {
    "python/coldframe/cli": ("test_cli*", "test_next_steps", "test_logging"),
    "python/coldframe/hive": ("test_hive*", "test_metastore*"),
    "python/coldframe/iceberg": ("test_iceberg*",),
    "python/coldframe/layout": ("test_layout*",),
    "python/coldframe/pipeline": ("test_migration.py", "test_migration_scheduling", "test_switching"),
    "python/coldframe/pipeline/adopt": ("test_adopting*",),
    "python/coldframe/pipeline/plan": ("test_migration_planning", "test_migration_layouts"),
    "python/coldframe/pipeline/report": ("test_report*", "test_verdict"),
    "python/coldframe/pipeline/sink": ("test_iceberg_catalogs", "test_hive_registration", "test_delta*"),
    "python/coldframe/pipeline/source": ("test_metastore*", "test_migration_defined*"),
    "python/coldframe/pipeline/work": ("test_migration_by_spark",),
    "python/coldframe/spark": ("test_source", "test_reading", "test_formats", "test_connector*"),
    "crates/coldframe-store": ("test_stores", "test_object*", "test_store*"),
    "crates/coldframe-orc": ("test_orc*",),
    "crates/coldframe-jni": ("test_connector*",),
    "jvm": ("test_connector*",),
}
"""Which files of the tier *engine* run if a room has changed.

All other files of the tier wait for `make test`.
"""


@dataclass
class Change:
    """The changed files, and what follows from them."""

    files: list[str]
    crates: list[str] = field(default_factory=list)
    """The changed crates."""
    dependents: list[str] = field(default_factory=list)
    """The changed crates and all crates that depend on them."""

    def has(self, *endings: str) -> bool:
        return any(file.endswith(endings) for file in self.files)

    @property
    def is_rust(self) -> bool:
        return bool(self.crates)

    @property
    def is_python(self) -> bool:
        return self.is_rust or self.has(".py", ".pyi", "pyproject.toml", "conftest.py")


@dataclass
class Check:
    """Runs the steps, and remembers their seconds and what was left out."""

    seconds: list[tuple[str, float, bool]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def run(self, name: str, command: Sequence[str], *, none: int = 0, **environment: str) -> bool:
        """Whether the step ends with exit code 0, or with `none`, the code that means "nothing to do"."""
        print(f"\n== {name}: {' '.join(command)[:160]}", flush=True)
        begun = time.monotonic()
        code = subprocess.call(command, cwd=ROOT, env={**os.environ, **environment})
        passed = code in (0, none)
        self.seconds.append((name, time.monotonic() - begun, passed))
        return passed

    def close(self) -> int:
        print("\n== summary")
        for name, seconds, passed in self.seconds:
            print(f"{seconds:7.1f} s  {'passed' if passed else 'FAILED'}  {name}")
        print(f"{sum(seconds for _, seconds, _ in self.seconds):7.1f} s  in all")
        print("not run: " + ("; ".join(self.left_out) or "nothing"))
        return 0 if all(passed for _, _, passed in self.seconds) else 1


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def base_of(given: str | None) -> str:
    """The commit to compare with: the given commit, or the last commit on main that this tree contains."""
    for name in (given, "main", "origin/main"):
        if name is None:
            continue
        known = subprocess.run(
            ["git", "rev-parse", "-q", "--verify", f"{name}^{{commit}}"], cwd=ROOT, capture_output=True
        )
        if known.returncode == 0:
            return output("git", "merge-base", "HEAD", name).strip()
        if name == given:
            sys.exit(f"check: there is no commit {given}")
    return "HEAD"


def changed_files(base: str) -> list[str]:
    tracked = output("git", "diff", "--name-only", "-z", base).split("\0")
    new = output("git", "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return sorted({file for file in (*tracked, *new) if file})


def crates() -> Iterator[tuple[str, str, set[str]]]:
    """Each crate of the workspace: its folder, its name, and the crates of the workspace that it uses."""
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"))
    for package in metadata["packages"]:
        folder = Path(package["manifest_path"]).parent.relative_to(ROOT).as_posix()
        yield folder, package["name"], {used["name"] for used in package["dependencies"] if used.get("path")}


def change_since(base: str) -> Change:
    change = Change(changed_files(base))
    everything = list(crates())
    names = {name for _, name, _ in everything}
    if any(file in ("Cargo.toml", "Cargo.lock", "clippy.toml") for file in change.files):
        change.crates = sorted(names)
    else:
        change.crates = sorted(
            name
            for folder, name, _ in everything
            if any(file.startswith(f"{folder}/") for file in change.files)
        )
    reached = set(change.crates)
    while True:
        more = {name for _, name, used in everything if used & reached} - reached
        if not more:
            break
        reached |= more
    change.dependents = sorted(reached)
    return change


def packages(crates: Sequence[str]) -> list[str]:
    """The crates as options of cargo."""
    return [argument for crate in crates for argument in ("-p", crate)]


def check_rust(check: Check, change: Change) -> None:
    tested = [crate for crate in change.dependents if crate not in NOT_TESTED]
    check.run("rustfmt", ["cargo", "fmt", "--all", "--check"])
    clippy = ["cargo", "clippy", *packages(change.dependents), "--all-targets", "-q", "--", "-D", "warnings"]
    check.run(f"clippy of {len(change.dependents)} crates", clippy)
    if tested:
        path = f"{sys.prefix}/bin:{os.environ['PATH']}"
        which = [*packages(tested), "--lib", "--tests", "--no-fail-fast"]
        if shutil.which("cargo-nextest", path=path):
            run = ["cargo", "nextest", "run", *which, "--status-level", "fail"]
            check.run(f"nextest of {len(tested)} crates", run, PATH=path)
        else:
            run = ["cargo", "test", *which, "-q"]
            check.run(f"tests of {len(tested)} crates (cargo-nextest is not installed)", run)
    documented = [crate for crate in change.crates if crate in tested]
    if 0 < len(documented) < 5:
        check.run("doctests", ["cargo", "test", "--doc", "-q", *packages(documented)])
        check.left_out.append("doctests of the crates that rest on the changed ones")
    elif documented:
        check.left_out.append("doctests")
    build = [f"{sys.prefix}/bin/maturin", "develop", "--locked", "-q"]
    if check.run("the extension", build, VIRTUAL_ENV=sys.prefix):
        (Path(sys.prefix) / ".built-dev").touch()
        (Path(sys.prefix) / ".built-release").unlink(missing_ok=True)
    check.left_out.append("the Spark connector's library and jar (make .venv/.jar-dev)")


def engine_files(change: Change) -> list[str]:
    """The files of the tier *engine* of the rooms that changed, and changed test files themselves."""
    patterns: set[str] = set()
    for room, names in ROOMS.items():
        inner = [other for other in ROOMS if other.startswith(f"{room}/")]
        for file in change.files:
            if file.startswith(f"{room}/") and not any(file.startswith(f"{other}/") for other in inner):
                patterns.update(names)
    files = {
        path.relative_to(ROOT).as_posix()
        for pattern in patterns
        for folder in ("tests/python", "tests/spark")
        for path in (ROOT / folder).rglob(pattern if pattern.endswith(".py") else f"{pattern}.py")
    }
    changed = {file for file in change.files if Path(file).name.startswith("test_") and file.endswith(".py")}
    return sorted(files | {file for file in changed if (ROOT / file).exists()})


def check_python(check: Check, change: Change) -> None:
    python = sys.executable
    check.run("ruff", [f"{sys.prefix}/bin/ruff", "check", "-q", *PYTHON_FILES])
    check.run("ruff format", [f"{sys.prefix}/bin/ruff", "format", "--check", "-q", *PYTHON_FILES])
    check.run("mypy", [f"{sys.prefix}/bin/mypy"])
    for lint in ("circles", "rooms", "dependencies", "words"):
        check.run(lint, [python, f"tests/lint/{lint}.py"])
    check.run(
        "pytest, tier unit",
        [python, "-m", "pytest", "-n", "4", "-m", "unit", "--durations=10", "--durations-min=0.5"],
    )
    files = engine_files(change)
    if files:
        run = [python, "-m", "pytest", "-m", "engine", *files]
        check.run("pytest, tier engine of changed rooms", run, none=NO_TESTS)
    check.left_out.append(
        "tests of the tier engine in rooms that did not change" if files else "tests of the tier engine"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", help="the commit to compare with (default: the last one on main)")
    parser.add_argument("--list", action="store_true", help="print what changed and stop")
    options = parser.parse_args(arguments)
    base = base_of(options.base)
    change = change_since(base)
    print(
        f"{len(change.files)} files differ from {base[:12]}; crates: {', '.join(change.dependents) or 'none'}"
    )
    if options.list:
        return 0
    check = Check()
    if change.is_rust:
        check_rust(check, change)
    if change.has(".java", "pom.xml"):
        check.run("javac", ["mvn", "-q", "-B", "-f", "jvm/pom.xml", "package"])
    if change.is_python:
        check_python(check, change)
    elif change.has(".md"):
        check.run(
            "pages",
            [sys.executable, "-m", "pytest", "tests/python/test_pages.py", "tests/python/test_site.py"],
        )
    check.left_out += ["tests of the tier soak (make soak)", "fuzzing (make fuzz-smoke)"]
    return check.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
