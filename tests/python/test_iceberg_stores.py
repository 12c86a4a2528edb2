"""Iceberg tables on S3 and HDFS, and their detection in listings."""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import S3, Hdfs

import coldframe as cf
from coldframe.sources import open_store

pytest.importorskip("pyiceberg")

DATA = Path(__file__).parents[1] / "data" / "iceberg"
TABLES = ("positions", "equality", "mixed")


@pytest.fixture(scope="module", params=[S3, Hdfs])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    started = request.param(tmp_path_factory.mktemp("server"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "warehouse" / "t"


@pytest.fixture(scope="module")
def place(server: Any, tables: Path) -> tuple[str, dict[str, str]]:
    """The URL of a copy of the tables, and the store's options."""
    base = "s3://data/lake" if isinstance(server, S3) else f"{server.url}/lake"
    store = open_store(base, server.options)
    for name in TABLES:
        for path in (tables / name).rglob("*"):
            if path.is_file():
                store.put(str(path.relative_to(tables)), path.read_bytes())
    return base, server.options


def test_copied_table_is_read_at_its_new_place(place: tuple[str, dict[str, str]], tables: Path) -> None:
    base, options = place
    for name in TABLES:
        dataset = cf.scan(f"{base}/{name}", storage_options=options)
        local = cf.scan(tables / name)
        assert dataset.to_table().equals(local.to_table())
        assert all(path.startswith(f"{base}/{name}/data/") for path in dataset.files)
        assert pickle.loads(pickle.dumps(dataset)).count() == local.count()
    dataset = cf.iceberg_table(f"{base}/positions", storage_options=options, filter="part = 'b'")
    assert dataset.count() == cf.scan(tables / "positions").count("part = 'b'")
    assert {table.name: table.rows for table in cf.tables(base, storage_options=options)} == {
        name: cf.scan(tables / name).count() for name in TABLES
    }


def test_a_file_or_another_directory_is_no_table(place: tuple[str, dict[str, str]]) -> None:
    base, options = place
    path = next(
        path for path in cf.scan(f"{base}/positions", storage_options=options).files if path.endswith(".orc")
    )
    assert cf.scan(path, storage_options=options).num_rows == cf.open(path, storage_options=options).num_rows
    folder = path.rpartition("/")[0]
    assert not isinstance(cf.scan(folder, storage_options=options), cf.IcebergDataset)
    for nothing in (f"{base}/nothing", folder):
        with pytest.raises(cf.NotFoundError, match="not the directory or metadata file"):
            cf.iceberg_table(nothing, storage_options=options)
