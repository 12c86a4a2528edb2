"""How the files of a table's partitions are read, so that they get the table's columns.

table          id, price, channel
partition      id, cost                 cost is price: a partition's columns match the table's by position
without names  by position: RCFile, and the columns _col0, _col1 .. of early Hive
with names     by the table's names, ignoring case; other columns keep their own names. By position if the
               table says so (orc.force.positional.evolution)

A partition may lack the table's last columns, while its files have them: Hive writes all columns of the table
even into a partition that is older than some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from coldframe.hive.defined import READ
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage, of_length
from coldframe.hive.write_ids import OPTION, WriteIds
from coldframe.options import TYPELESS
from coldframe.pipeline.source.foreign_formats import definition_for_spark, names_in_table
from coldframe.pipeline.source.reading import Reading


def why_not_read(table: Definition, partition: PartitionDefinition, format: str) -> str | None:
    """Why, by its definition, a partition's files cannot be read as a part of the table; None if they can be
    read.
    """
    if format not in READ:
        return f"files of {format or 'no stated format'} are not read"
    if format in TYPELESS:
        if not partition.storage.serde:
            return "it states no SerDe"
        names = [column.name.lower() for column in _columns(table, partition.storage)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            return f"by position, two of its columns match the table's {', '.join(twice)}"
    return None


def _columns(table: Definition, storage: Storage) -> tuple[Column, ...]:
    """The columns of files without names: the partition's columns under the table's names, then the table's
    columns.
    """
    of_table, own = table.storage.columns, storage.columns
    shared = [replace(column, name=named.name) for column, named in zip(own, of_table, strict=False)]
    return (*shared, *own[len(of_table) :], *of_table[len(own) :])


@dataclass
class Readings:
    """The different readings of a table's files."""

    table: Definition
    writes: WriteIds | None = None
    """The valid writes of a transactional table; None: all writes in its directories."""
    all: list[Reading] = field(default_factory=list)
    _known: dict[tuple[object, ...], dict[str, int]] = field(default_factory=dict)

    def of(self, storage: Storage, declared: str) -> dict[str, int]:
        """The readings of a partition's files: their numbers by the format of the bytes."""
        types = tuple((column.name, column.type) for column in storage.columns)
        key = declared, storage.serde, types, tuple(sorted(storage.serde_properties.items()))
        if key not in self._known:
            self._known[key] = {
                format: self._number(self._reading(storage, format, declared)) for format in sorted(READ)
            }
        return self._known[key]

    def of_directories(self, storage: Storage, declared: str) -> dict[str, int]:
        """As `of`, for directories that are read as a whole: only transactional tables have such
        directories.
        """
        if not self.table.is_transactional:
            return {}
        numbers = {}
        for format, number in self.of(storage, declared).items():
            reading = self.all[number]
            if self.writes is not None and not self.writes.all_committed and not reading.refusal:
                only = {OPTION: self.writes.text(self.table.full_name)}
                number = self._number(replace(reading, options={**reading.options, **only}))
            numbers[format] = number
        return numbers

    def by_spark(self, partition: PartitionDefinition, declared: str) -> dict[str, int]:
        """As `of_directories`, for a partition that Spark reads."""
        names = names_in_table(self.table, partition.storage)
        definition = definition_for_spark(self.table, partition)
        return {declared: self._number(Reading(declared, {}, names, is_only=False, by_spark=definition))}

    def _number(self, reading: Reading) -> int:
        if reading not in self.all:
            self.all.append(reading)
        return self.all.index(reading)

    def _reading(self, storage: Storage, format: str, declared: str) -> Reading:
        if format not in TYPELESS:
            # The file has names and types; the table's types help where the file's are vague (see
            # `open_options`).
            columns = self.table.storage
            names = tuple(column.name for column in columns.columns)
            if self.table.is_by_position:
                # Without the table's types: types apply by name, and the file may have a different column of
                # that name.
                return Reading(format, {}, names, by_position=True, is_only=False)
            lengths = of_length(columns.columns)
            return Reading(format, {"schema": columns.schema}, names, is_only=False, lengths=lengths)
        if format != declared:
            reason = f"its bytes are {format}, but the metastore has {declared}: without a SerDe for {format}"
            return Reading(format, refusal=f"{reason}, its columns are unknown", is_only=False)
        made = replace(storage, columns=_columns(self.table, storage))
        return Reading(format, made.options(format), is_only=False)
