"""`migrate --adopt`: which files stay, what is converted, and what Iceberg's readers then get."""

import json
from dataclasses import replace
from html import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from adoptions import OPTIONS, Estate, ids

import coldframe as cf
from coldframe.cli import main
from coldframe.errors import ColdframeError, SchemaError, UnsupportedError
from coldframe.pipeline import InProcess, dry_run, migrate
from coldframe.pipeline.adopt import adopt, proof, sources
from coldframe.pipeline.adopt.rules import HOLLOW, RULES, UNPROVED, ZEROS, is_promoted
from coldframe.pipeline.adopt.tables import NewTable
from coldframe.pipeline.report.adoption_page import adoption_page


@pytest.fixture
def estate(tmp_path) -> Estate:
    return Estate(tmp_path)


def reason(name: str) -> str:
    (rule,) = [rule for rule in RULES if rule.name == name]
    return rule.reason


def test_files_stay_and_are_read_with_the_columns_and_partitions_of_the_table(estate):
    struct = pa.struct([("Ab", pa.int32()), ("gone", pa.string())])
    first = {"ID": ids(1, 2), "S": pa.array([{"Ab": 7, "gone": "x"}, None], struct)}
    more = {"p": pa.array([99, 99], pa.int32()), "dropped": ["x", "y"], "d": [1.5, float("nan")]}
    files = {
        "p=1/a": pa.table({**first, **more}),
        "p=1/HIVE_UNION_SUBDIR_1/a": pa.table({"id": ids(3), "d": [2.5]}),
        "p=002/b": pa.table({"id": ids(4)}),
        "stray/c": pa.table({"id": ids(5)}),
    }
    estate.table("t", "id bigint, s struct<ab:int>, d double", files, "p int")
    estate.partition("t", "p='1'", "p=1")
    estate.partition("t", "p='002'", "p=002")
    (estate.root / "t" / "p=1" / "_SUCCESS").touch()
    before = estate.digests()
    report = migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True)
    assert report.exit_code == 0
    assert report.verified
    assert report.rows == 4
    assert estate.digests() == before
    table = estate.loaded("t")
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["s"], row["p"]) for row in rows] == [
        (1, {"ab": 7}, 1),
        (2, None, 1),
        (3, None, 1),
        (4, None, 2),
    ]
    # The file's own column p has 99: neither it nor its bounds are the partition's.
    assert table.scan(row_filter="p = 1").to_arrow().num_rows == 3
    assert table.scan(row_filter="p = 99").to_arrow().num_rows == 0
    assert table.scan(row_filter="id >= 2 and s.ab is null").to_arrow().num_rows == 3
    properties = table.properties
    assert properties["gc.enabled"] == "false"
    mapping = {
        tuple(field["names"]): field for field in json.loads(properties["schema.name-mapping.default"])
    }
    shown = {field.field_id for field in table.schema().fields}
    assert {mapping[("p",)]["field-id"], mapping[("dropped",)]["field-id"]}.isdisjoint(shown)
    assert ("id", "ID") in mapping
    # No later column may get the id of one that is not shown.
    assert table.metadata.last_column_id >= mapping[("dropped",)]["field-id"]
    entries = {task.file.file_path: task.file for task in table.scan().plan_files()}
    assert {path.removeprefix("file://") for path in entries} == {
        str(estate.root / "t" / name) for name in list(files)[:3]
    }
    number = table.schema().find_field("d").field_id
    with_nan = entries[f"file://{estate.root}/t/p=1/a"]
    assert with_nan.nan_value_counts[number] == 1
    assert number not in with_nan.upper_bounds
    assert with_nan.null_value_counts[1] == 0
    assert with_nan.split_offsets == [3]
    outcome = json.loads((estate.target / "_coldframe" / "adoption.json").read_text())["tables"][0]
    assert outcome["in place"]["files"] == 3
    assert outcome["converted"]["files"] == 0
    assert "1 file(s) in its directory lie in no partition" in outcome["notes"][0]
    assert not (estate.target / "_coldframe" / "safe-to-delete.txt").exists()


