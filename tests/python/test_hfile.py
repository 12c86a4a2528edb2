"""HFile through the Python package: views, look-ups, the wide table, what others of its methods refuse."""

from __future__ import annotations

import pathlib
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coldframe as cf
from coldframe import _coldframe

FILES = pathlib.Path(__file__).resolve().parents[1] / "data" / "hfile" / "files"
CELLS = FILES / "cells_none.hfile"
PAIRS = FILES / "pairs_none.hfile"
ROW_GROUPS = pathlib.Path(__file__).resolve().parents[1] / "data" / "rcfile" / "files"


def test_the_view_is_what_the_file_says_unless_told() -> None:
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
    found = file.read(filter=[("row", ">=", low), ("row", "<", high)])
    mask = [low <= row < high for row in whole.column("row").to_pylist()]
    assert found.equals(whole.filter(pa.array(mask)))
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
    found = {
        row["row"]: {name: row[name] for name in names if row[name] is not None}
        for row in wide.read().to_pylist()
    }
    assert found == expected
    parts = [pickle.loads(pickle.dumps(s)).to_batches().read_all() for s in wide.splits(500)]
    assert pa.concat_tables(parts).equals(wide.read())


def test_statistics_and_metadata_say_what_the_file_says() -> None:
    file = cf.open(CELLS)
    truth = pq.read_table(FILES / "cells_none.truth.parquet")
    statistics = file.statistics()
    rows = [row.decode() for row in truth.column("row").to_pylist()]
    assert statistics["rows"] == file.num_rows == truth.num_rows
    assert (statistics["min_row"], statistics["max_row"]) == (rows[0], rows[-1])
    assert file.metadata["version"].startswith("3.")
    assert file.metadata["codec"] == "NONE"


def test_other_formats_have_no_look_ups() -> None:
    other = cf.open(next(iter(sorted(ROW_GROUPS.glob("*.rc")))))
    for ask in (other.get, other.might_contain, lambda key: other.get_many([key]), other.scan):
        with pytest.raises(cf.UnsupportedError, match="rcfile"):
            ask("key")


def test_what_a_look_up_found_is_imported_once_and_released_without() -> None:
    file = cf.open(PAIRS)
    key = file.read().column("key")[0].as_py()
    schema = pa.schema([("key", pa.string()), ("value", pa.binary())])
    found = _coldframe.hfile_get(file._raw, key)
    assert pa.schema(found) == schema
    (address,) = found.addresses()
    assert pa.RecordBatch._import_from_c(address, schema).column(0).to_pylist() == [key]
    with pytest.raises(pa.ArrowInvalid, match="released"):
        pa.RecordBatch._import_from_c(address, schema)
    # What is imported outlives the object, what nobody imports goes with it.
    del found
    for _ in range(100):
        assert len(_coldframe.hfile_get(file._raw, key).addresses()) == 1
    table = file.get(key)
    table.validate(full=True)
    assert table.schema == schema
    assert table.column("key").to_pylist() == [key]
    assert file.get("not there").num_rows == 0
