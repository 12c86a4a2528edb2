"""Target files that merge several small sources, or hold a part of a large source."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate, rewritten, scanning, torn

import coldframe as cf
from coldframe.file import Split
from coldframe.pipeline import audit, dry_run
from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.grouping import grouped
from coldframe.pipeline.records import Failure, PlannedFile, SourceFile
from coldframe.pipeline.sink import sinks
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.state.journal import Journal, read_state
from coldframe.pipeline.work import convert, merging
from coldframe.pipeline.work.convert import Task
from coldframe.pipeline.work.merging import MergeTask


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """Five small files in a partition, and one file in another."""
    estate = Estate(tmp_path)
    for number in range(5):
        estate.orc(f"t/p=1/{number}", {"a": [number * 10, number * 10 + 1]})
    estate.orc("t/p=2/5", {"a": [50]})
    return estate


ALL = [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50]


class Killed(BaseException):
    """A kill, raised inside the process."""


def manifest(estate: Estate) -> dict[str, dict[str, Any]]:
    lines = (estate.target / "_coldframe/manifest.jsonl").read_text().splitlines()
    return {line["source"]: line for line in map(json.loads, lines)}


# Merged sources.


def test_small_sources_of_a_partition_are_merged(estate: Estate) -> None:
    assert [table.tasks for table in dry_run(estate.source, estate.target, Options()).tables] == [2]
    report = estate.migrate()
    assert (report.exit_code, report.verified, report.rows) == (0, True, 11)
    first, second = estate.files("t")
    assert (first.parent.name, second.parent.name) == ("p=1", "p=2")
    assert pq.read_table(first, partitioning=None)["a"].to_pylist() == ALL[:10]
    # The journal has the source of each row.
    lines = manifest(estate)
    for number in range(5):
        line = lines[f"t/p=1/{number}"]
        assert (line["first"], line["rows"], line["of"]) == (2 * number, 2, 10)
        assert line["checks"]["columns"]["a"]["min"] == number * 10
    assert "of" not in lines["t/p=2/5"]
    sizes = sum(file.bytes_out for file in report.tables[0].files)
    assert sizes == pytest.approx(first.stat().st_size + second.stat().st_size, abs=5)
    result = audit(estate.target, deep=True)
    assert (result.faults, result.files, result.rows) == ([], 2, 11)
    before = estate.tree()
    again = estate.migrate()
    assert all(file.earlier for file in again.tables[0].files)
    assert estate.tree() == before
    # A new source gets its own file; the merged file stays.
    estate.orc("t/p=1/9", {"a": [90]})
    assert estate.migrate().exit_code == 0
    assert estate.tree().items() > before.items()
    assert estate.values() == [*ALL, 90]


def test_merging_can_be_turned_off(estate: Estate) -> None:
    assert estate.migrate(target_file_bytes=0).exit_code == 0
    assert len(estate.files("t")) == 6
    with pytest.raises(ValueError, match="target_file_bytes"):
        estate.migrate(target_file_bytes=-1)


def test_a_vanished_source_removes_exactly_its_rows(estate: Estate) -> None:
    estate.migrate()
    before = estate.tree()
    (estate.source / "t/p=1/2").unlink()
    for policy, code in (("fail", 1), ("keep", 0)):
        assert estate.migrate(on_vanished=policy).exit_code == code
        assert estate.tree() == before
    report = estate.migrate(on_vanished="remove")
    assert (report.exit_code, report.verified) == (0, True)
    assert estate.values() == [value for value in ALL if value not in (20, 21)]
    assert len(estate.files("t")) == 2
    # The other partition was not touched.
    assert len(estate.tree().keys() & before.keys()) == 1
    assert audit(estate.target, deep=True).faults == []


def test_a_changed_source_is_replaced_within_its_file(estate: Estate) -> None:
    estate.migrate()
    estate.orc("t/p=1/3", {"a": [333]})
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (0, True)
    assert estate.values() == sorted([*(value for value in ALL if value not in (30, 31)), 333])
    assert len(estate.files("t")) == 2
    assert {file.source: file.earlier for file in report.tables[0].files}["t/p=2/5"] is True


def test_kept_rows_of_a_vanished_source_block_a_rewrite_of_their_file(estate: Estate) -> None:
    """The run keeps rows of a vanished source, which share a file with a changed source."""
    estate.migrate()
    before = estate.tree()
    (estate.source / "t/p=1/2").unlink()
    estate.orc("t/p=1/3", {"a": [333]})
    estate.orc("t/p=2/6", {"a": [60]})
    report = estate.migrate(on_vanished="keep")
    assert [file.source for file in report.failures] == ["t/p=1/3"]
    assert "share a file with those of t/p=1/2, which is gone" in str(report.failures[0].error)
    assert estate.values() == [*ALL, 60]
    assert estate.tree().items() > before.items()
    assert estate.migrate(on_vanished="remove").exit_code == 0
    assert estate.values() == sorted([*(value for value in ALL if value // 10 not in (2, 3)), 60, 333])


def test_a_damaged_source_does_not_affect_the_others(estate: Estate) -> None:
    path = estate.source / "t/p=1/2"
    content = bytearray(path.read_bytes())
    content[8:40] = bytes(32)
    path.write_bytes(content)
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/p=1/2"]
    assert "p=1/2" in str(report.failures[0].error)
    assert estate.values() == [value for value in ALL if value not in (20, 21)]
    assert len(estate.files("t")) == 2
    assert audit(estate.target, deep=True).faults == []


def test_a_source_that_changes_while_it_is_read_is_left_out(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meddling(split: Split, batches: Any) -> Any:
        if split.path.endswith("p=1/2"):
            estate.orc("t/p=1/2", {"a": [222]})
        return batches

    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", scanning(meddling))
        report = estate.migrate()
    assert {file.source: file.status for file in report.failures} == {"t/p=1/2": "changed"}
    assert estate.values() == [value for value in ALL if value not in (20, 21)]
    assert estate.migrate().exit_code == 0
    assert estate.values() == sorted([*(value for value in ALL if value not in (20, 21)), 222])


def test_sources_that_memory_should_not_hold_are_read_twice(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "decode", functools.partial(merging.decode, most_bytes=0))
    report = estate.migrate()
    assert (report.exit_code, report.verified, report.rows) == (0, True, 11)
    assert [len(estate.files("t")), estate.values()] == [2, ALL]
    listed = manifest(estate)
    assert [(listed[f"t/p=1/{n}"]["first"], listed[f"t/p=1/{n}"]["rows"]) for n in range(5)] == [
        (n * 2, 2) for n in range(5)
    ]


def test_a_source_that_differs_when_it_is_read_again_fails_its_file(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def differing(split: Split, batches: Any) -> Any:
        seen.append(split.path)
        again = seen.count(split.path) > 1 and split.path.endswith("p=1/2")
        return [batch.slice(1) for batch in batches] if again else batches

    monkeypatch.setattr(merging, "decode", functools.partial(merging.decode, most_bytes=0))
    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", scanning(differing))
        report = estate.migrate()
    assert len(report.failures) == 5
    assert all("reading it twice gave different rows" in str(failure.error) for failure in report.failures)
    assert estate.values() == [50]
    assert estate.migrate().exit_code == 0
    assert estate.values() == ALL


def test_a_reader_that_loses_rows_of_a_source_fails_that_source(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(split: Split, batches: Any) -> Any:
        return [batch.slice(1) for batch in batches] if split.path.endswith("p=1/2") else batches

    monkeypatch.setattr(convert, "raw_scan", scanning(losing))
    report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/p=1/2"]
    assert "declares 2 rows, but 1 were decoded" in str(report.failures[0].error)
    assert estate.values() == [value for value in ALL if value not in (20, 21)]


def test_a_wrong_writer_fails_all_its_files(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubling:
        """Writes all rows twice."""

        def __init__(self, target: Any) -> None:
            self.target = target

        def add(self, decoded: Any) -> None:
            self.target.add(decoded)
            self.target.add(decoded)

        def finish(self) -> Any:
            return self.target.finish()

    begin, alone = sinks.ParquetSink.begin, sinks.ParquetSink.convert

    def doubling(sink: Any, rows: Any, shape: Any, path: str, *given: Any) -> dict[str, Any]:
        converted = alone(sink, rows, shape, path, *given)
        rewritten(path, lambda table: pa.concat_tables([table, table]))
        return converted

    with monkeypatch.context() as patch:
        patch.setattr(sinks.ParquetSink, "begin", lambda *given: Doubling(begin(*given)))
        patch.setattr(sinks.ParquetSink, "convert", doubling)
        report = estate.migrate()
    assert len(report.failures) == 6
    assert "rows: read 10, written 20" in str(report.failures[0].error)
    assert estate.files("t") == []
    assert not (estate.target / "_coldframe/staging").exists()


def test_a_failing_source_keeps_the_earlier_file_for_all_its_sources(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.migrate()
    before = estate.tree()
    estate.orc("t/p=1/3", {"a": [333]})
    with monkeypatch.context() as patch:
        patch.setattr(convert, "raw_scan", torn("p=1/1"))
        report = estate.migrate()
    assert [file.source for file in report.failures] == ["t/p=1/1"]
    assert "its rows share a file with those of others" in str(report.tables[0].error)
    assert estate.tree() == before
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (0, True)
    assert estate.values() == sorted([*(value for value in ALL if value not in (30, 31)), 333])
    assert audit(estate.target, deep=True).faults == []


def test_a_lost_file_is_rebuilt_from_all_its_sources(estate: Estate) -> None:
    estate.migrate()
    estate.files("t")[0].unlink()
    assert [fault.kind for fault in audit(estate.target).faults] == ["missing"]
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (0, True)
    assert estate.values() == ALL
    assert sum(file.earlier for file in report.tables[0].files) == 1


def test_a_deep_audit_names_the_source_whose_rows_differ(estate: Estate) -> None:
    estate.migrate()
    (path, _), home = estate.files("t"), estate.target / "_coldframe"
    size = path.stat().st_size
    table = pq.read_table(path, partitioning=None)
    values = table["a"].to_pylist()
    values[6] = 31
    pq.write_table(
        pa.table({"a": pa.array(values, table["a"].type)}), path, compression="zstd", version="2.6",
        write_page_checksum=True, store_schema=True,
    )  # fmt: skip
    # As if the reader had been wrong from the start: the journal has this file's checksum.
    import hashlib

    estate.unchain()
    digest, length = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    for segment in (home / "state").iterdir():
        events = []
        for event in map(json.loads, segment.read_text().splitlines()):
            for part in event.get("entry", {}).get("parts", []):
                if part["bytes"] == size and part["of"]:
                    part.update(bytes=length, sha256=digest)
            events.append(json.dumps(event) + "\n")
        segment.write_text("".join(events))
    assert audit(estate.target).faults == []
    (fault,) = audit(estate.target, deep=True).faults
    assert (fault.kind, fault.source) == ("unlike", "t/p=1/3")


@pytest.mark.parametrize("target", ["delta", "iceberg", "orc"])
def test_other_kinds_of_targets_merge_small_sources_too(estate: Estate, target: str) -> None:
    if target != "orc":
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])

    def ids() -> list[int]:
        if target == "delta":
            from deltalake import DeltaTable

            return sorted(pa.table(DeltaTable(estate.target / "t").to_pyarrow_table())["a"].to_pylist())
        if target == "iceberg":
            from coldframe.pipeline.sink.iceberg import open_catalog

            rows = open_catalog(str(estate.target)).load_table("migrated.t").scan().to_arrow()
            return sorted(rows["a"].to_pylist())
        import coldframe as cf

        paths = sorted((estate.target / "t").rglob("*.orc"))
        return sorted(value for path in paths for value in cf.read_table(path)["a"].to_pylist())

    report = estate.migrate(to=target)
    assert (report.exit_code, report.verified, report.tables[0].error) == (0, True, None)
    assert ids() == ALL
    (estate.source / "t/p=1/2").unlink()
    estate.orc("t/p=1/3", {"a": [333]})
    report = estate.migrate(to=target, on_vanished="remove")
    assert (report.exit_code, report.verified, report.tables[0].error) == (0, True, None)
    assert ids() == sorted([*(value for value in ALL if value // 10 not in (2, 3)), 333])
    assert audit(estate.target, deep=True).faults == []
    if target == "delta":
        from deltalake import DeltaTable

        actions = DeltaTable(estate.target / "t").get_add_actions(flatten=True)
        assert sorted(pa.table(actions)["num_records"].to_pylist()) == [1, 7]


def test_groups_have_a_single_folder_and_a_good_size() -> None:
    def planned(name: str, size: int, parts: int = 1) -> PlannedFile:
        file = SourceFile(f"/s/{name}", name, size, 0, "orc")
        return PlannedFile(file, name, [(part, 0, 1, 1) for part in range(parts)])

    files = [
        *(planned(f"t/p=1/{number}", 100) for number in range(5)),
        planned("t/p=1/big", 600),
        planned("t/p=1/cut", 10, parts=2),
        planned("t/p=1/x/1", 100),
        *(planned(f"t/p=2/{number}", 10) for number in range(3)),
    ]
    shared = {"t/p=2/0": "old", "t/p=2/2": "old"}
    groups = grouped(files, 300, lambda source: shared.get(source, ""))
    names = sorted([piece.file.relative for piece in group] for group in groups)
    assert names == [
        ["t/p=1/0", "t/p=1/1", "t/p=1/2"],
        ["t/p=1/3", "t/p=1/4", "t/p=1/x/1"],
        ["t/p=1/big"],
        ["t/p=1/cut"],
        ["t/p=2/0", "t/p=2/2"],
        ["t/p=2/1"],
    ]
    assert [len(group) for group in grouped(files, 0, lambda _: "")] == [1] * len(files)


def test_a_source_that_kills_workers_is_isolated_by_halving() -> None:
    sink, schema = sinks.ParquetSink(), pa.schema([("a", pa.int64())])
    tasks = tuple(
        Task(str(n), 0, None, schema, None, (), f"/x/{n}.parquet", sink, "raise", "us") for n in range(5)
    )
    merge = MergeTask(tasks, "/x/0.parquet", "0")
    halves = merge.apart()
    assert [[task.key for task in half.tasks] for half in halves] == [["0", "1"], ["2", "3", "4"]]
    single = halves[0].apart()[0]
    assert single.apart() == []
    assert [outcome.failure for outcome in single.given_up("gone").outcomes] == [Failure("gone")]


# Large sources that become several files.


def test_a_split_becomes_several_files_of_a_good_size(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 400_000
    estate.orc("u/1", {"a": [n * 2654435761 % 2**32 for n in range(count)]})
    monkeypatch.setattr(sinks, "ROW_GROUP_ROWS", 50_000)
    assert estate.migrate(target_file_bytes=1 << 20, include=["u"]).exit_code == 0
    sizes = [path.stat().st_size for path in estate.files("u")]
    assert len(sizes) > 1
    assert max(sizes) < 1.6 * (1 << 20)
    assert sum(pq.read_metadata(path).num_rows for path in estate.files("u")) == count
    report = estate.migrate(include=["u"])
    assert (report.rows, report.verified) == (count, True)
    assert len(report.tables[0].files[0].outputs) == len(sizes)
    assert audit(estate.target, deep=True).faults == []


def test_orc_files_are_split_too(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1_500_000
    estate.orc("u/1", {"a": [n * 2654435761 % 2**32 for n in range(count)]})
    small = Target("orc", sinks.ColdframeSink("orc", (("stripe_size", 256 << 10),)))
    monkeypatch.setattr("coldframe.pipeline.find_target", lambda *_, **__: small)
    assert estate.migrate(to="orc", target_file_bytes=1 << 20, include=["u"]).exit_code == 0
    files = sorted(estate.target.glob("u/*.orc"))
    assert len(files) > 2
    sizes = [path.stat().st_size for path in files]
    # The writer buffers a mebibyte.
    assert max(sizes) < 2.5 * (1 << 20)
    assert sum(cf.open(path).num_rows for path in files) == count
    report = estate.migrate(to="orc", include=["u"])
    assert (report.rows, report.verified) == (count, True)
    assert audit(estate.target, deep=True).faults == []


# Large.


def test_a_kill_in_a_large_file_loses_only_unfinished_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import coldframe as cf

    estate = Estate(tmp_path)
    path = estate.source / "t" / "large"
    path.parent.mkdir()
    cf.write(pa.table({"a": range(40_000)}), path, format="orc", stripe_rows=5_000)
    converted: list[int] = []
    real, keep = Task.run, Journal.keep_units

    def counting(self: Task) -> dict[str, Any]:
        converted.append(self.number)
        return real(self)

    def killing(self: Journal, units: Any) -> None:
        keep(self, units)
        if len(converted) == 5:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("coldframe.pipeline.work.committing.BATCH_SECONDS", -1.0)
        patch.setattr(Task, "run", counting)
        patch.setattr(Journal, "keep_units", killing)
        with pytest.raises(Killed):
            estate.migrate(split_bytes=1)
        assert estate.files("t") == []
        assert converted == [0, 1, 2, 3, 4]
        state, _ = read_state(Destination(str(estate.target)))
        assert sorted(state.units["t/large"]) == [0, 1, 2, 3, 4]
        report = estate.migrate(split_bytes=1)
    assert converted == [0, 1, 2, 3, 4, 5, 6, 7]
    assert (report.exit_code, report.verified, report.rows) == (0, True, 40_000)
    assert estate.values() == list(range(40_000))
    state, _ = read_state(Destination(str(estate.target)))
    assert state.units == {}
    assert audit(estate.target, deep=True).faults == []
    assert not (estate.target / "_coldframe/staging").exists()


@pytest.mark.parametrize("how", ["changed", "cut otherwise", "gone", "lost"])
def test_parts_of_another_file_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    import coldframe as cf

    estate = Estate(tmp_path)
    path = estate.source / "t" / "large"
    path.parent.mkdir()
    cf.write(pa.table({"a": range(20_000)}), path, format="orc", stripe_rows=5_000)
    estate.orc("t/other", {"a": [-1]})
    keep, calls = Journal.keep_units, 0

    def killing(self: Journal, units: Any) -> None:
        nonlocal calls
        keep(self, units)
        calls += 1
        if calls == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("coldframe.pipeline.work.committing.BATCH_SECONDS", -1.0)
        patch.setattr(Journal, "keep_units", killing)
        with pytest.raises(Killed):
            estate.migrate(split_bytes=1)
    rows, options = list(range(20_000)), {"split_bytes": 1}
    if how == "changed":
        rows = list(range(70_000, 90_000))
        cf.write(pa.table({"a": rows}), path, format="orc", stripe_rows=5_000)
    elif how == "cut otherwise":
        options = {}
    elif how == "gone":
        path.unlink()
        rows = []
    else:
        next((estate.target / "_coldframe/staging").rglob("*.parquet")).unlink()
    report = estate.migrate(**options)
    assert (report.exit_code, report.verified) == (0, True)
    assert estate.values() == sorted([-1, *rows])
    assert audit(estate.target, deep=True).faults == []
    assert not (estate.target / "_coldframe/staging").exists()
