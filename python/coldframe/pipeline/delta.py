"""A Delta table over files that are in place: the driver writes the log, no file is read or copied."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as pads

from coldframe._coldframe import SchemaError
from coldframe.pipeline.clients import delta_options
from coldframe.pipeline.committed import CommittedTable, Counts, DataFile, partition_texts
from coldframe.pipeline.delta_log import add_actions, open_table
from coldframe.pipeline.destination import Destination
from coldframe.sources import is_remote

MARK = "coldframe.files"
RUN = "coldframe.run"
"""Keys of our versions' commit information: what they leave in the table, and who made them."""
APP = "coldframe"


def register(destination: Destination, table: CommittedTable, foreign: str = "refuse") -> dict[str, Any]:
    """Makes the log say what the journal says. Doing so twice changes nothing.

    A version adds and removes exactly the difference to the one before, and no path in both: Spark takes a
    path that one version adds and removes for removed. Each version of ours carries a digest of the files
    that it left in the table; where others have written versions since, the table is theirs: it is refused,
    or (`foreign="append"`) the difference to our own last version is made to what they left. Then the table
    is read through its log, and must have the rows that were verified.
    """
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import RemoveAction, create_table_with_add_actions

    uri = destination.path(table.path)
    options = delta_options(destination)
    if not is_remote(uri):
        os.makedirs(uri, exist_ok=True)
    exists = DeltaTable.is_deltatable(uri, options)
    if table.schema is None and not exists:
        return {}
    existing = DeltaTable(uri, storage_options=options) if exists else None
    schema = (
        existing.schema()
        if existing is not None and table.schema is None
        else Schema.from_arrow(pa.schema([*(table.schema or ()), *table.partitions]))
    )
    partition_by = (
        existing.metadata().partition_columns
        if existing is not None
        else [field.name for field in table.partitions]
    )
    prefix = f"{table.path}/"
    actions = _actions(destination, table)
    digest = _digest(actions, schema)
    if existing is None:
        table.announce((prefix + path for path in actions), ())
        create_table_with_add_actions(
            uri,
            schema,
            list(actions.values()),
            mode="error",
            partition_by=partition_by,
            name=table.name,
            storage_options=options,
            commit_properties=_properties(table, digest, last=True),
        )
        table.committed()
        return _read_back(uri, options, table)
    before = present = _files(existing)
    history = existing.history()
    others = _by_others(history)
    if others:
        last = next((one for one in history if MARK in one), None)
        if last is not None and last[MARK] == digest:
            return {"delta version": existing.version(), "changed by others": others}
        if foreign != "append" or not table.known:
            raise SchemaError(
                f"table {table.name} was changed by others since it was migrated ({others}): it is left as "
                "it is. Migrate what is new into another directory, or add it with on_foreign_changes "
                "'append'"
            )
        before = {path.removeprefix(prefix) for path in table.known}
        _demand_present(before - set(actions), present, table.name)
    added = [one for path, one in actions.items() if path not in before and path not in present]
    now = int(time.time() * 1000)
    removed = [
        RemoveAction(path, True, now, None, partition_texts(f"{table.path}/{path}"))
        for path in before
        if path not in actions
    ]
    anew = bool(added) and not others and not present & set(actions) and _retypes(existing, schema)
    if anew:
        # Every file of before is replaced, so the table may have other types from this version on.
        removed = []
    elif table.schema is not None and existing.schema() != schema:
        _add_columns(existing, schema, table, digest)
    if added or removed:
        gone = present if anew else {one.path for one in removed}
        table.announce((prefix + one.path for one in added), (prefix + path for path in gone))
        existing.create_write_transaction(
            [*added, *removed],
            "overwrite" if anew else "append",
            schema,
            partition_by,
            commit_properties=_properties(table, digest, last=True),
        )
        table.committed()
    if others:
        now_there = DeltaTable(uri, storage_options=options)
        listed = _files(now_there)
        lost = [one.path for one in added if one.path not in listed]
        if lost:
            raise SchemaError(f"table {table.name}: files that were added are not in it: {lost[:3]}")
        return {"delta version": now_there.version(), "changed by others": others}
    return _read_back(uri, options, table)


def live(destination: Destination, name: str, path: str) -> set[str] | None:
    """The files that the table lists, relative to the target's root; None where there is no table."""
    table = open_table(destination, path)
    return None if table is None else {f"{path}/{one}" for one in _files(table)}


def runs(destination: Destination, name: str, path: str) -> set[str]:
    """The runs that have committed to the table."""
    table = open_table(destination, path)
    return set() if table is None else {str(one[RUN]) for one in table.history() if RUN in one}


