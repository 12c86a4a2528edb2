"""How the files of a table's partitions are read, so that their columns are the table's.

table          id, price, channel
partition      id, cost                 cost is price: a partition's columns are the table's by position
without names  by position: RCFile, and the columns _col0, _col1 .. of early Hive
with names     by the table's names, in any case; what the table does not have stays under its own name. Where
               the table says so (orc.force.positional.evolution), by position

A partition may lack the table's last columns. Its files may have them all the same: Hive writes all columns
of the table into a partition that is older than some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from coldframe.hive.defined import READ
from coldframe.hive.definition import Column, Definition, PartitionDefinition, Storage
from coldframe.hive.group import Group
from coldframe.hive.write_ids import OPTION, WriteIds
from coldframe.options import TYPELESS
from coldframe.pipeline.source.foreign_formats import definition_for_spark, names_in_table
from coldframe.pipeline.source.reading import Reading

__all__ = ["Readings", "why_not_read"]


def why_not_read(table: Definition, partition: PartitionDefinition, format: str) -> str | None:
    """Why a partition's files cannot be read as a part of the table, by its definition alone."""
    if format not in READ:
        return f"files of {format or 'no stated format'} are not read"
    if format in TYPELESS:
        if not partition.storage.serde:
            return "it states no SerDe"
        names = [one.name.lower() for one in _columns(table, partition.storage)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            return f"by position, two of its columns are the table's {', '.join(twice)}"
    return None


def _columns(table: Definition, storage: Storage) -> tuple[Column, ...]:
    """The columns of files without names: the partition's under the table's names, then the table's."""
    of_table, own = table.storage.columns, storage.columns
    shared = [replace(one, name=named.name) for one, named in zip(own, of_table, strict=False)]
    return (*shared, *own[len(of_table) :], *of_table[len(own) :])


@dataclass
class Readings:
    """The different readings of a table's files."""

    table: Definition
    writes: WriteIds | None = None
    """Which writes of a transactional table count; None for all that its directories have."""
    all: list[Reading] = field(default_factory=list)
    _known: dict[tuple[object, ...], dict[str, int]] = field(default_factory=dict)

    def of(self, storage: Storage, declared: str) -> dict[str, int]:
        """The numbers of the readings of a partition's files, by the format that their bytes have."""
        key = Group.key(declared, storage)
        if key not in self._known:
            self._known[key] = {
                format: self._number(self._reading(storage, format, declared)) for format in sorted(READ)
            }
        return self._known[key]

    def of_directories(self, storage: Storage, declared: str) -> dict[str, int]:
        """As `of`, of directories that are read as one; of tables that are not transactional none is."""
        if not self.table.is_transactional:
            return {}
        found = {}
        for format, number in self.of(storage, declared).items():
            reading = self.all[number]
            if self.writes is not None and not self.writes.all_committed and not reading.refusal:
                only = {OPTION: self.writes.text(self.table.full_name)}
                number = self._number(replace(reading, options={**reading.options, **only}))
            found[format] = number
        return found

    def by_spark(self, partition: PartitionDefinition, declared: str) -> dict[str, int]:
        """As `of_directories`, of a partition that Spark reads."""
        names = names_in_table(self.table, partition.storage)
        definition = definition_for_spark(self.table, partition)
        return {declared: self._number(Reading(declared, {}, names, is_only=False, by_spark=definition))}

    def _number(self, reading: Reading) -> int:
        if reading not in self.all:
            self.all.append(reading)
        return self.all.index(reading)

    def _reading(self, storage: Storage, format: str, declared: str) -> Reading:
        if format not in TYPELESS:
            # The file has names and types; the table's say more where the file's say little.
            columns = self.table.storage
            names = tuple(one.name for one in columns.columns)
            if self.table.is_by_position:
                # What the table says of a name may be about another column of the file.
                return Reading(format, {}, names, by_position=True, is_only=False)
            return Reading(format, {"schema": columns.schema}, names, is_only=False)
        if format != declared:
            reason = f"its bytes are {format}, and the metastore has {declared}: without a SerDe for {format}"
            return Reading(format, refusal=f"{reason}, its columns are not known", is_only=False)
        made = replace(storage, columns=_columns(self.table, storage))
        return Reading(format, made.options(format), is_only=False)
