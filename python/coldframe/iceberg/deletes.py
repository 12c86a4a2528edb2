"""The deletes of a scan. Each delete file is read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from coldframe._coldframe import RawPositions
from coldframe.arrow import pa
from coldframe.iceberg.columns import NUMBERS, hidden, marked, number_of
from coldframe.iceberg.equality import DeletedValues
from coldframe.iceberg.files import DeleteFile, Located, ReadyFile
from coldframe.iceberg.paths import below_store, is_same_file
from coldframe.iceberg.reading import Reading, Scan, rows_of


@dataclass(frozen=True)
class DeletedRows:
    """The rows of one file that are deleted."""

    positions: RawPositions | None
    values: Sequence[tuple[tuple[int, ...], DeletedValues]]

    def applied(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that are not deleted. The batches must have the compared columns and row numbers."""
        for batch in batches:
            left = None if self.positions is None else self.positions.remaining(batch, NUMBERS)
            kept = batch if left is None else pa.record_batch(left)
            for ids, deleted in self.values:
                kept = deleted.kept(kept, [kept.column(hidden(number)) for number in ids])
            yield kept


class Deletes:
    """The deletes of one scan."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._positions: dict[str, dict[str, dict[str, pa.Array]]] = {}
        self._values: dict[tuple[DeleteFile, ...], DeletedValues] = {}

    def of(self, file: ReadyFile) -> DeletedRows:
        """The deletes of a file."""
        planned = file.planned
        positions = RawPositions()
        for delete_file in planned.positions:
            self._add(positions, delete_file, planned.path)
        return DeletedRows(positions if planned.positions else None, list(self._by_columns(file)))

    def _add(self, positions: RawPositions, deletes: DeleteFile, path: str) -> None:
        """Adds the rows of the data file `path` that a delete file or a deletion vector names."""
        if deletes.part is not None:
            offset, length = deletes.part
            file = self._reading.files.ranged(deletes.path)
            file.seek(offset)
            positions.add_vector(file.read(length), deletes.path, offset)
            return
        if deletes.path not in self._positions:
            self._positions[deletes.path] = self._read_positions(deletes)
        for name, numbers in self._positions[deletes.path].get(below_store(path), {}).items():
            if is_same_file(name, path):
                positions.add(numbers, deletes.path)

    def _read_positions(self, deletes: DeleteFile) -> dict[str, dict[str, pa.Array]]:
        """The deleted rows by the name of the data file, grouped by the part that all names of a
        file share.
        """
        table = self._table(deletes, _POSITIONS).combine_chunks()
        if not table.num_rows:
            return {}
        paths = table.column(0).chunk(0).dictionary_encode()
        order = pc.array_sort_indices(paths.indices)
        numbers = table.column(1).chunk(0).take(order)
        by_path: dict[str, dict[str, pa.Array]] = {}
        at = 0
        counts = {entry["values"]: entry["counts"] for entry in paths.indices.value_counts().to_pylist()}
        for number, path in enumerate(paths.dictionary.to_pylist()):
            by_path.setdefault(below_store(path), {})[path] = numbers.slice(at, counts[number])
            at += counts[number]
        return by_path

    def _by_columns(self, file: ReadyFile) -> Iterator[tuple[tuple[int, ...], DeletedValues]]:
        """The deleted values, for each combination of columns that delete files compare."""
        together: dict[tuple[int, ...], list[DeleteFile]] = {}
        for delete_file in file.planned.equality:
            together.setdefault(delete_file.equality_ids, []).append(delete_file)
        compared = {number_of(field): field for field in file.compared}
        for ids, files in together.items():
            key = tuple(files)
            if key not in self._values:
                columns = pa.schema([compared[number] for number in ids])
                table = pa.concat_tables([self._table(delete_file, columns) for delete_file in files])
                self._values[key] = DeletedValues(table.columns)
            yield ids, self._values[key]

    def _table(self, deletes: DeleteFile, columns: pa.Schema) -> pa.Table:
        rows = rows_of(Located(deletes.path, rows=deletes.rows), deletes.format, columns, self._reading)
        batches = rows.batches(Scan(columns.names), [])
        return pa.Table.from_batches(
            (pa.record_batch(batch.columns, schema=columns) for batch in batches), columns
        )


_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata=marked(2147483546, ["file_path"])),
        pa.field("pos", pa.int64(), metadata=marked(2147483545, ["pos"])),
    ]
)
"""The columns of position delete files."""
