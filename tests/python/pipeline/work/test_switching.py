"""Switching names in Hive's own metastore changes only the name of the old table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hive_estate import ORC, HiveEstate
from servers import HiveMetastore

from coldframe.cli import main
from coldframe.errors import ColdframeError
from coldframe.pipeline import InProcess, migrate, unswitch
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.model import Report

COLUMNS = [("a", "bigint")]


class Switched:
    """A table `cold.sales` with two partitions, and its migration in the same database."""

    def __init__(self, estate: HiveEstate, url: str, target: Path) -> None:
        self.estate, self.url, self.target = estate, url, target
        storage = estate.storage(COLUMNS, ORC, "sales")
        storage.parameters = {"kept": "by those who know it"}
        estate.table("sales", storage, [("dt", "date")], comment="sold", team="x")
        for day in (1, 2):
            folder = f"sales/dt=2014-01-0{day}"
            estate.file(f"{folder}/0", {"a": [day]}, format="orc")
            estate.partition("sales", [f"2014-01-0{day}"], estate.storage(COLUMNS, ORC, folder))

    def run(self, to: str = "parquet", **options: Any) -> Report:
        given = {"catalog": self.url, "suffix": "_new", "switch": True, **options}
        return migrate(InProcess(), f"{self.url}/cold.sales", self.target, to=to, **given)

    def tables(self) -> dict[str, Any]:
        """The metastore's record of each table, without its name and the time of the last change."""
        client, by_name = self.estate.client, {}
        for name in client.get_all_tables("cold"):
            table = self.estate.registered(name)
            table.tableName = ""
            for key in ("last_modified_time", "last_modified_by", "transient_lastDdlTime"):
                table.parameters.pop(key, None)
            partitions = client.get_partitions("cold", name, -1)
            for partition in partitions:
                partition.tableName = ""
            by_name[name] = (table, sorted(partitions, key=lambda partition: partition.values))
        return by_name

    def files(self) -> list[str]:
        return sorted(str(path) for path in self.estate.root.rglob("*"))


@pytest.fixture
def switched(hive_estate: HiveEstate, hive_server: HiveMetastore, tmp_path: Path) -> Switched:
    return Switched(hive_estate, hive_server.url, tmp_path / "dst")


def check_report(report: Report) -> None:
    assert (report.exit_code, [table.error for table in report.tables]) == (0, [None])


@pytest.mark.parametrize("to", ["parquet", "delta"])
def test_names_are_switched_and_switched_back(
    switched: Switched, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_report(switched.run(to, switch=False))
    before, files = switched.tables(), switched.files()
    assert set(before) == {"sales", "sales_new"}
    check_report(switched.run(to))
    after = switched.tables()
    assert after == {"sales_old": before["sales"], "sales": before["sales_new"]}
    # Another run would use the new table as the source.
    with pytest.raises(ColdframeError, match=r"coldframe unswitch"):
        switched.run(to)
    assert main(["unswitch", str(switched.target)]) == 0
    assert "cold.sales is the old table again" in capsys.readouterr().out
    assert (switched.tables(), switched.files()) == (before, files)
    assert unswitch(switched.target) == []
    check_report(switched.run(to))
    assert switched.tables() == after


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_a_kill_between_two_renames_is_undone(
    switched: Switched, monkeypatch: pytest.MonkeyPatch, at: int, is_made: bool, back: bool
) -> None:
    from coldframe.hive.changes import MetastoreWriter

    check_report(switched.run(switch=False))
    before = switched.tables()
    real, calls = MetastoreWriter.rename, [0]

    def dies(*given: Any) -> None:
        calls[0] += 1
        if calls[0] != at:
            return real(*given)
        if is_made:
            real(*given)
        raise KeyboardInterrupt

    if back:
        check_report(switched.run())
    act: Callable[[], object] = (lambda: unswitch(switched.target)) if back else switched.run
    with monkeypatch.context() as patch:
        patch.setattr(MetastoreWriter, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            act()
    with pytest.raises(ColdframeError, match="unswitch"):
        switched.run()
    assert unswitch(switched.target) == ["cold.sales"]
    assert switched.tables() == before
    check_report(switched.run())


def test_a_managed_table_is_not_renamed(switched: Switched) -> None:
    """The metastore would move the table's directory."""
    client = switched.estate.client
    table = switched.estate.registered("sales")
    table.tableType = "MANAGED_TABLE"
    table.parameters.pop("EXTERNAL")
    client.alter_table("cold", "sales", table)
    before = switched.files()
    report = switched.run()
    assert report.exit_code == 1
    assert "managed table" in str(report.tables[0].error)
    assert (set(switched.tables()), switched.files()) == ({"sales", "sales_new"}, before)
    # No switch was begun: a run without the option continues.
    check_report(switched.run(switch=False))


def test_a_table_that_hive_4_made_external_is_not_renamed(switched: Switched) -> None:
    """Hive 4 would move its directory, as for a managed table."""
    client = switched.estate.client
    table = switched.estate.registered("sales")
    table.parameters["TRANSLATED_TO_EXTERNAL"] = "TRUE"
    client.alter_table("cold", "sales", table)
    before = switched.files()
    report = switched.run()
    assert report.exit_code == 1
    assert "TRANSLATED_TO_EXTERNAL" in str(report.tables[0].error)
    assert (set(switched.tables()), switched.files()) == ({"sales", "sales_new"}, before)


def test_a_table_that_others_changed_is_not_switched_back(switched: Switched) -> None:
    check_report(switched.run())
    client = switched.estate.client
    client.drop_table("cold", "sales", False)
    switched.estate.table("sales", switched.estate.storage(COLUMNS, ORC, "sales"))
    before = switched.tables()
    with pytest.raises(ColdframeError, match="others have changed"):
        unswitch(switched.target)
    assert switched.tables() == before


def test_only_verified_tables_are_switched(switched: Switched) -> None:
    path = switched.estate.root / "sales/dt=2014-01-01/0"
    path.write_bytes(path.read_bytes()[:-20])
    assert switched.run().exit_code == 1
    assert "sales_old" not in switched.tables()


def test_switching_needs_a_metastore(tmp_path: Path, hive_server: HiveMetastore) -> None:
    with pytest.raises(ValueError, match="switch"):
        Options(switch=True)
    with pytest.raises(ValueError, match="source"):
        migrate(InProcess(), tmp_path, tmp_path / "dst", catalog=hive_server.url, switch=True)
