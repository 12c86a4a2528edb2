"""The stub of the compiled module matches it."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import coldframe
from coldframe import _coldframe

STUB = Path(coldframe.__file__).with_name("_coldframe.pyi")

# Protocols exist only for the type checker.
TYPING_ONLY = {"ArrowStreamExportable", "ArrowArrayExportable", "ArrowSchemaExportable"}


def declared() -> dict[str, set[str] | None]:
    """The names of the stub; a class with the names of its members."""
    names: dict[str, set[str] | None] = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            members |= {
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
            names[node.name] = members
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = None
    return {name: members for name, members in names.items() if name not in TYPING_ONLY}


def test_names() -> None:
    module = {name for name in dir(_coldframe) if not name.startswith("_") or name == "__version__"}
    assert module == set(declared())


@pytest.mark.parametrize("name", [name for name, members in declared().items() if members is not None])
def test_members(name: str) -> None:
    members = declared()[name]
    assert members is not None
    kind = getattr(_coldframe, name)
    if issubclass(kind, Exception):
        return  # attributes are set on each error: see the tests of errors
    assert {member for member in members if not hasattr(kind, member)} == set()
    ours = {
        member for member, value in vars(kind).items() if not member.startswith("__") and value is not None
    }
    ours |= {
        member for member in vars(kind) if member.startswith("__arrow_") or member in ("__iter__", "__next__")
    }
    assert ours <= members, ours - members


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_stubtest(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text("".join(f"coldframe\\._coldframe\\.{name}.*\n" for name in sorted(TYPING_ONLY)))
    # Only the stub: the package with its imports, such as PySpark, takes ten times as long.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = skip\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy.stubtest",
            "coldframe._coldframe",
            "--allowlist",
            str(allowed),
            "--ignore-unused-allowlist",
            "--ignore-missing-stub",
            "--mypy-config-file",
            str(config),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_keyword_types_match_the_code() -> None:
    script = Path(__file__).resolve().parents[2] / "packaging" / "keywords.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_package_exports_every_name_in_dunder_all() -> None:
    for name in coldframe.__all__:
        assert getattr(coldframe, name) is not None
    errors = ["CorruptFileError", "LimitError", "UnsupportedError", "SchemaError", "KeyUnavailableError"]
    errors += ["NotFoundError"]
    assert all(issubclass(getattr(coldframe, name), coldframe.ColdframeError) for name in errors)
    assert Path(coldframe.__file__).with_name("py.typed").exists()
