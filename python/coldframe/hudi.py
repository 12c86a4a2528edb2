"""The metadata table of a Hudi table: which files it has, what is in their columns, where a record is.

mdt = cf.open_hudi_metadata("warehouse/trips")
mdt.partitions                                  # ["column_stats", "files", "record_index"]
mdt.files()                                     # the live files, as a pyarrow.Table: partition, name, size ..
mdt.prune([("amount", ">", 100)])               # those of them that may hold such rows
mdt.locate(["id-1", "id-2"])                    # where records are: key, partition, file_id, instant
mdt["column_stats"].read()                      # any partition as it is stored: a coldframe.File
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from coldframe._coldframe import NotFoundError
from coldframe.errors import unsupported
from coldframe.file import File
from coldframe.filters import Condition, Filter, parse
from coldframe.opening import open
from coldframe.sources import open_store

__all__ = ["HudiMetadata", "open_hudi_metadata"]

# Where the metadata table is, below the table.
METADATA = ".hoodie/metadata"
# How the root of a table that is not partitioned is called in metadata.
UNPARTITIONED = "."
# The record of the `files` partition that lists the table's partitions.
ALL_PARTITIONS = "__all_partitions__"
# The first version of tables whose log files are named by the commits that wrote them.
LOGS_BY_COMMIT = 8

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
STATS = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("column", pa.string()),
        pa.field("min", pa.string()),
        pa.field("max", pa.string()),
        pa.field("values", pa.int64()),
        pa.field("nulls", pa.int64()),
        pa.field("bytes", pa.int64()),
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


def open_hudi_metadata(
    table: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None, **options: Any
) -> HudiMetadata:
    """Opens the metadata table of the Hudi table at `table`.

    Args:
        table: path or URL of the table's directory, that which holds `.hoodie`.
        storage_options: as for `coldframe.open`.
        **options: what `coldframe.open` takes for HFiles, such as `verify_checksums=False`.
    """
    return HudiMetadata(os.fsdecode(table), storage_options, options)


class HudiMetadata(Mapping[str, File]):
    """The partitions of a metadata table by name, and the answers they are kept for.

    Each answer is of the latest committed state when it is asked for.
    """

    def __init__(
        self, table: str, storage_options: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> None:
        self._table = table
        self._store = open_store(table, storage_options)
        self._options = {**options, "storage_options": storage_options}
        found = self._store.stat(f"{METADATA}/.hoodie/hoodie.properties")
        if found is None or found.is_folder:
            raise NotFoundError(
                f"{table}: expected a Hudi table with metadata in .hoodie/metadata, found none"
            )

    def __repr__(self) -> str:
        return f"HudiMetadata({self._table!r}, {self.partitions})"

    @property
    def partitions(self) -> list[str]:
        """The names of its partitions: `files`, `column_stats`, `record_index` and what else was indexed."""
        inside = [one for some in self._store.list(METADATA) for one in some]
        folders = {one.path: one.path.rpartition("/")[2] for one in inside if one.is_folder}
        shown = {path: name for path, name in folders.items() if not name.startswith(".")}
        return sorted(name for path, name in shown.items() if next(self._store.list(path), None))

    def __getitem__(self, partition: str) -> File:
        if partition not in self.partitions:
            raise KeyError(partition)
        return open(self._store.url_of(f"{METADATA}/{partition}"), format="hfile", **self._options)

    def __iter__(self) -> Iterator[str]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def properties(self) -> dict[str, str]:
        """The table's own `hoodie.properties`."""
        return dict(self._require("files").metadata.get("table") or {})

    def files(self, partition: str | None = None, *, all_versions: bool = False) -> Any:
        """The live files of the table as a pyarrow.Table, of `partition` or of all partitions.

        Live is the newest base file of each file group and the log files that belong to it, unless the
        group was replaced by clustering or an overwrite. `all_versions` adds what Hudi has not cleaned
        yet. `kind` is `base` or `log`.
        """
        filter = None if partition is None else [("key", "=", partition or UNPARTITIONED)]
        source = self._require("files")
        table = source.read(["key", "filesystemMetadata"], filter=filter)
        rows = []
        for key, listed in zip(*(c.to_pylist() for c in table.columns), strict=True):
            if key == ALL_PARTITIONS:
                continue
            folder = "" if key == UNPARTITIONED else key
            for name, info in sorted(listed or []):
                if not info["isDeleted"]:
                    kind, file_id, instant = _parts(name)
                    path = self._store.url_of(f"{folder}/{name}" if folder else name)
                    rows.append((folder, name, path, info["size"], kind, file_id, instant))
        if not all_versions:
            rows = _live(rows, source.metadata)
        columns = zip(*rows, strict=True) if rows else [[] for _ in FILES]
        return pa.table([list(c) for c in columns], schema=FILES)

    def column_stats(self, columns: Sequence[str] | None = None) -> Any:
        """The statistics of the columns of each file, as a pyarrow.Table.

        `min` and `max` are text, since columns of all types share them; `column_bounds` has the values.
        """
        rows = [
            {**row, **{k: None if row[k] is None else str(row[k]) for k in ("min", "max")}}
            for row in self._stats(columns)
        ]
        return pa.Table.from_pylist(rows, STATS)

    def column_bounds(self, column: str) -> dict[str, tuple[Any, Any]]:
        """The smallest and the largest value of `column` by the name of the file."""
        return {row["file"]: (row["min"], row["max"]) for row in self._stats([column])}

    def prune(self, filter: Filter, partition: str | None = None) -> Any:
        """Of `files()`, those that may hold rows which pass `filter`, by the bounds of their columns.

        `filter` is what `coldframe.open(..).read` takes, but for expressions of pyarrow, which do not tell
        their parts. A file without statistics is kept. Where one file of a group is kept all of them are:
        the newest version of a row may stand in any.
        """
        table = self.files(partition)
        condition = parse(filter)
        if not isinstance(condition, Condition):
            raise unsupported("an Expression as the filter of prune: give it as lists or as SQL")
        extents: dict[str, dict[str, Extent]] = {}
        for row in self._stats(sorted(condition.columns())):
            extents.setdefault(row["file"], {})[row["column"]] = _extent(row)
        rows = table.select(["partition", "file_id", "name"]).to_pylist()
        groups = {
            (row["partition"], row["file_id"])
            for row in rows
            if condition.may_match(extents.get(row["name"], {}))
        }
        return table.filter(pa.array([(r["partition"], r["file_id"]) in groups for r in rows], pa.bool_()))

    def locate(self, keys: Iterable[str]) -> Any:
        """Where the records with these keys are, by the record index, as a pyarrow.Table.

        A key that is not in the table has no row.
        """
        wanted = sorted(set(keys))
        index = self._require("record_index")
        if not wanted:
            return LOCATIONS.empty_table()
        table = index.read(["key", "recordIndexMetadata"], filter=[("key", "in", wanted)])
        rows = []
        for key, at in zip(*(c.to_pylist() for c in table.columns), strict=True):
            if at is not None:
                partition = at.get("partitionName", at.get("partition"))
                rows.append((key, partition, _file_id(at), at.get("instantTime"), at.get("position")))
        columns = zip(*rows, strict=True) if rows else [[] for _ in LOCATIONS]
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, LOCATIONS, strict=True)]
        return pa.table(arrays, schema=LOCATIONS)

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
            import pyarrow.compute as pc

            wanted = pa.array(list(columns), pa.string())
            stats = stats.filter(pc.is_in(pc.struct_field(stats, "columnName"), wanted))
        for row in stats.to_pylist():
            if row is not None and not row["isDeleted"]:
                yield {
                    "file": row["fileName"],
                    "column": row["columnName"],
                    "min": _unwrapped(row["minValue"]),
                    "max": _unwrapped(row["maxValue"]),
                    "values": row["valueCount"],
                    "nulls": row["nullCount"],
                    "bytes": row["totalSize"],
                }


