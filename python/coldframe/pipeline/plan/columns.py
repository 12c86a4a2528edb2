"""The columns of each table, from all its known files.

Files of earlier runs count with the columns that they had in the source, even if this run skips them. Only
files define columns: if a corrected tables.toml renames a column, the next run drops the old name. Files
whose types differ from the table's current types are converted again, since readers take a table's types from
one of its files. If that is impossible (the source is gone, or left out), no file that needs other types is
taken.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from coldframe._coldframe import SchemaError, UnsupportedError
from coldframe.pipeline.plan.exchange import DELETED, GONE, LEFT_OUT
from coldframe.pipeline.plan.plan_files import decoded, partition_values, schema_id, table_schema
from coldframe.pipeline.plan.table_work import Fail, Pending, TableWork, pending_of
from coldframe.pipeline.records import describe
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.state.journal import State
from coldframe.pipeline.state.scratch import Rows
from coldframe.widening import shape_of, unified

_METASTORE = "the metastore's definition"
Planner = Callable[[TableWork, Rows[Pending]], None]
"""Plans files of a table: adds the files that can be opened to `planned`."""


def settle_columns(work: TableWork, state: State, target: Target, planner: Planner, fail: Fail) -> None:
    """Determines a table's columns, and adds files that must be converted again.

    `fail` is called for files that do not fit the table.
    """
    if not (work.planned or work.done or work.held):
        return
    _check_partitions(work, fail)
    _check_declared(work, fail)
    _keep_failed(work, state)
    schemas: dict[str, tuple[str, pa.Schema]] = {}
    if work.table.declared is not None:
        schemas[""] = (_METASTORE, work.table.declared)
    for rows in (work.done, work.held, work.stays):
        for pending in rows:
            if pending.schema not in schemas:
                schemas[pending.schema] = (pending.file.relative, decoded(state.schemas[pending.schema]))
    for planned in work.planned:
        if planned.schema not in schemas:
            schemas[planned.schema] = (planned.file.relative, work.schemas[planned.schema])
    try:
        work.schema = table_schema(work.table, schemas.values(), partitions_inside=target.partitions_inside)
        if work.layout is not None and target.settle_layout is not None:
            keys = work.table.partition_fields
            work.layout = target.settle_layout(work.layout, work.schema, keys)
        outdated = _Outdated(work.schema, state, target)
        _check_types(work, outdated)
    except (SchemaError, UnsupportedError) as error:
        for planned in work.planned:
            fail(work, planned.file, describe(error))
        if not work.planned:
            work.report.error = describe(error)
        work.planned.clear()
        work.schema, work.refused = None, True
        return
    work.is_outdated = outdated.has
    _rewrite(work, outdated, planner)


def _check_declared(work: TableWork, fail: Fail) -> None:
    """Fails files whose types do not fit the table's types in the metastore."""
    declared = work.table.declared
    if declared is None:
        return
    wrong: dict[str, str] = {}
    for planned in work.planned:
        if planned.schema not in wrong:
            wrong[planned.schema] = _misfit(declared, planned.file.relative, work.schemas[planned.schema])
        if wrong[planned.schema]:
            fail(work, planned.file, wrong[planned.schema])
            work.planned.discard(planned.file.relative)


def _misfit(declared: pa.Schema, file: str, schema: pa.Schema) -> str:
    try:
        unified([(_METASTORE, declared), (file, schema)])
    except SchemaError as error:
        return f"SchemaError: {error}"
    return ""


def _keep_failed(work: TableWork, state: State) -> None:
    """Keeps the earlier results of files that could not be opened."""
    if len(work.planned) == len(work.work):
        return
    for pending in work.work:
        before = state.done.look_up(pending.file.relative)
        if before is not None and before.parts and work.planned.get(pending.file.relative) is None:
            work.stays.append(pending_of(pending.file, before, "which could not be opened"))


def _check_partitions(work: TableWork, fail: Fail) -> None:
    """Fails exactly the files whose directories have values that their partition columns cannot hold."""
    last: tuple[str, ...] | None = None
    wrong = ""
    for planned in work.planned:
        # Files of one directory are adjacent.
        if planned.file.folders != last:
            last = planned.file.folders
            try:
                partition_values(planned.file, work.table)
                wrong = ""
            except SchemaError as error:
                wrong = f"SchemaError: {error}"
        if wrong:
            fail(work, planned.file, wrong)
            work.planned.discard(planned.file.relative)


def _check_types(work: TableWork, outdated: _Outdated) -> None:
    """Raises if files that this run cannot convert need other types."""
    drops = set(work.drops)
    stay = [pending for pending in work.stays if outdated.has(pending) and pending.file.relative not in drops]
    if not stay:
        return
    how = {
        GONE: "on_vanished 'remove' takes them out",
        DELETED: "archived_rows 'drop' with on_vanished 'remove' takes them out",
        LEFT_OUT: "a run that selects all of the table converts them again",
    }.get(stay[0].why, "they must be converted together with the others")
    raise SchemaError(
        f"table {work.table.name} needs other types now, but {len(stay)} of its files keep the old ones, "
        f"such as that of {stay[0].file.relative}, {stay[0].why}: {how}"
    )


def _rewrite(work: TableWork, outdated: _Outdated, planner: Planner) -> None:
    late = work.work.another()
    for rows in (work.done, work.held):
        for pending in rows:
            if outdated.has(pending):
                late.append(pending)
                # A staged result with other types is useless.
                rows.discard(pending.file.relative)
                work.files.discard(pending.file.relative)
    if late:
        planner(work, late)
        work.careful = True


class _Outdated:
    """Finds files whose types differ from the table's current types."""

    def __init__(self, schema: pa.Schema, state: State, target: Target) -> None:
        self._now, self._schema = schema_id(schema), schema
        self._state, self._target = state, target
        self._known: dict[str, bool] = {}

    def has(self, pending: Pending) -> bool:
        """Whether a converted file is outdated."""
        if not pending.has_parts or pending.written == self._now:
            return False
        known = self._known.get(pending.written)
        if known is None:
            now, before = _shapes(self._schema), _shapes(decoded(self._state.schemas[pending.written]))
            # Delta and Iceberg store the columns themselves, so a file may lack some columns.
            whole = self._target.register is None
            known = before != now if whole else bool(before.items() - now.items())
            self._known[pending.written] = known
        return known


def _shapes(schema: pa.Schema) -> dict[str, str]:
    return {field.name: shape_of(field.type) for field in schema}
