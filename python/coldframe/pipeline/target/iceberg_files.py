"""Entries of an Iceberg table for files that PyIceberg's `add_files` cannot look into: it reads footers of
Parquet alone.

Rows, sizes and nulls are those of the journal, partitions those of the directories, bounds those that the
file states. Files have no ids: the table's name mapping says which column is which.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

import coldframe
from coldframe.pipeline.file_access import StorageOptions
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.target.committed import DataFile, partition_texts, partition_value

_THREADS = 16
"""Files whose statistics are read at once."""
_BOUND_LETTERS = 16
"""Bounds of texts are cut to so many letters, as Iceberg's writers do."""
_REFORM = -141427
"""The day 1582-10-15. Iceberg's readers have ORC's library turn earlier days into Julian ones."""
_MAPPING = "schema.name-mapping.default"
_WRITE_FORMAT = "write.format.default"


def add_data_files(
    transaction: Any,
    files: Iterable[DataFile],
    prefix: str,
    partitions: Iterable[pa.Field],
    marked: Mapping[str, str],
    storage_options: StorageOptions,
) -> None:
    """Appends files to a table in one snapshot; `prefix` and a file's final name are its location."""
    metadata = transaction.table_metadata
    if metadata.name_mapping() is None:
        transaction.set_properties({_MAPPING: metadata.schema().name_mapping.model_dump_json()})
    fields = {field.name: field for field in metadata.schema().fields}
    spec, kinds = metadata.spec(), {field.name: field.type for field in partitions}
    names = [metadata.schema().find_column_name(part.source_id) for part in spec.fields]

    def entry(file: DataFile) -> Any:
        from pyiceberg.typedef import Record

        texts = partition_texts(file.final)
        values = [_internal(partition_value(texts.get(name), kinds[name])) for name in names]
        stated = _stated(f"{prefix}{file.final}", storage_options)
        return _data_file(file, f"{prefix}{file.final}", Record(*values), spec.spec_id, fields, stated)

    with transaction.update_snapshot(snapshot_properties=dict(marked)).fast_append() as snapshot:
        for made in in_threads((functools.partial(entry, file) for file in files), _THREADS):
            snapshot.append_data_file(made)


def write_format(names: Iterable[str]) -> dict[str, str]:
    """The property that has other engines write files of the same format, for files by their names."""
    endings = {name.rpartition(".")[2] for name in names}
    return {_WRITE_FORMAT: endings.pop()} if len(endings) == 1 and endings != {"parquet"} else {}


def _stated(location: str, storage_options: StorageOptions) -> Iterable[Mapping[str, Any]]:
    """What a file states of its columns; SchemaError where engines would read other values from it."""
    path = location.removeprefix("file://")
    found: list[Mapping[str, Any]] = coldframe.open(path, storage_options=storage_options).statistics()[
        "file"
    ]
    for one in found:
        days, seconds = one.get("min_days", 0), decimal.Decimal(one.get("min_seconds_utc") or 0)
        if days < _REFORM or seconds < _REFORM * 86400:
            raise coldframe.SchemaError(
                f"{path}: column {one['path']} has days before 1582-10-15: engines read other ones from "
                "files of this format in an Iceberg table. Migrate to files of Parquet"
            )
    return found


def _data_file(
    file: DataFile,
    location: str,
    partition: Any,
    spec_id: int,
    fields: Mapping[str, Any],
    stated: Iterable[Mapping[str, Any]],
) -> Any:
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.manifest import DataFileContent, FileFormat

    plain = {name: field for name, field in fields.items() if field.field_type.is_primitive}
    nulls = {plain[name].field_id: count for name, count in file.nulls.items() if name in plain}
    bounds = {
        one["path"]: _bounds(one, plain[one["path"]].field_type) for one in stated if one["path"] in plain
    }
    low = {plain[name].field_id: low for name, (low, _) in bounds.items() if low is not None}
    high = {plain[name].field_id: high for name, (_, high) in bounds.items() if high is not None}
    return Entry.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat(file.final.rpartition(".")[2].upper()),
        partition=partition,
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        column_sizes={},
        value_counts=dict.fromkeys(nulls, file.rows),
        null_value_counts=nulls,
        nan_value_counts={},
        lower_bounds=low,
        upper_bounds=high,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=spec_id,
    )


def _bounds(stated: Mapping[str, Any], kind: Any) -> tuple[bytes | None, bytes | None]:
    """The smallest and the largest value as Iceberg stores them; None where they are unknown."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.types import (
        DateType,
        DecimalType,
        IntegerType,
        LongType,
        StringType,
        TimestampType,
        TimestamptzType,
    )

    low: Any
    high: Any
    if isinstance(kind, (IntegerType, LongType)):
        low, high = stated.get("min"), stated.get("max")
    elif isinstance(kind, DateType):
        low, high = stated.get("min_days"), stated.get("max_days")
    elif isinstance(kind, (TimestampType, TimestamptzType)):
        low = _microseconds(stated.get("min_seconds_utc"), decimal.ROUND_FLOOR)
        high = _microseconds(stated.get("max_seconds_utc"), decimal.ROUND_CEILING)
    elif isinstance(kind, DecimalType):
        unit = decimal.Decimal(1).scaleb(-kind.scale)
        texts = (stated.get("min"), stated.get("max"))
        low, high = (None if text is None else decimal.Decimal(text).quantize(unit) for text in texts)
    elif isinstance(kind, StringType):
        low, high = stated.get("min"), _cut_upwards(stated.get("max"))
        low = None if low is None else low[:_BOUND_LETTERS]
    else:
        return None, None
    return (None if low is None else to_bytes(kind, low), None if high is None else to_bytes(kind, high))


def _microseconds(seconds: str | None, rounding: str) -> int | None:
    if seconds is None:
        return None
    return int((decimal.Decimal(seconds) * 1_000_000).to_integral_value(rounding=rounding))


def _cut_upwards(text: str | None) -> str | None:
    """A text of few letters that none of the column is greater than."""
    from pyiceberg.utils.truncate import truncate_upper_bound_text_string

    return None if text is None else truncate_upper_bound_text_string(text, _BOUND_LETTERS)


def _internal(value: Any) -> Any:
    """A value as manifests have it: dates and times are numbers."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    return value
