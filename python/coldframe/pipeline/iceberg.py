"""An Iceberg table over files that are in place already, in a catalog of its own below DST/_coldframe.

The catalog is an SQLite file (on a store: see `iceberg_store`); any engine can also be pointed at the table's
newest metadata file, which the report names.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coldframe._coldframe import SchemaError
from coldframe.pipeline.committed import CommittedTable, Counts
from coldframe.pipeline.destination import Destination
from coldframe.pipeline.iceberg_log import live_files
from coldframe.pipeline.journal import HOME
from coldframe.pipeline.live import LiveTable
from coldframe.sources import is_remote
from coldframe.spark.types import plain_type
from coldframe.widening import shape_of

NAMESPACE = "migrated"
MARK = "coldframe.files"
RUN = "coldframe.run"
"""Properties of our snapshots: what they leave in the table, and who made them."""
OF = "coldframe.source"
"""The table's property that says which directory it was made of."""


def open_catalog(root: str) -> Any:
    """The catalog of a target directory."""
    from pyiceberg.catalog.sql import SqlCatalog

    path = os.path.join(root, HOME, "iceberg.db")
    return SqlCatalog("coldframe", uri=f"sqlite:///{path}", warehouse=f"file://{root}")


@dataclass(frozen=True)
class _Catalog:
    """The catalog of a destination."""

    open: Callable[[], Any]
    """Makes it where there is none."""
    exists: bool
    keep: Callable[[], None]
    """Makes what was changed last."""


@contextlib.contextmanager
def _catalog(destination: Destination) -> Iterator[_Catalog]:
    if not is_remote(destination.root):
        there = os.path.isfile(destination.path(f"{HOME}/iceberg.db"))
        yield _Catalog(lambda: open_catalog(destination.root), there, lambda: None)
        return
    from coldframe.pipeline.iceberg_store import catalog_copy

    with catalog_copy(destination) as (path, copy):
        yield _Catalog(lambda: _remote_catalog(destination, path), copy.exists, copy.put_back)


