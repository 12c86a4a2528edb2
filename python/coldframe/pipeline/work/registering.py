"""After the last commit: the finished files become a version of a Delta or Iceberg table."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import describe
from coldframe.pipeline.sink.committed import CommittedTable
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.state.ledger import TableEntries
from coldframe.pipeline.work.catalog_names import Definitions, about, definition_of, names_of, settled_name


def register(
    works: Sequence[TableWork],
    journal: Journal,
    target: Target,
    options: Options,
    source: str,
    definitions: Definitions,
) -> None:
    """Delta and Iceberg: the finished files become a version of the table, which is read back. If a catalog
    is named, the table is registered there.

    `source`: the source's root; `definitions`: the metastore's definitions of its tables.
    """
    if target.register is None and options.catalog is None and not journal.state.named:
        return
    names = names_of(works, options, definitions)
    for work in works:
        path = work.table.path
        takes_out = bool(work.drops) or work.half_dropped
        if work.report.error is not None or (work.schema is None and not takes_out):
            continue
        entries = TableEntries(journal.done, path)
        if next(iter(entries), None) is None and not takes_out:
            continue
        try:
            before = journal.state.name_of(work.table.name, path).place
            # Iceberg tables exist only in their catalog; other tables also exist at their path.
            is_free = target.enlist is not None
            place = settled_name(work.table, names, journal.state, fresh=options.fresh, is_free=is_free)
            _settle_killed(work, journal, target)
            if place is not None and target.enlist is None:
                # Recorded first, so that the next run finds what a killed run has done in the catalog.
                journal.keep_name(path, place)
            committed = CommittedTable(
                work.table.name,
                path,
                work.schema,
                work.table.partition_fields,
                entries,
                run=journal.run,
                epoch=journal.state.epoch,
                known=frozenset(journal.state.registered.get(path, ())),
                announce=functools.partial(journal.announce, path),
                committed=functools.partial(journal.settle, path, made=True),
                place=place,
                named_before=place is not None and place == before,
                source=f"{source.rstrip('/')}/{work.table.place}",
                about=about(definition_of(work.table, definitions)),
                layout=work.layout,
            )
            if target.register is not None:
                foreign = options.on_foreign_changes
                work.report.metadata = made = target.register(journal.destination, committed, foreign)
                for what in (what for what in made if what.startswith("not read by ")):
                    work.report.add_reason("unread_by_engine", 1, f"{what}: {made[what]}")
            if place is not None and target.enlist is not None:
                more = target.enlist(journal.destination, committed)
                work.report.metadata = {**(work.report.metadata or {}), **more}
                journal.keep_name(path, place)
        except Exception as error:
            # The files are correct and stay; another run can register them.
            work.report.error = f"{target.name}: {describe(error)}"


def _settle_killed(work: TableWork, journal: Journal, target: Target) -> None:
    """Asks the table whether a run that was killed while registering had committed."""
    about = journal.state.registering.get(work.table.path)
    if about is not None and target.runs is not None:
        name = journal.state.name_of(work.table.name, work.table.path)
        runs = target.runs(journal.destination, name)
        journal.settle(work.table.path, made=about.run in runs)
