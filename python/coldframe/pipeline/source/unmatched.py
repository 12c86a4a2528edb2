"""What tables.toml names and the source does not have: tables, and partition columns of tables."""

from __future__ import annotations

import os
from collections.abc import Sequence

from coldframe.pipeline.source.inventory import Inventory
from coldframe.pipeline.source.tables import Table
from coldframe.pipeline.state.journal import State
from coldframe.sources import is_remote


def unmatched(inventory: Inventory, tables: Sequence[Table], state: State) -> list[str]:
    """The paths of entries without any files, and partition columns that no folder has. Skips paths that the
    report has elsewhere (left out, not readable, or gone since an earlier run), and directories without
    files, which are tables without rows.
    """
    paths = [path for path in inventory.unmatched if not _is_explained(path, inventory, tables, state)]
    return paths + [
        f"{table.place}: partition column {name}"
        for table in tables
        if table.files
        for name in table.unmatched_partitions
    ]


def _is_explained(path: str, inventory: Inventory, tables: Sequence[Table], state: State) -> bool:
    below = f"{path}/"
    if inventory.leaves_out(path) or any(unread.relative.startswith(below) for unread in inventory.unread):
        return True
    if any(place.startswith(below) for place in inventory.left_out):
        return True
    known = (where for where, about in state.tables.items() if f"{about.place}/".startswith(below))
    if any(state.done.sources_of(where) for where in known):
        return True
    taken = any(table.place == path or table.place.startswith(below) for table in tables)
    return not taken and not is_remote(inventory.root) and os.path.isdir(f"{inventory.root}/{path}")
