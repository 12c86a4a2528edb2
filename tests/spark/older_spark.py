"""The Python of an environment with an older Spark, which `make` builds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _python() -> str | None:
    given = os.environ.get("COLDFRAME_PYSPARK35")
    candidates = [Path(given)] if given else [ROOT / ".venv-spark35" / "bin" / "python"]
    for candidate in candidates:
        if candidate.exists():
            done = subprocess.run(
                [candidate, "-c", "import pyspark; print(pyspark.__version__)"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0 and done.stdout.startswith("3."):
                return str(candidate)
    return None


PYTHON = _python()
