"""The command that lists the tables of an estate."""

from __future__ import annotations

import argparse
import os
from typing import Any

from coldframe import writing
from coldframe._coldframe import shown
from coldframe.byte_size import counted, size_text
from coldframe.cli import output
from coldframe.cli.options import Commands, add_command, add_storage_option, pairs, prints_json
from coldframe.hive.addresses import is_metastore
from coldframe.table_listing import FoundTable, Survey, survey


def add_parsers(commands: Commands) -> None:
    """Adds tables."""
    parser = add_command(
        commands,
        "tables",
        """coldframe tables hadoop-disks/
coldframe tables hadoop-disks/ --html inventory.html       # one page with pictures, to sort and filter
coldframe tables hadoop-disks/ --verify                    # is all of it intact? reads everything
coldframe tables hadoop-disks/ --as tables > tables.toml   # for `migrate` and `sql --in`, after a review
coldframe tables thrift://metastore:9083/                  # all tables of a Hive metastore
coldframe tables thrift://metastore:9083/sales.orders --write-tables tables.toml""",
    )
    parser.add_argument(
        "source",
        help="a directory or its URL; or thrift://host:9083/[database[.table]], with * and ?; or a dump of a "
        "metastore or a script of CREATE TABLE, FILE[/database[.table]]",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=["list", "tables"],
        default="list",
        help="tables: as entries of tables.toml",
    )
    parser.add_argument(
        "--write-tables",
        metavar="FILE",
        help="also write entries of tables.toml to this new file",
    )
    parser.add_argument("--html", metavar="FILE", help="also write a page with pictures to FILE; replaces it")
    parser.add_argument(
        "--no-rows",
        action="store_true",
        help="list names only: do not open the tables to count rows, nor ask a metastore for partitions",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="decode every value of each table, to find damage and files that are gone; exit code 1 if there "
        "is any",
    )
    add_storage_option(parser)
    prints_json(parser, list_tables)


def _is_no_data(source: str) -> bool:
    """Whether a file has none of coldframe's formats, so that it may be a dump of a metastore."""
    return os.path.isfile(source) and writing.detect(source) is None


def list_tables(args: argparse.Namespace) -> int:
    """Prints a line for each table. Exit code 2 if there is no table, 1 if `--verify` finds damage."""
    if is_metastore(args.source, or_file=_is_no_data(args.source)):
        from coldframe.cli.defined_tables import list_defined

        for option, given in (("--html", args.html is not None), ("--verify", args.verify)):
            if given:
                raise ValueError(f"{option}: for a directory or its URL, not for a metastore's tables")
        return list_defined(args)
    storage = pairs(args.storage_option, "--storage-option") or None
    with output.waiting("tables"):
        estate = survey(args.source, storage_options=storage, rows=not args.no_rows, verify=args.verify)
    listed = estate.tables
    everything = sorted([*listed, *estate.others], key=lambda table: (-table.bytes, table.name))
    if args.html is not None and everything:
        from coldframe.pipeline.report.inventory_page import inventory_page

        output.replace_file(args.html, inventory_page(args.source, estate))
    if args.json:
        foreign = {id(table) for table in estate.others}
        print(output.as_json([_record(table, is_foreign=id(table) in foreign) for table in everything]))
    elif args.form == "tables":
        print("\n\n".join(table.to_toml(storage_options=storage) for table in listed))
    else:
        rows = [
            [table.name, table.format, table.files, size_text(table.bytes), table.rows, shown(table.path)]
            for table in everything
        ]
        output.print_table(["table", "format", "files", "size", "rows", "path"], rows)
        _print_remarks(estate)
    if not everything:
        output.complain(f"{output.name_of(args.source)}: no tables of any of the formats")
    elif args.write_tables:
        entries = (table.to_toml(storage_options=storage) for table in listed)
        output.write_new(args.write_tables, "\n\n".join(entries) + "\n")
    if not (listed if args.form == "tables" else everything):
        return 2
    return int(args.verify and any(table.is_wrong for table in listed))


_FIELDS = (
    *("name", "format", "path", "files", "bytes", "rows", "options", "problem"),
    *("newest", "partitions", "owner", "writer", "damaged", "missing", "damage"),
)
_MAX_UNREAD = 20


def _record(table: FoundTable, *, is_foreign: bool) -> dict[str, Any]:
    record = {name: getattr(table, name) for name in _FIELDS}
    return {**record, "path": shown(table.path), "is_foreign": is_foreign}


def _print_remarks(estate: Survey) -> None:
    """What the table does not show, on standard error."""
    for table in estate.tables:
        if table.problem is not None:
            output.complain(f"{table.name}: {table.problem}")
        if table.damaged:
            output.complain(f"{table.name}: {counted(table.damaged, 'file')} of no known format")
        for text in table.damage:
            output.complain(f"{table.name}: damaged: {text}")
    for text in dict.fromkeys(text for table in estate.tables for text in table.missing):
        output.complain(text)
    if estate.others:
        kinds = ", ".join(sorted({table.format for table in estate.others}))
        output.complain(
            f"{counted(len(estate.others), 'table')} in formats that other programs read ({kinds}), left out "
            "by migrate"
        )
    if estate.stray:
        files, size = sum(group.files for group in estate.stray), sum(group.bytes for group in estate.stray)
        kinds = ", ".join(sorted({group.kind for group in estate.stray}))
        output.complain(f"outside of tables: {counted(files, 'file')}, {size_text(size)} ({kinds})")
    for text in estate.unread[:_MAX_UNREAD]:
        output.complain(text)
    if (more := len(estate.unread) - _MAX_UNREAD) > 0:
        output.complain(f"and {more:,} more places that could not be examined")
