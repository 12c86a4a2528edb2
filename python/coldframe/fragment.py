"""One file as part of a dataset: its columns brought to the dataset's, those of its directory added."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coldframe._coldframe import with_fields
from coldframe.errors import SchemaError
from coldframe.filters import Condition, bind, given, mentioned

if TYPE_CHECKING:
    from coldframe.file import File, Split

__all__ = ["Fragment"]


@dataclass(frozen=True)
class Fragment:
    """The dataset's schema, and the values that the file's directory gives (Arrow scalars by name)."""

    schema: Any  # pyarrow.Schema
    values: tuple[tuple[str, Any], ...] = ()
    complete: bool = False
    """Whether a column of the file that the dataset has not is an error."""

    @property
    def partition(self) -> Mapping[str, Any]:
        """The partition's values as Python objects."""
        return {name: value.as_py() for name, value in self.values}

    def to_batches(
        self,
        file: File,
        columns: Sequence[str] | None,
        filter: Any,
        batch_size: int,
        split: Split | None = None,
        *,
        limit: int | None = None,
        on_error: str = "raise",
        on_damage: Callable[[list[dict[str, Any]]], None] | None = None,
        use_threads: bool = True,
        read_ahead: bool = True,
    ) -> Any:
        """The file's rows with the dataset's columns, as a RecordBatchReader. `filter` is a parsed one."""
        if self.complete:
            self._demand_no_more(file)
        wanted = self.projected(columns)
        pushed, residual = self._divide(file, filter)
        if pushed is False:
            return pa.RecordBatchReader.from_batches(wanted, iter(()))
        decoded = wanted
        if residual is not None:
            needed = dict.fromkeys([*wanted.names, *mentioned(residual, self.schema)])
            decoded = pa.schema([self.schema.field(n) for n in needed], metadata=self.schema.metadata)
        origin = self._origins(file, decoded)
        stream = file.to_batches(
            [name for name in dict.fromkeys(origin) if name is not None],
            filter=pushed,
            batch_size=batch_size,
            limit=limit if residual is None else None,
            split=split,
            on_error=on_error,
            on_damage=on_damage,
            use_threads=use_threads,
            read_ahead=read_ahead,
        )
        batches = self._adapted(stream, decoded, origin, file.path)
        if residual is not None:
            from coldframe.file import filtered

            batches = filtered(batches, residual, wanted, limit)
        return pa.RecordBatchReader.from_batches(wanted, batches)

    def count(self, file: File, filter: Any) -> int:
        """How many of the file's rows pass a parsed filter."""
        pushed, residual = self._divide(file, filter)
        if pushed is False:
            return 0
        if residual is None:
            return file.count(pushed)
        return sum(batch.num_rows for batch in self.to_batches(file, [], filter, 65536))

    def projected(self, columns: Sequence[str] | None) -> Any:
        """The dataset's schema with these columns only."""
        if columns is None:
            return self.schema
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, not the string {columns!r}")
        for name in columns:
            if name not in self.schema.names:
                raise SchemaError(
                    f"no column {name!r}; the columns are {', '.join(map(repr, self.schema.names[:20]))}"
                )
        return pa.schema([self.schema.field(name) for name in columns], metadata=self.schema.metadata)

    def _demand_no_more(self, file: File) -> None:
        folded = {name.lower() for name in self.schema.names}
        more = [name for name in file.schema.names if name.lower() not in folded]
        if more:
            raise SchemaError(
                f"{file.path}: columns {more} are not among those of the first file; with unify=True they "
                "are columns of the table"
            )

    def _divide(self, file: File, filter: Any) -> tuple[Any, Any]:
        """What the file can filter by itself (False: no row), and the test for the adapted batches."""
        if filter is None:
            return None, None
        missing = [name for name in self.schema.names if file_column(file, name) is None]
        if isinstance(filter, Condition):
            known = {name: pa.scalar(None, type=self.schema.field(name).type) for name in missing}
            rest = given(filter, self.schema, {**known, **dict(self.values)})
            if rest.always_true:
                return None, None
            if rest.never_true:
                return False, None
            try:
                rest.bind(file.schema)
            except SchemaError:
                return None, bind(filter, self.schema).test
            return rest, None
        bind(filter, self.schema)
        ours = {name for name, _ in self.values}
        unlike = [
            name
            for name in mentioned(filter, self.schema)
            if name in ours
            or name in missing
            or name not in file.schema.names
            or not file.schema.field(name).type.equals(self.schema.field(name).type)
        ]
        return (None, filter) if unlike or "FieldPath(" in str(filter) else (filter, None)

    def _origins(self, file: File, decoded: Any) -> list[str | None]:
        """For each column wanted the file's own name of it; None where the file has no such column."""
        ours = {name for name, _ in self.values}
        return [None if name in ours else file_column(file, name) for name in decoded.names]

    def _adapted(self, stream: Any, schema: Any, origin: Sequence[str | None], path: str) -> Iterator[Any]:
        from coldframe.file import row_count_batch

        values = dict(self.values)
        with contextlib.closing(stream):
            for batch in stream:
                if len(schema) == 0:
                    yield row_count_batch(batch.num_rows, schema)
                    continue
                arrays = [
                    _constant(values.get(field.name), field.type, batch.num_rows)
                    if name is None
                    else _cast(batch.column(name), field, path)
                    for field, name in zip(schema, origin, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def file_column(file: File, name: str) -> str | None:
    """The file's column for a name, whatever its case where that is unambiguous."""
    names = list(file.schema.names)
    if name in names:
        return name
    alike = [other for other in names if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _constant(value: Any, type: Any, rows: int) -> Any:
    return pa.nulls(rows, type) if value is None or not value.is_valid else pa.repeat(value, rows)


def _cast(array: Any, field: Any, path: str) -> Any:
    if array.type.equals(field.type):
        return array
    try:
        return with_fields(array, field.type).cast(field.type)
    except pa.ArrowException as reason:
        raise SchemaError(
            f"{path}: column {field.name!r} is {array.type} here, and not every value fits "
            f"the dataset's {field.type}: {reason}"
        ) from reason
