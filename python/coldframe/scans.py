"""`coldframe.scan`: many files, or a table that a metastore defines, as one table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coldframe.arguments import Keys, OpenArguments
from coldframe.arrow import pa
from coldframe.errors import unsupported
from coldframe.hive.addresses import is_metastore
from coldframe.iceberg.places import is_iceberg_table, metadata_of_scan
from coldframe.literals import FormatName
from coldframe.scanning import Dataset, Origin
from coldframe.sources import as_list, with_filesystem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from coldframe.keywords import ScanOptions


def scan(
    sources: object,
    *,
    format: FormatName | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    verify_checksums: bool = True,
    keys: Keys | None = None,
    partitioning: Any = "hive",
    unify: bool = True,
    file_path: str | None = None,
    row_index: str | None = None,
    **options: Unpack[ScanOptions],
) -> Dataset:
    """Many files as one table.

    Args:
        sources: a path, a glob, a directory, a URL, anything else that `open` takes, or a list of these.
            Files and directories whose names start with `.` or `_` are left out. Files of other kinds beside
            them, such as a README, are left out with a LeftOutWarning: see `Dataset.left_out`.
            `thrift://host:9083/database.table` is a table that a Hive metastore defines: see `hive_table`.
            The directory of an Iceberg table, or one of its metadata files, is that table: see
            `iceberg_table`.
        partitioning: `"hive"` turns `key=value` directories below the root into columns of integers, dates or
            strings, according to all their values; a pyarrow.Schema sets their types; None ignores them.
        unify: True gives the table the columns of all files, those of the first file first, in types wide
        enough for all. Unless `schema` is given, every file is opened for this when the columns are first
        needed. False takes the columns of the first file and opens the others only when they are read; a file
        with more columns, or with values that do not fit, then raises SchemaError.

        file_path: the name of a column to add, with the path of each row's file; None adds none.
        row_index: the name of a column to add, which numbers the rows of all files from 0; None adds none.

    `format`, `storage_options`, `filesystem`, `verify_checksums`, `keys` and the formats' options apply to
    every file, as in `open`.

    Columns are matched by name; a column that a file lacks is null. A file that cannot be opened raises an
    error, or, if damage is tolerated, becomes a record in `Dataset.damage`.
    """
    given: dict[str, Any] = {**options}
    if is_metastore(sources):
        if file_path is not None or row_index is not None or format is not None or partitioning != "hive":
            raise unsupported("file_path, row_index, format and partitioning with a table of a metastore")
        from coldframe.hive.dataset import hive_table

        return hive_table(
            str(sources),
            storage_options=storage_options,
            filesystem=filesystem,
            verify_checksums=verify_checksums,
            keys=keys,
            **given,
        )
    storage_options = with_filesystem(storage_options, filesystem)
    if (metadata := metadata_of_scan(sources, format, storage_options)) is not None:
        if file_path is not None or row_index is not None or partitioning != "hive":
            raise unsupported("file_path, row_index and partitioning with an Iceberg table")
        from coldframe.iceberg.tables import iceberg_table

        return iceberg_table(
            metadata,
            storage_options=storage_options,
            verify_checksums=verify_checksums,
            keys=keys,
            **given,
        )
    arguments = OpenArguments(format, storage_options, verify_checksums, keys, given)
    types = partitioning if isinstance(partitioning, pa.Schema) else None
    if types is None and partitioning not in ("hive", None):
        raise ValueError(f"partitioning must be 'hive', a pyarrow.Schema or None, not {partitioning!r}")
    each = as_list(sources)
    for source in each:
        if (
            format is None
            and isinstance(source, (str, os.PathLike))
            and is_iceberg_table(os.fsdecode(source))
        ):
            raise unsupported(f"{os.fsdecode(source)}: an Iceberg table among other sources: scan it alone")
    origin = Origin(file_path, row_index)
    return Dataset(each, arguments, types, partitioned=partitioning is not None, unify=unify, origin=origin)
