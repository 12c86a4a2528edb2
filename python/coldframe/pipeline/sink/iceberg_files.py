"""Entries of an Iceberg table for files that are already in place.

Rows, sizes and NaNs come from the journal, partitions from the directories, bounds from the file. Parquet
files have the ids of their fields; in ORC files, and Parquet files without ids, the table's name mapping
identifies the columns. PyIceberg's own `add_files` only reads footers
of Parquet, takes the partition of a file from bounds even if it has nulls, and knows no bounds of floats.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import coldframe
from coldframe.pipeline.file_access import StorageOptions, reading
from coldframe.pipeline.scheduling import in_threads
from coldframe.pipeline.sink.committed import DataFile
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_schema import nested_ids
from coldframe.pipeline.sink.iceberg_statistics import (
    FileStatistics,
    measured_columns,
    parquet_statistics,
    reported_statistics,
)
from coldframe.pipeline.sink.parquet_footer import parts_of

_THREADS = 16
"""The number of files whose statistics are read at once."""
REFORM = -141427
"""The day 1582-10-15. ORC's library converts earlier days to the Julian calendar for Iceberg's readers."""
_MAPPING = "schema.name-mapping.default"
_WRITE_FORMAT = "write.format.default"


def add_data_files(
    transaction: Any,
    files: Iterable[DataFile],
    prefix: str,
    destination: Destination,
    partition_of: Callable[[DataFile], Any],
    marked: Mapping[str, str],
) -> None:
    """Appends files to a table in one snapshot; `prefix` and a file's final name are its location."""
    metadata = transaction.table_metadata
    if metadata.name_mapping() is None:
        transaction.set_properties({_MAPPING: metadata.schema().name_mapping.model_dump_json()})
    columns = measured_columns(metadata.schema(), metadata.properties)
    spec_id = metadata.spec().spec_id

    def entry(file: DataFile) -> Any:
        path, options = destination.path(file.final), destination.storage_options
        rows = file.rows
        if path.endswith(".parquet"):
            footer = pq.read_metadata(reading(path, options))
            # The number of rows that readers will find; it is compared with the verified number later.
            rows = footer.num_rows
            _check_ids(path, footer.schema.to_arrow_schema(), metadata.schema())
            statistics = parquet_statistics(footer, file, columns)
        else:
            statistics = reported_statistics(_reported(path, options), file, columns)
        place, format = f"{prefix}{file.final}", file.final.rpartition(".")[2]
        return data_file(place, format, partition_of(file), rows, file.bytes, statistics, spec_id)

    with transaction.update_snapshot(snapshot_properties=dict(marked)).fast_append() as snapshot:
        for made in in_threads((functools.partial(entry, file) for file in files), _THREADS):
            snapshot.append_data_file(made)


def _check_ids(path: str, columns: pa.Schema, table: Any) -> None:
    """Raises SchemaError if the ids in a file are not those of the table, which others may have changed."""
    for column in columns:
        own = list(_ids_in(column))
        there = next((field for field in table.fields if field.name == column.name), None)
        wanted = [] if there is None else [there.field_id, *nested_ids(there.field_type)]
        if any(number is not None for number in own) and own != wanted:
            raise coldframe.SchemaError(
                f"{path}: column {column.name} has the ids {own}, but {wanted} in the table: others have "
                "changed its columns since the file was written. Convert it again (fresh)"
            )


def _ids_in(column: pa.Field) -> Iterator[int | None]:
    number = (column.metadata or {}).get(b"PARQUET:field_id")
    yield None if number is None else int(number)
    for part in parts_of(column.type):
        yield from _ids_in(part)


def write_format(names: Iterable[str]) -> dict[str, str]:
    """The property by which other engines write files of the same format; `names`: the table's files."""
    endings = {name.rpartition(".")[2] for name in names}
    return {_WRITE_FORMAT: endings.pop()} if len(endings) == 1 and endings != {"parquet"} else {}


def _reported(path: str, storage_options: StorageOptions) -> Iterable[Mapping[str, Any]]:
    """A file's statistics of its columns; SchemaError if engines would read other values from it."""
    columns: list[Mapping[str, Any]] = coldframe.open(path, storage_options=storage_options).statistics()[
        "file"
    ]
    for column in columns:
        days, seconds = column.get("min_days", 0), decimal.Decimal(column.get("min_seconds_utc") or 0)
        if days < REFORM or seconds < REFORM * 86400:
            raise coldframe.SchemaError(
                f"{path}: column {column['path']} has days before 1582-10-15, which engines misread in files "
                "of this format in an Iceberg table. Migrate to files of Parquet"
            )
    return columns


def data_file(
    location: str, format: str, partition: Any, rows: int, size: int, statistics: FileStatistics, spec_id: int
) -> Any:
    """The entry of a file with rows."""
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.manifest import DataFileContent, FileFormat

    entry = Entry.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat(format.upper()),
        partition=partition,
        record_count=rows,
        file_size_in_bytes=size,
        column_sizes=statistics.sizes,
        value_counts=statistics.values,
        null_value_counts=statistics.nulls,
        nan_value_counts=statistics.nans,
        lower_bounds=statistics.low,
        upper_bounds=statistics.high,
        key_metadata=None,
        split_offsets=statistics.splits,
        equality_ids=None,
        sort_order_id=None,
    )
    entry.spec_id = spec_id
    return entry
