"""The metadata table of a Hudi table: its records as Hudi reads them, and queries on them."""

from __future__ import annotations

import json
import re
import struct
import tarfile
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf

DATA = Path(__file__).parents[1] / "data" / "hudi"
STAGES: list[dict[str, Any]] = json.loads((DATA / "lab-1.1.1.json").read_text())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    with tarfile.open(DATA / "lab-1.1.1.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "lab"


def forget_last_commit(table: Path) -> None:
    """Turns the latest completed instant of the table into a pending instant."""
    max((table / ".hoodie" / "timeline").glob("*_*.*")).unlink()


def listed(mdt: cf.HudiMetadata) -> dict[str, int]:
    files = mdt.files(all_versions=True).to_pylist()
    return {f"{row['partition']}/{row['name']}": row["size"] for row in files}


@pytest.mark.parametrize("pending", [False, True])
def test_the_latest_committed_state_is_read(table: Path, pending: bool) -> None:
    if pending:
        forget_last_commit(table)
    truth = STAGES[-2 if pending else -1]
    mdt = cf.open_hudi_metadata(table)
    assert mdt.partitions == ["column_stats", "files", "partition_stats", "record_index"]
    assert listed(mdt) == truth["files"]
    bounds = {name: (low, high) for name, (low, high, _) in truth["amount"].items()}
    assert mdt.column_bounds("amount") == bounds
    keys = [f"id-{i:03}" for i in range(50)]
    places = {row["key"]: [row["partition"], row["file_id"]] for row in mdt.locate(keys).to_pylist()}
    assert places == {key: place[:2] for key, place in truth["record_index"].items()}


def test_live_files_are_listed_and_pruned(table: Path) -> None:
    mdt = cf.open_hudi_metadata(table)
    files = mdt.files()
    newest = sorted(row["instant"] for row in files.to_pylist())
    assert len(newest) == 2
    assert len(set(newest)) == 1, "the newest base file of either group"
    assert set(files["kind"].to_pylist()) == {"base"}
    assert mdt.files("eu")["partition"].to_pylist() == ["eu"]
    assert mdt.prune([("amount", ">", 905)]).num_rows == 0
    assert mdt.prune("amount = 904").num_rows == 1
    assert mdt.prune([[("amount", "=", 904)], [("note", "<=", "note 0")]]).num_rows == 1
    assert mdt.prune("note is null").num_rows == 2
    assert mdt.prune("not amount <= 905").num_rows == 0
    assert mdt.prune("note like 'zz%'").num_rows == 0
    assert mdt.prune([("amount", "=", "text")]).num_rows == 2, "bounds of another type exclude nothing"
    assert mdt.prune([("unknown", "=", 1)]).num_rows == 2, "no statistics, no pruning"
    assert mdt.prune([("amount", "in", [904, -1])], "us").num_rows == 0
    stats = mdt.column_stats(["amount"])
    assert stats.schema.names == ["file", "column", "min", "max", "values", "nulls", "bytes"]
    assert stats.num_rows == len(STAGES[-1]["amount"])


def test_a_partition_of_the_metadata_is_a_file_like_any_other(table: Path) -> None:
    folder = table / ".hoodie" / "metadata" / "record_index"
    assert cf.detect(str(folder)) == "hfile"
    f = cf.open(str(folder))
    assert f.format == "hfile"
    rows = f.read()
    assert rows.schema.field("recordIndexMetadata").type.field("fileIndex").type == pa.int32()
    parts = [s.to_batches().read_all() for s in f.splits(target_bytes=1)]
    assert len(parts) == 2
    assert pa.concat_tables(parts) == rows
    assert f.verify()["damage"] == []
    assert cf.open_hudi_metadata(table)["record_index"].read() == rows


def test_missing_metadata_are_an_error(table: Path, tmp_path: Path) -> None:
    with pytest.raises(cf.NotFoundError, match="expected a Hudi table"):
        cf.open_hudi_metadata(tmp_path)
    mdt = cf.open_hudi_metadata(table)
    with pytest.raises(KeyError):
        mdt["bloom_filters"]
    assert cf.detect(str(table)) == "hudi"


def test_a_truncated_log_is_damage(table: Path) -> None:
    folder = table / ".hoodie" / "metadata" / "files"
    log = max(folder.glob(".*.log.*"))
    log.write_bytes(log.read_bytes()[:-100])
    f = cf.open(str(folder))
    with pytest.raises(cf.CorruptFileError, match="log block"):
        f.read()
    # The lost block may concern any key: the base file's record may be outdated or deleted.
    assert f.read(on_error="skip").num_rows == 0
    assert f.damage


FIRST_FILE = "297a6753-0_0-296-269_20211022144726.parquet"
FIRST_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "HoodieMetadataRecord",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            {"name": "key", "type": "string"},
            {"name": "type", "type": "int"},
            {
                "name": "filesystemMetadata",
                "type": [
                    "null",
                    {
                        "type": "map",
                        "values": {
                            "type": "record",
                            "name": "HoodieMetadataFileInfo",
                            "fields": [
                                {"name": "size", "type": "long"},
                                {"name": "isDeleted", "type": "boolean"},
                            ],
                        },
                    },
                ],
                "default": None,
            },
        ],
    }
)


