"""A migration of tables whose partitions differ: in format, SerDe, columns, and where they lie."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hive_estate import ORC, RC_BINARY, TEXT, HiveEstate, hive_client, mixed
from servers import S3, HiveMetastore

import coldframe as cf
from coldframe.pipeline import audit, migrate
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.scheduling import InProcess

KINDS = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.float64(): "double",
}
ACID = Path(__file__).parents[3] / "data/hive/files/major"


def run(server: HiveMetastore, target: Path, what: str = "/cold", **options: Any) -> Report:
    # Sources that are gone or changed are taken for Hive's work.
    return migrate(InProcess(2), f"{server.url}{what}", target, **{"archived_rows": "drop", **options})


def rows(table: Any) -> list[str]:
    names = sorted(table.schema.names)
    return sorted(repr([row[name] for name in names]) for row in table.select(names).to_pylist())


def read(target: Path, table: str, keys: dict[str, pa.DataType] | None = None) -> Any:
    by = None if keys is None else pads.partitioning(pa.schema(keys), flavor="hive")
    return pads.dataset(target / "cold" / table, format="parquet", partitioning=by).to_table()


def listed(target: Path) -> list[str]:
    return sorted(line.path for line in safe_list.read(str(target / "_coldframe/safe-to-delete.txt")).lines)


def findings(report: Report) -> list[str]:
    assert report.metastore is not None
    of_tables = [str(finding) for table in report.tables for finding in table.metastore]
    texts = [*of_tables, *map(str, report.metastore.findings)]
    return sorted(finding for finding in texts if not finding.endswith("holds no files"))


SALES = {"dt": pa.date32(), "region": pa.string()}


def test_partitions_of_every_kind_are_migrated(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    mixed(hive_estate)
    target = tmp_path / "dst"
    theirs = rows(cf.hive_table(f"{hive_server.url}/cold.sales").read())
    for _ in range(2):
        report = run(hive_server, target)
        assert report.exit_code == 0, summary(report)
        assert report.verified
        assert rows(read(target, "sales", SALES)) == theirs
        # The list has the real locations, and an audit matches them with the journal.
        files = cf.hive_table(f"{hive_server.url}/cold.sales").files
        assert listed(target) == sorted(files)
        assert audit(before_delete=target / "_coldframe/safe-to-delete.txt").exit_code == 0
    assert [table.format for table in report.tables] == ["orc, rcfile"]
    # A list does not hold for another file at the same path.
    shutil.copy(hive_estate.root / "sales/b/000000_0", hive_estate.root / "sales/a/000000_0")
    assert audit(before_delete=target / "_coldframe/safe-to-delete.txt").exit_code == 1


@pytest.mark.parametrize("to", ["delta", "iceberg", "orc"])
def test_every_kind_of_target_gets_all_rows(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path, to: str
) -> None:
    mixed(hive_estate)
    report = run(hive_server, tmp_path / "dst", to=to)
    assert report.exit_code == 0, summary(report)
    assert (report.rows, report.safe_to_delete) == (6, 3)


def test_a_definition_that_changes_converts_its_files_again(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    mixed(hive_estate)
    target = tmp_path / "dst"
    run(hive_server, target)
    partition = hive_estate.client.get_partition("cold", "sales", ["2014-01-01", "asia/pacific"])
    partition.sd.serdeInfo.parameters["field.delim"] = "!"
    hive_estate.client.alter_partition("cold", "sales", partition)
    report = run(hive_server, target)
    assert report.exit_code == 0, summary(report)
    assert rows(read(target, "sales", SALES)) == rows(cf.hive_table(f"{hive_server.url}/cold.sales").read())


def test_transactional_directories_are_migrated(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    live = cf.open(ACID)
    columns = [(column.name, KINDS[column.type]) for column in live.schema]
    for name, keys in (("whole", []), ("parted", [("p", "int")])):
        place = f"{name}/x" if keys else name
        shutil.copytree(ACID, hive_estate.root / place)
        storage = hive_estate.storage(columns, ORC, name)
        storage.numBuckets, storage.bucketCols = 2, [columns[0][0]]
        hive_estate.table(name, storage, keys, kind="MANAGED_TABLE", transactional="true")
        if keys:
            hive_estate.partition(name, ["7"], hive_estate.storage(columns, ORC, place))
    target = tmp_path / "dst"
    report = run(hive_server, target)
    later = "writes later than the metastore knows, in 1 of its directories, such as"
    assert [text.partition(": whether they are valid")[0] for text in findings(report)] == [
        f"cold.parted: {later} {hive_estate.root}/parted/x",
        f"cold.whole: {later} {hive_estate.root}/whole",
    ]
    assert report.exit_code == 1
    assert not listed(target)
    assert rows(read(target, "whole")) == rows(live.read())
    if hive_server.version != "2.3":
        pytest.skip("the numbers are those of writes: see test_metastore_versions.py")
    commit_transactions(hive_estate, 30)
    report = run(hive_server, target)
    assert report.exit_code == 0, summary(report)
    assert rows(read(target, "whole")) == rows(live.read())
    table = read(target, "parted", {"p": pa.int32()})
    assert set(table["p"].to_pylist()) == {7}
    assert rows(table.select(live.schema.names)) == rows(live.read())
    assert listed(target) == [f"{hive_estate.root}/{place}" for place in ("parted/x", "whole")]
    assert audit(before_delete=target / "_coldframe/safe-to-delete.txt").exit_code == 0


def commit_transactions(hive_estate: HiveEstate, count: int) -> None:
    types, client = hive_estate.records.types, hive_estate.client
    for number in client.open_txns(types.OpenTxnRequest(num_txns=count, user="u", hostname="h")).txn_ids:
        client.commit_txn(types.CommitTxnRequest(number))


def test_columns_are_matched_as_in_hive(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    columns = [("x", "bigint"), ("b", "bigint"), ("c", "string")]
    hive_estate.table("t", hive_estate.storage(columns, ORC, "t"), [("p", "int")])
    for number, names in enumerate((["b", "x"], ["B", "X"], ["_col0", "_col1"])):
        hive_estate.file(f"t/p={number}/000000_0", {names[0]: [1, 2], names[1]: [3, 4]}, format="orc")
        before = hive_estate.storage([("a", "bigint"), ("b", "bigint")], ORC, f"t/p={number}")
        hive_estate.partition("t", [str(number)], before)
    # Hive wrote a column into a partition older than the column, and reads null: the column is kept.
    types = pa.schema([("x", pa.int32()), ("b", pa.int64()), ("c", pa.string())])
    newer = {"x": [7], "b": [8], "c": ["kept"]}
    hive_estate.file("t/p=3/000000_0", newer, types, format="rcfile", serde="binary")
    hive_estate.partition(
        "t", ["3"], hive_estate.storage([("a", "int"), ("b", "bigint")], RC_BINARY, "t/p=3")
    )
    # A column that the table dropped is kept under its own name.
    hive_estate.file("t/p=4/000000_0", {"x": [9], "gone": [1]}, format="orc")
    hive_estate.partition("t", ["4"], hive_estate.storage(columns, ORC, "t/p=4"))
    types = pa.schema([*types, ("dropped", pa.int32())])
    hive_estate.file("t/p=5/000000_0", {**newer, "dropped": [2]}, types, format="rcfile", serde="binary")
    longer = [("a", "int"), ("b", "bigint"), ("c", "string"), ("dropped", "int")]
    hive_estate.partition("t", ["5"], hive_estate.storage(longer, RC_BINARY, "t/p=5"))
    report = run(hive_server, tmp_path / "dst")
    assert report.exit_code == 0, summary(report)
    ours = read(tmp_path / "dst", "t", {"p": pa.int32()})
    assert ours.schema.names == ["x", "b", "c", "gone", "dropped", "p"]
    assert ours.filter(pads.field("p") > 3).select(["x", "gone", "dropped", "p"]).to_pylist() == [
        {"x": 9, "gone": 1, "dropped": None, "p": 4},
        {"x": 7, "gone": None, "dropped": 2, "p": 5},
    ]
    ours = ours.select(["x", "b", "c", "p"])
    assert ours.schema.field("x").type == pa.int64()
    theirs = cf.hive_table(f"{hive_server.url}/cold.t")
    assert rows(ours.filter(pads.field("p") < 3)) == rows(theirs.read(filter="p < 3"))
    assert ours.filter(pads.field("p") == 3).to_pylist() == [{"x": 7, "b": 8, "c": "kept", "p": 3}]


def test_files_that_their_definition_does_not_fit_are_failures(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    """Each file fails alone, and no file of the table is safe to delete."""
    now = [("a", "bigint"), ("b", "string")]
    both = {"a": [1], "b": ["x"]}
    hive_estate.table("t", hive_estate.storage(now, RC_BINARY, "t"), [("p", "int")])

    def part(number: int, classes: Any, rows: dict[str, Any], **how: Any) -> None:
        place = f"t/p={number}"
        hive_estate.file(f"{place}/000000_0", rows, **how)
        hive_estate.partition("t", [str(number)], hive_estate.storage(now, classes, place))

    part(0, RC_BINARY, both, format="rcfile", serde="binary")
    part(1, RC_BINARY, {**both, "c": [5]}, format="rcfile", serde="binary")
    part(2, ORC, both, format="rcfile", serde="binary")
    part(3, RC_BINARY, both, format="orc")
    part(4, ORC, {"a": ["text"], "b": ["x"]}, format="orc")
    part(5, ORC, both, format="redfile")
    shutil.copytree(ACID, hive_estate.root / "t/p=6")
    hive_estate.partition("t", ["6"], hive_estate.storage(now, ORC, "t/p=6"))
    (hive_estate.root / "t/p=7").mkdir()
    (hive_estate.root / "t/p=7/000000_0").write_bytes(b"of no format that anybody knows")
    hive_estate.partition("t", ["7"], hive_estate.storage(now, ORC, "t/p=7"))
    report = run(hive_server, tmp_path / "dst")
    assert report.exit_code == 1
    failed = {file.source.split("/")[2]: file.error or "" for file in report.failures}
    for place, text in {
        "p=1": "the file has 3 columns, the table's definition names 2",
        "p=2": "its bytes are rcfile, but the metastore has orc",
        "p=4": "the metastore's definition",
        "p=5": "redfile by its bytes, but orc in the metastore",
        "p=6": "a directory of a transactional table, but orc in the metastore",
        "p=7": "its bytes are not of the format",
    }.items():
        assert text in failed.pop(place), place
    assert not failed
    # Files of another format with column names are read, and reported.
    assert "cold.t p=3: rcfile by the metastore, orc by its bytes" in findings(report)
    assert sorted(read(tmp_path / "dst", "t", {"p": pa.int32()})["p"].to_pylist()) == [0, 3]
    assert not listed(tmp_path / "dst")


def test_a_partition_in_an_unsupported_format_makes_the_table_incomplete(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    mixed(hive_estate)
    text = hive_estate.storage([("id", "bigint")], TEXT, "sales/text")
    hive_estate.partition("sales", ["2015-01-01", "eu"], text)
    (hive_estate.root / "sales/text/000000_0").write_text("1")
    report = run(hive_server, tmp_path / "dst")
    assert report.exit_code == 1
    assert findings(report) == [
        "cold.sales dt=2015-01-01/region=eu: left out: files of TextInputFormat are not read"
    ]
    # The other partitions are migrated, but the table is incomplete.
    assert report.rows == 6
    assert not listed(tmp_path / "dst")


def test_tables_whose_files_may_belong_to_another_table_are_left_out(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    column = [("a", "bigint")]
    storage = hive_estate.storage
    for name in ("inside", "shares", "twice", "apart"):
        hive_estate.table(name, storage(column, ORC, name), [("p", "int")] if name != "shares" else [])
        hive_estate.file(f"{name}/p=1/000000_0", {"a": [1]}, format="orc")
    # Two partitions of a table in the same place; a partition of another table in a table's directory ..
    hive_estate.partition("twice", ["1"], storage(column, ORC, "twice/p=1"))
    hive_estate.partition("twice", ["2"], storage(column, ORC, "twice/p=1"))
    hive_estate.partition("inside", ["1"], storage(column, ORC, "shares/p=1"))
    # .. and another inside a partitioned table, but outside of its partitions.
    hive_estate.partition("apart", ["1"], storage(column, ORC, "apart/p=1"))
    hive_estate.file("apart/other/000000_0", {"a": [5]}, format="orc")
    hive_estate.partition("inside", ["2"], storage(column, ORC, "apart/other"))
    root = hive_estate.root
    report = run(hive_server, tmp_path / "dst", only=["cold.shares", "cold.twice", "cold.apart"])
    assert findings(report) == [
        f"cold.shares: left out: its files at {root}/shares may be those of cold.inside",
        f"cold.twice: left out: the files of its partition p=1 at {root}/twice/p=1 may be those of another",
    ]
    assert [table.name for table in report.tables] == ["cold.apart"]
    assert read(tmp_path / "dst", "apart", {"p": pa.int32()}).to_pylist() == [{"a": 1, "p": 1}]
    assert listed(tmp_path / "dst") == [f"{root}/apart/p=1/000000_0"]


def test_runs_with_other_selections_do_not_lose_tables(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    mixed(hive_estate)
    hive_estate.file("plain/000000_0", {"a": [1]}, format="orc")
    hive_estate.table("plain", hive_estate.storage([("a", "bigint")], ORC, "plain"))
    target = tmp_path / "dst"
    for only in (["cold.sales"], ["cold.plain"], []):
        report = run(hive_server, target, only=only)
        assert report.exit_code == 0, summary(report)
        assert not any(table.vanished for table in report.tables)
    assert report.rows == 7


def test_files_of_a_dropped_partition_are_reported(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    """The table's files still exist, but Hive no longer reads them."""
    mixed(hive_estate)
    target = tmp_path / "dst"
    run(hive_server, target)
    hive_estate.client.drop_partition("cold", "sales", ["2014-01-01", "eu"], False)
    report = run(hive_server, target)
    assert report.exit_code == 1
    place = f"{hive_estate.root}/sales/b/000000_0"
    assert findings(report) == [f"cold.sales: 1 files in no registered partition, such as {place}"]
    assert report.tables[0].vanished == ["cold/sales/dt=2014-01-01/region=eu/000000_0"]
    assert not listed(target)
    run(hive_server, target, on_vanished="remove")
    assert sorted(read(target, "sales", SALES)["id"].to_pylist()) == [1, 2, 4, 5, 6]
    assert not listed(target)


