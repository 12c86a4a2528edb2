"""Migrations compared with a Hive metastore's row counts and formats; the metastore is plain data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from estates import Estate, scanning

from coldframe.file import Split
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.metadata import claims_to_be_accurate
from coldframe.hive.reader import MetastoreRefusal, Refused
from coldframe.pipeline import dry_run
from coldframe.pipeline.options import Options
from coldframe.pipeline.records import SourceFile, Unread
from coldframe.pipeline.report.metastore import compare_run
from coldframe.pipeline.report.model import FileReport, Report
from coldframe.pipeline.report.preview import preview_text
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.source.findings import MAX_SHOWN, Finding, Findings, MetastoreReport
from coldframe.pipeline.source.inventory import Inventory
from coldframe.pipeline.source.registered import Registered, collect
from coldframe.pipeline.source.selection import Selection, select
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.work import convert

DATA = Path(__file__).parents[3] / "data"
ORC = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
RC = "org.apache.hadoop.hive.ql.io.RCFileInputFormat"
TEXT = "org.apache.hadoop.mapred.TextInputFormat"
ROWS, SPARK_ROWS = "numRows", "spark.sql.statistics.numRows"
CLAIM = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}


def table(
    name: str,
    location: str | None,
    keys: Sequence[str] = (),
    input_format: str = ORC,
    serde_properties: Mapping[str, str] | None = None,
    **other: Any,
) -> Definition:
    storage = Storage((), location, input_format, serde_properties=serde_properties or {})
    columns = tuple(Column(key, "string") for key in keys)
    return Definition("db", name, storage=storage, keys=columns, **other)


def partition(
    values: tuple[str, ...], location: str, input_format: str, parameters: Mapping[str, str] | None = None
) -> PartitionDefinition:
    return PartitionDefinition(values, Storage((), location, input_format), parameters or {})


def collected(
    root: str, *tables: Definition | Refused, partitions: Sequence[PartitionDefinition] = ()
) -> Registered:
    return collect("thrift://h:1", root, tables, lambda _: partitions)


def test_only_tables_below_the_source_are_compared() -> None:
    registered = collected(
        "/wh",
        table("plain", "file:/wh/plain", parameters={ROWS: "5", SPARK_ROWS: "4"}),
        table(
            "spark",
            "file:/wh/spark-__PLACEHOLDER__",
            input_format="org.apache.hadoop.mapred.SequenceFileInputFormat",
            parameters={"spark.sql.sources.provider": "ORC", SPARK_ROWS: "9"},
            serde_properties={"path": "file:/wh/spark"},
        ),
        table("elsewhere", "file:/other/t"),
        table("view", "file:/wh/view", kind="VIRTUAL_VIEW"),
        table("hbase", "file:/wh/hbase", parameters={"storage_handler": "x.HBaseStorageHandler"}),
        table("nowhere", None),
        Refused("db", "secret", "not for you"),
    )
    assert [(p.path, p.table, p.rows, p.format) for p in registered.places] == [
        ("plain", "db.plain", (5, 4), "orc"),
        ("spark", "db.spark", (9,), "orc"),
    ]
    assert list(registered.wholes) == []
    assert (registered.report.tables, registered.report.partitions) == (2, 0)
    assert [str(finding) for finding in registered.report.findings] == ["db.secret: not for you"]
    assert registered.report.findings.wrong == 1


def test_partitions_have_locations_and_formats_of_their_own() -> None:
    registered = collected(
        "/wh",
        table("t", "file:/wh/t", ["dt", "r"], input_format=RC),
        partitions=[
            partition(("1", "a/b"), "file:/wh/t/dt=1/r=a%2Fb", RC, {ROWS: "3"}),
            partition(("2", "c"), "file:/wh/moved/x", ORC, {ROWS: "0", SPARK_ROWS: "-1"}),
            partition(("3", "c"), "file:/archive/x", ORC, {ROWS: "many"}),
        ],
    )
    assert [(p.path, p.partition, p.rows, p.format) for p in registered.places] == [
        ("moved/x", "dt=2/r=c", (), "orc"),
        ("t/dt=1/r=a%2Fb", "dt=1/r=a/b", (3,), "rcfile"),
    ]
    assert [p.path for p in registered.wholes] == ["t"]
    assert registered.report.partitions == 3
    (finding,) = registered.report.findings
    assert finding.kind == "elsewhere"
    assert "1 of its partitions lie outside of the source, such as file:/archive/x" in str(finding)


def test_a_table_whose_folders_are_its_partitions_is_one_place() -> None:
    registered = collected("/wh", table("t", "/wh/t", ["dt"], by_folders=True, parameters={ROWS: "7"}))
    assert [(p.path, p.table, p.partition, p.rows) for p in registered.places] == [("t", "db.t", "", (7,))]
    assert list(registered.wholes) == []


def test_a_metastore_without_tables_below_the_source_is_reported() -> None:
    registered = collected("/wh", table("t", "hdfs://nn/wh/t"))
    (finding,) = registered.report.findings
    assert finding.is_wrong
    assert str(finding) == "none of its 1 tables lies below /wh, but elsewhere, such as hdfs://nn/wh/t"
    (finding,) = collected("/wh", table("v", None, kind="VIRTUAL_VIEW")).report.findings
    assert (finding.is_wrong, str(finding)) == (True, "the metastore has no table with files")


def test_partitions_of_an_excluded_table_are_not_requested() -> None:
    def refuse(_: Definition) -> list[PartitionDefinition]:
        raise AssertionError

    left_out = table("t", "/wh/t", ["p"])
    registered = collect("thrift://h:1", "/wh", [left_out], refuse, select([], ["t"]))
    assert (registered.report.tables, list(registered.each()), len(registered.report.findings)) == (0, [], 0)


def test_a_partition_elsewhere_is_wrong_only_without_a_selection() -> None:
    moved = [partition(("1",), "/archive/x", ORC)]
    for selection, wrong in ((select([], []), 1), (select(["2014*"], []), 0)):
        registered = collect("thrift://h:1", "/wh", [table("t", "/wh/t", ["p"])], lambda _: moved, selection)
        assert [finding.kind for finding in registered.report.findings] == ["elsewhere"]
        assert registered.report.findings.wrong == wrong


def test_refused_partitions_are_reported() -> None:
    def refuse(_: Definition) -> list[PartitionDefinition]:
        raise MetastoreRefusal("no")

    registered = collect("thrift://h:1", "/wh", [table("t", "/wh/t", ["p"])], refuse)
    assert [(finding.kind, str(finding)) for finding in registered.report.findings] == [
        ("refused", "db.t: no")
    ]


# Migrated rows against registered rows.


def report_of(source: str, rows: int, status: str = "converted", **other: Any) -> FileReport:
    return FileReport(source, status, 100, rows, **other)


def compare(
    registered: Registered,
    files: Sequence[FileReport],
    *,
    options: Options | None = None,
    inventory: Inventory | None = None,
    kind: str = "orc",
) -> tuple[MetastoreReport, Findings]:
    findings = Findings()
    work: Any = SimpleNamespace(
        table=Table("t", "t", kind, None), files=files, report=SimpleNamespace(metastore=findings)
    )
    return compare_run(registered, [work], inventory or Inventory("/wh"), options or Options()), findings


def plain(rows: str, **other: Any) -> Registered:
    return collected("/wh", table("t", "/wh/t", parameters={ROWS: rows}, **other))


@pytest.mark.parametrize(
    ("files", "agrees"),
    [
        ([report_of("t/a", 3), report_of("t/sub/b", 2)], True),
        ([report_of("t/a", 3)], False),
        ([report_of("t/a", 6)], False),
        ([report_of("t/a", 3), report_of("u/b", 2)], False),
        # Known lost rows explain a difference.
        ([report_of("t/a", 3, "salvaged", damage=[{"rows_lost": 2}])], True),
        ([report_of("t/a", 2, "salvaged", damage=[{"rows_lost": 2}])], False),
        ([report_of("t/a", 3), report_of("t/b", 0, "empty"), report_of("t/c", 2)], True),
    ],
)
def test_rows_are_compared(files: Sequence[FileReport], agrees: bool) -> None:
    report, findings = compare(plain("5"), files)
    assert (report.compared, report.agreed) == (1, int(agrees))
    assert findings.wrong == (not agrees)
    if not agrees:
        (finding,) = findings
        assert (finding.kind, finding.table, finding.stated) == ("rows", "db.t", 5)
        assert finding.migrated == sum(file.rows for file in files if file.source.startswith("t/"))


@pytest.mark.parametrize(
    "files",
    [
        [report_of("t/a", 3), report_of("t/b", 0, "failed", error="x")],
        [report_of("t/a", 3), report_of("t/b", 0, "changed", error="x")],
        [report_of("t/a", 3), report_of("t/b", 0, "quarantined", error="x")],
        [report_of("t/a", 3), report_of("t/b", 2, "held")],
        [report_of("t/a", 3, "salvaged", damage=[{"rows_lost": None}])],
    ],
)
def test_a_difference_with_a_known_cause_is_not_reported(files: Sequence[FileReport]) -> None:
    report, findings = compare(plain("5"), files)
    assert (report.compared, len(findings), len(report.findings)) == (0, 0, 0)


def test_an_unread_directory_is_not_reported_again() -> None:
    for place in ("t/sub", "t", "."):
        inventory = Inventory("/wh", unread=[Unread(place, "denied")])
        report, findings = compare(plain("5"), [report_of("t/a", 3)], inventory=inventory)
        assert (report.compared, len(findings), len(report.findings)) == (0, 0, 0)


@pytest.mark.parametrize("rows", ["0", "-1", "", "five", "1e3"])
def test_meaningless_row_counts_are_not_compared(rows: str) -> None:
    report, findings = compare(plain(rows), [report_of("t/a", 3)])
    assert (report.compared, len(findings)) == (0, 0)


def test_a_match_with_either_row_count_is_enough() -> None:
    for rows, agrees in ((5, True), (7, True), (6, False)):
        registered = collected("/wh", table("t", "/wh/t", parameters={ROWS: "5", SPARK_ROWS: "7"}))
        assert compare(registered, [report_of("t/a", rows)])[0].agreed == agrees


def test_a_nested_table_may_belong_to_the_outer_table_too() -> None:
    """Hive may or may not read subdirectories: inner files may also belong to the outer table."""
    for rows in (3, 10):
        registered = collected(
            "/wh",
            table("outer", "/wh/t", parameters={ROWS: str(rows)}),
            table("inner", "/wh/t/inner", parameters={ROWS: "7"}),
            table("twin", "/wh/t/inner", parameters={ROWS: "8"}),
        )
        report, findings = compare(registered, [report_of("t/a", 3), report_of("t/inner/b", 7)])
        assert [finding.table for finding in findings] == ["db.twin"]
        assert (report.compared, report.agreed) == (3, 2)


def test_a_table_of_an_unsupported_format_is_not_compared() -> None:
    inventory = Inventory("/wh", unknown=[SourceFile("/wh/t/a", "t/a", 5, 0, None)])
    report, findings = compare(plain("5", input_format=TEXT), [], inventory=inventory)
    assert (report.compared, len(findings), len(report.findings)) == (0, 0, 0)
    # A table is compared where the metastore has a supported format.
    report, findings = compare(plain("5"), [], inventory=inventory)
    (finding,) = report.findings
    assert (finding.kind, finding.is_wrong) == ("format", True)


def test_the_bytes_decide_the_format() -> None:
    for input_format, kind in ((RC, "orc"), (ORC, "rcfile"), (TEXT, "orc")):
        report, findings = compare(plain("5", input_format=input_format), [report_of("t/a", 5)], kind=kind)
        (finding,) = findings
        assert (finding.kind, finding.is_wrong) == ("format", False)
        assert str(finding).endswith(f" by the metastore, {kind} by its bytes")
        assert (report.compared, report.agreed) == (1, 1)


def partitioned(total: str, *partitions: PartitionDefinition) -> Registered:
    return collected("/wh", table("t", "/wh/t", ["p"], parameters={SPARK_ROWS: total}), partitions=partitions)


def part(value: str, rows: str = "", at: str = "") -> PartitionDefinition:
    return partition((value,), at or f"/wh/t/p={value}", ORC, {ROWS: rows})


def test_the_row_count_of_the_table_is_compared_where_partitions_have_no_row_count() -> None:
    files = [report_of("t/p=1/a", 3), report_of("t/p=2/a", 4)]
    for total, agrees in (("7", True), ("8", False)):
        report, findings = compare(partitioned(total, part("1", "3"), part("2")), files)
        assert (report.compared, report.agreed) == (2, 1 + agrees)
        assert [finding.partition for finding in findings] == [""] * (not agrees)
    # Each partition agrees: the table's count is outdated.
    assert compare(partitioned("8", part("1", "3"), part("2", "4")), files)[0].findings.count == 0
    # A partition lies elsewhere.
    registered = partitioned("8", part("1"), part("2"), part("3", at="/wh/moved"))
    report, findings = compare(registered, [*files, report_of("moved/a", 1)])
    assert (report.compared, len(findings)) == (0, 0)


def test_files_without_a_registered_partition_are_reported() -> None:
    files = [report_of("t/p=1/a", 3), report_of("t/p=2/a", 4), report_of("t/p=2/b", 1)]
    _, findings = compare(partitioned("3", part("1")), files)
    (finding,) = findings
    assert finding.kind == "unregistered"
    assert "2 files, 5 rows, in no registered partition, such as t/p=2/a" in str(finding)


def test_excluded_files_are_not_reported_missing() -> None:
    def registered() -> Registered:
        return partitioned("", part("1", "3"), part("2", "4"))

    files = [report_of("t/p=1/a", 3)]
    inventory = Inventory("/wh")
    inventory.left_out.append("t/p=2/b")
    for selection in (select([], ["p=2"]), select(["t/p=1"], [])):
        report, findings = compare(
            registered(), files, options=Options(selection=selection), inventory=inventory
        )
        assert (report.compared, len(findings), len(report.findings)) == (1, 0, 0)
    # Within a directory that is read, excluded files are not known.
    files = [report_of("t/p=1/a", 2), report_of("t/p=2/a", 5)]
    _, findings = compare(
        registered(), files, options=Options(selection=select([], ["*.bak"])), inventory=inventory
    )
    assert [(finding.partition, finding.is_wrong) for finding in findings] == [("p=1", False), ("p=2", True)]
    report, findings = compare(
        registered(), files[:1], options=Options(selection=select([], ["b"])), inventory=inventory
    )
    assert [
        (finding.kind, finding.partition, finding.is_wrong) for finding in (*findings, *report.findings)
    ] == [
        ("rows", "p=1", False),
        ("missing", "p=2", True),
    ]


def test_findings_are_counted_beyond_the_kept_findings() -> None:
    findings = Findings()
    for number in range(MAX_SHOWN + 5):
        findings.add(Finding("rows", "db.t", "x", str(number), is_wrong=number % 2 == 0))
    assert (len(findings), len(findings.shown), findings.wrong) == (MAX_SHOWN + 5, MAX_SHOWN, 503)


# Through a whole migration.


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    made.orc("sales/p=a%2F1/000000_0", {"a": [1, 2, 3]})
    made.orc("sales/p=2/000000_0", {"a": [4, 5]})
    made.orc("events/000000_0", {"a": [6]})
    return made


@pytest.fixture
def serve(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replaces the server by a metastore of plain data."""
    root = estate.source

    def set_tables(
        sales: dict[str, str], events: str, kind: str = ORC, claim: Mapping[str, str] = CLAIM
    ) -> None:
        tables = [
            table("sales", f"file:{root}/sales", ["p"]),
            table("events", f"file:{root}/events", parameters={ROWS: events, **claim}, input_format=kind),
            table("other", "hdfs://nn/other", parameters={ROWS: "8"}),
        ]
        names = {"a/1": "a%2F1"}
        partitions = [
            partition((value,), f"file:{root}/sales/p={names.get(value, value)}", ORC, {ROWS: rows, **claim})
            for value, rows in sales.items()
        ]

        def read(uris: str, source: str, selection: Selection) -> Registered:
            return collect(uris, source, tables, lambda _: partitions, selection)

        monkeypatch.setattr("coldframe.pipeline.read_registered", read)

    return set_tables


