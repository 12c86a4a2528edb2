"""Reads files of a table as batches of the table's columns.

Rust opens coldframe's formats, matches columns by id, fills in missing columns, and widens values. pyarrow
opens Parquet; Rust then adapts its batches in the same way.
"""

from __future__ import annotations

import datetime as dt
import uuid
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from coldframe._coldframe import Predicate, RawDataset, RawSplit, RawTableRows, formats, shown
from coldframe.arguments import Keys, OpenArguments, threads_of
from coldframe.arrow import pa
from coldframe.batches import DEFAULT_BATCH_SIZE, Damage, row_count_batch
from coldframe.errors import corrupt, unsupported
from coldframe.iceberg.columns import ID, NAMES, NUMBERS, Metadata, with_other
from coldframe.iceberg.files import Located
from coldframe.iceberg.store import TableFiles
from coldframe.literals import OnError
from coldframe.sources import Known
from coldframe.store_file import RangedFile

_PARQUET = "parquet"
_PARQUET_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Reading:
    """How files are found and opened."""

    files: TableFiles
    storage_options: Mapping[str, Any] | None = None
    verify_checksums: bool = True
    keys: Keys | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    has_mapping: bool = False
    """Whether the table has a name mapping."""
    has_nanoseconds: bool = False
    """Whether a column counts nanoseconds."""

    def arguments(self, format: str) -> OpenArguments:
        """The arguments of `open` for files of a format."""
        return OpenArguments(
            format,
            self.storage_options,
            self.verify_checksums,
            self.keys,
            {**self.options, **_numbered(format)},
            microseconds=not self.has_nanoseconds,
        )


@dataclass(frozen=True)
class Scan:
    """A request: what to read from files."""

    names: Sequence[str]
    """The columns."""
    predicate: Predicate | None = None
    limit: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    on_error: OnError = "raise"
    use_threads: bool = True


class Rows(Protocol):
    """The rows of files, or of a part of a file, in file order."""

    def batches(self, scan: Scan, damage: Damage) -> Iterator[pa.RecordBatch]:
        """Batches of the requested columns, which may include `NUMBERS`.

        Adds the losses to `damage` at the end.
        """


def _numbered(format: str) -> dict[str, str]:
    """The option that adds row numbers to a file of one of coldframe's formats."""
    about = formats().get(format, {}).get("capabilities", {})
    option = about.get("row_numbers_option")
    return {} if option is None else {option: NUMBERS}


def is_ours(format: str) -> bool:
    """Whether the format is one of coldframe's."""
    return format in formats()


class OurFiles:
    """Files of one of coldframe's formats."""

    def __init__(self, files: Sequence[Located], format: str, columns: pa.Schema, reading: Reading) -> None:
        self.arguments = reading.arguments(format)
        self._raw = _raw(files, columns, reading, self.arguments)

    def batches(self, scan: Scan, damage: Damage) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the files."""
        rows = self._raw.scan(
            columns=list(scan.names),
            predicate=scan.predicate,
            limit=scan.limit,
            batch_size=scan.batch_size,
            on_error=scan.on_error,
            threads=threads_of(self.arguments) if scan.use_threads else 1,
        )
        yield from _batches(rows, scan, damage)

    def count(self, predicate: Predicate | None) -> int:
        """The number of rows that pass."""
        return self._raw.count(predicate)

    def splits(self, split_bytes: int) -> list[RawSplit]:
        """Parts that can be read independently; opens the files to divide them."""
        return self._raw.splits(split_bytes)

    def plan(self, split_bytes: int) -> list[RawSplit]:
        """Like `splits`, but opens no file: divides by file size, and readers find the exact splits."""
        return self._raw.plan(split_bytes)


class OurPart:
    """A split of a file of one of coldframe's formats."""

    def __init__(self, raw: RawSplit) -> None:
        self._raw = raw

    def batches(self, scan: Scan, damage: Damage) -> Iterator[pa.RecordBatch]:
        """Its rows."""
        rows = self._raw.scan(
            columns=list(scan.names),
            predicate=scan.predicate,
            batch_size=scan.batch_size,
            on_error=scan.on_error,
        )
        yield from _batches(rows, scan, damage)


def _batches(rows: RawTableRows, scan: Scan, damage: Damage) -> Iterator[pa.RecordBatch]:
    try:
        for batch in rows:
            yield pa.record_batch(batch)
    finally:
        if scan.on_error != "raise":
            damage += rows.damage()
        rows.close()


def rows_of(file: Located, format: str, columns: pa.Schema, reading: Reading) -> Rows:
    """The rows of one file; without a filter, in file order."""
    if is_ours(format):
        return OurFiles([file], format, columns, reading)
    if format == _PARQUET:
        return _ParquetFile(file, columns, reading)
    raise unsupported(f"{shown(file.location)}: a file of the format {format} in an Iceberg table")


