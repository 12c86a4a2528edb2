"""Deletes of a scan: which rows of a file are left. Each delete file is read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coldframe.errors import unsupported
from coldframe.file import Damage
from coldframe.iceberg.equality import DeletedValues
from coldframe.iceberg.planning import DeleteFile, PlannedFile
from coldframe.iceberg.positions import Positions, vector
from coldframe.iceberg.reading import Located, Reading, Scan, batches_of
from coldframe.iceberg.types import Names, columns_of, field_of

__all__ = ["Deletes", "hidden"]


class Deletes:
    """The deletes of one scan."""

    def __init__(self, reading: Reading, fields: Fields) -> None:
        self._reading, self._fields = reading, fields
        self._positions: dict[str, dict[str, pa.Array]] = {}
        self._values: dict[tuple[DeleteFile, ...], DeletedValues] = {}

    def columns(self, file: PlannedFile) -> list[pa.Field]:
        """Further columns that a file's deletes need, under names that no table has."""
        ids = dict.fromkeys(number for one in file.equality for number in one.equality_ids)
        return [self._fields.hidden(number) for number in ids]

    def applied(self, batches: Iterable[pa.RecordBatch], file: PlannedFile) -> Iterator[pa.RecordBatch]:
        """What is left of all rows of a file, which come in their order."""
        positions = Positions(self._of(one, file.path) for one in file.positions)
        values = list(self._by_columns(file))
        first = 0
        for batch in batches:
            kept = positions.kept(batch, first)
            first += batch.num_rows
            for ids, deleted in values:
                kept = deleted.kept(kept, [kept.column(hidden(number)) for number in ids])
            yield kept

    def _of(self, deletes: DeleteFile, path: str) -> pa.Array | pa.ChunkedArray:
        if deletes.part is not None:
            offset, length = deletes.part
            file = self._reading.files.ranged(deletes.path)
            file.seek(offset)
            return vector(file.read(length), deletes.path, offset)
        if deletes.path not in self._positions:
            self._positions[deletes.path] = self._read_positions(deletes)
        return self._positions[deletes.path].get(path, pa.array([], pa.int64()))

    def _read_positions(self, deletes: DeleteFile) -> dict[str, pa.Array]:
        table = self._table(deletes, _POSITIONS).combine_chunks()
        if not table.num_rows:
            return {}
        paths = table.column(0).chunk(0).dictionary_encode()
        order = pc.array_sort_indices(paths.indices)
        numbers = table.column(1).chunk(0).take(order)
        found, at = {}, 0
        counts = {one["values"]: one["counts"] for one in paths.indices.value_counts().to_pylist()}
        for number, path in enumerate(paths.dictionary.to_pylist()):
            found[path] = numbers.slice(at, counts[number])
            at += counts[number]
        return found

    def _by_columns(self, file: PlannedFile) -> Iterator[tuple[tuple[int, ...], DeletedValues]]:
        """The deleted values, for each combination of columns that delete files compare."""
        together: dict[tuple[int, ...], list[DeleteFile]] = {}
        for one in file.equality:
            together.setdefault(one.equality_ids, []).append(one)
        for ids, files in together.items():
            key = tuple(files)
            if key not in self._values:
                columns = pa.schema([self._fields.hidden(number) for number in ids])
                table = pa.concat_tables([self._table(one, columns) for one in files])
                self._values[key] = DeletedValues(table.columns)
            yield ids, self._values[key]

    def _table(self, deletes: DeleteFile, columns: pa.Schema) -> pa.Table:
        damage: Damage = []
        scan = Scan(columns.names)
        batches = batches_of(Located(deletes.path), deletes.format, columns, self._reading, scan, damage)
        return pa.Table.from_batches(
            (pa.record_batch(one.columns, schema=columns) for one in batches), columns
        )


def hidden(number: int) -> str:
    """The name of a column that only the deletes need."""
    return f"\1{number}"


class Fields:
    """A table's fields by their ids: of the snapshot's columns, else of other schemas that it had."""

    def __init__(self, schemas: Sequence[object], names: Names) -> None:
        """`schemas`: PyIceberg's, the snapshot's first."""
        self._schemas, self._names = schemas, names
        fields = (field for schema in reversed(schemas) for field in schema.fields)  # type: ignore[attr-defined]
        self._defaults = {field.field_id: field.initial_default for field in fields}

    def default(self, number: int) -> Any:
        """A column's value in files that lack it."""
        return self._defaults.get(number)

    def hidden(self, number: int) -> pa.Field:
        """A top-level column under a name that no table has."""
        for schema in self._schemas:
            for field in schema.fields:  # type: ignore[attr-defined]
                if field.field_id == number:
                    return field_of(field, self._names, hidden(number))
        raise unsupported(f"equality deletes by the field {number}, which is no column or within one")


def _position_fields() -> pa.Schema:
    from pyiceberg.types import LongType, NestedField, StringType

    path = NestedField(2147483546, "file_path", StringType(), required=True)
    return columns_of([path, NestedField(2147483545, "pos", LongType(), required=True)], Names(None))


_POSITIONS = _position_fields()
