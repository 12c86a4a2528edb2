"""Tables by statements, read as Hive reads them: properties, odd partition values, names that are numbers."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from estates import Estate

import coldframe as cf
from coldframe._coldframe import RawDataset
from coldframe.arguments import OpenArguments
from coldframe.hive.dataset import HiveDataset
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.locations import Locations
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess

RC_TEXT = "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe"
RC = "org.apache.hadoop.hive.ql.io.RCFile"
LAZY_BINARY = "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe"


def table(folder: Path, statements: str) -> Any:
    (folder / "s.hql").write_text(statements)
    return cf.hive_table(f"{folder}/s.hql/default.t")


def test_a_partition_inherits_and_overrides_properties() -> None:
    of_table = Storage(serde_properties={"field.delim": "a", "mapkey.delim": "a"})
    whole = Definition("d", "t", storage=of_table, parameters={"field.delim": "b", "numRows": "1"})
    assert whole.storage_of().serde_properties == {"field.delim": "b", "mapkey.delim": "a"}
    keyed = Definition("d", "t", "", None, of_table, (Column("p", "int"),), {"field.delim": "b"})
    own = Storage(serde_properties={"collection.delim": "c"})
    partition = PartitionDefinition(("1",), own, {"collection.delim": "d", "timestamp.formats": "e"})
    assert keyed.storage_of(partition).serde_properties == {
        "field.delim": "b",
        "mapkey.delim": "a",
        "collection.delim": "d",
        "timestamp.formats": "e",
    }


class Reader:
    """A metastore with one table."""

    def __init__(self, partitions: list[PartitionDefinition]) -> None:
        self.all = {f"p={partition.values[0]}": partition for partition in partitions}

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None: ...

    def partition_names(self, _: Definition) -> list[str]:
        return list(self.all)

    def partition_definitions(self, _: Definition, names: list[str]) -> list[PartitionDefinition]:
        return [self.all[name] for name in names]


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a table: RCFile of old columns, ORC with names, ORC with numbers, an empty partition."""
    estate = Estate(tmp_path)
    (estate.source / "t/p=1").mkdir(parents=True)
    (estate.source / "t/p=4").mkdir()
    old = pa.table({"key": pa.array([1, 2], pa.int32())})
    cf.write(old, estate.source / "t/p=1/f", format="rcfile", serde="text")
    estate.orc("t/p=2/f", {"name": ["c", "d"], "id": [3, 4]})
    estate.orc("elsewhere/f", {"_col0": [5], "_col1": ["e"]})
    columns = (Column("id", "bigint"), Column("name", "string"))
    of_orc = Storage(columns, None, "x.OrcInputFormat")
    of_rc = Storage((Column("key", "int"),), None, f"{RC}InputFormat", None, RC_TEXT)
    places = {"1": "t/p=1", "2": "t/p=2", "3": "elsewhere", "4": "t/p=4"}
    partitions = [
        PartitionDefinition(
            (value,), replace(of_rc if value == "1" else of_orc, location=f"{estate.source}/{place}")
        )
        for value, place in places.items()
    ]
    definition = Definition("db", "t", storage=of_orc, keys=(Column("p", "int"),))
    monkeypatch.setattr("coldframe.hive.dataset.connect", lambda _: Reader(partitions))

    def made(filter: Any = None) -> HiveDataset:
        return HiveDataset("thrift://h", definition, Locations(), OpenArguments(), filter)

    return made


MIXED = [(1, None, 1), (2, None, 1), (3, "c", 2), (4, "d", 2), (5, "e", 3)]


