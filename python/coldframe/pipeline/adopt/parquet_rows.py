"""The rows of a Parquet file as Hive gives them: columns by name, in any case, in the table's types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coldframe.errors import SchemaError, unsupported
from coldframe.pipeline.adopt.layouts import zone_of
from coldframe.pipeline.file_access import StorageOptions, reading
from coldframe.pipeline.sink.parquet_footer import parts_of

_ROWS = 64 * 1024


def parquet_rows(
    path: str,
    columns: pa.Schema,
    keys: Mapping[str, pa.Scalar],
    storage_options: StorageOptions = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, and the values of its partition; SchemaError if a value does not fit its column."""
    schema = pa.schema([*columns, *(pa.field(name, value.type) for name, value in keys.items())])
    with pq.ParquetFile(reading(path, storage_options), coerce_int96_timestamp_unit="us") as file:
        zone = zone_of(file.metadata)
        kinds = {column.type for column in file.schema_arrow}
        if zone and any(pa.types.is_nested(kind) for kind in kinds if "timestamp" in str(kind)):
            raise unsupported(f"adopting {path}: timestamps of the zone {zone} in nested columns")
        names = {name.lower(): at for at, name in enumerate(file.schema_arrow.names)}
        if len(names) < len(file.schema_arrow.names):
            raise SchemaError(f"{path}: two of its columns differ in case only")
        for batch in file.iter_batches(batch_size=_ROWS):
            arrays = [
                _as(
                    _local(batch.column(names[column.name.lower()]), zone),
                    column.type,
                    f"{path}: column {column.name}",
                )
                if column.name.lower() in names
                else pa.nulls(batch.num_rows, column.type)
                for column in columns
            ]
            arrays += [pa.repeat(value, batch.num_rows) for value in keys.values()]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _local(values: pa.Array, zone: str) -> pa.Array:
    """Times of day in the zone, for instants of INT96."""
    if not zone or not pa.types.is_timestamp(values.type) or values.type.tz is not None:
        return values
    return pc.local_timestamp(values.cast(pa.timestamp(values.type.unit, zone)))


def _as(values: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    """Values in a type of the table."""
    t = pa.types
    if t.is_null(values.type):
        return pa.nulls(len(values), kind)
    if t.is_list(kind) and t.is_nested(values.type) and not t.is_list(values.type):
        values = _plain_list(values)
    if t.is_struct(kind) and t.is_struct(values.type):
        parts = {part.name.lower(): at for at, part in enumerate(parts_of(values.type))}
        fields = [
            _as(values.field(parts[part.name.lower()]), part.type, where)
            if part.name.lower() in parts
            else pa.nulls(len(values), part.type)
            for part in parts_of(kind)
        ]
        return pa.StructArray.from_arrays(fields, fields=parts_of(kind), mask=values.is_null())
    if t.is_list(kind) and t.is_list(values.type):
        inner = _as(values.values, kind.value_type, where)
        return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=_mask(values))
    if t.is_map(kind) and t.is_map(values.type):
        inner_keys = _as(values.keys, kind.key_type, where)
        items = _as(values.items, kind.item_type, where)
        return pa.MapArray.from_arrays(values.offsets, inner_keys, items, type=kind, mask=_mask(values))
    if t.is_nested(kind) or t.is_nested(values.type):
        raise SchemaError(f"{where} is {values.type}, and {kind} in the table")
    if t.is_timestamp(kind) and t.is_timestamp(values.type) and kind.tz != values.type.tz:
        raise SchemaError(
            f"{where} has instants ({values.type}), and the table local times ({kind}): the zone between "
            "them is not known"
        )
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"{where}: {error}") from error


def _plain_list(values: pa.Array) -> pa.Array:
    """A list of another layout of Arrow, which writers state beside Parquet's own type, as a plain one."""
    t, kind = pa.types, values.type
    kinds = (t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    if any(is_one(kind) for is_one in kinds):
        return values.cast(pa.list_(kind.value_field))
    return values


def _mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None
