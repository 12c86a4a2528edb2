"""An Iceberg table over files that are in place already, in a catalog of its own below DST/_coldframe.

The catalog is an SQLite file (on a store: see `iceberg_store`). Any engine can also be pointed at the table's
newest metadata file, which the report names.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.pipeline.records import Json
from coldframe.pipeline.target.committed import CommittedTable, Counts
from coldframe.pipeline.target.destination import HOME, Destination
from coldframe.pipeline.target.iceberg_log import live_entries
from coldframe.pipeline.target.iceberg_schema import bring_columns
from coldframe.pipeline.target.live import LiveFile, LiveTable
from coldframe.sources import is_remote

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
    from coldframe.pipeline.target.iceberg_store import catalog_copy

    with catalog_copy(destination) as (path, copy):
        yield _Catalog(lambda: _remote_catalog(destination, path), copy.exists, copy.put_back)


def _remote_catalog(destination: Destination, path: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    from coldframe.pipeline.target.iceberg_store import io_properties

    uri, properties = f"sqlite:///{path}", io_properties(destination)
    return SqlCatalog("coldframe", uri=uri, warehouse=destination.root, **properties)


def register(destination: Destination, table: CommittedTable, foreign: str = "refuse") -> Json:
    """Makes the table's newest snapshot contain the files of the journal. Repeating it changes nothing.

    One transaction adds and removes exactly the difference. Each of our snapshots carries a digest of the
    files that it left in the table. If others have made snapshots since, the table is theirs: it is refused,
    or (`foreign="append"`) the difference from our own last snapshot is applied to what they left. Then the
    table is scanned, and must have the verified rows.
    """
    with _catalog(destination) as found:
        return _register(_url(destination), found.open(), table, foreign, found.keep)


def _register(root: str, catalog: Any, table: CommittedTable, foreign: str, keep: Callable[[], None]) -> Json:
    catalog.create_namespace_if_not_exists(NAMESPACE)
    identifier = _identifier(catalog, table.name, table.path)
    exists = catalog.table_exists(identifier)
    if table.schema is None and not exists:
        return {}
    wanted = sorted(root + file.final for file in table.files)
    known = {root + path for path in table.known}
    if not exists and known & set(wanted):
        # Rows that someone deleted through its metadata would come back.
        raise SchemaError(
            f"table {table.name}: it is gone from the catalog {HOME}/iceberg.db, which said what of these "
            "files is the table. Put that in its place again, or convert everything once more (fresh)"
        )
    digest = hashlib.sha256("\n".join([str(table.schema), *wanted]).encode()).hexdigest()
    current = (
        catalog.load_table(identifier) if exists else _create(catalog, identifier, root + table.path, table)
    )
    present = {file.file_path: (file, live) for file, live in live_entries(current, root)}
    before, others = set(present), ""
    if exists:
        others, last = _by_others(current)
        others = others or _unlike(known, set(present))
        if others:
            _demand_columns(current, table)
        if others and (last == digest or known == set(wanted)):
            return {**_facts(identifier, current), "changed by others": others}
        if others:
            before = _ours(root, table, others, foreign)
            _demand_whole(before - set(wanted), present, table.name)
    kept = set(wanted)
    added = [path for path in wanted if path not in before and path not in present]
    removed = [present[path][0] for path in before if path not in kept]
    # If no earlier file stays, nothing binds the table to its columns.
    anew = not others and len(removed) == len(present)
    if not anew:
        _demand_columns(current, table)
    marked = {MARK: digest, RUN: table.run}
    if added or removed:
        gone = [file.file_path.removeprefix(root) for file in removed]
        # A catalog that is gone leaves nothing.
        table.announce((path.removeprefix(root) for path in added), gone if exists else [*table.known, *gone])
    with current.transaction() as transaction:
        if table.schema is not None:
            bring_columns(transaction, current, table.name, pa.schema(table.schema), anew=anew)
        if removed:
            with transaction.update_snapshot(snapshot_properties=marked).overwrite() as snapshot:
                for file in removed:
                    snapshot.delete_data_file(file)
        if added:
            # It is known which of them exist; the library would read all manifests to find out.
            transaction.add_files(added, snapshot_properties=marked, check_duplicate_files=False)
    keep()
    table.committed()
    current = catalog.load_table(identifier)
    if others:
        return {**_facts(identifier, current), "changed by others": others}
    if table.schema is not None:
        table.demand_counts(_counts(current, root, [field.name for field in table.partitions]), "Iceberg")
    return _facts(identifier, current)


def live(destination: Destination, name: str, path: str) -> set[str] | None:
    """The files in the table, relative to the target's root; None if there is no table."""
    with _loaded(destination, name, path) as table:
        if table is None:
            return None
        prefix = _url(destination)
        return {file.path for _, file in live_entries(table, prefix)}