def _remote_catalog(destination: Destination, path: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    from coldframe.pipeline.iceberg_store import io_properties

    uri, properties = f"sqlite:///{path}", io_properties(destination)
    return SqlCatalog("coldframe", uri=uri, warehouse=destination.root, **properties)


def register(destination: Destination, table: CommittedTable, foreign: str = "refuse") -> dict[str, Any]:
    """Makes the table's newest snapshot hold the files of the journal. Doing so twice changes nothing.

    One transaction adds and removes exactly the difference. Each snapshot of ours carries a digest of the
    files that it left in the table; where others have made snapshots since, the table is theirs: it is
    refused, or (`foreign="append"`) the difference to our own last snapshot is made to what they left. Then
    the table is scanned, and must have the rows that were verified.
    """
    with _catalog(destination) as found:
        return _register(_url(destination), found.open(), table, foreign, found.keep)


def _register(
    root: str, catalog: Any, table: CommittedTable, foreign: str, keep: Callable[[], None]
) -> dict[str, Any]:
    catalog.create_namespace_if_not_exists(NAMESPACE)
    identifier = _identifier(catalog, table.name, table.path)
    exists = catalog.table_exists(identifier)
    if table.schema is None and not exists:
        return {}
    wanted = sorted(root + file.final for file in table.files)
    digest = hashlib.sha256("\n".join([str(table.schema), *wanted]).encode()).hexdigest()
    current = (
        catalog.load_table(identifier) if exists else _create(catalog, identifier, root + table.path, table)
    )
    present = _files(current)
    before, others = set(present), ""
    if exists:
        _demand_columns(current, table)
        others, last = _by_others(current)
        if others and last == digest:
            return {**_facts(identifier, current), "changed by others": others}
        if others:
            before = _ours(root, table, others, foreign)
            gone = sorted(before - set(wanted) - set(present))
            if gone:
                raise SchemaError(
                    f"table {table.name}: {len(gone)} file(s) that are to be replaced, such as {gone[0]}, "
                    "were rewritten by others: their old rows cannot be told from the others' any more"
                )
    kept = set(wanted)
    added = [path for path in wanted if path not in before and path not in present]
    removed = [present[path] for path in before if path not in kept]
    columns = {field.name for field in current.schema().fields}
    marked = {MARK: digest, RUN: table.run}
    if added or removed:
        table.announce(
            (path.removeprefix(root) for path in added),
            (file.file_path.removeprefix(root) for file in removed),
        )
    with current.transaction() as transaction:
        if table.schema is not None and not others and removed and len(removed) == len(present):
            _retype(transaction, current, table.schema)
        if table.schema is not None and not columns >= set(table.schema.names):
            with transaction.update_schema() as update:
                update.union_by_name(pa.schema(table.schema))
        if removed:
            with transaction.update_snapshot(snapshot_properties=marked).overwrite() as snapshot:
                for file in removed:
                    snapshot.delete_data_file(file)
        if added:
            transaction.add_files(added, snapshot_properties=marked)
    keep()
    table.committed()
    current = catalog.load_table(identifier)
    if others:
        return {**_facts(identifier, current), "changed by others": others}
    if table.schema is not None:
        table.demand_counts(_counts(current, [field.name for field in table.partitions]), "Iceberg")
    return _facts(identifier, current)


def live(destination: Destination, name: str, path: str) -> set[str] | None:
    """The files that the table lists, relative to the target's root; None where there is no table."""
    with _loaded(destination, name, path) as table:
        if table is None:
            return None
        prefix = _url(destination)
        return {one.removeprefix(prefix) for one in _files(table)}


def runs(destination: Destination, name: str, path: str) -> set[str]:
    """The runs that have committed to the table."""
    with _loaded(destination, name, path) as table:
        snapshots = [] if table is None else table.metadata.snapshots
        marks = (snapshot.summary.additional_properties.get(RUN) for snapshot in snapshots)
        return {str(mark) for mark in marks if mark is not None}


def read_table(destination: Destination, name: str, path: str) -> LiveTable:
    """The table as its metadata has it now."""
    with _loaded(destination, name, path) as table:
        if table is None:
            return LiveTable("gone", f"the catalog {HOME}/iceberg.db does not have it")
        columns = tuple(field.name for field in table.schema().fields)
        snapshot = table.current_snapshot()
        version = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
        return LiveTable("there", "", version, columns, live_files(table, _url(destination)))


@contextlib.contextmanager
def _loaded(destination: Destination, name: str, path: str) -> Iterator[Any]:
    """A table of the catalog, if there is one."""
    with _catalog(destination) as found:
        table = None
        if found.exists:
            catalog = found.open()
            catalog.create_namespace_if_not_exists(NAMESPACE)
            identifier = _identifier(catalog, name, path)
            if catalog.table_exists(identifier):
                table = catalog.load_table(identifier)
        yield table


def _url(destination: Destination) -> str:
    """What the names of the destination's files begin with in Iceberg's metadata."""
    root = destination.path("")
    return root if is_remote(root) else f"file://{root}"


def _files(table: Any, snapshot: int | None = None) -> dict[str, Any]:
    return {task.file.file_path: task.file for task in table.scan(snapshot_id=snapshot).plan_files()}


def _counts(current: Any, partitions: list[str]) -> Counts:
    """Rows by partition, as a scan finds them; of tables without partitions the files' footers are asked."""
    counts: Counter[tuple[Any, ...]] = Counter()
    if not partitions:
        return {(): sum(_rows(current, path) for path in _files(current))}
    for batch in current.scan(selected_fields=tuple(partitions)).to_arrow_batch_reader():
        table = pa.table(batch).select(partitions)
        for row in table.group_by(partitions).aggregate([([], "count_all")]).to_pylist():
            counts[tuple(row[name] for name in partitions)] += row["count_all"]
    return counts


def _rows(current: Any, path: str) -> int:
    with current.io.new_input(path).open() as file:
        return int(pq.read_metadata(file).num_rows)


def _identifier(catalog: Any, name: str, path: str) -> tuple[str, str]:
    """The table's name in the catalog. Where another one has it (`web-logs` and `web_logs`), the later one
    gets a name with letters of its path's digest.
    """
    plain = re.sub(r"\W", "_", name)
    if catalog.table_exists((NAMESPACE, plain)):
        of = catalog.load_table((NAMESPACE, plain)).properties.get(OF)
        if of is not None and of != path:
            return NAMESPACE, f"{plain}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    return NAMESPACE, plain


def _facts(identifier: tuple[str, str], current: Any) -> dict[str, Any]:
    snapshot = current.current_snapshot()
    return {
        "iceberg table": ".".join(identifier),
        "snapshot": None if snapshot is None else snapshot.snapshot_id,
        "metadata": current.metadata_location,
    }


def _demand_columns(current: Any, table: CommittedTable) -> None:
    if table.schema is None:
        return
    gone = sorted({field.name for field in current.schema().fields} - set(table.schema.names))
    if gone:
        raise SchemaError(f"table {table.name}: columns that its files do not have: {', '.join(gone)}")


def _by_others(current: Any) -> tuple[str, str | None]:
    """What others have done in words, and the mark of our last snapshot."""
    marks = [snapshot.summary.additional_properties.get(MARK) for snapshot in current.metadata.snapshots]
    ours = [mark for mark in marks if mark is not None]
    others = f"{len(marks) - len(ours)} of {len(marks)} snapshots" if len(ours) < len(marks) else ""
    return others, ours[-1] if ours else None


def _ours(root: str, table: CommittedTable, others: str, foreign: str) -> set[str]:
    """The files that our own commits left, where what is new may be added to what others made of them."""
    if foreign != "append" or not table.known:
        raise SchemaError(
            f"table {table.name} was changed by others since it was migrated ({others}): it is left as it "
            "is. Migrate what is new into another directory, or add it with on_foreign_changes 'append'"
        )
    return {root + path for path in table.known}


def _retype(transaction: Any, current: Any, schema: pa.Schema) -> None:
    """Where every file of before is replaced, columns may have other types: new ones of the same name."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    have = {field.name: _shape(field.type) for field in schema_to_pyarrow(current.schema())}
    changed = [field for field in schema if field.name in have and have[field.name] != _shape(field.type)]
    if not changed:
        return
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for field in changed:
            update.delete_column(field.name)
    with transaction.update_schema() as update:
        update.union_by_name(pa.schema(changed))


def _shape(kind: pa.DataType) -> str:
    """A type as Iceberg has it, which knows no smaller integers."""
    return re.sub(r"\bint(8|16)\b", "int32", shape_of(plain_type(kind)))


def _create(catalog: Any, identifier: tuple[str, str], place: str, table: CommittedTable) -> Any:
    created = catalog.create_table(
        identifier,
        schema=pa.schema(table.schema or ()),
        location=place,
        properties={OF: table.path},
    )
    if table.partitions:
        with created.update_spec() as spec:
            for field in table.partitions:
                spec.add_identity(field.name)
    return created
