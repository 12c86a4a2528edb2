"""An adopted table takes over the name of its source table in Hive's own metastore, and gives it back."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hive_estate import ORC, HiveEstate, hive_client
from servers import HiveMetastore

from coldframe.cli import main
from coldframe.errors import ColdframeError, SchemaError
from coldframe.pipeline import InProcess, audit, migrate, unswitch
from coldframe.pipeline.adopt import Adoption
from coldframe.pipeline.adopt.ledger import switch_of

COLUMNS = [("a", "bigint")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore with the lock tables, which PyIceberg needs."""
    pytest.importorskip("pyiceberg")
    made = HiveMetastore(tmp_path_factory.mktemp("hive") / "metastore", locks=True)
    yield made
    made.stop()


class Switched:
    """A table `cold.sales` with two partitions, which is adopted in the same database."""

    def __init__(self, estate: HiveEstate, url: str, target: Path) -> None:
        self.estate, self.url, self.target = estate, url, target
        storage = estate.storage(COLUMNS, ORC, "sales")
        estate.table("sales", storage, [("dt", "date")], comment="sold")
        for day in (1, 2):
            self.add_day(day)

    def add_day(self, day: int) -> None:
        folder = f"sales/dt=2014-01-0{day}"
        self.estate.file(f"{folder}/0", {"a": [day]}, format="orc")
        self.estate.partition("sales", [f"2014-01-0{day}"], self.estate.storage(COLUMNS, ORC, folder))

    def run(self, **options: Any) -> Adoption:
        given = {"catalog": "lake", "suffix": "_new", "switch": True, **options}
        source = f"{self.url}/cold.sales"
        report = migrate(InProcess(), source, self.target, to="iceberg", adopt=True, **given)
        assert isinstance(report, Adoption)
        return report

    def rows(self, name: str) -> list[int]:
        from pyiceberg.catalog import load_catalog

        return sorted(load_catalog("lake").load_table(("cold", name)).scan().to_arrow()["a"].to_pylist())

    def tables(self) -> dict[str, Any]:
        """The metastore's record of each table, without its name and the time of the last change."""
        by_name = {}
        for name in self.estate.client.get_all_tables("cold"):
            table = self.estate.registered(name)
            table.tableName = ""
            for key in ("last_modified_time", "last_modified_by", "transient_lastDdlTime"):
                table.parameters.pop(key, None)
            by_name[name] = table
        return by_name

    def files(self) -> list[str]:
        return sorted(str(path) for path in self.estate.root.rglob("*"))


@pytest.fixture
def switched(server: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Switched]:
    from pyiceberg.utils.config import Config

    settings = {"TYPE": "hive", "URI": server.url, "HIVE__HIVE2_COMPATIBLE": "true"}
    settings["WAREHOUSE"] = f"file://{tmp_path}/warehouse"
    for key, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    hive = importlib.import_module("hive_metastore.ThriftHiveMetastore")
    with hive_client(hive, server.port) as client:
        estate = HiveEstate(client, tmp_path / "wh")
        yield Switched(estate, server.url, tmp_path / "dst")
        estate.drop()


def test_names_are_switched_and_switched_back(switched: Switched, capsys: pytest.CaptureFixture[str]) -> None:
    assert switched.run(switch=False).verified
    before, files = switched.tables(), switched.files()
    assert set(before) == {"sales", "sales_new"}
    report = switched.run()
    assert report.verified, report.verdict.text
    assert switched.tables() == {"sales_old": before["sales"], "sales": before["sales_new"]}
    assert switched.rows("sales") == [1, 2]
    assert "the old definition is cold.sales_old" in " ".join(report.adopted[0].notes)
    assert audit(switched.target).faults == []
    # Another run would take the new table for the source.
    with pytest.raises(ColdframeError, match="coldframe unswitch"):
        switched.run()
    assert main(["unswitch", str(switched.target)]) == 0
    assert "cold.sales is the old table again" in capsys.readouterr().out
    assert (switched.tables(), switched.files()) == (before, files)
    assert unswitch(switched.target) == []
    switched.add_day(3)
    assert switched.run().verified
    assert switched.rows("sales") == [1, 2, 3]
    assert not list(switched.target.rglob("safe-to-delete*"))


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("is_made", [False, True])
def test_a_kill_between_two_renames_is_undone(
    switched: Switched, monkeypatch: pytest.MonkeyPatch, at: int, is_made: bool
) -> None:
    from coldframe.hive.changes import MetastoreWriter

    assert switched.run(switch=False).verified
    before = switched.tables()
    real, calls = MetastoreWriter.rename, [0]

    def dies(*given: Any) -> None:
        calls[0] += 1
        if calls[0] != at or is_made:
            real(*given)
        if calls[0] == at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MetastoreWriter, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            switched.run()
    with pytest.raises(ColdframeError, match="unswitch"):
        switched.run()
    assert unswitch(switched.target) == ["cold.sales"]
    assert switched.tables() == before
    assert switched.run().verified


