"""HFile through the Python package: views, look-ups, the wide table, refusals of other formats."""

from __future__ import annotations

import json
import math
import pathlib
import pickle
import statistics

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe import _coldframe
from coldframe.cli import main

FILES = pathlib.Path(__file__).resolve().parents[1] / "data" / "hfile" / "files"
CELLS = FILES / "cells_none.hfile"
PAIRS = FILES / "pairs_none.hfile"
ROW_GROUPS = pathlib.Path(__file__).resolve().parents[1] / "data" / "rcfile" / "files"


def test_view_follows_the_file_by_default() -> None:
    assert cf.detect(CELLS) == cf.detect(PAIRS) == "hfile"
    assert cf.open(CELLS).schema.names[:3] == ["row", "family", "qualifier"]
    pairs = cf.open(PAIRS)
    assert pairs.schema == pa.schema([("key", pa.string()), ("value", pa.binary())])
    as_cells = cf.open(PAIRS, view="cells").read()
    assert as_cells.column("row").cast(pa.string()).equals(pairs.read().column("key"))
    named = cf.open(CELLS, types="name").read().column("type")
    assert set(named.to_pylist()) <= {"Put", "Delete", "DeleteColumn", "DeleteFamily", "DeleteFamilyVersion"}
    with pytest.raises(ValueError, match='expected "cells" or "kv"'):
        cf.open(CELLS, view="rows")


