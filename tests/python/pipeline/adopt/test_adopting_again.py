"""A second `migrate --adopt`: what is new, changed, gone, and what others did to the table meanwhile."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pytest
from adoptions import OPTIONS, Estate, ids

from coldframe.pipeline import adopt as adoption
from coldframe.pipeline import audit
from coldframe.pipeline.adopt import adopt, ledger
from coldframe.pipeline.adopt.records import READS_SOURCE
from coldframe.pipeline.adopt.rules import DETACHED
from coldframe.pipeline.adopt.summary import adoption_text
from coldframe.pipeline.adopt.tables import NewTable, Present, present_in


@pytest.fixture
def estate(tmp_path) -> Estate:
    made = Estate(tmp_path)
    files = {
        "a": pa.table({"id": ids(1, 2)}),
        "b": pa.table({"id": ids(3)}),
        "old": pa.table({"_col0": ids(4)}),
    }
    made.table("t", "id bigint", files)
    assert adopt(made.source, made.target, OPTIONS).verified
    return made


def rows_of(estate: Estate) -> list[int]:
    return sorted(estate.loaded("t").scan().to_arrow()["id"].to_pylist())


def paths_of(estate: Estate) -> list[str]:
    return sorted(task.file.file_path.rpartition("/")[2] for task in estate.loaded("t").scan().plan_files())


def put(estate: Estate, name: str, *values: int, column: str = "id") -> None:
    po.write_table(pa.table({column: ids(*values)}), str(estate.root / "t" / name))


def for_others(estate: Estate):
    """The table for PyIceberg as a writer, which has no ORC."""
    with estate.loaded("t").transaction() as transaction:
        transaction.set_properties({"write.format.default": "parquet"})
    return estate.loaded("t")


def lists_of(estate: Estate) -> list[str]:
    return [path.name for path in (estate.target / ledger.ADOPTED).rglob("*.*")]


def test_nothing_new_changes_nothing(estate):
    before = estate.loaded("t").metadata_location
    (path,) = (estate.root / "t" / name for name in ["a"])
    os.utime(path)  # another time, the same content
    again = adopt(estate.source, estate.target, OPTIONS)
    assert again.verified
    assert again.adopted[0].new == 0
    assert again.rows == 4
    assert estate.loaded("t").metadata_location == before


def test_new_and_changed_files_are_taken_once(estate):
    put(estate, "c", 5)
    put(estate, "converted", 6, column="_col0")
    put(estate, "b", 7, 8)
    put(estate, "old", 9, column="_col0")
    before = estate.digests()
    planned = adopt(estate.source, estate.target, OPTIONS, plan=True)
    assert planned.adopted[0].new == 4
    assert len(paths_of(estate)) == 3
    again = adopt(estate.source, estate.target, OPTIONS)
    assert again.verified
    assert again.adopted[0].new == 4
    assert rows_of(estate) == [1, 2, 5, 6, 7, 8, 9]
    assert len(paths_of(estate)) == 5
    assert estate.digests() == before
    assert len(lists_of(estate)) == 1
    assert estate.loaded("t").scan(row_filter="id = 8").to_arrow().num_rows == 1
    assert len(estate.loaded("t").metadata.snapshots) == 2


def test_new_names_of_columns_get_new_ids(estate):
    po.write_table(pa.table({"ID": ids(5), "more": ["x"]}), str(estate.root / "t" / "c"))
    before = estate.loaded("t").metadata.last_column_id
    assert adopt(estate.source, estate.target, OPTIONS).verified
    table = estate.loaded("t")
    assert table.metadata.last_column_id > before
    assert rows_of(estate) == [1, 2, 3, 4, 5]
    assert table.scan().to_arrow().column_names == ["id"]


def test_vanished_files(estate):
    (estate.root / "t" / "b").unlink()
    put(estate, "c", 5)
    failed = adopt(estate.source, estate.target, OPTIONS)
    assert failed.exit_code == 1
    assert failed.adopted[0].verdict.text == "FAILED: 1 source is gone since an earlier run"
    assert len(paths_of(estate)) == 3
    kept = adopt(estate.source, estate.target, replace(OPTIONS, on_vanished="keep"))
    assert "its rows were in no other file" in kept.adopted[0].refused
    few = replace(OPTIONS, on_vanished="remove", most_vanished=0.1)
    assert "more than may be removed" in adopt(estate.source, estate.target, few).adopted[0].refused
    assert adopt(estate.source, estate.target, replace(OPTIONS, on_vanished="remove")).verified
    assert rows_of(estate) == [1, 2, 4, 5]


def test_rows_of_a_converted_file_may_stay(estate):
    (estate.root / "t" / "old").unlink()
    keep = replace(OPTIONS, on_vanished="keep")
    for _ in range(2):
        assert adopt(estate.source, estate.target, keep).verified
        assert rows_of(estate) == [1, 2, 3, 4]


def test_a_table_that_the_source_no_longer_has(estate):
    put(estate, "a", 1)
    estate.statements = [line.replace("a.t ", "a.u ") for line in estate.statements]
    again = adopt(estate.source, estate.target, OPTIONS)
    assert again.exit_code == 1
    by_name = {table.name: table for table in again.adopted}
    assert by_name["a.u"].verified
    assert "the source no longer has the table" in by_name["a.t"].verdict.text
    assert adopt(estate.source, estate.target, replace(OPTIONS, tables=("a.u",))).verified


def test_rows_of_others_stay(estate):
    for_others(estate).append(pa.table({"id": ids(100)}))
    put(estate, "c", 5)
    refused = adopt(estate.source, estate.target, OPTIONS)
    assert "written by others" in refused.adopted[0].verdict.text
    assert rows_of(estate) == [1, 2, 3, 4, 100]
    assert adopt(estate.source, estate.target, replace(OPTIONS, on_foreign_changes="append")).verified
    assert rows_of(estate) == [1, 2, 3, 4, 5, 100]


def test_rows_that_others_rewrote_are_not_added_again(estate):
    for_others(estate).overwrite(pa.table({"id": ids(1, 2, 3, 4)}))
    append = replace(OPTIONS, on_foreign_changes="append")
    assert adopt(estate.source, estate.target, append).exit_code == 0
    assert rows_of(estate) == [1, 2, 3, 4]
    put(estate, "b", 7)
    refused = adopt(estate.source, estate.target, append).adopted[0].refused
    assert "others have rewritten its rows" in refused
    assert rows_of(estate) == [1, 2, 3, 4]


def test_a_table_of_others_is_left_alone(estate):
    with estate.loaded("t").transaction() as transaction:
        transaction.remove_properties(ledger.PROPERTY)
    assert "is not of this adoption" in adopt(estate.source, estate.target, OPTIONS).adopted[0].refused


def faults_of(estate: Estate) -> list[tuple[str, str]]:
    result = audit(estate.target)
    assert result.exit_code == int(bool(result.faults))
    return [
        (Path(fault.file).name.rpartition("-")[0] or Path(fault.file).name, fault.kind)
        for fault in result.faults
    ]


def test_an_audit_finds_files_that_changed(estate):
    clean = audit(estate.target)
    assert (clean.verdict.text, clean.files, clean.rows) == ("verified", 3, 4)
    put(estate, "old", 9, column="_col0")  # its rows are in a new file
    os.utime(estate.root / "t" / "a")
    assert faults_of(estate) == []
    content = bytearray((estate.root / "t" / "a").read_bytes())
    content[5] ^= 1
    (estate.root / "t" / "a").write_bytes(content)
    put(estate, "b", 3, 4, 5, 6)
    assert faults_of(estate) == [("a", "altered"), ("b", "resized")]
    (estate.root / "t" / "a").unlink()
    (new,) = estate.target.rglob("*.parquet")
    content = bytearray(new.read_bytes())
    content[5] ^= 1
    new.write_bytes(content)
    assert faults_of(estate)[-1][1] == "altered"
    new.unlink()
    run = new.name.partition("-")[0]
    assert faults_of(estate) == [("a", "missing"), ("b", "resized"), (run, "missing")]


def test_a_deep_audit_reads_the_rows_again(estate):
    from pyiceberg.types import StringType

    deep = audit(estate.target, deep=True)
    assert (deep.verdict.text, deep.deep, deep.rows) == ("verified", True, 4)
    # Others may add columns and rename some: the rows are compared in the columns of the adoption.
    with estate.loaded("t").update_schema() as update:
        update.rename_column("id", "number")
        update.add_column("more", StringType())
    assert audit(estate.target, deep=True).exit_code == 0
    with estate.loaded("t").transaction() as transaction:
        names = json.loads(transaction.table_metadata.properties["schema.name-mapping.default"])
        names[0]["field-id"] = 99
        transaction.set_properties({"schema.name-mapping.default": json.dumps(names)})
    assert not audit(estate.target).faults
    wrong = audit(estate.target, deep=True)
    assert wrong.exit_code == 1
    unlike = [(Path(fault.file).name, fault.kind) for fault in wrong.faults]
    assert unlike == [("a", "unlike"), ("b", "unlike")]


def test_an_audit_of_a_table_that_is_gone_or_written_to(estate):
    for_others(estate).append(pa.table({"id": ids(100)}))
    assert "written by others" in audit(estate.target).verdict.text
    assert audit(estate.target).exit_code == 1
    estate.loaded("t").catalog.drop_table(("a", "t"))
    assert faults_of(estate) == [("t", "table")]


class Killed(BaseException):
    """Ends a run as a kill does: nothing is tidied."""


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_run_that_is_killed(estate, monkeypatch, moment):
    put(estate, "new", 5, column="_col0")

    def killed(self, transaction):
        if moment == "after the commit":
            transaction.commit_transaction()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(NewTable, "_commit", killed)
        with pytest.raises(Killed):
            adopt(estate.source, estate.target, OPTIONS)
    assert rows_of(estate) == ([1, 2, 3, 4] if moment == "before the commit" else [1, 2, 3, 4, 5])
    again = adopt(estate.source, estate.target, OPTIONS)
    assert again.verified
    assert rows_of(estate) == [1, 2, 3, 4, 5]
    assert again.adopted[0].new == (1 if moment == "before the commit" else 0)
    assert len(list(estate.target.rglob("*.parquet"))) == 2
    assert len(lists_of(estate)) == 1


def test_a_first_run_that_is_killed_leaves_no_table(tmp_path, monkeypatch):
    estate = Estate(tmp_path)
    estate.table("t", "id bigint", {"a": pa.table({"_col0": ids(1)})})

    def killed(self, transaction):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(NewTable, "_commit", killed)
        with pytest.raises(Killed):
            adopt(estate.source, estate.target, OPTIONS)
    assert len(list(estate.target.rglob("*.parquet"))) == 1
    assert adopt(estate.source, estate.target, OPTIONS).verified
    assert len(list(estate.target.rglob("*.parquet"))) == 1
    assert rows_of(estate) == [1]


def test_a_detached_table_reads_no_file_of_the_source(estate):
    before = estate.digests()
    with pytest.raises(ValueError, match="pass adopt as well"):
        replace(OPTIONS, adopt=False, detach=("a.t",))
    vain = adopt(estate.source, estate.target, replace(OPTIONS, detach=("a.x",)), plan=True)
    assert vain.left_out_tables == [("a.x", "no table to detach matches")]
    detached = adopt(estate.source, estate.target, replace(OPTIONS, detach=("A.*",)))
    assert detached.verified
    (outcome,) = detached.adopted
    assert (outcome.new, outcome.reasons[DETACHED], outcome.metadata[READS_SOURCE]) == (2, 2, False)
    assert "reads no file of the source any more" in adoption_text(detached)
    assert estate.digests() == before
    table = estate.loaded("t")
    assert "gc.enabled" not in table.properties
    assert len(table.metadata.snapshots) == 1
    for file in estate.digests():
        os.unlink(file)
    assert rows_of(estate) == [1, 2, 3, 4]
    assert not list(audit(str(estate.target)).faults)
    put(estate, "new", 5)
    kept = adopt(estate.source, estate.target, replace(OPTIONS, on_vanished="keep"))
    assert kept.verified
    assert kept.adopted[0].metadata[READS_SOURCE]
    assert rows_of(estate) == [1, 2, 3, 4, 5]
    assert estate.loaded("t").properties["gc.enabled"] == "false"


def test_a_tag_that_reads_the_source_stays_when_a_table_is_detached(estate):
    table = estate.loaded("t")
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "kept").commit()
    detached = adopt(estate.source, estate.target, replace(OPTIONS, detach=("a.t",)))
    assert detached.verified
    assert detached.adopted[0].metadata[READS_SOURCE]
    table = estate.loaded("t")
    assert table.properties["gc.enabled"] == "false"
    assert table.scan(snapshot_id=table.refs()["kept"].snapshot_id).to_arrow().num_rows == 4


def test_rows_that_others_deleted_do_not_come_back_when_a_table_is_detached(estate, monkeypatch):
    monkeypatch.setattr(adoption, "present_in", lambda table: hidden(present_in(table)))
    detach = replace(OPTIONS, detach=("a.t",), on_foreign_changes="append")
    before = estate.loaded("t").metadata_location
    (outcome,) = adopt(estate.source, estate.target, detach).adopted
    assert "these rows would come back" in outcome.refused
    assert estate.loaded("t").metadata_location == before


def hidden(present: Present) -> Present:
    """The data files, as if others had deleted a row of each."""
    return {path: (entry, replace(file, rows=file.rows - 1)) for path, (entry, file) in present.items()}
