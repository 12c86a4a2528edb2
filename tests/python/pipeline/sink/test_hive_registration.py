"""Registers migrated Parquet and Delta tables in a Hive metastore: creates and updates only its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate
from hive_estate import ORC, HiveEstate
from servers import HiveMetastore

from coldframe.hive.defined import connect
from coldframe.hive.definition import Definition, PartitionDefinition
from coldframe.pipeline import InProcess, audit, migrate
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.sink.hive_types import hive_type, spark_schema


class Lake:
    """A migration into the metastore's database `lake`."""

    def __init__(self, root: Path, url: str) -> None:
        self.estate, self.url = Estate(root), url

    def run(self, to: str = "parquet", **options: Any) -> Report:
        return self.estate.migrate(to=to, catalog=f"{self.url}/lake", **options)

    def table(self, name: str = "t") -> tuple[Definition, dict[tuple[str, ...], PartitionDefinition]]:
        with connect(self.url) as metastore:
            definition = metastore.definition("lake", name)
            partitions = metastore.partition_definitions(definition) if definition.keys else ()
            return definition, {partition.values: partition for partition in partitions}


def check_report(report: Report) -> Report:
    assert (report.exit_code, [table.error for table in report.tables]) == (0, [None] * len(report.tables))
    return report


def error(report: Report) -> str:
    (table,) = report.tables
    assert report.exit_code == 1
    return str(table.error)


@pytest.fixture
def lake(tmp_path: Path, hive_server: HiveMetastore) -> Iterator[Lake]:
    made = Lake(tmp_path, hive_server.url)
    yield made
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    from hive_estate import hive_client

    with hive_client(hive, hive_server.port) as client:
        for name in {"lake", "cold"} & set(client.get_all_databases()):
            client.drop_database(name, False, True)


