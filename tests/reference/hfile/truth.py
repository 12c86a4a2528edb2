"""Turns what the Java program read into Parquet and a manifest. usage: truth.py DIR"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TAGS = pa.list_(pa.struct([("type", pa.uint8()), ("value", pa.binary())]))
CELLS = pa.schema(
    [
        ("row", pa.binary()),
        ("family", pa.binary()),
        ("qualifier", pa.binary()),
        ("timestamp", pa.int64()),
        ("type", pa.uint8()),
        ("value", pa.binary()),
        ("tags", TAGS),
        ("sequence_id", pa.int64()),
    ]
)
PAIRS = pa.schema([("key", pa.string()), ("value", pa.binary())])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def typed(row: dict[str, Any]) -> dict[str, Any]:
    """Decodes base64 text, also inside the structs of tags."""
    decoded: dict[str, Any] = {k: base64.b64decode(v) if isinstance(v, str) else v for k, v in row.items()}
    if "tags" in decoded:
        decoded["tags"] = [t | {"value": base64.b64decode(t["value"])} for t in decoded["tags"]]
    if "key" in decoded:
        decoded["key"] = decoded["key"].decode()
    return decoded


def main(folder: Path) -> None:
    manifest = []
    truths: dict[str, str] = {}
    for entry in lines(folder / "written.jsonl"):
        name, kind = entry["name"], entry["kind"]
        source = folder / f"{name}.jsonl"
        schema = CELLS if kind == "cells" else PAIRS
        text = kind + source.read_text(encoding="utf-8")
        # Files with the same cells share expected rows.
        truth = truths.setdefault(text, f"{name}.truth.parquet")
        table = pa.Table.from_pylist([typed(row) for row in lines(source)], schema=schema)
        assert table.num_rows == entry["rows"]
        pq.write_table(table, folder / truth, compression="zstd")
        source.unlink()
        manifest.append(
            {
                "file": f"{name}.hfile",
                "truth": truth,
                "open": {},
                "rows": entry["rows"],
                "writer": entry["writer"],
                "features": entry["features"],
            }
        )
    (folder / "written.jsonl").unlink()
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
