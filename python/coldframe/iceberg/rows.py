"""The rows of planned files, as a table's columns.

runs of files without deletes    read side by side, the filter pushed down
a file with deletes, or Parquet  read whole and in its order; deletes are applied, then the filter
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from coldframe.errors import ColdframeError, unsupported
from coldframe.file import Damage, filtered, row_count_batch
from coldframe.filters import Bound, mentioned
from coldframe.iceberg.deletes import Deletes, Fields
from coldframe.iceberg.planning import PlannedFile
from coldframe.iceberg.reading import Located, OurFiles, Reading, Scan, batches_of, is_ours, one_value
from coldframe.iceberg.table import IcebergTable
from coldframe.iceberg.types import has_defaults_inside, number_of, public

__all__ = ["TableRows"]

Run = Sequence[PlannedFile]


class TableRows:
    """Reads the files of one snapshot."""

    def __init__(self, table: IcebergTable, reading: Reading) -> None:
        self._columns, self._reading = table.columns, reading
        self.schema: pa.Schema = public(self._columns)
        self._fields = Fields(table.schemas, table.names)
        self._nested = {one.name for one in table.schema.fields if has_defaults_inside(one.field_type)}

    def runs(self, files: Sequence[PlannedFile]) -> Iterator[Run]:
        """The files in their order: neighbours that are read together, and those that are read alone."""
        numbered = enumerate(files)
        for _, run in itertools.groupby(
            numbered, lambda one: one[1].format if _is_direct(one[1]) else str(one[0])
        ):
            yield [file for _, file in run]

    def deletes(self) -> Deletes:
        """The deletes of one pass."""
        return Deletes(self._reading, self._fields)

    def count(self, run: Run, bound: Bound, deletes: Deletes) -> int:
        """The number of rows that pass."""
        if bound.test is None and run[0].is_whole:
            return sum(one.rows for one in run)
        if _is_direct(run[0]) and bound.exact:
            return self._ours(run).count(bound.predicate)
        none = pa.schema([])
        return sum(batch.num_rows for batch in self.of(run, none, bound, Scan([]), deletes, []))

    def of(
        self, run: Run, wanted: pa.Schema, bound: Bound, scan: Scan, deletes: Deletes, damage: Damage
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass, with the wanted columns; `scan.limit` is only a hint."""
        is_pushed = _is_direct(run[0]) and bound.exact
        test = None if is_pushed else bound.test
        asked = [] if test is None else mentioned(test, self.schema)
        names = list(dict.fromkeys([*wanted.names, *asked]))
        whole = pa.schema([self.schema.field(name) for name in names])
        predicate = bound.predicate if _is_direct(run[0]) else None
        scan = replace(scan, names=names, predicate=predicate, limit=scan.limit if is_pushed else None)
        if _is_direct(run[0]):
            ours = self._ours(run)
            rows = _with_damage(ours, scan, damage)
        else:
            rows = self._alone(run[0], scan, deletes, damage)
        batches = (_as(whole, batch) for batch in rows)
        yield from batches if test is None else filtered(batches, test, wanted, None)

    def demand(self, wanted: pa.Schema, bound: Bound) -> None:
        """UnsupportedError where columns are needed that cannot be read."""
        asked = [] if bound.test is None else mentioned(bound.test, self.schema)
        names = [*wanted.names, *asked]
        if nested := self._nested.intersection(names):
            raise unsupported(f"a default value within the column {min(nested)} of an Iceberg table")

    def _ours(self, run: Run) -> OurFiles:
        located = [self._located(file) for file in run]
        return OurFiles(located, run[0].format, self._columns, self._reading)

    def _located(self, file: PlannedFile, more: Sequence[pa.Field] = ()) -> Located:
        """A file with values for columns that it may lack: of identity partitions, else defaults."""
        values: dict[str, pa.Array] = {}
        for one in (*self._columns, *more):
            number = number_of(one)
            value = file.partition.get(number, self._fields.default(number))
            if value is not None or number in file.partition:
                values[one.name] = one_value(value, one.type)
        row = pa.RecordBatch.from_arrays(list(values.values()), list(values)) if values else None
        return Located(file.path, row)

    def _alone(
        self, file: PlannedFile, scan: Scan, deletes: Deletes, damage: Damage
    ) -> Iterator[pa.RecordBatch]:
        """What is left of one file, with the columns of a scan in front."""
        more = deletes.columns(file)
        columns = pa.schema([*self._columns, *more])
        names = [*scan.names, *(field.name for field in more)]
        # What is passed over in a file would shift the numbers of the rows behind it.
        tolerant = scan.on_error != "raise" and (bool(file.positions) or not is_ours(file.format))
        own = replace(scan, names=names, on_error="raise" if tolerant else scan.on_error)
        rows = batches_of(self._located(file, more), file.format, columns, self._reading, own, damage)
        try:
            yield from deletes.applied(rows, file)
        except ColdframeError as reason:
            if not tolerant:
                raise
            damage.append(_rest(self._reading.files.readable(file.path), reason))


def _is_direct(file: PlannedFile) -> bool:
    """Whether nothing but its rows matters: they may be filtered and counted by its reader."""
    return file.is_whole and is_ours(file.format)


def _with_damage(ours: OurFiles, scan: Scan, damage: Damage) -> Iterator[pa.RecordBatch]:
    yield from ours.batches(scan)
    damage += ours.damage


def _rest(path: str, reason: ColdframeError) -> dict[str, Any]:
    """The record of a file of which nothing more is read."""
    offset = getattr(reason, "offset", None)
    return {
        "path": path,
        "offset": offset or 0,
        "length": 0,
        "rows_lost": None,
        "structure": getattr(reason, "structure", None) or "file",
        "reason": str(reason),
    }


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a schema, which come first in the batch."""
    if len(schema) == 0:
        return row_count_batch(batch.num_rows, schema)
    columns = [batch.column(at).cast(field.type) for at, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
