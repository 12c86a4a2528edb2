"""Partitions of other formats that Spark reads, with `--others spark`.

    Parquet        by Spark's own reader, with the columns of the definition
    text, Avro,    by Hive's own classes, which Spark has, with the definition's SerDe and properties
    SequenceFile

A location is read as a whole, like a directory of a transactional table. Partitions that Spark would not read
exactly as Hive does are left out, with the reason.
"""

from __future__ import annotations

import re
from dataclasses import replace

from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.metadata import PROVIDER

PARQUET = frozenset(
    {
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "parquet.hive.DeprecatedParquetInputFormat",
    }
)
"""Input formats of Parquet."""
_TEXT = "org.apache.hadoop.mapred.TextInputFormat"
_BY_HIVES_CLASSES = frozenset(
    {
        _TEXT,
        "org.apache.hadoop.mapred.SequenceFileInputFormat",
        "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
    }
)
_LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_HIVES_OWN = ("skip.header.line.count", "skip.footer.line.count", "textinputformat.record.delimiter")
"""Properties that Hive respects and Spark ignores."""
_STATISTICS = re.compile(
    r"(EXTERNAL|comment|transient_lastDdlTime|last_modified_(by|time)|num(Files|Rows|Partitions)\w*|rawDataSize"
    r"|totalSize|COLUMN_STATS_ACCURATE|STATS_\w+|DO_NOT_UPDATE_STATS|spark\.sql\..*)\Z"
)
"""Properties that do not affect how files are read."""


def why_not_by_spark(table: Definition, partition: PartitionDefinition) -> str | None:
    """Why Spark does not read a partition's files exactly as Hive does; None if it reads them in the same
    way.
    """
    storage = partition.storage
    kind = storage.input_format or ""
    properties = {**table.parameters, **partition.parameters, **storage.serde_properties}
    if kind not in PARQUET | _BY_HIVES_CLASSES:
        return f"files of {kind.rpartition('.')[2] or 'no stated format'} are not read, not even by Spark"
    if (provider := table.parameters.get(PROVIDER, "hive").lower()) not in ("hive", "parquet"):
        return f"a table of Spark's own, of {provider}"
    if table.is_transactional:
        return "a transactional table: only Hive knows which of its rows are valid"
    if not storage.serde:
        return "it states no SerDe"
    if kind == _TEXT and (setting := next((name for name in _HIVES_OWN if name in properties), None)):
        return f"Spark ignores its property {setting}"
    types = ", ".join(column.type.lower() for column in _columns(table, storage))
    if "uniontype<" in types:
        return "Spark has no type for unions"
    if kind in PARQUET:
        if properties.get("parquet.column.index.access", "").lower() == "true":
            return (
                "Spark finds columns of Parquet by their names, and its parquet.column.index.access is true"
            )
        if re.search(r"\bchar\(", types):
            return "Spark does not pad a char in Parquet"
    names = [name.lower() for name in names_in_table(table, storage)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        return f"by position, two of its columns match the table's {', '.join(twice)}"
    return None


def definition_for_spark(table: Definition, partition: PartitionDefinition) -> PartitionDefinition:
    """The parts of a definition that decide how files are read: no location, values or statistics."""
    columns = tuple(replace(column, comment=None) for column in _columns(table, partition.storage))
    storage = replace(partition.storage, columns=columns, location=None)
    kept = {
        key: value
        for key, value in sorted({**table.parameters, **partition.parameters}.items())
        if not _STATISTICS.match(key)
    }
    return PartitionDefinition((), replace(storage, buckets=0, bucketed_by=(), sorted_by=()), kept)


def names_in_table(table: Definition, storage: Storage) -> tuple[str, ...]:
    """The table's names for a partition's columns, which match by position."""
    of_table = [column.name for column in table.storage.columns]
    own = [column.name for column in _columns(table, storage)]
    return (*of_table[: len(own)], *own[len(of_table) :])


def _columns(table: Definition, storage: Storage) -> tuple[Column, ...]:
    """The columns of the files: the partition's own columns, and columns that the table got later."""
    since = table.storage.columns[len(storage.columns) :]
    return (*storage.columns, *(since if _may_have_more(storage) else ()))


def _may_have_more(storage: Storage) -> bool:
    """Whether files may have or lack columns that are newer than their partition."""
    return storage.input_format in PARQUET or (storage.input_format, storage.serde) == (_TEXT, _LAZY)
