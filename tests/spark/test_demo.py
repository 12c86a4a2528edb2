"""`make demo`: all five formats, a damaged file, and the files to look at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "benches" / "demo.py"


def test_the_demo_migrates_all_formats_and_lists_its_results(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((tmp_path / "out/lake/_coldframe/report.json").read_text())
    assert {table["format"] for table in report["tables"]} >= {"rcfile", "orc", "hfile", "kudu", "redfile"}
    # A file is damaged, and another has timestamps too fine for Parquet's microseconds.
    partial = {table["name"] for table in report["tables"] if table["verdict"] == "partial"}
    assert partial == {"payments", "warehouse.measures"}
    assert all(table["verified"] for table in report["tables"] if table["name"] not in partial)
    home = tmp_path / "out/lake/_coldframe"
    files = [json.loads(line) for line in (home / "files.jsonl").read_text().splitlines()]
    (odd,) = [file for file in files if file["status"] not in ("converted", "empty")]
    assert odd["source"] == "warehouse/payments/000000_0"
    assert (home / odd["quarantine"].removeprefix("_coldframe/")).exists()
    for name in ("report.html", "manifest.jsonl", "safe-to-delete.txt"):
        assert str(home / name) in done.stdout
        assert (home / name).stat().st_size > 0
