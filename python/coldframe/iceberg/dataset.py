"""An Iceberg table as a Dataset.

filter -> PyIceberg's expression -> files that may have matching rows, with their deletes   (`planning`)
consecutive files without deletes  ->  read in parallel, with the filter pushed down          (`rows`)
a file with deletes                ->  read alone, without the deleted rows                   (`deletes`)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from coldframe.arguments import Keys, check_plain
from coldframe.arrow import pa
from coldframe.batches import DEFAULT_BATCH_SIZE, DEFAULT_SPLIT_BYTES, Damage, projected
from coldframe.errors import unsupported
from coldframe.file import File, Split
from coldframe.filters import Bound, Filter, bind, both, parse
from coldframe.iceberg.fields import Fields
from coldframe.iceberg.files import PlannedFile, ReadyFile
from coldframe.iceberg.filters import translated
from coldframe.iceberg.inputs import Inputs
from coldframe.iceberg.planning import Planner
from coldframe.iceberg.reading import Reading, Scan
from coldframe.iceberg.rows import TableRows
from coldframe.iceberg.splits import splits_of
from coldframe.iceberg.table import Address, IcebergTable
from coldframe.iceberg.types import has_nanoseconds
from coldframe.literals import OnError
from coldframe.logs import step
from coldframe.notebook import summary_html
from coldframe.scanning import Dataset

_log = logging.getLogger(__name__)


class IcebergDataset(Dataset):
    """One snapshot of an Iceberg table, created by `coldframe.iceberg_table` and `coldframe.scan`.

    Anything that accepts Arrow streams accepts it. The dataset stays at its snapshot, also in other
    processes.
    """

    def __init__(
        self,
        address: Address,
        storage_options: Mapping[str, Any] | None = None,
        verify_checksums: bool = True,
        keys: Keys | None = None,
        options: Mapping[str, Any] | None = None,
        filter: Filter | None = None,
    ) -> None:
        # Dataset.__init__ is not called: each pass plans its own files, by its filter.
        check_plain(options or {}, "an Iceberg table")
        self._address, self._given = address, filter
        self._opening = (storage_options, verify_checksums, keys, options)
        self._table = IcebergTable(address, storage_options)
        reading = Reading(
            self._table.files,
            storage_options,
            verify_checksums,
            keys,
            dict(options or {}),
            self._table.metadata.name_mapping() is not None,
            has_nanoseconds(self._table.schema),
        )
        self._rows = TableRows(self._table.columns, reading)
        self._fields = Fields(self._table)
        self._schema = self._rows.schema
        self._damage: Damage = []
        self._filter = parse(filter)
        if self._filter is not None:
            bind(self._filter, self._rows.known)
        metadata = self._table.metadata
        inputs = Inputs(self._table.files)
        self._planner = Planner(metadata, self._table.snapshot, self._table.schema, inputs)

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the snapshot; field ids are in the metadata of the fields."""
        return self._schema

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None if the table has never had rows."""
        return None if self._table.snapshot is None else int(self._table.snapshot.snapshot_id)

    @property
    def partition_columns(self) -> list[str]:
        """The columns by which the files are partitioned, directly or through a transform."""
        names = (self._table.schema.find_column_name(part.source_id) for part in self._table.spec.fields)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def files(self) -> list[str]:
        """The data files, except those that the table's own filter rules out."""
        return [self._table.files.readable(file.path) for file in self._plan(self._bound(None))]

    @property
    def size(self) -> int:
        """The total length of the data files in bytes, according to the metadata."""
        return sum(file.bytes for file in self._plan(self._bound(None)))

    @cached_property
    def format(self) -> str:
        """The format of the first data file; without files, the format of new files."""
        for file in self._plan(Bound(None)):
            return file.format
        return str(self._table.metadata.properties.get("write.format.default", "parquet")).lower()

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if deletes or the table's own filter make a scan necessary."""
        files = self._plan(Bound(None)) if self._filter is None else []
        whole = all(file.is_whole for file in files)
        return sum(file.rows for file in files) if whole and self._filter is None else None

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        limit: int | None = None,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
        use_threads: bool = True,
    ) -> pa.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader, in the order of the snapshot's files.

        `columns` and the filter may also name `_file` and `_pos`, the file and the row number of each row.
        """
        wanted = self._schema if columns is None else projected(self._rows.known, columns)
        bound = self._bound(filter)
        scan = Scan(wanted.names, None, limit, batch_size, on_error, use_threads)

        def batches() -> Iterator[Any]:
            damage: Damage = []
            left, deletes = limit, self._rows.deletes()
            for run in self._rows.runs(self._ready(bound)) if limit != 0 else ():
                for batch in self._rows.of(run, wanted, bound, scan, deletes, damage):
                    part = batch if left is None else batch.slice(0, left)
                    left = left if left is None else left - part.num_rows
                    if part.num_rows:
                        yield part
                    if left == 0:
                        break
                if left == 0:
                    break
            if on_error != "raise":
                self._damage = damage
                if on_damage is not None:
                    on_damage(self.damage)

        return pa.RecordBatchReader.from_batches(wanted, batches())

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows, or of those that pass the filter."""
        bound = self._bound(filter)
        deletes = self._rows.deletes()
        return sum(self._rows.count(run, bound, deletes) for run in self._rows.runs(self._ready(bound)))

    count_rows = count

    def splits(
        self,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        *,
        filter: Filter | None = None,
        target_bytes: int | None = None,
    ) -> list[Split]:
        """Parts that can be read independently, also in other processes, which do not read the metadata.

        A filter excludes files. `target_bytes` is another name of `split_bytes`.
        """
        split_bytes = split_bytes if target_bytes is None else target_bytes
        return self._splits(split_bytes, filter, opened=True)

    def planned(self, split_bytes: int, *, filter: Filter | None = None) -> list[Split]:
        """As `splits`, but does not open data files: call `Split.expand` before reading a split."""
        return self._splits(split_bytes, filter, opened=False)

    def _splits(self, split_bytes: int, filter: Filter | None, *, opened: bool) -> list[Split]:
        files = self._ready(self._bound(filter))
        return list(splits_of(files, self._rows, split_bytes, self._given, opened=opened))

    @property
    def found(self) -> list[Any]:
        """The dataset itself, which stays at its snapshot and plans the files of each pass."""
        return [self]

    def open_file(self, number: int) -> File:
        """Unsupported: a file alone lacks the table's ids, defaults and deletes."""
        raise unsupported("opening a file of an Iceberg table: use coldframe.open with its path")

    def parts(self, filter: Any = None) -> Iterator[tuple[str, Dataset, Any]]:
        """Unsupported: a file does not have the table's ids, defaults and deletes."""
        raise unsupported("fragments of an Iceberg table")

    def _repr_html_(self) -> str:
        properties = [("snapshot", self.snapshot_id), ("format", self.format)]
        return summary_html(self._table.name, properties, self._schema, self._damage)

    def __reduce__(self) -> tuple[Any, ...]:
        return IcebergDataset, (self._address, *self._opening, self._given)

    def __repr__(self) -> str:
        return f"<coldframe.IcebergDataset {self._table.name}: {', '.join(self._schema.names[:8])}>"

    def _bound(self, filter: Filter | None) -> Bound:
        """The filter of the table and `filter`, joined by AND and bound to the table's columns."""
        test = both(self._filter, parse(filter))
        return Bound(None) if test is None else bind(test, self._rows.known)

    def _ready(self, bound: Bound) -> list[ReadyFile]:
        return [self._fields.ready(file) for file in self._plan(bound)]

    def _plan(self, bound: Bound) -> list[PlannedFile]:
        with step(_log, logging.INFO, "planning the files of %s", self._table.name) as notes:
            files = self._planner.plan(translated(bound.predicate, self._table.schema, self._schema))
            notes.append(f"{len(files)} files")
        return files