def test_partitions_that_come_meanwhile_stop_it(switched: Switched, monkeypatch: pytest.MonkeyPatch) -> None:
    from coldframe.pipeline import adopt

    real = adopt.switch

    def late(*given: Any) -> list[str]:
        switched.add_day(4)
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(adopt, "switch", late)
        report = switched.run()
    assert report.exit_code == 1
    assert "1 partition(s) were added or dropped since the run began" in report.verdict.text
    assert set(switched.tables()) == {"sales", "sales_new"}
    assert not (switched.target / switch_of("cold/sales")).exists()
    assert switched.run().verified
    assert switched.rows("sales") == [1, 2, 4]


def test_privileges_are_carried_over(switched: Switched) -> None:
    types = switched.estate.records.types
    place = types.HiveObjectRef(types.HiveObjectType.TABLE, "cold", "sales", [], None)
    info = types.PrivilegeGrantInfo("SELECT", 0, "olga", types.PrincipalType.USER, True)
    given = types.HiveObjectPrivilege(place, "anna", types.PrincipalType.USER, info)
    switched.estate.client.grant_privileges(types.PrivilegeBag([given]))
    report = switched.run()
    assert report.verified, report.verdict.text
    assert "the new table has the privileges of the old one: SELECT to user anna" in report.adopted[0].notes
    for name in ("sales", "sales_old"):
        place = types.HiveObjectRef(types.HiveObjectType.TABLE, "cold", name, [], None)
        (there,) = switched.estate.client.list_privileges(None, None, place)
        assert (there.principalName, there.grantInfo.privilege) == ("anna", "SELECT")
        assert there.grantInfo.grantOption


def test_a_managed_table_is_not_renamed(switched: Switched) -> None:
    """The metastore would move the files that the new table reads."""
    table = switched.estate.registered("sales")
    table.tableType = "MANAGED_TABLE"
    table.parameters.pop("EXTERNAL")
    switched.estate.client.alter_table("cold", "sales", table)
    before = switched.files()
    report = switched.run()
    assert report.exit_code == 1
    assert "not switched: cold.sales is a managed table" in report.verdict.text
    assert (set(switched.tables()), switched.files()) == ({"sales", "sales_new"}, before)
    assert switched.run(switch=False).verified


def test_the_old_name_is_taken_before_the_switch(switched: Switched) -> None:
    (table,) = switched.run(suffix="", switch=False).adopted
    assert "is no Iceberg table: it is left as it is" in table.refused


def test_a_table_that_others_replaced_is_not_switched_back(switched: Switched) -> None:
    assert switched.run().verified
    switched.estate.client.drop_table("cold", "sales", False)
    switched.estate.table("sales", switched.estate.storage(COLUMNS, ORC, "sales"))
    before = switched.tables()
    with pytest.raises(ColdframeError, match="others have changed"):
        unswitch(switched.target)
    assert switched.tables() == before


def test_other_catalogs_have_names_of_their_own(
    switched: Switched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.utils.config import Config

    monkeypatch.setenv("PYICEBERG_CATALOG__SQL__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__SQL__URI", f"sqlite:///{tmp_path}/x.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    with pytest.raises(SchemaError, match="the new tables have the old names there already"):
        switched.run(catalog="sql", suffix="")
    assert not switched.target.exists() or not list(switched.target.rglob("*.json"))
