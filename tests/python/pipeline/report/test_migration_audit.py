"""Dry runs before a migration, and audits long after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate

from coldframe.cli import main
from coldframe.errors import NotFoundError
from coldframe.pipeline import audit, dry_run
from coldframe.pipeline.file_access import sha256
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.preview import preview_text
from coldframe.pipeline.source.inventory import take_inventory
from coldframe.pipeline.source.selection import select
from coldframe.pipeline.state.journal import Journal


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    made = Estate(tmp_path)
    for number in range(4):
        made.orc(f"t/p={number}/f", {"a": [number, number + 10]})
    made.orc("u/1", {"x": ["y"]})
    return made


# Audits.


def test_an_audit_of_an_unchanged_target_has_no_faults(estate: Estate) -> None:
    estate.migrate()
    for deep in (False, True):
        result = audit(estate.target, deep=deep)
        assert (result.exit_code, result.files, result.rows) == (0, 5, 9)
        assert result.faults == []
    assert result.bytes == sum(path.stat().st_size for path in estate.target.rglob("[tu]/**/*.parquet"))
    with pytest.raises(NotFoundError, match="no migration"):
        audit(estate.source)


def test_an_audit_after_a_failed_run_says_so(estate: Estate) -> None:
    broken = estate.orc("t/p=9/f", {"a": [9]})
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-20])
    run = estate.migrate()
    assert run.exit_code == 1
    for deep in (False, True):
        result = audit(estate.target, deep=deep)
        assert result.exit_code == 1
        assert result.verdict.text.startswith("FAILED: 1 last run failed: FAILED: ")
        assert result.faults == []
    broken.write_bytes(whole)
    assert estate.migrate().exit_code == 0
    assert audit(estate.target).exit_code == 0


def test_files_of_a_killed_run_are_its_own(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> str:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_mark", killed)
        with pytest.raises(Killed):
            estate.migrate()
    assert estate.files("t")
    result = audit(estate.target)
    assert (result.faults, result.exit_code) == ([], 0)
    assert result.verdict.text.startswith("NOT VERIFIED: 1 run was interrupted")
    assert estate.migrate().exit_code == 0


def test_an_audit_reports_every_fault(estate: Estate, capsys: pytest.CaptureFixture[str]) -> None:
    estate.migrate()
    gone, cut, flipped, replaced = estate.files("t")
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    content = bytearray(flipped.read_bytes())
    content[20] ^= 1
    flipped.write_bytes(bytes(content))
    size = replaced.stat().st_size
    pq.write_table(pa.table({"a": [1]}), replaced)
    replaced.write_bytes(replaced.read_bytes().ljust(size)[:size])
    pq.write_table(pa.table({"a": [1]}), estate.target / "t" / "p=0" / "extra.parquet")
    assert main(["audit", str(estate.target), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    kinds = {fault["file"].rsplit("/", 1)[1]: fault["kind"] for fault in result["faults"]}
    assert kinds == {
        gone.name: "missing",
        cut.name: "resized",
        flipped.name: "altered",
        replaced.name: "altered",
        "extra.parquet": "foreign",
    }
    assert {fault["source"] for fault in result["faults"]} == {*(f"t/p={at}/f" for at in range(4)), None}
    assert main(["audit", str(estate.target)]) == 1
    output = capsys.readouterr().out
    assert "FAILED: 1 file of the target is missing; 3 files are not as they were verified" in output


def test_a_deep_audit_compares_values(estate: Estate) -> None:
    """A deep audit notices a file that was rewritten together with its checksum."""
    estate.migrate()
    (path,) = estate.files("u")
    pq.write_table(pa.table({"x": ["z"]}), path)
    estate.unchain()
    (state,) = (estate.target / "_coldframe/state").glob("*2.jsonl")
    events = [json.loads(line) for line in state.read_text().splitlines()]
    for event in events:
        for part in event.get("entry", {}).get("parts", []):
            if part["final"].startswith("u/"):
                part.update(sha256=sha256(str(path)), bytes=path.stat().st_size)
    state.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert audit(estate.target).exit_code == 0
    (fault,) = audit(estate.target, deep=True).faults
    assert fault.kind == "unlike"


@pytest.mark.parametrize("target", ["delta", "iceberg", "orc"])
def test_audits_of_delta_iceberg_and_orc_targets_find_only_foreign_files(estate: Estate, target: str) -> None:
    if target != "orc":
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[target])
    estate.migrate(to=target)
    estate.orc("t/p=0/f", {"a": [5]})
    assert estate.migrate(to=target).exit_code == 0
    result = audit(estate.target, deep=True)
    assert (result.faults, result.files, result.rows) == ([], 5, 8)
    if target == "delta":
        from deltalake import write_deltalake

        write_deltalake(estate.target / "u", pa.table({"x": ["new"]}), mode="append")
        (fault,) = audit(estate.target).faults
        assert fault.kind == "foreign"


# Before a run.


def tree(root: Path) -> list[Path]:
    return sorted(root.rglob("*")) if root.exists() else []


def test_a_dry_run_lists_the_work_and_writes_nothing(
    estate: Estate, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate.source / "t/p=9").mkdir()
    (estate.source / "t/p=9/torn").write_bytes(b"no\0format of ours")
    (estate.source / "t/p=9/short").write_bytes((estate.source / "u/1").read_bytes()[:-9])
    command = ["migrate", str(estate.source), str(estate.target), "--dry-run"]
    assert main([*command, "--json"]) == 1
    preview = json.loads(capsys.readouterr().out)
    table = next(table for table in preview["tables"] if table["name"] == "t")
    assert (table["files"], table["tasks"], table["rows"]) == (4, 4, 8)
    assert table["bytes"] == sum((estate.source / f"t/p={at}/f").stat().st_size for at in range(4))
    assert {file for file, _ in table["refused"]} == {"t/p=9/torn", "t/p=9/short"}
    assert tree(estate.target) == []
    assert main([*command, "--exclude", "p=9"]) == 0
    output = capsys.readouterr().out
    assert "t (orc) -> t: 4 files" in output
    assert "a int64" in output
    assert "5 files" in output
    assert "nothing was written" in output
    # The migration converts what the dry run listed.
    report = estate.migrate(exclude=["p=9"])
    assert report.rows == 9
    before = tree(estate.target)
    after = dry_run(estate.source, estate.target, Options(selection=select([], ["p=9"])))
    assert (sum(table.files for table in after.tables), sum(table.done for table in after.tables)) == (0, 5)
    fresh = dry_run(estate.source, estate.target, Options(fresh=True, selection=select([], ["p=9"])))
    assert sum(table.files for table in fresh.tables) == 5
    # Time and size are the time and size of the first run.
    written = sum(path.stat().st_size for path in estate.target.rglob("[tu]/**/*.parquet"))
    assert fresh.expected_bytes == written
    assert "s of one core" in preview_text(fresh)
    (estate.source / "t/p=1/f").unlink()
    estate.orc("t/p=2/f", {"a": ["no number"]})
    gone = dry_run(estate.source, estate.target, Options())
    assert gone.exit_code == 1
    assert "gone since an earlier run, such as t/p=1/f" in preview_text(gone)
    gone = dry_run(estate.source, estate.target, Options(on_vanished="keep", archived_rows="drop"))
    assert "is int64 in t/p=0/f and string in t/p=2/f" in preview_text(gone)
    assert tree(estate.target) == before


@pytest.mark.parametrize(
    ("include", "exclude", "files"),
    [
        ([], [], {"t/p=0/f", "t/p=1/f", "t/p=2/f", "t/p=3/f", "u/1"}),
        (["u"], [], {"u/1"}),
        (["t/p=[!0]*"], [], set()),  # brackets are literal: there are no character sets
        (["t/p=?"], ["p=1"], {"t/p=0/f", "t/p=2/f", "t/p=3/f"}),
        (["*"], ["t"], {"u/1"}),
        (["**/f"], ["t/*/f"], set()),
        (["t/*"], ["t/p=0/**"], {"t/p=1/f", "t/p=2/f", "t/p=3/f"}),
        (["/u/"], [], {"u/1"}),
    ],
)
def test_patterns(estate: Estate, include: list[str], exclude: list[str], files: set[str]) -> None:
    inventory = take_inventory(str(estate.source), (), select(include, exclude))
    assert {file.relative for file in inventory.files} == files
    assert bool(inventory.excluded) == (len(files) < 5)


def test_invalid_options_are_refused() -> None:
    wrong: list[dict[str, Any]] = [{"on_vanished": "ask"}, {"timestamp_unit": "s"}, {"split_bytes": 0}]
    for given in wrong:
        with pytest.raises(ValueError, match=next(iter(given))):
            Options(**given)


def test_unverified_files_have_no_fingerprint(estate: Estate) -> None:
    """`--no-verify` computes no fingerprints, and an audit counts the files without a fingerprint."""
    report = estate.migrate(verify=False)
    assert (report.exit_code, report.verified) == (0, False)
    result = audit(estate.target, deep=True)
    assert result.faults == []
    assert result.unverified == result.files == 5
    lines = (estate.target / "_coldframe" / "manifest.jsonl").read_text().splitlines()
    assert all(json.loads(line)["checks"] == {} for line in lines)


def test_a_written_file_is_not_read_again_for_its_checksum(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's hash is computed while the file is written, alone or merged; the audit computes it again."""
    from coldframe.pipeline import file_access

    def pieces(path: str, *rest: object) -> Iterator[bytes]:
        assert not path.startswith(str(estate.target)), path
        return read(path, *rest)  # type: ignore[arg-type]

    read = file_access.pieces
    estate.orc("v/1", {"a": [1, 2]})
    estate.orc("v/2", {"a": [3]})
    with monkeypatch.context() as patched:
        patched.setattr(file_access, "pieces", pieces)
        for target_file_bytes in (0, 1 << 20):
            report = estate.migrate(target_file_bytes=target_file_bytes, fresh=bool(target_file_bytes))
            assert report.exit_code == 0
            assert len(estate.files("v")) == (1 if target_file_bytes else 2)
    assert audit(estate.target).exit_code == 0
