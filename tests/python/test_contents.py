"""The contents of a directory that a request leaves out, before and after reading."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import coldframe as cf
from coldframe._coldframe import contents

DATA = Path(__file__).resolve().parents[1] / "data"
ROOT = DATA / "hbase" / "files" / "orders"
KUDU = DATA / "kudu" / "files" / "file_blocks"
AS_OF = 1_700_000_000_000


def held(
    path: Path = ROOT, format: str = "hbase", **options: object
) -> dict[tuple[str, str], dict[str, Any]]:
    entries = contents(path, format=format, options=options)
    keyed = {(entry["kind"], entry["of"]): entry for entry in entries}
    assert len(keyed) == len(entries)
    return keyed


def left_out(**options: object) -> set[tuple[str, bool | None]]:
    # Regions are counted only by reading.
    entries = [e for e in held(**options).values() if e["kind"] != "regions"]
    return {(e["kind"], e["taken"]) for e in entries if e["visible"] and e["taken"] is not True}


def passed_over(**options: object) -> tuple[int, dict[str, int]]:
    scan = cf.open(ROOT, as_of=AS_OF, **options)._raw.scan()
    rows = sum(batch.num_rows for batch in scan)
    return rows, scan.passed_over()


def test_contents_list_what_a_request_leaves_out() -> None:
    table, snapshot = ("table", "shop:orders"), ("snapshot", "kept")
    whole = held(view="versions")
    assert (whole[table]["taken"], whole[table]["count"]) == (True, 2)
    assert whole[snapshot]["taken"] is False
    assert "orders" in whole[snapshot]["note"]
    assert held(snapshot="kept")[table]["taken"] is False
    assert held(snapshot="kept")[snapshot]["taken"] is True
    assert left_out(view="versions") == {("snapshot", False)}
    assert left_out() == {("snapshot", False), ("versions", None)}
    assert left_out(view="versions", versions=2, wal=False, families=["f"], time_range=(0, 5)) == {
        ("snapshot", False),
        ("versions", None),
        ("edits", False),
        ("families", False),
        ("times", None),
    }
    assert left_out(view="pivot", columns={"f:note": "string"}, rest=False) == {
        ("snapshot", False),
        ("versions", None),
        ("columns", None),
        ("timestamps", False),
    }
    assert held()["deleted", "shop:orders"] == held(view="versions")["deleted", "shop:orders"]
    assert held(view="raw")["deleted", "shop:orders"]["taken"] is True


def test_other_tables_of_a_root_are_listed_by_name(tmp_path: Path) -> None:
    root = tmp_path / "hbase"
    shutil.copytree(ROOT, root)
    shutil.copytree(root / "data" / "shop", root / "data" / "default")
    for given, taken in (({}, (False, False)), ({"table": "shop:orders"}, (False, True))):
        entries = held(root, **given)
        assert (
            entries["table", "default:orders"]["taken"],
            entries["table", "shop:orders"]["taken"],
        ) == taken
        assert (entries["table", "default:orders"]["name"], entries["table", "shop:orders"]["name"]) == (
            "orders",
            "shop.orders",
        )
    (root / "oldWALs").mkdir(exist_ok=True)
    (root / "oldWALs" / "server.1").write_bytes(b"PWAL")
    old = held(root)["old logs", ""]
    assert (old["visible"], old["count"] >= 1, old["bytes"] >= 4) == (False, True, True)


def test_older_versions_are_counted_while_the_newest_are_read() -> None:
    latest, left = passed_over()
    every, none = passed_over(view="versions")
    assert left["versions"] == every - latest > 0
    assert none == {}
    two, behind = passed_over(view="versions", versions=2)
    assert behind.get("versions", 0) == every - two > 0
    raw, _ = passed_over(view="raw")
    newest, behind = passed_over(view="raw", versions=1)
    assert behind["versions"] == raw - newest > 0


def test_other_times_and_columns_are_counted() -> None:
    every, _ = passed_over(view="versions")
    middle = sorted(cf.open(ROOT, as_of=AS_OF, view="versions").read()["timestamp"].to_pylist())[every // 2]
    some, left = passed_over(view="versions", time_range=(0, middle))
    assert left["times"] >= every - some > 0
    latest = cf.open(ROOT, as_of=AS_OF).read()
    note = sum(
        (family, name) == (b"f", b"note")
        for family, name in zip(latest["family"].to_pylist(), latest["qualifier"].to_pylist(), strict=True)
    )
    _, left = passed_over(view="pivot", columns={"f:note": "string"}, rest=False)
    assert left["columns"] == latest.num_rows - note > 0
    _, left = passed_over(view="pivot", columns={"f:note": "string"})
    assert "columns" not in left


def test_other_tables_of_a_kudu_server_are_listed() -> None:
    table = cf.open(KUDU, table="numbers").metadata["table_id"]
    entries = held(KUDU, "kudu", table="numbers")
    assert sorted(
        (entry["name"], entry["taken"]) for (kind, _), entry in entries.items() if kind == "table"
    ) == [
        ("events", False),
        ("numbers", True),
    ]
    edits = entries.pop(("edits", table))
    assert (edits["taken"], edits["count"]) == (False, 2)
    assert "logs are missing" in edits["note"]
    assert all(
        entry["taken"] is True for (_, of), entry in entries.items() if of == table and entry["visible"]
    )
    assert not any(entry["taken"] for entry in held(KUDU, "kudu").values())
    tablet = cf.open(KUDU, table="numbers").metadata["tablets"][0]["tablet"]
    part = held(KUDU, "kudu", tablet=tablet, snapshot="2020-01-01T00:00:00Z")
    assert part["tablets", table]["taken"] is (entries["table", table]["count"] == 1)
    assert part["times", table]["taken"] is False


def test_single_file_has_no_contents(tmp_path: Path) -> None:
    cf.write(cf.open(KUDU, table="numbers").read(), tmp_path / "a.orc", format="orc")
    assert contents(tmp_path / "a.orc", format="orc") == []
    with pytest.raises(ValueError, match="no option `tabel`"):
        contents(ROOT, format="hbase", options={"tabel": "x"})


def test_writes_outside_the_valid_list_are_counted() -> None:
    table = DATA / "hive" / "files" / "hive2_changes"

    def counts(valid: str) -> dict[str, int]:
        entries = held(table, "orc", acid_valid_write_ids=valid)
        assert all(entry["visible"] and entry["taken"] is False for entry in entries.values())
        return {kind: entry["count"] for (kind, _), entry in entries.items()}

    assert held(table, "orc") == {} == counts("t:7:9223372036854775807::")
    assert counts("t:5:9223372036854775807::") == {"later writes": 2}
    assert counts("t:7:5:5:3") == {"open writes": 1}, "aborted writes are invisible"