def test_files_that_no_metadata_can_make_right_are_converted_beside_the_others(estate):
    early = pa.array([-1_500_000], pa.timestamp("us"))
    files = {
        "stays": pa.table({"id": ids(1), "v": ["a"], "c": ["abc"]}),
        "ordinal": pa.table({"_col0": ids(2), "_col1": ["b"]}),
        "early": pa.table({"id": ids(3), "t": early}),
        "char": pa.table({"id": ids(4), "c": ["ab"]}),
        "old": pa.table({"id": ids(5), "d": pa.array([-200_000], pa.date32())}),
        "small": pa.table({"id": pa.array([6], pa.int16())}),
        "tick": pa.table({"id": ids(7), "not`shown": ["x"]}),
    }
    estate.table("t", "id bigint, v string, c char(3), t timestamp, d date", files)
    assert estate.reasons("t") == {
        "stays": "",
        "ordinal": reason("placeholders"),
        "early": reason("early fractions"),
        "char": reason("char"),
        "old": reason("old days"),
        "small": reason("types"),
        "tick": reason("quotes"),
    }
    assert not estate.target.exists()
    before = estate.digests()
    assert migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True).verified
    assert estate.digests() == before
    table = estate.loaded("t")
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert sorted(rows) == [1, 2, 3, 4, 5, 6, 7]
    assert rows[2]["v"] == "b"
    assert rows[3]["t"].microsecond == 500_000
    assert rows[5]["d"].year == 1422
    assert table.scan(row_filter="v = 'b'").to_arrow()["id"].to_pylist() == [2]
    assert table.scan(row_filter="c = 'ab'").to_arrow()["id"].to_pylist() == [4]
    paths = [task.file.file_path for task in table.scan().plan_files()]
    assert sum(path.startswith(f"file://{estate.root}") for path in paths) == 1
    assert sum(path.startswith(f"file://{estate.target}") for path in paths) == 6


def test_fractions_of_a_second_before_1970_stay_as_java_stores_them(estate):
    times = pa.table({"t": pa.array([-1_500_000, 1_500_000], pa.timestamp("us"))})
    estate.table("t", "t timestamp", {"by_pyarrow": times})
    cf.write(times, estate.root / "t" / "as_java", format="orc")
    assert estate.reasons("t") == {"as_java": "", "by_pyarrow": reason("early fractions")}
    assert adopt(estate.source, estate.target, OPTIONS).verified
    early = estate.loaded("t").scan(row_filter="t < '1970-01-01T00:00:00'").to_arrow()
    assert [str(value) for value in early["t"].to_pylist()] == ["1969-12-31 23:59:58.500000"] * 2


def test_a_file_of_two_partitions_stays_in_one_of_them(estate):
    estate.table("t", "id bigint", {"p=1/a": pa.table({"id": ids(1)})}, "p int")
    estate.partition("t", "p='1'", "p=1")
    estate.partition("t", "p='2'", "p=1")
    assert migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True).verified
    rows = estate.loaded("t").scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["p"]) for row in rows) == [(1, 1), (1, 2)]
    assert len({task.file.file_path for task in estate.loaded("t").scan().plan_files()}) == 2


def test_parquet_stays_with_names_in_another_case_and_typed_partitions(estate):
    content = pa.table(
        {"ID": ids(1), "L": [[1, 2]], "M": [[("k", 1)]]},
        pa.schema([("ID", pa.int64()), ("L", pa.list_(pa.int64())), ("M", pa.map_(pa.string(), pa.int64()))]),
    )
    estate.table(
        "t", "id bigint, l array<bigint>, m map<string,bigint>", {"d=2020-1-6/a.parquet": content}, "d date"
    )
    estate.partition("t", "d='2020-1-6'", "d=2020-1-6")
    assert migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True).verified
    (row,) = estate.loaded("t").scan(row_filter="d = '2020-01-06'").to_arrow().to_pylist()
    assert (row["id"], row["l"], row["m"]) == (1, [1, 2], [("k", 1)])
    (task,) = estate.loaded("t").scan().plan_files()
    assert task.file.file_format == "PARQUET"
    assert task.file.file_path.startswith(f"file://{estate.root}")


