"""Selects the fields of a table's schemas that the rows of a planned file need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyiceberg.types import ListType, MapType, NestedField, StructType

from coldframe.arrow import pa
from coldframe.errors import unsupported
from coldframe.iceberg.columns import FILE, hidden, number_of, within
from coldframe.iceberg.files import PlannedFile, ReadyFile
from coldframe.iceberg.reading import single
from coldframe.iceberg.table import IcebergTable
from coldframe.iceberg.types import field_of


class Fields:
    """A table's fields by id: from the snapshot's schema or, if a field is not in it, from older schemas of
    the table.
    """

    def __init__(self, table: IcebergTable) -> None:
        self._columns, self._names = table.columns, table.names
        self._fields = {
            field.field_id: field for schema in reversed(table.schemas) for field in schema.fields
        }
        self._defaults: dict[int, pa.Array | None] = {}
        inside = ((within(field.field_id), self._default(field)) for field in _inside(table.schema.fields))
        self._within = {name: value for name, value in inside if value is not None}

    def ready(self, file: PlannedFile) -> ReadyFile:
        """A file, with values for the columns that the file may lack: the values of identity partitions, or
        else defaults.
        """
        ids = dict.fromkeys(number for deletes in file.equality for number in deletes.equality_ids)
        compared = tuple(self._hidden(number) for number in ids)
        values = {**self._within}
        if FILE.name not in self._columns.names:
            values[FILE.name] = pa.array([file.path])
        for column in (*self._columns, *compared):
            number = number_of(column)
            if number in file.partition:
                values[column.name] = single(file.partition[number], column.type)
            elif (value := self._default_of(number)) is not None:
                values[column.name] = value
        row = pa.RecordBatch.from_arrays(list(values.values()), list(values))
        return ReadyFile(file, row, compared)

    def _default_of(self, number: int) -> pa.Array | None:
        if number not in self._defaults:
            self._defaults[number] = self._default(self._fields[number])
        return self._defaults[number]

    def _default(self, field: NestedField) -> pa.Array | None:
        """The value of a field that a file lacks, as an array of length 1; None for null."""
        kind, value = field_of(field, self._names).type, field.initial_default
        if value is None:
            return None
        if not isinstance(field.field_type, StructType):
            return single(value, kind)
        # The default only says that the struct is not null; its fields have their own defaults.
        defaults = [self._default(default) for default in field.field_type.fields]
        parts = [
            pa.nulls(1, child.type) if default is None else default
            for default, child in zip(defaults, kind, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind))

    def _hidden(self, number: int) -> Any:
        """A top-level column under a name that no table uses."""
        if number not in self._fields:
            raise unsupported(f"equality deletes by the field {number}, which no schema of the table has")
        return field_of(self._fields[number], self._names, hidden(number))


def _inside(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    """The fields of structs within columns."""
    for field in fields:
        yield from _fields_of(field.field_type)


def _fields_of(kind: Any) -> Iterator[NestedField]:
    if isinstance(kind, StructType):
        yield from kind.fields
        yield from _inside(kind.fields)
    elif isinstance(kind, ListType):
        yield from _fields_of(kind.element_type)
    elif isinstance(kind, MapType):
        yield from _fields_of(kind.value_type)
