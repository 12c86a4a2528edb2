"""After an adoption: in the metastore of the source, the new table takes over the name of the old one.

    sales.orders           -> sales.orders_old     the old definition, otherwise unchanged
    sales.orders_iceberg   -> sales.orders         the table over its files

The protocol is that of copies (`work.switching`). The record of a switch is written before it begins, and
says what `coldframe unswitch` has to undo. Catalogs that are not the source's metastore have names of their
own: there a new table has the old name from the start.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator
from typing import Any

from coldframe._coldframe import ColdframeError, SchemaError
from coldframe.pipeline.adopt import ledger as ledgers
from coldframe.pipeline.adopt.records import FoundTable
from coldframe.pipeline.records import describe
from coldframe.pipeline.sink.destination import HOME, Destination
from coldframe.pipeline.sink.hive_tables import writer
from coldframe.pipeline.sink.iceberg_catalog import named_catalog
from coldframe.pipeline.sink.live import InCatalog
from coldframe.pipeline.state.events import Switching
from coldframe.pipeline.work.switching import KEPT, Pair


def address_of(catalog: str, destination: Destination) -> str:
    """The address of the Hive metastore that is a catalog; raises SchemaError for other catalogs."""
    from pyiceberg.catalog.hive import HiveCatalog

    opened = named_catalog(catalog, destination)
    if not isinstance(opened, HiveCatalog):
        raise SchemaError(
            f"switch: catalog {catalog} is not the Hive metastore of the source, but has names of its own: "
            "without suffix, the new tables have the old names there already"
        )
    return str(opened.properties["uri"])


def switch(table: FoundTable, place: InCatalog, destination: Destination, run: str) -> list[str]:
    """Switches a verified table, whose last list of files is that of `run`. Returns notes for the report."""
    old = table.definition
    if old is None:
        raise SchemaError("the table does not come from a metastore")
    if old.database.lower() != place.namespace.lower():
        raise SchemaError(f"{place} and {old.full_name} are not in one database")
    address = address_of(place.catalog, destination)
    names = Switching(table.place, address, old.database, old.name, old.name + KEPT, place.table)
    with writer(address) as metastore:
        pair = Pair(metastore, names, ledgers.PROPERTY, {run})
        pair.check_old(old)
        pair.check_partitions(old, table.partitions)
        notes = list(_carried(metastore, names))
        destination.write(ledgers.switch_of(table.place), json.dumps(vars(names)).encode())
        try:
            pair.switch(old, table.partitions)
        except SchemaError:
            destination.delete(ledgers.switch_of(table.place))
            raise
    return [
        *notes,
        f"the old definition is {names.database}.{names.kept}: coldframe unswitch gives it its name back",
    ]


def _carried(metastore: Any, names: Switching) -> Iterator[str]:
    """Gives the new table the old one's privileges."""
    try:
        granted = metastore.grant_as(names.database, names.table, names.new)
    except ColdframeError as error:
        yield f"the privileges on {names.database}.{names.table} could not be carried over: {describe(error)}"
        return
    if granted:
        yield f"the new table has the privileges of the old one: {', '.join(granted)}"


def unswitch(destination: Destination) -> list[str]:
    """Gives all switched tables their names back. Returns the names of the old tables."""
    lock = destination.lock(f"{HOME}/lock")
    if lock is None:
        raise ColdframeError(f"{destination.root}: another migration is at work here")
    done = []
    with contextlib.closing(lock):
        for names, runs in switched(destination):
            with writer(names.catalog) as metastore:
                Pair(metastore, names, ledgers.PROPERTY, runs).unswitch()
            destination.delete(ledgers.switch_of(names.path))
            done.append(f"{names.database}.{names.table}")
    return done


def switched(destination: Destination) -> Iterator[tuple[Switching, Collection[str]]]:
    """The tables that are switched or about to be, and the runs whose lists of files are theirs."""
    runs: dict[str, set[str]] = {}
    for place, run in ledgers.places(destination):
        runs.setdefault(place, set()).add(run)
    for place in sorted(runs):
        names = ledgers.read_switch(destination, place)
        if names is not None:
            yield names, runs[place]


def check_unswitched(destination: Destination) -> None:
    """Raises if tables are switched, since the source then has other tables under their names."""
    for names, _ in switched(destination):
        raise ColdframeError(
            f"{names.database}.{names.table} was switched to a table of this adoption, or was about to be: "
            f"its old definition is {names.kept}. Run `coldframe unswitch` on the target first"
        )
