"""The wheel, if one was built, and the settings of its build."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "dist").glob("coldframe-*.whl"))


def script(name: str) -> ModuleType:
    """A script of packaging/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_recipe_is_for_the_nodes_of_old_clusters() -> None:
    make = (ROOT / "Makefile").read_text()
    recipe = make[make.index("\nwheel:") :].partition("\n\n")[0]
    assert "--zig --compatibility manylinux2014" in recipe
    assert "packaging/symbols.py" in recipe
    assert "packaging/licences.py" in recipe
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    assert "--zig --compatibility manylinux2014" in workflow
    assert "NOT RUN YET" in workflow


def test_python_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert project["project"]["requires-python"] == ">=3.10"
    assert cargo["workspace"]["dependencies"]["pyo3"]["features"] == ["abi3-py310"]
    tried = script("smoke").VERSIONS
    assert tried == [(3, minor) for minor in range(10, 15)]
    # The oldest version that `migrate` was tested with; the data source checks for a newer version itself.
    assert "pyspark>=3.3" in project["project"]["optional-dependencies"]["spark"]
    packages = {path.name for path in (ROOT / "python").iterdir() if (path / "__init__.py").exists()}
    assert set(project["tool"]["maturin"]["python-packages"]) == packages


def test_both_licence_checks_agree() -> None:
    deny = tomllib.loads((ROOT / "deny.toml").read_text())
    licences = script("licences")
    assert set(deny["licenses"]["allow"]) == licences.ALLOWED
    assert deny["bans"]["multiple-versions"] == "deny"
    assert all(entry["reason"] for entry in deny["bans"]["skip"])
    for expression, allowed in {
        "MIT OR Apache-2.0": True,
        "MIT/Apache-2.0": True,
        "(MIT OR GPL-3.0) AND Zlib": True,
        "GPL-3.0 AND MIT": False,
        "GPL-3.0": False,
        "": False,
    }.items():
        assert licences.is_allowed(expression) is allowed, expression


def test_compiled_crates_have_allowed_licences() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "packaging" / "licences.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No such file" in done.stderr:
        pytest.skip("no cargo to ask")
    assert done.returncode == 0, done.stderr
    assert "all with allowed licences" in done.stdout


def test_needed_symbols_are_listed() -> None:
    """Python itself was linked on this machine, and needs symbols of its glibc."""
    pytest.importorskip("elftools")
    symbols = script("symbols")
    symbols_needed = list(symbols.needed(Path(sys.executable).resolve().read_bytes()))
    assert any(version.startswith("GLIBC_2") for _, version in symbols_needed)


@pytest.mark.skipif(not WHEELS, reason="no wheel was built: make wheel")
@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_wheel_matches_its_name(wheel: Path) -> None:
    pytest.importorskip("elftools")
    platform = r"(?:manylinux_2_17_x86_64|manylinux2014_x86_64|\.){3}"
    assert re.fullmatch(rf"coldframe-[\d.]+-cp310-abi3-{platform}\.whl", wheel.name)
    assert script("symbols").check(wheel) == []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode()
        third = archive.read(next(n for n in names if n.endswith("THIRD-PARTY.txt"))).decode()
    for wanted in (
        "coldframe/_coldframe.abi3.so",
        "coldframe/py.typed",
        "coldframe/_coldframe.pyi",
        "coldframe/layout/page.js",
        "coldframe/layout/page.css",
        "pyspark_coldframe/__init__.py",
    ):
        assert wanted in names, wanted
    assert not any("test" in name.split("/")[0] or name.endswith((".pyc", ".rs")) for name in names)
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.10" in metadata
    assert "zstd" in third
    assert "Copyright" in third