def _read_back(uri: str, options: dict[str, str] | None, table: CommittedTable) -> dict[str, Any]:
    """Counts rows as a reader of the table finds them: its log, and the footers of what that lists."""
    from deltalake import DeltaTable

    found = DeltaTable(uri, storage_options=options)
    if table.schema is not None:
        table.demand_counts(_counts(found, [field.name for field in table.partitions]), "Delta")
    return {"delta version": found.version()}


def _counts(found: Any, partitions: Sequence[str]) -> Counts:
    counts: Counter[tuple[Any, ...]] = Counter()
    for fragment in found.to_pyarrow_dataset().get_fragments():
        keys = pads.get_partition_keys(fragment.partition_expression)
        # Another one of the same file: the table's own would keep the footer for as long as there is a table.
        one = fragment.format.make_fragment(fragment.path, fragment.filesystem)
        counts[tuple(keys.get(name) for name in partitions)] += one.count_rows()
    return counts


def _actions(destination: Destination, table: CommittedTable) -> dict[str, Any]:
    from deltalake.transaction import AddAction

    # What others took out of the table and deleted is not added again.
    modified = {found.name: found.modified for found in destination.list(table.path)}
    actions: dict[str, AddAction] = {}
    for file in table.files:
        # As the file system has it: the library itself writes it as a URL.
        path = os.path.relpath(file.final, table.path).replace(os.sep, "/")
        statistics = _statistics(file, table.schema)
        values = partition_texts(file.final)
        changed = modified.get(file.final, 0)
        actions[path] = AddAction(path, file.bytes, values, changed, True, statistics)
    return actions


def _properties(table: CommittedTable, digest: str, *, last: bool = False) -> Any:
    """`last`: of the commit with which a run is through with the table."""
    from deltalake import CommitProperties, Transaction

    marks = {MARK: digest, **({RUN: table.run} if last else {})}
    return CommitProperties(custom_metadata=marks, app_transactions=[Transaction(APP, table.epoch)])


def _digest(paths: Iterable[str], schema: Any) -> str:
    """What a version of ours leaves in the table, in a few letters."""
    text = "\n".join([schema.to_json(), *sorted(paths)])
    return hashlib.sha256(text.encode()).hexdigest()


def _by_others(history: Sequence[Mapping[str, Any]]) -> str:
    """The versions that others wrote since the first of ours; empty where there are none."""
    foreign = [one for one in history if MARK not in one]
    return ", ".join(f"version {one.get('version')}: {one.get('operation')}" for one in reversed(foreign))


def _demand_present(removed: set[str], present: set[str], name: str) -> None:
    gone = sorted(removed - present)
    if gone:
        raise SchemaError(
            f"table {name}: {len(gone)} file(s) that are to be replaced, such as {gone[0]}, were rewritten "
            "by others: their old rows cannot be told from the others' any more"
        )


def _retypes(existing: Any, schema: Any) -> bool:
    """Whether a column has another type than it had, or is not there any more."""
    now = {field.name: field.type for field in schema.fields}
    return any(now.get(field.name) != field.type for field in existing.schema().fields)


def _add_columns(existing: Any, schema: Any, table: CommittedTable, digest: str) -> None:
    """New columns of files that came later. With another type the older files would be unreadable."""
    before = {field.name: field for field in existing.schema().fields}
    changed = [
        field.name
        for field in schema.fields
        if field.name in before and before[field.name].type != field.type
    ]
    gone = sorted(set(before) - {field.name for field in schema.fields})
    if changed or gone:
        raise SchemaError(
            f"table {table.name}: columns that its older files have in another way: "
            f"{', '.join([*changed, *gone])}. Migrate into a new directory"
        )
    new = [field for field in schema.fields if field.name not in before]
    if new:
        existing.alter.add_columns(new, commit_properties=_properties(table, digest))
        existing.update_incremental()


def _files(table: Any) -> set[str]:
    """The files of a version. The library gives their names as URLs, and takes them as they are."""
    return {unquote(str(path)) for path in add_actions(table).column("path").to_pylist()}


def _statistics(file: DataFile, schema: pa.Schema | None) -> str:
    """Rows and nulls. Smallest and largest are left out: Delta has its own text for each type."""
    flat = {field.name for field in schema or () if not pa.types.is_nested(field.type)}
    nulls = {name: count for name, count in file.nulls.items() if name in flat}
    return json.dumps({"numRecords": file.rows, "nullCount": nulls})
