"""The migration writes every row once, whatever interrupts it."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import html.parser
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from spark_data import DATA, WAREHOUSE, damaged, survivors

import coldframe as cf
from coldframe._coldframe import RawFingerprint
from coldframe.cli import migrate as command
from coldframe.errors import NotFoundError, SchemaError, UnsupportedError
from coldframe.pipeline import migrate
from coldframe.pipeline.plan import plan_files
from coldframe.pipeline.report.model import Report
from coldframe.pipeline.sink.sinks import ParquetSink
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.source import inventory
from coldframe.pipeline.source.inventory import take_inventory
from coldframe.pipeline.source.tables import find_tables, load_tables
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.work.convert import Task, run_task

EXPECTED = json.loads((WAREHOUSE / "EXPECTED.json").read_text())
ROWS = sum(table["rows"] for table in EXPECTED.values())


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def data_files(root: Path) -> dict[str, str]:
    return {name: digest for name, digest in tree(root).items() if name.endswith(".parquet")}


def read(root: Path, table: str) -> pa.Table:
    return pads.dataset(root / table, partitioning="hive").to_table()


def total(column: pa.ChunkedArray) -> Any:
    return pc.sum(column).as_py()


def check_warehouse(root: Path) -> None:
    """Checks the tables against EXPECTED.json, which Hive's own reader produced."""
    for name, expected in EXPECTED.items():
        table = read(root, name)
        assert table.num_rows == expected["rows"]
        for column, expectation in expected["columns"].items():
            values = table[column]
            assert values.null_count == expectation["nulls"], column
            if "sum" in expectation:
                assert float(total(values)) == pytest.approx(float(expectation["sum"])), column
            if "utf8_bytes" in expectation:
                texts = values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values
                lengths = pc.binary_length(texts)
                if column != "region":  # its values are escaped in the directory names
                    assert total(lengths) == expectation["utf8_bytes"], column
            if "items" in expectation:
                lengths = [None if item is None else len(item) for item in values.to_pylist()]
                assert sum(filter(None, lengths)) == expectation["items"], column
            if "true" in expectation:
                assert total(values) == expectation["true"]
            if "min" in expectation:
                ends = pc.min_max(values)
                assert str(ends["min"]).startswith(expectation["min"]), column
                assert str(ends["max"]).startswith(expectation["max"]), column


def check_no_duplicates(root: Path) -> None:
    assert len(set(read(root, "sales")["id"].to_pylist())) == EXPECTED["sales"]["rows"]
    assert len(set(read(root, "events")["event_id"].to_pylist())) == EXPECTED["events"]["rows"]


@pytest.fixture(scope="module")
def migrated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """The warehouse, migrated in small splits."""
    target = tmp_path_factory.mktemp("migrated") / "lake"
    return target, migrate(spark, WAREHOUSE, target, split_bytes=6000)


def test_all_rows_of_the_warehouse_are_migrated(migrated: tuple[Path, Report]) -> None:
    target, report = migrated
    check_warehouse(target)
    check_no_duplicates(target)
    assert report.exit_code == 0
    assert report.verified
    assert report.rows == ROWS
    assert {table.name: len(table.files) for table in report.tables} == {
        name: expectation["files"] for name, expectation in EXPECTED.items()
    }
    assert any(len(file.outputs) > 1 for table in report.tables for file in table.files)
    folders = {path.name for path in (target / "sales").iterdir()}
    assert folders == {path.name for path in (WAREHOUSE / "sales").iterdir()}


def test_executors_list_folders_and_open_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "DRIVER_FOLDERS", 0)
    monkeypatch.setattr(plan_files, "DRIVER_FILES", 0)
    report = migrate(spark, WAREHOUSE, tmp_path / "dst")
    assert (report.rows, report.exit_code, report.verified) == (ROWS, 0, True)
    check_warehouse(tmp_path / "dst")


def test_source_is_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(WAREHOUSE, source)
    shutil.copy(DATA / "damaged" / damaged()[0]["file"], source / "events" / "broken")
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in source.rglob("*")}
    contents = tree(source)
    migrate(spark, source, tmp_path / "dst", on_error="quarantine")
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in source.rglob("*")} == before
    assert tree(source) == contents


