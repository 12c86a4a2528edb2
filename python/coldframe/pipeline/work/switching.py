"""After the verification: in the metastore, the new table takes over the name of its source table.

    sales.orders           -> sales.orders_old     the old definition, otherwise unchanged
    sales.orders_parquet   -> sales.orders

The journal records the switch before it begins. After a kill at any step, `coldframe unswitch` looks up which
names exist and gives both tables their names back. Between the two renames no table has the name.

A table that got or lost partitions since the run read its definition is not switched: that would hide them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coldframe._coldframe import ColdframeError, SchemaError
from coldframe.hive.definition import Definition
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import describe
from coldframe.pipeline.sink.hive_tables import root_of, writer
from coldframe.pipeline.sink.live import InCatalog
from coldframe.pipeline.sink.marks import DESTINATION
from coldframe.pipeline.state.events import Switching
from coldframe.pipeline.state.journal import Journal, State
from coldframe.pipeline.work.catalog_names import definition_of

if TYPE_CHECKING:
    from coldframe.hive.changes import MetastoreWriter

KEPT = "_old"
TRANSLATED = "TRANSLATED_TO_EXTERNAL"
"""The property of a table that Hive 4 made external when the table was created as managed."""


def switch(
    works: Sequence[TableWork],
    journal: Journal,
    definitions: Mapping[str, Definition],
    partitions: Mapping[str, frozenset[str]],
) -> None:
    """Switches every table of the run that is verified. `partitions`: the names of the partitions when the
    run read them.
    """
    for work in works:
        # The report already has the tables that are not verified.
        if not work.report.verdict.is_verified:
            continue
        try:
            old = definition_of(work.table, definitions)
            _switch(
                work, journal, old, frozenset() if old is None else partitions.get(old.full_name, frozenset())
            )
        except Exception as error:
            work.report.error = f"not switched: {describe(error)}"


def _switch(work: TableWork, journal: Journal, old: Definition | None, partitions: frozenset[str]) -> None:
    place = journal.state.name_of(work.table.name, work.table.path).place
    if place is None or old is None:
        raise SchemaError("the table does not come from a metastore, or is not registered in one")
    if old.database != place.namespace:
        raise SchemaError(f"{place} and {old.full_name} are not in one database")
    path = work.table.path
    switching = Switching(path, place.catalog, old.database, old.name, old.name + KEPT, place.table)
    with writer(place.catalog) as metastore:
        pair = Pair(metastore, switching, DESTINATION, {root_of(journal.destination) + path})
        pair.check_old(old)
        pair.check_partitions(old, partitions)
        journal.begin_switch(switching)
        try:
            pair.switch(old, partitions)
        except SchemaError:
            journal.end_unswitch(path)
            raise
    journal.keep_name(path, InCatalog(place.catalog, old.database, old.name))


def unswitch(journal: Journal) -> list[str]:
    """Gives all switched tables their names back. Returns the names of the old tables."""
    done = []
    for path, switching in list(journal.state.switched.items()):
        with writer(switching.catalog) as metastore:
            Pair(metastore, switching, DESTINATION, {root_of(journal.destination) + path}).unswitch()
        journal.keep_name(path, InCatalog(switching.catalog, switching.database, switching.new))
        journal.end_unswitch(path)
        done.append(f"{switching.database}.{switching.table}")
    return done


def check_unswitched(state: State) -> None:
    """Raises if tables are switched, since the source then has other tables under their names."""
    for switching in state.switched.values():
        raise ColdframeError(
            f"{switching.database}.{switching.table} was switched to a table of this migration, or was about "
            f"to be: its old definition is {switching.kept}. Run `coldframe unswitch` on the target first"
        )


@dataclass
class Pair:
    """The old and the new table."""

    metastore: MetastoreWriter
    names: Switching
    property: str
    """The property of the new table by which it is known."""
    marks: Collection[str]
    """The values that the property may have."""

    def check_old(self, old: Definition) -> None:
        """Raises if the old table is not the migrated table, or cannot be renamed."""
        now = self._find(self.names.table)
        if now is None or now.storage.location != old.storage.location:
            raise SchemaError(f"{old.full_name} is no longer the table that was migrated")
        if now.kind != "EXTERNAL_TABLE":
            raise SchemaError(
                f"{old.full_name} is a managed table, and renaming it would move its files: make it external "
                "first (alter table .. set tblproperties ('EXTERNAL'='TRUE'))"
            )
        # Hive 4 also moves the files of such a table, if they are in the warehouse directory.
        if now.parameters.get(TRANSLATED, "").lower() == "true":
            raise SchemaError(
                f"{old.full_name} was created as a managed table ({TRANSLATED}), and renaming it would move "
                f"its files: remove that property first (alter table .. unset tblproperties ('{TRANSLATED}'))"
            )
        if self._find(self.names.kept) is not None:
            raise SchemaError(f"{self.names.database}.{self.names.kept} already exists")
        if not self._is_ours(self._find(self.names.new)):
            raise SchemaError(f"{self.names.database}.{self.names.new} is not the table of this migration")

    def check_partitions(self, old: Definition, expected: frozenset[str]) -> None:
        """Raises if the old table does not have the partitions that the run has read."""
        if not old.has_partitions:
            return
        changed = sorted(expected.symmetric_difference(self.metastore.partition_names(old)))
        if changed:
            raise SchemaError(
                f"{old.full_name}: {len(changed)} partition(s) were added or dropped since the run began, "
                f"such as {changed[0]}: the next run takes them"
            )

    def switch(self, old: Definition, expected: frozenset[str]) -> None:
        """Renames both tables. Undoes that and raises if others have added partitions since the check."""
        self._rename(self.names.table, self.names.kept)
        self._rename(self.names.new, self.names.table)
        try:
            self.check_partitions(replace(old, name=self.names.kept), expected)
        except SchemaError:
            self.unswitch()
            raise

    def unswitch(self) -> None:
        """Undoes the renames that were made."""
        names = self.names
        table, kept, new = map(self._find, (names.table, names.kept, names.new))
        if self._is_ours(table) and kept is not None and new is None:
            self._rename(names.table, names.new)
            table = None
        elif not self._is_ours(new):
            raise ColdframeError(
                f"{names.database}.{names.table}: others have changed the table that replaced it: "
                f"{names.kept} {'exists' if kept is not None else 'is gone'}, nothing is changed"
            )
        if table is None:
            if kept is None:
                raise ColdframeError(f"{names.database}.{names.kept} is gone")
            self._rename(names.kept, names.table)

    def _find(self, name: str) -> Definition | None:
        return self.metastore.find(self.names.database, name)

    def _is_ours(self, table: Definition | None) -> bool:
        return table is not None and table.parameters.get(self.property) in self.marks

    def _rename(self, name: str, to: str) -> None:
        self.metastore.rename(self.names.database, name, to)