def runs(destination: Destination, name: str, path: str) -> set[str]:
    """The runs that have committed to the table."""
    with _loaded(destination, name, path) as table:
        snapshots = [] if table is None else table.metadata.snapshots
        marks = (snapshot.summary.additional_properties.get(RUN) for snapshot in snapshots)
        return {str(mark) for mark in marks if mark is not None}


def read_table(destination: Destination, name: str, path: str) -> LiveTable:
    """The table according to its metadata."""
    with _loaded(destination, name, path) as table:
        if table is None:
            return LiveTable("gone", f"the catalog {HOME}/iceberg.db does not have it")
        columns = tuple(field.name for field in table.schema().fields)
        snapshot = table.current_snapshot()
        version = "no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
        files = (file for _, file in live_entries(table, _url(destination)))
        return LiveTable("there", "", version, columns, files)


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
    """The prefix of the destination's file names in Iceberg's metadata."""
    root = destination.path("")
    return root if is_remote(root) else f"file://{root}"


def _counts(current: Any, root: str, partitions: list[str]) -> Counts:
    """Row counts by partition, which the manifests have from the files' footers."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for _, file in live_entries(current, root):
        counts[tuple(file.values.get(name) for name in partitions)] += file.rows or 0
    return counts


def _unlike(known: set[str], present: set[str]) -> str:
    """What others changed, judged by the files alone: snapshots expire."""
    if not known or known == present:
        return ""
    return f"{len(present - known)} file(s) added, {len(known - present)} taken out"


def _demand_whole(replaced: set[str], present: Mapping[str, tuple[Any, LiveFile]], name: str) -> None:
    """A SchemaError where others have rewritten files that are to be replaced, or deleted rows of them."""
    gone = sorted(replaced - present.keys())
    if gone:
        raise SchemaError(
            f"table {name}: {len(gone)} file(s) that are to be replaced, such as {gone[0]}, "
            "were rewritten by others: their old rows cannot be told from the others' any more"
        )
    partly = sorted(path for path in replaced if present[path][1].hidden or present[path][1].rows is None)
    if partly:
        raise SchemaError(
            f"table {name}: others have deleted rows of {len(partly)} file(s) that are to be replaced, such "
            f"as {partly[0]}: what replaces them would bring these rows back"
        )


def _identifier(catalog: Any, name: str, path: str) -> tuple[str, str]:
    """The table's name in the catalog.

    If another table has it (`web-logs` and `web_logs`), the later one's name gets letters of its path's
    digest.
    """
    plain = re.sub(r"\W", "_", name)
    if catalog.table_exists((NAMESPACE, plain)):
        of = catalog.load_table((NAMESPACE, plain)).properties.get(OF)
        if of is not None and of != path:
            return NAMESPACE, f"{plain}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    return NAMESPACE, plain


def _facts(identifier: tuple[str, str], current: Any) -> Json:
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
    """What others have done, in words, and the digest of our last snapshot."""
    marks = [snapshot.summary.additional_properties.get(MARK) for snapshot in current.metadata.snapshots]
    ours = [mark for mark in marks if mark is not None]
    others = f"{len(marks) - len(ours)} of {len(marks)} snapshots" if len(ours) < len(marks) else ""
    return others, ours[-1] if ours else None


def _ours(root: str, table: CommittedTable, others: str, foreign: str) -> set[str]:
    """The files that our own commits left, if new files may be added to what others made of them."""
    if foreign != "append" or not table.known:
        raise SchemaError(
            f"table {table.name} was changed by others since it was migrated ({others}): it is left as it "
            "is. Migrate what is new into another directory, or add it with on_foreign_changes 'append'"
        )
    return {root + path for path in table.known}


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
