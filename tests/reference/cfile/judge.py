"""Lets Kudu's own `kudu fs dump cfile` read CFiles by coldframe, and compares the printed values with the
written values.

python judge.py        every type, encoding and codec; needs Linux, Maven (for Kudu's programs) and coldframe installed
"""

from __future__ import annotations

import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal

import cluster
import pyarrow as pa

import coldframe as cf

BLOCK = 0x0000_2345_6789_ABCD  # any block id in the first data directory
INTEGERS = {"INT8": pa.int8(), "INT16": pa.int16(), "INT32": pa.int32(), "INT64": pa.int64()}
CODECS = ["none", "snappy", "lz4", "zlib"]


def columns(rows: int, nulls: bool) -> Iterator[tuple[str, pa.Array, list[str]]]:
    """Name, values with runs in them, encodings."""
    dice = random.Random(rows)

    def some(make: object) -> list[object]:
        values: list[object] = []
        while len(values) < rows:
            value = None if nulls and dice.random() < 0.2 else make()  # type: ignore[operator]
            values += [value] * dice.choice([1, 1, 1, 9, 30])
        return values[:rows]

    for name, kind in INTEGERS.items():
        top = 1 << kind.bit_width - 1
        yield (
            name,
            pa.array(some(lambda top=top: dice.randrange(-top, top)), kind),
            ["plain", "rle", "bit_shuffle"],
        )
    yield "BOOL", pa.array(some(lambda: dice.random() < 0.5), pa.bool_()), ["plain", "rle"]
    yield (
        "DOUBLE",
        pa.array(some(lambda: dice.randrange(-999, 999) / 8), pa.float64()),
        ["plain", "bit_shuffle"],
    )
    text = some(lambda: f"key {dice.randrange(300):05}" + "x" * dice.randrange(4))
    yield "STRING", pa.array(text, pa.string()), ["plain", "dict", "prefix"]
    yield (
        "BINARY",
        pa.array([t if t is None else str(t).encode() for t in text], pa.binary()),
        ["plain", "dict", "prefix"],
    )
    # Kudu prints a 128-bit number in pieces, without the leading zeros of a piece: so no number here has more digits than one
    # piece.
    big = some(lambda: Decimal(dice.randrange(-(10**18), 10**18)))
    yield "DECIMAL128", pa.array(big, pa.decimal128(38, 0)), ["plain", "bit_shuffle"]


def dumped(file_system: pathlib.Path, path: pathlib.Path) -> list[str]:
    """Puts a file into Kudu's file system as a block; returns the rows that Kudu prints of it."""
    parts = [f"{BLOCK >> shift & 0xFF:02x}" for shift in (40, 32, 24)]
    place = file_system.joinpath("data", *parts)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{BLOCK:016d}").write_bytes(path.read_bytes())
    options = [f"--fs_wal_dir={file_system}", "--block_manager=file", "--noprint_meta", "--minloglevel=2"]
    done = cluster.run("kudu", "fs", "dump", "cfile", BLOCK, *options)
    return done.stdout.splitlines()


def printed(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.17g}" if value != int(value) else str(int(value))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return f"{value}_D128"
    return str(value)


def main() -> int:
    wrong = total = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file_system = folder / "fs"
        cluster.run("kudu", "fs", "format", f"--fs_wal_dir={file_system}", "--block_manager=file")
        codecs = itertools.cycle(CODECS)
        for rows, nulls in [(1, False), (3000, False), (3000, True)]:
            for kind, values, encodings in columns(rows, nulls):
                for encoding in encodings:
                    codec = next(codecs)
                    table = pa.table([values], schema=pa.schema([pa.field("value", values.type, nulls)]))
                    path = folder / "one.cfile"
                    options = {"encoding": encoding, "codec": codec, "block_size": 1024}
                    cf.write(table, path, format="cfile", **options)
                    total += 1
                    try:
                        lines = dumped(file_system, path)
                    except subprocess.CalledProcessError as e:
                        lines = [e.stderr.strip()[-300:]]
                    expected = [printed(v) for v in values.to_pylist()]
                    clean = [line.strip().strip('"') for line in lines]
                    if clean != expected:
                        wrong += 1
                        at = next((i for i, (a, b) in enumerate(zip(clean, expected)) if a != b), len(clean))
                        print(
                            f"{kind} {encoding} {codec} nulls={nulls} rows={rows}: line {at}: "
                            f"{clean[at : at + 1]} expected {expected[at : at + 1]} ({len(clean)} lines)"
                        )
    print(f"{total - wrong} of {total} files as Kudu reads them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
