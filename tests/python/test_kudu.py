"""Kudu's data directories: tables, snapshots, keys, and scans of several servers."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estates import Estate

import coldframe as cf
from coldframe._coldframe import tables as held_tables
from coldframe.pipeline import dry_run, migrate
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.pages import page
from coldframe.pipeline.report.preview import preview_text
from coldframe.pipeline.report.summary import summary
from coldframe.pipeline.scheduling import InProcess
from coldframe.pipeline.source.inventory import take_inventory
from coldframe.pipeline.source.tables import TableSpec, find_tables

FILES = Path(__file__).resolve().parents[1] / "data" / "kudu" / "files"
ENTRIES: list[dict[str, Any]] = json.loads((FILES / "MANIFEST.json").read_text())


def entry(file: str, table: str, at: int) -> dict[str, Any]:
    name = f"{file}.{table}.s{at}.truth.parquet"
    return next(entry for entry in ENTRIES if entry["truth"] == name)


def rows(table: pa.Table) -> list[Any]:
    return sorted(tuple(map(repr, row.values())) for row in table.to_pylist())


def test_a_directory_is_recognised() -> None:
    assert cf.detect(str(FILES / "file_blocks")) == "kudu"
    assert cf.detect(str(FILES / "replicas")) == "kudu"
    file = cf.open(FILES / "encrypted")
    assert (file.format, file.schema.names, file.num_rows) == ("kudu", ["k", "v"], 378)


def test_a_table_must_be_named_where_there_are_several() -> None:
    with pytest.raises(ValueError, match="events, numbers"):
        cf.open(FILES / "file_blocks")
    with pytest.raises(cf.NotFoundError, match="events, numbers"):
        cf.open(FILES / "file_blocks", table="orders")


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_snapshot_may_be_given_by_a_datetime(at: int) -> None:
    events = entry("file_blocks", "events", at)
    # Drop the counter of the hybrid time: the next microsecond is later, and nothing happened in between.
    micros = (events["snapshot"] >> 12) + 1
    when = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=micros)
    truth = pq.read_table(FILES / events["truth"])
    raw = events["snapshot"]
    for snapshot in (when, when.replace(tzinfo=None), when.isoformat(), raw, str(raw)):
        got = cf.open(FILES / "file_blocks", table="events", snapshot=snapshot).read()
        assert rows(got) == rows(truth)


def test_a_snapshot_before_the_first_row_is_empty() -> None:
    file = cf.open(FILES / "file_blocks", table="events", snapshot=dt.datetime(2020, 1, 1))
    assert file.read().num_rows == 0
    assert file.num_rows is None


def test_an_invalid_time_option_is_refused() -> None:
    for wrong in ("tomorrow", -4, 1.5):
        with pytest.raises(ValueError, match="snapshot"):
            cf.open(FILES / "encrypted", snapshot=wrong)


def test_a_scan_of_several_servers_gives_each_tablet_once() -> None:
    truth = pq.read_table(FILES / entry("replicas", "numbers", 4)["truth"])
    dataset = cf.scan(str(FILES / "replicas"), table="numbers")
    assert rows(dataset.to_table()) == rows(truth)
    assert dataset.count_rows() == truth.num_rows


def test_filters_and_projections_are_exact() -> None:
    file = cf.open(FILES / "log_blocks", table="events")
    truth = pq.read_table(FILES / entry("log_blocks", "events", 4)["truth"])
    got = file.read(columns=["id", "tag"], filter=[("region", "=", "südwest"), ("id", ">=", 0)])
    wanted = [r for r in truth.to_pylist() if r["region"] == "südwest" and r["id"] >= 0]
    assert sorted(got["id"].to_pylist()) == sorted(r["id"] for r in wanted)
    assert got.column_names == ["id", "tag"]
    assert file.read(filter=[("added", "=", 7)]).num_rows == sum(r["added"] == 7 for r in truth.to_pylist())


def test_splits_add_up_to_the_table() -> None:
    file = cf.open(FILES / "file_blocks", table="events")
    parts = [pa.Table.from_batches(file.to_batches(split=split), file.schema) for split in file.splits(2000)]
    assert len(parts) > 5
    assert rows(pa.concat_tables(parts)) == rows(file.read())


def test_an_encrypted_directory_is_read_with_its_key(tmp_path: Path) -> None:
    instance = (FILES / "encrypted" / "instance").read_bytes()
    # Kudu's test key provider stores the key's bytes XOR 42, as hexadecimal digits, in `server_key`.
    at = instance.rindex(b"\x1a\x20") + 2
    key = bytes(byte ^ 42 for byte in bytes.fromhex(instance[at : at + 32].decode()))
    for given in (key, key.hex()):
        assert cf.open(FILES / "encrypted", keys={"server": given}).read().num_rows == 378
    with pytest.raises(cf.KeyUnavailableError, match="server"):
        cf.open(FILES / "encrypted", keys={"server": bytes(16)})


def test_damaged_directory_names_its_losses(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(FILES / "file_blocks", copy)
    whole = cf.open(copy, table="events").read()
    tablet = cf.open(copy, table="events").metadata["tablets"][0]
    column = next(c for c in cf.open(copy, table="events").metadata["columns"] if c["name"] == "ratio")
    block = f"{tablet['rowsets'][0]['columns'][str(column['id'])]:016}"
    (path,) = copy.rglob(block)
    data = bytearray(path.read_bytes())
    data[30] ^= 0xFF
    path.write_bytes(data)
    file = cf.open(copy, table="events")
    with pytest.raises(cf.CorruptFileError, match="ratio"):
        file.read()
    skipped = file.read(on_error="skip")
    lost = whole.num_rows - skipped.num_rows
    assert lost > 0
    assert "column `ratio`" in file.damage[0]["structure"]
    assert "ordinals" in file.damage[0]["structure"]
    filled = file.read(on_error="null")
    assert filled.num_rows == whole.num_rows
    assert filled["ratio"].null_count >= lost
    assert file.verify()["damage"]
    assert rows(filled.drop_columns(["ratio"])) == rows(whole.drop_columns(["ratio"]))


def test_the_tables_of_a_directory_are_listed() -> None:
    held = held_tables(FILES / "file_blocks", format="kudu")
    assert [name for _, name in held] == ["events", "numbers"]
    for table_id, name in held:
        assert cf.open(FILES / "file_blocks", table=table_id).metadata["table"] == name
    assert [name for _, name in held_tables(FILES / "replicas", format="kudu")] == ["numbers"]
    with pytest.raises(cf.UnsupportedError, match=r"MANIFEST\.json: .*data directory"):
        held_tables(FILES / "MANIFEST.json", format="kudu")
    with pytest.raises(cf.NotFoundError):
        held_tables(FILES / "file_blocks" / "data", format="kudu")


def migrated(root: Path, specs: list[TableSpec]) -> dict[str, tuple[str, str, int]]:
    """For each table: its folder, the path of its source, and its number of rows."""
    tables = find_tables(take_inventory(str(root), [spec.path for spec in specs]), specs)
    return {
        table.name: (
            table.path,
            file.relative,
            cf.open(file.path, format=table.format, **table.options).count(),
        )
        for table in tables
        for file in table.files
    }


def test_a_directory_is_migrated_as_all_its_tables(tmp_path: Path) -> None:
    counts = {name: cf.open(FILES / "file_blocks", table=name).count() for name in ("events", "numbers")}
    alone = {name: (name, f"./{name}", rows) for name, rows in counts.items()}
    assert migrated(FILES / "file_blocks", []) == alone
    # The replicas of several servers are one source; as separate sources they would double the rows.
    count = cf.open(FILES / "replicas").count()
    assert migrated(FILES / "replicas", []) == {"numbers": ("numbers", "./numbers", count)}
    shutil.copytree(FILES / "replicas", tmp_path / "servers")
    (tmp_path / "servers" / "tables.toml").write_text("")
    assert migrated(tmp_path / "servers", []) == {"numbers": ("numbers", "./numbers", count)}
    shutil.rmtree(tmp_path / "servers")
    shutil.copytree(FILES / "file_blocks", tmp_path / "old" / "ts")
    (tmp_path / "old" / "readme").write_text("a copy")
    below = {f"old.ts.{name}": (f"old/ts/{name}", f"old/ts/{name}", rows) for name, rows in counts.items()}
    assert migrated(tmp_path, []) == below


def test_entries_name_the_tables_or_give_options_for_all_tables(tmp_path: Path) -> None:
    shutil.copytree(FILES / "file_blocks", tmp_path / "ts")
    count = cf.open(FILES / "file_blocks", table="events").count()
    spec = TableSpec("mine", "ts", options={"table": "events"})
    assert migrated(tmp_path, [spec]) == {"mine": ("ts", "ts", count)}
    at_root = TableSpec("mine", ".", options={"table": "events"})
    assert migrated(tmp_path / "ts", [at_root]) == {"mine": ("mine", "./mine", count)}
    early = TableSpec("all", "ts", options={"snapshot": "2020-01-01"})
    tables = migrated(tmp_path, [early])
    assert {name: rows for name, (_, _, rows) in tables.items()} == {"ts.events": 0, "ts.numbers": 0}


def test_missing_history_is_reported() -> None:
    # Flushed rows have an UNDO entry until Kudu deletes its file.
    metadata = cf.open(FILES / "file_blocks", table="events").metadata
    undated = [r for t in metadata["tablets"] for r in t["rowsets"] if not r["undo_deltas"]]
    assert metadata["rowsets_without_undo"] == len(undated)


WAL = FILES.parents[1] / "kudu_wal" / "files"


def test_rows_of_memory_come_from_the_log() -> None:
    file = cf.open(WAL / "lz4", table="ledger")
    assert file.num_rows == file.read().num_rows == 392
    wal = file.metadata["wal"]
    assert (wal["read"], wal["segments"], wal["uncommitted_operations"]) == (True, 2, 0)
    assert wal["rows"] > 100
    assert "damage" not in wal
    assert cf.scan(str(WAL / "lz4"), table="ledger").count_rows() == 392
    assert file.read(filter="k >= 700").num_rows == 60
    flushed = cf.open(WAL / "lz4", table="ledger", wal=False)
    assert flushed.num_rows == flushed.read().num_rows == 300
    assert flushed.metadata["wal"]["read"] is False


def test_gap_in_the_log_is_reported(tmp_path: Path) -> None:
    hurt = tmp_path / "server"
    shutil.copytree(WAL / "lz4", hurt)
    segments = sorted((hurt / "wals").glob("*/wal-*"), key=lambda path: path.stat().st_size)
    data = bytearray(segments[-1].read_bytes())
    data[len(data) // 2] ^= 1
    segments[-1].write_bytes(data)
    file = cf.open(hurt, table="trips")
    with pytest.raises(cf.CorruptFileError, match="wal=False"):
        file.read()
    kept = file.read(on_error="skip")
    assert kept.num_rows < 90
    assert "wal-000000001" in file.damage[0]["structure"]
    assert rows(kept) == [
        row for row in rows(cf.open(WAL / "lz4", table="trips").read()) if row in rows(kept)
    ]
    assert file.verify()["damage"]
    # The schema change had flushed the newer rows.
    assert cf.open(hurt, table="trips", wal=False).read().num_rows == 75


def test_tablets_of_other_servers_are_a_warning(tmp_path: Path) -> None:
    part = tmp_path / "server"
    shutil.copytree(FILES / "file_blocks", part)
    for path in (part / "meta" / "tablet-meta").iterdir():
        other = cf.open(FILES / "file_blocks", tablet=path.name)
        if other.metadata["table"] == "numbers":
            path.unlink()
            (part / "meta" / "consensus-meta" / path.name).unlink()
            break
    with pytest.warns(cf.PartialTableWarning, match="1 hash bucket"):
        file = cf.open(part, table="numbers")
    assert len(file.metadata["missing_tablets"]) == 1
    assert 0 < file.read().num_rows < 378
    with pytest.raises(cf.CorruptFileError, match="another server"):
        cf.open(part, table="numbers", complete=True, wal=False).read()


def warned(root: Path, table: str, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cf.open(root, table=table, **options)
    return [str(warning.message) for warning in caught]


def test_a_directory_without_its_logs_is_a_warning(tmp_path: Path) -> None:
    root = tmp_path / "server"
    shutil.copytree(WAL / "lz4", root)
    whole = cf.open(root, table="trips").read().num_rows
    assert warned(root, "trips") == []
    shutil.rmtree(root / "wals")
    [text] = warned(root, "trips")
    assert "write-ahead log" in text
    assert warned(root, "trips", wal=False) == []
    with pytest.raises(cf.CorruptFileError, match="write-ahead log"):
        cf.open(root, table="trips", complete=True).read()
    file = cf.open(root, table="trips", complete=True)
    assert file.read(on_error="skip").num_rows < whole
    assert any("write-ahead log" in lost["reason"] for lost in file.damage)
    estate = Estate(tmp_path)
    root.rename(estate.source / "server")
    report = estate.migrate()
    assert (report.exit_code, estate.safe()) == (1, [])
    assert "write-ahead log" in summary(report)


def test_segments_of_zeros_are_damage(tmp_path: Path) -> None:
    root = tmp_path / "server"
    shutil.copytree(WAL / "lz4", root)
    whole = cf.open(root, table="trips").read().num_rows
    for segment in root.glob("wals/*/wal-*"):
        segment.write_bytes(bytes(segment.stat().st_size))
    with pytest.raises(cf.CorruptFileError, match="found zeros"):
        cf.open(root, table="trips").read()
    file = cf.open(root, table="trips")
    assert file.read(on_error="skip").num_rows < whole
    assert any("found zeros" in lost["reason"] for lost in file.damage)
    estate = Estate(tmp_path)
    shutil.copytree(root, estate.source / "server")
    report = estate.migrate()
    assert (report.exit_code, estate.safe()) == (1, [])
    # A server that could not write to its disk leaves files without bytes.
    for segment in root.glob("wals/*/wal-*"):
        segment.write_bytes(b"")
    [text] = warned(root, "trips")
    assert "write-ahead log" in text


def test_a_newest_segment_of_zeros_is_a_warning(tmp_path: Path) -> None:
    root = tmp_path / "server"
    shutil.copytree(WAL / "lz4", root)
    assert warned(root, "trips") == []
    for log in (root / "wals").iterdir():
        (log / "wal-000000002").write_bytes(bytes(4096))
    [text] = warned(root, "trips")
    assert "no header" in text
    assert warned(root, "trips", wal=False) == []
    file = cf.open(root, table="trips", complete=True)
    file.read(on_error="skip")
    assert any("expected a header of its newest log segment" in lost["reason"] for lost in file.damage)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_a_minority_of_the_replicas_is_a_warning(servers: int, tmp_path: Path) -> None:
    root = tmp_path / "servers"
    copied = sorted(path for path in (WAL / "replicas").iterdir() if path.is_dir())
    assert len(copied) == 3
    for path in copied[:servers]:
        shutil.copytree(path, root / path.name)
    assert warned(root, "ledger", complete=False) == []
    for options in ({}, {"complete": True}):
        texts = warned(root, "ledger", **options)
        if servers > 1:
            assert texts == []
        else:
            [text] = texts
            assert "1 of 3" in text
        # What is here is whole.
        file = cf.open(root, table="ledger", **options)
        assert file.read(on_error="skip").num_rows > 0
        assert file.damage == []
    if servers > 1:
        return
    estate = Estate(tmp_path)
    shutil.copytree(root, estate.source / "server")
    report = estate.migrate()
    assert (report.exit_code, estate.safe()) == (1, [])
    assert "other servers may have newer rows" in summary(report)


def test_a_lost_super_block_keeps_its_directory_off_the_list(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    shutil.copytree(FILES / "file_blocks", estate.source, dirs_exist_ok=True)
    lost = min((estate.source / "meta" / "tablet-meta").iterdir())
    lost.unlink()
    for table in [name for _, name in held_tables(str(estate.source), format="kudu")]:
        assert any(lost.name in text for text in warned(estate.source, table, wal=False))
    known = [TableSpec("all", ".", options={"wal": False})]
    report = estate.migrate(tables=known, leave_behind=["unflushed-edits"])
    assert (report.exit_code, estate.safe()) == (1, [])
    assert lost.name in summary(report)


def crc32c(data: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def make_arrays_of(path: Path, column: bytes) -> bool:
    """Gives a string column of a super block the type of arrays. Returns whether the column exists."""
    data = path.read_bytes()
    # The container's header, the record of types (length, checksum, message, checksum), the super block.
    start = 16 + 8 + int.from_bytes(data[16:20], "little") + 4 + 8
    named = b"\x12" + bytes([len(column)]) + column + b"\x18"
    block = data[start:-4].replace(named + b"\x08", named + b"\x15")
    path.write_bytes(data[:start] + block + crc32c(block).to_bytes(4, "little"))
    return block != data[start:-4]


def test_table_with_arrays_does_not_block_others(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    shutil.copytree(FILES / "file_blocks", estate.source, dirs_exist_ok=True)
    blocks = [path for path in (estate.source / "meta" / "tablet-meta").iterdir() if "." not in path.name]
    of_events = [make_arrays_of(path, b"tag") for path in blocks]
    assert any(of_events)
    assert not all(of_events)
    with pytest.raises(cf.UnsupportedError, match=r"column `tag`: .*columns of arrays"):
        cf.open(estate.source, table="events")
    numbers = cf.open(FILES / "file_blocks", table="numbers").read()
    assert rows(cf.open(estate.source, table="numbers").read()) == rows(numbers)
    report = estate.migrate()
    assert (report.exit_code, report.safe_to_delete) == (1, 0)
    assert {table.name: table.rows for table in report.tables} == {"events": 0, "numbers": numbers.num_rows}
    assert "columns of arrays" in summary(report)


@pytest.mark.filterwarnings("ignore::coldframe.PartialTableWarning")
def test_migration_of_some_tablets_is_reported(tmp_path: Path) -> None:
    estate = Estate(tmp_path)
    shutil.copytree(FILES / "file_blocks", estate.source, dirs_exist_ok=True)
    for path in (estate.source / "meta" / "tablet-meta").iterdir():
        other = cf.open(FILES / "file_blocks", tablet=path.name)
        if other.metadata["table"] == "numbers":
            path.unlink()
            (estate.source / "meta" / "consensus-meta" / path.name).unlink()
            break
    # The directory was copied without its logs.
    copied = {"tables": [TableSpec("all", ".", options={"wal": False})]}
    before = dry_run(estate.source, estate.target, Options(), tables=copied["tables"])
    assert (before.exit_code, [bool(table.partial) for table in before.tables]) == (1, [False, True])
    assert "1 hash bucket of table numbers" in preview_text(before)
    # The tables of an earlier run are partial, too.
    for report in (estate.migrate(**copied), estate.migrate(**copied)):
        assert (report.exit_code, report.safe_to_delete) == (1, 0)
        assert [len(table.partial) for table in report.tables] == [0, 1]
        assert "1 hash bucket of table numbers" in summary(report)
        assert "1 source has a part of its table only" in page(report)
        assert report.tables[1].to_json()["partial"]
    known = [TableSpec("all", ".", options={"complete": False, "wal": False})]
    known_report = migrate(
        InProcess(), estate.source, tmp_path / "known", tables=known, leave_behind=["unflushed-edits"]
    )
    assert (known_report.exit_code, known_report.safe_to_delete) == (0, 1)