def avro_text(text: str) -> bytes:
    assert len(text) < 64
    return bytes([len(text) << 1]) + text.encode()


def log_block(instant: str, schema: str, content: bytes) -> bytes:
    """A block with an HFile, as Hudi 0.8 to 0.10 wrote it."""
    header = b"".join(
        struct.pack(">ii", key, len(text)) + text
        for key, text in ((0, instant.encode()), (2, schema.encode()))
    )
    body = struct.pack(">iii", 1, 4, 2) + header + struct.pack(">q", len(content)) + content + bytes(4)
    return b"#HUDI#" + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)


@pytest.mark.parametrize("first", ["0000000000000", "00000000000000"])
@pytest.mark.parametrize("in_header", [True, False])
def test_metadata_tables_before_hudi_0_11(tmp_path: Path, first: str, in_header: bool) -> None:
    """The first instant of these logs has 13 zeros, and only the blocks' headers have the schema."""
    table = tmp_path / "t"
    metadata = table / ".hoodie" / "metadata"
    (metadata / ".hoodie").mkdir(parents=True)
    (metadata / "files").mkdir()
    properties = "hoodie.table.name=t\nhoodie.table.type={}\nhoodie.table.version=3\n"
    (table / ".hoodie" / "hoodie.properties").write_text(properties.format("COPY_ON_WRITE"))
    (metadata / ".hoodie" / "hoodie.properties").write_text(properties.format("MERGE_ON_READ"))
    instant = "20211022144726"
    (table / ".hoodie" / f"{instant}.commit").write_text('{"partitionToWriteStats":{}}')
    for each in (first, instant):
        (metadata / ".hoodie" / f"{each}.deltacommit").write_text('{"partitionToWriteStats":{}}')
    files = b"\x02" + avro_text(FIRST_FILE) + b"\x08\0" + b"\0"
    partitions = b"\x02" + avro_text(".") + b"\0\0" + b"\0"
    values = [
        avro_text(".") + b"\x04\x02" + files,
        avro_text("__all_partitions__") + b"\x02\x02" + partitions,
    ]
    rows = pa.table({"key": [".", "__all_partitions__"], "value": pa.array(values, pa.binary())})
    info: dict[str, Any] = {} if in_header else {"metadata": {"schema": FIRST_SCHEMA}}
    cf.write(rows, tmp_path / "x.hfile", format="hfile", view="kv", **info)
    content = (tmp_path / "x.hfile").read_bytes()
    log = metadata / "files" / f".files-0000_{first}.log.1_0-0-0"
    log.write_bytes(log_block(instant, FIRST_SCHEMA, content))
    assert [row["name"] for row in cf.open_hudi_metadata(table).files().to_pylist()] == [FIRST_FILE]


def test_no_half_of_a_metadata_table_is_missed_without_a_word(table: Path) -> None:
    root = table / ".hoodie" / "metadata"

    def read() -> tuple[list[str], list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                rows = cf.open(root).read().to_pylist()
            except cf.ColdframeError as e:
                return [], [str(e)]
        return sorted(map(repr, rows)), [str(warning.message) for warning in caught]

    whole, told = read()
    assert (len(whole) > 0, told) == (True, [])
    aside, silent, words = table / "aside", [], 0
    timeline = root / ".hoodie" / "timeline"
    for entry in [timeline, *timeline.glob("*_*"), *root.glob("[a-z]*/*0-0*"), *root.glob("[a-z]*/.*.log.*")]:
        entry.rename(aside)
        for _ in range(1 if aside.is_dir() else 2):
            rows, told = read()
            words += bool(told)
            if rows != whole and not told:
                silent.append(str(entry.relative_to(root)))
            if aside.is_file():
                entry.write_bytes(b"")
        entry.unlink(missing_ok=True)
        aside.rename(entry)
    assert silent == []
    assert words > 10


def test_a_missing_log_of_a_metadata_table_is_damage(table: Path) -> None:
    mdt = table / ".hoodie" / "metadata"
    log = max((mdt / "files").glob(".*.log.*"))
    log.unlink()
    with pytest.raises(cf.CorruptFileError, match=re.escape(log.name)):
        cf.open_hudi_metadata(table).files()
    for opened in (cf.open(mdt), cf.open(table, format="hudi", metadata=True)):
        opened.read(on_error="skip")
        assert any(log.name in entry["reason"] for entry in opened.damage)
        assert log.name in str(opened.verify()["damage"])


def test_a_lost_commit_of_a_metadata_table_is_told(table: Path) -> None:
    mdt = table / ".hoodie" / "metadata"
    max((mdt / ".hoodie" / "timeline").glob("*_*.deltacommit")).unlink()
    with pytest.warns(cf.PartialTableWarning, match="are not completed"):
        cf.open(mdt).read()
    complete = cf.open(mdt, complete=True)
    complete.read(on_error="skip")
    assert ["are not completed" in entry["reason"] for entry in complete.damage] == [True]
