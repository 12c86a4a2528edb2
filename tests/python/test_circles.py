"""The check for circular imports between source files: circles that it must find, and correct code."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("circles", Path(__file__).parents[1] / "lint" / "circles.py")
assert spec is not None
assert spec.loader is not None
circles = importlib.util.module_from_spec(spec)
spec.loader.exec_module(circles)


def exit_code(root, files):
    """The exit code of the check on a tree of these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return circles.main(root)


SRC = "crates/c/src/"


@pytest.mark.parametrize(
    "files",
    [
        {"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "fn f() -> crate::a::A { todo!() }"},
        {"lib.rs": "", "a.rs": "use super::{b::{self, B}, c};", "b.rs": "use crate::a;", "c.rs": ""},
        # The root re-exports the name, so no path names the file.
        {"lib.rs": "mod b; pub use b::{x::Y, B as C};", "a.rs": "use crate::C;", "b.rs": "use crate::a::A;"},
        # Through a child module, after a lifetime, a string and a comment that may mislead the parser.
        {
            "lib.rs": "",
            "a.rs": "mod k; fn f<'a>(_: &'a str) { \"// \"; k::g() } /* { */",
            "a/k.rs": "use crate::b::B;",
            "b.rs": "use crate::a::A;",
        },
        {"lib.rs": "", "a.rs": "#[cfg(test)] use x::{y}; use crate::b::B;", "b.rs": "use crate::a::A;"},
    ],
)
def test_a_circle_in_rust_is_reported(tmp_path, files, capsys):
    assert exit_code(tmp_path, {SRC + name: text for name, text in files.items()}) == 1
    assert "uses crate::" in capsys.readouterr().out


@pytest.mark.parametrize(
    "files",
    [
        {"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "// use crate::a::A;"},
        {"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "#[cfg(test)]\nmod tests { use crate::a::A; }"},
        {"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": 'const S: &str = "crate::a::A";'},
        # A child uses an item of its parent.
        {"lib.rs": "", "a.rs": "mod k; use k::K;", "a/k.rs": "use super::A;"},
        {"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "fn f() -> impl Sized + use<'_> { other::a::A }"},
    ],
)
def test_rust_code_without_a_circle_is_accepted(tmp_path, files):
    assert exit_code(tmp_path, {SRC + name: text for name, text in files.items()}) == 0


def test_a_circle_in_python_is_reported(tmp_path):
    package = {
        "python/coldframe/__init__.py": "from coldframe.a import f",
        "python/coldframe/a.py": "def f():\n    from coldframe.b import g",
        "python/coldframe/b.py": "from . import a",
        "python/coldframe/c.py": "import typing\nif typing.TYPE_CHECKING:\n    import coldframe.d\n",
        "python/coldframe/d.py": "import coldframe.c",
    }
    assert exit_code(tmp_path, package) == 1


def test_empty_tree_is_an_error(tmp_path, capsys):
    assert circles.main(tmp_path) == 1
    assert "no source files" in capsys.readouterr().err
