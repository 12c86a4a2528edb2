"""Columns of files whose Hive table declares another type, read through Python as Hive 4.1 reads them.

`crates/coldframe-orc/tests/it/evolution.rs` compares all pairs of types and all versions of Hive.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.arguments import OpenArguments
from coldframe.hive.dataset import HiveDataset
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.locations import Locations

DATA = Path(__file__).parents[1] / "data/evolution"
FAR = " (far)"


def known() -> dict[tuple[str, str], list[str]]:
    """What Hive 4.1's reader of ORC returns for pairs of types."""
    answers = {}
    for line in (DATA / "pairs.tsv").read_text(encoding="utf-8").splitlines():
        reader, own, wanted, versions, *values = line.split("\t")
        if reader == "orc" and "4.1" in versions.split(","):
            answers[own, wanted] = values
    return answers


ANSWERS = known()
COLUMNS = list(dict.fromkeys(own for own, _ in ANSWERS))
"""The types of the file's columns `c0`, `c1` .., in their order."""


def text(value: Any) -> str:
    """A value as Hive prints it; of numbers, what Python can compare."""
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex(" ")
    if isinstance(value, Decimal):
        return format(value, "f").rstrip("0").rstrip(".") if "." in format(value, "f") else format(value, "f")
    return str(value)


def shown(column: Any) -> list[str]:
    """The values as Hive prints them. Arrow prints times, since Python has no year 0."""
    if pa.types.is_timestamp(column.type):
        return ["\\N" if time is None else trimmed(time) for time in column.cast(pa.string()).to_pylist()]
    values = column.cast(pa.string()) if pa.types.is_date(column.type) else column
    return [text(value) for value in values.to_pylist()]


def trimmed(time: str) -> str:
    """A time without zeros at the end of its fraction."""
    return time.rstrip("0").rstrip(".") if "." in time else time


def table(folder: Path, columns: str) -> Any:
    (folder / "t").mkdir(exist_ok=True)
    (folder / "t/000000_0").write_bytes((DATA / "types.orc").read_bytes())
    (folder / "s.hql").write_text(
        f"CREATE EXTERNAL TABLE t ({columns}) STORED AS ORC LOCATION 'file:{folder}/t';\n"
    )
    return cf.hive_table(f"{folder}/s.hql/default.t", timestamp_unit="us")


def column(own: str) -> str:
    return f"c{COLUMNS.index(own)}"


def read(folder: Path, own: str, wanted: str) -> dict[str, list[str]]:
    """The values of a column as a type, by each door."""
    name = column(own)
    options: Any = {"schema": f"{name} {wanted}", "schema_of": "hive", "timestamp_unit": "us"}
    doors = {
        "hive_table": table(folder, f"`{name}` {wanted}"),
        "open": cf.open(DATA / "types.orc", **options),
        "scan": cf.scan([DATA / "types.orc"], **options),
    }
    return {door: shown(of.read([name]).column(name).combine_chunks()) for door, of in doors.items()}


PAIRS = [
    ("bigint", "int"),
    ("bigint", "string"),
    ("double", "bigint"),
    ("double", "decimal(5,2)"),
    ("decimal(20,4)", "smallint"),
    ("string", "int"),
    ("string", "decimal(18,4)"),
    ("string", "varchar(3)"),
    ("string", "char(3)"),
    ("string", "date"),
    ("char(24)", "string"),
    ("timestamp (far)", "bigint"),
    ("timestamp (far)", "date"),
    ("date", "string"),
    ("date", "timestamp"),
    ("boolean", "string"),
    ("binary", "string"),
]


@pytest.mark.parametrize(("own", "wanted"), PAIRS)
def test_all_doors_return_what_hive_returns(tmp_path: Path, own: str, wanted: str) -> None:
    expected = ANSWERS[own, wanted]
    for door, values in read(tmp_path, own, wanted).items():
        pairs = zip(expected, values[: len(expected)], strict=True)
        unlike = [(hive, ours) for hive, ours in pairs if hive != ours]
        assert not unlike, f"{door}: {unlike}"