def test_files_with_negative_zeros_are_converted_without_dictionaries(estate):
    files = {
        "lost": pa.table({"d": [-0.0, -1.0, float("nan")], "e": [0.0] * 3}),
        "between": pa.table({"d": [-0.0, -1.0, 1.0], "e": [0.0] * 3}),
        "other": pa.table({"d": [0.0, 1.0]}),
        "above": pa.table({"d": [-0.0, 1.0]}),
        "below": pa.table({"d": [0.0, -1.0]}),
        "none": pa.table({"d": [1.0]}),
    }
    estate.table("t", "d double, e double", files)
    stay = dict.fromkeys(["between", "above", "below", "none"], "")
    assert estate.reasons("t") == {"lost": ZEROS, "other": ZEROS, **stay}
    assert adopt(estate.source, estate.target, OPTIONS).verified
    for new in estate.target.rglob("*.parquet"):
        assert "RLE_DICTIONARY" not in pq.read_metadata(new).row_group(0).column(0).encodings
    estate.table("u", "d double", {"a.parquet": files["lost"], "b.parquet": pa.table({"d": [-0.0, 0.0]})})
    assert estate.reasons("u") == {"a.parquet": ZEROS, "b.parquet": ""}
    estate.table("v", "d double", {"a": files["other"]})
    assert estate.reasons("v") == {"a": ""}


def test_int96_of_a_named_zone_is_converted_to_the_times_that_hive_shows(estate):
    estate.table("t", "t timestamp", {"a.parquet": pa.table({"t": pa.array([], pa.timestamp("ns"))})})
    for name, zone in (("a", "America/New_York"), ("b", "UTC")):
        content = pa.table({"t": pa.array([1_593_600_000_000_000_000], pa.timestamp("ns"))})
        content = content.replace_schema_metadata({"writer.time.zone": zone})
        path = estate.root / "t" / f"{name}.parquet"
        pq.write_table(content, path, use_deprecated_int96_timestamps=True)
    assert estate.reasons("t") == {"a.parquet": reason("zone"), "b.parquet": ""}
    assert adopt(estate.source, estate.target, OPTIONS).verified
    rows = sorted(str(value) for value in estate.loaded("t").scan().to_arrow()["t"].to_pylist())
    assert rows == ["2020-07-01 06:40:00", "2020-07-01 10:40:00"]


def test_files_without_rows_and_tables_without_files(estate):
    nothing = pa.table({"id": ids()})
    estate.table("t", "id bigint", {"a": pa.table({"id": ids(1)}), "b": nothing})
    (estate.root / "none").mkdir()
    estate.table("none", "id bigint", {})
    estate.table("small", "id bigint", {"a": pa.table({"_col0": ids()})})
    adoption = adopt(estate.source, estate.target, OPTIONS)
    assert [table.refused for table in adoption.adopted] == ["", "", ""]
    assert adoption.verified
    assert estate.loaded("t").scan().to_arrow().num_rows == 1
    for name in ("none", "small"):
        table = estate.loaded(name)
        assert table.scan().to_arrow().num_rows == 0
        assert "gc.enabled" not in table.properties


def test_parquet_of_a_spark_table_is_parquet(estate):
    estate.table("t", "id bigint", {"a.parquet": pa.table({"id": ids(1)})})
    estate.statements = [line.replace("STORED AS", "USING") for line in estate.statements]
    assert adopt(estate.source, estate.target, OPTIONS).adopted[0].count("in place") == 1


def test_parquet_with_ids_stays_if_they_are_those_of_the_table(estate):
    def with_ids(*numbers: int, inner: int = 4, **more: int) -> pa.Table:
        """The columns id, s and l with ids, as older versions of pyarrow wrote them unasked."""

        def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
            return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)} if number else None)

        kinds = (pa.int64(), pa.string(), pa.list_(field("element", pa.string(), inner)))
        columns = [field(*column) for column in zip(("id", "s", "l"), kinds, numbers, strict=True)]
        columns += [field(name, pa.string(), number) for name, number in more.items()]
        row = [ids(1), ["a"], [["b"]], *([["c"]] * len(more))]
        return pa.table(row, pa.schema(columns))

    files = {
        "same.parquet": with_ids(1, 2, 3),
        "none.parquet": with_ids(0, 0, 0, inner=0),
        "other.parquet": with_ids(1, 3, 2),
        "inside.parquet": with_ids(1, 2, 3, inner=9),
        "some.parquet": with_ids(1, 0, 3),
        "hidden.parquet": with_ids(1, 2, 3, more=9),
    }
    estate.table("t", "id bigint, s string, l array<string>", files)
    others = dict.fromkeys(
        ["other.parquet", "inside.parquet", "some.parquet", "hidden.parquet"], reason("ids")
    )
    assert estate.reasons("t") == {"same.parquet": "", "none.parquet": "", **others}
    assert adopt(estate.source, estate.target, OPTIONS).verified
    rows = estate.loaded("t").scan().to_arrow().to_pylist()
    assert rows == [{"id": 1, "s": "a", "l": ["b"]}] * 6


