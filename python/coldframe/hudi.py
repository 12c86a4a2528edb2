"""The metadata table of a Hudi table: which files it has, what is in their columns, where a record is.

mdt = cf.open_hudi_metadata("warehouse/trips")
mdt.partitions                                  # ["column_stats", "files", "record_index"]
mdt.files()                                     # a pyarrow.Table of the live files: partition, name, path, size
mdt.prune([("amount", ">", 100)])               # those of them that may hold such rows
mdt.locate(["id-1", "id-2"])                    # where records are: key, partition, file_id, instant
mdt["column_stats"].read()                      # any partition as it is stored: a coldframe.File
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe._coldframe import NotFoundError
from coldframe.errors import invalid, unsupported
from coldframe.file import File, open

__all__ = ["HudiMetadata", "open_hudi_metadata"]

# How the root of a table that is not partitioned is called in metadata.
UNPARTITIONED = "."
# The record of the `files` partition that lists the table's partitions.
ALL_PARTITIONS = "__all_partitions__"

FILES = pa.schema(
    [
        pa.field("partition", pa.string()),
        pa.field("name", pa.string()),
        pa.field("path", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("file_id", pa.string()),
        pa.field("instant", pa.string()),
    ]
)
LOCATIONS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("file_id", pa.string()),
        pa.field("instant", pa.timestamp("ms", tz="UTC")),
        pa.field("position", pa.int64()),
    ]
)


def open_hudi_metadata(table: str | Path, **options: Any) -> HudiMetadata:
    """Opens the metadata table of the Hudi table at `table`, a local directory.

    Args:
        table: the directory of the table, that which holds `.hoodie`.
        **options: what `coldframe.open` takes for HFiles, such as `verify_checksums=False`.
    """
    return HudiMetadata(Path(table), options)


class HudiMetadata(Mapping[str, File]):
    """The partitions of a metadata table by name, and the answers they are kept for.

    Each answer is of the latest committed state when it is asked for.
    """

    def __init__(self, table: Path, options: Mapping[str, Any]) -> None:
        self._table = table
        self._root = table / ".hoodie" / "metadata"
        self._options = dict(options)
        if not (self._root / ".hoodie" / "hoodie.properties").is_file():
            raise NotFoundError(f"{table}: expected a Hudi table with metadata in .hoodie/metadata, found none")

    def __repr__(self) -> str:
        return f"HudiMetadata({str(self._table)!r}, {self.partitions})"

    @property
    def partitions(self) -> list[str]:
        """The names of its partitions: `files`, `column_stats`, `record_index` and what else was indexed."""
        folders = (p for p in self._root.iterdir() if p.is_dir() and not p.name.startswith("."))
        return sorted(p.name for p in folders if any(p.iterdir()))

    def __getitem__(self, partition: str) -> File:
        if partition not in self.partitions:
            raise KeyError(partition)
        return open(str(self._root / partition), format="hfile", **self._options)

    def __iter__(self) -> Iterator[str]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def properties(self) -> dict[str, str]:
        """The table's own `hoodie.properties`."""
        return dict(open(str(self._root), format="hfile", **self._options).metadata.get("table") or {})

    def files(self, partition: str | None = None) -> Any:
        """The files of the table as a pyarrow.Table: all that are not deleted, of `partition` or of all partitions.

        `kind` is `base` or `log`. Hudi keeps older versions of a file until it cleans them; `latest()` leaves them out.
        """
        filter = None if partition is None else [("key", "=", partition or UNPARTITIONED)]
        table = self._require("files").read(["key", "filesystemMetadata"], filter=filter)
        rows: dict[str, list[Any]] = {name: [] for name in FILES.names}
        for key, listed in zip(*(c.to_pylist() for c in table.columns), strict=True):
            if key == ALL_PARTITIONS:
                continue
            folder = "" if key == UNPARTITIONED else key
            for name, info in sorted(listed or []):
                if info["isDeleted"]:
                    continue
                kind, file_id, instant = _parts(name)
                values = (folder, name, str(self._table / folder / name), info["size"], kind, file_id, instant)
                for column, value in zip(rows.values(), values, strict=True):
                    column.append(value)
        return pa.table(rows, schema=FILES)

    def latest(self, partition: str | None = None) -> Any:
        """Of `files()`, the newest base file of each file group, and all log files."""
        table = self.files(partition)
        newest: dict[tuple[str, str], str] = {}
        rows = table.select(["partition", "file_id", "instant", "kind"]).to_pylist()
        for row in rows:
            if row["kind"] == "base":
                group = (row["partition"], row["file_id"])
                newest[group] = max(newest.get(group, ""), row["instant"])
        keep = [
            row["kind"] != "base" or newest[row["partition"], row["file_id"]] == row["instant"] for row in rows
        ]
        return table.filter(pa.array(keep, pa.bool_()))

    def column_stats(self, columns: Sequence[str] | None = None) -> Any:
        """What is known of the columns of each file, as a pyarrow.Table.

        `min` and `max` are text, in Python's form, since columns of all types share them; `column_bounds` has the values.
        """
        rows = [
            {
                **{k: row[k] for k in ("partition", "file", "column", "values", "nulls", "bytes")},
                "min": None if row["min"] is None else str(row["min"]),
                "max": None if row["max"] is None else str(row["max"]),
            }
            for row in self._stats(columns)
        ]
        text, number = pa.string(), pa.int64()
        names = {"partition": text, "file": text, "column": text, "min": text, "max": text}
        return pa.Table.from_pylist(rows, pa.schema({**names, "values": number, "nulls": number, "bytes": number}))

    def column_bounds(self, column: str) -> dict[str, tuple[Any, Any]]:
        """The smallest and the largest value of `column` by the name of the file."""
        return {row["file"]: (row["min"], row["max"]) for row in self._stats([column])}

    def prune(self, filter: Any, partition: str | None = None) -> Any:
        """Of `latest()`, the files that may hold rows which pass `filter`, by the bounds of their columns.

        `filter` is a list of `(column, op, value)`, all of which hold, or a list of such lists, of which one holds.
        A file without statistics of a column is kept. So are all files of a group that has log files, unless none
        of its files can match: a row's newest version may be in any of them.
        """
        table = self.latest(partition)
        any_of = _normal_form(filter)
        columns = sorted({column for all_of in any_of for column, _, _ in all_of})
        bounds: dict[str, dict[str, dict[str, Any]]] = {}
        for row in self._stats(columns):
            bounds.setdefault(row["file"], {})[row["column"]] = row
        rows = table.select(["partition", "file_id", "name"]).to_pylist()
        groups = {
            (row["partition"], row["file_id"])
            for row in rows
            if any(all(_may_match(bounds.get(row["name"], {}).get(c), op, v) for c, op, v in f) for f in any_of)
        }
        return table.filter(pa.array([(r["partition"], r["file_id"]) in groups for r in rows], pa.bool_()))

    def locate(self, keys: Iterable[str]) -> Any:
        """Where the records with these keys are, by the record index: a pyarrow.Table; a key that is not there has no row."""
        wanted = sorted(set(keys))
        table = self._require("record_index").read(
            ["key", "recordIndexMetadata"], filter=[("key", "in", wanted)] if wanted else [("key", "=", "")]
        )
        rows: dict[str, list[Any]] = {name: [] for name in LOCATIONS.names}
        for key, at in zip(*(c.to_pylist() for c in table.columns), strict=True):
            if at is None:
                continue
            partition = at.get("partitionName", at.get("partition"))
            for column, value in zip(
                rows.values(), (key, partition, _file_id(at), at.get("instantTime"), at.get("position")), strict=True
            ):
                column.append(value)
        return pa.table({**rows, "instant": pa.array(rows["instant"], LOCATIONS.field("instant").type)}, schema=LOCATIONS)

    def _require(self, partition: str) -> File:
        if partition not in self.partitions:
            raise NotFoundError(f"{self._table}: the metadata table has no partition `{partition}`")
        return self[partition]

    def _stats(self, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        """The live statistics of files, of `columns` or of all."""
        if columns is not None and not columns:
            return
        table = self._require("column_stats").read(["ColumnStatsMetadata"])
        stats = table.column("ColumnStatsMetadata")
        if columns is not None:
            wanted = pa.array(list(columns), pa.string())
            stats = stats.filter(pc.is_in(pc.struct_field(stats, "columnName"), wanted))
        for row in stats.to_pylist():
            if row is not None and not row["isDeleted"]:
                yield {
                    "partition": None,
                    "file": row["fileName"],
                    "column": row["columnName"],
                    "min": _unwrapped(row["minValue"]),
                    "max": _unwrapped(row["maxValue"]),
                    "values": row["valueCount"],
                    "nulls": row["nullCount"],
                    "bytes": row["totalSize"],
                }


def _parts(name: str) -> tuple[str, str, str]:
    """The kind of a data file, its group and its instant: `<group>_<token>_<instant>.parquet`, `.<group>_<instant>.log.1_..`."""
    if name.startswith(".") and ".log." in name:
        file_id, _, instant = name[1 : name.index(".log.")].rpartition("_")
        return "log", file_id, instant
    stem = name.partition(".")[0]
    rest, _, instant = stem.rpartition("_")
    file_id, _, _ = rest.rpartition("_")
    return "base", file_id or stem, instant


def _file_id(at: Mapping[str, Any]) -> str | None:
    """The file group of a location: a UUID in two halves and a number, or text."""
    if at.get("fileIdEncoding") == 1:
        return at.get("fileId")
    high, low = at.get("fileIdHighBits"), at.get("fileIdLowBits")
    if high is None or low is None:
        return at.get("fileId")
    group = str(uuid.UUID(int=(high & (1 << 64) - 1) << 64 | low & (1 << 64) - 1))
    index = at.get("fileIndex")
    return group if index is None or index < 0 else f"{group}-{index}"


def _unwrapped(value: Any) -> Any:
    """The value in a union of wrappers, of which one is set."""
    if isinstance(value, dict):
        present = [v for v in value.values() if v is not None]
        return _unwrapped(present[0]) if present else None
    return value


def _normal_form(filter: Any) -> list[list[tuple[str, str, Any]]]:
    if not isinstance(filter, (list, tuple)) or not filter:
        raise invalid(f"filter: expected a list of (column, op, value), found {filter!r}")
    any_of = filter if isinstance(filter[0], list) else [filter]
    for all_of in any_of:
        for term in all_of:
            if len(term) != 3 or term[1] not in ("=", "==", "!=", "<", "<=", ">", ">=", "in", "not in"):
                raise unsupported(f"filter: {term!r} for pruning by column statistics")
    return [[(c, op, v) for c, op, v in all_of] for all_of in any_of]


def _may_match(stats: Mapping[str, Any] | None, op: str, value: Any) -> bool:
    """Whether a column with these statistics may hold a value for which the comparison holds."""
    if stats is None:
        return True
    if stats["values"] is not None and stats["nulls"] == stats["values"]:
        return False
    low, high = stats["min"], stats["max"]
    if low is None or high is None:
        return True
    if op == "in":
        return any(_may_match(stats, "=", v) for v in value)
    if op == "not in":
        return not (low == high and low in value)
    value = _comparable(value, low)
    try:
        match op:
            case "=" | "==":
                return bool(low <= value <= high)
            case "!=":
                return not (low == high == value)
            case "<":
                return bool(low < value)
            case "<=":
                return bool(low <= value)
            case ">":
                return bool(high > value)
            case _:
                return bool(high >= value)
    except TypeError:
        return True  # another type than the column's: the rows decide


def _comparable(value: Any, bound: Any) -> Any:
    """The value in the form in which metadata keeps bounds: dates as days, timestamps as microseconds."""
    if isinstance(bound, int) and not isinstance(bound, bool):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        if isinstance(value, datetime.datetime):
            instant = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
            return (instant - epoch) // datetime.timedelta(microseconds=1)
        if isinstance(value, datetime.date):
            return (value - epoch.date()).days
    if isinstance(bound, decimal.Decimal) and isinstance(value, (int, float, str)):
        return decimal.Decimal(str(value))
    return value
