"""An Iceberg table over files that are in place already, in a catalog of its own below DST/_coldframe.

The catalog is an SQLite file; any engine can also be pointed at the table's newest metadata file, which the
report names.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.journal import HOME

NAMESPACE = "migrated"
MARK = "coldframe.files"
"""The property of our snapshots."""
OF = "coldframe.source"
"""The table's property that says which directory it was made of."""


def open_catalog(root: str) -> Any:
    """The catalog of a target directory."""
    from pyiceberg.catalog.sql import SqlCatalog

    path = os.path.join(root, HOME, "iceberg.db")
    return SqlCatalog("coldframe", uri=f"sqlite:///{path}", warehouse=f"file://{root}")


def register(root: str, table: CommittedTable) -> dict[str, Any]:
    """Makes the table's newest snapshot hold the files of the journal. Doing so twice changes nothing.

    One transaction adds and removes exactly the difference. Each snapshot of ours carries a digest of the
    files that it left in the table; where others have made snapshots since, the table is theirs, and is not
    touched.
    """
    catalog = open_catalog(root)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    identifier = _identifier(catalog, table)
    wanted = sorted(
        f"file://{os.path.join(root, part.final)}" for entry in table.entries for part in entry.parts
    )
    digest = hashlib.sha256("\n".join([str(table.schema), *wanted]).encode()).hexdigest()
    if not catalog.table_exists(identifier):
        current = _create(catalog, identifier, os.path.join(root, table.path), table)
    else:
        current = catalog.load_table(identifier)
        others = _demand_ours(current, table, digest)
        if others:
            return {**_facts(identifier, current), "changed by others": others}
    there = {task.file.file_path: task.file for task in current.scan().plan_files()}
    added = [path for path in wanted if path not in there]
    kept = set(wanted)
    removed = [file for path, file in there.items() if path not in kept]
    columns = {field.name for field in current.schema().fields}
    marked = {MARK: digest}
    with current.transaction() as transaction:
        if not columns >= set(table.schema.names):
            with transaction.update_schema() as update:
                update.union_by_name(pa.schema(table.schema))
        if removed:
            with transaction.update_snapshot(snapshot_properties=marked).overwrite() as snapshot:
                for file in removed:
                    snapshot.delete_data_file(file)
        if added:
            transaction.add_files(added, snapshot_properties=marked)
    return _facts(identifier, catalog.load_table(identifier))


def _identifier(catalog: Any, table: CommittedTable) -> tuple[str, str]:
    """The table's name in the catalog. Where another one has it (`web-logs` and `web_logs`), the later one
    gets a name with letters of its path's digest.
    """
    plain = re.sub(r"\W", "_", table.name)
    if catalog.table_exists((NAMESPACE, plain)):
        of = catalog.load_table((NAMESPACE, plain)).properties.get(OF)
        if of is not None and of != table.path:
            return NAMESPACE, f"{plain}_{hashlib.sha256(table.path.encode()).hexdigest()[:8]}"
    return NAMESPACE, plain


def _facts(identifier: tuple[str, str], current: Any) -> dict[str, Any]:
    snapshot = current.current_snapshot()
    return {
        "iceberg table": ".".join(identifier),
        "snapshot": None if snapshot is None else snapshot.snapshot_id,
        "metadata": current.metadata_location,
    }


def _demand_ours(current: Any, table: CommittedTable, digest: str) -> str:
    """An error where the work would undo what others did; what they did where there is no work."""
    fields = {field.name for field in current.schema().fields}
    gone = sorted(fields - set(table.schema.names))
    if gone:
        raise SchemaError(f"table {table.name}: columns that its files do not have: {', '.join(gone)}")
    marks = [snapshot.summary.additional_properties.get(MARK) for snapshot in current.metadata.snapshots]
    ours = [mark for mark in marks if mark is not None]
    others = f"{len(marks) - len(ours)} of {len(marks)} snapshots" if len(ours) < len(marks) else ""
    if others and (not ours or ours[-1] != digest):
        raise SchemaError(
            f"table {table.name} was changed by others since it was migrated ({others}): it is left as it "
            "is. Migrate what is new into another directory"
        )
    return others


def _create(catalog: Any, identifier: tuple[str, str], place: str, table: CommittedTable) -> Any:
    created = catalog.create_table(
        identifier,
        schema=pa.schema(table.schema),
        location=f"file://{place}",
        properties={OF: table.path},
    )
    if table.partitions:
        with created.update_spec() as spec:
            for field in table.partitions:
                spec.add_identity(field.name)
    return created
