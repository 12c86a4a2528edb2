"""The metadata table of a Hudi table: its files, statistics of their columns, locations of records.

mdt = cf.open_hudi_metadata("warehouse/trips")
mdt.partitions                                  # ["column_stats", "files", "record_index"]
mdt.files()                                     # the live files, as a pyarrow.Table: partition, name, size ..
mdt.prune([("amount", ">", 100)])               # the files that may hold such rows
mdt.locate(["id-1", "id-2"])                    # where records are: key, partition, file_id, instant
mdt["column_stats"].read()                      # any partition as stored: a coldframe.File
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from coldframe._coldframe import (
    NotFoundError,
    hudi_column_stats,
    hudi_files,
    hudi_locate,
    hudi_partitions,
    hudi_prune,
)
from coldframe.arrow import pa
from coldframe.errors import unsupported
from coldframe.file import File
from coldframe.filters import Condition, Filter, parse
from coldframe.opening import open
from coldframe.sources import open_store, with_filesystem

# Where the metadata table is, below the table.
METADATA = ".hoodie/metadata"

# The schema of `column_stats`, with bounds as text.
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


def open_hudi_metadata(
    table: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Any,
) -> HudiMetadata:
    """Opens the metadata table of the Hudi table at `table`.

    Args:
        table: path or URL of the directory that holds `.hoodie`.
        storage_options, filesystem: as for `coldframe.open`.
        **options: options of `coldframe.open` for HFiles, such as `verify_checksums=False`.
    """
    return HudiMetadata(os.fsdecode(table), with_filesystem(storage_options, filesystem), options)


class HudiMetadata(Mapping[str, File]):
    """The partitions of a metadata table by name, and queries of them.

    Each query sees the latest committed state at the time of the call.
    """

    def __init__(
        self, table: str, storage_options: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> None:
        self._table = table
        self._store = open_store(table, storage_options)
        self._options = {**options, "storage_options": storage_options}
        entry = self._store.stat(f"{METADATA}/.hoodie/hoodie.properties")
        if entry is None or entry.is_folder:
            raise NotFoundError(
                f"{table}: expected a Hudi table with metadata in .hoodie/metadata, found none"
            )

    def __repr__(self) -> str:
        return f"HudiMetadata({self._table!r}, {self.partitions})"

    @property
    def partitions(self) -> list[str]:
        """The names of its partitions: `files`, `column_stats`, `record_index` and further names."""
        return hudi_partitions(self._store, METADATA)

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

        Live files are the newest base file of each file group and its log files, unless clustering or an
        overwrite replaced the group. `all_versions` adds older files that Hudi has not cleaned yet. `kind` is
        `base` or `log`.
        """
        files = self._require("files")._raw
        return self._located(hudi_files(files, partition, all_versions=all_versions))

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
        """The rows of `files()` whose column bounds allow rows that pass `filter`.

        `filter` is a list or SQL text, as for `read`; pyarrow expressions are not supported. A file without
        statistics is kept. If one file of a group is kept, all files of the group are: any of them may hold
        the newest version of a row.
        """
        condition = parse(filter)
        if not isinstance(condition, Condition):
            raise unsupported("an Expression as the filter of prune: give it as lists or as SQL")
        files, stats = self._require("files")._raw, self._require("column_stats")._raw
        return self._located(hudi_prune(files, stats, condition, partition))

    def locate(self, keys: Iterable[str]) -> Any:
        """The locations of the records with these keys, from the record index, as a pyarrow.Table.

        The result has no row for a key that the table lacks.
        """
        index = self._require("record_index")._raw
        return pa.table(pa.record_batch(hudi_locate(index, sorted(set(keys)))))

    def _require(self, partition: str) -> File:
        try:
            return self[partition]
        except KeyError:
            raise NotFoundError(f"{self._table}: the metadata table has no partition `{partition}`") from None

    def _stats(self, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        """The statistics of the live files, for `columns` or for all columns."""
        stats = pa.record_batch(hudi_column_stats(self._require("column_stats")._raw, columns))
        for row in stats.to_pylist():
            yield {**row, "min": _unwrapped(row["min"]), "max": _unwrapped(row["max"])}

    def _located(self, files: Any) -> Any:
        """A table of files with absolute paths instead of paths relative to the table's directory."""
        table = pa.table(pa.record_batch(files))
        at = table.schema.get_field_index("path")
        paths = [self._store.url_of(path) for path in table.column(at).to_pylist()]
        return table.set_column(at, table.field(at), pa.array(paths, pa.string()))


def _unwrapped(value: Any) -> Any:
    """In a union of wrapper records, the value of the only wrapper that is not null."""
    if isinstance(value, dict):
        present = [v for v in value.values() if v is not None]
        return _unwrapped(present[0]) if present else None
    return value
