"""Which files may stay: one table of rules.

A file stays if both Spark with Iceberg and PyIceberg read its rows correctly, with any columns and filters.
Each rule names a kind of file for which no metadata can achieve that. The rules are tried in order, and the
first that applies is the reason for a conversion. Other cases are found by a test: PyIceberg reads each file
that may stay, and if it returns other rows, the file is converted, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from coldframe.pipeline.adopt.layouts import PARQUET, every_field
from coldframe.pipeline.adopt.mapping import Mapping as NameMapping
from coldframe.pipeline.adopt.measures import Measured
from coldframe.pipeline.adopt.records import FileField, FileLayout, FoundFile, FoundTable
from coldframe.pipeline.sink.parquet_footer import parts_of

_FIRST_NANOSECOND, _LAST_NANOSECOND = -(1 << 63) // 1000 + 1, ((1 << 63) - 1) // 1000
"""The times that fit into 64 bits of nanoseconds, in microseconds."""
_ROWS_OF_AN_INDEX = 10_000
_CHAR = re.compile(r"(?<!var)char\b", re.IGNORECASE)
_INTEGERS = frozenset({pa.int8(), pa.int16(), pa.int32()})


@dataclass(frozen=True)
class Facts:
    """All that is known of a file in one of Iceberg's formats."""

    table: FoundTable
    file: FoundFile
    layout: FileLayout
    values: Measured
    mapping: NameMapping
    """Of the table's columns."""

    @property
    def is_parquet(self) -> bool:
        """Whether rules about Parquet apply."""
        return self.file.format == PARQUET

    @property
    def shown(self) -> Iterator[tuple[FileField, pa.DataType]]:
        """The file's columns that the table shows, with the table's types."""
        kinds = {column.name.lower(): column.type for column in self.table.columns}
        keys = {name.lower() for name in self.table.keys.names}
        for field in self.layout.fields:
            kind = kinds.get(field.name.lower())
            if kind is not None and field.name.lower() not in keys:
                yield field, kind


@dataclass(frozen=True)
class Rule:
    """A kind of file that cannot stay."""

    name: str
    reason: str
    """In one sentence, for the report."""
    holds: Callable[[Facts], bool]


def reason_of(facts: Facts) -> str:
    """Why a file cannot stay; empty if it can, by these rules."""
    return next((rule.reason for rule in RULES if rule.holds(facts)), "")


def _names_in_case(facts: Facts) -> bool:
    return _twice(facts.layout.fields) or any(
        pa.types.is_struct(field.kind) and _twice(field.parts) for field in every_field(facts.layout.fields)
    )


def _twice(fields: tuple[FileField, ...]) -> bool:
    names = [field.name.lower() for field in fields]
    return len(set(names)) < len(names)


def _other_positions(facts: Facts) -> bool:
    if not facts.table.is_by_position:
        return False
    names = [field.name.lower() for field in facts.layout.fields]
    return names != [name.lower() for name in facts.table.columns.names][: len(names)]


def _unions(facts: Facts) -> bool:
    return any(pa.types.is_union(field.kind) for field in every_field(facts.layout.fields))


def _other_types(facts: Facts) -> bool:
    return not all(is_promoted(field.kind, kind) for field, kind in facts.shown)


def is_promoted(file: pa.DataType, table: pa.DataType) -> bool:
    """Whether Iceberg reads a file's type as a table's: the same, or one that the specification widens."""
    t = pa.types
    if t.is_struct(file) and t.is_struct(table):
        wanted = {part.name.lower(): part.type for part in parts_of(table)}
        return all(
            is_promoted(part.type, wanted[part.name.lower()])
            for part in parts_of(file)
            if part.name.lower() in wanted
        )
    if t.is_nested(file) or t.is_nested(table):
        if not (t.is_map(file) and t.is_map(table)) and not (_is_list(file) and _is_list(table)):
            return False
        pairs = zip(parts_of(file), parts_of(table), strict=True)
        return all(is_promoted(item.type, other.type) for item, other in pairs)
    if t.is_decimal(file) and t.is_decimal(table):
        return bool(file.scale == table.scale and file.precision <= table.precision)
    if t.is_timestamp(file) and t.is_timestamp(table):
        return (file.tz is None) == (table.tz is None)
    return (
        file == table
        # Iceberg has no integers of less than 32 bits: the proof finds values that Hive cuts.
        or (file in _INTEGERS and table in _INTEGERS)
        or (file, table) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
        or (_is_text(file) and _is_text(table))
        or (_is_bytes(file) and _is_bytes(table))
    )


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _padded(facts: Facts) -> bool:
    """Values of char are padded in ORC's index, and Iceberg's filters are not."""
    if facts.is_parquet:
        return False
    if facts.values.short:
        return True
    nested = (kind for kind in facts.table.types.values() if _CHAR.search(kind) and "<" in kind)
    if next(nested, None) is not None:
        return True
    return any(
        part.declared == "char" and (part is not field or not _CHAR.match(_type_of(facts, field)))
        for field, _ in facts.shown
        for part in every_field([field])
    )


def _type_of(facts: Facts, field: FileField) -> str:
    types: Mapping[str, str] = {name.lower(): kind for name, kind in facts.table.types.items()}
    return types.get(field.name.lower(), "")


def _has_int96(facts: Facts) -> bool:
    return any(part.declared == "INT96" for field, _ in facts.shown for part in every_field([field]))


