"""The rows of planned files, with the table's columns.

runs of files without deletes    read in parallel
a file with deletes              read with row numbers and the columns that deletes compare
Parquet                          read whole and in order, then filtered here
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from coldframe._coldframe import RawSplit
from coldframe.arrow import pa
from coldframe.batches import Damage, filtered, row_count_batch
from coldframe.errors import ColdframeError
from coldframe.filters import Bound, needed
from coldframe.iceberg.columns import NUMBERS, POSITION, public, with_metadata
from coldframe.iceberg.deletes import Deletes
from coldframe.iceberg.files import Located, ReadyFile
from coldframe.iceberg.reading import OurFiles, OurPart, Reading, Rows, Scan, is_ours, rows_of
from coldframe.logs import watched

_log = logging.getLogger(__name__)

Run = Sequence[ReadyFile]


@dataclass(frozen=True)
class TableRows:
    """Reads the files of one snapshot. Splits carry the reader to other processes."""

    columns: pa.Schema
    """The table's columns with metadata for the readers."""
    reading: Reading

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's columns without metadata for the readers."""
        return public(self.columns)

    @cached_property
    def known(self) -> pa.Schema:
        """As `schema`, with the metadata columns (`_file`, `_pos`), which a read must name."""
        return public(with_metadata(self.columns))

    def runs(self, files: Sequence[ReadyFile]) -> Iterator[Run]:
        """The files in order, as runs: neighbours that are read together, or a single file."""
        numbered = enumerate(files)
        for _, run in itertools.groupby(
            numbered, lambda pair: pair[1].planned.format if is_direct(pair[1]) else str(pair[0])
        ):
            yield [file for _, file in run]

    def deletes(self) -> Deletes:
        """The deletes of one pass."""
        return Deletes(self.reading)

    def count(self, run: Run, bound: Bound, deletes: Deletes) -> int:
        """The number of rows that pass."""
        if bound.test is None and run[0].planned.is_whole:
            return sum(file.planned.rows for file in run)
        if is_direct(run[0]) and bound.exact:
            return self.ours(run).count(bound.predicate)
        none = pa.schema([])
        return sum(batch.num_rows for batch in self.of(run, none, bound, Scan([]), deletes, []))

    def of(
        self, run: Run, wanted: pa.Schema, bound: Bound, scan: Scan, deletes: Deletes, damage: Damage
    ) -> Iterator[pa.RecordBatch]:
        """The rows that pass, with the wanted columns; `scan.limit` is a hint that need not be respected."""
        first = run[0]
        if is_ours(first.planned.format):
            rows: Rows = self.ours(run)
        else:
            place = Located(first.planned.path, first.defaults, rows=first.planned.rows)
            rows = rows_of(place, first.planned.format, self._columns_of(first), self.reading)
        batches = self._passing(rows, first, wanted, bound, scan, deletes, damage)
        what = "reading %s, %d files", first.planned.path, len(run)
        yield from watched(_log, logging.INFO, *what, batches=batches)

    def of_part(
        self,
        part: RawSplit,
        file: ReadyFile,
        wanted: pa.Schema,
        bound: Bound,
        scan: Scan,
        damage: Damage,
    ) -> Iterator[pa.RecordBatch]:
        """As `of`, for a split of a file of one of coldframe's formats."""
        batches = self._passing(OurPart(part), file, wanted, bound, scan, self.deletes(), damage)
        what = "reading a split of %s, %d to %d", file.planned.path, *part.cut[1:3]
        yield from watched(_log, logging.INFO, *what, batches=batches)

    def ours(self, run: Run, *, sized: bool = False) -> OurFiles:
        """Files of one of coldframe's formats whose deletes compare the same columns.

        `sized`: use the sizes in the metadata, which opening the files verifies.
        """
        located = [
            Located(
                file.planned.path,
                file.defaults,
                file.planned.bytes if sized else None,
                file.planned.rows,
            )
            for file in run
        ]
        return OurFiles(located, run[0].planned.format, self._columns_of(run[0]), self.reading)

    def _columns_of(self, file: ReadyFile) -> pa.Schema:
        numbers = POSITION.with_name(NUMBERS)
        return pa.schema([*with_metadata(self.columns), *file.compared, numbers])

    def _passing(
        self,
        rows: Rows,
        file: ReadyFile,
        wanted: pa.Schema,
        bound: Bound,
        scan: Scan,
        deletes: Deletes,
        damage: Damage,
    ) -> Iterator[pa.RecordBatch]:
        planned, ours = file.planned, is_ours(file.planned.format)
        pushed = ours and bound.exact
        test = None if pushed else bound.test
        names = list(wanted.names) if test is None else needed(wanted.names, test, self.known)
        whole = pa.schema([self.known.field(name) for name in names])
        read_names = [*names, *(field.name for field in file.compared)]
        if planned.positions:
            read_names.append(NUMBERS)
        limit = scan.limit if pushed and planned.is_whole else None
        own = replace(scan, names=read_names, predicate=bound.predicate if ours else None, limit=limit)
        if planned.is_whole:
            read = rows.batches(own, damage)
        else:
            read = self._remaining(rows, file, own, deletes, damage)
        if not ours and scan.on_error != "raise":
            read = self._recording_damage(read, file, damage)
        batches = (_as(whole, batch) for batch in read)
        yield from batches if test is None else filtered(batches, test, wanted, None)

    def _remaining(
        self, rows: Rows, file: ReadyFile, scan: Scan, deletes: Deletes, damage: Damage
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are not deleted; no rows if its deletes cannot be read."""
        try:
            deleted = deletes.of(file)
        except ColdframeError as reason:
            if scan.on_error == "raise":
                raise
            damage.append(self._rest(file, reason))
            return
        yield from deleted.applied(rows.batches(scan, damage))

    def _recording_damage(
        self, batches: Iterator[pa.RecordBatch], file: ReadyFile, damage: Damage
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except ColdframeError as reason:
            damage.append(self._rest(file, reason))

    def _rest(self, file: ReadyFile, reason: ColdframeError) -> dict[str, Any]:
        """The damage record of a file whose remaining rows are lost."""
        return {
            "path": self.reading.files.readable(file.planned.path),
            "offset": getattr(reason, "offset", None) or 0,
            "length": 0,
            "rows_lost": None,
            "structure": getattr(reason, "structure", None) or "file",
            "reason": str(reason),
        }


def is_direct(file: ReadyFile) -> bool:
    """Whether the file has no deletes and one of coldframe's formats, so that its own reader can scan it."""
    return file.planned.is_whole and is_ours(file.planned.format)


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The first columns of the batch, in the types of a schema."""
    if len(schema) == 0:
        return row_count_batch(batch.num_rows, schema)
    columns = [batch.column(at).cast(field.type) for at, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
