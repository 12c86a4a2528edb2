"""The two properties by which a migration recognises its tables in a shared catalog."""

from __future__ import annotations

from collections.abc import Mapping

from coldframe._coldframe import SchemaError
from coldframe.pipeline.sink.committed import CommittedTable

SOURCE = "coldframe.source"
"""The table's source; in the catalog file of a destination, the table's path."""
DESTINATION = "coldframe.destination"
"""The table's location."""


def marks_of(root: str, table: CommittedTable) -> dict[str, str]:
    """The marks of one of our tables; `root`: the prefix of the destination's file names."""
    if table.place is None:
        return {SOURCE: table.path}
    return {SOURCE: table.source, DESTINATION: root + table.path}


def check_own(properties: Mapping[str, str], root: str, table: CommittedTable) -> None:
    """Raises SchemaError if a table in a shared catalog is not this migration's."""
    if table.place is None:
        return
    wanted = marks_of(root, table)
    # The source's address may change between runs; if so, the journal knows the table.
    keys = (DESTINATION,) if table.named_before else (SOURCE, DESTINATION)
    if all(properties.get(key) == wanted[key] for key in keys):
        return
    of, at = properties.get(SOURCE), properties.get(DESTINATION)
    made = f"was made of {of} in {at}" if of is not None else "is of others"
    raise SchemaError(
        f"table {table.name}: {table.place} is there already and {made}: it is left as it is. Choose "
        "another name (rename, suffix) or namespace"
    )