def test_files_are_parquet_with_checksums(migrated: tuple[Path, Report]) -> None:
    target, _ = migrated
    path = target / next(iter(data_files(target)))
    meta = pq.read_metadata(path)
    assert meta.row_group(0).column(0).compression == "ZSTD"
    assert "dt" not in meta.schema.names
    content = bytearray(path.read_bytes())
    start = meta.row_group(0).column(0).dictionary_page_offset or meta.row_group(0).column(0).data_page_offset
    content[start + meta.row_group(0).column(0).total_compressed_size - 3] ^= 1
    with pytest.raises(OSError, match=r"(?i)crc|checksum"):
        pq.ParquetFile(pa.BufferReader(bytes(content)), page_checksum_verification=True).read()


def test_a_second_run_converts_nothing(spark: SparkSession, migrated: tuple[Path, Report]) -> None:
    target, first = migrated
    before = data_files(target)
    times = {name: (target / name).stat().st_mtime_ns for name in before}
    report = migrate(spark, WAREHOUSE, target, split_bytes=6000)
    assert data_files(target) == before
    assert {name: (target / name).stat().st_mtime_ns for name in before} == times
    assert all(file.earlier for table in report.tables for file in table.files)
    assert (report.rows, report.exit_code, report.verified) == (first.rows, 0, True)


def test_manifest_and_report_name_every_file(migrated: tuple[Path, Report]) -> None:
    target, _ = migrated
    lines = [json.loads(line) for line in (target / "_coldframe" / "manifest.jsonl").read_text().splitlines()]
    assert {line["file"] for line in lines} == set(data_files(target))
    assert sum(line["rows"] for line in lines) == ROWS
    for line in lines:
        written = RawFingerprint(pq.read_schema(target / line["file"]))
        for batch in pq.ParquetFile(target / line["file"]).iter_batches():
            written.add(batch)
        assert line["checks"] == json.loads(json.dumps(written.to_json()))
        assert line["verified"] is True
    report = json.loads((target / "_coldframe" / "report.json").read_text())
    assert report["rows"] == ROWS
    assert report["unknown"] == ["EXPECTED.json"]
    assert not (target / "_coldframe" / "staging").exists()


