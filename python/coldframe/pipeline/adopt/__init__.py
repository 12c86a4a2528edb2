"""Adoption: Iceberg tables over files that stay where they are.

    sources      the tables, their partitions and files, and how each file is decoded
    ledger       what earlier runs know of the files of a table
    changes      which files are new, changed, or gone since
    evolution    columns that have changed since
    examining    each new file is decoded once, whole: the verdict, counts and bounds
    rules        the table of rules: which files may stay
    mapping      ids of columns for files without ids
    proof        what PyIceberg reads from each file
    spark_proof  what Spark with Iceberg reads, if asked for
    tables       the Iceberg table: proved, and committed at once
    switching    the new table takes over the name of the old one in a metastore

Files that no metadata can make right are converted into new files of the same table. Nothing below the source
is changed, and none of it is ever safe to delete: the new tables read it.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any

from coldframe.errors import ColdframeError, SchemaError, unsupported
from coldframe.pipeline.adopt import ledger as ledgers
from coldframe.pipeline.adopt.changes import by_others, changes_of, check_whole, settle_gone
from coldframe.pipeline.adopt.evolution import evolution_of
from coldframe.pipeline.adopt.examining import columns_of_table, examine
from coldframe.pipeline.adopt.ledger import Ledger, read_ledger, shape_of
from coldframe.pipeline.adopt.records import Adoption, FoundTable, TableOutcome
from coldframe.pipeline.adopt.rules import HOLLOW
from coldframe.pipeline.adopt.sources import FoundSource, Tables, find_source
from coldframe.pipeline.adopt.spark_proof import SparkReader
from coldframe.pipeline.adopt.switching import address_of, check_unswitched, switch
from coldframe.pipeline.adopt.tables import NewTable, about, present_in
from coldframe.pipeline.file_access import canonical_root, root_of
from coldframe.pipeline.options import Options
from coldframe.pipeline.report.verdict import Reason
from coldframe.pipeline.sink.destination import HOME, Destination, open_destination
from coldframe.pipeline.sink.iceberg_catalog import OpenCatalog, catalog_of, check_catalog, loaded
from coldframe.pipeline.sink.live import InCatalog
from coldframe.pipeline.sink.targets import find_target
from coldframe.pipeline.source.defined import matching
from coldframe.pipeline.state.journal import STATE
from coldframe.pipeline.work.catalog_names import name_in_catalog

__all__ = ["REPORT", "Adoption", "adopt"]

_log = logging.getLogger(__name__)
REPORT = f"{HOME}/adoption.json"
_HONOURED = frozenset(
    {
        "to",
        "adopt",
        "detach",
        "prove",
        "tables",
        "locations",
        "compression",
        "untyped",
        "on_vanished",
        "most_vanished",
        "dropped",
        "on_foreign_changes",
        "catalog",
        "namespace",
        "switch",
        "rename",
        "suffix",
        "source_storage_options",
        "target_storage_options",
    }
)
"""The options that an adoption supports; it refuses all others."""


def adopt(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    options: Options,
    *,
    tables: Tables = None,
    plan: bool = False,
    spark: SparkReader | None = None,
) -> Adoption:
    """Makes Iceberg tables over the files of a source, or brings those of an earlier run up to date. `plan`:
    only decodes new files, and writes nothing. `spark`: reads new files as well, before they are listed.
    """
    started = time.time()
    _check_options(options)
    find_target("iceberg")  # raises without PyIceberg
    source, goal = os.fsdecode(src), root_of(dst)
    destination = open_destination(goal, options.target_storage_options)
    _check_target(destination)
    if options.catalog is not None:
        check_catalog(options.catalog, destination)
    check_unswitched(destination)
    if options.switch and options.catalog is not None:
        address_of(options.catalog, destination)
    listing = find_source(source, options, tables)
    adoption = Adoption(
        source, destination.root, "iceberg", "raise", [], is_plan=plan, on_vanished=options.on_vanished
    )
    adoption.left_out_tables = [
        (finding.table, finding.text) for finding in listing.left_out if finding.is_wrong
    ]
    adoption.left_out_tables += _detached_in_vain(listing, options)
    for table in listing.tables:
        _check_apart(table, destination.root)
    lock = None if plan else destination.lock(f"{HOME}/lock")
    if lock is None and not plan:
        raise ColdframeError(f"{destination.root}: another migration is at work here")
    try:
        for table in listing.tables:
            outcome = _outcome(table, destination, options, spark, plan=plan)
            outcome.notes += listing.notes.get(table.name, [])
            adoption.adopted.append(outcome)
        adoption.adopted += _vanished_tables(listing, destination, options, plan=plan)
        adoption.started, adoption.seconds = started, round(time.time() - started, 3)
        if not plan:
            text = json.dumps(adoption.to_json(), indent=1, default=str)
            destination.write(REPORT, text.encode())
    finally:
        if lock is not None:
            lock.close()
    return adoption


def _detached_in_vain(listing: FoundSource, options: Options) -> Iterator[tuple[str, str]]:
    matched = {pattern for table in listing.tables for pattern in matching(table.name, options.detach)}
    for pattern in options.detach:
        if pattern not in matched:
            yield pattern, "no table to detach matches"


def _outcome(
    table: FoundTable, destination: Destination, options: Options, spark: SparkReader | None, *, plan: bool
) -> TableOutcome:
    """Adopts one table. If that fails, the other tables are still adopted."""
    outcome = TableOutcome(table.name, is_plan=plan)
    try:
        *namespace, plain = table.identifier
        place = name_in_catalog(table.name, ".".join(namespace), plain, options)
        with catalog_of(destination, place) as handle:
            run = _bring(table, destination, options, handle, place, outcome, spark)
        if options.switch and place is not None and run is not None and outcome.verified:
            _switch(table, place, destination, run, outcome)
    except (ColdframeError, OSError) as error:
        outcome.refused = str(error)
    except Exception as error:
        # PyIceberg, pyarrow and catalogs raise errors of many kinds, and the other tables must not wait.
        _log.debug("adopting %s", table.name, exc_info=True)
        outcome.refused = f"{type(error).__name__}: {error}"
    return outcome


def _bring(
    table: FoundTable,
    destination: Destination,
    options: Options,
    handle: OpenCatalog,
    place: InCatalog | None,
    outcome: TableOutcome,
    spark: SparkReader | None,
) -> str | None:
    """Makes a table, or brings it up to date. Returns the run that it names."""
    plan = outcome.is_plan
    identifier = table.identifier if place is None else (*place.namespace.split("."), place.table)
    current = _current(handle.open(), identifier) if handle.exists else None
    run = None if current is None else current.properties.get(ledgers.PROPERTY)
    known = read_ledger(destination, table.place, run)
    if current is not None and known is None:
        raise SchemaError(
            f"{'.'.join(identifier)} is in the catalog already, and is not of this adoption: it is left as "
            "it is. Choose another name (rename, suffix) or namespace"
        )
    if not plan:
        ledgers.settle(destination, table.place, run)
    columns = columns_of_table(table)
    shape = shape_of(table)
    evolution = None
    if known is not None:
        evolution = evolution_of(known, current, columns, shape)
        columns = evolution.columns
    present = {} if current is None else present_in(current)
    detach = bool(matching(table.name, options.detach))
    verdicts = () if known is None else known.verdicts
    detached = {verdict.entry for verdict in verdicts if detach and not verdict.reason} & present.keys()
    unproved = {verdict.entry for verdict in verdicts if spark is not None and not verdict.by_spark}
    if known is not None and evolution is not None:
        unproved |= evolution.again(known, current)
    changes = changes_of(table, verdicts, detached | (unproved & present.keys()))
    may_change = settle_gone(changes, options, outcome)
    if known is not None:
        seen = {path: file for path, (_, file) in present.items()}
        reasons, is_allowed = by_others(known.verdicts, seen, options.on_foreign_changes)
        outcome.more += reasons
        may_change = may_change and is_allowed
        outcome.verdicts = list(known.verdicts)
        outcome.metadata = about(known, current, destination, present)
        outcome.is_proved = True
        is_same = evolution is None or not evolution.is_new
        if not may_change or (is_same and not (changes.new or changes.out)):
            return run
        check_whole(changes.out, seen)
    taken = [verdict.path for verdict in changes.kept if not verdict.reason]
    files = examine(table, columns, changes.new, taken, detach=detach)
    outcome.new = len(files)
    outcome.verdicts = [*changes.kept, *(item.verdict for item in files)]
    outcome.notes = sorted({item.assumed for item in files if item.assumed is not None})
    if any(item.values.hollow for item in files):
        outcome.notes.append(HOLLOW)
    if plan:
        return None
    new = Ledger(
        uuid.uuid4().hex,
        table.name,
        table.place,
        identifier,
        None if place is None else place.catalog,
        shape,
        (),
    )
    made = NewTable(
        table,
        columns,
        destination,
        options.compression,
        new,
        changes,
        files,
        current,
        present,
        detach,
        spark,
        evolution,
    )
    outcome.metadata, new = made.make(handle)
    outcome.is_proved = True
    ledgers.settle(destination, table.place, new.run)
    return new.run


def _current(catalog: Any, identifier: tuple[str, ...]) -> Any:
    """A table of a catalog; None if there is none. Raises if the name is that of a table of another kind."""
    from pyiceberg.exceptions import (
        NoSuchIcebergTableError,
        NoSuchNamespaceError,
        NoSuchPropertyException,
        NoSuchTableError,
    )

    try:
        return catalog.load_table(identifier)
    except (NoSuchIcebergTableError, NoSuchPropertyException) as error:
        raise SchemaError(
            f"{'.'.join(identifier)} is in the catalog already, and is no Iceberg table: it is left as it "
            "is. Choose another name (rename, suffix); with switch, the new table gets this name at the end"
        ) from error
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


def _switch(
    table: FoundTable, place: InCatalog, destination: Destination, run: str, outcome: TableOutcome
) -> None:
    try:
        outcome.notes += switch(table, place, destination, run)
    except (ColdframeError, OSError) as error:
        outcome.more.append(Reason("error", 1, f"{table.name}: not switched: {error}"))


def _vanished_tables(
    listing: FoundSource, destination: Destination, options: Options, *, plan: bool
) -> Iterator[TableOutcome]:
    """Tables of earlier runs that the source no longer has."""
    there = {table.place for table in listing.tables}
    left_out = {finding.table for finding in listing.left_out}
    for place, run in sorted(ledgers.places(destination)):
        known = None if place in there else read_ledger(destination, place, run)
        if known is None or known.name in left_out:
            continue
        if options.tables and not matching(known.name, options.tables):
            continue
        with catalog_of(destination, known.in_catalog) as handle:
            current = loaded(handle.open(), known.identifier) if handle.exists else None
        if current is None or current.properties.get(ledgers.PROPERTY) != run:
            continue
        outcome = TableOutcome(known.name, list(known.verdicts), is_plan=plan, on_vanished="fail")
        outcome.vanished = [verdict.path for verdict in known.verdicts]
        outcome.more.append(
            Reason("vanished", 1, "the source no longer has the table: drop it in its catalog")
        )
        yield outcome


def _check_target(destination: Destination) -> None:
    root = destination.root
    if destination.has(STATE):
        raise unsupported(f"adopting into {root}: it is the target of a migration that copies files")
    if not destination.is_empty() and not destination.has(HOME):
        raise unsupported(f"adopting into {root}: it is neither empty nor the target of an earlier adoption")


def _check_options(options: Options) -> None:
    for option in dataclasses.fields(Options):
        if option.name in _HONOURED:
            continue
        usual = option.default
        if option.default_factory is not dataclasses.MISSING:
            usual = option.default_factory()
        if getattr(options, option.name) != usual:
            raise unsupported(f"adopting with the option {option.name.replace('_', '-')}")


def _check_apart(table: FoundTable, goal: str) -> None:
    target = canonical_root(goal) + "/"
    for folder in {os.path.dirname(file.path) for file in table.files}:
        place = canonical_root(folder) + "/"
        if place.startswith(target) or target.startswith(place):
            raise SchemaError(f"{table.name} at {folder} and target {goal} must not contain each other")
