"""Checks the structure of the Python package (CONTRIBUTING.md).

    python tests/lint/rooms.py [ROOT]    prints each place; exit 1 if any

- A room of the migration imports no room above it. `ORDER` has the rooms from the lowest to the highest.
- Rooms exchange records, not dictionaries: `dict[str, Any]` is only allowed where JSON comes in.
- Python has no rules of formats: only a few files of data contain a format's name.
- A file stays below `LONGEST` lines.

Exceptions are listed by name below, and should become fewer. An unused exception is an error, too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PIPELINE = "python/coldframe/pipeline"
ORDER = (
    "file_access",
    "session",
    "records",
    "scheduling",
    "sink",
    "state",
    "source.selection",
    "options",
    "source",
    # Records that all rooms give to the report are defined below these rooms.
    "report.verdict",
    "report.progress",
    "report.model",
    "plan",
    "work",
    "adopt",
    "report",
    "__init__",
)
"""Rooms and modules of the pipeline, from the lowest up.

A module's own line overrides the line of its room.
"""
ENTRY = frozenset({"__main__"})
"""Scripts: nothing imports them, and they alone may import the command line."""

FORMATS = frozenset({"orc", "rcfile", "hfile", "cfile", "kudu", "hbase", "redfile", "hudi", "acid"})
DATA = frozenset(
    {
        "python/coldframe/__init__.py",  # the name of a module
        "python/coldframe/literals.py",  # the names themselves, for type checkers
        "python/coldframe/cli/migrate.py",  # the targets' names
        "python/coldframe/cli/sample.py",  # the formats of its files
        "python/coldframe/pipeline/sink/targets.py",
        "python/coldframe/spark/source.py",  # a data source of Spark is a class with a name
    }
)
"""Files that may have names of formats in them."""
NAMED_STILL: frozenset[str] = frozenset({"python/coldframe/hudi.py"})
"""Files with a format rule that should move into the format."""

EDGE = frozenset({"source/tables.py"})
"""Modules that read JSON or TOML of users: keyword arguments of `coldframe.open`."""
UNTYPED_STILL: frozenset[str] = frozenset()
"""Other modules that still have `dict[str, Any]`."""

LONGEST = 600
LONG_STILL: frozenset[str] = frozenset()


def rank(module: str) -> int | None:
    """The position of a module in `ORDER`, by its longest matching line; None without such a line."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in ORDER:
            return ORDER.index(name)
    return None


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The modules that a file imports, also for type checkers only, with lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def upward(root: Path) -> Iterator[str]:
    """Imports from a lower room of the pipeline to a higher room, or to the command line."""
    base = root / PIPELINE
    known = {module_of(path, base) for path in base.rglob("*.py")}
    for path in sorted(base.rglob("*.py")):
        module, where = module_of(path, base), path.relative_to(root)
        if module in ENTRY:
            continue
        mine = rank(module)
        if mine is None:
            yield f"{where}: has no place in the order of rooms"
            continue
        seen: set[tuple[str, int]] = set()
        for name, line in imports(ast.parse(path.read_text())):
            if name == "coldframe.cli" or name.startswith("coldframe.cli."):
                yield f"{where}:{line}: imports {name}, which stands on top of the pipeline"
            to = name.removeprefix("coldframe.pipeline.")
            if to == name or to not in known or (to, line) in seen:
                continue
            seen.add((to, line))
            other = rank(to)
            if other is not None and other > mine:
                yield f"{where}:{line}: imports {to}, which is in a higher room"


def module_of(path: Path, base: Path) -> str:
    """A file's name as a module below the pipeline; a room's own file has the room's name."""
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def dictionaries(root: Path) -> Iterator[str]:
    """`dict[str, Any]` in the pipeline."""
    base = root / PIPELINE
    needed = set()
    for path in sorted(base.rglob("*.py")):
        name = path.relative_to(base).as_posix()
        lines = [
            node.lineno
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Subscript) and ast.unparse(node) in ("dict[str, Any]", "Dict[str, Any]")
        ]
        needed.update([name] if lines else [])
        if name not in EDGE | UNTYPED_STILL:
            yield from (f"{PIPELINE}/{name}:{line}: dict[str, Any]; make it a record" for line in lines)
    yield from (
        f"{name} has no dict[str, Any] any more: take it off the list"
        for name in (EDGE | UNTYPED_STILL) - needed
    )


def formats(root: Path) -> Iterator[str]:
    """Names of formats in Python's code."""
    needed = set()
    for path in sorted((root / "python").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        constants = [
            (node.lineno, node.value)
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in FORMATS
        ]
        needed.update([name] if constants else [])
        if name not in DATA | NAMED_STILL:
            yield from (f'{name}:{line}: "{value}": ask the format instead' for line, value in constants)
    yield from (
        f"{name} names no format any more: take it off the list" for name in (DATA | NAMED_STILL) - needed
    )


def sizes(root: Path) -> Iterator[str]:
    """Files that are too long."""
    needed = set()
    for path in sorted([*(root / "python").rglob("*.py"), *root.glob("crates/*/src/**/*.rs")]):
        name = path.relative_to(root).as_posix()
        lines = path.read_text().count("\n")
        if lines > LONGEST:
            needed.add(name)
            if name not in LONG_STILL:
                yield f"{name}: {lines} lines; {LONGEST} are enough"
    yield from (f"{name} is not too long any more: take it off the list" for name in LONG_STILL - needed)


def main(root: Path) -> int:
    """Prints the problems below `root`; returns their number."""
    problems = [*upward(root), *dictionaries(root), *formats(root), *sizes(root)]
    for problem in problems:
        print(problem)
    return len(problems)


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")) else 0)
