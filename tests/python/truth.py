"""The expected rows of files, from the manifests beside the test data, and the comparison with them."""

from __future__ import annotations

import decimal
import functools
import json
import math
import os
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
RCFILES = DATA / "rcfile" / "files"
DAMAGED = DATA / "rcfile" / "damaged"
WAREHOUSE = DATA / "rcfile" / "warehouse"


@dataclass(frozen=True)
class Case:
    """One entry of a manifest."""

    folder: Path
    entry: dict[str, Any]

    @property
    def name(self) -> str:
        files = self.entry["file"]
        inner = f"/{self.entry['unpack']}" if "unpack" in self.entry else ""
        return f"{self.folder.name}/{files[0] if isinstance(files, list) else files}{inner}"

    @property
    def options(self) -> dict[str, Any]:
        if "as_of_ms" not in self.entry:
            return dict(self.entry.get("open", {}))
        # An HBase table is read as of the time of its expected rows.
        asked = {
            "table": self.entry["table"],
            "as_of": self.entry["as_of_ms"],
            "wal": self.entry.get("wal", False),
        }
        return asked | ({"snapshot": self.entry["snapshot"]} if self.entry["snapshot"] else {})

    @property
    def path(self) -> Path:
        return self.folder / self.entry["file"]

    def truth(self) -> pa.Table:
        return pq.read_table(self.folder / self.entry["truth"]).drop_columns(self.entry.get("ignore", []))

    def truth_of_base(self) -> pa.Table:
        """For a damaged file: the rows of the undamaged file."""
        return pq.read_table(self.folder / self.entry["base_truth"])

    def sources(self) -> Iterator[Any]:
        """The sources to open, in order. No test may change these sources."""
        files = self.entry["file"]
        for name in files if isinstance(files, list) else [files]:
            path = self.folder / name
            if "slice" in self.entry:
                start, length = self.entry["slice"]
                yield path.read_bytes()[start : start + length]
            elif "unpack" in self.entry:
                yield str(unpacked(path) / self.entry["unpack"])
            else:
                yield str(path)


SCRATCH = tempfile.TemporaryDirectory(prefix="coldframe-unpacked-")


@functools.cache
def unpacked(archive: Path) -> Path:
    """The folder with the unpacked files of an archive. Dozens of cases share one archive."""
    folder = Path(tempfile.mkdtemp(dir=SCRATCH.name))
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def cases(manifest: Path) -> list[Case]:
    return [Case(manifest.parent, entry) for entry in json.loads(manifest.read_text())]


def case(name: str) -> Case:
    """The entry of one of the RCFile fixtures."""
    return next(entry for entry in cases(RCFILES / "MANIFEST.json") if entry.entry["file"] == name)


def corpus() -> list[Path]:
    """The manifests of a larger corpus beside the checkout, if it exists."""
    given = os.environ.get("COLDFRAME_CORPUS")
    if given:
        return sorted(Path(given).rglob("MANIFEST.json"))
    return sorted(ROOT.parent.glob("*/corpus/*/MANIFEST.json"))


def difference(
    got: pa.Table, want: pa.Table, *, by_position: bool = False, unordered: bool = False
) -> str | None:
    """The first difference; None if the tables have equal values.

    Ignores dictionary encoding, the difference between large and small strings, and the padding of chars.
    """
    if got.num_rows != want.num_rows:
        return f"{got.num_rows} rows, expected {want.num_rows}"
    names = [name for name in want.column_names if name != "__rows"]
    by_position = by_position or len(set(names)) < len(names)
    pairs: list[tuple[str, list[Any], list[Any]]] = []
    for at, name in enumerate(names):
        if not by_position and name not in got.column_names:
            return f"no column {name!r} among {got.column_names[:8]}"
        expected = want.column(at) if by_position else want.column(name)
        actual = got.column(at) if by_position else got.column(name)
        pairs.append((name, plain_values(actual, expected.type), plain_values(expected, expected.type)))
    if unordered:
        actual_rows = sorted(map(repr, zip(*(actual for _, actual, _ in pairs), strict=True)))
        expected_rows = sorted(map(repr, zip(*(expected for _, _, expected in pairs), strict=True)))
        pairs = [("rows", actual_rows, expected_rows)]
    for name, actual, expected in pairs:
        for row, (a, b) in enumerate(zip(actual, expected, strict=True)):
            if a != b and trimmed(a) != trimmed(b):
                return f"column {name!r} row {row}: {a!r:.100} expected {b!r:.100}"
    return None


def plain_values(column: pa.ChunkedArray, expected: pa.DataType) -> list[Any]:
    """Values comparable with `==`; instants as numbers in the expected unit."""
    type = column.type
    if pa.types.is_dictionary(type):
        column = column.cast(type.value_type)
        type = column.type
    if pa.types.is_timestamp(type):
        unit = expected.unit if pa.types.is_timestamp(expected) else type.unit
        column = column.cast(pa.timestamp(unit, type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date32(type):
        column = column.cast(pa.int32())
    elif pa.types.is_time64(type):
        column = column.cast(pa.int64())
    elif _is_binary(expected) and (pa.types.is_string(type) or pa.types.is_large_string(type)):
        column = column.cast(pa.large_binary())
    return [plain(value) for value in column.to_pylist()]


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        for branch in ("_union_", "f"):  # a union in Parquet: a tag and a field for each branch
            if list(value)[:2] == ["tag", f"{branch}0"]:
                return None if value["tag"] is None else plain(value[f"{branch}{value['tag']}"])
        return tuple((name, plain(inner)) for name, inner in value.items())
    if (
        isinstance(value, list)
        and value
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    ):
        return tuple(sorted(((plain(key), plain(inner)) for key, inner in value), key=repr))  # a map
    if isinstance(value, (list, tuple)):
        return tuple(plain(inner) for inner in value)
    if isinstance(value, decimal.Decimal):
        return value.normalize() if value else decimal.Decimal(0)
    return bytes(value) if isinstance(value, bytearray) else value


def trimmed(value: Any) -> Any:
    if isinstance(value, str):
        return value.rstrip(" ")
    return tuple(trimmed(inner) for inner in value) if isinstance(value, tuple) else value


def _is_binary(type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type))


def same(got: pa.Table, want: pa.Table) -> bool:
    """Whether the tables are equal, where NaN equals itself."""
    return bool(_without_nan(got).equals(_without_nan(want)))


def _without_nan(table: pa.Table) -> pa.Table:
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = pc.if_else(
                pc.is_nan(table.column(at)), pa.scalar(-12345.75, field.type), table.column(at)
            )
            table = table.set_column(at, field, column)
    return table
