"""Finds source files that import each other in a circle, in each Rust crate and in the Python package.

    python tests/lint/circles.py [ROOT]    prints each circle and its shortest path; exit 1 if there are any

Files that import each other cannot be read, tested or moved alone. So imports point in one direction, down.
A parent and its children are a single room: a child may use its parent's names (`super::`, the `__init__` of
its package), and such a use is not an edge. Code under `#[cfg(test)]` or `if TYPE_CHECKING:` and test files
are ignored.

Rust is tokenised, not compiled: the tool reads `use` trees, and paths that begin with `crate`, `self`,
`super` or a child's name. A name that `lib.rs` re-exports (`pub use decode::Decoder`) is traced to the file
that defines it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

Module = tuple[str, ...]


class Use(NamedTuple):
    """The first place where a file uses another."""

    line: int
    text: str


# from file -> to file -> the first use
Graph = dict[Path, dict[Path, Use]]


class Token(NamedTuple):
    """A word, or a symbol that matters to paths and blocks."""

    text: str
    line: int


TOKEN = re.compile(
    r"""
    (?P<skip> //[^\n]* | /\*.*?\*/                                # comments
      | b?r(?P<hashes>\#*)".*?"(?P=hashes) | [bc]?"(?:\\.|[^"\\])*" # strings
      | b?'(?:\\[^']+|\\'|[^'\\\n])' | '\w+ )                       # characters, lifetimes
  | (?P<token> (?:r\#)?[A-Za-z_]\w* | :: | [{}()\[\];,*\#<] )       # the last for `impl Trait + use<'a>`
    """,
    re.VERBOSE | re.DOTALL,
)
OPEN, CLOSE = "{([", "})]"


def tokens(source: str) -> list[Token]:
    """The tokens of a Rust file, without comments, strings and test code."""
    kept: list[Token] = []
    line, at = 1, 0
    for match in TOKEN.finditer(source):
        line += source.count("\n", at, match.start())
        at = match.start()
        if match["token"]:
            kept.append(Token(match["token"].removeprefix("r#"), line))
    return without_tests(kept)


def without_tests(stream: list[Token]) -> list[Token]:
    """Drops attributes, and items after a `cfg(.. test ..)` attribute."""
    kept: list[Token] = []
    at = 0
    while at < len(stream):
        if stream[at].text == "#" and at + 1 < len(stream) and stream[at + 1].text == "[":
            end = closing(stream, at + 1)
            texts = {t.text for t in stream[at:end]}
            at = end + 1
            if {"cfg", "test"} <= texts:
                at = behind_item(stream, at)
        else:
            kept.append(stream[at])
            at += 1
    return kept


def closing(stream: list[Token], at: int) -> int:
    """The position of the bracket that closes the bracket at `at`."""
    depth = 0
    for i in range(at, len(stream)):
        depth += (stream[i].text in OPEN) - (stream[i].text in CLOSE)
        if depth == 0:
            return i
    return len(stream)


def behind_item(stream: list[Token], at: int) -> int:
    """The position after the item that begins at `at`: after its block or its semicolon."""
    while at < len(stream) and stream[at].text != ";":
        if stream[at].text in OPEN:
            end = closing(stream, at)
            if stream[at].text == "{":
                return end + 1
            at = end
        at += 1
    return at + 1


class RustFile:
    """The paths that a Rust file names, as modules relative to the crate's root."""

    def __init__(self, module: Module, source: str) -> None:
        self.module = module
        self.paths: list[tuple[Module, int]] = []
        # Re-exports (`pub use`), by their names in this file.
        self.re_exports: dict[str, Module] = {}
        self._tokens = tokens(source)
        text = [token.text for token in self._tokens]
        self._children = {
            text[i + 1] for i in range(len(text) - 2) if text[i] == "mod" and text[i + 2] == ";"
        }
        self._read()

    def _read(self) -> None:
        stream, at, modules = self._tokens, 0, [self.module]
        ends: list[int] = []
        while at < len(stream):
            while ends and at >= ends[-1]:
                ends.pop()
                modules.pop()
            word = stream[at].text
            following = stream[at + 1].text if at + 1 < len(stream) else ""
            if word == "mod" and at + 2 < len(stream) and stream[at + 2].text == "{":
                ends.append(closing(stream, at + 2))
                modules.append((*modules[-1], following))
                at += 3
            elif word == "use" and re.match(r"\w", following):
                public = at > 0 and stream[at - 1].text in ("pub", ")")
                at = self._use(at + 1, (), modules[-1], public)
            elif re.match(r"\w", word) and following == "::" and (at == 0 or stream[at - 1].text != "::"):
                parts, line = [word], stream[at].line
                for mark, name in zip(
                    stream[at + 1 : at + 40 : 2], stream[at + 2 : at + 41 : 2], strict=False
                ):
                    if mark.text != "::" or not re.match(r"\w", name.text):
                        break
                    parts.append(name.text)
                self._add(tuple(parts), modules[-1], line)
                at += 2 * len(parts) - 1
            else:
                at += 1

    def _use(self, at: int, lead: Module, inside: Module, public: bool) -> int:
        """Parses one `use` tree from `at` on; returns the position after it."""
        stream, parts, line = self._tokens, list(lead), self._tokens[at].line
        while at < len(stream):
            text = stream[at].text
            if text == "{":
                end = closing(stream, at)
                at += 1
                while at < end:
                    at = self._use(at, tuple(parts), inside, public)
                    at += at < end and stream[at].text == ","
                return end + 1
            if text in (",", ";", "}"):
                break
            if text == "as":
                at += 1
                name = stream[at].text
                self._add(tuple(parts), inside, line, name if public else None)
                return at + 1
            if text != "::":
                parts.append(text)
            at += 1
        if parts and parts[-1] == "self":
            parts.pop()
        self._add(tuple(parts), inside, line, parts[-1] if public and parts else None)
        return at

    def _add(self, parts: Module, inside: Module, line: int, re_exported: str | None = None) -> None:
        if parts[:1] == ("crate",):
            full = parts[1:]
        elif parts[:1] == ("self",):
            full = inside + parts[1:]
        elif parts[:1] == ("super",):
            up = next((i for i, part in enumerate(parts) if part != "super"), len(parts))
            full = inside[: len(inside) - up] + parts[up:]
        elif parts and parts[0] in self._children:
            full = self.module + parts
        else:
            return
        self.paths.append((full, line))
        if re_exported and inside == ():
            self.re_exports[re_exported] = full


def rust(src: Path) -> Graph:
    """The uses inside one crate."""
    files: dict[Module, Path] = {}
    for path in sorted(src.rglob("*.rs")):
        module = path.relative_to(src).with_suffix("").parts
        if "tests" in module or module[0] == "bin":
            continue
        files[module[:-1] if module[-1] in ("mod", "lib", "main") else module] = path
    read = {module: RustFile(module, path.read_text()) for module, path in files.items()}
    root = read[()].re_exports if () in read else {}

    def owner(full: Module) -> Module:
        if full and full[:1] not in files and full[0] in root:
            full = root[full[0]]
        return next((full[:n] for n in range(len(full), 0, -1) if full[:n] in files), ())

    graph: Graph = {path: {} for path in files.values()}
    for module, file in read.items():
        for full, line in file.paths:
            to = owner(full)
            if module and to and to not in (module, module[:-1]):
                graph[files[module]].setdefault(files[to], Use(line, "::".join(("crate", *full))))
    return graph


class PythonUses(ast.NodeVisitor):
    """The modules that a Python file imports, anywhere in it."""

    def __init__(self, package: Module) -> None:
        self.package = package
        self.names: list[tuple[Module, int]] = []

    def visit_If(self, node: ast.If) -> None:
        """Ignores imports for type checkers only."""
        test = node.test
        name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
        for child in node.orelse if name == "TYPE_CHECKING" else ast.iter_child_nodes(node):
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b`."""
        self.names += [(tuple(alias.name.split(".")), node.lineno) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a import b`, where b may be a module; `from . import b`."""
        base: Module = self.package[: len(self.package) - node.level + 1] if node.level else ()
        base += tuple(node.module.split(".")) if node.module else ()
        self.names.append((base, node.lineno))
        self.names += [((*base, alias.name), node.lineno) for alias in node.names]


def python(package: Path) -> Graph:
    """The imports inside one package. The `__init__` files of the package are the rooms themselves, not files
    in rooms.
    """
    files = {
        path.relative_to(package.parent).with_suffix("").parts: path
        for path in sorted(package.rglob("*.py"))
        if path.name != "__init__.py"
    }
    graph: Graph = {path: {} for path in files.values()}
    for module, path in files.items():
        uses = PythonUses(module[:-1])
        uses.visit(ast.parse(path.read_text()))
        for name, line in uses.names:
            if name in files and name != module:
                graph[path].setdefault(files[name], Use(line, ".".join(name)))
    return graph


def reach(graph: Graph, start: Path) -> dict[Path, Path]:
    """Every file that `start` leads to, with its predecessor on a shortest path."""
    before: dict[Path, Path] = {}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for to in sorted(graph[at]):
            if to not in before:
                before[to] = at
                queue.append(to)
    return before


def circles(graph: Graph) -> Iterator[tuple[list[Path], list[Path]]]:
    """Groups of files that all lead to each other, each with a shortest cycle through its first file."""
    ways = {file: reach(graph, file) for file in graph}
    done: set[Path] = set()
    for file, way in sorted(ways.items()):
        group = sorted(other for other in way if file in ways[other])
        if len(group) < 2 or file in done:
            continue
        done.update(group)
        round_ = [file]
        while True:
            round_.append(way[round_[-1]])
            if round_[-1] == file:
                break
        yield group, round_[::-1]


def main(root: Path) -> int:
    """Prints the circles below `root`; returns their number."""
    graphs = [rust(src) for src in sorted(root.glob("crates/*/src"))]
    graphs += [python(package) for package in [root / "python" / "coldframe"] if package.is_dir()]
    if not any(graphs):
        print(f"no source files below {root}", file=sys.stderr)
        return 1
    count = 0
    for graph in graphs:
        for group, way in circles(graph):
            count += 1
            print(f"circle of {len(group)}: " + ", ".join(str(f.relative_to(root)) for f in group))
            for file, to in pairwise(way):
                use = graph[file][to]
                print(f"  {file.relative_to(root)}:{use.line} uses {use.text}")
    return count


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")) else 0)
