"""An Iceberg table over files that are in place already, in a catalog of its own below DST/_coldframe.

The catalog is an SQLite file; any engine can also be pointed at the table's newest metadata file, which the
report names.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pyarrow as pa

from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.journal import HOME

NAMESPACE = "migrated"


def open_catalog(root: str) -> Any:
    """The catalog of a target directory."""
    from pyiceberg.catalog.sql import SqlCatalog

    path = os.path.join(root, HOME, "iceberg.db")
    return SqlCatalog("coldframe", uri=f"sqlite:///{path}", warehouse=f"file://{root}")


def register(root: str, table: CommittedTable) -> dict[str, Any]:
    """Makes the table's newest snapshot hold the files of the journal. Doing so twice changes nothing."""
    catalog = open_catalog(root)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    identifier = (NAMESPACE, re.sub(r"\W", "_", table.name))
    wanted = sorted(
        f"file://{os.path.join(root, part.final)}" for entry in table.entries for part in entry.parts
    )
    current = catalog.load_table(identifier) if catalog.table_exists(identifier) else None
    if current is not None:
        there = set(current.inspect.files().column("file_path").to_pylist())
        names = [field.name for field in current.schema().fields]
        if names != table.schema.names or not there <= set(wanted):
            # Files were replaced, or columns added: the table begins anew, over the files of now.
            catalog.drop_table(identifier)
            current = None
        else:
            wanted = [path for path in wanted if path not in there]
    if current is None:
        current = _create(catalog, identifier, os.path.join(root, table.path), table)
    if wanted:
        current.add_files(wanted)
    snapshot = current.current_snapshot()
    return {
        "iceberg table": ".".join(identifier),
        "snapshot": None if snapshot is None else snapshot.snapshot_id,
        "metadata": current.metadata_location,
    }


def _create(catalog: Any, identifier: tuple[str, str], place: str, table: CommittedTable) -> Any:
    created = catalog.create_table(identifier, schema=pa.schema(table.schema), location=f"file://{place}")
    if table.partitions:
        with created.update_spec() as spec:
            for field in table.partitions:
                spec.add_identity(field.name)
    return created
