#!/usr/bin/env python3
"""Has Hive's own classes write, change, compact and read the transactional tables of tests/data/hive.

usage: make.py [DIR]     needs Maven, a JDK 17 and pyarrow
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
# Hive accesses internals of the JDK.
OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.lang.reflect", "java.net", "java.util")
]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


def written(version: str, source: str, program: str, out: pathlib.Path) -> list[dict[str, Any]]:
    """Runs a program; returns the entries of what it wrote."""
    build = ["mvn", "-B", "-q", "package", f"-Dhive.version={version}", f"-Dsource=src/{source}/java"]
    subprocess.run(build, cwd=HERE, check=True)
    target = HERE / "target" / f"hive-{version}"
    path = f"{target / 'classes'}:{(target / 'classpath').read_text(encoding='utf-8').strip()}"
    subprocess.run(["java", *OPENS, "-cp", path, program, str(out)], check=True)
    for sums in out.rglob(".*.crc"):
        sums.unlink()
    entries: list[dict[str, Any]] = []
    for lines in sorted(out.glob("*.jsonl")):
        head, *rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        table = pa.table([[row[i] for row in rows] for i in range(len(SCHEMA))], schema=SCHEMA)
        file = f"{lines.stem}.truth.parquet"
        pq.write_table(table, out / file, compression="zstd", use_dictionary=False, write_statistics=False)
        entries.append(
            {
                "file": lines.stem.split(".")[0],
                "truth": file,
                "open": {"acid": True, "acid_valid_write_ids": head["list"]},
                "unordered": True,
                "rows": table.num_rows,
                "writer": f"Apache Hive {version}",
            }
        )
        lines.unlink()
    return entries


def main(out: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        files = pathlib.Path(scratch) / "files"
        files.mkdir()
        entries = written("4.1.0", "main", "Acid", files) + written("2.3.10", "old", "AcidOld", files)
        (files / "MANIFEST.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(out / "files", ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.move(files, out / "files")


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parents[2] / "data" / "hive"
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
