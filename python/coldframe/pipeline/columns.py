"""The columns of each table, by the files that it has now.

Files of earlier runs count with the columns that they had in the source. Nothing is remembered beyond the
files: what a corrected tables.toml calls otherwise is gone with the next run. Files that were written in
other types than the table has by now are converted once more, since readers take a table's types from one of
them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

import pyarrow as pa

from coldframe._coldframe import SchemaError
from coldframe.pipeline.comparing import TableWork, schema_id
from coldframe.pipeline.inventory import SourceFile
from coldframe.pipeline.journal import Entry, State
from coldframe.pipeline.plan import PlannedFile, partition_values, table_schema
from coldframe.pipeline.tables import Table
from coldframe.pipeline.targets import Target
from coldframe.widening import shape_of

Planner = Callable[[list[tuple[SourceFile, Table, str]]], list[PlannedFile]]
Fail = Callable[[TableWork, PlannedFile, str], None]


def settle_columns(work: TableWork, state: State, target: Target, planner: Planner, fail: Fail) -> None:
    """Gives a table its columns, and more work where files have to be written once more. `planner` plans
    files, `fail` is told of those that have no place in the table.
    """
    drops = set(work.drops)
    stay = [entry for entry in work.vanished if entry.source not in drops]
    known = [*(entry for _, entry in (*work.done, *work.held)), *stay]
    if not work.planned and not work.done and not work.held:
        return
    schemas: dict[str, tuple[str, pa.Schema]] = {}
    for entry in known:
        name = str(entry.details["schema"])
        if name not in schemas:
            schemas[name] = (entry.source, decoded(state.schemas[name]))
    for one in work.planned:
        if one.schema is not None:
            schemas.setdefault(schema_id(one.schema), (one.file.relative, one.schema))
    try:
        work.schema = table_schema(work.table, schemas.values(), partitions_inside=target.partitions_inside)
        for one in work.planned:
            partition_values(one.file, work.table)
        _demand_same(stay, work, state, target)
    except SchemaError as error:
        for one in work.planned:
            fail(work, one, f"SchemaError: {error}")
        if not work.planned:
            work.report.error = f"SchemaError: {error}"
        work.planned, work.schema = [], None
        return
    _rewrite(work, state, target, planner)


def _demand_same(stay: Sequence[Entry], work: TableWork, state: State, target: Target) -> None:
    """What was made of sources that are gone cannot be made again in other types."""
    other = [entry.source for entry in stay if _is_outdated(entry, work, state, target)]
    if other:
        raise SchemaError(
            f"table {work.table.name} needs other types by now, and {len(other)} file(s) of it whose sources "
            f"are gone, such as {other[0]}, lie in the old ones: on_vanished 'remove' takes them out"
        )


def _rewrite(work: TableWork, state: State, target: Target, planner: Planner) -> None:
    late = [(file, entry) for file, entry in work.done if _is_outdated(entry, work, state, target)]
    work.rewritten = bool(late)
    # What waits in other types is of no use.
    late += [(file, entry) for file, entry in work.held if _is_outdated(entry, work, state, target)]
    names = {file.relative for file, _ in late}
    if not names:
        return
    work.done = [one for one in work.done if one[0].relative not in names]
    work.held = [one for one in work.held if one[0].relative not in names]
    work.report.files = [one for one in work.report.files if one.source not in names]
    work.planned += planner([(file, work.table, entry.key) for file, entry in late])
    work.careful = True


def _is_outdated(entry: Entry, work: TableWork, state: State, target: Target) -> bool:
    written = str(entry.details["written"])
    if work.schema is None or not entry.parts or written == schema_id(work.schema):
        return False
    before, now = (_shapes(one) for one in (decoded(state.schemas[written]), work.schema))
    # Delta and Iceberg have the columns by themselves: a file may lack some.
    return before != now if target.register is None else bool(before.items() - now.items())


def _shapes(schema: pa.Schema) -> dict[str, str]:
    return {field.name: shape_of(field.type) for field in schema}


def encoded(schema: pa.Schema) -> str:
    """Columns as text."""
    return base64.b64encode(schema.serialize()).decode("ascii")


def decoded(text: str) -> pa.Schema:
    """The reverse of `encoded`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
