"""SQL over files and tables of all formats, and the list of the tables of a directory."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hbase_roots import ROOT, add_table
from hudi_tables import hudi_table

import coldframe as cf
from coldframe.cli import main
from coldframe.cli.sql import mentioned
from coldframe.pipeline.report import figures

pytest.importorskip("duckdb")

DATA = Path(__file__).parents[1] / "data"
ROWS = pa.table({"id": range(1000), "s": [f"name {i % 7}" for i in range(1000)]})


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disks of a small cluster: partitions of ORC, RCFiles, a Kudu directory, an ACID table."""
    root = tmp_path_factory.mktemp("estate")
    for part in (1, 2):
        (root / "sales" / f"p={part}").mkdir(parents=True)
        cf.write(ROWS, root / "sales" / f"p={part}" / "part-0.orc", format="orc")
    (root / "raw").mkdir()
    cf.write(ROWS, root / "raw" / "000000_0", format="rcfile", serde="text")
    (root / "tables.toml").write_text(
        '[tables.events]\npath = "raw"\nschema = "id bigint, s string"\nserde = "text"\n'
    )
    shutil.copytree(DATA / "kudu" / "files" / "file_blocks", root / "tserver")
    shutil.copytree(DATA / "hive" / "files" / "changes", root / "changes")
    pq.write_to_dataset(ROWS, root.parent / "lake_of_sql", partition_cols=["s"])
    return root


