"""Look-ups, ranges and bloom filters of HFiles, compared with HBase and hudi-io on the same files.

The expected answers are in a corpus outside this repository: the folder `shared/corpus/hfile` beside it, or
the folder that `COLDFRAME_HFILE_CORPUS` names. Without the corpus these tests are skipped.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import pathlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf

CORPUS = pathlib.Path(
    os.environ.get(
        "COLDFRAME_HFILE_CORPUS",
        pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpus" / "hfile",
    )
)


def entries() -> list[dict[str, Any]]:
    """The files with expected rows and expected look-ups."""
    manifest = CORPUS / "MANIFEST.json"
    if not manifest.exists():
        return []
    listed: list[dict[str, Any]] = json.loads(manifest.read_text())
    return [e for e in listed if e.get("oracle") and e.get("truth") and not e.get("optional")]


@functools.lru_cache(maxsize=4)
def truth_of(name: str) -> pa.Table:
    return pq.read_table(CORPUS / name)


def load(entry: dict[str, Any]) -> tuple[Any, pa.Table, dict[str, Any]]:
    source: Any = CORPUS / entry["file"]
    if "slice" in entry:
        start, length = entry["slice"]
        source = source.read_bytes()[start : start + length]
    oracle = json.loads(gzip.decompress((CORPUS / entry["oracle"]).read_bytes()))
    file = cf.open(source, **entry.get("open", {}))
    truth = truth_of(entry["truth"])
    # The expected rows of Hudi's files have decoded values, too.
    return file, truth.select([name for name in truth.column_names if name in file.schema.names]), oracle


def rows(table: pa.Table, like: pa.Table) -> list[dict[str, Any]]:
    """The columns that `like` has too, with keys as bytes."""
    names = [name for name in table.column_names if name in like.column_names]
    table = table.select(names)
    if "key" in names:
        at = names.index("key")
        table = table.set_column(at, "key", table.column("key").cast(pa.binary()))
    listed: list[dict[str, Any]] = table.to_pylist()
    return listed


def key(row: dict[str, Any]) -> bytes:
    value: bytes = row["row"] if "row" in row else row["key"]
    return value


ENTRIES = entries()
cases = pytest.mark.parametrize("entry", ENTRIES, ids=[e["file"] for e in ENTRIES])


@cases
def test_look_ups_of_rows_agree_with_hbase_and_hudi(entry: dict[str, Any]) -> None:
    file, truth, oracle = load(entry)
    lookups = [
        (bytes.fromhex(e["row"]), e["first_cell"], e["cells"]) for e in oracle.get("row_lookups_truth", [])
    ]
    lookups += [
        (bytes.fromhex(e["key"]), e["first"], e["entries"]) for e in oracle.get("key_lookups_truth", [])
    ]
    expected = rows(truth, truth)
    cells_by_key: dict[bytes, list[dict[str, Any]]] = {}
    for wanted, first, count in lookups:
        cells = rows(file.get(wanted), truth)
        assert cells == (expected[first : first + count] if count else []), wanted
        cells_by_key[wanted] = cells
    many = rows(file.get_many(list(cells_by_key)), truth)
    assert len(many) == sum(map(len, cells_by_key.values()))
    for cell in many:
        assert cell in cells_by_key[key(cell)]


@cases
def test_ranges_are_scanned(entry: dict[str, Any]) -> None:
    file, truth, oracle = load(entry)
    expected = rows(truth, truth)
    for scan in oracle.get("range_scans_truth", []):
        start, stop = bytes.fromhex(scan["start_row_inclusive"]), bytes.fromhex(scan["stop_row_exclusive"])
        cells = expected[scan["first_cell"] : scan["first_cell"] + scan["cells"]] if scan["cells"] else []
        assert rows(file.scan(start, stop).read_all(), truth) == cells, (start, stop)
        backwards = rows(file.scan(start, stop, reverse=True, batch_size=7).read_all(), truth)
        assert backwards == by_row_backwards(cells), (start, stop)
    whole = rows(file.scan(reverse=True).read_all(), truth)
    assert whole == by_row_backwards(expected)


def by_row_backwards(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last row first, each row's cells in their order."""
    grouped: list[list[dict[str, Any]]] = []
    for cell in cells:
        if grouped and key(grouped[-1][0]) == key(cell):
            grouped[-1].append(cell)
        else:
            grouped.append([cell])
    return [cell for row in reversed(grouped) for cell in row]


@cases
def test_bloom_filters_agree_with_hbase(entry: dict[str, Any]) -> None:
    file, _, oracle = load(entry)
    for name, of_families in (("bloom", False), ("delete_family_bloom", True)):
        for probe in (oracle.get(name) or {}).get("probes", []):
            row, qualifier = bytes.fromhex(probe["row"]), bytes.fromhex(probe["qual"])
            assert file.might_contain(row, qualifier, delete_family=of_families) == probe["maybe"], probe


@cases
def test_splits_give_each_cell_once(entry: dict[str, Any]) -> None:
    file, truth, _ = load(entry)
    expected = rows(truth, truth)
    for target in (700, 5000):
        parts = [split.to_batches().read_all() for split in file.splits(target)]
        assert rows(pa.concat_tables(parts), truth) == expected


@cases
def test_layout_covers_every_byte_without_damage(entry: dict[str, Any]) -> None:
    file, truth, _ = load(entry)
    report = file.verify()
    assert (report["rows"], report["damage"]) == (truth.num_rows, [])
    at = 0
    for start, length in leaves(file.inspect()):
        assert start == at
        at += length
    named = json.dumps(file.inspect(), default=str)
    assert '"unknown"' not in named
    assert '"damage"' not in named


def leaves(node: dict[str, Any]) -> list[tuple[int, int]]:
    if not node["children"]:
        return [(node["offset"], node["length"])]
    return [leaf for child in node["children"] for leaf in leaves(child)]