def test_partitions_have_their_locations_and_statistics(lake: Lake) -> None:
    lake.estate.orc("t/Dt=2014-01-01/region=asia%2Fpacific/1", {"a": [1, 2], "Name": ["x", None]})
    lake.estate.orc("t/Dt=2014-01-01/region=__HIVE_DEFAULT_PARTITION__/1", {"a": [3], "Name": ["y"]})
    report = check_report(lake.run())
    assert report.verified
    assert report.tables[0].metadata == {"hive table": "lake.t"}
    table, partitions = lake.table()
    assert (table.kind, table.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert [(column.name, column.type) for column in table.storage.columns] == [
        ("a", "bigint"),
        ("name", "string"),
    ]
    assert [key.name for key in table.keys] == ["dt", "region"]
    root = f"file:{lake.estate.target}/t"
    assert table.location == root
    registered = {
        values: (
            partition.storage.location,
            partition.parameters["numRows"],
            partition.parameters["numFiles"],
        )
        for values, partition in partitions.items()
    }
    assert registered == {
        ("2014-01-01", "asia/pacific"): (f"{root}/Dt=2014-01-01/region=asia%2Fpacific", "2", "1"),
        ("2014-01-01", "__HIVE_DEFAULT_PARTITION__"): (
            f"{root}/Dt=2014-01-01/region=__HIVE_DEFAULT_PARTITION__",
            "1",
            "1",
        ),
    }
    size = sum(path.stat().st_size for path in lake.estate.files("t"))
    assert sum(int(partition.parameters["totalSize"]) for partition in partitions.values()) == size


def test_later_runs_update_the_registration(lake: Lake) -> None:
    for day in (1, 2):
        lake.estate.orc(f"t/day={day}/1", {"a": [day]})
    check_report(lake.run())
    before = lake.table()
    check_report(lake.run())
    assert lake.table() == before
    # A new partition, an added file, a removed file, and an added column.
    lake.estate.orc("t/day=3/1", {"a": [3], "more": ["x"]})
    lake.estate.orc("t/day=2/2", {"a": [4, 5]})
    (lake.estate.source / "t/day=1/1").unlink()
    check_report(lake.run(on_vanished="remove", most_vanished=1))
    table, partitions = lake.table()
    assert [column.name for column in table.storage.columns] == ["a", "more"]
    assert {key: partition.parameters["numRows"] for key, partition in partitions.items()} == {
        ("2",): "3",
        ("3",): "1",
    }
    assert all(partition.storage.columns == table.storage.columns for partition in partitions.values())


def test_more_partitions_than_one_call_takes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from coldframe.hive import changes

    monkeypatch.setattr(changes, "PARTITIONS_AT_ONCE", 2)
    for day in range(5):
        lake.estate.orc(f"t/day={day}/1", {"a": [day]})
    check_report(lake.run())
    assert len(lake.table()[1]) == 5


@pytest.mark.parametrize("call", ["create", "add", "change", "change_partitions", "drop"])
def test_a_run_that_died_at_any_step_is_finished_by_the_next_run(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    from coldframe.hive.changes import MetastoreWriter

    real = getattr(MetastoreWriter, call)

    def dies(*given: Any) -> None:
        real(*given)
        raise ConnectionError("killed")

    def run(**options: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(MetastoreWriter, call, dies)
            lake.run(**options)
        check_report(lake.run(**options))

    for day in (1, 2):
        lake.estate.orc(f"t/day={day}/1", {"a": [day]})
    run()
    lake.estate.orc("t/day=2/2", {"a": [4], "more": [1]})
    (lake.estate.source / "t/day=1/1").unlink()
    run(on_vanished="remove", most_vanished=1)
    table, partitions = lake.table()
    assert {key: partition.parameters["numRows"] for key, partition in partitions.items()} == {("2",): "2"}
    assert [column.name for column in table.storage.columns] == ["a", "more"]


def test_a_table_of_another_writer_is_refused(lake: Lake, tmp_path: Path) -> None:
    lake.estate.orc("t/1", {"a": [1]})
    check_report(lake.run())
    before = lake.table()
    other = Lake(tmp_path / "other", lake.url)
    other.estate.orc("t/1", {"a": [2]})
    assert "lake.t of catalog" in error(other.run())
    assert lake.table() == before
    check_report(other.run(suffix="_2"))
    assert lake.table("t_2")[0].location == f"file:{other.estate.target}/t"
    # A later run may add a catalog, but may not change the name.
    assert "cannot be lake.u of" in error(lake.run(rename={"t": "u"}))
    assert "name that catalog again" in error(lake.estate.migrate())
    assert audit(lake.estate.target).faults == []


def test_delta_is_registered_by_its_location(lake: Lake) -> None:
    pytest.importorskip("deltalake")
    lake.estate.orc("t/p=1/1", {"a": [1]})
    check_report(lake.estate.migrate(to="delta"))
    check_report(lake.run("delta"))
    table, partitions = lake.table()
    assert table.parameters["spark.sql.sources.provider"] == "delta"
    assert (table.storage.serde_properties["path"], partitions) == (f"file:{lake.estate.target}/t", {})


def test_comments_and_properties_of_the_old_table_are_copied(lake: Lake, hive_estate: HiveEstate) -> None:
    estate = hive_estate
    columns = [("a", "bigint")]
    estate.table("sales", estate.storage(columns, ORC, "sales"), [("dt", "date")], comment="sold", team="x")
    estate.file("sales/dt=2014-01-01/0", {"a": [1, 2]}, format="orc")
    estate.partition("sales", ["2014-01-01"], estate.storage(columns, ORC, "sales/dt=2014-01-01"))
    source = f"{lake.url}/cold.sales"
    report = migrate(InProcess(), source, lake.estate.target, catalog=lake.url)
    assert "cold.sales of catalog" in error(report)
    check_report(migrate(InProcess(), source, lake.estate.target, catalog=lake.url, namespace="lake"))
    table, partitions = lake.table("sales")
    assert (table.comment, table.owner, table.parameters["team"]) == ("sold", "olga", "x")
    assert [column.comment for column in (*table.storage.columns, *table.keys)] == ["the a", "the dt"]
    assert [partition.rows for partition in partitions.values()] == [2]


def test_spark_reads_the_table_by_name(lake: Lake) -> None:
    from hive_estate import spark_over

    lake.estate.orc("t/Day=1/r=a%2Fb/1", {"Id": [1, 2]})
    lake.estate.orc("t/Day=2/r=__HIVE_DEFAULT_PARTITION__/1", {"Id": [3]})
    check_report(lake.run())
    with spark_over(lake.url) as spark:
        rows = [tuple(row) for row in spark.sql("select Id, Day, r from lake.t order by Id").collect()]
        assert rows == [(1, "1", "a/b"), (2, "1", "a/b"), (3, "2", None)]
        assert spark.table("lake.t").columns == ["Id", "Day", "r"]
        assert spark.sql("select count(*) from lake.t where r = 'a/b'").collect()[0][0] == 2


def test_types_have_names_in_hive_and_in_spark() -> None:
    kind = pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.decimal128(9, 2))), ("t", pa.timestamp("us"))]))
    assert hive_type(kind) == "array<struct<x:map<string,decimal(9,2)>,t:timestamp>>"
    properties = spark_schema([pa.field("A", kind)])
    assert '"timestamp_ntz"' in properties["spark.sql.sources.schema.part.0"]
    wide = spark_schema([pa.field(f"column{number}", pa.int8()) for number in range(200)])
    assert int(wide["spark.sql.sources.schema.numParts"]) > 1
    with pytest.raises(Exception, match="no type"):
        hive_type(pa.timestamp("ns"))
