"""`coldframe sample`: the estate to try the commands on."""

from __future__ import annotations

from pathlib import Path

import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.cli.sample import DAMAGED, ROWS, make_sample


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sample") / "estate"
    make_sample(str(root))
    return root


def test_the_sample_has_tables_of_all_formats_and_one_damaged_file(estate: Path) -> None:
    tables = {table.name: table for table in cf.tables(estate)}
    assert {name: table.format for name, table in tables.items()} == {
        "archive.documents": "redfile",
        "events": "rcfile",
        "hbase.users": "hfile",
        "kudu": "cfile",
        "payments": "rcfile",
        "warehouse.sales": "orc",
    }
    for name, table in tables.items():
        if name != "payments":
            opened = table.open()
            assert opened.to_table().num_rows == ROWS
            assert not opened.damage
    payments = tables["payments"].open()
    rows = payments.to_table(on_error="skip")
    assert rows.num_rows == 2 * ROWS - 1000
    assert [Path(lost["path"]).name for lost in payments.damage] == [Path(DAMAGED).name]


def test_its_statements_define_the_same_tables(estate: Path) -> None:
    for name in ("sales", "events"):
        assert cf.scan(f"{estate}/tables.hql/default.{name}").count() == ROWS
    sales = cf.scan(f"{estate}/tables.hql/default.sales")
    assert sales.to_table(["id"], filter="dt = '2014-01-02'").column("id").to_pylist()[0] == 3334


def test_the_sample_is_the_same_each_time(estate: Path, tmp_path: Path) -> None:
    make_sample(str(tmp_path / "again"))
    for path in estate.rglob("*.*"):
        assert path.suffix in (".toml", ".hql")
    for place in ("warehouse/sales/dt=2014-01-01/000000_0", "warehouse/countries/000000_0", "tables.toml"):
        assert (estate / place).read_bytes() == (tmp_path / "again" / place).read_bytes()


def test_the_command_says_what_to_try_and_keeps_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sample", str(tmp_path / "estate")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 7
    for line in out[:-1]:
        command = line.split("  ")[0].split()[1:]
        assert main(command) == (1 if command[0] == "verify" else 0), line
    capsys.readouterr()
    assert main(["sample", str(tmp_path / "estate")]) == 2
    assert "is not empty: name a new directory" in capsys.readouterr().err
