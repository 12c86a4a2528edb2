"""Whole tables, compared with HBase's scans of the same directories.

The expected rows are in a corpus outside this repository: the folder `shared/corpus/hbase` beside it, or the
folder that `COLDFRAME_HBASE_CORPUS` names. Without the corpus these tests are skipped.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import tarfile
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf

CORPUS = pathlib.Path(
    os.environ.get(
        "COLDFRAME_HBASE_CORPUS",
        pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpus" / "hbase",
    )
)
UNPACKED = tempfile.TemporaryDirectory()
VIEWS = {"latest": "truth", "versions": "truth_versions", "raw": "truth_raw"}


def entries() -> list[dict[str, Any]]:
    manifest = CORPUS / "MANIFEST.json"
    return json.loads(manifest.read_text()) if manifest.exists() else []


def name_of(entry: dict[str, Any]) -> str:
    snapshot = f"@{entry['snapshot']}" if entry["snapshot"] else ""
    return (
        f"{entry['file'].removesuffix('.tar.gz')}-{entry['table']}{snapshot}{'-wal' * bool(entry.get('wal'))}"
    )


WHOLE = [e for e in entries() if "truth" in e]
DAMAGED = [e for e in entries() if "expect" in e]


@functools.cache
def root(file: str) -> pathlib.Path:
    where = pathlib.Path(UNPACKED.name) / file
    with tarfile.open(CORPUS / file) as archive:
        archive.extractall(where, filter="data")
    return where


def options(entry: dict[str, Any], view: str) -> dict[str, Any]:
    given = {
        "table": entry["table"],
        "as_of": entry["as_of_ms"],
        "wal": entry.get("wal", False),
        "view": view,
    }
    return given | ({"snapshot": entry["snapshot"]} if entry["snapshot"] else {})


def opened(entry: dict[str, Any], view: str, **more: Any) -> cf.File:
    return cf.open(root(entry["file"]) / entry["unpack"], **options(entry, view), **more)


def truth(entry: dict[str, Any], view: str) -> pa.Table:
    return pq.read_table(CORPUS / entry[VIEWS[view]])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_views_equal_the_views_of_hbase(entry: dict[str, Any], view: str) -> None:
    file = opened(entry, view)
    assert file.format == "hbase"
    assert file.read().equals(truth(entry, view))
    if entry["regions"]:
        assert sorted(r["name"] for r in file.metadata["regions"]) == sorted(entry["regions"])


@pytest.mark.parametrize("entry", [e for e in WHOLE if "queries" in e], ids=name_of)
def test_time_ranges_equal_the_time_ranges_of_hbase(entry: dict[str, Any]) -> None:
    for query in entry["queries"]:
        asked = {"versions": query["versions"], "time_range": query["time_range"]}
        assert opened(entry, "versions", **asked).read().equals(pq.read_table(CORPUS / query["truth"]))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_splits_have_each_cell_once(entry: dict[str, Any], view: str) -> None:
    file = opened(entry, view)
    parts = [file.to_batches(split=split).read_all() for split in file.splits(1)]
    got = pa.concat_tables([*parts, file.schema.empty_table()])
    assert got.equals(truth(entry, view))


@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_filters_on_rows_and_families_are_exact(entry: dict[str, Any]) -> None:
    file, whole = opened(entry, "latest"), truth(entry, "latest")
    if whole.num_rows == 0:
        return
    rows, family = whole["row"].to_pylist(), whole["family"][0].as_py()
    low, high = rows[len(rows) // 3], rows[2 * len(rows) // 3]
    some = file.read(filter=[("row", ">=", low), ("row", "<", high), ("family", "=", family)])
    families = whole["family"].to_pylist()
    expected = [low <= row < high and families[i] == family for i, row in enumerate(rows)]
    assert some.equals(whole.filter(pa.array(expected)))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("entry", DAMAGED, ids=name_of)
def test_damage_is_raised_or_recorded(entry: dict[str, Any], view: str) -> None:
    with pytest.raises(cf.ColdframeError):
        opened(entry, view).read()
    whole = next(e for e in WHOLE if e["as_of_ms"] == entry["as_of_ms"] and e["table"] == entry["table"])
    for on_error in ("skip", "null"):
        try:
            file = opened(entry, view)
        except cf.ColdframeError:
            continue  # nothing is readable without a descriptor or a manifest
        left = file.read(on_error=on_error)
        assert file.damage
        right = {tuple(row.items()) for row in truth(whole, view).to_pylist()}
        # No older or deleted cell appears.
        assert all(tuple(row.items()) in right for row in left.to_pylist())
        assert file.verify()["damage"]


@pytest.mark.parametrize("entry", [e for e in WHOLE if not e["snapshot"] and e["regions"]], ids=name_of)
def test_lost_region_infos_restore_no_replaced_rows(entry: dict[str, Any], tmp_path: pathlib.Path) -> None:
    whole = root(entry["file"]) / entry["unpack"]
    if (whole / "data" / "hbase").exists():
        return  # hbase:meta has the regions
    shutil.copytree(whole, tmp_path / "root")
    right = {tuple(cell.items()) for cell in truth(entry, "latest").to_pylist()}
    table = tmp_path / "root" / "data" / entry["table"].replace(":", "/")
    infos = sorted(table.glob("*/.regioninfo"))
    alive = [info for info in infos if info.parent.name in entry["regions"]]
    for lost in [[info] for info in infos] + [alive]:
        kept = [info.read_bytes() for info in lost]
        for info in lost:
            info.write_bytes(b"PBUF")
        file = cf.open(tmp_path / "root", **options(entry, "latest"))
        with pytest.raises(cf.ColdframeError):
            file.read()
        left = file.read(on_error="skip")
        assert all(tuple(cell.items()) in right for cell in left.to_pylist())
        for info, data in zip(lost, kept, strict=True):
            info.write_bytes(data)
    assert {tuple(c.items()) for c in opened(entry, "latest").read().to_pylist()} == right


@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_region_in_hbase_meta_without_a_folder_is_reported(
    entry: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    whole = root(entry["file"]) / entry["unpack"]
    if entry["snapshot"] or not entry["regions"] or not (whole / "data" / "hbase" / "meta").exists():
        return
    shutil.copytree(whole, tmp_path / "root")
    table = tmp_path / "root" / "data" / entry["table"].replace(":", "/")
    for gone in entry["regions"][:1]:
        shutil.rmtree(table / gone)
    file = cf.open(tmp_path / "root", **options(entry, "latest"))
    with pytest.raises(cf.CorruptFileError, match="found none"):
        file.read()
    file.read(on_error="skip")
    assert file.damage


@pytest.mark.parametrize("entry", [e for e in entries() if "truth_pivot" in e], ids=name_of)
def test_a_wide_table_has_the_values_of_bytes(entry: dict[str, Any]) -> None:
    given = options(entry, "pivot") | {"columns": entry["types"]}
    wide = cf.open(root(entry["file"]) / entry["unpack"], **given).read()
    expected = pq.read_table(CORPUS / entry["truth_pivot"])
    # NaN is not equal to itself.
    assert list(map(repr, wide.drop_columns("rest").to_pylist())) == list(map(repr, expected.to_pylist()))
    named = {name.encode() for name in entry["types"]}
    cells = cf.open(root(entry["file"]) / entry["unpack"], **options(entry, "latest")).read().to_pylist()
    others: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for cell in cells:
        column = cell["family"] + b":" + cell["qualifier"]
        others.setdefault(cell["row"], []).extend([(column, cell["value"])] * (column not in named))
    assert [(row["row"], row["rest"]) for row in wide.select(["row", "rest"]).to_pylist()] == list(
        others.items()
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_rows_are_looked_up_by_their_keys(entry: dict[str, Any], view: str) -> None:
    file, whole = opened(entry, view), truth(entry, view)
    rows = whole["row"].to_pylist()
    distinct = list(dict.fromkeys(rows))
    for row in distinct[:: max(1, len(distinct) // 7)]:
        expected = whole.filter(pa.array([key == row for key in rows], pa.bool_()))
        assert file.get(row).equals(expected)
    asked = distinct[::3]
    some = whole.filter(pa.array([row in set(asked) for row in rows], pa.bool_()))
    assert file.get_many([*reversed(asked), b"\xff\xff none"]).equals(some)
    if len(distinct) > 4 and entry["table"] != "hbase:meta":
        low, high = distinct[1], distinct[-2]
        between = whole.filter(pa.array([low <= row < high for row in rows], pa.bool_()))
        assert file.scan(low, high).read_all().equals(between)
        backward = file.scan(low, high, reverse=True).read_all().to_pylist()
        assert backward == sorted(between.to_pylist(), key=lambda cell: cell["row"], reverse=True)
        family = whole["family"][0].as_py().decode()
        of_family = [cell for cell in whole.to_pylist() if cell["family"] == family.encode()]
        assert file.scan(columns=[family]).read_all().to_pylist() == of_family
