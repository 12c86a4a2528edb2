"""HBase and hudi-io read the HFiles that coldframe writes: the same cells, also by index and bloom filter.

HBase and hudi-io run in a program of `tests/reference/hfile`, which needs Java and, for the first build,
Maven.
"""

from __future__ import annotations

import base64
import functools
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf

PROGRAM = Path(__file__).parents[1] / "reference" / "hfile" / "run.sh"
TAGS = pa.list_(pa.struct([("type", pa.uint8()), ("value", pa.binary())]))


@functools.cache
def skip_reason() -> str | None:
    """Why the program cannot run, or None."""
    if shutil.which("java") is None:
        return "no Java"
    if not (PROGRAM.parent / "target" / "classpath").exists() and shutil.which("mvn") is None:
        return "no Maven to build tests/reference/hfile with"
    return None


needs_java = pytest.mark.skipif(skip_reason() is not None, reason=str(skip_reason()))


def java(command: str, reader: str, path: Path) -> list[dict[str, Any]]:
    done = subprocess.run([PROGRAM, command, reader, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def plain(value: Any) -> Any:
    """Decodes base64 text in the program's output."""
    if isinstance(value, str):
        return base64.b64decode(value)
    if isinstance(value, list):
        return [{"type": tag["type"], "value": plain(tag["value"])} for tag in value]
    return value


def cells(rows: int) -> pa.Table:
    """Several columns and versions per row, all types, tags and sequence ids."""
    dice = random.Random(4)
    made = []
    for i in range(rows):
        kind = dice.choice([4, 4, 4, 4, 8, 12, 10, 14])
        qualifier = b"" if kind in (10, 14) else b"q%d" % dice.randrange(5)
        value = dice.randbytes(dice.choice([0, 3, 40, 200])) if kind == 4 else b""
        timestamp = 1_700_000_000_000 - dice.randrange(10 ** dice.randrange(1, 12))
        made.append((b"row/%06d" % (i // 2 * 7), qualifier, timestamp, kind, value))
    made.sort(key=lambda cell: (cell[0], cell[1], -cell[2], -cell[3]))
    tags = [[{"type": 60 + n, "value": b"tag %d" % (i % 5)} for n in range(i % 3)] for i in range(rows)]
    return pa.table(
        {
            "row": pa.array([c[0] for c in made], pa.binary()),
            "family": pa.array([b"cf"] * rows, pa.binary()),
            "qualifier": pa.array([c[1] for c in made], pa.binary()),
            "timestamp": pa.array([c[2] for c in made], pa.int64()),
            "type": pa.array([c[3] for c in made], pa.uint8()),
            "value": pa.array([c[4] for c in made], pa.binary()),
            "tags": pa.array(tags, TAGS),
            "sequence_id": pa.array([i % 90 for i in range(rows)], pa.int64()),
        }
    )


@needs_java
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"encoding": "fast_diff", "codec": "gz", "bloom": "rowcol", "block_size": 2000},
        {"encoding": "diff", "codec": "lz4", "block_size": 500, "bloom": "none"},
        {"encoding": "prefix", "codec": "snappy", "block_size": 5000, "checksum": "null"},
        {"encoding": "row_index_v1", "codec": "zstd", "block_size": 1 << 20},
        {
            "codec": "lzo",
            "block_size": 300,
            "index_block_size": 300,
            "index_min_entries": 3,
            "bloom_block_size": 128,
            "bytes_per_checksum": 100,
            "checksum": "crc32",
        },
    ],
    ids=lambda options: "-".join(str(v) for v in options.values()) or "default",
)
def test_hbase_reads_coldframe_files(tmp_path: Path, options: dict[str, Any]) -> None:
    table = cells(2500)
    path = tmp_path / "file.hfile"
    cf.write(table, path, format="hfile", **options)
    got = [{name: plain(value) for name, value in row.items()} for row in java("read", "hbase", path)]
    assert got == table.to_pylist()
    [summary] = java("find", "hbase", path)
    assert summary["cells"] == 2500
    assert summary["found"] == 358
    assert summary["bulk"]
    assert summary["bloom"] == options.get("bloom", "row").upper()
    if summary["bloom"] != "NONE":
        assert summary["refused"] > 0.9 * summary["found"]
    kinds = table["type"].to_pylist()
    assert summary["deletes"] == kinds.count(10) + kinds.count(14)


@needs_java
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"codec": "gz", "block_size": 1000, "meta_blocks": {"bloomFilter": b"a filter"}},
        {"checksum": "null"},
    ],
    ids=["default", "gz", "null"],
)
@pytest.mark.parametrize("reader", ["hudi", "hbase"])
def test_hudi_reads_coldframe_files(tmp_path: Path, options: dict[str, Any], reader: str) -> None:
    keys = sorted(f"süd/{n * 7919 % 100_003:06d}" for n in range(3000))
    values = [f"{key} and its value".encode() * (i % 4) for i, key in enumerate(keys)]
    table = pa.table({"key": pa.array(keys), "value": pa.array(values, pa.binary())})
    path = tmp_path / "file.hfile"
    cf.write(table, path, format="hfile", metadata={"schema": '{"type": "bytes"}'}, **options)
    assert cf.open(path).metadata["file_info"]["maxRecordKey"] == keys[-1]
    key = "key" if reader == "hudi" else "row"
    got = [(plain(row[key]).decode(), plain(row["value"])) for row in java("read", reader, path)]
    assert got == list(zip(keys, values, strict=True))
    [summary] = java("find", reader, path)
    assert (summary["cells"], summary["found"]) == (3000, 429)


def test_files_unreadable_to_hudi_are_refused(tmp_path: Path) -> None:
    table = pa.table({"key": ["a"], "value": [b"1"]})
    for options in ({"codec": "zstd"}, {"encoding": "fast_diff"}, {"bytes_per_checksum": 100}):
        with pytest.raises(cf.UnsupportedError):
            cf.write(table, tmp_path / "file.hfile", format="hfile", **options)
    assert not list(tmp_path.iterdir())


def test_first_unordered_row_is_named(tmp_path: Path) -> None:
    table = pa.table({"row": ["a", "c", "b"], "family": ["f"] * 3, "timestamp": [1, 2, 3]})
    with pytest.raises(ValueError, match="row 2 is out of order: b/f:/3/Put sorts before row 1, c/f:/2/Put"):
        cf.write(table, tmp_path / "file.hfile", format="hfile")
    assert not list(tmp_path.iterdir())