@pytest.mark.parametrize(("own", "wanted"), [("bigint", "date"), ("date", "int"), ("int", "array<int>")])
def test_what_hive_refuses_is_refused_in_words(tmp_path: Path, own: str, wanted: str) -> None:
    name = column(own)
    with pytest.raises(cf.SchemaError, match=f"does not convert {own} to {wanted}"):
        table(tmp_path, f"`{name}` {wanted}").read()
    with pytest.raises(cf.SchemaError, match=f"does not convert {own} to {wanted}"):
        cf.open(DATA / "types.orc", schema=f"{name} {wanted}", schema_of="hive")
    # A column that is not asked for refuses nothing.
    assert table(tmp_path, f"`{name}` {wanted}, c0 boolean").count() > 0


@pytest.mark.parametrize(
    ("own", "wanted", "filter", "passing"),
    [
        ("bigint", "string", "{} = '1'", 1),
        ("bigint", "string", "{} < '2'", 9),
        ("bigint", "int", "{} is null", None),
        ("bigint", "tinyint", "{} > 100", 0),
        ("string", "varchar(3)", "{} = '214'", 1),
        ("string", "char(3)", "{} = '0'", 1),
        ("double", "int", "{} = 1", None),
        ("int", "bigint", "{} = 86400", 1),
    ],
)
def test_filters_see_the_converted_values(
    tmp_path: Path, own: str, wanted: str, filter: str, passing: int | None
) -> None:
    name = column(own)
    given = filter.format(name)
    by_values = cf.open(
        DATA / "types.orc", schema=f"{name} {wanted}", schema_of="hive", timestamp_unit="us"
    ).read([name])
    batch = pa.Table.from_arrays([by_values.column(0)], names=[name])
    expected = cf.scan([write(tmp_path, batch)]).count(given)
    if passing is not None and wanted != "char(3)":
        assert expected == passing
    read = table(tmp_path, f"`{name}` {wanted}")
    again = cf.open(DATA / "types.orc", schema=f"{name} {wanted}", schema_of="hive", timestamp_unit="us")
    if wanted != "char(3)":
        assert read.count(given) == expected
        assert again.read([name], filter=given).num_rows == expected
    else:
        assert read.count(given) == again.read([name], filter=given).num_rows == passing
    assert sum(split.to_batches(filter=given).read_all().num_rows for split in read.splits()) == read.count(
        given
    )


def write(folder: Path, batch: pa.Table) -> Path:
    cf.write(batch, folder / "values.orc", format="orc")
    return folder / "values.orc"


class OnePartition:
    """A metastore with a table of one partition."""

    def __init__(self, storage: Storage) -> None:
        self.partition = PartitionDefinition(("1",), storage)

    def __enter__(self) -> OnePartition:
        return self

    def __exit__(self, *_: object) -> None: ...

    def partition_names(self, _: Definition) -> list[str]:
        return ["p=1"]

    def partition_definitions(self, _: Definition, names: list[str]) -> list[PartitionDefinition]:
        return [self.partition]


def test_a_partition_of_rcfile_is_converted_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cf.write(
        pa.table({"a": pa.array([7, 300, None], pa.int64()), "b": ["1.5", "x", "-3"]}),
        tmp_path / "f",
        format="rcfile",
        serde="text",
    )
    serde = "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe"
    own = (Column("a", "bigint"), Column("b", "string"))
    of_partition = Storage(own, str(tmp_path), "org.apache.hadoop.hive.ql.io.RCFileInputFormat", None, serde)
    columns = (Column("a", "tinyint"), Column("b", "int"))
    definition = Definition(
        "db", "t", storage=Storage(columns, None, "x.OrcInputFormat"), keys=(Column("p", "int"),)
    )
    monkeypatch.setattr("coldframe.hive.dataset.connect", lambda _: OnePartition(of_partition))
    read = HiveDataset("thrift://h", definition, Locations(), OpenArguments())
    rows = read.to_table().to_pylist()
    # Integers wrap, and fractions of texts are dropped.
    assert [(row["a"], row["b"]) for row in rows] == [(7, 1), (44, None), (None, -3)]
    assert read.count("a = 44") == read.count("b = -3") == 1
