"""A table's path and name in the target: assigned once, and kept in the journal.

    sales/p=2/x.orc                 sales            the first run
    sales/p=1/x.rc, p=2/x.orc       sales__rcfile    a later run finds a partition in another format
                                    sales            stays the same table

A path belongs to a location and a format of the source. If all files of a table were rewritten in another
format, the new files stay the same table and take over its path; a run then takes both what the table loses
and what it gains (see `exchange`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from coldframe._coldframe import SchemaError

if TYPE_CHECKING:
    from coldframe.pipeline.source.inventory import Inventory
    from coldframe.pipeline.source.tables import Table
    from coldframe.pipeline.state.journal import State


def name_tables(
    tables: Sequence[Table], state: State | None = None, inventory: Inventory | None = None
) -> None:
    """Gives each table its path and name, from the journal or new; all are distinct.

    No path looks like a partition to Spark.
    """
    known = {} if state is None else _remembered(state)
    # The name of an Iceberg table is its name in the catalog.
    catalogued = (
        set()
        if state is None
        else {about.name for about in state.tables.values() if about.to.startswith("iceberg")}
    )
    for table in tables:
        table.path, table.name = known.get((table.place, table.known_as), ("", ""))
    paths = {table.path for table in tables if table.path}
    names = {table.name for table in tables if table.name}
    if state is not None:
        for path, name in known.values():
            if path not in paths and (inventory is None or _has_left_out(path, state, inventory)):
                paths.add(path)
                names.add(name)

    _give_paths([table for table in tables if not table.path], paths)
    _give_names(tables, names, catalogued)
    _check_distinct(tables)


def _remembered(state: State) -> dict[tuple[str, str], tuple[str, str]]:
    """Paths and names in the target, by location and format."""
    return {(about.place, about.format): (path, about.name) for path, about in state.tables.items()}


def _has_left_out(path: str, state: State, inventory: Inventory) -> bool:
    """Whether this run leaves out sources of a table: such a table is not gone."""
    return any(inventory.leaves_out(entry.source) for entry in state.done.of_table(path))


def _give_paths(tables: Sequence[Table], taken: set[str]) -> None:
    plain = {table.place for table in tables if "=" not in table.place}
    for table in tables:
        wanted = _without_partitions(table.place)
        if wanted in taken and "=" not in table.place:
            wanted = f"{wanted}__{table.format}"
        path, number = wanted, 1
        while path in taken or (path != table.place and path in plain):
            number += 1
            path = f"{wanted}_{number}"
        table.path = path
        taken.add(path)


def _without_partitions(place: str) -> str:
    return "/".join(folder if "=" not in folder else folder_name(folder) for folder in place.split("/"))


def folder_name(table: str) -> str:
    """A table's name as a folder name that Hive and Spark do not ignore or take for a partition."""
    return re.sub(r"^[_.]", "t\\g<0>", re.sub(r"[^\w.-]", "_", table)) or "_"


def _give_names(tables: Sequence[Table], taken: set[str], fixed: Set[str]) -> None:
    """Uses the names in tables.toml, except for tables with a `fixed` name; if two formats share a name, the
    later format's name gets the format appended.
    """
    for table in tables:
        if table.spec is not None and table.name and table.name not in fixed:
            taken.discard(table.name)
            table.name = ""
    twice = Counter(table.called for table in tables if table.spec is None and not table.name)
    places = Counter(table.place for table in tables)
    for table in tables:
        if table.name:
            continue
        table.name = table.called
        apart = places[table.place] == 1 and twice[table.called] > 1 and table.spec is None
        if table.name in taken and table.path != table.place:
            table.name = f"{table.called}__{table.format}"
        if (table.name in taken or apart) and table.spec is None:
            table.name = table.path
            number = 1
            while table.name in taken:
                number += 1
                table.name = f"{table.path}_{number}"
        taken.add(table.name)


def _check_distinct(tables: Sequence[Table]) -> None:
    for path in (path for path, count in Counter(table.path for table in tables).items() if count > 1):
        both = sorted(table.called for table in tables if table.path == path)
        raise SchemaError(f"tables {' and '.join(both)} would both lie in {path}: give them different paths")
    twice = sorted(name for name, count in Counter(table.name for table in tables).items() if count > 1)
    if twice:
        raise SchemaError(f"more than one table named {', '.join(twice)}: tables.toml can give them names")