def test_a_location_that_is_a_link_is_followed(
    hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path
) -> None:
    mixed(hive_estate)
    root, target = hive_estate.root, tmp_path / "dst"
    # A location that is a link is followed; a link below a location is not, and is reported.
    (root / "sales/b").rename(tmp_path / "real")
    (root / "sales/b").symlink_to(tmp_path / "real")
    report = run(hive_server, target)
    assert report.exit_code == 0, summary(report)
    assert f"{root}/sales/b/000000_0" in listed(target)
    assert audit(before_delete=target / "_coldframe/safe-to-delete.txt").exit_code == 0
    (root / "sales/b/more").symlink_to(root / "elsewhere/x9")
    report = run(hive_server, target)
    assert report.exit_code == 1
    assert [file.relative for file in report.unread] == ["cold/sales/dt=2014-01-01/region=eu/more"]
    (root / "sales/b").unlink()
    (root / "sales/b").symlink_to(root / "elsewhere/x9")
    with pytest.raises(cf.UnsupportedError, match="may be those of another"):
        run(hive_server, target)


def test_locations_may_lie_in_several_stores(
    hive_server: HiveMetastore, hive_estate: HiveEstate, s3: S3, tmp_path: Path
) -> None:
    mixed(hive_estate)
    theirs = rows(cf.hive_table(f"{hive_server.url}/cold.sales").read())
    shutil.copytree(hive_estate.root / "elsewhere", s3.root / "old")
    shutil.rmtree(hive_estate.root / "elsewhere")
    target = tmp_path / "dst"
    moved = {f"file:{hive_estate.root}/elsewhere": "s3a://data/old"}
    for _ in range(2):
        # Options of a store do not apply to the other stores.
        own = {"s3": s3.options, "hdfs.user": "nobody"}
        report = run(hive_server, target, locations=moved, source_storage_options=own)
        assert report.exit_code == 0, summary(report)
        assert rows(read(target, "sales", SALES)) == theirs
        assert "s3a://data/old/x9/000000_0" in listed(target)
        assert len(listed(target)) == 3
        there = {"location": moved, "storage_options": own}
        assert rows(cf.hive_table(f"{hive_server.url}/cold.sales", **there).read()) == theirs
        safe = target / "_coldframe/safe-to-delete.txt"
        assert audit(before_delete=safe, source_storage_options=own).exit_code == 0


