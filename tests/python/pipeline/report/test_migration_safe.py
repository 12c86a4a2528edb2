"""Which sources a migration lists as safe to delete, and which it must not list."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from estates import Estate, scanning

import coldframe as cf
from coldframe._coldframe import tables
from coldframe.cli import main
from coldframe.errors import SchemaError
from coldframe.pipeline import audit
from coldframe.pipeline.report import safe_list
from coldframe.pipeline.report.verdict import Partial
from coldframe.pipeline.sink import sinks
from coldframe.pipeline.work import convert


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path)


def torn(path: Path) -> None:
    """Damages a file so that no row of it survives."""
    content = bytearray(path.read_bytes())
    content[3:-20] = bytes(len(content) - 23)
    path.write_bytes(bytes(content))


# Only damaged sources are quarantined.


def quarantined(estate: Estate) -> bool:
    return (estate.target / "_coldframe/quarantine").exists()


def test_incompatible_types_are_not_quarantined(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.orc("t/2", {"a": ["x"]})
    report = estate.migrate(on_error="quarantine")
    assert {file.status for file in report.tables[0].files} == {"failed"}
    assert (report.exit_code, report.safe_to_delete, quarantined(estate)) == (1, 0, False)


def test_a_healthy_file_that_is_decoded_wrong_is_not_quarantined(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.orc("t/1", {"a": [1, 2, 3]})
    monkeypatch.setattr(
        convert, "raw_scan", scanning(lambda _, batches: [batch.slice(1) for batch in batches])
    )
    report = estate.migrate(on_error="quarantine")
    assert (report.exit_code, report.statuses, quarantined(estate)) == (1, {"failed": 1}, False)


def test_a_full_disk_is_not_quarantined(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    estate.orc("t/1", {"a": [1]})

    def raise_disk_full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sinks.ParquetSink, "convert", raise_disk_full)
    report = estate.migrate(on_error="quarantine")
    assert (report.exit_code, report.statuses, quarantined(estate)) == (1, {"failed": 1}, False)


def test_a_written_file_that_cannot_be_read_back_is_not_quarantined(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.orc("t/1", {"a": [1]})
    write = sinks.ColdframeSink.convert

    def damaging(sink: Any, rows: Any, shape: Any, path: str, *given: Any) -> dict[str, Any]:
        answer = write(sink, rows, shape, path, *given)
        torn(Path(path))
        return answer

    monkeypatch.setattr(sinks.ColdframeSink, "convert", damaging)
    report = estate.migrate(to="orc", on_error="quarantine")
    assert (report.exit_code, report.statuses, quarantined(estate)) == (1, {"failed": 1}, False)
    assert "what was written" in str(report.failures[0].error)


def test_damage_is_quarantined_and_never_called_verified(estate: Estate) -> None:
    kept = estate.orc("t/1", {"a": [1]})
    torn(estate.orc("t/2", {"a": pa.array(range(1000))}))
    report = estate.migrate(on_error="quarantine")
    assert (report.exit_code, report.statuses) == (0, {"converted": 1, "quarantined": 1})
    assert isinstance(report.verdict, Partial)
    assert report.verdict.text == "PARTIAL: 1 damaged file gave no rows"
    assert (estate.target / "_coldframe/quarantine/t/2").exists()
    assert report.safe_to_delete == 1
    assert estate.safe() == [str(kept)]
    page = (estate.target / "_coldframe/report.html").read_text()
    assert 'class="good"' not in page
    assert "verified" not in page.lower()


def test_a_source_overwritten_with_garbage_is_damage_of_its_table(estate: Estate) -> None:
    path = estate.orc("t/1", {"a": [1]})
    assert estate.migrate().exit_code == 0
    path.write_bytes(b"not a file of ours. " * 8)
    report = estate.migrate()
    assert (report.exit_code, report.unknown, estate.safe()) == (1, [], [])
    assert [(file.source, file.status) for file in report.failures] == [("t/1", "failed")]
    assert "not of the format orc" in str(report.failures[0].error)
    assert estate.values() == [1]


# The state of a target is what its own log says now.


def delete(estate: Estate, to: str, condition: str) -> None:
    if to == "delta":
        from deltalake import DeltaTable

        DeltaTable(estate.target / "t").delete(condition)
    else:
        from coldframe.pipeline.sink.iceberg import open_catalog

        open_catalog(str(estate.target)).load_table(("migrated", "t")).delete(condition)


@pytest.mark.parametrize("to", ["delta", "iceberg"])
@pytest.mark.parametrize(("condition", "left"), [("a = 3", 19), ("a < 10", 10), ("a >= 0", 0)])
def test_sources_of_rows_deleted_by_other_writers_are_not_safe(
    estate: Estate, to: str, condition: str, left: int
) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    for number in range(2):
        estate.orc(f"t/{number}", {"a": list(range(number * 10, number * 10 + 10))})
    assert estate.migrate(to=to, target_file_bytes=0).safe_to_delete == 2
    delete(estate, to, condition)
    result = audit(estate.target, deep=True)
    checked = result.tables[0]
    assert (result.exit_code, checked["rows_now"], checked["rows_verified"]) == (1, left, 20)
    report = estate.migrate(to=to, target_file_bytes=0)
    assert (report.exit_code, report.verified, report.tables[0].rows_now, estate.safe()) == (
        1,
        False,
        left,
        [],
    )
    assert f"{20 - left} row" in report.verdict.text
    # With on_foreign_changes="append", the run only reports the deleted rows.
    known = estate.migrate(to=to, target_file_bytes=0, on_foreign_changes="append")
    assert (known.exit_code, known.verified, estate.safe()) == (0, False, [])


@pytest.mark.parametrize("to", ["delta", "iceberg"])
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_a_table_whose_foreign_file_is_missing_or_truncated_cannot_be_read(
    estate: Estate, to: str, how: str
) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    estate.orc("t/1", {"a": [1, 2]})
    assert estate.migrate(to=to).exit_code == 0
    ours = set((estate.target / "t").rglob("*.parquet"))
    if to == "delta":
        import deltalake

        deltalake.write_deltalake(estate.target / "t", pa.table({"a": [3]}), mode="append")
    else:
        from coldframe.pipeline.sink.iceberg import open_catalog

        open_catalog(str(estate.target)).load_table(("migrated", "t")).append(pa.table({"a": [3]}))
    report = estate.migrate(to=to, on_foreign_changes="append")
    assert (report.exit_code, len(estate.safe())) == (0, 1)
    (theirs,) = set((estate.target / "t").rglob("*.parquet")) - ours
    if how == "gone":
        theirs.unlink()
    else:
        theirs.write_bytes(theirs.read_bytes()[:-100])
    report = estate.migrate(to=to, on_foreign_changes="append")
    assert (report.exit_code, len(report.tables[0].missing), estate.safe()) == (1, 1, [])
    assert {fault.kind for fault in audit(estate.target).faults} >= {
        "missing" if how == "gone" else "resized"
    }


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_a_table_without_its_log_cannot_be_read(estate: Estate, to: str, capsys: Any) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[to])
    estate.orc("t/1", {"a": [1, 2]})
    assert estate.migrate(to=to).exit_code == 0
    assert main(["audit", str(estate.target)]) == 0
    if to == "delta":
        shutil.rmtree(estate.target / "t/_delta_log")
    else:
        (estate.target / "_coldframe/iceberg.db").unlink()
    assert main(["audit", str(estate.target)]) == 1
    assert "own log or metadata is gone" in capsys.readouterr().out


def test_an_audit_without_a_journal_is_an_error(estate: Estate, capsys: Any) -> None:
    estate.orc("t/1", {"a": [1, 2]})
    assert estate.migrate().exit_code == 0
    shutil.rmtree(estate.target / "_coldframe/state")
    assert main(["audit", str(estate.target)]) == 1
    assert "FAILED: 1 journal is gone" in capsys.readouterr().out


def test_a_run_without_the_journal_writes_nothing_beside_existing_tables(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1, 2]})
    assert estate.migrate().exit_code == 0
    before = estate.tree()
    shutil.rmtree(estate.target / "_coldframe/state")
    with pytest.raises(cf.UnsupportedError, match=r"_coldframe/state, which records .* is gone"):
        estate.migrate()
    assert estate.tree() == before


# A listed source is the file that was read.


def list_of(estate: Estate) -> Path:
    return estate.target / "_coldframe/safe-to-delete.txt"


def rewritten(path: Path, rows: Any) -> None:
    """Replaces a file by another of the same size and time, with other rows."""
    before = path.stat()
    cf.write(pa.table(rows), path, format="orc")
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_file_of_the_same_size_and_time_is_converted_again(estate: Estate) -> None:
    path = estate.orc("t/1", {"a": [1, 2, 3]})
    assert estate.migrate().safe_to_delete == 1
    rewritten(path, {"a": [1, 2, 4]})
    report = estate.migrate()
    assert (report.exit_code, estate.values(), estate.safe()) == (0, [1, 2, 4], [str(path)])


def test_a_copy_with_the_same_time_is_not_converted_again(estate: Estate) -> None:
    path = estate.orc("t/1", {"a": [1, 2, 3]})
    assert estate.migrate().exit_code == 0
    shutil.copy2(path, path.with_name(".copy"))
    os.replace(path.with_name(".copy"), path)
    report = estate.migrate()
    assert [file.earlier for file in report.tables[0].files] == [True]
    assert estate.safe() == [str(path)]


def test_a_change_in_the_middle_of_a_large_file_is_noticed(estate: Estate) -> None:
    path = estate.source / "t/1"
    path.parent.mkdir()
    rows = pa.table({"s": [os.urandom(1000) for _ in range(3000)]})
    cf.write(rows, path, format="rcfile", serde="binary")
    (estate.source / "tables.toml").write_text('[tables.t]\nschema = "s binary"\nserde = "binary"\n')
    assert estate.migrate().safe_to_delete == 1
    (line,) = safe_list.read(str(list_of(estate))).lines
    assert line.digest.startswith("ends:")
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [fault.kind for fault in audit(before_delete=list_of(estate)).faults] == ["line"]
    assert [file.earlier for file in estate.migrate().tables[0].files] == [False]


def test_a_list_is_checked_before_its_sources_are_deleted(estate: Estate, capsys: Any) -> None:
    paths = [estate.orc(f"t/{number}", {"a": [number]}) for number in range(4)]
    assert estate.migrate().safe_to_delete == 4
    listed = str(list_of(estate))
    assert main(["audit", "--before-delete", listed]) == 0
    assert "4 of 4 lines of the list are true" in capsys.readouterr().out
    rewritten(paths[0], {"a": [7]})
    paths[1].unlink()
    paths[2].write_bytes(paths[2].read_bytes() + b" ")
    assert main(["audit", str(estate.target), "--before-delete", listed]) == 1
    output = capsys.readouterr().out
    assert f"line: {paths[0]}: its content differs from that which was read" in output
    assert f"line: {paths[1]}: it no longer exists" in output
    assert f"line: {paths[2]}: it has " in output
    assert "1 of 4 lines of the list are true" in output
    assert "FAILED: 3 lines of the list are no longer true" in output


def test_a_truncated_list_is_refused(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.migrate()
    whole = list_of(estate).read_text()
    other = estate.target.parent / "list"
    other.write_text(whole[: whole.index("# end")])
    assert audit(before_delete=other).exit_code == 1
    other.write_text("/warehouse/sales\n")
    with pytest.raises(SchemaError, match="expected '# coldframe"):
        audit(before_delete=other)


def test_a_list_is_compared_with_the_journal(estate: Estate) -> None:
    path = estate.orc("t/1", {"a": [1]})
    estate.orc("t/2", {"a": [2]})
    estate.migrate()
    old = estate.target.parent / "list"
    shutil.copy(list_of(estate), old)
    estate.orc("t/1", {"a": [3]})
    estate.migrate()
    result = audit(before_delete=old)
    assert [(fault.file, fault.reason) for fault in result.faults] == [
        (str(path), "the journal has another digest of it")
    ]


# Readable data that is left behind is always reported.

KUDU = Path(__file__).resolve().parents[3] / "data" / "kudu" / "files"


def test_a_directory_with_unmigrated_tables_is_not_safe(estate: Estate, capsys: Any) -> None:
    shutil.copytree(KUDU / "file_blocks", estate.source / "kudu")
    held = tables(str(estate.source / "kudu"), format="kudu")
    assert len(held) > 1
    (estate.source / "tables.toml").write_text(
        f'[tables.one]\npath = "kudu"\ntable = "{held[0][1]}"\nwal = false\n'
    )
    # The directory was copied without its logs.
    logs = "unflushed-edits"
    report = estate.migrate(leave_behind=[logs])
    assert (report.exit_code, report.verified, estate.safe()) == (0, True, [])
    left = [item for item in report.left_out if item.visible and not item.named]
    assert {(item.kind, item.name) for item in left} == {("tables", name) for _, name in held[1:]}
    assert f"{len(held) - 1} part" in str([note.text for note in report.verdict.notes])
    # The user may name single tables, or all.
    others = [f"tables={of}" for of, _ in held[1:]]
    assert estate.migrate(leave_behind=[logs, *others[:-1]]).safe_to_delete == 0
    command = ["migrate", str(estate.source), str(estate.target), "--master", "in-process"]
    assert main([*command, "--leave-behind", "tables,snapshots,unflushed-edits"]) == 0
    assert estate.safe() == [str(estate.source / "kudu")]
    about = safe_list.read(str(list_of(estate))).about
    assert about["leave_behind"] == ["tables", "snapshots", logs]
    assert len(about["left_behind"]) == len(held)
    assert "left behind: " in capsys.readouterr().out
    with pytest.raises(ValueError, match="leave_behind: expected tables, snapshots"):
        estate.migrate(leave_behind=["everything"])


def test_ignored_file_names_are_counted(estate: Estate) -> None:
    estate.orc("t/1", {"a": [1]})
    estate.orc("t/_archive/2", {"a": [2]})
    estate.orc("t/3.tmp", {"a": [3]})
    (estate.source / "t/.hidden").write_bytes(b"x")
    report = estate.migrate()
    assert (report.exit_code, report.verified) == (0, True)
    assert (report.hidden, sorted(report.hidden_names)) == (3, ["t/.hidden", "t/3.tmp", "t/_archive/"])
    assert "3 hidden names were skipped" in [note.text for note in report.verdict.notes]
    assert "t/_archive/" in (estate.target / "_coldframe/report.html").read_text()


# Every changed value is reported.


def check_loss(estate: Estate, how: str, count: int, **options: Any) -> None:
    """A migration that changes values reports it, and lists sources only where the user allowed it."""
    report = estate.migrate(**options)
    assert [file.losses for file in report.tables[0].files] == [{how: count}]
    assert (report.exit_code, type(report.verdict), estate.safe()) == (0, Partial, [])
    assert f"{count} value" in report.verdict.text
    known = estate.migrate(allow_loss=[how], **options)
    assert (known.exit_code, known.verified, known.safe_to_delete) == (0, True, 1)
    assert "as allowed" in str([note.text for note in known.verdict.notes])


def test_a_column_with_the_name_of_a_partition_is_a_loss(estate: Estate) -> None:
    estate.orc("t/dt=1/f", {"a": [1, 2], "dt": ["x", "y"]})
    check_loss(estate, "partition-columns", 2)


def test_masked_columns_are_a_loss(estate: Estate) -> None:
    (estate.source / "t").mkdir()
    path = shutil.copy(KUDU.parents[1] / "orc/files/encrypted.orc", estate.source / "t/1")
    with pytest.warns(cf.EncryptedColumnWarning):
        check_loss(estate, "masked-columns", cf.open(path).num_rows or 0)
    with pytest.raises(ValueError, match="allow_loss: expected digits-below-microseconds"):
        estate.migrate(allow_loss=["all"])


HBASE = Path(__file__).resolve().parents[3] / "data" / "hbase" / "files" / "orders"


def test_older_versions_and_snapshots_that_are_left_behind_are_reported(estate: Estate) -> None:
    shutil.copytree(HBASE, estate.source / "hbase")
    toml = estate.source / "tables.toml"
    toml.write_text('[tables.orders]\npath = "hbase"\ntable = "shop:orders"\nas_of = 1700000000000\n')
    report = estate.migrate()
    assert (report.exit_code, estate.safe()) == (0, [])
    assert {item.kind for item in report.left_out if item.blocks} == {"snapshots", "older-versions"}
    assert estate.migrate(leave_behind=["snapshots"]).safe_to_delete == 0
    assert estate.migrate(leave_behind=["snapshots", "older-versions"]).safe_to_delete == 1
    # With all versions, only the snapshot is left behind.
    toml.write_text(toml.read_text() + 'view = "versions"\n')
    report = estate.migrate(leave_behind=["snapshots=kept"])
    assert (report.exit_code, report.safe_to_delete) == (0, 1), report.left_out


def test_digits_below_a_microsecond_are_a_loss(estate: Estate) -> None:
    estate.orc("t/1", {"at": pa.array([1, 1_000, 1_700_000_000_123_456_700, None], pa.timestamp("ns"))})
    check_loss(estate, "digits-below-microseconds", 2)
    assert estate.migrate(to="parquet", timestamp_unit="ns", fresh=True).verified


@pytest.mark.parametrize("serde", ["binary", "text"])
def test_text_that_is_not_utf_8_is_a_loss(estate: Estate, serde: str) -> None:
    path = estate.source / "t/1"
    path.parent.mkdir()
    rows = {"s": ["caf\N{LATIN SMALL LETTER E WITH ACUTE}", "tea"]}
    cf.write(pa.table(rows), path, format="rcfile", serde=serde, codec="none")
    content = path.read_bytes()
    assert content.count(b"caf\xc3\xa9") == 1
    path.write_bytes(content.replace(b"caf\xc3\xa9", b"ca\xe9\xe9\xe9"))
    (estate.source / "tables.toml").write_text(f'[tables.t]\nschema = "s string"\nserde = "{serde}"\n')
    check_loss(estate, "malformed-text", 1)


def test_text_that_is_not_utf_8_is_migrated_as_binary_where_the_schema_says_binary(estate: Estate) -> None:
    for number in range(2):
        path = estate.orc(f"t/{number}", {"a": [1, 2], "name": ["caf#", None]})
        path.write_bytes(path.read_bytes().replace(b"caf#", b"caf\xe9"))
    report = estate.migrate()
    assert (report.statuses, estate.safe()) == ({"failed": 2}, [])
    toml = estate.source / "tables.toml"
    # As SHOW CREATE TABLE prints it: one column was added later, another was widened.
    toml.write_text('[tables.t]\nschema = "a decimal(20,0), name binary, later string"\n')
    report = estate.migrate(tables=toml)
    assert (report.exit_code, report.verified, len(estate.safe())) == (0, True, 2)
    assert estate.read("t")["name"].to_pylist() == [b"caf\xe9", None] * 2


@pytest.mark.parametrize("serde", ["binary", "text"])
def test_nanoseconds_of_rcfile_are_a_loss(estate: Estate, serde: str) -> None:
    path = estate.source / "t/1"
    path.parent.mkdir()
    rows = pa.table({"at": pa.array([1, 1_000, None], pa.timestamp("ns"))})
    cf.write(rows, path, format="rcfile", serde=serde)
    (estate.source / "tables.toml").write_text(f'[tables.t]\nschema = "at timestamp"\nserde = "{serde}"\n')
    check_loss(estate, "digits-below-microseconds", 1)