def query(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert main(["sql", *arguments, "--format", "json"]) == 0
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return rows


def test_paths_can_be_queried_as_tables(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sales, file = estate / "sales", estate / "sales" / "p=1" / "part-0.orc"
    rows = query(capsys, f"select p, count(*) as n from '{sales}' where id >= 900 group by p order by p")
    assert rows == [{"p": 1, "n": 100}, {"p": 2, "n": 100}]
    assert query(capsys, f"select max(id) as m from '{file}'") == [{"m": 999}]
    assert query(capsys, f"select count(*) as n from '{sales}/*/*.orc' a join '{file}' b using (id)") == [
        {"n": 2000}
    ]
    events = cf.open(estate / "tserver", table="events").num_rows
    assert query(capsys, f"select count(*) as n from '{estate}/tserver/events'") == [{"n": events}]
    changes = cf.open(estate / "changes").read().num_rows
    assert query(capsys, f"select count(*) as n from '{estate}/changes'") == [{"n": changes}]
    # tables.toml gives the schema; DuckDB itself reads Parquet.
    assert query(capsys, f"select sum(id) as n from '{estate}/raw/000000_0'") == [{"n": 499500}]
    assert query(capsys, f"select count(*) as n from '{estate.parent}/lake_of_sql'") == [{"n": 1000}]


def test_tables_of_a_directory_have_names(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "select count(*) as n from sales join events using (id)"
    assert query(capsys, "--in", str(estate), text) == [{"n": 2000}]
    assert query(capsys, "--in", str(estate), 'select count(*) as n from "tserver.numbers"') == [{"n": 378}]


def test_tables_of_a_warehouse_have_their_names_in_hive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("sales.db/orders", "hr.db/staff", "sales.db/staff"):
        (tmp_path / "hive/warehouse" / place).mkdir(parents=True)
        cf.write(ROWS, tmp_path / "hive/warehouse" / place / "000000_0", format="orc")
    known = ("--in", str(tmp_path))
    for name in ("orders", "sales.orders", '"sales"."orders"', '"hive.warehouse.sales.db.orders"'):
        assert query(capsys, *known, f"select count(*) as n from {name} where id < 5") == [{"n": 5}], name
    text = "select count(*) as n from sales.staff a join hr.staff using (id) join orders o on o.id = a.id"
    assert query(capsys, *known, text) == [{"n": 1000}]
    assert main(["sql", *known, "from staff"]) == 2
    assert "hive.warehouse.hr.db.staff" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["select max(s) from '{}'", "from '{}' where id > 5", "from '{}'"])
def test_damage_is_reported_as_by_other_commands(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.orc"
    rows = pa.table({"id": range(20_000), "s": [f"value {i * 7919 % 20_000}" for i in range(20_000)]})
    cf.write(rows, path, format="orc", codec="zstd", stripe_rows=5000)
    content = bytearray(path.read_bytes())
    content[1000 : len(content) // 2] = bytes(len(content) // 2 - 1000)
    path.write_bytes(content)
    assert main(["cat", str(path)]) == 1
    expected = capsys.readouterr().err
    assert main(["sql", text.format(path)]) == 1
    assert capsys.readouterr().err == expected


def test_columns_and_filters_are_passed_to_the_reader(
    estate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, object]] = []
    real = cf.File.to_batches

    def to_batches(self: cf.File, columns: object = None, **options: object) -> object:
        asked.append((columns, options.get("filter")))
        return real(self, columns, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cf.File, "to_batches", to_batches)
    path = estate / "sales" / "p=1" / "part-0.orc"
    assert query(capsys, f"select count(id) as n from '{path}' where id < 10") == [{"n": 10}]
    assert asked
    assert all(columns == ["id"] and filter is not None for columns, filter in asked)


def test_statements_run_in_order_and_print_every_form(
    estate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = estate / "sales" / "p=1" / "part-0.orc"
    assert (
        main(["sql", f"create table t as from '{file}'; select count(*) as n from t", "--format", "csv"]) == 0
    )
    assert capsys.readouterr().out == '"Count"\n1000\n"n"\n1000\n'
    assert main(["sql", f"from '{file}' limit 2"]) == 0
    assert capsys.readouterr().out == "id\ts\n0\tname 0\n1\tname 1\n"
    dest = tmp_path / "rows.parquet"
    assert main(["sql", f"from '{file}'", "--format", "parquet", "-o", str(dest)]) == 0
    assert pq.read_table(dest).num_rows == 1000
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("select 42 as a"))
    assert main(["sql"]) == 0
    assert capsys.readouterr().out == "a\n42\n"
    assert main(["summarize", str(file), "--json"]) == 0
    by_name = {row["column_name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (by_name["id"]["min"], by_name["id"]["max"]) == ("0", "999")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selec", "syntax error"),
        ("from nothing", "give the tables' directory by --in"),
        ("from 'ESTATE/tserver/none'", "there are 'ESTATE/tserver/events', 'ESTATE/tserver/numbers'"),
        ("from 'ESTATE/tserver'", "name one: 'ESTATE/tserver/events'"),
    ],
)
def test_error_names_the_next_step(
    text: str, message: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", text.replace("ESTATE", str(estate))]) == 2
    assert message.replace("ESTATE", str(estate)) in capsys.readouterr().err


def test_option_selects_one_of_several_tables(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["head", str(estate / "tserver")]) == 2
    assert "choose one by --option table=NAME: events, numbers" in capsys.readouterr().err


def test_names_of_tables_are_recognised_in_statements() -> None:
    known = {"sales": 1, "a.b": 1}
    assert list(mentioned("select 'x' from 'y''z' a, \"q\" -- 'no'\n join sales", known)) == [
        "y'z",
        "q",
        "sales",
    ]
    assert list(mentioned("select * from t where s = 'from' and x in ('a', 'b')", {})) == ["b"]
    assert list(mentioned('select * from "a.b" /* sales */', known)) == ["a.b"]


def test_the_tables_of_a_directory_are_listed(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {table.name: table for table in cf.tables(estate)}
    assert {name: (table.format, table.rows) for name, table in tables.items()} == {
        "changes": ("orc", None),
        "events": ("rcfile", None),
        "sales": ("orc", 2000),
        "tserver.events": ("kudu", 119),
        "tserver.numbers": ("kudu", 378),
    }
    assert tables["sales"].bytes == sum(path.stat().st_size for path in (estate / "sales").rglob("*.orc"))
    for name, rows in (("events", 1000), ("sales", 2000), ("tserver.events", 119)):
        assert tables[name].open().to_table().num_rows == rows
    assert main(["tables", str(estate)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split("\t") == [
        *("table", "format", "files", "size", "rows", "path"),
    ]
    assert main(["tables", str(estate), "--json", "--no-rows"]) == 0
    assert {table["name"] for table in json.loads(capsys.readouterr().out)} == set(tables)


def test_the_list_is_a_tables_toml(estate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(estate, copy)
    before = {table.name: table.open().to_table().num_rows for table in cf.tables(copy)}
    assert main(["tables", str(copy), "--as", "tables"]) == 0
    (copy / "tables.toml").write_text(capsys.readouterr().out)
    assert {table.name: table.open().to_table().num_rows for table in cf.tables(copy)} == before
    empty = tmp_path / "empty"
    os.mkdir(empty)
    assert main(["tables", str(empty)]) == 2
    assert "no tables" in capsys.readouterr().err


def test_tables_of_other_formats_are_listed_by_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (
        "ours",
        "lake/p=1",
        "lake/p=2",
        "delta/_delta_log",
        "events",
        "logs",
        "seq",
        "feed",
        "rows",
    ):
        (tmp_path / place).mkdir(parents=True)
    cf.write(ROWS, tmp_path / "ours" / "x.orc")
    for place in ("lake/p=1", "lake/p=2", "delta", "ours"):
        pq.write_table(ROWS, tmp_path / place / "x.parquet")
    (tmp_path / "delta" / "_delta_log" / "00000000000000000000.json").write_text("{}")
    (tmp_path / "events" / "x.avro").write_bytes(b"Obj\x01" + bytes(50))
    (tmp_path / "logs" / "000000_0").write_bytes(b"de\x01Germany\n" * 3000)
    (tmp_path / "seq" / "000000_0").write_bytes(b"SEQ\x06" + bytes(60))
    (tmp_path / "feed" / "part-0").write_text('{"a": 1}\n')
    (tmp_path / "rows" / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "README.md").write_text("# what lies here")
    (tmp_path / "ours" / "notes.txt").write_text("of the table")
    parquet = (tmp_path / "delta" / "x.parquet").stat().st_size
    assert main(["tables", str(tmp_path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    by_name = {table["name"]: (table["format"], table["files"], table["bytes"]) for table in listed}
    assert by_name == {
        "ours": ("orc", 1, (tmp_path / "ours" / "x.orc").stat().st_size),
        "ours__parquet": ("parquet", 1, parquet),
        "lake": ("parquet", 2, 2 * parquet),
        "delta": ("delta", 1, parquet),
        "events": ("avro", 1, 54),
        "logs": ("text", 1, 33000),
        "seq": ("sequencefile", 1, 64),
        "feed": ("json", 1, 9),
        "rows": ("csv", 1, 8),
    }
    assert [table["bytes"] for table in listed] == sorted((t["bytes"] for t in listed), reverse=True)
    assert [table["name"] for table in listed if not table["is_foreign"]] == ["ours"]
    assert [table.name for table in cf.tables(tmp_path)] == ["ours"]
    assert main(["tables", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 + len(listed)
    kinds = "avro, csv, delta, json, parquet, sequencefile, text"
    assert f"8 tables in formats that other programs read ({kinds}), left out by migrate" in err
    assert "outside of tables: 2 files, 28 B (text)" in err
    assert main(["tables", str(tmp_path), "--as", "tables"]) == 0
    assert capsys.readouterr().out.startswith("[tables.")


def test_an_inventory_is_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figures, "DRAWN_ROWS", 3)
    estate = tmp_path / "estate"
    for place in ("sales/dt=1", "sales/dt=2", "copy/dt=1", "copy/dt=2", "lake", "raw"):
        (estate / place).mkdir(parents=True)
    for place in ("sales/dt=1", "sales/dt=2"):
        cf.write(ROWS, estate / place / "x", format="orc")
        shutil.copy(estate / place / "x", estate / place.replace("sales", "copy"))
    pq.write_table(ROWS, estate / "lake" / "x.parquet")
    cf.write(pa.table({"a": [b"1"]}), estate / "raw" / "x", format="rcfile", serde="binary")
    (estate / "sales" / "dt=2" / "torn").write_bytes(bytes(99))
    for path in (estate / "sales").rglob("*"):
        os.utime(path, (1_400_000_000, 1_400_000_000))
    page = tmp_path / "inventory.html"
    assert main(["tables", str(estate), "--json", "--html", str(page)]) == 0
    listed = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    sales = listed["sales"]
    assert (sales["partitions"], sales["damaged"], sales["newest"]) == (2, 1, 1_400_000_000 * 10**9)
    assert sales["owner"] == (estate / "sales").owner()
    assert "coldframe" in sales["writer"]
    text = page.read_text()
    assert str(estate) in text
    assert text.count("<tr") == 1 + 3
    # The rest of the tables is data.
    rest = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    assert len(rest) == 1
    assert "1 file of no known format; 2 tables have equal names and sizes" in text
    assert "<span>2014</span>" in text
    fates = {"left out", "needs its columns in tables.toml", "damaged files fail, the rest is converted"}
    assert all(f"<td>{fate}</td>" in text or fate in rest[0] for fate in fates)
    with pytest.raises(SystemExit, match="2"):
        main(["tables", str(estate), "--html"])


def test_what_tables_lack_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disks = tmp_path / "disks"
    shutil.copytree(DATA / "hive" / "files" / "changes", disks / "changes")
    shutil.rmtree(disks / "changes" / "delta_0000001_0000001_0000")
    shutil.copytree(DATA / "kudu_wal" / "files" / "lz4", disks / "tserver")
    shutil.rmtree(disks / "tserver" / "wals" / "9abebdee141d45f487c164e7931272d3")
    hudi_table(disks / "trips", {"20240101000000000": [1.0], "20240102000000000": [2.0]})
    (disks / "trips" / ".hoodie" / "20240102000000000.commit").unlink()
    expected = {
        "changes": "no file has the rows of write 1 in bucket 0",
        "tserver.trips": "1 tablet of table trips without a write-ahead log",
        "trips": "its timeline does not know 1 of the instants",
    }
    assert main(["tables", str(disks), "--json"]) == 0
    listed = {table["name"]: table for table in json.loads(capsys.readouterr().out)}
    assert {name for name, table in listed.items() if table["missing"]} == expected.keys()
    assert all(text in listed[name]["missing"][0] for name, text in expected.items())
    assert main(["tables", str(disks)]) == 0
    err = capsys.readouterr().err
    assert all(err.count(text) == 1 for text in expected.values())
    with pytest.warns(cf.PartialTableWarning, match="the rows of write 1"):
        cf.tables(disks)


def test_tables_are_verified_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disks = tmp_path / "disks"
    hudi_table(disks / "trips", {"20240101000000000": [1.0], "20240102000000000": [2.0]})
    (disks / "sales").mkdir()
    for name in ("a", "b"):
        cf.write(ROWS, disks / "sales" / name, format="orc")
    assert main(["tables", str(disks), "--verify"]) == 0
    assert capsys.readouterr().err == ""
    next((disks / "trips" / "eu").glob("*_20240102000000000.parquet")).unlink()
    torn = bytearray((disks / "sales" / "b").read_bytes())
    torn[3:40] = bytes(37)
    (disks / "sales" / "b").write_bytes(torn)
    assert main(["tables", str(disks)]) == 0
    # A file that is gone is seen by its name, damage by those who read.
    (line,) = capsys.readouterr().err.splitlines()
    assert "which commit 20240102000000000 names, found none" in line
    assert main(["tables", str(disks), "--verify", "--json"]) == 1
    damage = {table["name"]: table["damage"] for table in json.loads(capsys.readouterr().out)}
    assert "which commit 20240102000000000 names, found none" in damage["trips"][0]
    assert damage["sales"][0].startswith(f"{disks / 'sales' / 'b'}: ")
    assert [table.is_wrong for table in cf.tables(disks, verify=True)] == [True, True]


def test_an_inventory_page_escapes_names(tmp_path: Path) -> None:
    evil = "<!--<script>&\u2028"
    (tmp_path / f"t{evil}").mkdir()
    for number in range(2):
        cf.write(ROWS, tmp_path / f"t{evil}" / f"{evil}{number}", format="orc")
    assert main(["tables", str(tmp_path), "--html", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text()
    assert "<!--" not in text
    assert "t&lt;!--&lt;script&gt;&amp;" in text


def test_a_folder_of_text_alone_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "000000_0").write_text("de\tGermany\n")
    (tmp_path / "000001_0").write_text("fr\tFrance\n")
    os.symlink(tmp_path / "nowhere", tmp_path / "gone")
    assert main(["tables", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split("\t")[:4] == [tmp_path.name, "text", "2", "21 B"]
    assert "gone: a link that leads nowhere" in err
    assert main(["tables", str(tmp_path), "--as", "tables"]) == 2


def test_tables_of_an_hbase_root_are_queried_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    add_table(root)
    cells = {name: cf.open(root, table=f"shop:{name}").read() for name in ("orders", "others")}
    for name, table in cells.items():
        assert table.num_rows > 0
        for query in (
            f"select count(*) as n, count(distinct \"row\") as rows from '{root}/shop:{name}'",
            f"select count(*) as n, count(distinct \"row\") as rows from '{root}/shop:{name}/'",
        ):
            assert main(["sql", query, "--format", "json"]) == 0, query
            rows = len(table["row"].unique())
            assert json.loads(capsys.readouterr().out) == [{"n": table.num_rows, "rows": rows}]
        # By its name in the list of tables, and by HBase's name.
        assert main(["sql", f"select count(*) as n from '{root}/shop.{name}'", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == [{"n": table.num_rows}]
    # The same tables by their names in a directory, also in joins.
    assert main(["sql", "--in", str(root), "select 1", "--format", "json"]) == 0
    capsys.readouterr()
    names = [table.name for table in cf.tables(root, rows=False)]
    assert len(names) == 2
    orders, others = sorted(names)
    query = f'select count(*) as n from "{orders}" a join "{others}" b using ("row", family, qualifier)'
    assert main(["sql", "--in", str(root), query, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["n"] > 0


def test_an_hbase_root_alone_names_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    add_table(root)
    assert main(["sql", f"select * from '{root}'"]) == 2
    assert f"name one: '{root}/shop.orders', '{root}/shop.others'" in capsys.readouterr().err
    assert main(["sql", f"select * from '{root}/shop:nothing'"]) == 2
    assert "no table 'shop:nothing'; there are" in capsys.readouterr().err


def test_tables_names_the_places_that_it_leaves_out(tmp_path: Path) -> None:
    for name in ("a", "b", "c/d"):
        (tmp_path / name).mkdir(parents=True)
    cf.write(pa.table({"x": [1]}), tmp_path / "a" / "x.orc", format="orc")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b" / "x.parquet")
    (tmp_path / "c" / "d" / "000000_0").write_text("de\tGermany\n")
    with pytest.warns(cf.LeftOutWarning, match="b, c/d"):
        assert [table.name for table in cf.tables(tmp_path)] == ["a"]