def test_rows_of_valid_writes_are_migrated(tmp_path: Path) -> None:
    """Write 5 is open, then aborted; the expected rows are those Hive's own reader returns then."""
    hive = pytest.importorskip("hive_metastore.ThriftHiveMetastore")
    # Transactions are numbered across all tables of the metastore.
    server = HiveMetastore(tmp_path / "metastore")
    try:
        if server.version != "2.3":
            pytest.skip("directories have the numbers of writes: see test_metastore_versions.py")
        with hive_client(hive, server.port) as client:
            write_five(server, HiveEstate(client, tmp_path / "wh"), tmp_path)
    finally:
        server.stop()


def write_five(hive_server: HiveMetastore, hive_estate: HiveEstate, tmp_path: Path) -> None:
    folder = ACID.parent / "hive2_changes"
    columns = [(column.name, KINDS[column.type]) for column in cf.open(folder).schema]
    shutil.copytree(folder, hive_estate.root / "t")
    storage = hive_estate.storage(columns, ORC, "t")
    storage.numBuckets, storage.bucketCols = 2, [columns[0][0]]
    hive_estate.table("t", storage, kind="MANAGED_TABLE", transactional="true")
    types, client = hive_estate.records.types, hive_estate.client
    request = types.OpenTxnRequest(num_txns=7, user="u", hostname="h")
    assert client.open_txns(request).txn_ids == list(range(1, 8))
    for number in (1, 2, 3, 4, 6, 7):
        client.commit_txn(types.CommitTxnRequest(number))
    target = tmp_path / "dst"
    report = run(hive_server, target)
    assert findings(report) == ["cold.t: 1 writes are open: their rows are not migrated"]
    assert report.exit_code == 1
    assert not listed(target)
    before = cf.open(folder, acid_valid_write_ids="cold.t:7:5:5:").read()
    assert rows(read(target, "t")) == rows(before)
    client.abort_txn(types.AbortTxnRequest(5))
    report = run(hive_server, target)
    assert report.exit_code == 0, summary(report)
    truth = pq.read_table(folder.parent / "hive2_changes.4.truth.parquet")
    assert rows(read(target, "t")) == rows(truth)
    assert rows(cf.hive_table(f"{hive_server.url}/cold.t").read()) == rows(truth)
    assert rows(cf.open(folder).read()) != rows(truth)
    assert listed(target) == [f"{hive_estate.root}/t"]
    # A write the metastore does not list, such as a write that began after the request.
    there = hive_estate.root / "t"
    shutil.copytree(there / "delta_0000007_0000007_0000", there / "delta_0000008_0000008_0000")
    report = run(hive_server, target)
    assert [(item.kind, item.count) for item in report.left_out] == [("later-writes", 1)]
    assert rows(read(target, "t")) == rows(truth)
    assert not listed(target)