def safe(estate: Estate) -> list[str]:
    return estate.safe()


def test_a_migration_agrees_with_equal_row_counts(estate: Estate, serve: Any) -> None:
    serve({"a/1": "3", "2": "2"}, "1")
    for _ in range(2):
        report = estate.migrate(metastore="thrift://h:1")
        assert report.exit_code == 0
        assert report.verified
        assert report.metastore is not None
        assert report.metastore.to_json() == {
            "uri": "thrift://h:1",
            "tables": 2,
            "partitions": 2,
            "compared": 3,
            "agreed": 3,
            "findings": [],
            "findings_count": 0,
        }
        assert len(safe(estate)) == 3
    assert "3 of 3 numbers of rows agree" in summary(report)


def test_a_difference_is_in_every_report(estate: Estate, serve: Any) -> None:
    """A later run without work reports the difference, too."""
    assert estate.migrate().exit_code == 0
    serve({"a/1": "4", "2": "2"}, "1")
    for fresh in (False, True):
        report = estate.migrate(metastore="thrift://h:1", fresh=fresh)
        message = "db.sales p=a/1: 4 rows by the metastore, 3 migrated from sales/p=a%2F1"
        assert report.exit_code == 1
        assert f"  not as the metastore has it: {message}" in summary(report)
        assert [table.verified for table in report.tables] == [True, False]
        written = json.loads((estate.target / "_coldframe/report.json").read_text())
        assert written["exit_code"] == 1
        (finding,) = written["tables"][1]["metastore"]
        assert finding == {
            "kind": "rows",
            "table": "db.sales",
            "partition": "p=a/1",
            "location": "sales/p=a%2F1",
            "text": message.partition(": ")[2],
            "stated": 4,
            "migrated": 3,
            "is_wrong": True,
        }
        page = (estate.target / "_coldframe/report.html").read_text()
        assert "1 difference to the metastore" in page
        assert message in page
        assert message in (estate.target / "_coldframe/report/2.html").read_text()
        assert safe(estate) == [f"{estate.source}/events/000000_0"]
        assert estate.values("sales") == [1, 2, 3, 4, 5]
    # The journal does not keep the difference: a run without a metastore does not report it.
    assert estate.migrate().exit_code == 0