def rows(batches: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_splits_have_the_columns_of_the_table(mixed: Any) -> None:
    read = mixed()
    assert rows([read.to_table()]) == MIXED
    splits = pickle.loads(pickle.dumps(read.splits()))
    assert all(split.schema == read.schema for split in splits)
    assert [row for split in splits for row in rows(split.to_batches())] == MIXED
    assert [split.partition for split in splits] == [{"p": 1}, {"p": 2}, {"p": 3}]
    shares = [part for split in read.planned(1 << 20) for part in split.expand()]
    assert [row for split in shares for row in rows(split.to_batches(filter="id > 2"))] == MIXED[2:]


@pytest.mark.parametrize(
    ("filter", "passing", "files"),
    [
        ("p > 1", MIXED[2:], 2),
        ("id >= 2 and p < 3", MIXED[1:4], 2),
        ("name is null", MIXED[:2], 3),
        ("name = 'e' or p = 1", [*MIXED[:2], MIXED[4]], 3),
        (pc.field("p") == 2, MIXED[2:4], 1),
        (pc.field("p") + 1 == pc.scalar(3), MIXED[2:4], 1),
        ("p is null", [], 0),
    ],
)
def test_filters_prune_partitions_and_rows(mixed: Any, filter: Any, passing: Any, files: int) -> None:
    read = mixed()
    assert rows(read.to_batches(filter=filter)) == passing
    assert rows(read.to_batches(["name", "id"], filter=filter, limit=2)) == [
        (name, id) for id, name, _ in passing[:2]
    ]
    assert read.count(filter) == len(passing)
    assert len({split.path for split in read.splits(filter=filter)}) == files
    whole = mixed(filter)
    assert rows(whole.to_batches()) == passing
    assert len(whole.files) == files


def test_a_definition_travels_as_bytes(mixed: Any) -> None:
    """A table is the same by every door: metastore, definition in bytes, folder."""
    read = mixed()
    table = RawDataset.from_bytes(read._raw_for(read._bound(None)).to_bytes())
    assert pa.schema(table) == read.schema
    assert rows(map(pa.record_batch, table.scan())) == MIXED
    bound = read._bound("p > 1 and id < 5").predicate
    assert (table.count(), table.count(bound)) == (5, 2)
    assert rows(map(pa.record_batch, table.scan(columns=["id"], predicate=bound))) == [(3,), (4,)]
    part = next(path for path in read.files if "p=2" in path)
    folder = cf.scan(part.rsplit("/p=2", 1)[0] + "/p=2*", file_path="path")
    again = RawDataset.from_bytes(folder._raw.to_bytes())
    assert again.partition_columns() == ["p"]
    batches = list(map(pa.record_batch, again.scan(columns=["id", "name", "p", "path"])))
    assert rows(batches) == [(*row, part) for row in MIXED[2:4]]
    with pytest.raises(cf.UnsupportedError, match="objects of this process"):
        cf.scan([Path(part).read_bytes()])._raw.to_bytes()


def test_a_table_without_files_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    read = table(tmp_path, f"CREATE TABLE t (id bigint) STORED AS ORC LOCATION '{tmp_path}/t';")
    assert (read.count(), read.num_rows, read.files, read.splits()) == (0, 0, [], [])
    assert read.to_table() == pa.table({"id": pa.array([], pa.int64())})


def test_properties_of_the_table_are_passed_to_the_serde(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    properties = {"serialization.null.format": "nil", "colelction.delim": ";"}
    rows = pa.table({"a": [["p", "q"], None]})
    cf.write(rows, tmp_path / "t/f", format="rcfile", serde="text", serde_properties=properties)
    read = table(
        tmp_path,
        "CREATE EXTERNAL TABLE t (a array<string>) ROW FORMAT SERDE "
        "'org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe' WITH SERDEPROPERTIES "
        f"('serialization.null.format'='-') STORED AS INPUTFORMAT '{RC}InputFormat' OUTPUTFORMAT "
        f"'{RC}OutputFormat' LOCATION 'file:{tmp_path}/t' TBLPROPERTIES ("
        "'serialization.null.format'='nil', 'colelction.delim'=';', 'numRows'='2')",
    )
    assert read.to_table()["a"].to_pylist() == [["p", "q"], None]


def test_a_value_that_does_not_fit_its_key_is_null(tmp_path: Path) -> None:
    text = f"CREATE TABLE t (x bigint) PARTITIONED BY (p int) STORED AS ORC LOCATION '{tmp_path}/t';\n"
    for number, value in enumerate(("7", "8", "abc")):
        path = tmp_path / f"t/p={value}/f"
        path.parent.mkdir(parents=True)
        cf.write(pa.table({"x": [number]}), path, format="orc")
        text += f"ALTER TABLE t ADD PARTITION (p='{value}') LOCATION '{path.parent}';\n"
    read = table(tmp_path, text)
    assert read.to_table().to_pylist() == [{"x": 0, "p": 7}, {"x": 1, "p": 8}, {"x": 2, "p": None}]
    assert read.to_table(filter="p = 7").to_pylist() == [{"x": 0, "p": 7}]
    assert read.count("p is null") == 1


@pytest.mark.parametrize("names", [("_col0", "_col1"), ("_col1", "_col5"), ("_col7", "_col3")])
def test_names_that_are_numbers_match_by_position(names: tuple[str, str], tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    estate.orc("t/000000_0", dict(zip(names, ([1], ["x"]), strict=True)))
    estate.orc("t/000001_0", {"b": ["y"], "a": [2]})
    read = table(tmp_path, f"CREATE TABLE t (a bigint, b string) STORED AS ORC LOCATION '{estate.source}/t';")
    expected = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert sorted(read.to_table().to_pylist(), key=str) == expected
    report = migrate(InProcess(), tmp_path / "s.hql", estate.target)
    assert report.exit_code == 0
    assert sorted(estate.read("default/t").to_pylist(), key=str) == expected


def test_hive_version_and_time_zone_of_a_table_of_a_metastore(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    (estate.source / "t").mkdir()
    wall = dt.datetime(2014, 7, 1, 12)
    written = {"hive_version": "2.3", "timezone": "Europe/Berlin"}
    rows = pa.table({"at": pa.array([wall], pa.timestamp("us"))})
    cf.write(rows, estate.source / "t/000000_0", format="rcfile", serde="binary", **written)
    (tmp_path / "s.hql").write_text(
        f"CREATE TABLE t (at timestamp) ROW FORMAT SERDE '{LAZY_BINARY}' STORED AS INPUTFORMAT "
        f"'{RC}InputFormat' OUTPUTFORMAT '{RC}OutputFormat' LOCATION '{estate.source}/t';"
    )
    entry = '[tables."default.t"]\nhive_version = "2.3"\ntimezone = "Europe/Berlin"\n'
    (tmp_path / "tables.toml").write_text(entry)
    migrate(InProcess(), tmp_path / "s.hql", estate.target, tables=tmp_path / "tables.toml")
    assert estate.read("default/t")["at"].to_pylist() == [wall]
    (tmp_path / "tables.toml").write_text(f'{entry}serde = "text"\n')
    with pytest.raises(cf.SchemaError, match="hive_version, timezone and the part iceberg"):
        migrate(InProcess(), tmp_path / "s.hql", tmp_path / "other", tables=tmp_path / "tables.toml")


@pytest.mark.parametrize("kind", ["varchar(3)", "char(3)"])
def test_text_that_the_table_declares_shorter_is_refused(tmp_path: Path, kind: str) -> None:
    """Hive cuts or pads it: other rows would pass a filter."""
    estate = Estate(tmp_path)
    estate.orc("t/000000_0", {"id": [1, 2], "v": ["abcdef", "xy"]})
    statement = f"CREATE TABLE t (id bigint, v {kind}) STORED AS ORC LOCATION '{estate.source}/t';"
    with pytest.raises(cf.UnsupportedError, match=r"column `v`: .* string in the file"):
        table(tmp_path, statement).to_table()
    report = migrate(InProcess(), tmp_path / "s.hql", estate.target)
    assert (report.exit_code, report.safe_to_delete) == (1, 0)
    # The file's own type is at most as long.
    rows = pa.table({"id": [1, 2], "v": ["abc", "xy"]})
    cf.write(rows, estate.source / "t/000000_0", format="orc", types={"v": kind})
    assert table(tmp_path, statement).count("v = 'abc'") == 1
