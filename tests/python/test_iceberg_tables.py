"""Iceberg tables of Spark and Iceberg's Java library are read as Spark and Java read them.

`tests/reference/iceberg` makes the tables and the truth: the rows that Spark reads from each snapshot.
"""

import base64
import datetime as dt
import decimal
import hashlib
import json
import math
import pickle
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import coldframe as cf

pytest.importorskip("pyiceberg")

DATA = Path(__file__).parents[1] / "data" / "iceberg"
TRUTH = json.loads((DATA / "truth.json").read_text())
WROTE = "/tmp/coldframe-iceberg"
"""The directory in which the tables were made."""
SNAPSHOTS = [
    (table, number) for table, snapshots in TRUTH.items() for number in snapshots if number != "current"
]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iceberg")
    with tarfile.open(DATA / "tables.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def table(made, name, **options):
    return cf.iceberg_table(made / "warehouse" / "t" / name, location={WROTE: str(made)}, **options)


def known(value):
    """A value in the form of the expected rows."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (decimal.Decimal, dt.date, dt.time)):
        return str(value)
    return value


def rows(table):
    if table.num_rows > 10000:
        table = table.group_by("v").aggregate([("id", "sum"), ("id", "count")]).sort_by("v")
    made = sorted((known(row) for row in table.to_pylist()), key=json.dumps)
    return made if len(made) < 100 else [len(made), hashlib.sha256(json.dumps(made).encode()).hexdigest()]


@pytest.mark.parametrize("name", [*TRUTH, "defaults_orc"])
def test_table_matches_spark(made, name):
    dataset = table(made, name)
    # Iceberg's Java library reads no default values from ORC: the rows of Parquet are expected.
    expected = TRUTH["defaults" if name == "defaults_orc" else name]["current"]
    whole = dataset.to_table()
    if name == "generic":  # Java gives a uuid as text
        expected = [{**row, "uuid": uuid_bytes(row["uuid"])} for row in expected]
    assert rows(whole) == expected
    assert dataset.count() == whole.num_rows
    assert whole.schema.equals(dataset.schema)


@pytest.mark.parametrize("name", ["within", "within_orc"])
def test_nested_default_values_match_spark(tmp_path, name):
    """Spark reads nested default values only from Parquet; the ORC table has the same rows."""
    with tarfile.open(DATA / "defaults_within.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    dataset = table(tmp_path, name)
    expected = json.loads((DATA / "defaults_within.json").read_text())
    whole = dataset.to_table().sort_by("id")
    assert whole.schema.equals(dataset.schema)
    made = [{**row, "m": row["m"] if row["m"] is None else dict(row["m"])} for row in whole.to_pylist()]
    assert [known(row) for row in made] == expected
    assert dataset.to_table(["id"], filter="s.b = 7")["id"].to_pylist() == [1, 3]
    assert dataset.count("s.b is null") == 2
    assert dataset.count("d.e.g = '2020-02-29'") == 1
    for splits in (dataset.splits(), pickle.loads(pickle.dumps(dataset.planned(1000)))):
        parts = [row for split in splits for row in split.to_batches().read_all().to_pylist()]
        assert sorted(parts, key=lambda row: row["id"]) == whole.to_pylist()


def uuid_bytes(text):
    return text and base64.b64encode(bytes.fromhex(text.replace("-", ""))).decode()


@pytest.mark.parametrize(("name", "number"), SNAPSHOTS)
def test_snapshot_by_number_and_time_matches_spark(made, name, number):
    expected = TRUTH[name][number]
    dataset = table(made, name, snapshot_id=int(number))
    assert dataset.snapshot_id == int(number)
    assert rows(dataset.to_table()) == expected["rows"]
    later = [
        snapshot["at"]
        for key, snapshot in TRUTH[name].items()
        if key != "current" and snapshot["at"] > expected["at"]
    ]
    for time in (expected["at"], min(later, default=expected["at"] + 2) - 1):
        assert table(made, name, as_of=time).snapshot_id == int(number)
    moment = dt.datetime.fromtimestamp(expected["at"] / 1000, dt.timezone.utc)
    assert table(made, name, as_of=moment).snapshot_id == int(number)


FILTERS = {
    "evolved": [
        "id > 2147483647",
        "title is null",
        "score > 1",
        "score = 1.5",
        "price = 1.25",
        "name = 'again'",
        "name is null and id < 4",
        "day < '1500-01-01'",
        "at >= '2020-02-29 12:00:00.123456'",
        "s.gone = 'text'",
        "s.first = 1 or flag = true",
        "old in (44, 45)",
        "raw = ''",
        "title like 'th%'",
        [("id", "in", [1, 4]), ("score", "<", 1)],
        pc.field("id") + 1 == 2,
        (pc.field("title") == "one") | (pc.field("big") == 1),
    ],
    "partitions": [
        "region = 'eu/1'",
        "region is null",
        "region = ''",
        "at < '1970-01-01'",
        "at >= '2012-03-12'",
        "n = 99",
        "n in (7, -5)",
        "word = 'alpha0'",
        "word like 'al%'",
        "word > 'b' or at is null",
        "not (region = 'eu/1')",
        pc.field("at") == pa.scalar(dt.datetime(2013, 4, 13, 3, 30, tzinfo=dt.timezone.utc)),
        pc.field("n") == 1,
    ],
    "imported": ["id >= 2", "kind = 'even'", "kind is null", "name = 'n3'", "title = 'nine'", "s.bb = 'y'"],
    "positions": ["id = 0", "id < 10", "v = -2", "part is null", "part = 'b' and id > 2990", "id = 3"],
    "equality": ["value = 0", "id = 1", "k = 'b'", "k = 'c' or id = 5"],
    "mixed": ["id = 4", "w = 'a'", "w in ('b', 'f')", "id > 1"],
    "defaults_orc": ["n = 42", "n = 1", "t = 'text'", "t is null", "d > '2020-01-01'", "id = 2 and n > 40"],
    "generic": ["id = 1", "time is null", "time is not null"],
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_exact_after_pruning(made, name):
    dataset = table(made, name)
    whole = dataset.to_table()
    for filter in FILTERS[name]:
        bound = cf.filters.bind(cf.filters.parse(filter), dataset.schema).test
        expected = pa.Table.from_batches([cf.filters.keep(batch, bound) for batch in whole.to_batches()])
        assert rows(dataset.to_table(filter=filter)) == rows(expected), filter
        assert dataset.count(filter) == expected.num_rows, filter
        narrow = dataset.to_table([dataset.schema.names[-1]], filter=filter)
        assert narrow.column_names == [dataset.schema.names[-1]]
        assert narrow.num_rows == expected.num_rows
        own = table(made, name, filter=filter)
        assert own.count() == expected.num_rows
        assert own.num_rows is None


@pytest.mark.parametrize(
    ("name", "filter", "files"),
    [
        ("partitions", "region = 'a=b'", 1),
        ("partitions", "at < '1971-01-01'", 1),
        ("partitions", "at >= '2014-01-01'", 1),
        ("evolved", "id > 2147483647", 1),
        ("positions", "part = 'b'", 1),
        ("positions", "id > 100000", 0),
    ],
)
def test_a_filter_leaves_files_out(made, name, filter, files):
    assert len(table(made, name, filter=filter).files) == files
    assert len(table(made, name).files) > files


def test_limits_heads_and_columns_are_respected(made):
    dataset = table(made, "positions")
    assert dataset.head(3).num_rows == 3
    assert dataset.head(0).num_rows == 0
    assert dataset.to_table(["v"], limit=2000).shape == (2000, 1)
    assert dataset.to_table([], filter="id = 8").num_rows == 1
    assert dataset.count("id = 3") == 0
    assert dataset.num_rows is None
    assert table(made, "evolved").num_rows == 4
    assert table(made, "evolved").head(2, filter="id > 1").num_rows == 2
    batches = list(dataset.to_batches(["id"], batch_size=100))
    assert max(batch.num_rows for batch in batches) <= 100


@pytest.mark.parametrize("name", ["positions", "vectors", "mixed", "partitions", "equality"])
def test_rows_have_their_file_and_position(made, name):
    dataset = table(made, name)
    names = [*dataset.schema.names, "_file", "_pos"]
    rows = dataset.to_table(names)
    assert rows.select(dataset.schema.names).equals(dataset.to_table())
    assert "_file" not in dataset.schema.names
    places = list(zip(rows["_file"].to_pylist(), rows["_pos"].to_pylist(), strict=True))
    assert len(set(places)) == rows.num_rows
    # Read each file alone: the row at each position has the same stored values.
    plain = [column for column in ("id", "v", "n") if column in dataset.schema.names]
    checked = 0
    for path in {path for path, _ in places}:
        local = path.replace(WROTE, str(made)).removeprefix("file:")
        if not local.endswith(".orc"):
            continue
        stored = cf.open(local, timestamp_unit="us").read()
        own = rows.filter(pc.field("_file") == path)
        taken = stored.take(own["_pos"])
        for column in plain:
            if column in stored.column_names:
                assert own[column].cast(stored[column].type).to_pylist() == taken[column].to_pylist()
                checked += 1
    assert checked
    path, number = places[-1]
    (row,) = dataset.to_table(names, filter=f"_file = '{path}' and _pos = {number}").to_pylist()
    assert row == rows.to_pylist()[-1]
    assert dataset.count(f"_pos = {number} and _file = '{path}'") == 1
    assert dataset.count(pc.field("_pos") < 0) == 0
    parts = [split.to_batches(["_pos", "_file"]).read_all() for split in dataset.splits(1)]
    assert pa.concat_tables(parts).equals(rows.select(["_pos", "_file"]))
    with pytest.raises(cf.SchemaError, match="no column '_row_id'"):
        dataset.to_table(["_row_id"])


def test_a_filter_leaves_out_stripes_of_files_with_deletes(made, tmp_path):
    """A file is rewritten in many stripes. Damage in a pruned stripe goes unnoticed."""
    copy = tmp_path / "positions"
    shutil.copytree(made / "warehouse" / "t" / "positions", copy)
    dataset = cf.scan(copy)
    whole = dataset.to_table()
    path = next(file for file in dataset.files if "part=a" in file and cf.open(file).num_rows > 1000)
    rows = cf.open(path).read()
    batches = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=100))
    Path(path).unlink()
    cf.write(batches, path, format="orc", codec="zlib", stripe_rows=100)
    stripes = cf.open(path).metadata["stripes"]
    assert len(stripes) > 10
    assert cf.scan(copy).to_table().equals(whole)
    assert len(cf.scan(copy).splits(1)) > len(stripes)
    damaged = stripes[len(stripes) // 2]
    data = bytearray(Path(path).read_bytes())
    start = damaged["offset"] + damaged["index_length"]
    data[start : start + damaged["data_length"]] = bytes([0xFF]) * damaged["data_length"]
    Path(path).write_bytes(data)
    with pytest.raises(cf.CorruptFileError):
        cf.scan(copy).to_table()
    for filter in ("id < 30", "id > 1950 and part = 'a'", "id = 400"):
        assert cf.scan(copy).to_table(filter=filter).equals(rows_that_pass(whole, filter))
        assert cf.scan(copy).count(filter) == rows_that_pass(whole, filter).num_rows
    kept = cf.scan(copy)
    left = kept.to_table(on_error="skip")
    assert 0 < whole.num_rows - left.num_rows <= damaged["rows"]
    assert set(left["id"].to_pylist()) < set(whole["id"].to_pylist())
    # Each damaged column has a record. The rows are lost once.
    assert [lost["rows_lost"] for lost in kept.damage] == [damaged["rows"], 0, 0]
    assert all(start <= lost["offset"] < start + damaged["data_length"] for lost in kept.damage)


def rows_that_pass(whole, filter):
    bound = cf.filters.bind(cf.filters.parse(filter), whole.schema).test
    return pa.Table.from_batches(
        [cf.filters.keep(batch, bound) for batch in whole.to_batches()], whole.schema
    )


def test_consumers_read_the_table(made):
    import duckdb
    import polars as pl

    dataset = table(made, "positions")
    again = pickle.loads(pickle.dumps(dataset))
    assert again.snapshot_id == dataset.snapshot_id
    assert again.to_table().equals(dataset.to_table())
    connection = duckdb.connect()
    connection.register("data", dataset.to_dataset())
    summed = pc.sum(dataset.to_table(["v"], filter="part = 'a'")["v"]).as_py()
    answer = connection.sql("select count(*), sum(v) from data where part = 'a'").fetchall()
    assert answer == [(dataset.count("part = 'a'"), summed)]
    assert pl.DataFrame(dataset).height == dataset.count()
    lazy = dataset.to_polars().filter(pl.col("id") < 10).select("id").collect()
    assert sorted(lazy["id"]) == sorted(dataset.to_table(["id"], filter="id < 10")["id"].to_pylist())
    assert "positions" in repr(dataset)
    assert "snapshot" in dataset._repr_html_()


def test_metadata_file_opens_the_table_of_its_time(made):
    folder = made / "warehouse" / "t" / "evolved" / "metadata"
    dataset = cf.iceberg_table(folder / "v2.metadata.json")
    assert "name" in dataset.schema.names
    assert dataset.count() == 2
    assert cf.iceberg_table(folder / "v1.metadata.json").to_table().num_rows == 0
    assert cf.iceberg_table(folder / "v1.metadata.json").count() == 0


def test_the_newest_metadata_file_is_chosen(made, tmp_path):
    copy = tmp_path / "evolved"
    shutil.copytree(made / "warehouse" / "t" / "evolved", copy)
    metadata = copy / "metadata"
    newest = max(metadata.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    last = int(newest.name[1:].split(".")[0])
    (metadata / "version-hint.text").write_text(str(last - 1))
    assert cf.iceberg_table(copy).schema == cf.iceberg_table(metadata / f"v{last - 1}.metadata.json").schema
    (metadata / "version-hint.text").write_text(str(last + 1))
    with pytest.raises(cf.NotFoundError, match=f"names '{last + 1}', but there is no such metadata file"):
        cf.iceberg_table(copy)
    (metadata / "version-hint.text").unlink()
    assert cf.iceberg_table(f"{copy}/").count() == 4
    newest.rename(metadata / "00099-one.metadata.json")
    assert cf.iceberg_table(copy).count() == 4
    shutil.copy(metadata / "00099-one.metadata.json", metadata / "00099-two.metadata.json")
    with pytest.raises(cf.UnsupportedError, match="2 metadata files of number 99"):
        cf.iceberg_table(copy)


def test_invalid_tables_are_refused(made, tmp_path):
    with pytest.raises(cf.NotFoundError, match="not the directory or metadata file"):
        cf.iceberg_table(tmp_path)
    with pytest.raises(cf.NotFoundError, match="no snapshot 1"):
        table(made, "evolved", snapshot_id=1)
    with pytest.raises(cf.NotFoundError, match="no snapshot of 1970"):
        table(made, "evolved", as_of=1)
    with pytest.raises(ValueError, match="one of them"):
        table(made, "evolved", as_of=1, snapshot_id=1)
    with pytest.raises(ValueError, match="needs a time zone"):
        table(made, "evolved", as_of=dt.datetime(2020, 1, 1))
    (tmp_path / "x.metadata.json").write_text("{}")
    with pytest.raises(cf.SchemaError, match="not the metadata of an Iceberg table"):
        cf.iceberg_table(tmp_path / "x.metadata.json")
    with pytest.raises(cf.SchemaError, match="no column 'nobody'"):
        table(made, "evolved").to_table(["nobody"])
    with pytest.raises(cf.SchemaError):
        table(made, "evolved", filter="nobody = 1")


def test_a_catalog_names_a_table(tmp_path):
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    data = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})
    created = catalog.create_table("db.t", data.schema)
    created.append(data)
    dataset = cf.iceberg_table("db.t", catalog=catalog)
    assert dataset.to_table().to_pylist() == data.to_pylist()
    properties = {
        "name": "c",
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/c.db",
        "warehouse": f"file://{tmp_path}",
    }
    assert cf.iceberg_table("db.t", catalog=properties, filter="id > 1").count() == 2
    with pytest.raises(cf.NotFoundError, match=r"db\.gone"):
        cf.iceberg_table("db.gone", catalog=catalog)


@pytest.mark.parametrize("version", ["1", "2"])
def test_tables_that_pyiceberg_wrote_in_parquet_are_read(tmp_path, version):
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    day = [dt.date(1900, 1, 1), None, dt.date(2020, 2, 29)]
    inner = pa.array([{"a": 1, "b": [1, None]}, None, {"a": None, "b": []}])
    data = pa.table({"id": [1, 2, 3], "day": day, "s": inner, "p": ["x", "x", "y"]})
    created = catalog.create_table("db.t", data.schema, properties={"format-version": version})
    with created.update_spec() as spec:
        spec.add_identity("p")
    created.append(data)
    created.append(data.slice(1, 1))
    with created.update_schema() as schema:
        schema.rename_column("id", "key")
        schema.rename_column("s.a", "aa")
    created.delete("key = 3")
    dataset = cf.scan(tmp_path / "db" / "t")
    theirs = catalog.load_table("db.t").scan().to_arrow()
    assert rows(dataset.to_table()) == rows(theirs)
    assert dataset.count("p = 'x'") == dataset.count() == 3
    assert dataset.count("s.aa = 1 and day < '1950-01-01'") == 1
    assert dataset.partition_columns == ["p"]
    before = dataset._table.metadata.snapshots[0].snapshot_id
    assert cf.iceberg_table(tmp_path / "db" / "t", snapshot_id=before).schema.names[0] == "id"


def test_table_is_refused_among_several_sources(made):
    several = [made / "warehouse" / "t" / name for name in ("evolved", "mixed")]
    with pytest.raises(cf.UnsupportedError, match="among other sources"):
        cf.scan(several)


def test_int96_of_added_parquet_files(tmp_path):
    """Hive, Impala and Spark store timestamps as INT96, which Iceberg reads as instants."""
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record
    from pyiceberg.types import NestedField, TimestampType, TimestamptzType

    days = [dt.datetime(1600, 1, 1), dt.datetime(2020, 2, 29, 12, 34, 56)]
    path = tmp_path / "f.parquet"
    stored = pa.array(days, pa.timestamp("us"))
    pq.write_table(pa.table({"local": stored, "at": stored}), path, use_deprecated_int96_timestamps=True)
    catalog = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("s")
    fields = [NestedField(1, "local", TimestampType()), NestedField(2, "at", TimestamptzType())]
    table = catalog.create_table("s.t", Schema(*fields))
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=2,
        file_size_in_bytes=path.stat().st_size,
    )
    file.spec_id = 0
    mapping = [{"field-id": 1, "names": ["local"]}, {"field-id": 2, "names": ["at"]}]
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
        with change.update_snapshot().fast_append() as more:
            more.append_data_file(file)
    read = cf.iceberg_table(catalog.load_table("s.t").metadata_location).to_table()
    assert read["local"].to_pylist() == days
    assert read["at"].to_pylist() == [day.replace(tzinfo=dt.timezone.utc) for day in days]
