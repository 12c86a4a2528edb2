"""The definitions of a table and its partitions in a metastore.

    Definition              sales: id bigint, price decimal(10,2); by dt, region; RCFile, binary; hdfs://nn/wh/sales
      PartitionDefinition   dt=2014-01-01, region=eu: id bigint; RCFile, text; hdfs://nn/elsewhere/x9

A partition has its own format, SerDe, columns and location: Hive copies these from the table when it creates
the partition, and a later `ALTER TABLE` changes only the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from coldframe._coldframe import (
    declared_format,
    hudi_view,
    location_of_files,
    match_by_position,
    parse_columns,
    partitions_are_registered,
    serde_properties,
)
from coldframe.hive.metadata import POSITIONS, PROVIDER, row_counts
from coldframe.options import TYPELESS
from coldframe.tables_file import entry_lines

if TYPE_CHECKING:
    import pyarrow as pa

_OF_LENGTH = re.compile(r"(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)
VIEWS = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")


@dataclass(frozen=True)
class Column:
    """A column, or a partition key."""

    name: str
    type: str
    """The type as Hive writes it: `array<string>`."""
    comment: str | None = None


_DUMMY = (Column("col", "array<string>", "from deserializer"),)
"""The columns that Spark registers if Hive cannot represent the table's columns."""


@dataclass(frozen=True)
class Storage:
    """The location and format of the files of a table or of one partition."""

    columns: tuple[Column, ...] = ()
    location: str | None = None
    input_format: str | None = None
    """The name of a Java class, like the next two."""
    output_format: str | None = None
    serde: str | None = None
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    buckets: int = 0
    """The number of buckets; 0 if the rows are not in buckets."""
    bucketed_by: tuple[str, ...] = ()
    sorted_by: tuple[tuple[str, bool], ...] = ()
    """Columns, and whether each column ascends."""

    @property
    def schema(self) -> str:
        """The columns as a list in Hive's syntax, which `coldframe.open` takes."""
        return in_hive(self.columns)

    def options(self, format: str) -> dict[str, object]:
        """The options with which `coldframe.open` reads the storage's files of `format`.

        Empty if the files store their columns.
        """
        if format not in TYPELESS:
            return {}
        options: dict[str, object] = {"schema": self.schema}
        if self.serde:
            options["serde"] = self.serde
        if self.serde_properties:
            options["serde_properties"] = dict(self.serde_properties)
        return options


@dataclass(frozen=True)
class PartitionDefinition:
    """A partition of a table."""

    values: tuple[str, ...]
    """The values as texts, one for each key of the table; null is the text that Hive uses for it."""
    storage: Storage
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        """The number of rows in the metastore, which may be out of date. None if the metastore has no
        number.
        """
        return next(iter(row_counts(self.parameters)), None)