def test_null_lists_and_maps_of_structs(estate):
    """PyIceberg shows them as empty ones in every file, so that no conversion would help."""
    inner = pa.list_(pa.struct([("q", pa.int32())]))
    kind = pa.list_(pa.struct([("in", inner)]))
    lists = pa.array([[{"in": None}, None], None, [{"in": [{"q": 1}]}], [{"in": []}]], kind)
    maps = pa.array([[("k", {"in": None})], None, [], [("k", None)]], pa.map_(pa.string(), kind.value_type))
    structs = pa.array([{"in": None}, None, {"in": [None]}, {"in": []}], kind.value_type)
    content = pa.table({"id": ids(1, 2, 3, 4), "l": lists, "m": maps, "s": structs})
    part = "struct<`in`:array<struct<q:int>>>"
    columns = (
        f"id bigint, l array<{part}>, m map<string,{part}>, s struct<`in`:array<struct<q:int,added:string>>>"
    )
    for name, file in (("t", "a"), ("p", "a.parquet")):
        estate.table(name, columns, {file: content, f"ordinal_{file}": ordinal(content)})
    adoption = adopt(estate.source, estate.target, OPTIONS)
    assert adoption.verified
    for table in adoption.adopted:
        assert table.notes == [HOLLOW]
        assert table.count("in place") >= 1
    (converted,) = (estate.target / "a" / "t" / "data").rglob("*.parquet")
    assert pq.read_table(converted)["l"].null_count == 1
    plain = {"a": pa.table({"id": ids(1), "l": lists[2:3]})}
    estate.table("u", "id bigint, l array<struct<`in`:array<struct<q:int>>>>", plain)
    assert adopt(estate.source, estate.target, OPTIONS).adopted[-1].notes == []


def ordinal(content: pa.Table) -> pa.Table:
    return content.rename_columns([f"_col{at}" for at in range(content.num_columns)])


def test_values_of_partitions_are_not_in_the_files(estate):
    """Days before 1582 and zeros of two signs matter in files only."""
    for name, file in (("t", "a"), ("p", "a.parquet")):
        days = ("0001-01-01", "1500-02-28", "2020-02-29")
        files = {f"d={day}/{file}": pa.table({"id": ids(at)}) for at, day in enumerate(days)}
        estate.table(name, "id bigint", files, "d date")
        for day in days:
            estate.partition(name, f"d='{day}'", f"d={day}")
        assert set(estate.reasons(name).values()) == {""}


def test_char_in_parquet_stays_unless_it_is_padded(estate):
    files = {"a.parquet": pa.table({"c": ["ab", "abc", None]}), "b.parquet": pa.table({"c": ["ab "]})}
    estate.table("t", "c char(3)", files)
    (table,) = adopt(estate.source, estate.target, OPTIONS).adopted
    assert {verdict.path[-9:]: verdict.reason for verdict in table.verdicts} == {
        "a.parquet": "",
        "b.parquet": UNPROVED,
    }
    assert estate.loaded("t").scan(row_filter="c = 'ab'").to_arrow().num_rows == 2


def test_types_that_arrow_writes_beside_those_of_parquet(estate):
    content = {
        "id": ids(1),
        "l": pa.array([["a", None]], pa.large_list(pa.large_string())),
        "f": pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
        "d": pa.array(["x"]).dictionary_encode(),
        "n": pa.nulls(1),
        "small": pa.array([-5], pa.int32()),
    }
    columns = "id bigint, l array<string>, f array<bigint>, d string, n array<int>, small tinyint"
    lists = {name: content[name] for name in ("id", "l", "f", "small")}
    # PyIceberg cannot put a dictionary and plain text into one table.
    estate.table("t", columns, {"a.parquet": pa.table(content), "b.parquet": pa.table(lists)})
    assert estate.reasons("t") == {"a.parquet": reason("types"), "b.parquet": ""}
    assert adopt(estate.source, estate.target, OPTIONS).verified
    row = {"id": 1, "l": ["a", None], "f": [1, 2], "d": "x", "n": None, "small": -5}
    assert estate.loaded("t").scan().to_arrow().to_pylist() == [row, {**row, "d": None}]


