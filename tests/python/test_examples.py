"""The notebooks run from the first cell to the last, and show the expected output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("duckdb")
pytest.importorskip("pandas")


def outputs(cell: Any) -> str:
    """The output of a cell, as text."""
    shown = []
    for output in cell.get("outputs", []):
        shown.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    assert not any(outputs(cell) for cell in notebook.cells), "notebooks must be committed without outputs"
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    seen = "\n".join(outputs(cell) for cell in notebook.cells)
    assert "'rows': 550" in seen
    assert "(550, 600, " in seen
    assert "column 1" in seen
    assert "sales: 3078 rows" in seen
    assert "verified: True" in seen
    assert "the same 3078 rows" in seen


def test_notebooks_exist() -> None:
    assert NOTEBOOKS
