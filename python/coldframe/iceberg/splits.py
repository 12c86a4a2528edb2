"""Splits of an Iceberg table: parts of its data files. This module does not need PyIceberg.

ORC, ..    divided by stripes; read with row numbers if rows are deleted
Parquet    one split
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coldframe._coldframe import RawSplit, plan_from_bytes, plan_to_bytes
from coldframe.arrow import pa
from coldframe.batches import DEFAULT_BATCH_SIZE, Damage, projected
from coldframe.errors import unsupported
from coldframe.file import File, Split
from coldframe.filters import Bound, Filter, bind, both, parse
from coldframe.iceberg.columns import number_of
from coldframe.iceberg.files import ReadyFile
from coldframe.iceberg.reading import Scan, is_ours, single
from coldframe.iceberg.rows import TableRows
from coldframe.literals import OnError


class IcebergSplit(Split):
    """A part of a data file of an Iceberg table.

    It carries the deletes and the mapping of columns, so that another process reads its rows without the
    table's metadata.
    """

    __slots__ = ("_filter", "_ready", "_rows")

    _rows: TableRows
    _ready: ReadyFile
    _filter: Filter | None

    @classmethod
    def made(cls, raw: RawSplit, rows: TableRows, file: ReadyFile, filter: Filter | None) -> IcebergSplit:
        """`filter`: the filter of the table."""
        split = cls.__new__(cls)
        split._raw, split._source = raw, None
        split._arguments = rows.reading.arguments(file.planned.format)
        split._rows, split._ready, split._filter = rows, file, filter
        return split

    @property
    def schema(self) -> pa.Schema:
        """The pyarrow.Schema of the split's rows: the columns of the table."""
        return self._rows.schema

    @property
    def partition(self) -> Mapping[str, Any]:
        """The values of the identity partitions of the split's file."""
        known = self._ready.planned.partition
        fields = [field for field in self._rows.columns if number_of(field) in known]
        return {field.name: single(known[number_of(field)], field.type)[0].as_py() for field in fields}

    def expand(self) -> list[Split]:
        """Divides a share into splits, for which the share's file is opened."""
        return [self.made(raw, self._rows, self._ready, self._filter) for raw in self._raw.expand()]

    def open(self) -> File:
        """Unsupported: the rows of the file differ from the rows of the table."""
        raise unsupported("opening the file of an Iceberg table's split: use coldframe.open with its path")

    open_for_this = open

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
        on_error: OnError = "raise",
        on_damage: Callable[[Damage], None] | None = None,
    ) -> pa.RecordBatchReader:
        """The split's rows as a pyarrow.RecordBatchReader. `on_damage` is called with the losses at
        the end.
        """
        wanted = self.schema if columns is None else projected(self._rows.known, columns)
        test = both(parse(self._filter), parse(filter))
        bound = Bound(None) if test is None else bind(test, self._rows.known)
        scan = Scan(wanted.names, batch_size=batch_size, on_error=on_error, use_threads=False)

        def batches() -> Iterator[Any]:
            damage: Damage = []
            for batch in self._batches(wanted, bound, scan, damage):
                if batch.num_rows:
                    yield batch
            if on_error != "raise" and on_damage is not None:
                on_damage([{k: v for k, v in lost.items() if k != "path"} for lost in damage])

        return pa.RecordBatchReader.from_batches(wanted, batches())

    def _batches(
        self, wanted: pa.Schema, bound: Bound, scan: Scan, damage: Damage
    ) -> Iterator[pa.RecordBatch]:
        rows, file = self._rows, self._ready
        if is_ours(file.planned.format):
            return rows.of_part(self._raw, file, wanted, bound, scan, damage)
        return rows.of([file], wanted, bound, scan, rows.deletes(), damage)

    def stated(self) -> list[list[dict[str, Any]]]:
        """Empty: the statistics of the file are not statistics of the table's columns."""
        return []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IcebergSplit) and self._raw == other._raw and self._ready == other._ready

    def __hash__(self) -> int:
        return hash(self._raw)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (super().__reduce__(), self._rows, self._ready, self._filter)


def _again(plain: tuple[Any, ...], rows: TableRows, file: ReadyFile, filter: Filter | None) -> IcebergSplit:
    again, given = plain
    return IcebergSplit.made(again(*given).raw, rows, file, filter)


@dataclass(frozen=True)
class Packed:
    """Splits of one table, packed so that their common parts are stored once."""

    plan: bytes
    """The splits as bytes of a plan in Rust."""
    rows: TableRows
    files: Sequence[ReadyFile]
    filter: Filter | None

    @classmethod
    def of(cls, splits: Sequence[IcebergSplit]) -> Packed:
        """Packs splits."""
        first = splits[0]
        plan = plan_to_bytes([split.raw for split in splits])
        return cls(plan, first._rows, [split._ready for split in splits], first._filter)

    def splits(self) -> list[IcebergSplit]:
        """Unpacks the splits."""
        raw = plan_from_bytes(self.plan, storage_options=self.rows.reading.storage_options)
        pairs = zip(raw, self.files, strict=True)
        return [IcebergSplit.made(raw_split, self.rows, file, self.filter) for raw_split, file in pairs]


def splits_of(
    files: Sequence[ReadyFile], rows: TableRows, split_bytes: int, filter: Filter | None, *, opened: bool
) -> Iterator[IcebergSplit]:
    """The splits of planned files. `opened`: open and divide files now; otherwise each reader opens and
    divides its own files.
    """
    for file in files:
        for raw in _parts(file, rows, split_bytes, opened=opened):
            yield IcebergSplit.made(raw, rows, file, filter)


def _parts(file: ReadyFile, rows: TableRows, split_bytes: int, *, opened: bool) -> list[RawSplit]:
    planned = file.planned
    if not is_ours(planned.format):
        arguments = rows.reading.arguments(planned.format)
        path = rows.reading.files.readable(planned.path)
        cut = (0, 0, planned.bytes)
        return [RawSplit(arguments.raw, path, cut, rows=planned.rows, known=(planned.bytes, None, None))]
    size = max(split_bytes, 1)
    return rows.ours([file]).splits(size) if opened else rows.ours([file], sized=True).plan(size)
