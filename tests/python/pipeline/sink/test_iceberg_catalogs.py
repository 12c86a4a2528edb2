"""Iceberg tables in a shared catalog that PyIceberg knows by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate
from iceberg_rest import RestCatalog
from servers import S3, Hdfs, HiveMetastore

from coldframe.errors import ColdframeError
from coldframe.hive.definition import Column, Definition, Storage
from coldframe.pipeline import InProcess, audit, migrate
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.sink.destination import open_destination
from coldframe.pipeline.sink.iceberg_catalog import named_catalog
from coldframe.pipeline.work.catalog_names import about

pyiceberg = pytest.importorskip("pyiceberg")


class Catalogs:
    """PyIceberg's configuration."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def configure(self, name: str, **properties: str) -> None:
        from pyiceberg.utils.config import Config

        for key, value in properties.items():
            self._patch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__{key.upper()}", value)
        # PyIceberg reads its configuration once, when it is imported.
        self._patch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())

    def load(self, name: str = "lake") -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog(name)

    def ids(self, table: str, catalog: str = "lake") -> list[int]:
        return sorted(self.load(catalog).load_table(table).scan().to_arrow()["a"].to_pylist())


@pytest.fixture
def catalogs(monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    return Catalogs(monkeypatch)


@pytest.fixture(scope="module")
def locking_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore with the lock tables, which Hive creates by itself only in its own tests."""
    server = HiveMetastore(tmp_path_factory.mktemp("hive") / "metastore", locks=True)
    yield server
    server.stop()


@pytest.fixture(params=["sql", "rest", "glue", "hive"])
def lake(
    request: pytest.FixtureRequest, tmp_path: Path, catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Catalogs]:
    """A catalog `lake` of each kind."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    warehouse = f"file://{folder}/warehouse"
    if request.param == "sql":
        catalogs.configure("lake", type="sql", uri=f"sqlite:///{folder}/lake.db", warehouse=warehouse)
        yield catalogs
    elif request.param == "rest":
        with RestCatalog(folder) as server:
            catalogs.configure("lake", type="rest", uri=server.uri)
            yield catalogs
    elif request.param == "glue":
        server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        pytest.importorskip("boto3")
        server.start()
        host, port = server.get_host_and_port()
        for key, value in (
            ("ACCESS_KEY_ID", "x"),
            ("SECRET_ACCESS_KEY", "x"),
            ("DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(f"AWS_{key}", value)
        catalogs.configure("lake", type="glue", warehouse=warehouse, glue__endpoint=f"http://{host}:{port}")
        yield catalogs
        server.stop()
    else:
        server = request.getfixturevalue("locking_metastore")
        catalogs.configure("lake", type="hive", uri=server.url, warehouse=warehouse)
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__HIVE__HIVE2_COMPATIBLE", "true")
        yield catalogs


def error(report: Report) -> str:
    (table,) = report.tables
    assert (report.exit_code, table.error is None) == (1, False)
    return str(table.error)


def check_report(report: Report) -> Report:
    assert (report.exit_code, [table.error for table in report.tables]) == (0, [None] * len(report.tables))
    assert report.verified
    return report


def test_runs_in_a_catalog_of_each_kind(tmp_path: Path, lake: Catalogs) -> None:
    estate = Estate(tmp_path)
    options = {"to": "iceberg", "catalog": "lake", "namespace": "cold", "rename": {"a-b": "orders"}}
    estate.orc("a-b/p=1/1", {"a": [1, 2]})
    estate.orc("a-b/p=2/1", {"a": [3]})
    (summary,) = check_report(estate.migrate(**options)).tables
    assert summary.metadata["iceberg table"] == "cold.orders"
    assert lake.ids("cold.orders") == [1, 2, 3]
    assert summary.metadata.pop("read by PyIceberg") == "2 new files, 3 rows"
    # A run without work changes nothing, and PyIceberg has nothing new to read.
    (again,) = check_report(estate.migrate(**options)).tables
    assert again.metadata == summary.metadata
    estate.orc("a-b/p=2/2", {"a": [4]})
    (estate.source / "a-b/p=1/1").unlink()
    check_report(estate.migrate(**options, on_vanished="remove", most_vanished=1))
    assert lake.ids("cold.orders") == [3, 4]
    assert audit(estate.target).faults == []
    assert not (estate.target / "_coldframe/iceberg.db").exists()


def test_adoptions_in_a_catalog_of_each_kind(tmp_path: Path, lake: Catalogs) -> None:
    estate = Estate(tmp_path)

    def adopt(**options: Any) -> Report:
        options = {"catalog": "lake", "namespace": "adopted", "rename": {"a-b": "orders"}, **options}
        report = migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True, **options)
        assert report.verified, report.verdict.text
        return report

    estate.orc("a-b/p=1/1", {"a": [1, 2]})
    estate.orc("a-b/p=2/1", {"_col0": [3]})
    adopt()
    table = lake.load().load_table("adopted.orders")
    assert table.scan(row_filter="p = '1'").to_arrow()["a"].to_pylist() == [1, 2]
    estate.orc("a-b/p=1/2", {"a": [4]})
    (estate.source / "a-b/p=1/1").unlink()
    adopt(on_vanished="remove", most_vanished=1)
    table = lake.load().load_table("adopted.orders")
    assert table.scan(row_filter="p = '1'").to_arrow()["a"].to_pylist() == [4]
    assert not (estate.target / "_coldframe/iceberg.db").exists()


def test_two_targets_in_a_catalog_do_not_mix(tmp_path: Path, lake: Catalogs) -> None:
    first, second = Estate(tmp_path / "one"), Estate(tmp_path / "two")
    for number, estate in enumerate((first, second), 1):
        estate.orc("t/1", {"a": [number]})
    check_report(first.migrate(to="iceberg", catalog="lake"))
    assert "migrated.t of catalog lake is there already and was made of" in error(
        second.migrate(to="iceberg", catalog="lake")
    )
    assert lake.ids("migrated.t") == [1]
    check_report(second.migrate(to="iceberg", catalog="lake", suffix="_2"))
    check_report(first.migrate(to="iceberg", catalog="lake"))
    assert (lake.ids("migrated.t"), lake.ids("migrated.t_2")) == ([1], [2])


@pytest.fixture
def sql(tmp_path: Path, catalogs: Catalogs) -> Catalogs:
    """Two catalogs, `lake` and `other`."""
    for name in ("lake", "other"):
        catalogs.configure(
            name, type="sql", uri=f"sqlite:///{tmp_path}/{name}.db", warehouse=f"file://{tmp_path}/warehouse"
        )
    return catalogs


def test_a_table_of_another_writer_is_not_changed(tmp_path: Path, sql: Catalogs) -> None:
    catalog = sql.load()
    catalog.create_namespace("migrated")
    theirs = catalog.create_table("migrated.t", pa.schema([("a", pa.int64())]))
    theirs.append(pa.table({"a": [7]}))
    estate = Estate(tmp_path)
    estate.orc("t/1", {"a": [1]})
    assert "migrated.t of catalog lake is there already and is of others" in error(
        estate.migrate(to="iceberg", catalog="lake")
    )
    assert sql.ids("migrated.t") == [7]
    check_report(estate.migrate(to="iceberg", catalog="lake", rename={"t": "u"}))
    assert (sql.ids("migrated.t"), sql.ids("migrated.u")) == ([7], [1])


def test_a_table_keeps_its_name_and_catalog(tmp_path: Path, sql: Catalogs) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/1", {"a": [1]})
    check_report(estate.migrate(to="iceberg", catalog="lake"))
    estate.orc("t/2", {"a": [2]})
    assert "name that catalog again" in error(estate.migrate(to="iceberg"))
    assert "cannot be migrated.t of catalog other as well" in error(
        estate.migrate(to="iceberg", catalog="other")
    )
    assert "cannot be migrated.u of" in error(estate.migrate(to="iceberg", catalog="lake", rename={"t": "u"}))
    assert sql.ids("migrated.t") == [1]
    check_report(estate.migrate(to="iceberg", catalog="other", fresh=True))
    assert (sql.ids("migrated.t"), sql.ids("migrated.t", "other")) == ([1], [1, 2])
    assert audit(estate.target).faults == []


def test_two_tables_with_the_same_name_are_refused(tmp_path: Path, sql: Catalogs) -> None:
    estate = Estate(tmp_path)
    for name in ("a-b", "a_B"):
        estate.orc(f"{name}/1", {"a": [1]})
    report = estate.migrate(to="iceberg", catalog="lake")
    assert ["rename one of them" in str(table.error) for table in report.tables] == [True, True]
    check_report(estate.migrate(to="iceberg", catalog="lake", rename={"a-b": "x.y"}))
    assert (sql.ids("x.y"), sql.ids("migrated.a_B")) == ([1], [1])


@pytest.mark.parametrize("call", ["create_table", "commit_table"])
def test_a_run_that_died_in_the_catalog_is_finished_by_the_next_run(
    tmp_path: Path, sql: Catalogs, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    estate = Estate(tmp_path)
    estate.orc("t/p=1/1", {"a": [1]})
    real = getattr(SqlCatalog, call)

    def dying(calls: Iterator[int]) -> Any:
        def dies(*given: Any, **named: Any) -> Any:
            # The last call succeeds, but its answer is lost.
            is_last, done = next(calls) == 0, real(*given, **named)
            if is_last:
                raise ConnectionError("the catalog is gone")
            return done

        return dies

    for after in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, call, dying(itertools.count(after, -1)))
            estate.migrate(to="iceberg", catalog="lake")
        check_report(estate.migrate(to="iceberg", catalog="lake"))
        estate.orc(f"t/p=1/more{after}", {"a": [after + 2]})
    check_report(estate.migrate(to="iceberg", catalog="lake"))
    assert sql.ids("migrated.t") == [1, 2, 3, 4, 5]


def test_a_catalog_that_cannot_be_used_ends_the_run_before_it_begins(tmp_path: Path, sql: Catalogs) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/1", {"a": [1]})
    with pytest.raises(ColdframeError, match="catalog nowhere: it cannot be opened"):
        estate.migrate(to="iceberg", catalog="nowhere")
    sql.configure("down", type="rest", uri="http://127.0.0.1:9")
    with pytest.raises(ColdframeError, match="catalog down"):
        estate.migrate(to="iceberg", catalog="down")
    assert not estate.target.exists()
    for wrong in ({"suffix": "_x"}, {"to": "orc", "catalog": "lake"}):
        with pytest.raises(ValueError, match="catalog"):
            Options(**wrong)


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_a_target_on_a_store_is_read_and_written_with_its_own_credentials(
    tmp_path: Path, sql: Catalogs, store: str, request: pytest.FixtureRequest
) -> None:
    """The catalog's configuration has no credentials of the store."""
    server: S3 | Hdfs = request.getfixturevalue(store)
    url = f"{'s3://data' if isinstance(server, S3) else server.url}/{tmp_path.name}"
    estate = Estate(tmp_path)
    estate.orc("t/p=a%2Fb/1", {"a": [1, 2]})
    for number in (1, 2):
        report = migrate(
            InProcess(),
            estate.source,
            f"{url}/lake",
            to="iceberg",
            catalog="lake",
            target_storage_options=server.options,
        )
        assert check_report(report).tables[0].metadata["iceberg table"] == "migrated.t"
        assert audit(f"{url}/lake", storage_options=server.options).faults == []
        estate.orc(f"t/p=a%2Fb/more{number}", {"a": [3]})
    destination = open_destination(f"{url}/lake", server.options)
    table = named_catalog("lake", destination).load_table("migrated.t")
    assert table.location() == f"{url}/lake/t"
    added = [snapshot.summary.additional_properties["added-records"] for snapshot in table.metadata.snapshots]
    assert added == ["2", "1"]


def test_comments_owner_and_properties_of_a_definition_are_copied() -> None:
    parameters = {
        "comment": "all orders",
        "team": "sales",
        "numRows": "3",
        "spark.sql.x": "y",
        "EXTERNAL": "TRUE",
    }
    storage = Storage((Column("Id", "bigint", "the number"), Column("x", "string")))
    details = about(Definition("s", "t", owner="olga", storage=storage, parameters=parameters))
    assert (details.comment, details.owner, details.properties) == ("all orders", "olga", {"team": "sales"})
    first, second = details.commented(pa.schema([("id", pa.int64()), ("x", pa.string())]))
    assert (first.metadata, second.metadata) == ({b"doc": b"the number"}, None)
