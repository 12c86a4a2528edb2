"""The directory of an Iceberg table is not a source: some files are obsolete, or have deletes."""

import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.pipeline.options import Options
from coldframe.pipeline.source.selection import Selection
from coldframe.pipeline.source.survey import look

DATA = Path(__file__).parents[3] / "data" / "iceberg"


@pytest.fixture
def source(tmp_path):
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        members = [member for member in tar if member.name.startswith("warehouse/t/positions/")]
        tar.extractall(tmp_path, members, filter="data")
    warehouse = tmp_path / "warehouse"
    (warehouse / "metadata").mkdir()  # a directory named metadata alone does not make a table
    cf.write(pa.table({"x": [1]}), warehouse / "metadata" / "a.orc", format="orc")
    return warehouse


@pytest.mark.parametrize("scheme", ["local", "memory"])
def test_an_iceberg_directory_is_reported_and_not_read(source, scheme):
    root = str(source)
    if scheme == "memory":
        memory = pytest.importorskip("fsspec").filesystem("memory")
        memory.put(f"{source}/", "/iceberg-source/", recursive=True)
        root = "memory://iceberg-source"
    inventory, tables = look(root, None, Options(untyped=True))
    assert [table.name for table in tables] == ["metadata"]
    assert [(file.relative, file.reason[:16]) for file in inventory.unread] == [
        ("t/positions", "an Iceberg table")
    ]
    inventory, tables = look(f"{root}/t/positions", None, Options(untyped=True))
    assert tables == []
    assert [file.relative for file in inventory.unread] == ["."]
    without = Options(untyped=True, selection=Selection(exclude=("t/*",)))
    inventory, _ = look(root, None, without)
    assert inventory.unread == []
    assert inventory.excluded == 1
    # A user who wants the raw files names their directory.
    _, tables = look(f"{root}/t/positions/data", None, Options(untyped=True))
    assert sum(len(table.files) for table in tables) > 6
