"""An Iceberg table over files that are already in place: see `iceberg_catalog` for its catalog.

Engines can also open the table's newest metadata file, which the report names.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Set
from typing import Any

import pyarrow as pa

from coldframe._coldframe import ColdframeError, SchemaError
from coldframe.pipeline.records import Json
from coldframe.pipeline.sink.committed import CommittedTable, changed_files
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.iceberg_catalog import (
    FILE,
    NAMESPACE,
    Identifier,
    OpenCatalog,
    catalog_of,
    identifier_of,
    loaded,
    open_catalog,
    table_about,
    url_of,
)
from coldframe.pipeline.sink.iceberg_files import add_data_files, write_format
from coldframe.pipeline.sink.iceberg_log import live_entries
from coldframe.pipeline.sink.iceberg_partitions import bring_layout, partitions_of
from coldframe.pipeline.sink.iceberg_schema import bring_columns, ids_of_columns
from coldframe.pipeline.sink.live import LiveTable, TableName
from coldframe.pipeline.sink.marks import check_own, marks_of
from coldframe.pipeline.sink.second_reading import read_again

__all__ = ["live", "number_columns", "open_catalog", "read_table", "register", "runs"]

MARK = "coldframe.files"
RUN = "coldframe.run"
"""Properties of our snapshots: the digest of the table's files, and the run."""


def register(destination: Destination, table: CommittedTable, foreign: str = "refuse") -> Json:
    """Makes the table's newest snapshot contain the files of the journal. Repeating the call changes nothing.

    One transaction adds and removes exactly the difference. Each of our snapshots carries a digest of the
    files that it left in the table. If other writers have made snapshots since, the table is refused, or
    (`foreign="append"`) the difference from our last snapshot is applied to its current snapshot. Then the
    table is scanned, and must have the verified rows.
    """
    with catalog_of(destination, table.place) as handle:
        return _register(destination, handle, table, foreign)


def _register(destination: Destination, handle: OpenCatalog, table: CommittedTable, foreign: str) -> Json:
    root = url_of(destination)
    catalog = handle.open()
    if table.place is None:
        catalog.create_namespace_if_not_exists(NAMESPACE)
    identifier = identifier_of(catalog, table.table_name)
    current = loaded(catalog, identifier)
    exists = current is not None
    if exists:
        check_own(current.properties, root, table)
    if table.schema is None and not exists:
        return {}
    wanted = sorted(root + file.final for file in table.files)
    known = {root + path for path in table.known}
    if not exists and known & set(wanted):
        # Rows that someone deleted through the metadata would come back.
        raise SchemaError(
            f"table {table.name}: it is gone from the catalog {handle.label}, which listed its files. "
            "Restore the catalog, or convert everything again (fresh)"
        )
    digest = hashlib.sha256("\n".join([str(table.schema), *wanted]).encode()).hexdigest()
    if current is None:
        current = _create(catalog, identifier, root, table)
    present = {file.file_path: (file, live) for file, live in live_entries(current, root)}
    before, others = set(present), ""
    if exists:
        others, last = _by_others(current)
        others = others or changed_files(known, set(present))
        if others:
            _check_columns(current, table)
        if others and (last == digest or known == set(wanted)):
            return {**table_about(identifier, current), "changed by others": others}
        if others:
            table.check_foreign(others, foreign)
            before = known
            hidden = {path: live.hidden or live.rows is None for path, (_, live) in present.items()}
            table.check_replaced(before - set(wanted), hidden)
    kept = set(wanted)
    added = [path for path in wanted if path not in before and path not in present]
    removed = [present[path][0] for path in before if path not in kept]
    # If no earlier file stays, the table may get other columns.
    anew = not others and len(removed) == len(present)
    if not anew:
        _check_columns(current, table)
    marked = {MARK: digest, RUN: table.run}
    if added or removed:
        gone = [file.file_path.removeprefix(root) for file in removed]
        # If the catalog is gone, all known files are announced as removed.
        table.announce((path.removeprefix(root) for path in added), gone if exists else [*table.known, *gone])
    with current.transaction() as transaction:
        if table.schema is not None:
            bring_columns(transaction, current, table.name, pa.schema(table.schema), anew=anew)
            if not others:
                bring_layout(transaction, table, anew=anew)
        if removed:
            with transaction.update_snapshot(snapshot_properties=marked).overwrite() as snapshot:
                for file in removed:
                    snapshot.delete_data_file(file)
        if added:
            new = frozenset(added)
            files = [file for file in table.files if root + file.final in new]
            partition_of = partitions_of(transaction.table_metadata, table)
            add_data_files(transaction, files, root, destination, partition_of, marked)
    handle.keep()
    table.committed()
    current = catalog.load_table(identifier)
    if others:
        return {**table_about(identifier, current), "changed by others": others}
    if table.schema is not None:
        _check_files(current, root, table)
    read = functools.partial(_read, current, root)
    again = read_again(table, (path.removeprefix(root) for path in added), "PyIceberg", read)
    return {**table_about(identifier, current), **again}