def test_keys_are_bytes_or_text() -> None:
    file = cf.open(PAIRS)
    keys = file.read().column("key").to_pylist()
    wanted = keys[len(keys) // 2]
    assert file.get(wanted).equals(file.get(wanted.encode()))
    assert set(file.get(wanted).column("key").to_pylist()) == {wanted}
    assert file.get("no such key").num_rows == 0
    many = file.get_many([keys[-1], keys[0], keys[0], "no such key"]).column("key").to_pylist()
    assert many == sorted(set(many), key=keys.index)
    assert set(many) == {keys[0], keys[-1]}
    assert file.scan(keys[3], keys[9]).read_all().column("key").to_pylist() == keys[3:9]
    assert file.scan(prefix=keys[0][:2]).read_all().num_rows == sum(k.startswith(keys[0][:2]) for k in keys)
    with pytest.raises(TypeError):
        file.get(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="for cells"):
        file.scan(max_versions=1)


def test_a_filter_on_the_row_is_exact() -> None:
    file = cf.open(CELLS)
    whole = file.read()
    rows = sorted(set(whole.column("row").to_pylist()))
    low, high = rows[len(rows) // 3], rows[len(rows) // 2]
    cells = file.read(filter=[("row", ">=", low), ("row", "<", high)])
    mask = [low <= row < high for row in whole.column("row").to_pylist()]
    assert cells.equals(whole.filter(pa.array(mask)))
    assert file.read(columns=["value"], filter=[("row", "==", low)]).num_columns == 1


def test_a_pivot_is_the_newest_version_of_each_column() -> None:
    cells = cf.open(CELLS)
    newest = cells.scan(max_versions=1).read_all().to_pylist()
    names = sorted({f"{c['family'].decode()}:{c['qualifier'].decode()}" for c in newest})
    wide = cf.open(CELLS, pivot=dict.fromkeys(names, "binary"))
    assert wide.num_rows is None
    assert wide.schema.names == ["row", *names]
    expected: dict[bytes, dict[str, bytes]] = {}
    for cell in newest:
        name = f"{cell['family'].decode()}:{cell['qualifier'].decode()}"
        expected.setdefault(cell["row"], {})[name] = cell["value"]
    actual = {
        row["row"]: {name: row[name] for name in names if row[name] is not None}
        for row in wide.read().to_pylist()
    }
    assert actual == expected
    parts = [pickle.loads(pickle.dumps(s)).to_batches().read_all() for s in wide.splits(500)]
    assert pa.concat_tables(parts).equals(wide.read())


def test_statistics_and_metadata_match_the_file() -> None:
    file = cf.open(CELLS)
    truth = pq.read_table(FILES / "cells_none.truth.parquet")
    summary = file.statistics()
    rows = [row.decode() for row in truth.column("row").to_pylist()]
    assert summary["rows"] == file.num_rows == truth.num_rows
    assert (summary["min_row"], summary["max_row"]) == (rows[0], rows[-1])
    assert file.metadata["version"].startswith("3.")
    assert file.metadata["codec"] == "NONE"


def test_lengths_are_the_lengths_of_all_cells(capsys: pytest.CaptureFixture[str]) -> None:
    progress: list[int] = []
    lengths = cf.open(CELLS).lengths(progress.append)
    truth = pq.read_table(FILES / "cells_none.truth.parquet")
    assert progress[-1] == truth.num_rows
    cells = truth.select(["row", "family", "qualifier", "value"]).to_pylist()
    keys = [12 + len(c["row"]) + len(c["family"]) + len(c["qualifier"]) for c in cells]
    values = [len(c["value"]) for c in cells]
    rows: dict[bytes, list[int]] = {}
    for cell, key, value in zip(cells, keys, values, strict=True):
        rows.setdefault(cell["row"], []).append(8 + key + value)
    measures = {
        "key_bytes": keys,
        "value_bytes": values,
        "row_bytes": [sum(sizes) for sizes in rows.values()],
        "row_cells": [len(sizes) for sizes in rows.values()],
    }
    for name, expected in measures.items():
        stats = lengths[name]
        assert (stats["count"], stats["min"], stats["max"]) == (len(expected), min(expected), max(expected))
        assert stats["mean"] == pytest.approx(statistics.mean(expected))
        assert stats["stddev"] == pytest.approx(statistics.stdev(expected), abs=1e-6)
        ranked = sorted(expected)
        for percentile, share in (("median", 0.5), ("p75", 0.75), ("p99", 0.99), ("p999", 0.999)):
            rank = ranked[math.ceil(share * len(ranked)) - 1]
            assert rank * 0.999 - 1 <= stats[percentile] <= rank, (name, percentile)
        assert sum(bar["count"] for bar in stats["histogram"]) == len(expected)
        for bar in stats["histogram"]:
            assert bar["count"] == sum(bar["from"] <= length <= bar["to"] for length in expected)
    assert lengths["biggest_row"] == max(rows, key=lambda row: sum(rows[row])).decode()
    assert main(["stats", "--lengths", str(CELLS)]) == 0
    shown = capsys.readouterr().out
    assert f"key bytes\t{len(keys)}\t{min(keys)}\t{max(keys)}\t" in shown
    assert "cells in a row:" in shown
    assert main(["stats", "--lengths", "--json", str(CELLS)]) == 0
    assert json.loads(capsys.readouterr().out) == lengths


def test_lengths_of_pairs_and_of_empty_files_are_counted(tmp_path: pathlib.Path) -> None:
    pairs = cf.open(FILES / "pairs_gzip.hfile")
    assert pairs.lengths()["key_bytes"]["max"] == max(
        len(key.encode()) for key in pairs.read()["key"].to_pylist()
    )
    assert cf.open(FILES / "cells_empty.hfile").lengths()["key_bytes"]["min"] is None
    cf.write(pa.table({"id": [1]}), tmp_path / "a.orc")
    with pytest.raises(cf.UnsupportedError, match="only HFiles have them"):
        cf.open(tmp_path / "a.orc").lengths()


def test_other_formats_have_no_look_ups() -> None:
    other = cf.open(next(iter(sorted(ROW_GROUPS.glob("*.rc")))))
    for ask in (other.get, other.might_contain, lambda key: other.get_many([key]), other.scan):
        with pytest.raises(cf.UnsupportedError, match="rcfile"):
            ask("key")


def test_lookup_result_is_imported_once_or_released() -> None:
    file = cf.open(PAIRS)
    key = file.read().column("key")[0].as_py()
    schema = pa.schema([("key", pa.string()), ("value", pa.binary())])
    cells = _coldframe.hfile_get(file._raw, key)
    assert pa.schema(cells) == schema
    (address,) = cells.addresses()
    assert pa.RecordBatch._import_from_c(address, schema).column(0).to_pylist() == [key]
    with pytest.raises(pa.ArrowInvalid, match="released"):
        pa.RecordBatch._import_from_c(address, schema)
    # Imported data outlives the object; the rest is freed with it.
    del cells
    for _ in range(100):
        assert len(_coldframe.hfile_get(file._raw, key).addresses()) == 1
    table = file.get(key)
    table.validate(full=True)
    assert table.schema == schema
    assert table.column("key").to_pylist() == [key]
    assert file.get("not there").num_rows == 0
