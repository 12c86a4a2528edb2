"""Where the test data lies, and what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "rcfile"
WAREHOUSE = DATA / "warehouse"
NUMBERS = {"schema": "a bigint, s string, h double", "serde": "binary"}
"""How the files of the fixture `numbers` are opened."""


def damaged() -> list[dict[str, Any]]:
    """The damaged files and what of them survives."""
    found: list[dict[str, Any]] = json.loads((DATA / "damaged" / "MANIFEST.json").read_text())
    return found


def survivors(entry: dict[str, Any]) -> int:
    """Rows that must come back."""
    return sum(stop - start for start, stop in entry["survive"])