def _read(current: Any, root: str, files: Set[str]) -> Iterator[pa.RecordBatch]:
    """The rows of some files, as PyIceberg reads them."""
    from pyiceberg.io.pyarrow import ArrowScan

    scan = current.scan()
    tasks = [task for task in scan.plan_files() if task.file.file_path.removeprefix(root) in files]
    reading = ArrowScan(current.metadata, current.io, scan.projection(), scan.row_filter, True)
    yield from reading.to_record_batches(tasks)


def number_columns(destination: Destination, name: TableName, schema: pa.Schema) -> tuple[int, ...]:
    """The ids of columns in the table, which need not exist yet: those of a field before those inside it."""
    with _loaded(destination, name) as table:
        return tuple(ids_of_columns(table, schema))


def live(destination: Destination, name: TableName) -> set[str] | None:
    """The files in the table, relative to the target's root; None if there is no table."""
    with _loaded(destination, name) as table:
        if table is None:
            return None
        return {file.path for _, file in live_entries(table, url_of(destination))}


def runs(destination: Destination, name: TableName) -> set[str]:
    """The runs that have committed to the table."""
    with _loaded(destination, name) as table:
        snapshots = [] if table is None else table.metadata.snapshots
        marks = (snapshot.summary.additional_properties.get(RUN) for snapshot in snapshots)
        return {str(mark) for mark in marks if mark is not None}


def read_table(destination: Destination, name: TableName) -> LiveTable:
    """The table according to its metadata."""
    with _loaded(destination, name) as table:
        if table is None:
            label = FILE if name.place is None else name.place.catalog
            return LiveTable("gone", f"the catalog {label} does not have it")
        columns = tuple(field.name for field in table.schema().fields)
        snapshot = table.current_snapshot()
        version = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
        files = (file for _, file in live_entries(table, url_of(destination)))
        return LiveTable("there", "", version, columns, files)


@contextlib.contextmanager
def _loaded(destination: Destination, name: TableName) -> Iterator[Any]:
    """A table of the catalog; None if there is no such table."""
    with catalog_of(destination, name.place) as handle:
        table = None
        if handle.exists:
            catalog = handle.open()
            table = loaded(catalog, identifier_of(catalog, name))
        yield table


def _check_files(current: Any, root: str, table: CommittedTable) -> None:
    """Raises if the table does not have exactly the verified rows of each file, in that file's partition."""
    partition_of = partitions_of(current.metadata, table)
    spec_id = current.metadata.spec().spec_id
    there = {file.path: (entry, file.rows) for entry, file in live_entries(current, root)}
    for file in table.files:
        entry, rows = there.pop(file.final, (None, 0))
        if rows != file.rows:
            raise ColdframeError(
                f"table {table.name}: Iceberg reads {rows} rows of {file.final}, {file.rows} were verified"
            )
        # Files that stay keep the partition spec with which they were added.
        if entry is not None and entry.spec_id == spec_id:
            actual, expected = entry.partition, partition_of(file)
            if actual != expected and repr(actual) != repr(expected):  # NaN differs from itself
                raise ColdframeError(
                    f"table {table.name}: Iceberg has {file.final} in partition {actual}, expected {expected}"
                )
    if there:
        path, (_, rows) = next(iter(there.items()))
        raise ColdframeError(f"table {table.name}: Iceberg reads {rows} rows of {path}, 0 were verified")


def _check_columns(current: Any, table: CommittedTable) -> None:
    if table.schema is None:
        return
    gone = sorted({field.name for field in current.schema().fields} - set(table.schema.names))
    if gone:
        raise SchemaError(f"table {table.name}: its files lack columns of the table: {', '.join(gone)}")


def _by_others(current: Any) -> tuple[str, str | None]:
    """A description of others' snapshots (empty if none), and the digest of our last snapshot."""
    marks = [snapshot.summary.additional_properties.get(MARK) for snapshot in current.metadata.snapshots]
    ours = [mark for mark in marks if mark is not None]
    others = f"{len(marks) - len(ours)} of {len(marks)} snapshots" if len(ours) < len(marks) else ""
    return others, ours[-1] if ours else None


def _create(catalog: Any, identifier: Identifier, root: str, table: CommittedTable) -> Any:
    """A table without files. If a run is killed here, the next run finds the table by its marks."""
    from pyiceberg.exceptions import TableAlreadyExistsError

    about = table.about
    formats = write_format(file.final for file in table.files)
    properties = {**formats, **about.properties, **marks_of(root, table)}
    if about.comment:
        properties["comment"] = about.comment
    if about.owner:
        properties["owner"] = about.owner
    catalog.create_namespace_if_not_exists(identifier[:-1])
    try:
        return catalog.create_table(
            identifier,
            schema=about.commented(table.schema or ()),
            location=root + table.path,
            properties=properties,
        )
    except TableAlreadyExistsError as other:
        raise SchemaError(
            f"table {table.name}: {table.place} is there already, and is no Iceberg table: it is left as it "
            "is. Choose another name (rename, suffix) or namespace"
        ) from other
