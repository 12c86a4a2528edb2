"""The whole source: its root, its contents, and its tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coldframe._coldframe import SchemaError, formats
from coldframe.pipeline.file_access import StorageOptions, canonical_root, exists, root_of
from coldframe.pipeline.options import Options
from coldframe.pipeline.scheduling import Scheduler
from coldframe.pipeline.source.defined import DefinedSource
from coldframe.pipeline.source.inventory import TABLES_FILE, Inventory, take_inventory
from coldframe.pipeline.source.proposing import check_schemas
from coldframe.pipeline.source.reading import Reading
from coldframe.pipeline.source.registered import Registered
from coldframe.pipeline.source.store_listing import take_listed
from coldframe.pipeline.source.tables import Table, TableSpec, find_tables, load_tables
from coldframe.sources import is_remote

_OF_WRITERS = ("hive_version", "timezone")
"""Options about the writer of a table's files, which no metastore knows."""


@dataclass(frozen=True)
class Survey:
    """The state of the source before anything is done."""

    source: str
    goal: str
    """The target's root."""
    inventory: Inventory
    tables: list[Table]
    registered: Registered | None = None
    """The locations in a metastore, if one is compared."""
    defined: DefinedSource | None = None
    """The definitions, if the source is a metastore."""

    @property
    def places(self) -> list[tuple[str, str, int]]:
        """A metastore's locations, the places of their files, and the number of partition folders below."""
        if self.defined is None:
            return []
        return [
            (part.location, part.place, len(part.keys))
            for table in self.defined.tables
            for part in table.parts
            if part.is_taken
        ]


def roots_of(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> tuple[str, str]:
    """The two roots: absolute paths, or URLs without a trailing slash."""
    source, goal = root_of(src), root_of(dst)
    first, second = (canonical_root(root) + "/" for root in (source, goal))
    if first.startswith(second) or second.startswith(first):
        raise SchemaError(f"source {source} and target {goal} must not contain each other")
    return source, goal


def look(
    source: str,
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None,
    options: Options,
    scheduler: Scheduler | None = None,
) -> tuple[Inventory, list[Table]]:
    """The contents of the source, and their tables."""
    storage_options = options.source_storage_options
    specs, tables_file = _specs(tables, source, storage_options)
    named = [spec.path for spec in specs]
    if is_remote(source):
        inventory = take_listed(source, named, options.selection, storage_options, scheduler=scheduler)
    else:
        inventory = take_inventory(source, named, options.selection, scheduler=scheduler)
    source_tables = find_tables(inventory, specs)
    if not options.untyped:
        check_schemas(source_tables, tables_file=tables_file)
    return inventory, source_tables


def lay_out(
    source_tables: Sequence[Table],
    inventory: Inventory,
    tables: str | os.PathLike[str] | Sequence[TableSpec] | None,
    options: Options,
) -> None:
    """Gives a metastore's tables the layouts in their entries of tables.toml, and what no metastore knows.

    Raises SchemaError for an entry with anything else, which the metastore defines.
    """
    if tables is None:
        return
    specs, _ = _specs(tables, "", options.source_storage_options)
    by_name = {name.lower(): table for table in source_tables for name in (table.name, table.place)}
    for spec in specs:
        is_empty = spec.layout is None and not spec.options
        if is_empty or spec.options.keys() - _OF_WRITERS or spec.partitions or spec.format is not None:
            raise SchemaError(
                f"tables.{spec.name}: for a metastore as the source, an entry may only have "
                f"{', '.join(_OF_WRITERS)} and the part iceberg: the metastore defines the rest"
            )
        table = by_name.get(spec.path.lower())
        if table is None or table.spec is None:
            inventory.unmatched.append(spec.path)
        else:
            table.spec = replace(table.spec, layout=spec.layout)
            table.readings = tuple(_by_writer(reading, spec.options) for reading in table.readings)


def _by_writer(reading: Reading, given: Mapping[str, Any]) -> Reading:
    """A reading with the options about the writer that its format has."""
    known = formats().get(reading.format, {}).get("open", {})
    own = {name: value for name, value in given.items() if name in known}
    return replace(reading, options={**reading.options, **own}) if own else reading


def _specs(
    given: str | os.PathLike[str] | Sequence[TableSpec] | None,
    source: str,
    storage_options: StorageOptions,
) -> tuple[list[TableSpec], str | None]:
    if given is None:
        path = f"{source}/{TABLES_FILE}"
        return (load_tables(path, storage_options), path) if exists(path, storage_options) else ([], None)
    if isinstance(given, str | os.PathLike):
        return load_tables(os.fspath(given), storage_options), os.fspath(given)
    return list(given), None