# partition, name, path, size, kind, file group, instant
Row = tuple[str, str, str, int, str, str, str]


def _live(rows: list[Row], facts: Mapping[str, Any]) -> list[Row]:
    """The rows of files whose records a reader of the table sees now."""
    replaced = {
        (p, g) for p, groups in (facts.get("table_replaced_file_groups") or {}).items() for g in groups
    }
    completed = facts.get("table_completed_instants") or {}
    version = int((facts.get("table") or {}).get("hoodie.table.version", 0))
    newest: dict[tuple[str, str], str] = {}
    for partition, _, _, _, kind, group, instant in rows:
        if kind == "base":
            newest[partition, group] = max(newest.get((partition, group), ""), instant)

    def is_live(row: Row) -> bool:
        partition, _, _, _, kind, group, instant = row
        base = newest.get((partition, group), "")
        if (partition, group) in replaced:
            return False
        if kind == "base":
            return instant == base
        # Since version 8 a log is named by the commit that wrote it: newer than the base if that ended later.
        return str(completed.get(instant, instant) if version >= LOGS_BY_COMMIT else instant) >= base

    return [row for row in rows if is_live(row)]


def _parts(name: str) -> tuple[str, str, str]:
    """The kind, group and instant of `<group>_<token>_<instant>.parquet`, `.<group>_<instant>.log.1_..`."""
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


# The smallest and the largest value of a column in a file, whether it may have nulls, whether values.
Extent = tuple[Any, Any, bool, bool]


def _extent(row: Mapping[str, Any]) -> Extent:
    has_value = row["values"] is None or row["nulls"] != row["values"]
    return row["min"], row["max"], row["nulls"] != 0, has_value
