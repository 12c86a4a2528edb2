"""Deletes rows of a Delta or Iceberg table without rewriting its files, as Spark does.

The Python libraries of both formats rewrite the files, so this module makes Spark's files by hand.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_FEATURES = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}


def adds(table: Path) -> list[dict[str, Any]]:
    """The `add` actions of all versions of a Delta table that has no checkpoint."""
    logs = sorted((table / "_delta_log").glob("*.json"))
    actions = (json.loads(line) for log in logs for line in log.read_text().splitlines())
    return [action["add"] for action in actions if "add" in action]


def delete_by_vector(table: Path, path: str, rows: Sequence[int]) -> None:
    """Adds a version of a Delta table that hides rows of a file by an inline deletion vector."""
    add = next(add for add in reversed(adds(table)) if add["path"] == path)
    data = _bitmap(rows)
    vector = {
        "storageType": "i",
        "pathOrInlineDv": _z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }
    gone = {
        "path": path,
        "dataChange": True,
        "deletionTimestamp": 1,
        "partitionValues": add["partitionValues"],
    }
    if "deletionVector" in add:
        gone["deletionVector"] = add["deletionVector"]
    append_version(
        table,
        {"protocol": _FEATURES},
        {"remove": {**gone, "extendedFileMetadata": True, "size": add["size"]}},
        {"add": {**add, "deletionVector": vector}},
    )


def append_version(table: Path, *actions: dict[str, Any]) -> None:
    """Adds a version to a Delta table, as other writers do."""
    log = table / "_delta_log"
    number = len(list(log.glob("*.json")))
    lines = [{"commitInfo": {"timestamp": 1, "operation": "DELETE", "engineInfo": "others"}}, *actions]
    (log / f"{number:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _bitmap(rows: Sequence[int]) -> bytes:
    """A RoaringBitmapArray of one bitmap with one array container, in the portable form."""
    array = b"".join(struct.pack("<H", row) for row in sorted(rows))
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + array
    return struct.pack("<IQI", 1681511377, 1, 0) + bitmap


def _z85(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    text = ""
    for at in range(0, len(data), 4):
        word, some = int.from_bytes(data[at : at + 4], "big"), ""
        for _ in range(5):
            word, digit = divmod(word, 85)
            some = _Z85[digit] + some
        text += some
    return text


def delete_positions(table: Any, path: str, rows: Sequence[int]) -> None:
    """Adds a snapshot with a positional delete file to an Iceberg table."""
    from pyiceberg.manifest import DataFileContent

    deleted = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {b"PARQUET:field_id": b"2147483546"}),
            pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": b"2147483545"}),
        ]
    )
    columns = {"file_path": [path] * len(rows), "pos": list(rows)}
    _add_deletes(table, pa.table(columns, deleted), DataFileContent.POSITION_DELETES, None)


def delete_equal(table: Any, column: str, values: Sequence[int]) -> None:
    """Adds a snapshot with an equality delete file to an Iceberg table."""
    from pyiceberg.manifest import DataFileContent

    number = table.schema().find_field(column).field_id
    field = pa.field(column, pa.int64(), True, {b"PARQUET:field_id": str(number).encode()})
    deleted = pa.table({column: list(values)}, pa.schema([field]))
    _add_deletes(table, deleted, DataFileContent.EQUALITY_DELETES, [number])


def _add_deletes(table: Any, deleted: pa.Table, content: Any, equality: list[int] | None) -> None:
    from pyiceberg.manifest import (
        DataFile,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
    )
    from pyiceberg.table.update.snapshot import _FastAppendFiles
    from pyiceberg.typedef import Record

    number = len(table.metadata.snapshots)
    place = f"{table.location()}/data/deletes-{number}.parquet"
    local = Path(place.removeprefix("file://"))
    local.parent.mkdir(exist_ok=True)
    pq.write_table(deleted, local)
    file = DataFile.from_args(
        content=content,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=deleted.num_rows,
        file_size_in_bytes=local.stat().st_size,
        equality_ids=equality,
    )

    class Writer(ManifestWriterV2):  # type: ignore[misc]
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    class Deletes(_FastAppendFiles):  # type: ignore[misc]
        def _existing_manifests(self) -> list[Any]:
            output = self.new_manifest_output()
            writer = Writer(table.spec(), self.schema(), output, self.snapshot_id, "gzip")
            with writer:
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=file
                    )
                )
            return [*super()._existing_manifests(), writer.to_manifest_file()]

    from pyiceberg.table.snapshots import Operation

    with table.transaction() as transaction:
        Deletes(operation=Operation.DELETE, transaction=transaction, io=table.io).commit()
