"""`coldframe tables thrift://..`: lists the tables of a Hive metastore or a dump, also as tables.toml."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from coldframe.cli import output
from coldframe.hive.addresses import Selected
from coldframe.hive.defined import DefinedTable, common_root, connect, defined_tables
from coldframe.hive.definition import toml_lines
from coldframe.hive.reader import Refused


def list_defined(args: argparse.Namespace) -> int:
    """Prints a line for each table. Exit code 2 if there is no table, or if a description is refused."""
    selected = Selected.of(args.source)
    with output.waiting("tables"), connect(selected.uris) as metastore:
        described = list(defined_tables(metastore, selected, partitions=not args.no_rows))
    tables = [item for item in described if isinstance(item, DefinedTable)]
    refused = [item for item in described if isinstance(item, Refused)]
    if args.json:
        print(output.as_json([_record(table) for table in tables]))
    elif args.form == "tables":
        print(_toml(tables), end="")
    else:
        _print(tables)
    for refusal in refused:
        output.complain(f"{refusal.database}.{refusal.name}: {refusal.reason}")
    if not described:
        output.complain(f"{output.name_of(args.source)}: no such tables")
    elif args.write_tables:
        output.write_new(args.write_tables, _toml(tables))
    return 0 if tables and not refused else 2


def _print(tables: Sequence[DefinedTable]) -> None:
    rows = [
        [
            table.definition.full_name,
            table.definition.kind.lower().removesuffix("_table").replace("_", " "),
            ", ".join(table.formats),
            table.partitions,
            table.rows,
            table.definition.location,
        ]
        for table in tables
    ]
    output.print_table(["table", "kind", "format", "partitions", "rows stated", "location"], rows)
    for table in tables:
        if table.left_out is not None:
            output.complain(f"{table.definition.full_name}: {table.left_out}")
        if table.outside:
            output.complain(
                f"{table.definition.full_name}: {table.outside:,} partitions lie outside its location"
            )


def _record(table: DefinedTable) -> dict[str, object]:
    definition = table.definition
    return {
        "name": definition.full_name,
        "kind": definition.kind,
        "owner": definition.owner,
        "comment": definition.comment,
        "format": definition.format,
        "formats": list(table.formats),
        "location": definition.location,
        "columns": [vars(column) for column in definition.storage.columns],
        "partition_columns": [vars(column) for column in definition.keys],
        "partitions": table.partitions,
        "partitions_outside": table.outside,
        "rows": table.rows,
        "serde": definition.storage.serde,
        "serde_properties": dict(definition.storage_of().serde_properties),
        "storage_handler": definition.storage_handler,
        "left_out": table.left_out,
    }


def _toml(tables: Sequence[DefinedTable]) -> str:
    """Entries of tables.toml for a source that holds all tables; comments for tables without an entry."""
    readable = [table for table in tables if table.left_out is None]
    root = common_root([table.definition.location or "" for table in readable])
    blocks = [f"# for SRC = {root}"] if root else []
    for table in tables:
        definition = table.definition
        if table.left_out is not None or not root:
            reason = table.left_out or "the locations of the tables have no common directory"
            blocks.append(f"# {definition.full_name}: {reason}")
            continue
        path = (definition.location or "").rstrip("/")[len(root) + 1 :]
        lines = [*toml_lines(definition.full_name, path, definition)]
        if len(table.formats) > 1:
            lines.insert(1, f"# partitions of several formats: {', '.join(table.formats)}")
        if table.outside:
            lines.insert(
                1, f"# {table.outside:,} partitions lie outside {definition.location}, and are missing here"
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"
