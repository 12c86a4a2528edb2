"""Tables whose rows another system keeps: Hive reads them through a storage handler, or by the timeline of
Hudi.

    --location hbase://=/mnt/hbase          where its root directory is
    hbase.table.name = ns:orders            the table there
    hbase.columns.mapping = :key,f:price#b  where Hive's columns are: the key of a row, family:qualifier

The name of a handler's class contains the name of the system. Columns get Hive's names, and that system's
types: a number that HBase stores as text stays text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coldframe._coldframe import formats
from coldframe.errors import SchemaError
from coldframe.hive.definition import Column, Definition
from coldframe.hive.locations import Locations
from coldframe.pipeline.source.inventory import SEVERAL
from coldframe.pipeline.source.reading import Reading

_BYTES = {
    "int": "int",
    "bigint": "long",
    "smallint": "short",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
}
"""Hive's types, and HBase's names for their binary forms."""
_TEXTS = ("string", "varchar", "char")


@dataclass(frozen=True)
class HandledTable:
    """A table of another system."""

    root: str
    """The directory of that system, readable."""
    reading: Reading


def hudi_table(table: Definition, locations: Locations) -> HandledTable | None:
    """The Hudi table that a definition shows; None for other tables."""
    view, place = table.hudi_view, table.location
    if view is None or place is None or table.is_view:
        return None
    return HandledTable(locations.readable(place), Reading(table.format, {"view": view}, is_only=False))


def handled_table(table: Definition, locations: Locations) -> HandledTable | None:
    """The table behind a storage handler; None if no location for that system's files was given.

    Raises SchemaError for columns that cannot be mapped.
    """
    format = _format_of(table)
    if format is None:
        return None
    root = locations.readable(f"{format}://")
    if root.startswith(f"{format}:"):
        return None
    known = {**table.storage.serde_properties, **table.parameters}
    name = known.get(f"{format}.table.name") or known.get(f"{format}.table_name") or table.full_name
    mapping = known.get(f"{format}.columns.mapping")
    if mapping is None:
        return HandledTable(root, Reading(format, {"table": name}, is_only=False))
    is_binary = known.get(f"{format}.table.default.storage.type", "string").lower().startswith("b")
    wanted, names = _mapped(table.storage.columns, mapping, is_binary=is_binary)
    options = {"table": name, "view": "pivot", "columns": wanted}
    return HandledTable(root, Reading(format, options, renamed=names, is_only=False))


def advice(table: Definition) -> str:
    """How to give the location of the system that has a table's data."""
    format = _format_of(table)
    return "" if format is None else f"; --location {format}://=DIR says where its data are"


def _format_of(table: Definition) -> str | None:
    handler = (table.storage_handler or "").lower()
    return next((name for name in formats() if name in SEVERAL and name in handler), None)


def _mapped(
    columns: Sequence[Column], mapping: str, *, is_binary: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Cells that are columns, with their types, and Hive's names for them."""
    places = [place.strip() for place in mapping.split(",") if place.strip()]
    if len(places) == len(columns) - 1 and ":key" not in {place.partition("#")[0] for place in places}:
        # Without `:key`, Hive takes the first column for the key.
        places = [":key", *places]
    if len(places) != len(columns):
        raise SchemaError(f"expected a mapping of {len(columns)} columns, found {len(places)}: {mapping}")
    wanted: dict[str, str] = {}
    names: dict[str, str] = {}
    for column, place in zip(columns, places, strict=True):
        cell, hash, kind = place.partition("#")
        if cell == ":key":
            names["row"] = column.name
            continue
        family, _, qualifier = cell.partition(":")
        if not family or not qualifier or cell in wanted:
            raise SchemaError(f"column {column.name} is {place}: only the key and single cells can be read")
        binary = is_binary if not hash or kind in ("-", "") else kind.lower().startswith("b")
        wanted[cell] = _type(column.type, is_binary=binary)
        names[cell] = column.name
    return wanted, names


def _type(hive: str, *, is_binary: bool) -> str:
    plain = hive.lower().partition("(")[0]
    if is_binary and plain not in _TEXTS:
        return _BYTES.get(plain, "binary")
    return "binary" if plain == "binary" else "string"