@pytest.mark.parametrize(
    ("claim", "is_claimed"),
    [
        ({}, False),
        ({"COLUMN_STATS_ACCURATE": ""}, False),
        ({"COLUMN_STATS_ACCURATE": "false"}, False),
        ({"COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"a":"true"}}'}, False),
        ({"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":'}, False),
        ({"COLUMN_STATS_ACCURATE": "TRUE"}, True),
        ({"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'}, True),
    ],
)
def test_a_count_without_a_claim_is_a_note(estate: Estate, serve: Any, claim: Any, is_claimed: bool) -> None:
    """The difference is a note only where every file was read back and compared."""
    serve({"a/1": "4", "2": "2"}, "1", ORC, claim)
    report = estate.migrate(metastore="thrift://h:1")
    (finding,) = report.tables[1].metastore
    assert "4 rows by the metastore, 3 migrated from sales/p=a%2F1" in str(finding)
    assert ("does not claim that its number is accurate" in str(finding)) == (not is_claimed)
    assert (report.exit_code, report.verified, len(safe(estate))) == (
        (1, False, 1) if is_claimed else (0, True, 3)
    )
    # Without verification, the difference fails the run.
    report = estate.migrate(metastore="thrift://h:1", verify=False, fresh=True)
    assert (report.exit_code, report.verified, safe(estate)) == (1, False, [])


def test_sparks_row_count_has_no_claim_of_accuracy() -> None:
    for rows, claimed in (({ROWS: "5"}, True), ({SPARK_ROWS: "5"}, False), ({ROWS: "0"}, False)):
        assert claims_to_be_accurate({**rows, **CLAIM}) is claimed


def test_the_row_count_reveals_lost_rows(estate: Estate, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An RCFile does not state its number of rows."""
    (estate.source / "events/000000_0").unlink()
    estate.rc("events/000000_0", {"a": list(range(70_000))})
    (estate.source / "tables.toml").write_text(
        '[tables.events]\nschema = "a bigint"\nserde = "binary"\n[tables.sales]\n'
    )
    serve({"a/1": "3", "2": "2"}, "70000", RC)

    def losing(split: Split, batches: Any) -> Any:
        return list(batches)[1:] if "events" in split.path else batches

    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", scanning(losing))
        report = estate.migrate(metastore="thrift://h:1")
    (finding,) = report.tables[0].metastore
    assert (finding.stated, finding.migrated) == (70_000, 70_000 - 65_536)
    assert (report.exit_code, report.tables[0].verified) == (1, False)
    # It is unknown which file lost rows: all are converted again.
    again = estate.migrate(metastore="thrift://h:1", fresh=True)
    assert (again.exit_code, again.verified, len(again.tables[0].metastore)) == (0, True, 0)


def test_a_failed_file_is_reported_once(estate: Estate, serve: Any) -> None:
    serve({"a/1": "3", "2": "2"}, "1")
    path = estate.source / "sales/p=2/000000_0"
    content = bytearray(path.read_bytes())
    content[8:40] = bytes(32)
    path.write_bytes(content)
    report = estate.migrate(metastore="thrift://h:1")
    assert report.exit_code == 1
    assert [len(table.metastore) for table in report.tables] == [0, 0]
    assert report.metastore is not None
    assert (report.metastore.compared, report.metastore.agreed) == (2, 2)


def test_locations_without_files_are_reported(estate: Estate, serve: Any) -> None:
    (estate.source / "sales/p=empty").mkdir()
    (estate.source / "sales/p=hollow").mkdir()
    (estate.source / "sales/p=zero").mkdir()
    (estate.source / "sales/p=zero/000000_0").touch()
    serve({"a/1": "3", "2": "2", "gone": "", "empty": "0", "hollow": "6", "zero": "0"}, "1")
    report = estate.migrate(metastore="thrift://h:1")
    assert report.exit_code == 1
    assert report.metastore is not None
    assert [(finding.kind, finding.partition, finding.is_wrong) for finding in report.metastore.findings] == [
        ("empty", "p=empty", False),
        ("missing", "p=gone", True),
        ("rows", "p=hollow", True),
    ]
    text = summary(report)
    assert (
        f"\nnot as the metastore has it: db.sales p=gone: there is no {estate.source}/sales/p=gone\n" in text
    )
    assert f"\nnote: db.sales p=empty: {estate.source}/sales/p=empty holds no files\n" in text
    assert "there is no" in (estate.target / "_coldframe/report.html").read_text()


def test_a_different_format_is_not_a_failure(estate: Estate, serve: Any) -> None:
    serve({"a/1": "3", "2": "2"}, "1", RC)
    report = estate.migrate(metastore="thrift://h:1")
    assert report.exit_code == 0
    assert report.verified
    assert "  note: db.events: rcfile by the metastore, orc by its bytes" in summary(report)


def test_a_dry_run_checks_formats_and_locations(estate: Estate, serve: Any) -> None:
    serve({"a/1": "99", "2": "2", "gone": "1"}, "1", RC)
    preview = dry_run(estate.source, estate.target, Options(metastore="thrift://h:1"))
    assert preview.exit_code == 1
    text = preview_text(preview)
    assert f"not as the metastore has it: db.sales p=gone: there is no {estate.source}/sales/p=gone" in text
    assert "  note: db.events: rcfile by the metastore, orc by its bytes" in text
    assert "99" not in text
    assert json.loads(json.dumps(preview.to_json()))["metastore"]["findings_count"] == 1
    assert not estate.target.exists()
    serve({"a/1": "99", "2": "2"}, "1")
    assert dry_run(estate.source, estate.target, Options(metastore="thrift://h:1")).exit_code == 0
    without = dry_run(estate.source, estate.target, Options())
    assert (without.metastore, without.to_json()["metastore"]) == (None, None)


def test_a_transactional_directory_is_a_source(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metastore counts the rows that remain after updates and deletes."""
    for place in ("acid", "parts/p=1"):
        shutil.copytree(DATA / "orc" / "files" / "acid_table", estate.source / place)
    (estate.source / "tables.toml").write_text(
        "[tables.acid]\nacid = true\n[tables.parts]\nacid = true\n[tables.sales]\n[tables.events]\n"
    )
    for rows, agreed in ((5, 2), (7, 0)):
        transactional = {"transactional": "true", ROWS: str(rows), **CLAIM}
        tables = [
            table("acid", f"file:{estate.source}/acid", parameters=transactional, kind="MANAGED_TABLE"),
            table("parts", f"file:{estate.source}/parts", ["p"], parameters={"transactional": "true"}),
        ]
        parts = [partition(("1",), f"file:{estate.source}/parts/p=1", ORC, {ROWS: str(rows), **CLAIM})]
        registered = collect("thrift://h:1", str(estate.source), tables, lambda _, parts=parts: parts)
        monkeypatch.setattr(
            "coldframe.pipeline.read_registered", lambda *_, registered=registered: registered
        )
        report = estate.migrate(metastore="thrift://h:1")
        assert report.metastore is not None
        assert (report.metastore.compared, report.metastore.agreed) == (2, agreed)
        assert report.exit_code == (agreed == 0)


def test_a_report_without_a_metastore_does_not_mention_it() -> None:
    report = Report("/s", "/t", "parquet", "raise", [])
    assert report.to_json()["metastore"] is None
    assert "metastore" not in summary(report)