def test_a_directory_is_a_source(estate):
    estate.table("t", "", {"p=1/a": pa.table({"id": ids(1)}), "p=2/a": pa.table({"id": ids(2)})})
    adoption = adopt(estate.root, estate.target, OPTIONS)
    assert adoption.exit_code == 0
    assert adoption.adopted[0].count("in place") == 2
    assert (estate.target / "t" / "metadata").is_dir()


def test_a_table_that_cannot_be_right_is_refused_and_the_others_are_adopted(estate):
    estate.table("good", "id bigint", {"a": pa.table({"id": ids(1)})})
    estate.table("bad", "id bigint, u uniontype<int,string>", {"a": pa.table({"id": ids(1)})})
    adoption = adopt(estate.source, estate.target, OPTIONS)
    assert adoption.exit_code == 1
    assert not adoption.verified
    by_name = {table.name: table for table in adoption.adopted}
    assert by_name["a.good"].verified
    assert "Iceberg has no such type" in by_name["a.bad"].refused
    assert not (estate.target / "a" / "bad").exists()


def test_a_failed_proof_leaves_no_table_and_no_new_file(estate, monkeypatch):
    estate.table("t", "id bigint", {"a": pa.table({"_col0": ids(1)}), "b": pa.table({"id": ids(2)})})

    def wrong(self, *arguments):
        raise ColdframeError("PyIceberg reads other rows from the finished table")

    monkeypatch.setattr(NewTable, "_check", wrong)
    adoption = adopt(estate.source, estate.target, OPTIONS)
    assert adoption.exit_code == 1
    assert "other rows" in adoption.adopted[0].refused
    from pyiceberg.exceptions import NoSuchTableError

    with pytest.raises(NoSuchTableError):
        estate.loaded("t")
    assert not list(estate.target.rglob("*.parquet"))


def test_a_file_that_pyiceberg_reads_otherwise_is_converted(estate, monkeypatch):
    estate.table("t", "id bigint", {"a": pa.table({"id": ids(1)})})
    real = NewTable._unlike

    def unlike(self, reader, entry, item):
        is_new = str(estate.target) in entry.file_path
        return real(self, reader, entry, item) if is_new else "PyIceberg reads other rows from it"

    monkeypatch.setattr(NewTable, "_unlike", unlike)
    adoption = adopt(estate.source, estate.target, OPTIONS)
    assert adoption.verified
    assert adoption.adopted[0].count("converted") == 1


def test_files_of_many_partitions_do_not_stay_open(estate, monkeypatch):
    """A partition that is read again, to convert a file, is listed again."""
    monkeypatch.setattr(sources, "_OPEN_PARTITIONS", 1)
    names = {"named": "id", "ordinal": "_col0"}
    files = {f"p={at}/{file}": pa.table({name: ids(at)}) for at in range(4) for file, name in names.items()}
    estate.table("t", "id bigint", files, "p int")
    for at in range(4):
        estate.partition("t", f"p='{at}'", f"p={at}")
    (table,) = sources.find_source(estate.source, OPTIONS).tables
    for file in table.files:
        assert sum(batch.num_rows for batch in file.rows()) == 1
    assert sum(file.rows.func.__self__.raw is not None for file in table.files) == 2
    assert adopt(estate.source, estate.target, OPTIONS).verified
    assert sorted(estate.loaded("t").scan().to_arrow()["id"].to_pylist()) == [0, 0, 1, 1, 2, 2, 3, 3]
    (estate.root / "t/p=0/later").write_bytes((estate.root / "t/p=0/named").read_bytes())
    with pytest.raises(ColdframeError, match="its files were changed while it was adopted"):
        list(table.files[0].rows())