def _raw(
    files: Sequence[Located], columns: pa.Schema, reading: Reading, arguments: OpenArguments
) -> RawDataset:
    none = pa.RecordBatch.from_pylist([{}])
    sources: list[object] = [
        (reading.files.readable(file.location), [], _known(file), file.defaults or none, _stated(file))
        for file in files
    ]
    return RawDataset(arguments.raw, sources, partitioned=False, schema=columns, ids=ID)


def _stated(file: Located) -> int | None:
    """The number of rows that the manifest states; imports of old tables wrote -1 for an unknown number."""
    return None if file.rows is None or file.rows < 0 else file.rows


def _known(file: Located) -> Known | None:
    return None if file.bytes is None else (file.bytes, None, None)


class _ParquetFile:
    """A Parquet file, which is always read as a whole."""

    def __init__(self, file: Located, columns: pa.Schema, reading: Reading) -> None:
        self._given = (file, columns, reading)

    def batches(self, scan: Scan, damage: Damage) -> Iterator[pa.RecordBatch]:
        """All rows of the file. Damage is not tolerated."""
        return _parquet(*self._given, scan)


def _parquet(file: Located, columns: pa.Schema, reading: Reading, scan: Scan) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    raw = _raw([file], columns, reading, reading.arguments(next(iter(formats()))))
    wanted = {_id(columns.field(name)) for name in scan.names}
    opened = _Watched(reading.files.store(file.location))
    try:
        with pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as parquet:
            stated, rows = _stated(file), parquet.metadata.num_rows
            if stated not in (None, rows):
                what = f"expected {stated} rows, as the table's metadata states, found {rows}"
                raise corrupt(reading.files.readable(file.location), 0, "file", what)
            fields = [with_other(arrow_field, _id_of_table) for arrow_field in parquet.schema_arrow]
            old = _instants(parquet)
            schema = pa.schema(
                [_as_instant(field, columns) if field.name in old else field for field in fields]
            )
            has_ids = any(_id(arrow_field) is not None for arrow_field in schema)
            if not has_ids and not reading.has_mapping:
                what = "a Parquet file without field ids in a table without a name mapping"
                raise unsupported(f"{shown(file.location)}: {what}")
            names = [arrow_field.name for arrow_field in schema if not has_ids or _id(arrow_field) in wanted]
            first = 0
            for batch in parquet.iter_batches(scan.batch_size, columns=names, use_threads=scan.use_threads):
                own = pa.schema([schema.field(name) for name in batch.schema.names])
                whole = batch.cast(own) if batch.num_columns else row_count_batch(batch.num_rows, own)
                yield pa.record_batch(raw.adapt(0, _with_numbers(whole, first), list(scan.names)))
                first += batch.num_rows
    except (pa.ArrowException, OSError) as reason:
        if opened.failed:
            raise
        path = reading.files.readable(file.location)
        raise corrupt(path, 0, "file", str(reason).partition("\n")[0]) from reason


def _instants(parquet: Any) -> set[str]:
    """The columns with INT96, the old timestamps of Spark, Hive and Impala."""
    leaves = (parquet.schema.column(at) for at in range(len(parquet.schema.names)))
    return {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}


def _as_instant(field: pa.Field, columns: pa.Schema) -> pa.Field:
    """A field of INT96 with the zone that the table's column has."""
    number, of_names = _id(field), NAMES.encode()
    for column in columns:
        names = (column.metadata or {}).get(of_names, b"").decode().split("\0")
        same = _id(column) == number if number is not None else field.name in names
        if same and pa.types.is_timestamp(column.type):
            return field.with_type(pa.timestamp("us", column.type.tz))
    return field


def _with_numbers(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """A batch with a column of row numbers that starts at `first`."""
    counted = array("q", range(first, first + batch.num_rows))
    numbers = pa.Array.from_buffers(pa.int64(), len(counted), [None, pa.py_buffer(counted)])
    fields = [*batch.schema, pa.field(NUMBERS, pa.int64())]
    return pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=pa.schema(fields))


class _Watched(RangedFile):
    """Records whether a read failed: pyarrow raises the same errors for wrong content."""

    failed = False

    def read(self, size: int | None = -1) -> bytes:
        try:
            return super().read(size)
        except BaseException:
            self.failed = True
            raise


def _id(field: pa.Field) -> bytes | None:
    field_id: bytes | None = (field.metadata or {}).get(ID.encode())
    return field_id


def _id_of_table(metadata: Metadata) -> Metadata:
    """The metadata of a table's field with the field id of a Parquet field; empty without an id."""
    field_id = metadata.get(_PARQUET_ID)
    return {} if field_id is None else {ID.encode(): field_id}


def single(value: Any, kind: pa.DataType) -> pa.Array:
    """A value of PyIceberg as an array of length 1."""
    if isinstance(value, int) and not isinstance(value, bool):
        if pa.types.is_date32(kind):
            return pa.array([value], pa.int32()).view(kind)
        if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
            return pa.array([value], pa.int64()).view(kind)
    if isinstance(value, uuid.UUID):
        value = value.bytes
    if isinstance(value, dt.datetime) and value.tzinfo is None and getattr(kind, "tz", None):
        value = value.replace(tzinfo=dt.timezone.utc)
    return pa.array([value], kind)
