"""`coldframe tables thrift://..`, or of a dump: the tables that a Hive metastore defines, for people and as
tables.toml.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from coldframe.cli import output
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import DefinedTable, common_root, connect, defined_tables
from coldframe.hive.definition import toml_lines
from coldframe.hive.tables import Refused

__all__ = ["list_defined"]


def list_defined(args: argparse.Namespace) -> int:
    """One line a table. Exit code 2 where there is none, or the metastore refuses to describe one."""
    selected = Selected.of(args.source)
    with output.waiting("tables"), connect(selected.uris) as metastore:
        found = list(defined_tables(metastore, selected, partitions=not args.no_rows))
    tables = [one for one in found if isinstance(one, DefinedTable)]
    refused = [one for one in found if isinstance(one, Refused)]
    if args.json:
        print(output.as_json([_record(one) for one in tables]))
    elif args.form == "tables":
        print(_toml(tables), end="")
    else:
        _print(tables)
    for one in refused:
        output.complain(f"{one.database}.{one.name}: {one.reason}")
    if not found:
        output.complain(f"{args.source}: no such tables")
    elif args.write_tables:
        output.write_new(args.write_tables, _toml(tables))
    return 0 if tables and not refused else 2


def _print(tables: Sequence[DefinedTable]) -> None:
    rows = [
        [
            one.definition.full_name,
            one.definition.kind.lower().removesuffix("_table").replace("_", " "),
            ", ".join(one.formats),
            one.partitions,
            one.rows,
            one.definition.location,
        ]
        for one in tables
    ]
    output.print_table(["table", "kind", "format", "partitions", "rows stated", "location"], rows)
    for one in tables:
        if one.left_out is not None:
            output.complain(f"{one.definition.full_name}: {one.left_out}")
        if one.outside:
            output.complain(f"{one.definition.full_name}: {one.outside:,} partitions lie elsewhere")


def _record(one: DefinedTable) -> dict[str, object]:
    definition = one.definition
    return {
        "name": definition.full_name,
        "kind": definition.kind,
        "owner": definition.owner,
        "comment": definition.comment,
        "format": definition.format,
        "formats": list(one.formats),
        "location": definition.location,
        "columns": [vars(column) for column in definition.storage.columns],
        "partition_columns": [vars(column) for column in definition.keys],
        "partitions": one.partitions,
        "partitions_outside": one.outside,
        "rows": one.rows,
        "serde": definition.storage.serde,
        "serde_properties": dict(definition.storage.serde_properties),
        "storage_handler": definition.storage_handler,
        "left_out": one.left_out,
    }


def _toml(tables: Sequence[DefinedTable]) -> str:
    """Entries of tables.toml for a source that holds all tables; comments tell what no entry can."""
    readable = [one for one in tables if one.left_out is None]
    root = common_root([one.definition.location or "" for one in readable])
    blocks = [f"# for SRC = {root}"] if root else []
    for one in tables:
        definition = one.definition
        if one.left_out is not None or not root:
            reason = one.left_out or "its location and that of other tables have no directory in common"
            blocks.append(f"# {definition.full_name}: {reason}")
            continue
        path = (definition.location or "").rstrip("/")[len(root) + 1 :]
        lines = [*toml_lines(definition.full_name, path, definition)]
        if len(one.formats) > 1:
            lines.insert(1, f"# partitions of several formats: {', '.join(one.formats)}")
        if one.outside:
            lines.insert(
                1, f"# {one.outside:,} partitions lie elsewhere: {definition.location} is not all of it"
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"