@dataclass(frozen=True)
class Definition:
    """A table, a view, or another named object. `Metastore.partition_definitions` gives its partitions."""

    database: str
    name: str
    kind: str = "MANAGED_TABLE"
    """`MANAGED_TABLE`, `EXTERNAL_TABLE`, `VIRTUAL_VIEW` .."""
    owner: str | None = None
    storage: Storage = field(default_factory=Storage)
    keys: tuple[Column, ...] = ()
    """The partition columns."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    view_text: str | None = None
    by_folders: bool = False
    """Whether its partitions are the `key=value` folders at its location, because none are registered."""

    @property
    def full_name(self) -> str:
        """`database.name`."""
        return f"{self.database}.{self.name}"

    @property
    def comment(self) -> str | None:
        """The comment of the table."""
        return self.parameters.get("comment")

    @property
    def is_view(self) -> bool:
        """Whether a query defines the rows."""
        return self.kind in VIEWS

    @property
    def storage_handler(self) -> str | None:
        """The Java class through which Hive reads a table of another system, such as HBase."""
        return self.parameters.get("storage_handler")

    @property
    def is_iceberg(self) -> bool:
        """Whether the table is an Iceberg table, whose files its own metadata lists."""
        return self.parameters.get("table_type", "").lower() == "iceberg"

    @property
    def hudi_view(self) -> str | None:
        """The view that it shows of a Hudi table, whose timeline lists the files; None for other tables."""
        return hudi_view(self.storage.input_format, self.parameters, self.storage.serde_properties)

    @property
    def is_transactional(self) -> bool:
        """Whether the table's directories hold base and delta directories."""
        return self.parameters.get("transactional", "").lower() == "true"

    @property
    def is_by_position(self) -> bool:
        """Whether columns are matched by position, also in files that have names."""
        return match_by_position(self.parameters)

    @property
    def location(self) -> str | None:
        """Where the table's files are; None if it has no files."""
        return location_of_files(
            self.kind, self.storage.location, self.parameters, self.storage.serde_properties
        )

    @property
    def has_partitions(self) -> bool:
        """Whether its rows are in partitions that the metastore knows."""
        # The timeline of a Hudi table lists its partitions.
        is_plain = not self.by_folders and self.hudi_view is None
        return bool(self.keys) and is_plain and partitions_are_registered(self.parameters)

    @property
    def rows(self) -> int | None:
        """The number of rows in the metastore, which may be out of date. None if the metastore has none."""
        return next(iter(row_counts(self.parameters)), None)

    def format_of(self, storage: Storage) -> str:
        """The declared format of a storage of the table or a partition: one of our formats, or the last part
        of the input format's name; empty if there is no input format.
        """
        return declared_format(storage.input_format, self.parameters)

    def storage_of(self, partition: PartitionDefinition | None = None) -> Storage:
        """The storage of a partition, or of the table without partitions, as Hive gives it to its SerDe.

        Its properties are the properties of the table's SerDe, of the table, of the partition's SerDe and of
        the partition. Later ones win.
        """
        storage = self.storage if partition is None else partition.storage
        properties = {**self.storage.serde_properties, **serde_properties(self.parameters)}
        if partition is not None and self.has_partitions:
            properties |= {**storage.serde_properties, **serde_properties(partition.parameters)}
        return (
            storage
            if properties == storage.serde_properties
            else replace(storage, serde_properties=properties)
        )

    @property
    def format(self) -> str:
        """The format of the table; new partitions get this format."""
        return self.format_of(self.storage)

    @property
    def left_out(self) -> str | None:
        """Why the table cannot be read, regardless of its files; None if it may be readable."""
        if self.is_view:
            return "a view: it has no rows of its own"
        if (handler := self.storage_handler) is not None:
            return f"kept by {handler.rpartition('.')[2]}: open the files of that system instead"
        if self.location is None:
            return "it has no location"
        if self.is_by_position and self.is_transactional:
            return f"transactional, with {POSITIONS}"
        if self.is_by_position and self.parameters.get(f"{POSITIONS}.level", "1").strip() != "1":
            return f"its {POSITIONS}.level is about fields of structs"
        if PROVIDER in self.parameters and self.storage.columns == _DUMMY and self.hudi_view is None:
            return "a Spark table whose columns Hive does not know: scan its directory instead"
        return None

    def name_of(self, partition: PartitionDefinition) -> str:
        """`dt=2014-01-01/region=asia/pacific`: for people, as values are not escaped."""
        pairs = zip(self.keys, partition.values, strict=False)
        return "/".join(f"{key.name}={value}" for key, value in pairs)


def of_length(columns: Sequence[Column]) -> str:
    """The columns of type char and varchar, as `in_hive`: Hive cuts and pads the texts of files."""
    return in_hive([column for column in columns if _OF_LENGTH.fullmatch(column.type.strip())])


def columns_of(columns: Sequence[Column], unit: str) -> pa.Schema:
    """The columns of a table as a pyarrow.Schema, with timestamps in `unit`."""
    schema: pa.Schema = parse_columns(in_hive(columns), timestamp_unit=unit)
    return schema


def keys_of(columns: Sequence[Column]) -> pa.Schema:
    """The partition columns as a pyarrow.Schema."""
    schema: pa.Schema = parse_columns(in_hive(columns), partitions=True)
    return schema


def in_hive(columns: Sequence[Column]) -> str:
    """Columns as a list in Hive's syntax."""
    return ", ".join(f"{_quoted(column.name)} {column.type}" for column in columns)


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"


def toml_lines(name: str, path: str, definition: Definition) -> Iterator[str]:
    """The lines of an entry of tables.toml for a table at `path` below the source's root."""
    options = definition.storage_of().options(definition.format)
    if definition.keys:
        options["partitions"] = in_hive(definition.keys)
    return entry_lines(name, path, options)
