"""How a table in a catalog that others use is known as this migration's: by two of its properties."""

from __future__ import annotations

from collections.abc import Mapping

from coldframe._coldframe import SchemaError
from coldframe.pipeline.sink.committed import CommittedTable

SOURCE = "coldframe.source"
"""What it was made of; in the catalog file of a destination, its path;"""
DESTINATION = "coldframe.destination"
"""and where it lies."""


def marks_of(root: str, table: CommittedTable) -> dict[str, str]:
    """The properties of a table of ours; `root`: the prefix of the destination's file names."""
    if table.place is None:
        return {SOURCE: table.path}
    return {SOURCE: table.source, DESTINATION: root + table.path}


def check_own(properties: Mapping[str, str], root: str, table: CommittedTable) -> None:
    """Raises SchemaError if a table that others could have made is not this migration's."""
    if table.place is None:
        return
    wanted = marks_of(root, table)
    # The source may have another address in a later run; the journal knows the table then.
    keys = (DESTINATION,) if table.named_before else (SOURCE, DESTINATION)
    if all(properties.get(key) == wanted[key] for key in keys):
        return
    of, at = properties.get(SOURCE), properties.get(DESTINATION)
    made = f"was made of {of} in {at}" if of is not None else "is of others"
    raise SchemaError(
        f"table {table.name}: {table.place} is there already and {made}: it is left as it is. Choose "
        "another name (rename, suffix) or namespace"
    )
