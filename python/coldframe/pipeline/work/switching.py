"""After the verification: in the metastore, the new table gets the name of the one that it was made of.

    sales.orders           -> sales.orders_old     the old definition: nothing else of it is changed
    sales.orders_parquet   -> sales.orders

What is to be done is in the journal first. Who goes on after a kill looks at what is there: `coldframe
unswitch` gives both tables their names back, wherever it stopped. Between the two steps nothing has the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""The property of a table that Hive 4 made external when it was created as a managed one."""


def switch(works: Sequence[TableWork], journal: Journal, definitions: Mapping[str, Definition]) -> None:
    """Switches every table of the run that is verified."""
    for work in works:
        # Tables that are not verified are in the report already.
        if not work.report.verdict.is_verified:
            continue
        try:
            _switch(work, journal, definition_of(work.table, definitions))
        except Exception as error:
            work.report.error = f"not switched: {describe(error)}"


def _switch(work: TableWork, journal: Journal, old: Definition | None) -> None:
    place = journal.state.name_of(work.table.name, work.table.path).place
    if place is None or old is None:
        raise SchemaError("it is not of a metastore, or not registered in one")
    if old.database != place.namespace:
        raise SchemaError(f"{place} and {old.full_name} are not in one database")
    path = work.table.path
    switching = Switching(path, place.catalog, old.database, old.name, old.name + KEPT, place.table)
    with writer(place.catalog) as metastore:
        pair = _Pair(metastore, switching, root_of(journal.destination) + path)
        pair.check_old(old)
        journal.begin_switch(switching)
        pair.switch()
    journal.keep_name(path, InCatalog(place.catalog, old.database, old.name))


def unswitch(journal: Journal) -> list[str]:
    """Gives all tables that were switched their names back. Returns the names of the old ones."""
    done = []
    for path, switching in list(journal.state.switched.items()):
        with writer(switching.catalog) as metastore:
            _Pair(metastore, switching, root_of(journal.destination) + path).unswitch()
        journal.keep_name(path, InCatalog(switching.catalog, switching.database, switching.new))
        journal.end_unswitch(path)
        done.append(f"{switching.database}.{switching.table}")
    return done


def check_unswitched(state: State) -> None:
    """Raises where tables are switched: the source has other tables under their names now."""
    for switching in state.switched.values():
        raise ColdframeError(
            f"{switching.database}.{switching.table} was switched to what is migrated here, or was about to "
            f"be: its old definition is {switching.kept}. Run `coldframe unswitch` on the target first"
        )


@dataclass
class _Pair:
    """The old and the new table."""

    metastore: MetastoreWriter
    names: Switching
    mark: str

    def check_old(self, old: Definition) -> None:
        """Raises unless the old table is the one that was migrated, and can be renamed."""
        now = self._find(self.names.table)
        if now is None or now.storage.location != old.storage.location:
            raise SchemaError(f"{old.full_name} is not the table any more that was migrated")
        if now.kind != "EXTERNAL_TABLE":
            raise SchemaError(
                f"{old.full_name} is a managed table, and renaming it would move its files: make it external "
                "first (alter table .. set tblproperties ('EXTERNAL'='TRUE'))"
            )
        # Hive 4 moves the files of such a table too, if they lie where a managed one's would.
        if now.parameters.get(TRANSLATED, "").lower() == "true":
            raise SchemaError(
                f"{old.full_name} was created as a managed table ({TRANSLATED}), and renaming it would move "
                f"its files: remove that property first (alter table .. unset tblproperties ('{TRANSLATED}'))"
            )
        if self._find(self.names.kept) is not None:
            raise SchemaError(f"{self.names.database}.{self.names.kept} is there already")
        if not self._is_ours(self._find(self.names.new)):
            raise SchemaError(f"{self.names.database}.{self.names.new} is not the table of this migration")

    def switch(self) -> None:
        """Two renames."""
        self._rename(self.names.table, self.names.kept)
        self._rename(self.names.new, self.names.table)

    def unswitch(self) -> None:
        """Undoes as much as was done."""
        names = self.names
        table, kept, new = map(self._find, (names.table, names.kept, names.new))
        if self._is_ours(table) and kept is not None and new is None:
            self._rename(names.table, names.new)
            table = None
        elif not self._is_ours(new):
            raise ColdframeError(
                f"{names.database}.{names.table}: others have changed what it was switched to: "
                f"{names.kept} is {'there' if kept is not None else 'gone'}, nothing is changed"
            )
        if table is None:
            if kept is None:
                raise ColdframeError(f"{names.database}.{names.kept} is gone")
            self._rename(names.kept, names.table)

    def _find(self, name: str) -> Definition | None:
        return self.metastore.find(self.names.database, name)

    def _is_ours(self, table: Definition | None) -> bool:
        return table is not None and table.parameters.get(DESTINATION) == self.mark

    def _rename(self, name: str, to: str) -> None:
        self.metastore.rename(self.names.database, name, to)