class Strict(html.parser.HTMLParser):
    """Asserts that tags are closed in order."""

    VOID = frozenset({"meta", "rect", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        for name, value in attrs:
            assert name != "src", "an asset"
            assert name != "href" or str(value).startswith("report/"), "a reference to another site"
        if tag not in self.VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(target: Path) -> str:
    page = (target / "_coldframe" / "report.html").read_text()
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert {"h1", "section", "table", "title"} <= parser.seen
    assert "http:" not in page
    assert "https:" not in page
    assert "prefers-color-scheme" in page
    return page


def test_page_is_whole(migrated: tuple[Path, Report]) -> None:
    page = check_page(migrated[0])
    assert '<p class="headline good">\N{CHECK MARK} verified' in page


def with_damage(folder: Path) -> Path:
    """A table of damaged files, their undamaged original, and an unrecognisable file."""
    source = folder / "src"
    (source / "t").mkdir(parents=True)
    for entry in damaged():
        if entry["open"]["serde"] == "binary":
            shutil.copy(DATA / "damaged" / entry["file"], source / "t" / entry["file"])
    shutil.copy(DATA / "files" / "binary_groups_zlib.rc", source / "t" / "whole.rc")
    (source / "t" / "000009_0").write_bytes(b"\0" * 5000)
    (source / "t" / "empty").touch()
    (source / "t" / "_SUCCESS").touch()
    (source / "t" / ".hive-staging_x").mkdir()
    schema = damaged()[0]["open"]["schema"]
    (source / "tables.toml").write_text(f'[tables.t]\nschema = "{schema}"\nserde = "binary"\n')
    return source


def test_damage_fails_is_salvaged_or_is_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    source = with_damage(tmp_path)
    target = tmp_path / "dst"
    bad = [entry for entry in damaged() if entry["open"]["serde"] == "binary"]
    report = migrate(spark, source, target)
    assert report.exit_code == 1
    assert report.statuses == {"converted": 1, "failed": len(bad) + 1, "empty": 1}
    assert read(target, "t").num_rows == 600
    errors = {file.source: file.error or "" for file in report.failures}
    for entry in bad:
        assert "CorruptFileError" in errors[f"t/{entry['file']}"]
        assert entry["file"] in errors[f"t/{entry['file']}"]

    report = migrate(spark, source, target, on_error="quarantine")
    assert report.exit_code == 0
    assert report.statuses == {"converted": 1, "salvaged": len(bad), "quarantined": 1, "empty": 1}
    assert read(target, "t").num_rows == 600 + sum(map(survivors, bad))
    saved = {file.source: file for table in report.tables for file in table.files}
    for entry in bad:
        file = saved[f"t/{entry['file']}"]
        assert file.rows == survivors(entry)
        assert file.damage
        copy = target / str(file.quarantine)
        assert copy.read_bytes() == (source / file.source).read_bytes()
        assert json.loads(copy.with_name(copy.name + ".damage.json").read_text())["damage"] == file.damage
    assert (target / "_coldframe/quarantine/t/000009_0").is_file()
    check_page(target)
    (of_table,) = (target / "_coldframe" / "report").glob("*.html")
    page = of_table.read_text()
    assert "<h2>Damage: " in page
    assert bad[0]["file"] in page


def test_a_missing_schema_is_requested(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(WAREHOUSE, source)
    (source / "tables.toml").unlink()
    with pytest.raises(SchemaError) as caught:
        migrate(spark, source, tmp_path / "dst")
    message = str(caught.value)
    assert "[tables.sales]" in message
    assert "[tables.events]" in message
    assert 'partitions = "dt string, region string"' in message
    assert "_c7 string" in message
    assert not (tmp_path / "dst").exists()
    report = migrate(spark, source, tmp_path / "dst", untyped=True)
    assert report.rows == ROWS
    assert read(tmp_path / "dst", "events").schema.field("_c0").type == pa.binary()


def test_a_changed_source_replaces_its_files(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "src", tmp_path / "dst"
    source.joinpath("t").mkdir(parents=True)
    (source / "tables.toml").write_text('[tables.t]\nschema = "a bigint"\nserde = "binary"\n')
    path = source / "t" / "one"
    cf.write(pa.table({"a": range(1000)}), path, format="rcfile", serde="binary", record_interval=50)
    migrate(spark, source, target, split_bytes=1000)
    cf.write(pa.table({"a": range(5000, 5010)}), path, format="rcfile", serde="binary")
    cf.write(pa.table({"a": [7]}), source / "t" / "two", format="rcfile", serde="binary")
    # The first run listed the source as safe to delete.
    report = migrate(spark, source, target, archived_rows="drop")
    assert sorted(read(target, "t")["a"].to_pylist()) == [7, *range(5000, 5010)]
    assert report.rows == 11
    first = data_files(target)
    report = migrate(spark, source, target, fresh=True)
    assert not any(file.earlier for file in report.tables[0].files)
    assert len(data_files(target)) == len(first)
    assert not data_files(target).keys() & first.keys()


class Killed(BaseException):
    """A kill, raised inside the process."""


KILLED = """
import os, signal, sys
from coldframe.pipeline import __main__ as script
from coldframe.pipeline.work import committing
from coldframe.pipeline.state.journal import Journal

committing.BATCH = 1
commit, commits = Journal.commit, 0

def killing(self, entries, drops=()):
    global commits
    commit(self, entries, drops)
    commits += 1
    if commits == 3:
        os.killpg(0, signal.SIGKILL)

Journal.commit = killing
sys.exit(script.main())
"""


def test_a_run_killed_in_the_middle_is_continued(spark: SparkSession, tmp_path: Path) -> None:
    """A real `kill -9` of the whole process group, with Spark, as soon as three files are done."""
    target = tmp_path / "dst"
    command = [sys.executable, "-c", KILLED, str(WAREHOUSE), str(target), "--master", "local[1]"]
    command += ["--target-file-size", "0"]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert process.wait() == -signal.SIGKILL
    with (target / "_coldframe" / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the last process of the group has closed it
    report = migrate(spark, WAREHOUSE, target)
    assert sum(file.earlier for table in report.tables for file in table.files) == 3
    assert report.exit_code == 0
    check_warehouse(target)
    check_no_duplicates(target)


def test_a_run_killed_between_files_is_continued(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "dst"
    commits = 0
    commit = Journal.commit

    def killing(self: Journal, entries: Any, drops: Any = ()) -> None:
        nonlocal commits
        commits += 1
        if commits == 6:
            raise Killed
        commit(self, entries, drops)

    monkeypatch.setattr("coldframe.pipeline.work.committing.BATCH", 1)
    monkeypatch.setattr(Journal, "commit", killing)
    with pytest.raises(Killed):
        migrate(spark, WAREHOUSE, target, target_file_bytes=0)
    monkeypatch.undo()
    report = migrate(spark, WAREHOUSE, target)
    assert sum(file.earlier for table in report.tables for file in table.files) == 5
    check_warehouse(target)
    check_no_duplicates(target)


class LyingSink(ParquetSink):
    """Writes other values than the caller passes."""

    def convert(self, rows: Any, shape: Any, path: str, *given: Any, **named: Any) -> dict[str, Any]:
        converted = super().convert(rows, shape, path, *given, **named)
        table = pq.read_table(path)
        pq.write_table(table.set_column(0, "a", pc.add(table["a"], 1)), path)
        return converted


def test_a_wrongly_written_file_is_not_committed(tmp_path: Path) -> None:
    cf.write(pa.table({"a": range(100)}), tmp_path / "x", format="rcfile", serde="binary")
    (split,) = cf.open(tmp_path / "x", schema="a bigint", serde="binary").splits()
    schema, left = pa.schema([("a", pa.int64())]), list[str]()
    for sink, verified in ((ParquetSink(), True), (LyingSink(), False)):
        task = Task("k", 0, split, schema, None, (), str(tmp_path / "staged.parquet"), sink, "raise", "us")
        outcome, other = run_task(task), run_task(task)
        assert (outcome.failure is None) is verified
        assert len(outcome.files) == verified
        if verified:
            assert Path(outcome.files[0].staged).exists()
            assert outcome.files != other.files  # each attempt has its own file
        else:
            assert [path.name for path in tmp_path.glob("staged-*")] == left
        left = [path.name for path in tmp_path.glob("staged-*")]
        if not verified:
            assert outcome.failure is not None
            assert "column a: checksum" in outcome.failure.error
            assert outcome.failure.error.startswith("VerificationError")


def test_a_dead_worker_fails_only_its_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deadly(ParquetSink):
        def begin(self, *given: Any, **named: Any) -> Any:
            target = super().begin(*given, **named)

            class Killing:
                finish = target.finish

                def add(self, decoded: Any) -> None:
                    if decoded.print.to_json()["columns"]["a"]["min"] == 200:
                        os.kill(os.getpid(), signal.SIGKILL)
                    target.add(decoded)

            return Killing()

    source = tmp_path / "src"
    (source / "t").mkdir(parents=True)
    for part in range(4):
        rows = pa.table({"a": range(part * 100, part * 100 + 100)})
        cf.write(rows, source / "t" / str(part), format="rcfile", serde="binary")
    (source / "tables.toml").write_text('[tables.t]\nschema = "a bigint"\nserde = "binary"\n')
    deadly = Target("parquet", Deadly())
    monkeypatch.setattr("coldframe.pipeline.find_target", lambda *_, **__: deadly)
    monkeypatch.setattr(pickle, "dumps", cloudpickle.dumps)  # which pickles the class as well
    report = migrate(spark, source, tmp_path / "dst")
    assert [file.source for file in report.failures] == ["t/2"]
    assert "worker" in (report.failures[0].error or "")
    assert read(tmp_path / "dst", "t").num_rows == 300


@pytest.mark.parametrize("target", ["delta", "iceberg"])
def test_table_formats(spark: SparkSession, tmp_path: Path, target: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    source, goal = tmp_path / "src", tmp_path / "dst"
    shutil.copytree(WAREHOUSE, source)
    late = source / "sales" / "dt=2014-01-03"
    late.rename(tmp_path / "late")

    def ids() -> list[int]:
        if target == "delta":
            from deltalake import DeltaTable

            table = pa.table(DeltaTable(goal / "sales").to_pyarrow_table())
        else:
            from coldframe.pipeline.sink.iceberg import open_catalog

            table = open_catalog(str(goal)).load_table(("migrated", "sales")).scan().to_arrow()
        assert table.schema.field("dt").type == pa.date32()
        assert table["region"].null_count == sum(region is None for region in table["region"].to_pylist())
        assert "asia/pacific" in table["region"].to_pylist()
        identifiers: list[int] = table["id"].to_pylist()
        return identifiers

    report = migrate(spark, source, goal, to=target)
    assert (report.exit_code, [table.error for table in report.tables]) == (0, [None, None])
    some = ids()
    assert 0 < len(some) < EXPECTED["sales"]["rows"]
    (tmp_path / "late").rename(late)
    migrate(spark, source, goal, to=target)
    assert len(ids()) == len(set(ids())) == EXPECTED["sales"]["rows"]
    # A replaced file is not doubled.
    changed = next(path for path in (source / "sales").rglob("000000_0") if path.is_file())
    os.utime(changed, ns=(1, 1))
    report = migrate(spark, source, goal, to=target)
    assert report.exit_code == 0
    assert sorted(ids()) == sorted(set(ids()))
    assert len(ids()) == EXPECTED["sales"]["rows"]


def test_invalid_targets(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="avro"):
        migrate(spark, WAREHOUSE, tmp_path / "x", to="avro")
    with pytest.raises(UnsupportedError, match="microseconds"):
        migrate(spark, WAREHOUSE, tmp_path / "x", to="delta", timestamp_unit="ns")
    with pytest.raises(SchemaError, match="contain each other"):
        migrate(spark, WAREHOUSE, WAREHOUSE / "sales")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").touch()
    with pytest.raises(UnsupportedError, match="empty"):
        migrate(spark, WAREHOUSE, tmp_path / "full")


def test_tables_are_made_by_directory_and_by_entry(tmp_path: Path) -> None:
    inventory = take_inventory(str(WAREHOUSE))
    specs = load_tables(str(WAREHOUSE / "tables.toml"))
    tables = {table.name: table for table in find_tables(inventory, specs)}
    assert set(tables) == {"sales", "events"}
    assert [(f.name, f.type) for f in tables["sales"].partition_fields] == [
        ("dt", pa.date32()),
        ("region", pa.string()),
    ]
    assert {table.name: len(table.files) for table in find_tables(inventory, [])} == {
        "sales": 10,
        "events": 3,
    }
    assert {file.keys[0][0] for file in tables["sales"].files} == {"dt"}
    for text, message in (
        ("[tables.t]\npath = '../x'", "below the source"),
        ("[tables.t]\npartitions = 'dt blob'", "blob"),
        ("[other]\nx = 1", "tables.NAME"),
        ("[tables", "tables.toml"),
    ):
        (tmp_path / "tables.toml").write_text(text)
        with pytest.raises(SchemaError, match=message):
            load_tables(str(tmp_path / "tables.toml"))


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    command.add_parsers(parser.add_subparsers())
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["migrate", str(WAREHOUSE), str(tmp_path / "x"), "--split-bytes", "0"])
    assert "split-bytes" in capsys.readouterr().err


def test_script(tmp_path: Path) -> None:
    """The whole migration from the shell."""
    command = [sys.executable, "-m", "coldframe", "migrate", str(WAREHOUSE), str(tmp_path / "dst")]
    done = subprocess.run(
        [*command, "--master", "local[1]", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # A slow machine prints progress lines as well.
    assert [line for line in done.stderr.splitlines() if " left, at " not in line] == []
    assert json.loads(done.stdout)["rows"] == ROWS
    check_warehouse(tmp_path / "dst")


def test_without_work_no_spark_is_started(migrated: tuple[Path, Report], tmp_path: Path) -> None:
    def never() -> SparkSession:
        pytest.fail("Spark was started")

    assert migrate(never, WAREHOUSE, migrated[0], split_bytes=6000).rows == ROWS
    with pytest.raises(NotFoundError, match="no such directory"):
        migrate(never, tmp_path / "nowhere", tmp_path / "dst")


def test_a_dead_jvm_is_replaced(tmp_path: Path) -> None:
    """The JVM is killed in the middle of the work: the driver starts another JVM and continues."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", JVM_KILLED, str(WAREHOUSE), str(tmp_path / "dst")),
            *("--master", "local[2]", "--target-file-size", "0"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "killed the JVM" in done.stdout
    check_warehouse(tmp_path / "dst")
    check_no_duplicates(tmp_path / "dst")
    assert not (tmp_path / "dst/_coldframe/staging").exists()


JVM_KILLED = """
import os, signal, sys
from pyspark import SparkContext
from coldframe.pipeline import __main__ as script
from coldframe.pipeline.work import committing
from coldframe.pipeline.state.journal import Journal

committing.BATCH = 1
commit, commits = Journal.commit, 0

def killing(self, entries, drops=()):
    global commits
    commit(self, entries, drops)
    commits += 1
    if commits == 3:
        # The launcher's whole group: the shell script, and Java with it.
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
        print("killed the JVM", flush=True)

Journal.commit = killing
sys.exit(script.main())
"""
