"""Turns what the Java program read into Parquet and a manifest. usage: truth.py DIR"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CELLS = pa.schema(
    [
        ("row", pa.binary()),
        ("family", pa.binary()),
        ("qualifier", pa.binary()),
        ("timestamp", pa.int64()),
        ("type", pa.uint8()),
        ("value", pa.binary()),
    ]
)
VIEWS = ["latest", "versions", "raw", "range"]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def typed(row: dict[str, Any]) -> dict[str, Any]:
    """Decodes text, which is base64."""
    return {k: base64.b64decode(v) if isinstance(v, str) else v for k, v in row.items()}


def main(folder: Path) -> None:
    manifest = []
    for entry in lines(folder / "written.jsonl"):
        for view in entry.get("views", VIEWS):
            source = folder / f"{entry['name']}.{view}.jsonl"
            truth = f"{entry['name']}.{view}.truth.parquet"
            table = pa.Table.from_pylist([typed(row) for row in lines(source)], schema=CELLS)
            pq.write_table(table, folder / truth, compression="zstd")
            source.unlink()
            shown: dict[str, Any] = {"view": "versions" if view == "range" else view}
            if view == "range":
                shown |= {"time_range": entry["time_range"], "versions": entry["versions"]}
            asked = {"table": entry["table"], "wal": entry["wal"], "as_of": 1_700_000_000_000} | shown
            about = {"file": entry["root"], "truth": truth, "open": asked, "rows": table.num_rows}
            manifest.append(about | {"writer": "HBase 2.6.4"})
    for path in folder.rglob("*.crc"):
        path.unlink()
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    (folder / "written.jsonl").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
