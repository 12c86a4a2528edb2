"""A Delta table over files that are in place: the driver writes the log, no file is read or copied."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.inventory import is_partition
from coldframe.pipeline.journal import Part

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def register(root: str, table: CommittedTable) -> dict[str, Any]:
    """Makes the log say what the journal says. Doing so twice changes nothing."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

    uri = os.path.join(root, table.path)
    os.makedirs(uri, exist_ok=True)
    schema = Schema.from_arrow(pa.schema([*table.schema, *table.partitions]))
    partition_by = [field.name for field in table.partitions]
    actions: dict[str, AddAction] = {}
    for entry in table.entries:
        for part in entry.parts:
            # As the file system has it: the library itself writes it as a URL.
            path = os.path.relpath(part.final, table.path).replace(os.sep, "/")
            modified = int(os.stat(os.path.join(root, part.final)).st_mtime * 1000)
            values = partition_texts(part.final)
            actions[path] = AddAction(
                path, part.bytes, values, modified, True, _statistics(part, table.schema)
            )
    added = list(actions.values())
    if not DeltaTable.is_deltatable(uri):
        create_table_with_add_actions(
            uri, schema, added, mode="error", partition_by=partition_by, name=table.name
        )
        return {"delta version": DeltaTable(uri).version()}
    existing = DeltaTable(uri)
    there = {unquote(path) for path in _paths(existing.get_add_actions(flatten=True))}
    new: list[AddAction | RemoveAction] = [action for path, action in actions.items() if path not in there]
    unchanged = existing.schema() == schema
    if unchanged and there <= set(actions):
        if new:
            existing.create_write_transaction(new, "append", schema, partition_by)
    else:
        # Files were replaced, or columns added: a version that has exactly the files of now.
        existing.create_write_transaction([*added], "overwrite", schema, partition_by)
    return {"delta version": DeltaTable(uri).version()}


def partition_texts(final: str) -> dict[str, str | None]:
    """The partition's values by the directories of a file."""
    values: dict[str, str | None] = {}
    for folder in final.split("/")[:-1]:
        if is_partition(folder):
            key, _, value = folder.partition("=")
            values[unquote(key)] = None if value == HIVE_NULL else unquote(value)
    return values


def _paths(actions: Any) -> list[str]:
    """Releases of the library differ in whether they give a table or a batch."""
    table = pa.table(actions) if hasattr(actions, "__arrow_c_stream__") else pa.record_batch(actions)
    return [str(path) for path in table.column("path").to_pylist()]


def _statistics(part: Part, schema: pa.Schema) -> str:
    """Rows and nulls. Smallest and largest are left out: Delta has its own text for each type."""
    flat = {field.name for field in schema if not pa.types.is_nested(field.type)}
    nulls = {name: check["nulls"] for name, check in part.checks["columns"].items() if name in flat}
    return json.dumps({"numRecords": part.rows, "nullCount": nulls})
