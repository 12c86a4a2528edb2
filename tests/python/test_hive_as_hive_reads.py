"""Tables by statements, read as Hive reads them: properties, odd partition values, names that are numbers."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.pruning import fitting
from coldframe.pipeline import migrate
from coldframe.pipeline.scheduling import InProcess

NULL = "__HIVE_DEFAULT_PARTITION__"
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


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("07", pa.int32(), "07"),
        ("abc", pa.int32(), NULL),
        ("1.5", pa.int64(), "1"),
        ("99999999999", pa.int32(), NULL),
        ("2014-1-2", pa.date32(), "2014-01-02"),
        ("2014-13-02", pa.date32(), NULL),
        ("2014-01-02 03:04:05", pa.date32(), "2014-01-02"),
        ("x y", pa.string(), "x y"),
        (NULL, pa.int32(), NULL),
    ],
)
def test_values_of_partitions_as_their_type(text: str, kind: Any, expected: str) -> None:
    assert fitting(text, kind) == expected


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
