"""Small Hudi tables, copy on write, made by hand from the rules of the format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GROUP = "7f1c2f0e-0"
FIELDS = (("id", "string"), ("city", "string"), ("fare", "double"))
SCHEMA = json.dumps(
    {"type": "record", "name": "trips", "fields": [{"name": n, "type": ["null", t]} for n, t in FIELDS]}
)


def hudi_table(path: Path, commits: Mapping[str, list[float | None]]) -> Path:
    """A table with a file group in the partition `eu`: for each instant, the fares after it, by row."""
    (path / ".hoodie").mkdir(parents=True)
    (path / "eu").mkdir()
    (path / "eu/.hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
    (path / ".hoodie/hoodie.properties").write_text(
        f"hoodie.table.name={path.name}\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\n"
        "hoodie.timeline.layout.version=1\nhoodie.table.recordkey.fields=id\nhoodie.table.partition.fields=city\n"
    )
    before: list[tuple[float | None, str]] = []
    for instant, fares in commits.items():
        old = [*before, *[(None, "")] * len(fares)]
        before = [
            row if row[0] == fare and row[1] else (fare, instant)
            for fare, row in zip(fares, old, strict=False)
        ]
        ids = [f"t{number}" for number in range(len(fares))]
        rows = {
            "_hoodie_commit_time": [time for _, time in before],
            "_hoodie_record_key": ids,
            "id": ids,
            "city": ["eu"] * len(ids),
            "fare": pa.array(fares, pa.float64()),
        }
        name = f"eu/{GROUP}_0-1-2_{instant}.parquet"
        pq.write_table(pa.table(rows), path / name)
        commit = {
            "partitionToWriteStats": {"eu": [{"fileId": GROUP, "path": name}]},
            "extraMetadata": {"schema": SCHEMA},
        }
        (path / f".hoodie/{instant}.commit").write_text(json.dumps(commit))
    return path