def test_the_proof_reads_a_file_batch_by_batch(estate, monkeypatch):
    """Not the rows of a whole file at once: files are larger than the memory."""
    import pyiceberg.io.pyarrow as by_arrow

    rows = 500_000
    estate.table("t", "id bigint", {"a": pa.table({"id": ids(*range(rows))})})
    alive: list[int] = []
    made, taken = [], []
    real, add = by_arrow._to_requested_schema, proof.in_types_of
    monkeypatch.setattr(by_arrow, "_to_requested_schema", lambda *a, **k: made.append(1) or real(*a, **k))

    def take(schema, batch):
        taken.append(batch.num_rows)
        alive.append(len(made) - len(taken))
        return add(schema, batch)

    monkeypatch.setattr(proof, "in_types_of", take)
    assert adopt(estate.source, estate.target, OPTIONS).verified
    assert sum(taken) == rows
    assert len(taken) > 1
    assert max(alive) == 0


def test_what_is_not_made_is_refused_in_words(estate, tmp_path):
    estate.table("t", "id bigint", {"a": pa.table({"id": ids(1)})})
    with pytest.raises(ValueError, match="deltalake, which would prove the rows"):
        migrate(InProcess(), estate.source, estate.target, to="delta", adopt=True)
    with pytest.raises(ValueError, match="only tables of Iceberg have a list of files"):
        migrate(InProcess(), estate.source, estate.target, to="parquet", adopt=True)
    with pytest.raises(UnsupportedError, match="adopting with the option fresh"):
        migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True, fresh=True)
    with pytest.raises(SchemaError, match="must not contain each other"):
        migrate(InProcess(), estate.source, estate.root / "t" / "new", to="iceberg", adopt=True)
    adopt(estate.source, estate.target, OPTIONS)
    with pytest.raises(UnsupportedError, match="it is the target of an adoption"):
        migrate(InProcess(), estate.root, estate.target, to="iceberg")
    with pytest.raises(ValueError, match="previews it"):
        dry_run(estate.source, tmp_path / "other", OPTIONS)


def test_a_dry_run_prints_bytes_and_reasons_and_writes_nothing(estate, capsys):
    estate.table("t", "id bigint", {"a": pa.table({"_col0": ids(1)}), "b": pa.table({"id": ids(2)})})
    arguments = ["migrate", estate.source, str(estate.target), "--to", "iceberg", "--adopt", "--dry-run"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "a.t: 1 file (" in out
    assert "in place, 1 file (" in out
    assert "converted; 2 rows" in out
    assert f"converted, 1 file: {reason('placeholders')}" in out
    assert "1 of 1 tables: " in out
    assert "would stay where they are" in out
    assert not estate.target.exists()


@pytest.mark.parametrize(
    ("file", "table", "expected"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.int8(), pa.int32(), True),
        (pa.int8(), pa.int64(), False),
        (pa.int32(), pa.int8(), True),
        (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.decimal128(5, 2), pa.decimal128(10, 2), True),
        (pa.decimal128(5, 2), pa.decimal128(10, 4), False),
        (pa.string(), pa.int32(), False),
        (pa.timestamp("ns"), pa.timestamp("us"), True),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us"), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), True),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), False),
        (pa.struct([("A", pa.int32()), ("x", pa.string())]), pa.struct([("a", pa.int64())]), True),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32()), False),
        (pa.list_(pa.int32()), pa.int32(), False),
    ],
)
def test_types_that_iceberg_widens(file, table, expected):
    assert is_promoted(file, table) is expected


def test_the_page_shows_what_stays_and_why_files_are_converted(estate):
    files = {"a": pa.table({"id": ids(1, 2)}), "<b>": pa.table({"_col0": ids(3)})}
    estate.table("t", "id bigint", files)
    adoption = migrate(InProcess(), estate.source, estate.target, to="iceberg", adopt=True)
    page = (estate.target / "_coldframe" / "adoption.html").read_text()
    assert page == adoption_page(adoption)
    (why,) = adoption.adopted[0].reasons
    assert escape(why) in page
    assert "<b>" not in page.split("Converted files")[1]
    assert "do not change, move or delete them" in page
    detached = adopt(estate.source, estate.target, replace(OPTIONS, detach=("a.t",)))
    assert "The new tables read no file of the source" in adoption_page(detached)
