"""A Delta table over files that are in place: the driver writes the log, no file is read or copied."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.pipeline.committed import CommittedTable
from coldframe.pipeline.inventory import is_partition
from coldframe.pipeline.journal import Part

MARK = "coldframe.files"
"""The key of our versions' commit information."""
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def register(root: str, table: CommittedTable) -> dict[str, Any]:
    """Makes the log say what the journal says. Doing so twice changes nothing.

    A version adds and removes exactly the difference to the one before, and no path in both: Spark takes a
    path that one version adds and removes for removed. Each version of ours carries a digest of the files
    that it left in the table; where others have written versions since, the table is theirs, and is not
    touched.
    """
    from deltalake import CommitProperties, DeltaTable, Schema
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
    digest = _digest(actions, schema)
    properties = CommitProperties(custom_metadata={MARK: digest})
    if not DeltaTable.is_deltatable(uri):
        create_table_with_add_actions(
            uri,
            schema,
            list(actions.values()),
            mode="error",
            partition_by=partition_by,
            name=table.name,
            commit_properties=properties,
        )
        return {"delta version": DeltaTable(uri).version()}
    existing = DeltaTable(uri)
    history = existing.history()
    if _by_others(history):
        if next((version[MARK] for version in history if MARK in version), None) == digest:
            return {"delta version": existing.version(), "changed by others": _by_others(history)}
        raise SchemaError(
            f"table {table.name} was changed by others since it was migrated ({_by_others(history)}): it is "
            "left as it is. Migrate what is new into another directory"
        )
    there = {unquote(path): path for path in _paths(existing.get_add_actions(flatten=True))}
    added: list[AddAction | RemoveAction] = [one for path, one in actions.items() if path not in there]
    now = int(time.time() * 1000)
    removed = [
        RemoveAction(path, True, now, None, partition_texts(path)) for path in there if path not in actions
    ]
    if existing.schema() != schema:
        _add_columns(existing, schema, table.name, digest)
    if added or removed:
        existing.create_write_transaction(
            [*added, *removed], "append", schema, partition_by, commit_properties=properties
        )
    return {"delta version": DeltaTable(uri).version()}


def _digest(paths: Iterable[str], schema: Any) -> str:
    """What a version of ours leaves in the table, in a few letters."""
    text = "\n".join([schema.to_json(), *sorted(paths)])
    return hashlib.sha256(text.encode()).hexdigest()


def _by_others(history: Sequence[Mapping[str, Any]]) -> str:
    """The versions that others wrote since the first of ours; empty where there are none."""
    foreign = [one for one in history if MARK not in one]
    return ", ".join(f"version {one.get('version')}: {one.get('operation')}" for one in reversed(foreign))


def _add_columns(existing: Any, schema: Any, name: str, digest: str) -> None:
    """New columns of files that came later. With another type the older files would be unreadable."""
    from deltalake import CommitProperties

    before = {field.name: field for field in existing.schema().fields}
    changed = [
        field.name
        for field in schema.fields
        if field.name in before and before[field.name].type != field.type
    ]
    gone = sorted(set(before) - {field.name for field in schema.fields})
    if changed or gone:
        raise SchemaError(
            f"table {name}: columns that its older files have in another way: "
            f"{', '.join([*changed, *gone])}. Migrate into a new directory"
        )
    new = [field for field in schema.fields if field.name not in before]
    if new:
        existing.alter.add_columns(new, commit_properties=CommitProperties(custom_metadata={MARK: digest}))
        existing.update_incremental()


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