def _beyond_nanoseconds(facts: Facts) -> bool:
    first, last = facts.values.first_time, facts.values.last_time
    if first is None or last is None or (facts.is_parquet and not _has_int96(facts)):
        return False
    return first < _FIRST_NANOSECOND or last > _LAST_NANOSECOND


def hides_zeros(layout: FileLayout, values: Measured, column: str, *, is_parquet: bool) -> bool:
    """Whether readers that look for a zero may pass over this file's zeros, which may have the other sign.

    They compare bits: with the dictionary of a row group of Parquet, and with the smallest and the largest
    value of 10,000 rows of ORC.
    """
    signs = values.zeros.get(column)
    if not signs:
        return False
    if is_parquet:
        return len(signs) == 1 or len(layout.splits) > 1
    ends = values.columns[column]
    if values.rows > _ROWS_OF_AN_INDEX or ends.low is None:
        return True
    # -0.0 is below a smallest value of 0.0, and 0.0 above a largest one of -0.0.
    return (ends.low == 0 and False in signs) or (ends.high == 0 and True in signs)


def _nanoseconds(facts: Facts) -> bool:
    return facts.is_parquet and any(
        pa.types.is_timestamp(part.kind) and part.kind.unit == "ns" and part.declared != "INT96"
        for field, _ in facts.shown
        for part in every_field([field])
    )


RULES = (
    Rule(
        "placeholders",
        "its columns are named _col0, _col1, ..: Spark with Iceberg matches them by position against the "
        "columns that were asked for",
        lambda facts: facts.layout.is_by_position,
    ),
    Rule(
        "positions",
        "the table matches columns by position, and the file has other names",
        _other_positions,
    ),
    Rule(
        "case",
        "two of its names differ in case only: Spark with Iceberg confuses them",
        _names_in_case,
    ),
    Rule(
        "quotes",
        "a name of its columns has a backtick, by which Spark with Iceberg quotes names of ORC: it does not "
        "find the column",
        lambda facts: (
            not facts.is_parquet and any("`" in field.name for field in every_field(facts.layout.fields))
        ),
    ),
    Rule("union", "it has a union, and Iceberg has no such type", _unions),
    Rule(
        "ids",
        "its columns have ids of another table, by which Iceberg's readers would find them",
        lambda facts: not facts.mapping.agrees(facts.layout.fields),
    ),
    Rule(
        "types",
        "a column has a type that Iceberg does not widen to the table's",
        _other_types,
    ),
    Rule(
        "lists",
        "it has lists of two levels, which Spark with Iceberg cannot read",
        lambda facts: facts.layout.has_short_lists,
    ),
    Rule(
        "char",
        "values of a char column are shorter than its type, and Spark with Iceberg does not find them",
        _padded,
    ),
    Rule(
        "old days",
        "it has days before 1582-10-15, which Iceberg's readers count in another calendar",
        lambda facts: bool(facts.values.old) and not (facts.is_parquet and facts.layout.knows_calendar),
    ),
    Rule(
        "early fractions",
        "it has fractions of a second before 1970 that are not stored as Java stores them: Spark with "
        "Iceberg reads them a second early",
        lambda facts: bool(facts.values.early) and not facts.is_parquet and not facts.layout.has_java_times,
    ),
    Rule(
        "zone",
        "it names a zone for its timestamps of type INT96, and Iceberg's readers take these for UTC",
        lambda facts: facts.layout.zone != "",
    ),
    Rule(
        "nanoseconds",
        "its timestamps are in nanoseconds, which Iceberg's format 2 does not have",
        _nanoseconds,
    ),
    Rule(
        "times",
        "it has times before 1677 or after 2262, which PyIceberg cannot read from such a file",
        _beyond_nanoseconds,
    ),
)
"""Files of other formats, and transactional tables, are always converted, without these rules."""

WHOLE = "its rows are those of a transactional table's directories together"
FOREIGN = "Iceberg has no data files of this format"
SHARED = "it belongs to two partitions: a delete of rows in one would hit the other"
ZEROS = "the table has -0.0, and Spark with Iceberg may pass over zeros of the other sign in this file"
DETACHED = "the table is to read no file of the source (detach)"
UNPROVED = "PyIceberg reads other rows from it"
UNREAD = "PyIceberg cannot read it"
UNPROVED_BY_SPARK = "Spark with Iceberg reads other rows from it"
UNREAD_BY_SPARK = "Spark with Iceberg cannot read it"
HOLLOW = "PyIceberg shows a null list or map of structs as an empty one, in every file; Spark shows null"
"""A note about a table."""


def why_never(facts: Facts) -> str | None:
    """Why the file cannot even be converted, so that its table is refused; None for most files."""
    if facts.values.null_keys:
        name = min(facts.values.null_keys)
        return f"{facts.file.path}: column {name} has a map with a null key, which no reader of Iceberg takes"
    if facts.is_parquet and facts.values.old and not facts.layout.knows_calendar:
        name = min(facts.values.old)
        return (
            f"{facts.file.path}: column {name} has days before 1582-10-15, and the file does not say from "
            "which calendar"
        )
    return None


def assumed(facts: Facts) -> str | None:
    """An assumption about a file that stays, for the report; None if there is none."""
    if facts.is_parquet and _has_int96(facts):
        return (
            "timestamps of type INT96 are read as UTC, as they are stored. If the writer was Hive in "
            "another zone, Hive shows other times"
        )
    return None
