"""The columns of each table, by all files of it that are known.

Files of earlier runs count with the columns that they had in the source, whether this run looks at them or
not. Nothing is remembered beyond the files: what a corrected tables.toml calls otherwise is gone with the
next run. Files that were written in other types than the table has by now are converted once more, since
readers take a table's types from one of them; where that cannot be (the source is gone, or left out), nothing
that needs other types is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.pipeline.plan.exchange import GONE, LEFT_OUT
from coldframe.pipeline.plan.plan_files import decoded, partition_values, schema_id, table_schema
from coldframe.pipeline.plan.table_work import Due, Fail, TableWork, due_of
from coldframe.pipeline.state.journal import State
from coldframe.pipeline.state.scratch import Rows
from coldframe.pipeline.target.targets import Target
from coldframe.widening import shape_of

Planner = Callable[[TableWork, Rows[Due]], None]
"""Plans files of a table: those that can be opened are `planned` from then on."""


def settle_columns(work: TableWork, state: State, target: Target, planner: Planner, fail: Fail) -> None:
    """Gives a table its columns, and more work where files have to be written once more. `fail` is told of
    files that have no place in the table.
    """
    if not (work.planned or work.done or work.held):
        return
    _demand_partitions(work, fail)
    _keep_failed(work, state)
    schemas: dict[str, tuple[str, pa.Schema]] = {}
    for dues in (work.done, work.held, work.stays):
        for due in dues:
            if due.schema not in schemas:
                schemas[due.schema] = (due.file.relative, decoded(state.schemas[due.schema]))
    for one in work.planned:
        if one.schema not in schemas:
            schemas[one.schema] = (one.file.relative, work.schemas[one.schema])
    try:
        work.schema = table_schema(work.table, schemas.values(), partitions_inside=target.partitions_inside)
        outdated = _Outdated(work.schema, state, target)
        _demand_same(work, outdated)
    except SchemaError as error:
        for one in work.planned:
            fail(work, one.file, f"SchemaError: {error}")
        if not work.planned:
            work.report.error = f"SchemaError: {error}"
        work.planned.clear()
        work.schema, work.refused = None, True
        return
    work.is_outdated = outdated.has
    _rewrite(work, outdated, planner)


def _keep_failed(work: TableWork, state: State) -> None:
    """Files that could not be opened: what earlier runs made of them stays."""
    if len(work.planned) == len(work.work):
        return
    for due in work.work:
        before = state.done.look_up(due.file.relative)
        if before is not None and before.parts and work.planned.get(due.file.relative) is None:
            work.stays.append(due_of(due.file, before, "which could not be opened"))


def _demand_partitions(work: TableWork, fail: Fail) -> None:
    """Files whose directories have values that are none of their columns' fail, and no other ones."""
    last: tuple[str, ...] | None = None
    wrong = ""
    for one in work.planned:
        # Files of one directory come one after the other.
        if one.file.folders != last:
            last = one.file.folders
            try:
                partition_values(one.file, work.table)
                wrong = ""
            except SchemaError as error:
                wrong = f"SchemaError: {error}"
        if wrong:
            fail(work, one.file, wrong)
            work.planned.discard(one.file.relative)


def _demand_same(work: TableWork, outdated: _Outdated) -> None:
    """What cannot be converted in this run cannot get other types either."""
    drops = set(work.drops)
    stay = [due for due in work.stays if outdated.has(due) and due.file.relative not in drops]
    if not stay:
        return
    how = {
        GONE: "on_vanished 'remove' takes them out",
        LEFT_OUT: "a run that takes all of the table converts them once more",
    }.get(stay[0].why, "they have to be converted together with the others")
    raise SchemaError(
        f"table {work.table.name} needs other types by now, and {len(stay)} file(s) of it lie in the old "
        f"ones, such as that of {stay[0].file.relative}, {stay[0].why}: {how}"
    )


def _rewrite(work: TableWork, outdated: _Outdated, planner: Planner) -> None:
    late = work.work.another()
    for dues in (work.done, work.held):
        for due in dues:
            if outdated.has(due):
                late.append(due)
                # What waits in other types is of no use.
                dues.discard(due.file.relative)
                work.files.discard(due.file.relative)
    if late:
        planner(work, late)
        work.careful = True


class _Outdated:
    """Which files were written in other types than the table has by now."""

    def __init__(self, schema: pa.Schema, state: State, target: Target) -> None:
        self._now, self._shapes = schema_id(schema), _shapes(schema)
        self._state, self._target = state, target
        self._known: dict[str, bool] = {}

    def has(self, due: Due) -> bool:
        """Whether a converted file is one of them."""
        if not due.has_parts or due.written == self._now:
            return False
        known = self._known.get(due.written)
        if known is None:
            before = _shapes(decoded(self._state.schemas[due.written]))
            # Delta and Iceberg have the columns by themselves: a file may lack some.
            whole = self._target.register is None
            known = before != self._shapes if whole else bool(before.items() - self._shapes.items())
            self._known[due.written] = known
        return known


def _shapes(schema: pa.Schema) -> dict[str, str]:
    return {field.name: shape_of(field.type) for field in schema}
